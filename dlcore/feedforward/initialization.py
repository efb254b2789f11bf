r"""The first weights: how large they are drawn, so that signals neither die nor explode.

A rule says which *variance* the weights of a layer get, given the shape
:math:`(n_{\text{out}}, n_{\text{in}})` of its matrix; :func:`normal` and :func:`uniform`
draw weights of any variance.
"""

from collections.abc import Sequence
from math import inf, prod, sqrt
from typing import TypeAlias

from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_between, check_whole

__all__ = ["Shape", "fans", "he", "lecun", "normal", "uniform", "xavier"]

#: The shape of weights, :math:`(n_{\text{out}}, n_{\text{in}})`; of a kernel, followed
#: by its sizes.
Shape: TypeAlias = Sequence[int]


def fans(shape: Shape) -> tuple[int, int]:
    r"""Return the fan-in and the fan-out of weights.

    They are how many numbers a unit hears, and how many units hear it.

    Equals ``torch.nn.init._calculate_fan_in_and_fan_out``.

    Args:
        shape: of the weights, :math:`(n_{\text{out}}, n_{\text{in}})`; further axes are
            those of a kernel, each place of which is one more weight per pair.

    Returns:
        Fan-in and fan-out.

    Example:
        >>> fans((3, 2)), fans((8, 3, 5, 5))
        ((2, 3), (75, 200))
    """
    ok = hasattr(shape, "__len__") and len(shape) >= 2
    check(ok, "fans: shape", "be (outputs, inputs), or longer for kernels", shape)
    for size in shape:
        check_whole("fans: each size", size, 1)
    outputs, inputs, *kernel = shape
    places = prod(kernel)
    return inputs * places, outputs * places


def lecun(shape: Shape, gain: float = 1.0) -> float:
    r"""Return the variance :math:`g^2 / n_{\text{in}}` (LeCun et al. 1998).

    It keeps the size of the forward signal in linear layers.

    Args:
        shape: of the weights.
        gain: the factor :math:`g`.

    Example:
        >>> lecun((3, 4))
        0.25
    """
    return _squared("lecun", gain) / fans(shape)[0]


def xavier(shape: Shape, gain: float = 1.0) -> float:
    r"""Return the variance :math:`2 g^2 / (n_{\text{in}} + n_{\text{out}})`.

    A compromise between the forward and the backward signal (Glorot, Bengio 2010).

    Args:
        shape: of the weights.
        gain: the factor :math:`g`.

    Example:
        >>> xavier((3, 5)), xavier((5, 3))
        (0.25, 0.25)
    """
    return _squared("xavier", gain) * 2 / sum(fans(shape))


def he(shape: Shape, leak: float = 0.0) -> float:
    r"""Return the variance :math:`2 / ((1 + a^2)\, n_{\text{in}})` (He et al. 2015).

    It keeps the size of the forward signal in layers of ReLUs, which drop half of it.

    Args:
        shape: of the weights.
        leak: slope :math:`a` of the ReLU on the left.

    Example:
        >>> he((3, 8)), he((3, 8), leak=1.0)  # with slope 1 on both sides it is linear
        (0.25, 0.125)
    """
    check_between("he: leak", leak, -inf, inf, "()")
    return 2 / ((1 + leak**2) * fans(shape)[0])


def normal(shape: Shape, variance: float, rng: Generator) -> Float[ndarray, "*shape"]:
    r"""Draw weights from the normal distribution :math:`\mathcal{N}(0, v)`.

    Args:
        shape: of the weights.
        variance: :math:`v`.
        rng: source of randomness.

    Example:
        >>> float(normal((100, 100), 0.25, np.random.default_rng(0)).std().round(1))
        0.5
    """
    _check_draw("normal", shape, variance)
    return rng.normal(0, sqrt(variance), size=tuple(shape))


def uniform(shape: Shape, variance: float, rng: Generator) -> Float[ndarray, "*shape"]:
    r"""Draw weights uniformly from :math:`[-a, a]` with :math:`a = \sqrt{3v}`.

    Their variance is :math:`v`.

    Args:
        shape: of the weights.
        variance: :math:`v`.
        rng: source of randomness.

    Example:
        >>> W = uniform((100, 100), 3.0, np.random.default_rng(0))
        >>> float(np.abs(W).max().round(2)), float(W.var().round(1))
        (3.0, 3.0)
    """
    _check_draw("uniform", shape, variance)
    a = sqrt(3 * variance)
    return rng.uniform(-a, a, size=tuple(shape))


def _squared(who: str, gain: float) -> float:
    check_between(f"{who}: gain", gain, 0, inf, "[)")
    return gain**2


def _check_draw(who: str, shape: Shape, variance: float) -> None:
    check(hasattr(shape, "__len__"), f"{who}: shape", "be a tuple of sizes", shape)
    check_between(f"{who}: variance", variance, 0, inf, "[)")
