r"""Convolutional layers: a small kernel slid over pictures, as a product of matrices.

Pictures are tensors of shape (B, C, rows, columns). As in PyTorch, a layer computes the
*cross-correlation* of the picture with its kernel; the kernel is not turned around.
"""

from collections.abc import Sequence
from itertools import product
from math import prod

from jaxtyping import Float

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore._torch import functional as F
from dlcore.checks import check, check_shape, check_sizes, check_whole

__all__ = [
    "Conv2d",
    "causal_conv1d",
    "check_pictures",
    "conv2d",
    "conv2d_loops",
    "he_normal",
    "out_size",
    "receptive_field",
]


def out_size(
    n: int, k: int, stride: int = 1, padding: int = 0, dilation: int = 1
) -> int:
    r"""Return the length of the output of a convolution along one axis.

    .. math:: \left\lfloor \frac{n + 2p - d(k - 1) - 1}{s} \right\rfloor + 1

    Args:
        n: length of the axis.
        k: length of the kernel.
        stride: :math:`s`, the distance between two places.
        padding: :math:`p`, zeros added at each end.
        dilation: :math:`d`, the distance between two entries of the kernel.

    Example:
        >>> out_size(28, 5), out_size(28, 3, stride=2, padding=1)
        (24, 14)
    """
    _check_sizes("out_size", stride, padding, dilation)
    check_sizes("out_size", n=n, k=k)
    n, k, stride, padding, dilation = map(int, (n, k, stride, padding, dilation))
    spread = dilation * (k - 1) + 1
    rule = f"fit into the padded length {n} + 2·{padding} = {n + 2 * padding}"
    got = f"length {k} with dilation {dilation}, which covers {spread}"
    check(spread <= n + 2 * padding, "out_size: the kernel", rule, got)
    return (n + 2 * padding - spread) // stride + 1


