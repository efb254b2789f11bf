import re

import pytest
import torch
from torch import nn

from dlcore.convolution.architectures import (
    BLOCKS,
    Layer,
    depth_of,
    resnet,
    vgg,
)
from dlcore.convolution.resnet import BasicBlock, Bottleneck

PUBLISHED = {  # as the documentation of torchvision has them
    "ResNet-18": (resnet(18), 18, 11_689_512, 1.81),
    "ResNet-34": (resnet(34), 34, 21_797_672, 3.66),
    "ResNet-50": (resnet(50), 50, 25_557_032, 4.09),
    "ResNet-101": (resnet(101), 101, 44_549_160, 7.80),
    "ResNet-152": (resnet(152), 152, 60_192_808, 11.51),
    "ResNeXt-50": (resnet(50, groups=32, width=128), 50, 25_028_904, 4.23),
    "VGG-16": (vgg(16), 16, 138_357_544, 15.47),
    "VGG-19": (vgg(19), 19, 143_667_240, 19.63),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_counts_are_those_published(name):
    layers, depth, parameters, giga = PUBLISHED[name]
    assert depth_of(layers) == depth
    assert sum(layer.parameters for layer in layers) == parameters
    adds = sum(layer.multiply_adds for layer in layers)
    assert round(adds / 1e9, 2) == giga


@pytest.mark.parametrize("depth", BLOCKS)
def test_counts_are_those_of_blocks_that_are_built(depth):
    with torch.device("meta"):
        parts = [nn.Conv2d(3, 64, 7, bias=False), nn.BatchNorm2d(64)]
        inputs = 64
        for stage, many in enumerate(BLOCKS[depth]):
            width = 64 << stage
            for i in range(many):
                stride = 2 if stage > 0 and i == 0 else 1
                if depth < 50:
                    parts.append(BasicBlock(inputs, width, stride))
                    inputs = width
                else:
                    parts.append(Bottleneck(inputs, 4 * width, width, stride))
                    inputs = 4 * width
        parts.append(nn.Linear(inputs, 1000))
    built = sum(p.numel() for part in parts for p in part.parameters())
    assert built == sum(layer.parameters for layer in resnet(depth))


def test_multiply_adds_of_one_layer_by_hand():
    conv = Layer("conv", "a", 6, 4, k=3, side=5, groups=2, bias=True)
    assert conv.weights == 4 * 3 * 9
    assert conv.parameters == 4 * 3 * 9 + 4
    assert conv.multiply_adds == 4 * 3 * 9 * 25
    assert Layer("norm", "a", 4, 4, side=5).parameters == 8
    assert Layer("norm", "a", 4, 4, side=5).multiply_adds == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: resnet(20),
            "depth must be one of [18, 34, 50, 101, 152]; got 20",
        ),
        (lambda: vgg(11), "depth must be one of [16, 19]; got 11"),
        (
            lambda: resnet(50, groups=3),
            "groups must divide the width 64; got 3",
        ),
        (lambda: resnet(18, groups=2), "be 1 and 64 below 50 layers"),
        (
            lambda: resnet(50, groups=0),
            "groups must be a whole number from 1 on",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses_with_a_sentence(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()
