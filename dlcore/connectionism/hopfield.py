r"""Associative memory: states that roll downhill to the pattern they resemble.

A state is a vector of ``n`` signs ±1, a pattern is a state to be remembered, and the
patterns are the rows of ``X``. At a tie a unit chooses +1.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.random import Generator
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erf, erfc
from scipy.stats import binom

from dlcore.checks import check, check_finite, check_matrix, check_shape, check_whole

__all__ = [
    "TIE",
    "Hopfield",
    "Relaxation",
    "as_patterns",
    "as_state",
    "critical_load",
    "crosstalk",
    "flip",
    "flip_probability",
    "flip_probability_limit",
    "hebbian",
    "mean_field_overlap",
    "projection",
]

_BLOCK = 128  # units looked at together when searching the next one to flip
#: A field this small against its terms is zero up to rounding.
TIE = 1e-10


@dataclass(frozen=True, eq=False)
class Relaxation:
    """How a state came to rest: where it ended, and how its energy fell.

    Attributes:
        state: where it ended.
        flips: the units that changed their sign, in order.
        energy: before the first flip and after each.

    Example:
        >>> net = Hopfield(hebbian(np.array([[1.0, 1, 1]])))
        >>> found = net.relax(np.array([1.0, 1, -1]))
        >>> found.flips.tolist(), found.energy.round(3).tolist()
        ([2], [0.333, -1.0])
    """

    state: Float[ndarray, "n"]
    flips: Int[ndarray, "t"]
    energy: Float[ndarray, "t1"]

    def states(self) -> Float[ndarray, "t1 n"]:
        """Return all states on the way, the first and the last included."""
        path = np.tile(self.state, (len(self.flips) + 1, 1))
        for t, i in reversed([*enumerate(self.flips)]):
            path[: t + 1, i] *= -1
        return path


class Hopfield:
    r"""A network of threshold units, each connected to all others (Hopfield 1982).

    .. math:: E(x) = -\tfrac12 x^\top W x - b^\top x, \qquad h(x) = W x + b.

    The energy :math:`E` never rises when a unit takes the sign of its field :math:`h`.

    Attributes:
        W: weights, symmetric and zero on the diagonal.
        b: biases; zero unless given.

    Example:
        >>> net = Hopfield(np.array([[0.0, 1], [1, 0]]))  # two units that want to agree
        >>> net.energy(np.array([[1.0, 1], [1, -1]])).tolist()
        [-1.0, 1.0]
        >>> net.relax(np.array([1.0, -1])).state.tolist()
        [-1.0, -1.0]
    """

    def __init__(
        self, W: Float[ndarray, "n n"], b: Float[ndarray, "n"] | None = None
    ) -> None:
        self.W = np.asarray(W, dtype=float)
        what, shape = "Hopfield: W", self.W.shape
        ok = len(shape) == 2 and shape[0] == shape[1] > 0
        check(ok, what, "be a square matrix", f"shape {shape}")
        n = len(self.W)
        self.b = np.zeros(n) if b is None else np.asarray(b, dtype=float)
        check_shape("Hopfield: b", self.b, n)
        check_finite("Hopfield: W and b", self.W, self.b)
        size = float(np.abs(self.W).max())
        skew = np.abs(self.W - self.W.T)
        i, j = np.unravel_index(skew.argmax(), skew.shape)
        got = f"W[{i}, {j}] = {self.W[i, j]:.4g} and W[{j}, {i}] = {self.W[j, i]:.4g}"
        hint = "Without symmetry there is no energy to descend."
        check(bool(skew[i, j] <= TIE * size), what, "be symmetric", got, hint)
        own, hint = np.diag(self.W), "Use np.fill_diagonal(W, 0)."
        check(not own.any(), what, "be zero on the diagonal", own, hint)
        self._tie = TIE * (np.abs(self.W).sum(axis=1) + np.abs(self.b))

    def energy(self, x: Float[ndarray, "*batch n"]) -> Float[ndarray, "*batch"]:
        r"""Return :math:`-\tfrac12 x^\top W x - b^\top x` of a state, or of many."""
        x = _as_states("energy: x", x, len(self.b))
        energy = -0.5 * np.einsum("...i,...i", x @ self.W, x) - x @ self.b
        return np.asarray(energy)

    def field(self, x: Float[ndarray, "*batch n"]) -> Float[ndarray, "*batch n"]:
        """Return :math:`W x + b`, what each unit hears from the others."""
        return _as_states("field: x", x, len(self.b)) @ self.W + self.b

    def step(self, x: Float[ndarray, "*batch n"]) -> Float[ndarray, "*batch n"]:
        """Return the answer of all units at once, the synchronous update."""
        return _decide(self.field(x), self._tie)

    def is_fixed(self, x: Float[ndarray, "*batch n"]) -> Bool[ndarray, "*batch"]:
        """Tell whether no unit would change."""
        return np.asarray((self.step(x) == x).all(axis=-1))

    def relax(self, x: Float[ndarray, "n"], rng: Generator | None = None) -> Relaxation:
        r"""Update one unit at a time, :math:`x_i \leftarrow \operatorname{sgn} h_i`.

        Sweep over all units until a whole sweep changes none. When unit ``i`` flips, the
        fields change by :math:`2 x_i w_i` and the energy by :math:`-2 \lvert h_i \rvert`;
        nothing is computed anew.

        Args:
            x: the state to start from.
            rng: visit the units in a random order, drawn again for every sweep; by
                default in the order of their numbers.
        """
        n = len(self.b)
        x = as_state("relax: x", x, n).copy()
        h = self.field(x)
        flips: list[int] = []
        energy = [float(self.energy(x))]
        visit, settled = np.arange(n), False
        while not settled:
            if rng is not None:
                visit = rng.permutation(n)
            i, settled = 0, True
            while i < n:
                units = visit[i : i + _BLOCK]
                wrong = _decide(h[units], self._tie[units]) != x[units]
                first = int(wrong.argmax())
                if not wrong[first]:
                    i += len(units)
                    continue
                j, i, settled = int(units[first]), i + first + 1, False
                energy.append(energy[-1] + 2 * x[j] * h[j])
                x[j] = -x[j]
                h += 2 * x[j] * self.W[j]
                flips.append(j)
        return Relaxation(x, np.array(flips, dtype=int), np.array(energy))


def hebbian(X: Float[ndarray, "s n"]) -> Float[ndarray, "n n"]:
    r"""Return the Hebbian weights :math:`\frac1n \sum_\mu \xi_\mu \xi_\mu^\top`.

    The diagonal is set to zero: no unit hears itself.

    Args:
        X: the patterns :math:`\xi_\mu` as rows.

    Example:
        >>> hebbian(np.array([[1.0, -1]])).tolist()  # unequal: inhibition
        [[0.0, -0.5], [-0.5, 0.0]]
    """
    X = as_patterns("hebbian", X)
    W = X.T @ X / X.shape[1]
    np.fill_diagonal(W, 0.0)
    return W


def projection(X: Float[ndarray, "s n"]) -> Float[ndarray, "n n"]:
    r"""Return the projection on the span of the patterns, with a zero diagonal.

    :math:`X^\top (X X^\top)^{-1} X` undoes the correlations between patterns (Personnaz,
    Guyon and Dreyfus 1985), which must be linearly independent.

    Args:
        X: the patterns as rows.

    Example:
        >>> X = np.ones((3, 6))
        >>> X[1, [1, 2]] = X[2, [2, 4]] = -1
        >>> Hopfield(hebbian(X)).is_fixed(X).tolist()  # correlated patterns get lost
        [False, False, False]
        >>> Hopfield(projection(X)).is_fixed(X).tolist()
        [True, True, True]
    """
    X = as_patterns("projection", X)
    rank = int(np.linalg.matrix_rank(X))
    got = f"{len(X)} patterns of rank {rank}"
    check(rank == len(X), "projection: patterns", "be linearly independent", got)
    W = X.T @ np.linalg.solve(X @ X.T, X)
    W = (W + W.T) / 2
    np.fill_diagonal(W, 0.0)
    return W


def flip(x: Float[ndarray, "n"], k: int, rng: Generator) -> Float[ndarray, "n"]:
    """Return the state with ``k`` of its signs changed, chosen at random.

    Example:
        >>> float(np.ones(10) @ flip(np.ones(10), 3, np.random.default_rng(0)))  # 7 - 3
        4.0
    """
    x = as_state("flip: x", x, np.size(x)).copy()
    check(0 <= k <= len(x), "flip: k", f"lie between 0 and {len(x)}", k)
    x[rng.choice(len(x), size=k, replace=False)] *= -1
    return x


def crosstalk(X: Float[ndarray, "s n"]) -> Float[ndarray, "s n"]:
    r"""Return what the other patterns add to the field at each pattern.

    .. math:: C_{\mu i} = \frac1n \sum_{\nu \ne \mu} \sum_{j \ne i}
        \xi_{\nu i} \, \xi_{\nu j} \, \xi_{\mu j},

    so that :math:`W \xi_\mu = \frac{n-1}{n} \xi_\mu + C_\mu` for Hebbian weights.

    Args:
        X: the patterns :math:`\xi_\mu` as rows.

    Example:
        >>> crosstalk(np.array([[1.0, 1, 1, 1], [1, 1, -1, -1]])).tolist()
        [[-0.25, -0.25, -0.25, -0.25], [-0.25, -0.25, 0.25, 0.25]]
    """
    X = as_patterns("crosstalk", X)
    n = X.shape[1]
    return X @ hebbian(X) - (n - 1) / n * X


def flip_probability(s: int, n: int) -> float:
    """Return the probability that a unit of a stored random pattern is not stable.

    Exact, for ``s`` patterns of ``n`` independent fair signs and Hebbian weights: the
    cross-talk is a sum of :math:`(s-1)(n-1)` fair signs.

    Args:
        s: number of patterns.
        n: number of units.

    Example:
        >>> round(flip_probability(1, 100), 4), round(flip_probability(2, 2), 4)
        (0.0, 0.25)
    """
    check_whole("flip_probability: s", s, 1)
    check_whole("flip_probability: n", n, 2)
    tosses = (s - 1) * (n - 1)
    # sum = 2 heads − tosses < −(n − 1); at a tie half of the patterns want −1
    threshold = (tosses - (n - 1)) / 2
    below = binom.cdf(np.ceil(threshold) - 1, tosses, 0.5)
    return float(below + 0.5 * binom.pmf(threshold, tosses, 0.5))


def flip_probability_limit(alpha: float) -> float:
    r"""Return the limit of :func:`flip_probability` for large networks.

    It is :math:`\tfrac12 \operatorname{erfc}(1 / \sqrt{2\alpha})`, where the load
    :math:`\alpha = s / n` is kept fixed.

    Args:
        alpha: the load :math:`\alpha`, patterns per unit.

    Example:
        >>> round(flip_probability_limit(1.0), 4)  # a normal number above 1
        0.1587
    """
    check(alpha > 0, "flip_probability_limit: alpha", "be positive", alpha)
    return float(0.5 * erfc(1 / np.sqrt(2 * alpha)))


def mean_field_overlap(alpha: float) -> float:
    r"""Return the overlap with a stored pattern after relaxation, for large ``n``.

    At zero temperature the theory of Amit, Gutfreund and Sompolinsky (1985) says
    :math:`m = \operatorname{erf}(y)` with the largest solution :math:`y > 0` of

    .. math:: \operatorname{erf}(y) = y \left( \sqrt{2\alpha}
        + \tfrac{2}{\sqrt\pi} e^{-y^2} \right),

    and 0 where there is none, for :math:`\alpha` above :func:`critical_load`.

    Args:
        alpha: the load :math:`\alpha`, patterns per unit.

    Example:
        >>> round(mean_field_overlap(0.1), 3), mean_field_overlap(0.2)
        (0.998, 0.0)
    """
    check(alpha > 0, "mean_field_overlap: alpha", "be positive", alpha)
    y = _critical_y()
    if alpha > _mean_field_load(y):
        return 0.0
    far = 1 / np.sqrt(2 * alpha) + 1  # belongs to a smaller load
    return float(erf(brentq(lambda y: _mean_field_load(y) - alpha, y, far)))


def critical_load() -> float:
    """Return the largest load at which the mean-field theory still has a memory.

    Example:
        >>> round(critical_load(), 3)  # patterns per unit
        0.138
    """
    return _mean_field_load(_critical_y())


def _mean_field_load(y: float) -> float:
    """Return the load at which ``y`` solves the equation of mean_field_overlap."""
    root = erf(y) / y - 2 / np.sqrt(np.pi) * np.exp(-(y**2))
    return float(root**2 / 2)


def _critical_y() -> float:
    best = minimize_scalar(
        lambda y: -_mean_field_load(y), bounds=(0.5, 3), method="bounded"
    )
    return float(best.x)


def _as_states(
    what: str, x: Float[ndarray, "*batch n"], n: int
) -> Float[ndarray, "*batch n"]:
    """Return the states as an array; refuse what is not ±1 or has not ``n`` units."""
    x = np.asarray(x, dtype=float)
    check(x.ndim > 0 and x.shape[-1] == n, what, f"have {n} units", f"shape {x.shape}")
    ok, hint = bool((np.abs(x) == 1).all()), "For bits 0 and 1, pass 2 * x - 1."
    check(ok, what, "hold nothing but −1 and +1", np.unique(x)[:5], hint)
    return x


def as_state(what: str, x: Float[ndarray, "n"], n: int) -> Float[ndarray, "n"]:
    """Return one state as an array of ±1; refuse anything else.

    Args:
        what: its name in the message.
        x: the state.
        n: number of units.

    Example:
        >>> as_state("x", np.array([1.0, -1]), 2).tolist()
        [1.0, -1.0]
        >>> as_state("x", np.array([1.0, -1]), 3)
        Traceback (most recent call last):
            ...
        ValueError: x must have 3 units; got shape (2,).
    """
    check(np.ndim(x) == 1, what, "be one state", f"shape {np.shape(x)}")
    return _as_states(what, x, n)


def as_patterns(who: str, X: Float[ndarray, "s n"]) -> Float[ndarray, "s n"]:
    """Return the patterns as the rows of a matrix of ±1; refuse anything else.

    Args:
        who: the caller, named in the message.
        X: the patterns as rows.

    Example:
        >>> as_patterns("memory", np.array([[1.0, -1]])).tolist()
        [[1.0, -1.0]]
        >>> as_patterns("memory", np.array([[1.0, 0]]))
        Traceback (most recent call last):
            ...
        ValueError: memory: patterns must hold nothing but −1 and +1; got ...
    """
    check_matrix(f"{who}: patterns", X, "be the rows of a matrix")
    return _as_states(f"{who}: patterns", X, np.shape(X)[1])


def _decide(
    h: Float[ndarray, "*batch n"], tie: Float[ndarray, "n"]
) -> Float[ndarray, "*batch n"]:
    return np.where(h >= -tie, 1.0, -1.0)
