r"""Units: a weighted sum and a function of it, whose value at zero is said aloud.

A unit answers :math:`y = \varphi(w \cdot x + b)`. The first ones knew only the bits 0 and
1; on ``n`` bits a unit is a Boolean function, written as its *truth table*: the answers at
the rows of :func:`corners`, in that order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from dlcore._check import check

Unit: TypeAlias = Callable[
    [Float[ndarray, "n"], float, Float[ndarray, "s n"]], Float[ndarray, "s"]
]
Table: TypeAlias = tuple[int, ...]

MAX_BITS = 16  # corners that one can still list


def identity(z: Float[ndarray, "*shape"]) -> Float[ndarray, "*shape"]:
    """Return ``z``: the activation of the linear unit."""
    return z


def sign(
    z: Float[ndarray, "*shape"], at0: float = 0.0
) -> Float[ndarray, "*shape"]:
    """Return +1 where ``z`` is positive, −1 where it is negative, ``at0`` at zero."""
    return np.where(z == 0, at0, np.sign(z))


def heaviside(
    z: Float[ndarray, "*shape"], at0: float = 0.0
) -> Float[ndarray, "*shape"]:
    """Return 1 where ``z`` is positive, 0 where it is negative, ``at0`` at zero."""
    return np.heaviside(z, at0)


def sigmoid(z: Float[ndarray, "*shape"]) -> Float[ndarray, "*shape"]:
    r"""Return the logistic function :math:`\sigma(z) = 1 / (1 + e^{-z})`.

    Only :math:`e^{-|z|}` is computed, which cannot overflow: for negative ``z`` the
    fraction is extended by :math:`e^z`.
    """
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1 + e)


def stochastic_binary(
    z: Float[ndarray, "*shape"], rng: Generator
) -> Float[ndarray, "*shape"]:
    r"""Return 1 with probability :math:`\sigma(z)` and 0 otherwise, each on its own."""
    return heaviside(sigmoid(z) - rng.random(z.shape))


@dataclass(frozen=True, eq=False)
class Neuron:
    r"""The artificial neuron :math:`y = \varphi(w \cdot x + b)`.

    Without inputs, ``w = np.zeros(0)``, it is the constant :math:`\varphi(b)`.

    Attributes:
        w: weights.
        b: bias.
        phi: activation function, applied to the weighted sums of all points at once.
    """

    w: Float[ndarray, "n"]
    b: float
    phi: Callable[[ndarray], ndarray] = identity

    def __post_init__(self) -> None:
        finite = np.isfinite(self.w).all() and np.isfinite(self.b)
        check(bool(finite), "Neuron: w and b", "be finite", (self.w, self.b))

    def __call__(self, X: Float[ndarray, "s n"]) -> Float[ndarray, "s"]:
        """Return the answers to the rows of ``X``."""
        return self.phi(X @ self.w + self.b)


def mcculloch_pitts(
    sigma: Float[ndarray, "*units n"],
    theta: float | Float[ndarray, "*units"],
    X: Float[ndarray, "s n"],
) -> Float[ndarray, "s *units"]:
    r"""Return :math:`\mathbf{1}\{\sigma \cdot x \ge \theta\}` for bits ``x``.

    The unit with synapses ±1, a later simplification of the one of 1943. A matrix of
    synapses and a vector of thresholds make a layer.
    """
    _check_bits("mcculloch_pitts", sigma, X)
    return heaviside(X @ sigma.T - theta, at0=1.0)


def veto_unit(
    sigma: Float[ndarray, "*units n"],
    theta: float | Float[ndarray, "*units"],
    X: Float[ndarray, "s n"],
) -> Float[ndarray, "s *units"]:
    r"""Return the answer of the unit of McCulloch and Pitts (1943).

    It fires if at least ``theta`` of its exciting inputs (:math:`\sigma_i = +1`) are
    active and none of the inhibiting ones (:math:`\sigma_i = -1`) is: inhibition is a
    veto.
    """
    _check_bits("veto_unit", sigma, X)
    excitation = X @ (sigma > 0).T
    inhibition = X @ (sigma < 0).T
    return ((excitation >= theta) & (inhibition == 0)).astype(float)


def corners(n: int) -> Float[ndarray, "rows n"]:
    """Return all inputs of ``n`` bits, counting upwards in binary."""
    check(0 <= n <= MAX_BITS, "corners: n", f"lie in 0..{MAX_BITS}", n)
    return np.array(list(product([0.0, 1.0], repeat=n)))


def reachable(
    n: int, unit: Unit = mcculloch_pitts
) -> dict[Table, tuple[Float[ndarray, "n"], int]]:
    r"""Return every Boolean function of ``n`` bits that a unit computes.

    Tries all :math:`2^n (2n + 2)` choices of synapses :math:`\sigma_i = \pm 1` and
    thresholds :math:`\theta = -n, \dots, n + 1`; further ones change nothing.

    Returns:
        The truth tables, each with the first choice ``(sigma, theta)`` that gives it.
    """
    X = corners(n)
    found: dict[Table, tuple[Float[ndarray, "n"], int]] = {}
    for sigma in 2 * X - 1:
        for theta in range(-n, n + 2):
            table = unit(sigma, theta, X).astype(int)
            found.setdefault(tuple(table.tolist()), (sigma, theta))
    return found


def normal_form(
    table: Float[ndarray, "rows"],
) -> tuple[Float[ndarray, "m n"], Float[ndarray, "m"]]:
    r"""Return a layer of McCulloch–Pitts units, one for each 1 of a truth table.

    The unit for the corner :math:`c` has :math:`\sigma = 2c - 1` and :math:`\theta =
    \sum_i c_i`, and fires at :math:`c` only. One more unit that asks for at least one
    active input then computes the table: its disjunctive normal form.
    """
    n = len(table).bit_length() - 1
    check(
        len(table) == 2**n,
        "normal_form: table",
        "have 2**n entries",
        len(table),
    )
    check(
        bool(np.isin(table, [0, 1]).all()),
        "normal_form: table",
        "hold only 0 and 1",
        np.unique(table),
    )
    c = corners(n)[table == 1]
    return 2 * c - 1, c.sum(axis=1)


def _check_bits(
    who: str, sigma: Float[ndarray, "*units n"], X: Float[ndarray, "s n"]
) -> None:
    check(
        bool(np.isin(sigma, [-1, 1]).all()),
        f"{who}: sigma",
        "hold only −1 and +1",
        np.unique(sigma),
        "For other weights, use Neuron.",
    )
    check(
        bool(np.isin(X, [0, 1]).all()),
        f"{who}: X",
        "hold only the bits 0 and 1",
        np.unique(X),
    )
