"""U-Nets: networks whose output is a picture, as large as the input."""

from itertools import pairwise

from jaxtyping import Float

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore.checks import check, check_whole
from dlcore.convolution.conv import Conv2d, check_pictures

__all__ = ["UNet", "Upsample", "upsample"]


def upsample(
    x: Float[Tensor, "B C rows columns"], factor: int = 2
) -> Float[Tensor, "B C _ _"]:
    """Enlarge pictures by repeating each pixel: it becomes a square of equal ones.

    Equals ``torch.nn.functional.interpolate`` in its mode ``nearest``.

    Example:
        >>> upsample(torch.tensor([[[[1.0, 2.0]]]])).tolist()
        [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]]
    """
    check_whole("upsample: factor", factor, 1)
    check_pictures("upsample: x", x)
    return x.repeat_interleave(factor, 2).repeat_interleave(factor, 3)


class Upsample(nn.Module):
    """The layer that enlarges pictures, :func:`upsample`; it has no parameters.

    Example:
        >>> Upsample(3)(torch.ones(1, 1, 1, 1)).sum().item()
        9.0
    """

    def __init__(self, factor: int = 2) -> None:
        super().__init__()
        check_whole("Upsample: factor", factor, 1)
        self.factor = factor

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B C _ _"]:
        return upsample(x, self.factor)


class UNet(nn.Module):
    """A U-Net: down to few places with many channels, up again with skip connections.

    On the way down each level has convolutions of 3 × 3 with ReLUs, and then halves the
    sides; channels double. On the way up a level doubles the sides, sets beside the
    result what the same level had on the way down, and has convolutions again. A
    convolution of 1 × 1 ends it; its kernels begin with zeros, so that the first
    outputs are equal everywhere.

    Args:
        inputs: channels of the pictures.
        outputs: numbers for each pixel of the output, such as a score for each class.
        width: channels of the first level.
        depth: how often the sides are halved.
        repeat: convolutions of each level.
        skips: whether the levels on the way up see those on the way down.
        generator: source of the kernels.

    Example:
        >>> y = UNet(1, 5)(torch.rand(1, 1, 8, 8))
        >>> tuple(y.shape), y.abs().max().item()  # 5 scores per pixel, first all zero
        ((1, 5, 8, 8), 0.0)
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int = 8,
        depth: int = 2,
        repeat: int = 2,
        *,
        skips: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        check_whole("UNet: width", width, 1)
        check_whole("UNet: depth", depth, 0)
        check_whole("UNet: repeat", repeat, 1)
        self.depth, self.skips = depth, skips
        widths = [width * 2**level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            _level([below] + repeat * [above], generator)
            for below, above in zip([inputs, *widths], widths, strict=False)
        )
        self.up = nn.ModuleList(
            _level([2 * w + w * skips] + repeat * [w], generator)
            for w in widths[-2::-1]
        )
        self.shrink, self.grow = nn.MaxPool2d(2), Upsample(2)
        self.head = Conv2d(width, outputs, 1, generator=generator).in_torch()
        nn.init.zeros_(self.head.weight)

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B outputs rows columns"]:
        check_pictures("UNet: x", x)
        sides, unit = tuple(x.shape[2:]), 2**self.depth
        ok, got = all(side % unit == 0 for side in sides), f"{sides[0]} × {sides[1]}"
        check(ok, "UNet: x", f"have sides that {unit} divides", got)
        kept: list[Tensor] = []
        for level in self.down:
            x = level(self.shrink(x) if kept else x)
            kept.append(x)
        for level, before in zip(self.up, kept[-2::-1], strict=True):
            x = self.grow(x)
            x = level(torch.cat([before, x], dim=1) if self.skips else x)
        return self.head(x)


def _level(channels: list[int], generator: Generator | None) -> nn.Sequential:
    """Return convolutions that keep the sides, each with a ReLU."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(channels):
        conv = Conv2d(inputs, outputs, 3, padding=1, generator=generator)
        layers += [conv.in_torch(), nn.ReLU()]
    return nn.Sequential(*layers)
