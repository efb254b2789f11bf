import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from twins import normal

from dlcore.convolution.resnet import (
    BasicBlock,
    Block,
    Bottleneck,
    DenseBlock,
    PreActivation,
    ResNet,
    conv_norm,
)


def copied(ours, theirs):
    """Give the parameters of our layers to those of PyTorch, in order."""
    with torch.no_grad():
        for p, q in zip(ours.parameters(), theirs, strict=True):
            q.copy_(p)


class TheirBlock(nn.Module):
    """A basic block as PyTorch's users write it."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.conv3 = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.bn3(self.conv3(x)))


@given(seeds, st.integers(1, 3), st.integers(4, 5), st.integers(1, 2))
def test_basic_block_is_that_of_torch(rng, inputs, outputs, stride):
    ours = BasicBlock(inputs, outputs, stride).double()
    theirs = TheirBlock(inputs, outputs, stride).double()
    copied(ours, theirs.parameters())
    x = normal(rng, 3, inputs, 5, 6).requires_grad_()
    y, z = ours(x), theirs(x)
    torch.testing.assert_close(y, z)
    delta = normal(rng, *y.shape)
    mine = torch.autograd.grad(y, [x, *ours.parameters()], delta)
    other = torch.autograd.grad(z, [x, *theirs.parameters()], delta)
    for p, q in zip(mine, other, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-7)


@given(seeds, st.booleans(), st.sampled_from([1, 2, 4]))
def test_zero_branch_is_the_bend_and_keeps_what_is_not_negative(rng, norm, groups):
    x = normal(rng, 2, 8, 4, 4)
    for block in (
        BasicBlock(8, 8, norm=norm, zero=True),
        Bottleneck(8, 8, 4, groups=groups, norm=norm, zero=True),
    ):
        block.double()
        assert torch.equal(block(x), torch.relu(x))
        assert torch.equal(block(x.abs()), x.abs())


def test_plain_block_is_the_branch_alone():
    x = torch.randn(2, 3, 5, 5)
    block = BasicBlock(3, 3, shortcut=False)
    assert torch.equal(block(x), torch.relu(block.branch(x)))
    assert block.past is None
    projected = BasicBlock(3, 4, 2)
    assert projected(x).shape == (2, 4, 3, 3)
    assert [*map(type, BasicBlock(3, 3).children())][1] is nn.Identity


def test_stride_alone_calls_for_a_projection():
    block = BasicBlock(3, 3, 2)
    assert block(torch.randn(2, 3, 5, 5)).shape == (2, 3, 3, 3)


def test_zero_start_leaves_what_can_learn():
    scaled = BasicBlock(2, 2, zero=True).branch[2]
    assert not scaled[1].gamma.any()
    assert scaled[0].weight.any()
    bare = BasicBlock(2, 2, norm=False, zero=True).branch
    assert not bare[2][0].weight.any()
    assert bare[0][0].weight.any()


def test_bottleneck_parameters_by_hand():
    def count(**how):
        block = Bottleneck(256, 256, **how, norm=False)
        return sum(p.numel() for p in block.parameters() if p.ndim == 4)

    assert count(width=64) == 256 * 64 + 9 * 64**2 + 64 * 256
    assert count(width=128, groups=32) == 2 * 256 * 128 + 9 * 128 * 4


PUBLISHED = {  # blocks, groups, width; parameters and billions of torchvision
    "ResNet-18": ((2, 2, 2, 2), 1, None, 11_689_512, 1.81),
    "ResNet-34": ((3, 4, 6, 3), 1, None, 21_797_672, 3.66),
    "ResNet-50": ((3, 4, 6, 3), 1, 64, 25_557_032, 4.09),
    "ResNet-101": ((3, 4, 23, 3), 1, 64, 44_549_160, 7.80),
    "ResNet-152": ((3, 8, 36, 3), 1, 64, 60_192_808, 11.51),
    "ResNeXt-50": ((3, 4, 6, 3), 32, 128, 25_028_904, 4.23),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_blocks_make_the_networks_that_are_published(name):
    blocks, groups, width, parameters, billions = PUBLISHED[name]
    inputs = 64
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        layers = [conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
        for stage, many in enumerate(blocks):
            for i in range(many):
                stride = 2 if stage > 0 and i == 0 else 1
                if width is None:
                    outputs = 64 << stage
                    block = BasicBlock(inputs, outputs, stride)
                else:
                    outputs, how = 256 << stage, {"groups": groups}
                    block = Bottleneck(inputs, outputs, width << stage, stride, **how)
                layers.append(block)
                inputs = outputs
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)]
        net = nn.Sequential(*layers).eval()
        net(torch.zeros(1, 3, 224, 224))
    assert sum(p.numel() for p in net.parameters()) == parameters
    assert round(counter.get_total_flops() / 2e9, 2) == billions


@given(seeds)
def test_groups_do_not_hear_each_other(rng):
    middle = Bottleneck(4, 4, 4, groups=2, norm=False).double().branch[2]
    x = normal(rng, 1, 4, 5, 5)
    other = x.clone()
    other[:, 2:] = normal(rng, 1, 2, 5, 5)
    first, second = middle(x), middle(other)
    assert torch.equal(first[:, :2], second[:, :2])
    assert not torch.equal(first[:, 2:], second[:, 2:])


@given(seeds, st.booleans())
def test_pre_activation_adds_and_bends_nothing(rng, norm):
    block = PreActivation(3, norm=norm).double()
    x = normal(rng, 2, 3, 4, 4)
    torch.testing.assert_close(block(x) - x, block.branch(x))
    with torch.no_grad():
        block.branch[-1].weight.zero_()
    assert torch.equal(block(x), x)


@given(seeds, st.integers(1, 4), st.integers(1, 3))
def test_dense_block_keeps_its_input_and_grows(rng, layers, growth):
    block = DenseBlock(2, growth, layers).double()
    x = normal(rng, 3, 2, 4, 4)
    y = block(x)
    assert y.shape == (3, 2 + layers * growth, 4, 4)
    assert torch.equal(y[:, :2], x)


@pytest.mark.parametrize(("blocks", "side"), [((1,), 28), ((2, 1), 9), ((1, 2, 3), 28)])
def test_network_counts_its_layers(blocks, side):
    net = ResNet(blocks, 4, side=side, classes=7)
    sums = [m for m in net.modules() if type(m).__name__ in ("Conv2d", "Linear")]
    projections = len(blocks) - 1
    assert len(sums) - projections == 2 * sum(blocks) + 2
    assert net(torch.zeros(2, 1, side, side)).shape == (2, 7)
    with pytest.raises(RuntimeError):
        net(torch.zeros(2, 1, side + 16, side + 16))


def test_network_is_drawn_from_its_generator():
    def draw(seed, **how):
        generator = torch.Generator().manual_seed(seed)
        net = ResNet((1, 1), 2, generator=generator, **how)
        return torch.cat([p.detach().flatten() for p in net.parameters()])

    for how in ({}, {"norm": False}, {"shortcut": False}, {"zero": True}):
        assert torch.equal(draw(0, **how), draw(0, **how))
        assert not torch.equal(draw(0, **how), draw(1, **how))


def test_bias_stands_only_where_no_normalisation_follows():
    for norm in (True, False):
        convs = [
            m
            for m in ResNet((1, 1), 2, norm=norm).modules()
            if type(m).__name__ == "Conv2d"
        ]
        assert all((conv.bias is None) == norm for conv in convs)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ResNet(()), "ResNet: blocks must name a stage; got none"),
        (lambda: ResNet((1, 0)), "each of blocks must be a whole number from 1"),
        (lambda: ResNet((1,), side=0), "ResNet: side must be a whole number"),
        (lambda: ResNet((1,), classes=0), "classes must be a whole number"),
        (
            lambda: Bottleneck(4, 4, 6, groups=4),
            "groups must divide the channels 6 → 6; got 4",
        ),
        (lambda: DenseBlock(2, 2, 0), "layers must be a whole number from 1"),
        (
            lambda: Block(nn.Flatten(), nn.Identity())(torch.zeros(1, 2, 1, 1)),
            "the branch must have the shape (1, 2, 1, 1); got shape (1, 2)",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses_with_a_sentence(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()
