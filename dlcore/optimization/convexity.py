r"""Convexity: segments that stay inside, chords that stay above, and what a Hessian decides.

A set is convex if it contains the segment between any two of its points, and a function if
no chord passes below its graph. Both can be refuted by one :class:`Segment` and be
confirmed by none: the searches below return a counter-example or ``None``, which means
that none was found.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_data, check_finite, check_sizes, check_whole

__all__ = ["ROUNDING", "Segment", "chord_below", "classify", "goe", "segment_outside"]

#: What counts as zero, relative to the numbers around it.
ROUNDING = 1e-9


class Segment(NamedTuple):
    r"""Two points and one between them, :math:`(1 - \lambda)\,u + \lambda\,v`.

    Attributes:
        u: one end.
        v: the other end.
        weight: :math:`\lambda`, how far to go from ``u`` to ``v``, in [0, 1].

    Example:
        >>> Segment(np.array([0.0, 4.0]), np.array([2.0, 0.0]), 0.25).point.tolist()
        [0.5, 3.0]
    """

    u: Float[ndarray, "n"]
    v: Float[ndarray, "n"]
    weight: float

    @property
    def point(self) -> Float[ndarray, "n"]:
        """Return the point between the ends."""
        return self.u + self.weight * (self.v - self.u)


def segment_outside(
    contains: Callable[[Float[ndarray, "s n"]], Bool[ndarray, "s"]],
    X: Float[ndarray, "s n"],
    trials: int,
    rng: Generator,
) -> Segment | None:
    r"""Search for two points of a set with a point between them that is outside.

    A set without interior, such as a line, needs a tolerance in ``contains``: points
    between two of its points are rounded.

    Args:
        contains: tells which rows of a matrix belong to the set, with True and False.
        X: points; those that belong to the set are the ends of segments.
        trials: how many random segments to try, with :math:`\lambda` uniform in
            :math:`[0, 1]`.
        rng: source of the segments.

    Example:
        >>> X, rng = np.array([[0.0], [2.0]]), np.random.default_rng(0)
        >>> found = segment_outside(lambda X: X[:, 0] % 2 == 0, X, 100, rng)
        >>> sorted([found.u.item(), found.v.item()])  # the even numbers are not convex
        [0.0, 2.0]
    """
    who = "segment_outside"
    X = _points(who, X, trials)
    members = X[_members(who, contains, X)]
    hint = "Draw the points where the set lies."
    check(len(members) > 0, f"{who}: X", "have points of the set", "none", hint)
    u, v, t = _segments(members, trials, rng)
    return _first(~_members(who, contains, u + t * (v - u)), u, v, t)


def chord_below(
    f: Callable[[Float[ndarray, "s n"]], Float[ndarray, "s"]],
    X: Float[ndarray, "s n"],
    trials: int,
    rng: Generator,
) -> Segment | None:
    r"""Search for a chord of ``f`` below its graph: a proof that ``f`` is not convex.

    .. math::
        (1 - \lambda) f(u) + \lambda f(v) < f\bigl((1 - \lambda)\,u + \lambda\,v\bigr)

    by more than ``ROUNDING`` times the largest of the three values. So centre both: a
    bump on values around :math:`10^{10}` is too small to be seen, and points around
    :math:`10^8` are rounded so much that a chord may seem to pass below.

    Args:
        f: values at the rows of a matrix.
        X: points between which chords are drawn; ``f`` is asked at points between them.
        trials: how many random chords to try, with :math:`\lambda` uniform in
            :math:`[0, 1]`.
        rng: source of the chords.

    Example:
        >>> X, rng = np.array([[-1.0], [1.0]]), np.random.default_rng(0)
        >>> chord_below(lambda X: X[:, 0] ** 2, X, 100, rng) is None
        True
        >>> chord_below(lambda X: -(X[:, 0] ** 2), X, 100, rng) is None
        False
    """
    who = "chord_below"
    X = _points(who, X, trials)
    u, v, t = _segments(X, trials, rng)
    left, right = _answers(who, "f", f, u), _answers(who, "f", f, v)
    graph = _answers(who, "f", f, u + t * (v - u))
    check_finite(f"{who}: f", left, right, graph)
    chord = (1 - t[:, 0]) * left + t[:, 0] * right
    size = np.max(np.abs([left, right, graph]), axis=0)
    return _first(chord < graph - ROUNDING * size, u, v, t)


def classify(H: Float[ndarray, "n n"]) -> str:
    """Tell from the Hessian if a critical point is minimum, maximum or saddle.

    All eigenvalues positive: ``"minimum"``. All negative: ``"maximum"``. Some positive
    and some negative: ``"saddle"``. Otherwise an eigenvalue is zero, up to ``ROUNDING``
    times the largest size of one, and higher derivatives decide: ``"undecided"``.

    Args:
        H: the Hessian at the critical point, a symmetric matrix.

    Example:
        >>> classify(np.array([[4.0, -2.0], [-2.0, 4.0]]))  # eigenvalues 2 and 6
        'minimum'
        >>> classify(np.array([[2.0, -4.0], [-4.0, 2.0]]))  # eigenvalues -2 and 6
        'saddle'
    """
    check(np.isrealobj(H), "classify: H", "be real", "complex numbers")
    H = np.asarray(H, dtype=float)
    square = H.ndim == 2 and H.size > 0 and H.shape[0] == H.shape[1]
    check(square, "classify: H", "be a square matrix", f"shape {H.shape}")
    check_finite("classify: H", H)
    size, skew = float(np.abs(H).max()), float(np.abs(H - H.T).max())
    got = f"a difference of {skew:.3g} to its transpose"
    check(skew <= ROUNDING * size, "classify: H", "be symmetric", got)
    if size == 0:
        return "undecided"
    curvatures = np.linalg.eigvalsh(H / size)
    zero = ROUNDING * np.abs(curvatures).max()
    up, down = (curvatures > zero).any(), (curvatures < -zero).any()
    if up and down:
        return "saddle"
    if (np.abs(curvatures) <= zero).any():
        return "undecided"
    return "minimum" if up else "maximum"


def goe(n: int, count: int, rng: Generator) -> Float[ndarray, "count n n"]:
    r"""Draw random symmetric matrices from the Gaussian orthogonal ensemble.

    .. math::
        A = \frac{G + G^\top}{\sqrt 2}, \qquad g_{ij} \sim \mathcal{N}(0, 1)

    The entries above the diagonal have variance 1, those on it 2, and a rotation of
    the coordinates does not change the distribution.

    Args:
        n: rows and columns of each matrix.
        count: how many matrices to draw.
        rng: source of randomness.

    Example:
        >>> A = goe(2, 20_000, np.random.default_rng(0))
        >>> A.var(axis=0).round(1).tolist()
        [[2.0, 1.0], [1.0, 2.0]]
    """
    check_sizes("goe", n=n, count=count)
    G = rng.normal(size=(count, n, n))
    return (G + G.transpose(0, 2, 1)) / np.sqrt(2)


def _segments(
    X: Float[ndarray, "s n"], trials: int, rng: Generator
) -> tuple[
    Float[ndarray, "trials n"], Float[ndarray, "trials n"], Float[ndarray, "trials 1"]
]:
    """Draw two ends among the rows, and how far to go from the first to the second."""
    first, second = rng.integers(len(X), size=(2, trials))
    return X[first], X[second], rng.random((trials, 1))


def _first(found: ndarray, u: ndarray, v: ndarray, t: ndarray) -> Segment | None:
    """Return the first segment that is marked."""
    if not found.any():
        return None
    i = int(found.argmax())
    return Segment(u[i], v[i], float(t[i, 0]))


def _answers(
    who: str, name: str, f: Callable[[ndarray], ndarray], X: ndarray
) -> ndarray:
    """Ask for one answer per row."""
    answers = np.asarray(f(X))
    ok, got = answers.shape == (len(X),), f"shape {answers.shape} for {len(X)} rows"
    hint = "Sum over the last axis, as in (X**2).sum(axis=-1)."
    check(ok, f"{who}: {name}", "give one answer per row", got, hint)
    return answers


def _members(
    who: str, contains: Callable[[ndarray], ndarray], X: ndarray
) -> Bool[ndarray, "s"]:
    """Ask which rows belong to the set."""
    answers = _answers(who, "contains", contains, X)
    ok, hint = answers.dtype == bool, "Compare, as in X[:, 0] <= 1."
    check(ok, f"{who}: contains", "answer True or False", answers.dtype, hint)
    return answers


def _points(who: str, X: ndarray, trials: int) -> Float[ndarray, "s n"]:
    check_data(who, X)
    check_whole(f"{who}: trials", trials, 1)
    return np.asarray(X, dtype=float)
