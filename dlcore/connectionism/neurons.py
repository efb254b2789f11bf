r"""Units: a weighted sum and a function of it, whose value at zero is said aloud.

A unit answers :math:`y = \varphi(w \cdot x + b)`. The first ones knew only the bits 0 and
1; on ``n`` bits a unit is a Boolean function, written as its *truth table*: the answers at
the rows of :func:`all_inputs`, in that order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_columns, check_finite, check_shape

__all__ = [
    "MAX_BITS",
    "Neuron",
    "Table",
    "Unit",
    "all_inputs",
    "heaviside",
    "identity",
    "normal_form",
    "plus_minus_unit",
    "reachable",
    "sigmoid",
    "sign",
    "stochastic_binary",
    "veto_unit",
]

#: A unit on bits, which takes weights, a threshold and points and returns its answers.
Unit: TypeAlias = Callable[
    [Float[ndarray, "n"], float, Float[ndarray, "s n"]], Float[ndarray, "s"]
]
#: A truth table, the answers 0 or 1 at the rows of :func:`all_inputs`.
Table: TypeAlias = tuple[int, ...]

#: The most bits of which all inputs are listed.
MAX_BITS = 16


def identity(z: Float[ndarray, "*shape"]) -> Float[ndarray, "*shape"]:
    """Return ``z`` itself: the activation of a linear unit.

    Example:
        >>> identity(np.array([-2.0, 3.0])).tolist()
        [-2.0, 3.0]
    """
    return z


def sign(z: Float[ndarray, "*shape"], at0: float = 0.0) -> Float[ndarray, "*shape"]:
    """Return +1 where ``z`` is positive, −1 where it is negative, ``at0`` at zero.

    Equals ``torch.sign`` for ``at0=0``.

    Example:
        >>> sign(np.array([-2.0, 0.0, 3.0]), at0=1.0).tolist()
        [-1.0, 1.0, 1.0]
    """
    return np.where(z == 0, at0, np.sign(z))


def heaviside(
    z: Float[ndarray, "*shape"], at0: float = 0.0
) -> Float[ndarray, "*shape"]:
    """Return 1 where ``z`` is positive, 0 where it is negative, ``at0`` at zero.

    Equals ``torch.heaviside``.

    Example:
        >>> heaviside(np.array([-2.0, 0.0, 3.0]), at0=0.5).tolist()
        [0.0, 0.5, 1.0]
    """
    return np.heaviside(z, at0)


def sigmoid(z: Float[ndarray, "*shape"]) -> Float[ndarray, "*shape"]:
    r"""Return the logistic function :math:`\sigma(z) = 1 / (1 + e^{-z})`.

    Only :math:`e^{-|z|}` is computed, which cannot overflow: for negative ``z``
    numerator and denominator are multiplied by :math:`e^z`.

    Equals ``scipy.special.expit``.

    Example:
        >>> sigmoid(np.log([1.0, 3.0])).round(3).tolist()  # odds 1:1 and 3:1
        [0.5, 0.75]
    """
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1 + e)


def stochastic_binary(
    z: Float[ndarray, "*shape"], rng: Generator
) -> Float[ndarray, "*shape"]:
    r"""Return 1 with probability :math:`\sigma(z)` and else 0, each on its own.

    Args:
        z: weighted sums.
        rng: source of randomness.

    Example:
        >>> sure = np.array([-1000.0, 1000.0])
        >>> stochastic_binary(sure, np.random.default_rng(0)).tolist()
        [0.0, 1.0]
    """
    return heaviside(sigmoid(z) - rng.random(z.shape))


@dataclass(frozen=True, eq=False)
class Neuron:
    r"""The artificial neuron :math:`y = \varphi(w \cdot x + b)`.

    Without inputs, ``w = np.zeros(0)``, it is the constant :math:`\varphi(b)`.

    Equals ``torch.nn.functional.linear`` with one output, followed by the activation.

    Attributes:
        w: weights.
        b: bias.
        phi: activation function, applied to the weighted sums of all points at once.

    Example:
        >>> Neuron(np.array([1.0, 1.0]), -1.5, heaviside)(all_inputs(2)).tolist()  # AND
        [0.0, 0.0, 0.0, 1.0]
    """

    w: Float[ndarray, "n"]
    b: float
    phi: Callable[[ndarray], ndarray] = identity

    def __post_init__(self) -> None:
        check_shape("Neuron: w", self.w, None)
        check_finite("Neuron: w and b", self.w, self.b)

    def __call__(self, X: Float[ndarray, "s n"]) -> Float[ndarray, "s"]:
        """Return the answers to the rows of ``X``."""
        check_columns("Neuron: X", X, len(self.w))
        return self.phi(X @ self.w + self.b)


def plus_minus_unit(
    w: Float[ndarray, "*units n"],
    theta: float | Float[ndarray, "*units"],
    X: Float[ndarray, "s n"],
) -> Float[ndarray, "s *units"]:
    r"""Return :math:`\mathbb{1}[w \cdot x \ge \theta]` for bits and weights ±1.

    A matrix of weights and a vector of thresholds make a layer.

    Args:
        w: weights ±1, one row per unit.
        theta: threshold :math:`\theta` of each unit.
        X: inputs of bits as rows.

    Example:
        >>> plus_minus_unit(np.array([1.0, 1.0]), 1.0, all_inputs(2)).tolist()  # OR
        [0.0, 1.0, 1.0, 1.0]
    """
    _check_bits("plus_minus_unit", w, theta, X)
    return heaviside(X @ w.T - theta, at0=1.0)


def veto_unit(
    w: Float[ndarray, "*units n"],
    theta: float | Float[ndarray, "*units"],
    X: Float[ndarray, "s n"],
) -> Float[ndarray, "s *units"]:
    r"""Return the answer of a unit with absolute inhibition (McCulloch and Pitts 1943).

    It fires if at least ``theta`` of its exciting inputs (:math:`w_i = +1`) are active
    and none of the inhibiting ones (:math:`w_i = -1`) is: inhibition is a veto. In 1943
    ``theta`` is at least 1.

    Args:
        w: +1 for exciting, −1 for inhibiting inputs, one row per unit.
        theta: threshold of each unit.
        X: inputs of bits as rows.

    Example:
        >>> veto_unit(np.array([1.0, -1.0]), 1.0, all_inputs(2)).tolist()  # x and not y
        [0.0, 0.0, 1.0, 0.0]
    """
    _check_bits("veto_unit", w, theta, X)
    excitation = X @ (w > 0).T
    inhibition = X @ (w < 0).T
    return ((excitation >= theta) & (inhibition == 0)).astype(float)


def all_inputs(n: int) -> Float[ndarray, "rows n"]:
    """Return all inputs of ``n`` bits, counting upwards in binary.

    Example:
        >>> all_inputs(2).tolist()
        [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    check(0 <= n <= MAX_BITS, "all_inputs: n", f"lie in 0..{MAX_BITS}", n)
    return np.array(list(product([0.0, 1.0], repeat=n)))


def reachable(
    n: int, unit: Unit = plus_minus_unit, least: int | None = None
) -> dict[Table, tuple[Float[ndarray, "n"], int]]:
    r"""Return every Boolean function of ``n`` bits that one unit can compute.

    Tries all synapses :math:`w_i = \pm 1` and thresholds :math:`\theta = -n, \dots,
    n + 1`; further ones change nothing.

    Args:
        n: number of bits.
        unit: called as ``unit(w, theta, X)``.
        least: smallest threshold that is allowed.

    Returns:
        The truth tables, each with the first choice ``(w, theta)`` that gives it.

    Example:
        >>> len(reachable(2)), (0, 1, 1, 0) in reachable(2)  # not XOR
        (10, False)
    """
    X = all_inputs(n)
    found: dict[Table, tuple[Float[ndarray, "n"], int]] = {}
    for w in 2 * X - 1:
        for theta in range(-n if least is None else least, n + 2):
            table = unit(w, theta, X).astype(int)
            found.setdefault(tuple(table.tolist()), (w, theta))
    return found


def normal_form(
    table: Float[ndarray, "rows"],
) -> tuple[Float[ndarray, "m n"], Float[ndarray, "m"]]:
    r"""Return a layer of units with weights ±1, one unit for each 1 of a truth table.

    The unit for the corner :math:`c` has :math:`w = 2c - 1` and :math:`\theta =
    \sum_i c_i`, and fires at :math:`c` only. One more unit that asks for at least one
    active input then computes the table: its disjunctive normal form.

    Args:
        table: answers 0 and 1 at the rows of :func:`all_inputs`.

    Returns:
        The weights, one row per unit, and the thresholds.

    Example:
        >>> w, theta = normal_form(np.array([0.0, 1, 1, 0]))  # XOR
        >>> w.tolist(), theta.tolist()
        ([[-1.0, 1.0], [1.0, -1.0]], [1.0, 1.0])
    """
    table = np.asarray(table)
    n = table.size.bit_length() - 1
    what, got = "normal_form: table", f"shape {table.shape}"
    check(table.shape == (2**n,), what, "have 2**n entries", got)
    _check_only(what, table, 0, 1)
    c = all_inputs(n)[table == 1]
    return 2 * c - 1, c.sum(axis=1)


def _check_bits(
    who: str,
    w: Float[ndarray, "*units n"],
    theta: float | Float[ndarray, "*units"],
    X: Float[ndarray, "s n"],
) -> None:
    _check_only(f"{who}: w", w, -1, 1, "For other weights, use Neuron.")
    _check_only(f"{who}: X", X, 0, 1)
    check_columns(f"{who}: X", X, w.shape[-1])
    ok = np.shape(theta) in ((), w.shape[:-1]) and not np.isnan(theta).any()
    check(ok, f"{who}: theta", "be one number for each unit", theta)


def _check_only(what: str, x: ndarray, low: int, high: int, hint: str = "") -> None:
    ok = bool(np.isin(x, [low, high]).all())
    check(ok, what, f"hold only {low} and {high}", np.unique(x), hint)
