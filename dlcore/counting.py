r"""Counting the labelings that one unit can produce.

The unit has no bias: weights ``w`` give the point ``x`` the label
:math:`\operatorname{sgn}(w \cdot x)`. For a unit with a bias, pass the points
:math:`(x, 1)`. Lengths of points do not matter, only their directions: whatever is
measured below is measured on points of length 1.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb
from operator import index

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from numpy.random import Generator
from scipy.optimize import nnls

from dlcore._check import check

DEPENDENT = 1e-9  # a smaller singular value is taken for zero
MARGIN = 1e-6  # what separates by less is not found
MAX_SUBSETS = 100_000  # looked at by in_general_position
MAX_DICHOTOMIES = 5_000  # listed by dichotomies: all of 12 points


def cover_count(s: int, n: int) -> int:
    r"""Count the dichotomies of ``s`` points in general position (Cover 1965).

    .. math:: C(s, n) = 2 \sum_{i=0}^{n-1} \binom{s-1}{i}

    Args:
        s: number of points.
        n: their dimension; with a bias, one more.

    Returns:
        The exact number, however large.
    """
    check(s >= 1, "cover_count: s", "be at least 1", s)
    check(n >= 0, "cover_count: n", "not be negative", n)
    return 2 * sum(comb(s - 1, i) for i in range(min(n, s)))


def cover_fraction(s: int, n: int) -> float:
    r"""Return :math:`C(s, n) / 2^s`, the part of all labelings, correctly rounded."""
    return cover_count(s, n) / 2 ** index(s)  # NumPy's integers overflow


def in_general_position(X: Float[ndarray, "s n"]) -> bool:
    """Tell whether every ``n`` of the points, or all if fewer, are independent.

    Points count as dependent if, scaled to length 1, their smallest singular value is
    at most ``DEPENDENT``.
    """
    U = _directions("in_general_position", X)
    k = min(X.shape)
    check(
        comb(len(X), k) <= MAX_SUBSETS,
        f"in_general_position: subsets of {k} points",
        f"number at most {MAX_SUBSETS:,}",
        f"{comb(len(X), k):,}",
        "Take fewer points.",
    )
    return all(
        np.linalg.svd(U[list(chosen)], compute_uv=False)[-1] > DEPENDENT
        for chosen in combinations(range(len(X)), k)
    )


def free_points(X: Float[ndarray, "s n"]) -> Bool[ndarray, "s"]:
    r"""Mark the points that do not lie in the span of all the others.

    Such a point has the coefficient zero in every dependency
    :math:`\sum_i c_i x_i = 0`; its label is free.
    """
    U = _directions("free_points", X)
    left, size, _ = np.linalg.svd(U)
    rank = int((size > DEPENDENT).sum())
    dependencies = left[:, rank:]
    return np.linalg.norm(dependencies, axis=1) <= DEPENDENT


def dichotomies(X: Float[ndarray, "s n"]) -> Float[ndarray, "count s"]:
    r"""List all labelings :math:`\operatorname{sgn}(Xw)` without zeros, one per row.

    Point after point, every labeling found so far is continued by +1 and by −1, and kept
    if some weights produce it. The weights that produced the shorter one produce one of
    the two; the other is searched by :func:`_witness`. Of each pair ``y``, ``-y`` only
    one is searched. Labelings that need a margin below ``MARGIN`` are not found.
    """
    s, n = X.shape
    U = _directions("dichotomies", X)
    check(
        cover_count(s, n) <= MAX_DICHOTOMIES,
        "dichotomies: X",
        f"have at most {MAX_DICHOTOMIES:,} dichotomies",
        f"up to {cover_count(s, n):,} for {s} points in {n} dimensions",
        "Use cover_count, or coin_fraction to sample them.",
    )
    if not U.any(axis=1).all():
        return np.empty((0, s))
    found = [(np.ones(1), U[0])]
    for k in range(1, s):
        found = [
            longer for y, w in found for longer in _continued(y, w, U[: k + 1])
        ]
    half = np.array([y for y, _ in found])
    return np.vstack([half, -half])


def coin_fraction(
    X: Float[ndarray, "s n"], trials: int, rng: Generator
) -> float:
    """Label the points by coin tosses; return how often some weights separate them."""
    check(trials >= 1, "coin_fraction: trials", "be at least 1", trials)
    U = _directions("coin_fraction", X)
    Y = rng.choice([-1.0, 1.0], size=(trials, len(X)))
    return sum(_witness(y[:, None] * U) is not None for y in Y) / trials


def _continued(
    y: Float[ndarray, "k"], w: Float[ndarray, "n"], U: Float[ndarray, "k1 n"]
) -> Iterator[tuple[Float[ndarray, "k1"], Float[ndarray, "n"]]]:
    """Yield the labelings that continue ``y`` by one label, with their weights."""
    for label in (1.0, -1.0):
        labels = np.append(y, label)
        if label * (U[-1] @ w) > MARGIN:
            yield labels, w
        elif (v := _witness(labels[:, None] * U)) is not None:
            yield labels, v


def _witness(Z: Float[ndarray, "s n"]) -> Float[ndarray, "n"] | None:
    r"""Find weights of length 1 with :math:`w \cdot z_i > 0` for all signed points.

    Non-negative least squares looks for multipliers with :math:`\sum_i \lambda_i z_i = 0`
    and :math:`\sum_i \lambda_i = 1`. If it fails, what is left of the first sum is a
    multiple of the hull's point closest to zero, which separates. On points of length 1
    this is 10 to 30 times as fast as a linear program.
    """
    A = np.vstack([Z.T, np.ones(len(Z))])
    target = np.append(np.zeros(Z.shape[1]), 1.0)
    lam = nnls(A, target, maxiter=100 * len(Z))[0]
    closest = Z.T @ lam
    length = float(np.linalg.norm(closest))
    if (Z @ closest).min() <= MARGIN * length:
        return None
    return closest / length


def _directions(who: str, X: Float[ndarray, "s n"]) -> Float[ndarray, "s n"]:
    """Return the points scaled to length 1; zero stays zero."""
    check(X.size > 0, f"{who}: X", "have points", f"shape {X.shape}")
    check(bool(np.isfinite(X).all()), f"{who}: X", "be finite", "NaN or ∞")
    size = np.abs(X).max(axis=1, keepdims=True)
    X = X / np.where(size == 0, 1.0, size)  # so that no square overflows
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length == 0, 1.0, length)
