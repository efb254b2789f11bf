"""Pooling: one number for each window of a picture."""

from jaxtyping import Float

from dlcore._torch import Tensor, nn
from dlcore.checks import check, check_sizes, check_whole
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

    Example:
        >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
        >>> windows(x, 2)[0, 0, 0].tolist()
        [[0.0, 1.0, 4.0, 5.0], [2.0, 3.0, 6.0, 7.0]]
    """
    stride = size if stride is None else stride
    check_sizes("windows", size=size, stride=stride)
    check_pictures("windows: x", x)
    rows, columns = x.shape[2:]
    rule = f"fit into the picture, {rows} × {columns}"
    check(min(rows, columns) >= size, "windows: size", rule, size)
    return x.unfold(2, size, stride).unfold(3, size, stride).flatten(-2)


def max_pool2d(
    x: Float[Tensor, "B C rows columns"], size: int, stride: int | None = None
) -> Float[Tensor, "B C _ _"]:
    """Return the largest number of each window (max pooling).

    The first of equal ones gets the gradient.

    Equals ``torch.nn.functional.max_pool2d``.

    Example:
        >>> max_pool2d(torch.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
        [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    return windows(x, size, stride).max(dim=-1).values


def avg_pool2d(
    x: Float[Tensor, "B C rows columns"], size: int, stride: int | None = None
) -> Float[Tensor, "B C _ _"]:
    """Return the mean of each window (average pooling).

    Equals ``torch.nn.functional.avg_pool2d``.

    Example:
        >>> avg_pool2d(torch.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
        [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    return windows(x, size, stride).mean(dim=-1)


class MaxPool2d(nn.Module):
    """The layer of max pooling, :func:`max_pool2d`; it has no parameters.

    Example:
        >>> MaxPool2d(2)(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).item()
        4.0
    """

    def __init__(self, size: int, stride: int | None = None) -> None:
        super().__init__()
        self.kernel_size, self.stride = size, size if stride is None else stride
        check_whole(f"{type(self).__name__}: size", size, 1)
        check_whole(f"{type(self).__name__}: stride", self.stride, 1)

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B C _ _"]:
        return max_pool2d(x, self.kernel_size, self.stride)

    def extra_repr(self) -> str:
        """Show size and stride."""
        return f"{self.kernel_size}, stride={self.stride}"


class AvgPool2d(MaxPool2d):
    """The layer of average pooling, :func:`avg_pool2d`; it has no parameters.

    Example:
        >>> AvgPool2d(2)(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).item()
        2.5
    """

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B C _ _"]:
        return avg_pool2d(x, self.kernel_size, self.stride)
