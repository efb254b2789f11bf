r"""Clustering: each point is replaced by the closest of a few codewords.

The cost of a set of codewords ``C`` is, as for every squared loss of this book, the mean of
:math:`\frac12 \min_c \|x - c\|^2`. Both searches below start somewhere, and take turns:
give each point to its closest codeword, then move the codewords to where they are best.
Neither step raises the cost, so the search comes to rest, though not always at the best
codewords: hence several starts.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import (
    check,
    check_columns,
    check_data,
    check_finite,
    check_matrix,
    check_sizes,
)
from dlcore.connectionism.neurons import MAX_BITS, all_inputs

__all__ = ["Codebook", "binary_code", "kmeans", "nearest"]


class Codebook(NamedTuple):
    """A set of codewords, with the closest one for each point and the cost.

    Attributes:
        words: codewords as rows.
        labels: the number of the closest codeword for each point.
        cost: mean of half the squared distances.

    Example:
        >>> X, words = np.array([[0.0], [2], [5], [5]]), np.array([[0.0], [5]])
        >>> found = nearest(X, words)
        >>> found.words[found.labels].ravel().tolist(), found.cost
        ([0.0, 0.0, 5.0, 5.0], 0.5)
    """

    words: Float[ndarray, "m n"]
    labels: Int[ndarray, "s"]
    cost: float


def nearest(X: Float[ndarray, "s n"], words: Float[ndarray, "m n"]) -> Codebook:
    """Give each point to its closest codeword, the first of them at a tie.

    Args:
        X: points as rows.
        words: codewords as rows.

    Example:
        >>> X, words = np.array([[0.0], [2], [5], [5]]), np.array([[0.0], [5]])
        >>> found = nearest(X, words)
        >>> found.labels.tolist(), found.cost  # one point is 2 away: (2²/2)/4
        ([0, 0, 1, 1], 0.5)
    """
    X, words = _points("nearest", X), np.asarray(words, float)
    check_matrix("nearest: words", words, "have codewords as rows")
    check_columns("nearest: words", words, X.shape[1])
    check_finite("nearest: words", words)
    squares = _squares(X, words)
    labels = squares.argmin(axis=1)
    return Codebook(words, labels, float(squares.min(axis=1).mean()) / 2)


def kmeans(
    X: Float[ndarray, "s n"], k: int, rng: Generator, starts: int = 20
) -> Codebook:
    """Find ``k`` codewords by k-means: each is the mean of its points (Lloyd 1982).

    A search starts from points that tend to lie far apart: each is drawn with a
    probability proportional to its squared distance from those before (Arthur and
    Vassilvitskii 2007).

    Args:
        X: points as rows.
        k: number of codewords, at most as many as there are points.
        rng: chooses the points to start from.
        starts: how often to start; the best result is returned.

    Example:
        >>> X = np.array([[0.0], [2.0], [10.0], [12.0]])
        >>> found = kmeans(X, 2, np.random.default_rng(0))
        >>> np.sort(found.words.ravel()).tolist(), found.cost
        ([1.0, 11.0], 0.5)
    """
    X = _points("kmeans", X)
    check_sizes("kmeans", starts=starts, k=k)
    check(k <= len(X), "kmeans: k", f"be at most {len(X)}, as points", k)

    def centroids(found: Codebook) -> Float[ndarray, "k n"]:
        words = found.words.copy()  # a codeword without points stays
        for c in np.unique(found.labels):
            words[c] = X[found.labels == c].mean(axis=0)
        return words

    def start() -> Float[ndarray, "k n"]:
        words = rng.choice(X, 1)
        while len(words) < k:
            p = _squares(X, words).min(axis=1)
            p = p / p.sum() if p.any() else np.full(len(X), 1 / len(X))
            words = np.vstack([words, rng.choice(X, 1, p=p)])
        return words

    return min(
        (_settle(X, start(), centroids) for _ in range(starts)),
        key=lambda found: found.cost,
    )


def binary_code(
    X: Float[ndarray, "s n"], bits: int, rng: Generator, starts: int = 20
) -> Codebook:
    r"""Find codewords :math:`b + Wz`, one for each vector ``z`` of so many bits.

    They are the corners of a parallelotope, in the order of :func:`.all_inputs`. With
    the bits of all points given, ``b`` and ``W`` solve a problem of least squares.

    Args:
        X: points as rows, more than there are bits.
        bits: length of the code, at most 16: there are 2^bits codewords.
        rng: chooses where to start: from some of the points, or from random codes.
        starts: how often to start; the best result is returned.

    Example:
        >>> X = np.array([[1.0], [2.0], [5.0], [6.0]])  # 1 + 4z₁ + z₂
        >>> found = binary_code(X, 2, np.random.default_rng(0))
        >>> np.sort(found.words.ravel()).round(3).tolist(), round(found.cost, 3)
        ([1.0, 2.0, 5.0, 6.0], 0.0)
    """
    X = _points("binary_code", X)
    check_sizes("binary_code", starts=starts, bits=bits)
    ok, must = bits < len(X), f"be fewer than the points, at most {MAX_BITS}"
    check(ok and bits <= MAX_BITS, "binary_code: bits", must, bits)
    design = np.hstack([np.ones((2**bits, 1)), all_inputs(bits)])

    def best_corners(labels: Int[ndarray, "s"]) -> Float[ndarray, "m n"]:
        return design @ np.linalg.lstsq(design[labels], X)[0]

    def start() -> Float[ndarray, "m n"]:
        if rng.random() < 0.5:
            return best_corners(rng.integers(2**bits, size=len(X)))
        b, *ends = rng.choice(X, bits + 1, replace=False)
        return design @ np.array([b, *(end - b for end in ends)])

    return min(
        (
            _settle(X, start(), lambda found: best_corners(found.labels))
            for _ in range(starts)
        ),
        key=lambda found: found.cost,
    )


def _squares(
    X: Float[ndarray, "s n"], words: Float[ndarray, "m n"]
) -> Float[ndarray, "s m"]:
    """Return the squared distance of each point from each codeword."""
    return ((X[:, None] - words) ** 2).sum(axis=2)


def _settle(
    X: Float[ndarray, "s n"],
    words: Float[ndarray, "m n"],
    improve: Callable[[Codebook], Float[ndarray, "m n"]],
) -> Codebook:
    """Improve codewords and labels in turn until the cost no longer falls."""
    found = nearest(X, words)
    while (better := nearest(X, improve(found))).cost < found.cost:
        found = better
    return found


def _points(who: str, X: ndarray) -> Float[ndarray, "s n"]:
    """Return points as floats: the means of whole numbers are not whole."""
    X = np.asarray(X, float)
    check_data(who, X)
    size = float(np.abs(X).max())
    check(size <= 1e150, f"{who}: X", "have squares that are finite", size)
    return X
