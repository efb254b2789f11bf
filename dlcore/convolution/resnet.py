r"""Residual networks for pictures: blocks that add to what passes by, and their family.

A block is a branch, the shortcut past it, and a bend behind their sum. Without its
shortcut it is the plain counterpart: the same layers, one after the other.
"""

from collections.abc import Sequence
from math import prod

from jaxtyping import Float

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore.checks import check, check_shape, check_sizes, check_whole
from dlcore.convolution.batchnorm import BatchNorm2d
from dlcore.convolution.conv import Conv2d

__all__ = [
    "BasicBlock",
    "Block",
    "Bottleneck",
    "DenseBlock",
    "PreActivation",
    "ResNet",
    "conv_norm",
]

_Pictures = Float[Tensor, "B C rows columns"]


class Block(nn.Module):
    r"""A residual block: a branch, a shortcut past it, and a ReLU behind their sum.

    .. math:: y = \operatorname{ReLU}\bigl( s(x) + f(x) \bigr)

    Args:
        branch: :math:`f`.
        past: :math:`s`, the identity or a projection; without it the block is plain.

    Example:
        >>> block = Block(nn.Identity(), nn.Identity())
        >>> block(torch.tensor([1.0, -1.0]).reshape(1, 2, 1, 1)).flatten().tolist()
        [2.0, 0.0]
    """

    def __init__(self, branch: nn.Module, past: nn.Module | None) -> None:
        super().__init__()
        self.branch, self.past = branch, past

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B O _ _"]:
        change = self.branch(x)
        if self.past is None:
            return torch.relu(change)
        kept = self.past(x)
        check_shape("Block: the branch", change, *kept.shape)
        return torch.relu(kept + change)


def conv_norm(
    inputs: int,
    outputs: int,
    k: int,
    stride: int = 1,
    groups: int = 1,
    *,
    norm: bool = True,
    zero: bool = False,
    generator: Generator | None = None,
) -> nn.Sequential:
    """Return a convolution that keeps the sides, or divides them by the stride.

    With batch normalisation behind it, it has no bias, which would be idle. With
    ``zero`` its outputs are zero at first: its scales are, or without them its kernels.

    Example:
        >>> [p.numel() for p in conv_norm(1, 8, 3).parameters()]
        [72, 8, 8]
    """
    conv = Conv2d(
        inputs,
        outputs,
        k,
        stride=stride,
        padding=k // 2,
        groups=groups,
        bias=not norm,
        generator=generator,
    ).in_torch()
    norms = [BatchNorm2d(outputs)] if norm else []
    if zero:
        nn.init.zeros_(norms[0].gamma if norms else conv.weight)
    return nn.Sequential(conv, *norms)


def _branch_and_shortcut(
    sizes: Sequence[tuple[int, int, int, int, int]],
    shortcut: bool,
    norm: bool,
    zero: bool,
    generator: Generator | None,
) -> tuple[nn.Module, nn.Module | None]:
    """Return convolutions with ReLUs between them, and what leads past them.

    That is the identity where it fits, else a projection, a convolution with kernels of
    side 1. It is drawn also where it is left out, so that what is drawn next stays.

    Args:
        sizes: inputs, outputs, kernel, stride and groups of each convolution.
        shortcut: whether there is one.
        norm: whether batch normalisation follows each convolution.
        zero: whether the last convolution is zero at first.
        generator: source of the kernels.
    """
    branch: list[nn.Module] = []
    for i, size in enumerate(sizes, 1):
        last = zero and i == len(sizes)
        branch += [conv_norm(*size, norm=norm, zero=last, generator=generator)]
        branch += [nn.ReLU()]
    inputs, outputs = sizes[0][0], sizes[-1][1]
    stride = prod(size[3] for size in sizes)
    past: nn.Module = nn.Identity()
    if stride > 1 or inputs != outputs:
        past = conv_norm(inputs, outputs, 1, stride, norm=norm, generator=generator)
    return nn.Sequential(*branch[:-1]), past if shortcut else None


class BasicBlock(Block):
    r"""A residual block of two 3 × 3 convolutions, with a shortcut past them.

    Args:
        inputs: channels that come in.
        outputs: channels that go out.
        stride: of the first convolution. If it is not 1, or the channels change, the
            shortcut is a projection, a convolution with kernels of side 1.
        shortcut: whether there is one.
        norm: whether batch normalisation follows each convolution.
        zero: whether the branch is zero at first.
        generator: source of the kernels.

    Example:
        >>> x = torch.rand(2, 4, 5, 5)
        >>> torch.equal(BasicBlock(4, 4, zero=True)(x), x)  # a branch of zeros
        True
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int = 1,
        *,
        shortcut: bool = True,
        norm: bool = True,
        zero: bool = False,
        generator: Generator | None = None,
    ) -> None:
        sizes = [(inputs, outputs, 3, stride, 1), (outputs, outputs, 3, 1, 1)]
        super().__init__(*_branch_and_shortcut(sizes, shortcut, norm, zero, generator))


class Bottleneck(Block):
    r"""A residual block of 1 × 1, 3 × 3 and 1 × 1 convolutions: few channels between.

    Args:
        inputs: channels that come in.
        outputs: channels that go out.
        width: channels in the middle.
        stride: of the middle convolution.
        groups: of the middle convolution; more than one make it a block of ResNeXt
            (Xie et al. 2017).
        shortcut: as in :class:`BasicBlock`, like the rest.
        norm: whether batch normalisation follows each convolution.
        zero: whether the branch is zero at first.
        generator: source of the kernels.

    Example:
        >>> block = Bottleneck(256, 256, 64)  # kernels: 64 · (256 + 9 · 64 + 256)
        >>> sum(p.numel() for p in block.parameters() if p.ndim > 1)
        69632
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int,
        stride: int = 1,
        *,
        groups: int = 1,
        shortcut: bool = True,
        norm: bool = True,
        zero: bool = False,
        generator: Generator | None = None,
    ) -> None:
        middle = width, width, 3, stride, groups
        sizes = [(inputs, width, 1, 1, 1), middle, (width, outputs, 1, 1, 1)]
        super().__init__(*_branch_and_shortcut(sizes, shortcut, norm, zero, generator))


