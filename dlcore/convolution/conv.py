r"""Convolutional layers: a small kernel slid over pictures, and its gradients.

Pictures are tensors of shape (B, C, rows, columns). As in PyTorch, a layer computes the
*cross-correlation* of the picture with its kernel; the kernel is not turned around.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from jaxtyping import Float

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore._torch import functional as F
from dlcore.checks import check, check_whole

CACHE = 2**18  # numbers; what is copied at a time should stay in the cache

Pair = tuple[int, int]


def out_size(
    n: int, k: int, stride: int = 1, padding: int = 0, dilation: int = 1
) -> int:
    r"""Return how many places a kernel finds along an axis.

    .. math:: \left\lfloor \frac{n + 2p - d(k - 1) - 1}{s} \right\rfloor + 1

    Args:
        n: length of the axis.
        k: length of the kernel.
        stride: :math:`s`, the distance between two places.
        padding: :math:`p`, zeros added at each end.
        dilation: :math:`d`, the distance between two entries of the kernel.
    """
    _check_sizes("out_size", stride, padding, dilation)
    check_whole("out_size: n", n, 1)
    check_whole("out_size: k", k, 1)
    n, k, stride, padding, dilation = map(int, (n, k, stride, padding, dilation))
    spread = dilation * (k - 1) + 1
    check(
        spread <= n + 2 * padding,
        "out_size: the kernel",
        f"fit into the padded length {n} + 2·{padding} = {n + 2 * padding}",
        f"length {k} with dilation {dilation}, which covers {spread}",
    )
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
    """Compute what :func:`conv2d` does as it is defined: the specification, and slow."""
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
    r"""Slide kernels over pictures.

    .. math:: y_o[i, j] = b_o + \sum_{c, u, v} W_{oc}[u, v]\, x_c[si + du, sj + dv]

    Args:
        x: pictures with :math:`C` channels.
        W: a kernel for each pair of an output and an input channel. With groups it has
            :math:`C / g` input channels.
        b: a bias for each output channel.
        stride: :math:`s`.
        padding: rows and columns of zeros added on each side, before everything else.
        dilation: :math:`d`.
        groups: :math:`g`; outputs of one group see inputs of the same group only.
    """
    _check_conv(x, W, b, stride, padding, dilation, groups)
    settings = map(int, (stride, padding, dilation, groups))
    y: Tensor = _Correlation.apply(x, W, *settings)  # type: ignore[no-untyped-call]
    return y if b is None else y + b[:, None, None]


class _Correlation(torch.autograd.Function):
    """The sum of :func:`conv2d`; both of its gradients are such sums again.

    So they have gradients themselves.
    """

    @staticmethod
    def forward(
        x: Tensor,
        W: Tensor,
        stride: int,
        padding: int,
        dilation: int,
        groups: int,
    ) -> Tensor:
        return _correlate(_pad(x, padding), W, stride, dilation, groups)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, W, *ctx.settings = inputs
        ctx.save_for_backward(x, W)

    @staticmethod
    def backward(ctx: Any, delta: Tensor) -> Any:
        x, W = ctx.saved_tensors
        dx = dW = None
        if ctx.needs_input_grad[0]:
            dx = _by_input(x, delta, W, *ctx.settings)
        if ctx.needs_input_grad[1]:
            dW = _by_kernel(x, delta, W, *ctx.settings)
        return dx, dW, None, None, None, None


def _pad(x: Tensor, padding: int) -> Tensor:
    return F.pad(x, [padding] * 4) if padding else x


def _correlate(x: Tensor, W: Tensor, stride: int, dilation: int, groups: int) -> Tensor:
    """Add up over the rows of the kernel: each is one product of matrices."""
    O, c, k, l = W.shape
    m = (x.shape[2] - dilation * (k - 1) - 1) // stride + 1
    n = (x.shape[3] - dilation * (l - 1) - 1) // stride + 1
    size = _block(c * l * groups * x.shape[2] * n)
    rows = W.permute(2, 0, 1, 3).reshape(k, groups, O // groups, c * l)
    rows = rows.repeat(1, min(size, len(x)), 1, 1)
    y = x.new_empty(len(x) * groups, O // groups, m * n)
    for block, out in zip(x.split(size), y.split(size * groups), strict=True):
        columns = _columns(block, c, l, stride, dilation)
        for u in range(k):
            seen = columns[:, :, dilation * u :: stride][:, :, :m].flatten(2)
            kernel = rows[u, : len(seen)]
            torch.baddbmm(out, kernel, seen, beta=float(u > 0), out=out)
    return y.view(len(x), O, m, n)


def _columns(x: Tensor, c: int, l: int, stride: int, dilation: int) -> Tensor:
    """Lay beside each place of a row what the ``l`` entries of a kernel see there."""
    seen = x.unfold(3, dilation * (l - 1) + 1, stride)[..., ::dilation]
    return seen.movedim(-1, 2).reshape(-1, c * l, *seen.shape[2:4])


def _block(size: int) -> int:
    """Return how many pictures to copy at a time, so that the copy stays in the cache."""
    return max(1, CACHE // size)


def _by_kernel(
    x: Tensor,
    delta: Tensor,
    W: Tensor,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Tensor:
    """Return the gradient by the kernel: the input correlated with the adjoint."""
    O, c, k, l = W.shape
    m, n = delta.shape[2:]
    padded = _pad(x, padding)
    size = _block(c * l * groups * padded.shape[2] * n)
    flat = delta.reshape(-1, O // groups, m * n)
    dW = delta.new_zeros(k, groups, O // groups, c * l)
    for block, d in zip(padded.split(size), flat.split(size * groups), strict=True):
        columns = _columns(block, c, l, stride, dilation)
        for u in range(k):
            seen = columns[:, :, dilation * u :: stride][:, :, :m].flatten(2)
            dW[u] += (d @ seen.mT).view(-1, *dW.shape[1:]).sum(0)
    return dW.view(k, O, c, l).permute(1, 2, 0, 3)


def _by_input(
    x: Tensor,
    delta: Tensor,
    W: Tensor,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Tensor:
    """Return the gradient by the input: the adjoint convolved with the kernel."""
    B, O, m, n = delta.shape
    spread = delta.new_zeros(B, O, stride * (m - 1) + 1, stride * (n - 1) + 1)
    spread[:, :, ::stride, ::stride] = delta
    margins: list[int] = []
    for axis in (3, 2):  # as F.pad wants it; it cuts off what is negative
        before = dilation * (W.shape[axis] - 1) - padding
        after = x.shape[axis] + padding - spread.shape[axis]
        margins += [before, after]
    around = F.pad(spread, margins)
    turned = W.flip(2, 3).view(groups, -1, *W.shape[1:]).transpose(1, 2)
    dx: Tensor = _Correlation.apply(  # type: ignore[no-untyped-call]
        around, turned.flatten(0, 1), 1, 0, dilation, groups
    )
    return dx


class Conv2d(nn.Module):
    r"""The layer :func:`conv2d` with its kernels and biases.

    Args:
        inputs: channels :math:`C` of the pictures.
        outputs: channels of what comes out.
        k: rows and columns of a kernel.
        stride: distance between two places.
        padding: zeros around the picture.
        dilation: distance between two entries of a kernel.
        groups: how many parts of the channels keep to themselves.
        bias: whether there are biases.
        generator: source of the kernels, drawn from :math:`\mathcal{N}(0, 2/n)` with the
            fan-in :math:`n = k^2 C / g`; biases are 0.

    Attributes:
        slide: what computes the sums, :func:`conv2d`. PyTorch's function of this name has
            the same arguments, and is faster for few channels:
            ``Conv2d.slide = staticmethod(torch.nn.functional.conv2d)``.
    """

    slide = staticmethod(conv2d)

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
        for name, value in (("inputs", inputs), ("outputs", outputs), ("k", k)):
            check_whole(f"Conv2d: {name}", value, 1)
        _check_sizes("Conv2d", stride, padding, dilation)
        check_whole("Conv2d: groups", groups, 1)
        check(
            inputs % groups == 0 and outputs % groups == 0,
            "Conv2d: groups",
            f"divide the channels {inputs} → {outputs}",
            groups,
        )
        self.stride, self.padding = stride, padding
        self.dilation, self.groups = dilation, groups
        shape = outputs, inputs // groups, k, k
        scale = (2 / (shape[1] * k * k)) ** 0.5
        self.W = nn.Parameter(scale * torch.randn(shape, generator=generator))
        self.b = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(  # noqa: D102
        self, x: Float[Tensor, "B C rows columns"]
    ) -> Float[Tensor, "B O _ _"]:
        settings = self.stride, self.padding, self.dilation, self.groups
        return self.slide(x, self.W, self.b, *settings)

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
    r"""Slide kernels over sequences, such that nothing depends on what comes later.

    .. math:: y_o[t] = b_o + \sum_{c, u} W_{oc}[u]\, x_c[t - d(k - 1 - u)]

    with :math:`x_c[t] = 0` before the beginning. The last entry of a kernel meets the
    present.
    """
    _check_axes("causal_conv1d", x, W, "B, C, T", "O, C, k")
    check(x.shape[1] == W.shape[1], *_channels("causal_conv1d", x, W))
    check_whole("causal_conv1d: dilation", dilation, 1)
    past = F.pad(x, [dilation * (W.shape[2] - 1), 0])
    flat = conv2d(past[:, :, None], W[:, :, None], b, dilation=dilation)
    return flat[:, :, 0]


def receptive_field(layers: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    r"""Return how much of the input one number sees behind a stack of layers.

    .. math:: r = 1 + \sum_l d_l (k_l - 1) \prod_{j < l} s_j

    Args:
        layers: kernel :math:`k`, stride :math:`s` and dilation :math:`d` of each layer,
            pooling included, the first layer first.

    Returns:
        The side :math:`r` of what is seen, and the distance :math:`\prod_l s_l` between
        what two neighbours see.
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
) -> Pair:
    """Refuse what does not fit together; return the rows and columns of the output."""
    _check_axes("conv2d", x, W, "B, C, rows, columns", "O, C, k, k")
    _check_sizes("conv2d", stride, padding, dilation)
    check_whole("conv2d: groups", groups, 1)
    check(
        x.shape[1] % groups == 0 and len(W) % groups == 0,
        "conv2d: groups",
        f"divide the channels {x.shape[1]} → {len(W)}",
        groups,
    )
    check(x.shape[1] == W.shape[1] * groups, *_channels("conv2d", x, W, groups))
    check(
        b is None or b.shape == W.shape[:1],
        "conv2d: b",
        f"have a number for each of the {len(W)} output channels",
        None if b is None else _of(b),
    )
    same = {t.dtype for t in (x, W, b) if t is not None}
    check(
        len(same) == 1,
        "conv2d: x, W and b",
        "have one dtype",
        sorted(map(str, same)),
    )
    check(
        x.is_floating_point(),
        "conv2d: x, W and b",
        "be of floating point",
        x.dtype,
        "Whole numbers can wrap around.",
    )
    spread = [dilation * (side - 1) + 1 for side in W.shape[2:]]
    room = [side + 2 * padding for side in x.shape[2:]]
    check(
        all(a <= c for a, c in zip(spread, room, strict=True)),
        "conv2d: the kernel",
        f"fit into the padded picture, {room[0]} × {room[1]}",
        f"{W.shape[2]} × {W.shape[3]} with dilation {dilation}, "
        f"which covers {spread[0]} × {spread[1]}",
    )
    m, n = ((c - a) // stride + 1 for a, c in zip(spread, room, strict=True))
    return m, n


def _check_axes(who: str, x: Tensor, W: Tensor, of_x: str, of_W: str) -> None:
    """Refuse other axes, and empty ones; only a batch may be empty."""
    for name, t, axes in (("x", x, of_x), ("W", W, of_W)):
        what, count = f"{who}: {name}", len(axes.split())
        check(t.ndim == count, what, f"have the axes ({axes})", _of(t))
        check(
            0 not in t.shape[1:],
            what,
            f"have no empty axis of ({axes})",
            _of(t),
        )


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
