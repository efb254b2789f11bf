r"""Counting the labellings that one unit can produce.

The unit has no bias: weights ``w`` give the point ``x`` the label
:math:`\operatorname{sgn}(w \cdot x)`. For a unit with a bias, pass the points
:math:`(x, 1)`. Lengths of points do not matter, only their directions: whatever is
measured below is measured on points of length 1.

There is one tolerance. If ``k`` independent points have the smallest singular value
:math:`\sigma`, the least margin of their labellings lies between :math:`\sigma / \sqrt{k}`
and :math:`\sigma`. Singular values up to ``DEPENDENT`` are taken for zero. Margins above it
are found, margins up to a tenth of it are taken for zero, and what lies between is refused.
So in less than a hundred dimensions no count contradicts :func:`in_general_position`.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_data, check_whole
from dlcore.connectionism.perceptron import closest_point

__all__ = [
    "DEPENDENT",
    "coin_fraction",
    "cover_count",
    "cover_fraction",
    "dichotomies",
    "free_points",
    "in_general_position",
]

#: A singular value up to this is taken for zero.
DEPENDENT = 1e-9
_MAX_SUBSETS = 100_000  # looked at by in_general_position
_MAX_DICHOTOMIES = 5_000  # listed by dichotomies: all of 12 points


def cover_count(s: int, n: int) -> int:
    r"""Count the dichotomies of ``s`` points in general position (Cover 1965).

    .. math:: C(s, n) = 2 \sum_{i=0}^{n-1} \binom{s-1}{i}

    Args:
        s: number of points.
        n: their dimension; with a bias, one more.

    Returns:
        The exact number, however large.

    Example:
        >>> cover_count(4, 3)  # in the plane with a bias: 16, but for XOR and XNOR
        14
    """
    check_whole("cover_count: s", s, 1)
    check_whole("cover_count: n", n, 0)
    return 2 * sum(comb(s - 1, i) for i in range(min(n, s)))


def cover_fraction(s: int, n: int) -> float:
    r"""Return the fraction :math:`C(s, n) / 2^s` of labellings that a unit can produce.

    The number is correctly rounded, however many points there are.

    Args:
        s: number of points in general position.
        n: their dimension; with a bias, one more.

    Example:
        >>> cover_fraction(10, 10), cover_fraction(20, 10)  # half of them at s = 2n
        (1.0, 0.5)
    """
    return cover_count(s, n) / 2 ** int(s)  # NumPy's integers overflow


def in_general_position(X: Float[ndarray, "s n"]) -> bool:
    """Tell whether every ``n`` of the points, or all if fewer, are independent.

    Points count as dependent if, scaled to length 1, their smallest singular value is
    at most ``DEPENDENT``.

    Example:
        >>> X = np.array([[1.0, 0], [0, 1], [1, 1]])
        >>> in_general_position(X), in_general_position(np.vstack([X, 2 * X[2]]))
        (True, False)
    """
    U = _directions("in_general_position", X)
    k = min(X.shape)
    count, must = comb(len(X), k), f"number at most {_MAX_SUBSETS:,}"
    what = f"in_general_position: subsets of {k} points"
    check(count <= _MAX_SUBSETS, what, must, f"{count:,}", "Take fewer points.")
    return all(
        np.linalg.svd(U[list(chosen)], compute_uv=False)[-1] > DEPENDENT
        for chosen in combinations(range(len(X)), k)
    )


def free_points(X: Float[ndarray, "s n"]) -> Bool[ndarray, "s"]:
    r"""Mark the points that do not lie in the span of all the others.

    Such a point has the coefficient zero in every dependency
    :math:`\sum_i c_i x_i = 0`; its label is free.

    Example:
        >>> free_points(np.array([[1.0, 0], [2, 0], [0, 1]])).tolist()
        [False, False, True]
    """
    U = _directions("free_points", X)
    left, size, _ = np.linalg.svd(U)
    dependencies = left[:, (size > DEPENDENT).sum() :]
    return np.linalg.norm(dependencies, axis=1) <= DEPENDENT


def dichotomies(X: Float[ndarray, "s n"]) -> Float[ndarray, "count s"]:
    r"""List all labellings :math:`\operatorname{sgn}(Xw)` without zeros, one per row.

    Point after point, every labelling found so far is continued by +1 and by −1, and kept
    if some weights produce it. The weights that produced the shorter one produce one of
    the two; the other is searched by :func:`_witness`. Of each pair ``y``, ``-y`` only
    one is searched.

    Example:
        >>> dichotomies(np.array([[1.0], [2.0]])).tolist()  # the same side of zero
        [[1.0, 1.0], [-1.0, -1.0]]
        >>> len(dichotomies(np.array([[1.0, 0], [0, 1], [1, 1]]))), cover_count(3, 2)
        (6, 6)
    """
    U = _directions("dichotomies", X)
    s, rank = len(U), int((np.linalg.svd(U)[1] > DEPENDENT).sum())
    count, must = cover_count(s, rank), f"have at most {_MAX_DICHOTOMIES:,} dichotomies"
    got = f"up to {count:,} for {s} points of rank {rank}"
    check(count <= _MAX_DICHOTOMIES, "dichotomies: X", must, got, "Use coin_fraction.")
    if not U.any(axis=1).all():
        return np.empty((0, s))
    found = [(np.ones(1), U[0])]
    for k in range(1, s):
        found = [longer for y, w in found for longer in _continued(y, w, U[: k + 1])]
    half = np.array([y for y, _ in found])
    return np.vstack([half, -half])


def coin_fraction(X: Float[ndarray, "s n"], trials: int, rng: Generator) -> float:
    """Estimate by coin tosses the fraction of labellings that a unit can produce.

    Points get random labels; the result says how often some weights separate them.

    Args:
        X: points as rows.
        trials: number of labellings to draw.
        rng: source of randomness.

    Example:
        >>> coin_fraction(np.eye(3), 50, np.random.default_rng(0))  # independent points
        1.0
    """
    check_whole("coin_fraction: trials", trials, 1)
    U = _directions("coin_fraction", X)
    Y = rng.choice([-1.0, 1.0], size=(trials, len(X)))
    found = [_witness("coin_fraction", y[:, None] * U) for y in Y]
    return sum(w is not None for w in found) / trials


def _continued(
    y: Float[ndarray, "k"], w: Float[ndarray, "n"], U: Float[ndarray, "k1 n"]
) -> Iterator[tuple[Float[ndarray, "k1"], Float[ndarray, "n"]]]:
    """Yield the labellings that continue ``y`` by one label, with their weights."""
    for label in (1.0, -1.0):
        labels = np.append(y, label)
        if label * (U[-1] @ w) > DEPENDENT:
            yield labels, w
        elif (v := _witness("dichotomies", labels[:, None] * U)) is not None:
            yield labels, v


def _witness(who: str, Z: Float[ndarray, "s n"]) -> Float[ndarray, "n"] | None:
    r"""Find weights of length 1 with :math:`w \cdot z_i > 0` for all signed points.

    The hull's point closest to zero separates, and its length is the margin. If it is
    short, rounding spoils its direction ``w``. Then space is stretched along ``w``, which
    makes the margin large and changes no answer, and the search repeated.
    """
    margin, w = _closest(Z)
    if margin <= DEPENDENT / 10:
        return None
    if (Z @ w).min() < margin / 2:
        stretch = np.eye(len(w)) + (1 / margin - 1) * np.outer(w, w)
        w = stretch @ _closest(Z @ stretch)[1]
        w = w / np.linalg.norm(w)
    ok = bool((Z @ w).min() > DEPENDENT / 2) and margin > DEPENDENT
    must = f"have dependent points, or margins above {DEPENDENT:.0e}"
    check(ok, f"{who}: X", must, f"{margin:.1e}", "Move the points a little.")
    return w


def _closest(Z: Float[ndarray, "s n"]) -> tuple[float, Float[ndarray, "n"]]:
    """Return length and direction of the point closest to zero in the points' hull."""
    closest = closest_point(Z)
    length = float(np.linalg.norm(closest))
    return length, closest / (length or 1.0)


def _directions(who: str, X: Float[ndarray, "s n"]) -> Float[ndarray, "s n"]:
    """Return the points scaled to length 1; zero stays zero."""
    check_data(who, X)
    size = np.abs(X).max(axis=1, keepdims=True)
    X = X / np.where(size == 0, 1.0, size)  # so that no square overflows
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length == 0, 1.0, length)
