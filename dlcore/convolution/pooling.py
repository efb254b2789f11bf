"""Pooling: one number for each window of a picture."""

from jaxtyping import Float

from dlcore._torch import Tensor, nn
from dlcore.checks import check, check_whole
from dlcore.convolution.conv import check_pictures

__all__ = ["AvgPool2d", "MaxPool2d", "avg_pool2d", "max_pool2d", "windows"]


def windows(
    x: Float[Tensor, "B C rows columns"], size: int, stride: int | None = None
) -> Float[Tensor, "B C _ _ area"]:
    """Return the square windows of pictures, each as a row of numbers.

    Args:
        x: pictures.
        size: rows and columns of a window.
        stride: distance between two windows; without it they lie side by side.
    """
    stride = size if stride is None else stride
    check_whole("windows: size", size, 1)
    check_whole("windows: stride", stride, 1)
    check_pictures("windows: x", x)
    rows, columns = x.shape[2:]
    check(
        min(rows, columns) >= size,
        "windows: size",
        f"fit into the picture, {rows} × {columns}",
        size,
    )
    return x.unfold(2, size, stride).unfold(3, size, stride).flatten(-2)


def max_pool2d(
    x: Float[Tensor, "B C rows columns"], size: int, stride: int | None = None
) -> Float[Tensor, "B C _ _"]:
    """Return the largest number of each window; the first of equals gets the gradient."""
    return windows(x, size, stride).max(dim=-1).values


def avg_pool2d(
    x: Float[Tensor, "B C rows columns"], size: int, stride: int | None = None
) -> Float[Tensor, "B C _ _"]:
    """Return the mean of each window."""
    return windows(x, size, stride).mean(dim=-1)


class MaxPool2d(nn.Module):
    """The layer :func:`max_pool2d`; it has no parameters."""

    def __init__(self, size: int, stride: int | None = None) -> None:
        super().__init__()
        who = type(self).__name__
        self.kernel_size, self.stride = size, size if stride is None else stride
        check_whole(f"{who}: size", size, 1)
        check_whole(f"{who}: stride", self.stride, 1)

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B C _ _"]:
        return max_pool2d(x, self.kernel_size, self.stride)

    def extra_repr(self) -> str:
        """Show size and stride."""
        return f"{self.kernel_size}, stride={self.stride}"


class AvgPool2d(MaxPool2d):
    """The layer :func:`avg_pool2d`; it has no parameters."""

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B C _ _"]:
        return avg_pool2d(x, self.kernel_size, self.stride)
