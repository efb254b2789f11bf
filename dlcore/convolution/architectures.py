"""Architectures: well-known networks as lists of layers, to be counted.

No network is built. A layer knows its sizes, hence how many parameters it has and how many
products it adds up for one picture.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dlcore.checks import check, check_whole

BLOCKS = {  # per stage; from 50 layers on they are bottlenecks
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
CONVOLUTIONS = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}  # of VGG, per stage


@dataclass(frozen=True)
class Layer:
    """One layer of a network.

    Args:
        kind: ``"conv"``, ``"norm"`` or ``"dense"``.
        stage: the part of the network that it belongs to.
        inputs: channels, or for a dense layer numbers, that come in.
        outputs: channels or numbers that go out.
        k: rows and columns of a kernel.
        side: rows and columns of what comes out.
        groups: of the channels.
        bias: whether there are biases.
        counted: whether its authors count it as a layer; they count neither projections
            of shortcuts nor normalisation.
    """

    kind: str
    stage: str
    inputs: int
    outputs: int
    k: int = 1
    side: int = 1
    groups: int = 1
    bias: bool = False
    counted: bool = True

    @property
    def weights(self) -> int:
        """Entries of the kernels, or of the matrix; a normalisation has none."""
        if self.kind == "norm":
            return 0
        return self.outputs * (self.inputs // self.groups) * self.k**2

    @property
    def parameters(self) -> int:
        """Weights and biases; scales and shifts of a normalisation."""
        if self.kind == "norm":
            return 2 * self.outputs
        return self.weights + self.bias * self.outputs

    @property
    def multiply_adds(self) -> int:
        """Products that are added up for one picture: each weight at each place."""
        return self.weights * self.side**2


def resnet(depth: int, groups: int = 1, width: int = 64) -> list[Layer]:
    """Return the layers of a residual network for 1000 classes and 224 × 224 pixels.

    Where a block changes the shape, its shortcut is a projection. A bottleneck has its
    stride in the middle, as PyTorch has it; He et al. (2016) have it in the first layer.

    Args:
        depth: 18, 34, 50, 101 or 152.
        groups: of the middle convolution of a bottleneck; ResNeXt-50 has 32.
        width: of the middle convolution in the first stage; ResNeXt-50 has 128.
    """
    known = f"be one of {sorted(BLOCKS)}"
    check(depth in BLOCKS, "resnet: depth", known, depth)
    check_whole("resnet: groups", groups, 1)
    check_whole("resnet: width", width, 1)
    check(
        width % groups == 0,
        "resnet: groups",
        f"divide the width {width}",
        groups,
    )
    deep = depth >= 50
    check(
        deep or (groups, width) == (1, 64),
        "resnet: groups and width",
        "be 1 and 64 below 50 layers",
        (groups, width),
    )
    layers = [*_normed("stem", 3, 64, 7, 112)]
    inputs = 64
    for stage, many in enumerate(BLOCKS[depth]):
        name, middle = f"stage {stage + 1}", width << stage
        side = 56 >> stage
        outputs = (256 if deep else 64) << stage
        for i in range(many):
            early = 2 * side if deep and stage > 0 and i == 0 else side
            if deep:  # the middle convolution has the stride
                sizes = [
                    (inputs, middle, 1, early, 1),
                    (middle, middle, 3, side, groups),
                    (middle, outputs, 1, side, 1),
                ]
            else:
                sizes = [(inputs, outputs, 3, side, 1)]
                sizes += [(outputs, outputs, 3, side, 1)]
            for size in sizes:
                layers += _normed(name, *size)
            if inputs != outputs:
                layers += _normed(name, inputs, outputs, 1, side, counted=False)
            inputs = outputs
    return [*layers, Layer("dense", "head", inputs, 1000, bias=True)]


def _normed(
    stage: str,
    inputs: int,
    outputs: int,
    k: int,
    side: int,
    groups: int = 1,
    counted: bool = True,
) -> Iterator[Layer]:
    """Return a convolution without biases and the normalisation behind it."""
    sizes = inputs, outputs, k, side, groups
    yield Layer("conv", stage, *sizes, counted=counted)
    yield Layer("norm", stage, outputs, outputs, side=side, counted=False)


def vgg(depth: int) -> list[Layer]:
    """Return the layers of a network of Simonyan and Zisserman (2015).

    Args:
        depth: 16 or 19.
    """
    known = f"be one of {sorted(CONVOLUTIONS)}"
    check(depth in CONVOLUTIONS, "vgg: depth", known, depth)
    layers, inputs = [], 3
    for stage, many in enumerate(CONVOLUTIONS[depth]):
        outputs, side = min(64 << stage, 512), 224 >> stage
        for _ in range(many):
            name = f"stage {stage + 1}"
            layer = Layer("conv", name, inputs, outputs, 3, side, bias=True)
            layers.append(layer)
            inputs = outputs
    for n, m in [(512 * 7 * 7, 4096), (4096, 4096), (4096, 1000)]:
        layers.append(Layer("dense", "head", n, m, bias=True))
    return layers


def depth_of(layers: list[Layer]) -> int:
    """Return the number of layers as their authors count them."""
    return sum(layer.counted for layer in layers)
