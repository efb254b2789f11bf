r"""Memories with steeper energies, up to the attention of transformers.

A good match with a stored pattern counts more than in :mod:`dlcore.connectionism.hopfield`:
:class:`DenseMemory` raises it to a power or to the exponent, and :func:`modern_update`
lets states and patterns be real numbers. Patterns are the rows of ``X``.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import logsumexp, softmax

from dlcore.checks import check, check_finite, check_positive, check_whole
from dlcore.connectionism.hopfield import TIE, Relaxation, as_patterns, as_state
from dlcore.connectionism.neurons import sign

__all__ = ["DenseMemory", "modern_energy", "modern_update"]


class DenseMemory:
    r"""An associative memory, of energy :math:`E(x) = -\sum_\mu F(\xi_\mu^\top x)`.

    The steeper :math:`F`, the more it holds: with :math:`F(z) = z^k` of the order of
    :math:`n^{k-1}` random patterns (Krotov and Hopfield 2016), with :math:`F(z) = e^z`
    exponentially many (Demircigil et al. 2017). Degree 2 is the Hopfield network.

    Attributes:
        X: the patterns :math:`\xi_\mu` as rows.
        degree: the power :math:`k`, or None for the exponential.

    Example:
        >>> X = np.array([[1.0, 1, 1, 1, 1], [1, -1, 1, -1, 1]])
        >>> memory = DenseMemory(X, degree=3)
        >>> memory.energy(np.ones(5))  # overlaps 5 and 1: -(125 + 1)
        -126.0
        >>> memory.relax(np.array([1.0, 1, 1, 1, -1])).state.tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, X: Float[ndarray, "s n"], degree: int | None) -> None:
        self.X = as_patterns("DenseMemory", X)
        if degree is not None:
            check_whole("DenseMemory: degree", degree, 2)
        self.degree = degree

    def energy(self, x: Float[ndarray, "n"]) -> float:
        """Return the energy of a state; of the exponential one, the logarithm."""
        return self._energy(self.X @ as_state("energy: x", x, self.X.shape[1]))

    def field(self, x: Float[ndarray, "n"]) -> Float[ndarray, "n"]:
        r"""Return how much lower the energy is with :math:`x_i = +1` than with −1.

        For the exponential up to a positive factor, for the numbers would be too large.
        """
        x = as_state("field: x", x, self.X.shape[1])
        return self._field(self.X @ x, x, self.X)

    def is_fixed(self, x: Float[ndarray, "n"]) -> bool:
        """Tell whether no unit would change."""
        return bool((sign(self.field(x), at0=1.0) == x).all())

    def relax(self, x: Float[ndarray, "n"]) -> Relaxation:
        """Update one unit at a time until a whole sweep changes none.

        The overlaps with all patterns are kept up to date, not computed anew.
        """
        x = as_state("relax: x", x, self.X.shape[1]).copy()
        overlap = self.X @ x
        flips: list[int] = []
        energy = [self._energy(overlap)]
        unchanged, i = 0, 0
        while unchanged < len(x):
            h = self._field(overlap, x[i : i + 1], self.X[:, i : i + 1])
            if sign(h, at0=1.0)[0] == x[i]:
                unchanged += 1
            else:
                x[i] = -x[i]
                overlap += 2 * x[i] * self.X[:, i]
                flips.append(i)
                energy.append(self._energy(overlap))
                unchanged = 0
            i = (i + 1) % len(x)
        return Relaxation(x, np.array(flips, dtype=int), np.array(energy))

    def _energy(self, overlap: Float[ndarray, "s"]) -> float:
        if self.degree is None:
            return float(-logsumexp(overlap))
        return float(-_power(overlap, self.degree).sum())

    def _field(
        self,
        overlap: Float[ndarray, "s"],
        x: Float[ndarray, "k"],
        X: Float[ndarray, "s k"],
    ) -> Float[ndarray, "k"]:
        rest = overlap[:, None] - X * x  # what the other units contribute
        if self.degree is None:
            # F(r + ξ) − F(r − ξ) = 2 sinh(1) ξ e^r, here without its constant
            gain = np.exp(rest - rest.max(axis=0)) * X
        else:
            up, down = rest + X, rest - X
            gain = _power(up, self.degree) - _power(down, self.degree)
        h = gain.sum(axis=0)
        return np.where(np.abs(h) <= TIE * np.abs(gain).sum(axis=0), 0.0, h)


def modern_energy(
    x: Float[ndarray, "n"], X: Float[ndarray, "s n"], beta: float
) -> float:
    r"""Return the energy of a real state among real patterns (Ramsauer et al. 2021).

    .. math:: E(x) = -\frac1\beta \log \sum_\mu e^{\beta\, \xi_\mu^\top x}
        + \tfrac12 \lVert x \rVert^2

    Args:
        x: the state.
        X: the patterns :math:`\xi_\mu` as rows.
        beta: how much a better match counts, :math:`\beta`.

    Example:
        >>> x = np.array([1.0, 0.0])
        >>> modern_energy(x, x[None], beta=2.0)  # one pattern, met: -1 + 1/2
        -0.5
    """
    _check_modern(x, X, beta)
    check(x.ndim == 1, "modern_energy: x", "be one state", f"shape {x.shape}")
    return float(-logsumexp(beta * (X @ x)) / beta + x @ x / 2)


def modern_update(
    x: Float[ndarray, "*batch n"], X: Float[ndarray, "s n"], beta: float
) -> Float[ndarray, "*batch n"]:
    r"""Return :math:`X^\top \operatorname{softmax}(\beta X x)`, a mean of the patterns.

    The better a pattern matches the state, the more it counts. This is attention.

    Equals ``torch.nn.functional.scaled_dot_product_attention`` with the patterns as
    keys and values and ``beta`` as its scale.

    Args:
        x: a state, or several as rows: the queries.
        X: the patterns: keys and values in one.
        beta: how much a better match counts; attention takes :math:`1/\sqrt n`.

    Example:
        >>> x, X = np.array([1.0, 0.0]), np.eye(2)
        >>> modern_update(x, X, beta=float(np.log(3))).round(3).tolist()
        [0.75, 0.25]
    """
    _check_modern(x, X, beta)
    return softmax(beta * (x @ X.T), axis=-1) @ X


def _check_modern(
    x: Float[ndarray, "*batch n"], X: Float[ndarray, "s n"], beta: float
) -> None:
    what, got = "modern memory: x and patterns", f"shapes {x.shape} and {X.shape}"
    ok = X.ndim == 2 and len(X) > 0 and x.shape[-1:] == X.shape[1:]
    check(ok, what, "have the same width", got)
    check_finite(what, x, X)
    check_positive("modern memory: beta", beta)


def _power(z: Float[ndarray, "*shape"], k: int) -> Float[ndarray, "*shape"]:
    """Multiply ``k`` times, which is exact for whole numbers and faster than ``**``."""
    product = z
    for _ in range(k - 1):
        product = product * z
    return product