def conv2d_loops(
    x: Float[Tensor, "B C rows columns"],
    W: Float[Tensor, "O c k l"],
    b: Float[Tensor, "O"] | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Float[Tensor, "B O _ _"]:
    """Compute :func:`conv2d` by loops, as it is defined: the specification, and slow.

    Example:
        >>> x = torch.arange(9.0).reshape(1, 1, 3, 3)
        >>> conv2d_loops(x, torch.ones(1, 1, 2, 2)).tolist()  # 0 + 1 + 3 + 4 = 8
        [[[[8.0, 12.0], [20.0, 24.0]]]]
    """
    n_out = _check_conv(x, W, b, stride, padding, dilation, groups)
    x = F.pad(x, [padding] * 4)
    y = x.new_zeros(len(x), len(W), *n_out)
    c, each = W.shape[1], len(W) // groups
    for o, i, j in product(range(len(W)), *map(range, n_out)):
        first = o // each * c
        for m, u, v in product(*map(range, W.shape[1:])):
            row, column = stride * i + dilation * u, stride * j + dilation * v
            y[:, o, i, j] += W[o, m, u, v] * x[:, first + m, row, column]
    return y if b is None else y + b[:, None, None]


def conv2d(
    x: Float[Tensor, "B C rows columns"],
    W: Float[Tensor, "O c k l"],
    b: Float[Tensor, "O"] | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Float[Tensor, "B O _ _"]:
    r"""Slide kernels over pictures: the cross-correlation of each channel, summed.

    .. math:: y_o[i, j] = b_o + \sum_{c, u, v} W_{oc}[u, v]\, x_c[si + du, sj + dv]

    The numbers that a kernel sees at a place are a column; then all sums are one
    product of matrices.

    Equals ``torch.nn.functional.conv2d``.

    Args:
        x: pictures with :math:`C` channels.
        W: a kernel for each pair of an output and an input channel. With groups it has
            :math:`C / g` input channels.
        b: a bias for each output channel.
        stride: :math:`s`.
        padding: rows and columns of zeros added on each side, before everything else.
        dilation: :math:`d`.
        groups: :math:`g`; outputs of one group see inputs of the same group only.

    Example:
        >>> x = torch.tensor([[[[0.0, 0.0, 1.0, 1.0]]]])
        >>> conv2d(x, torch.tensor([[[[-1.0, 1.0]]]])).tolist()  # finds the edge
        [[[[0.0, 1.0, 0.0]]]]
    """
    places = _check_conv(x, W, b, stride, padding, dilation, groups)
    stride, padding, dilation, groups = map(int, (stride, padding, dilation, groups))
    seen = F.unfold(x, W.shape[2:], dilation, padding, stride)
    kernels = W.reshape(groups, len(W) // groups, -1)
    y = kernels @ seen.unflatten(1, (groups, -1))
    y = y.reshape(len(x), len(W), *places)
    return y if b is None else y + b[:, None, None]


def he_normal(
    *shape: int, generator: Generator | None = None
) -> Float[Tensor, "outputs *_"]:
    r"""Draw weights with He initialisation, from :math:`\mathcal{N}(0, 2/n)`.

    Args:
        *shape: outputs first; the product of the rest is the fan-in :math:`n`.
        generator: source of the weights.

    Example:
        >>> W = he_normal(100, 50, 3, 3, generator=torch.Generator().manual_seed(0))
        >>> round(W.var().item() * 50 * 3 * 3, 1)
        2.0
    """
    return (2 / prod(shape[1:])) ** 0.5 * torch.randn(shape, generator=generator)


class Conv2d(nn.Module):
    r"""The convolutional layer: :func:`conv2d` with its kernels and biases.

    Equals ``torch.nn.Conv2d`` once both have the same weights.

    Args:
        inputs: channels :math:`C` of the pictures.
        outputs: channels of what comes out.
        k: rows and columns of a kernel.
        stride: distance between two places.
        padding: zeros around the picture.
        dilation: distance between two entries of a kernel.
        groups: how many parts of the channels keep to themselves.
        bias: whether there are biases.
        generator: source of the kernels, drawn from :math:`\mathcal{N}(0, 2/n)` with
            the fan-in :math:`n = k^2 C / g`; biases are 0.

    Attributes:
        W: kernels.
        b: biases, or ``None``.

    Example:
        >>> layer = Conv2d(3, 8, 5)
        >>> sum(p.numel() for p in layer.parameters())  # 8 · (3 · 5 · 5 + 1)
        608
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        k: int,
        *,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        check_sizes("Conv2d", inputs=inputs, outputs=outputs, k=k, groups=groups)
        _check_sizes("Conv2d", stride, padding, dilation)
        ok = inputs % groups == outputs % groups == 0
        check(ok, "Conv2d: groups", f"divide the channels {inputs} → {outputs}", groups)
        self.kernel_size, self.stride, self.padding = k, stride, padding
        self.dilation, self.groups = dilation, groups
        shape = outputs, inputs // groups, k, k
        self.W = nn.Parameter(he_normal(*shape, generator=generator))
        self.b = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B O _ _"]:
        settings = self.stride, self.padding, self.dilation, self.groups
        return conv2d(x, self.W, self.b, *settings)

    def in_torch(self) -> nn.Conv2d:
        """Return PyTorch's layer with these parameters: the same sums in less time."""
        outputs, inputs, k, _ = self.W.shape
        settings = self.stride, self.padding, self.dilation, self.groups
        layer = nn.Conv2d(inputs * self.groups, outputs, k, *settings, device="meta")
        layer.weight, layer.bias = self.W, self.b
        return layer

    def extra_repr(self) -> str:
        """Show the channels and what is not as usual."""
        outputs, inputs, k, _ = self.W.shape
        usual = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
        other = [
            f"{name}={getattr(self, name)}"
            for name, value in usual.items()
            if getattr(self, name) != value
        ]
        sizes = f"{inputs * self.groups} → {outputs}, k={k}"
        return ", ".join([sizes, *other])


def causal_conv1d(
    x: Float[Tensor, "B C T"],
    W: Float[Tensor, "O C k"],
    b: Float[Tensor, "O"] | None = None,
    dilation: int = 1,
) -> Float[Tensor, "B O T"]:
    r"""Convolve sequences causally: no output depends on a later input.

    .. math:: y_o[t] = b_o + \sum_{c, u} W_{oc}[u]\, x_c[t - d(k - 1 - u)]

    with :math:`x_c[t] = 0` before the beginning. The last entry of a kernel meets the
    present.

    Equals ``torch.nn.functional.conv1d`` of sequences with :math:`d(k - 1)` zeros in
    front.

    Args:
        x: sequences with :math:`C` channels.
        W: kernels of length :math:`k`.
        b: a bias for each output channel.
        dilation: :math:`d`, the distance between two entries of a kernel.

    Example:
        >>> x = torch.tensor([[[1.0, 2.0, 3.0]]])
        >>> causal_conv1d(x, torch.tensor([[[10.0, 1.0]]])).tolist()
        [[[1.0, 12.0, 23.0]]]
    """
    _check_axes("causal_conv1d", x, W, "B, C, T", "O, C, k")
    check(x.shape[1] == W.shape[1], *_channels("causal_conv1d", x, W))
    check_whole("causal_conv1d: dilation", dilation, 1)
    past = F.pad(x, [dilation * (W.shape[2] - 1), 0])
    flat = conv2d(past[:, :, None], W[:, :, None], b, dilation=dilation)
    return flat[:, :, 0]


def receptive_field(layers: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    r"""Return the size of the receptive field of a stack of layers, along one axis.

    .. math:: r = 1 + \sum_l d_l (k_l - 1) \prod_{j < l} s_j

    Args:
        layers: kernel :math:`k`, stride :math:`s` and dilation :math:`d` of each layer,
            pooling included, the first layer first.

    Returns:
        The side :math:`r` of what is seen, and the distance :math:`\prod_l s_l` between
        what two neighbours see.

    Example:
        >>> receptive_field([(3, 1, 1), (2, 2, 1), (3, 1, 1)])  # 1 + 2 + 1 + 2 · 2
        (8, 2)
    """
    field = step = 1
    for k, stride, dilation in layers:
        check_whole("receptive_field: k", k, 1)
        _check_sizes("receptive_field", stride, 0, dilation)
        field += int(dilation) * (int(k) - 1) * step
        step *= int(stride)
    return field, step


def _check_conv(
    x: Tensor,
    W: Tensor,
    b: Tensor | None,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> tuple[int, int]:
    """Refuse what does not fit together; return the rows and columns of the output."""
    _check_axes("conv2d", x, W, "B, C, rows, columns", "O, C, k, k")
    _check_sizes("conv2d", stride, padding, dilation)
    check_whole("conv2d: groups", groups, 1)
    C, outputs = x.shape[1], len(W)
    ok = C % groups == outputs % groups == 0
    check(ok, "conv2d: groups", f"divide the channels {C} → {outputs}", groups)
    check(x.shape[1] == W.shape[1] * groups, *_channels("conv2d", x, W, groups))
    if b is not None:
        check_shape("conv2d: b", b, outputs)
    kinds = {str(t.dtype) for t in (x, W, b) if t is not None}
    ok = len(kinds) == 1 and x.is_floating_point()
    check(ok, "conv2d: x, W and b", "have one dtype, of floating point", sorted(kinds))
    spread = [dilation * (side - 1) + 1 for side in W.shape[2:]]
    room = [side + 2 * padding for side in x.shape[2:]]
    ok = all(a <= c for a, c in zip(spread, room, strict=True))
    rule = f"fit into the padded picture, {room[0]} × {room[1]}"
    check(ok, "conv2d: the kernel", rule, f"one that covers {spread[0]} × {spread[1]}")
    m, n = ((c - a) // stride + 1 for a, c in zip(spread, room, strict=True))
    return m, n


def _check_axes(who: str, x: Tensor, W: Tensor, of_x: str, of_W: str) -> None:
    """Refuse other axes, and empty ones; only a batch may be empty."""
    for name, t, axes in (("x", x, of_x), ("W", W, of_W)):
        ok = t.ndim == len(axes.split()) and 0 not in t.shape[1:]
        check(ok, f"{who}: {name}", f"have the axes ({axes}), not empty", _of(t))


def check_pictures(what: str, x: Tensor) -> None:
    """Refuse a tensor that is no batch of pictures, with axes (B, C, rows, columns).

    Example:
        >>> check_pictures("f: x", torch.zeros(28, 28))
        Traceback (most recent call last):
            ...
        ValueError: f: x must have the axes (B, C, rows, columns); got shape (28, 28).
    """
    check(x.ndim == 4, what, "have the axes (B, C, rows, columns)", _of(x))


def _check_sizes(who: str, stride: int, padding: int, dilation: int) -> None:
    check_whole(f"{who}: stride", stride, 1)
    check_whole(f"{who}: padding", padding, 0)
    check_whole(f"{who}: dilation", dilation, 1)


def _channels(who: str, x: Tensor, W: Tensor, groups: int = 1) -> tuple[str, str, str]:
    """Say that a kernel must have as many channels as what it slides over."""
    seen = W.shape[1] * groups
    per = f" in {groups} groups" if groups > 1 else ""
    return f"{who}: x", f"have the {seen} channels of the kernels{per}", _of(x)


def _of(x: Tensor) -> str:
    return f"shape {tuple(x.shape)}"