class PreActivation(nn.Module):
    r"""A residual block with normalisation and ReLU before each convolution.

    It is that of the second paper (He et al. 2016b): nothing stands behind the sum.

    .. math:: y = x + f(x)

    with normalisation and bend in front of each of the two convolutions of :math:`f`.

    Args:
        channels: that come in and go out.
        norm: whether there is normalisation.
        generator: source of the kernels.

    Example:
        >>> x = -torch.ones(1, 1, 3, 3)
        >>> torch.equal(PreActivation(1, norm=False)(x), x)  # no ReLU behind the sum
        True
    """

    def __init__(
        self, channels: int, *, norm: bool = True, generator: Generator | None = None
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(2):
            layers += [BatchNorm2d(channels)] if norm else []
            conv = Conv2d(channels, channels, 3, padding=1, generator=generator)
            layers += [nn.ReLU(), conv.in_torch()]
        self.branch = nn.Sequential(*layers)

    def forward(self, x: _Pictures) -> _Pictures:  # noqa: D102
        return x + self.branch(x)


class DenseBlock(nn.Module):
    """Layers that each get all earlier outputs as channels (Huang et al. 2017).

    Args:
        inputs: channels that come in; what goes out has ``inputs + layers * growth``.
        growth: channels that each layer adds.
        layers: how many.
        generator: source of the kernels.

    Example:
        >>> x = torch.zeros(2, 4, 5, 5)
        >>> y = DenseBlock(4, growth=2, layers=3)(x)
        >>> y.shape[1], torch.equal(y[:, :4], x)
        (10, True)
    """

    def __init__(
        self, inputs: int, growth: int, layers: int, generator: Generator | None = None
    ) -> None:
        super().__init__()
        check_whole("DenseBlock: layers", layers, 1)
        self.layers = nn.ModuleList(
            conv_norm(inputs + i * growth, growth, 3, generator=generator)
            for i in range(layers)
        )

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B O rows columns"]:
        for layer in self.layers:
            x = torch.cat([x, torch.relu(layer(x))], dim=1)
        return x


class ResNet(nn.Module):
    r"""A small residual network for square pictures with one channel.

    A convolution with stride 2, then stages of equal blocks, each of which doubles the
    channels and halves the side, then a linear layer. There are ``2 * sum(blocks) + 2``
    layers; three stages of :math:`n` blocks make the :math:`6n + 2` that He et al.
    (2016) use for CIFAR-10.

    Args:
        blocks: how many each stage has.
        channels: of the first stage.
        side: rows and columns of a picture.
        shortcut: whether the blocks have one; without it the network is plain.
        norm: whether there is batch normalisation.
        zero: whether the branches are zero at first.
        classes: number of outputs.
        generator: source of all weights.

    Example:
        >>> net = ResNet([3, 3, 3], shortcut=False)
        >>> sum(p.ndim > 1 for p in net.parameters())  # 6 · 3 + 2 layers
        20
    """

    def __init__(
        self,
        blocks: Sequence[int],
        channels: int = 8,
        *,
        side: int = 28,
        shortcut: bool = True,
        norm: bool = True,
        zero: bool = False,
        classes: int = 10,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        check(len(blocks) > 0, "ResNet: blocks", "name a stage", "none")
        check_sizes("ResNet", side=side, classes=classes)
        stem = conv_norm(1, channels, 3, 2, norm=norm, generator=generator)
        self.stem = nn.Sequential(stem, nn.ReLU())
        made, inputs, side = [], channels, (side + 1) // 2
        how = {"shortcut": shortcut, "norm": norm, "zero": zero}
        for stage, many in enumerate(blocks):
            check_whole("ResNet: each of blocks", many, 1)
            for i in range(many):
                stride = 2 if stage > 0 and i == 0 else 1
                outputs, side = channels << stage, (side - 1) // stride + 1
                made.append(
                    BasicBlock(inputs, outputs, stride, **how, generator=generator)
                )
                inputs = outputs
        self.blocks = nn.Sequential(*made)
        self.head = nn.Linear(inputs * side * side, classes)
        scale = self.head.in_features**-0.5
        nn.init.normal_(self.head.weight, 0, scale, generator=generator)
        nn.init.zeros_(self.head.bias)

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B 1 side side"]
    ) -> Float[Tensor, "B classes"]:
        return self.head(self.blocks(self.stem(x)).flatten(1))
