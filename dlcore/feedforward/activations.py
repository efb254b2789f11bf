r"""Activation functions, each with its derivative, and the softmax.

An activation acts on every number by itself. Where it has a kink, the derivative is the
one from the left, as in PyTorch: that of the ReLU at zero is 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import ndtr

from dlcore.checks import check
from dlcore.connectionism import neurons

__all__ = [
    "CATALOGUE",
    "Activation",
    "Function",
    "elu",
    "gelu",
    "identity",
    "leaky_relu",
    "log_softmax",
    "logsumexp",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "step",
    "tanh",
]

#: A function of arrays, applied to each number.
Function: TypeAlias = Callable[[ndarray], ndarray]


@dataclass(frozen=True, eq=False)
class Activation:
    r"""An activation function :math:`\varphi`, applied to each number of an array.

    Attributes:
        name: what readers call it.
        value: the function.
        derivative: its derivative.
        range: greatest lower and least upper bound of its values.

    Example:
        >>> z = np.array([-2.0, 3.0])
        >>> relu(z).tolist(), relu.derivative(z).tolist()
        ([0.0, 3.0], [0.0, 1.0])
        >>> sigmoid.derivative(np.zeros(1)).tolist()
        [0.25]
    """

    name: str
    value: Function
    derivative: Function
    range: tuple[float, float]

    def __call__(self, z: Float[ndarray, "*shape"]) -> Float[ndarray, "*shape"]:
        r"""Return :math:`\varphi(z)`."""
        return self.value(z)


def _sigmoid_derivative(z: ndarray) -> ndarray:
    return neurons.sigmoid(z) * neurons.sigmoid(-z)


def _normal_density(z: ndarray) -> ndarray:
    return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


_LEAK = 0.01  # slope of the leaky ReLU on the left

#: The activation of linear units, :math:`z`.
identity = Activation("identity", neurons.identity, np.ones_like, (-inf, inf))
#: The Heaviside step, 1 for positive numbers, else 0; its derivative is 0. Equals
#: ``torch.heaviside`` with the value 0 at zero.
step = Activation("step", neurons.heaviside, np.zeros_like, (0.0, 1.0))
#: The logistic function :math:`\sigma(z) = 1 / (1 + e^{-z})`. Equals
#: ``torch.sigmoid``.
sigmoid = Activation("logistic", neurons.sigmoid, _sigmoid_derivative, (0.0, 1.0))
#: The hyperbolic tangent. Equals ``torch.tanh``.
tanh = Activation(
    "tanh", np.tanh, lambda z: 4 * _sigmoid_derivative(2 * z), (-1.0, 1.0)
)
#: The rectified linear unit :math:`\max(0, z)`. Equals ``torch.nn.functional.relu``.
relu = Activation(
    "ReLU",
    lambda z: np.maximum(z, 0.0),
    lambda z: np.asarray(z > 0, dtype=float),
    (0.0, inf),
)
#: The leaky ReLU, with slope 1 on the right of zero and 0.01 on the left. Equals
#: ``torch.nn.functional.leaky_relu``.
leaky_relu = Activation(
    "leaky ReLU",
    lambda z: np.where(z > 0, z, _LEAK * z),
    lambda z: np.where(z > 0, 1.0, _LEAK),
    (-inf, inf),
)
#: The exponential linear unit, :math:`z` on the right of zero and :math:`e^z - 1` on
#: the left. Equals ``torch.nn.functional.elu``.
elu = Activation(
    "ELU",
    lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0.0))),
    lambda z: np.exp(np.minimum(z, 0.0)),
    (-1.0, inf),
)
#: The smooth ReLU :math:`\log(1 + e^z)`. Equals ``torch.nn.functional.softplus`` with
#: a large ``threshold``.
softplus = Activation(
    "softplus", lambda z: np.logaddexp(z, 0.0), neurons.sigmoid, (0.0, inf)
)
#: The Gaussian error linear unit :math:`z\, \Phi(z)`, with the normal distribution
#: function :math:`\Phi`. Equals ``torch.nn.functional.gelu``.
gelu = Activation(
    "GELU",
    lambda z: z * ndtr(z),
    lambda z: ndtr(z) + z * _normal_density(z),
    (-0.16997120747990369, inf),
)
#: The sigmoid linear unit :math:`z\, \sigma(z)`, or swish. Equals
#: ``torch.nn.functional.silu``.
silu = Activation(
    "SiLU",
    lambda z: z * neurons.sigmoid(z),
    lambda z: neurons.sigmoid(z) + z * _sigmoid_derivative(z),
    (-0.27846454276107380, inf),
)

#: All activations of this module by name.
CATALOGUE = {
    phi.name: phi
    for phi in [
        identity,
        step,
        sigmoid,
        tanh,
        relu,
        leaky_relu,
        elu,
        softplus,
        gelu,
        silu,
    ]
}


def _check_scores(who: str, z: ndarray) -> None:
    ok = np.ndim(z) > 0 and np.shape(z)[-1] > 0
    check(ok, f"{who}: z", "have scores in its last axis", f"shape {np.shape(z)}")


def logsumexp(z: Float[ndarray, "*batch classes"]) -> Float[ndarray, "*batch 1"]:
    r"""Return :math:`\log \sum_c e^{z_c}` over the last axis, which is kept.

    The largest score is taken out first, :math:`z_{\max} + \log \sum_c e^{z_c -
    z_{\max}}`: every exponent is at most zero and one of them is zero.

    Equals ``scipy.special.logsumexp`` over the last axis with ``keepdims=True``.

    Args:
        z: scores; the last axis runs over the classes.

    Example:
        >>> np.exp(logsumexp(np.log([[1.0, 2.0, 5.0]]))).round(3).tolist()
        [[8.0]]
        >>> logsumexp(np.array([[1000.0, 0.0]])).tolist()  # no overflow
        [[1000.0]]
    """
    _check_scores("logsumexp", z)
    largest = z.max(axis=-1, keepdims=True)
    return largest + np.log(np.exp(z - largest).sum(axis=-1, keepdims=True))


def log_softmax(
    z: Float[ndarray, "*batch classes"], T: float = 1.0
) -> Float[ndarray, "*batch classes"]:
    r"""Return :math:`z/T - \log \sum_c e^{z_c/T}`, the logarithm of :func:`softmax`.

    Equals ``scipy.special.log_softmax`` of ``z / T``.

    Args:
        z: scores; the last axis runs over the classes.
        T: temperature.

    Example:
        >>> log_softmax(np.array([0.0, -1000.0])).tolist()  # no logarithm of zero
        [0.0, -1000.0]
    """
    check(T > 0, "softmax: T", "be positive", T)
    _check_scores("softmax", z)
    scores = (z - z.max(axis=-1, keepdims=True)) / T
    return scores - logsumexp(scores)


def softmax(
    z: Float[ndarray, "*batch classes"], T: float = 1.0
) -> Float[ndarray, "*batch classes"]:
    r"""Return the probabilities :math:`p_c = e^{z_c/T} / \sum_k e^{z_k/T}`.

    Equals ``torch.softmax`` of ``z / T``.

    Args:
        z: scores; the last axis runs over the classes.
        T: temperature. Towards 0 the largest score takes all, towards infinity all
            classes become equal.

    Example:
        >>> softmax(np.log([1.0, 3.0])).round(3).tolist()
        [0.25, 0.75]
        >>> softmax(np.log([1.0, 3.0]), T=0.5).round(3).tolist()  # 1:3 becomes 1:9
        [0.1, 0.9]
    """
    return np.exp(log_softmax(z, T))
