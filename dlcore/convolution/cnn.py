r"""Convolutional networks: layers in a row, and a look at what each of them does.

Networks are built of the layers of PyTorch, which compute what those of
``dlcore.convolution.conv`` and ``dlcore.convolution.pooling`` do in less time. What is
said about them, sizes, counts and receptive fields, is read off the model, so it holds
for every model of such layers, theirs or ours.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from jaxtyping import Float

from dlcore._torch import Generator, Tensor, nn, torch
from dlcore.checks import check, check_one_of, check_sizes, check_whole
from dlcore.convolution.conv import Conv2d, he_normal, receptive_field
from dlcore.convolution.pooling import MaxPool2d

__all__ = [
    "SHRINK",
    "LayerCost",
    "as_table",
    "classifier",
    "conv_stack",
    "feature_maps",
    "he_linear",
    "lenet5",
    "rows_seen",
    "shape_trace",
]

#: What may halve the sides of pictures in :func:`conv_stack`.
SHRINK = ("max", "average", "stride")
_CONVOLUTIONS = (Conv2d, nn.Conv2d)
_WINDOWS = (*_CONVOLUTIONS, MaxPool2d, nn.MaxPool2d, nn.AvgPool2d)


def he_linear(
    inputs: int, outputs: int, generator: Generator | None = None
) -> nn.Linear:
    r"""Return a linear layer with He initialisation: variance :math:`2/n`, biases 0.

    Args:
        inputs: the fan-in :math:`n`.
        outputs: number of units.
        generator: source of the weights.

    Example:
        >>> layer = he_linear(100_000, 1, torch.Generator().manual_seed(0))
        >>> round(layer.weight.var().item() * 100_000, 1)
        2.0
    """
    check_sizes("he_linear", inputs=inputs, outputs=outputs)
    layer = nn.Linear(inputs, outputs)
    layer.weight = nn.Parameter(he_normal(outputs, inputs, generator=generator))
    nn.init.zeros_(layer.bias)
    return layer


def conv_stack(
    channels: Sequence[int],
    k: int = 5,
    *,
    padding: int = 0,
    shrink: str = "max",
    generator: Generator | None = None,
) -> list[nn.Module]:
    """Return layers: convolution, ReLU and a halving of the sides, again and again.

    Args:
        channels: of the picture, and behind each of the convolutions.
        k: rows and columns of a kernel.
        padding: zeros around the pictures.
        shrink: what halves the sides: ``"max"`` or ``"average"`` pooling of 2 × 2
            places, or ``"stride"``, where kernels move by two places and nothing is
            pooled.
        generator: source of the kernels.

    Example:
        >>> [type(layer).__name__ for layer in conv_stack([1, 6, 16])]
        ['Conv2d', 'ReLU', 'MaxPool2d', 'Conv2d', 'ReLU', 'MaxPool2d']
    """
    enough = len(channels) > 1
    check(enough, "conv_stack: channels", "be two or more", list(channels))
    check_one_of("conv_stack: shrink", shrink, SHRINK)
    stride = 2 if shrink == "stride" else 1
    layers: list[nn.Module] = []
    for sizes in pairwise(channels):
        conv = Conv2d(*sizes, k, stride=stride, padding=padding, generator=generator)
        layers += [conv.in_torch(), nn.ReLU()]
        if shrink != "stride":
            layers.append(nn.MaxPool2d(2) if shrink == "max" else nn.AvgPool2d(2))
    return layers


def classifier(
    shape: tuple[int, int, int],
    channels: Sequence[int],
    hidden: Sequence[int],
    classes: int,
    k: int = 5,
    *,
    padding: int = 0,
    shrink: str = "max",
    generator: Generator | None = None,
) -> nn.Sequential:
    """Return a convolutional classifier: a stack of convolutions, then dense layers.

    Args:
        shape: channels, rows and columns of a picture.
        channels: behind each of the convolutions.
        hidden: units in the hidden layers of the head.
        classes: number of scores.
        k: rows and columns of a kernel.
        padding: zeros around the pictures.
        shrink: see :func:`conv_stack`.
        generator: source of the weights.

    Example:
        >>> net = classifier((1, 8, 8), [4], [], 10, k=3)
        >>> sum(p.numel() for p in net.parameters())  # 4 · (9 + 1) + 10 · (4 · 9 + 1)
        410
    """
    sizes = [shape[0], *channels]
    body = conv_stack(sizes, k, padding=padding, shrink=shrink, generator=generator)
    least = sum(rows_seen(body, 0))
    enough = min(shape[1:]) >= least
    check(enough, "classifier: shape", f"have sides of {least} or more", shape)
    with torch.no_grad():
        out = nn.Sequential(*body)(torch.zeros(1, *shape))
    head: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise([out[0].numel(), *hidden, classes]):
        head += [he_linear(inputs, outputs, generator), nn.ReLU()]
    return nn.Sequential(*body, *head[:-1])


def lenet5(generator: Generator | None = None) -> nn.Sequential:
    """Return LeNet-5 (LeCun et al. 1998) with today's parts: ReLUs and max pooling.

    The network of 1998 pools with trained factors, joins only some channels in its
    second convolution, bends by tanh, and compares its last layer with templates.

    Example:
        >>> sum(p.numel() for p in lenet5().parameters())
        61706
    """
    return classifier((1, 32, 32), [6, 16], [120, 84], 10, generator=generator)


def feature_maps(
    model: nn.Module, x: Float[Tensor, "..."]
) -> list[tuple[nn.Module, Tensor]]:
    """Return each layer of a model with its output for ``x``, in the order of work.

    Layers are the modules without parts. One that works twice comes twice. What a layer
    gave is copied, since the next one may work in place.

    Example:
        >>> net = nn.Sequential(nn.ReLU(), nn.Hardtanh())
        >>> [out.tolist() for _, out in feature_maps(net, torch.tensor([-1.0, 2.0]))]
        [[0.0, 2.0], [0.0, 1.0]]
    """
    seen: list[tuple[nn.Module, Tensor]] = []
    layers = [m for m in model.modules() if not any(True for _ in m.children())]
    hooks = [
        layer.register_forward_hook(lambda m, _, out: seen.append((m, out.clone())))
        for layer in layers
    ]
    try:
        with torch.no_grad():
            model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


class LayerCost(NamedTuple):
    """Size and price of one layer, for one example.

    Attributes:
        layer: the name of its class.
        shape: of its output, without the batch.
        parameters: how many it has.
        multiplications: products with its weights.

    Example:
        >>> shape_trace(nn.Linear(2, 3), (2,))[1]
        LayerCost(layer='Linear', shape=(3,), parameters=9, multiplications=6)
    """

    layer: str
    shape: tuple[int, ...]
    parameters: int
    multiplications: int


def shape_trace(model: nn.Module, shape: Sequence[int]) -> list[LayerCost]:
    """Return the output shape, parameters and multiplications of each layer of a model.

    Multiplications are those by the weights of convolutions and dense layers. A layer
    that works twice has its parameters counted once. Running statistics stay as they
    are.

    Args:
        model: layers, in whatever order they work.
        shape: of one example, without the batch.

    Example:
        >>> conv = shape_trace(nn.Conv2d(1, 6, 5), (1, 32, 32))[1]
        >>> conv.shape, conv.multiplications  # 6 kernels of 25 entries, 28 · 28 places
        ((6, 28, 28), 117600)
    """
    steps = [LayerCost("input", tuple(shape), 0, 0)]
    x = torch.zeros(1, *shape)
    training = [m for m in model.modules() if m.training]
    try:
        maps = feature_maps(model.eval(), x)
    finally:
        for module in training:
            module.training = True
    worked = {id(p) for layer, _ in maps for p in layer.parameters()}
    missed = [n for n, p in model.named_parameters() if id(p) not in worked]
    rule = "have its parameters in layers, modules without parts, that work"
    check(not missed, "shape_trace: model", rule, ", ".join(missed))
    counted: set[int] = set()
    for layer, out in maps:
        new = [p for p in layer.parameters() if id(p) not in counted]
        counted.update(map(id, new))
        steps.append(
            LayerCost(
                type(layer).__name__,
                tuple(out.shape[1:]),
                sum(p.numel() for p in new),
                _multiplications(layer, out),
            )
        )
    return steps


def _multiplications(layer: nn.Module, out: Tensor) -> int:
    """Count products with weights: each weight is used at every place of the output."""
    if isinstance(layer, _CONVOLUTIONS):
        kernels = next(layer.parameters())
        return kernels.numel() * prod(out.shape[2:])
    if isinstance(layer, nn.Linear):
        return layer.weight.numel() * prod(out.shape[1:-1])
    return 0


def as_table(steps: Sequence[LayerCost]) -> str:
    """Return what :func:`shape_trace` found as a table of text, with sums below.

    Example:
        >>> print(as_table(shape_trace(nn.Linear(2, 3), (2,))))
        layer              shape  parameters  multiply-adds
        input                  2
        Linear                 3           9              6
        together                           9              6
    """
    head = f"{'layer':10}{'shape':>14}{'parameters':>12}{'multiply-adds':>15}"
    rows = []
    for step in steps:
        row = f"{step.layer:10}{' × '.join(map(str, step.shape)):>14}"
        if step.parameters or step.multiplications:
            row += f"{step.parameters:12,}{step.multiplications:15,}"
        rows.append(row)
    parameters = sum(step.parameters for step in steps)
    products = sum(step.multiplications for step in steps)
    last = f"{'together':24}{parameters:12,}{products:15,}"
    return "\n".join([head, *rows, last])


def rows_seen(layers: Sequence[nn.Module], place: int) -> tuple[int, int]:
    r"""Return the receptive field of an output row: the input rows that can affect it.

    .. math:: i \prod_l s_l - \sum_l p_l \prod_{j < l} s_j

    is the first of them, and :func:`~dlcore.convolution.conv.receptive_field` their
    number. The same holds for columns.

    Args:
        layers: convolutions, poolings, and what works on each number alone.
        place: row :math:`i` behind them.

    Returns:
        The first row and the one behind the last; beyond the picture there are zeros.

    Example:
        >>> rows_seen([nn.Conv2d(1, 1, 3), nn.MaxPool2d(2)], 1)
        (2, 6)
    """
    check_whole("rows_seen: place", place, 0)
    sizes: list[tuple[int, int, int]] = []
    start = 0
    for layer in layers:
        if isinstance(layer, _WINDOWS):
            _, step = receptive_field(sizes)
            start -= _along_rows(layer, "padding", 0) * step
            k, stride = (_along_rows(layer, name) for name in ("kernel_size", "stride"))
            sizes.append((k, stride, _along_rows(layer, "dilation")))
        else:
            alone = isinstance(layer, nn.ReLU | nn.Tanh | nn.Identity)
            rule = "be convolutions, poolings or ReLUs"
            check(alone, "rows_seen: layers", rule, type(layer).__name__)
    field, step = receptive_field(sizes)
    return start + place * step, start + place * step + field


def _along_rows(layer: nn.Module, name: str, default: int = 1) -> int:
    """Return a setting of a layer: that of the rows where the columns may differ."""
    value = getattr(layer, name, default)
    check(not isinstance(value, str), f"rows_seen: {name}", "be a number", value)
    return int(value[0] if isinstance(value, tuple) else value)
