r"""Linear regression: weights ``w`` with :math:`Xw \approx y`.

Points are the rows of ``X``. There is no separate bias: :func:`design` appends the constant
feature 1, whose weight is the bias. So ``n`` counts all weights.

What follows from the least squares is written in the singular value decomposition
:math:`X = \sum_{k=1}^{r} d_k u_k v_k^\top`. Its rank :math:`r` is decided in one place, as
NumPy decides it: a :math:`d_k` up to :math:`d_1` times ``max(s, n)`` times the epsilon of
the numbers in ``X`` is taken for zero.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.optimize import linprog
from scipy.sparse import bmat, identity

from dlcore.checks import check, check_data, check_matrix, check_positive

__all__ = ["Svd", "design", "hat", "huber", "least_absolute", "ols", "standard_errors"]

_MAX_ROUNDS = 10_000  # of reweighting in huber


class Svd(NamedTuple):
    """The part of a singular value decomposition with positive singular values.

    Attributes:
        U: left singular vectors :math:`u_k` as columns.
        d: singular values :math:`d_k`, largest first.
        V: right singular vectors :math:`v_k` as columns.

    Example:
        >>> U, d, V = Svd(np.eye(2), np.array([3.0, 2.0]), np.eye(2))
        >>> (U * d @ V.T).tolist()
        [[3.0, 0.0], [0.0, 2.0]]
    """

    U: Float[ndarray, "s r"]
    d: Float[ndarray, "r"]
    V: Float[ndarray, "n r"]


def design(X: Float[ndarray, "s n"]) -> Float[ndarray, "s n1"]:
    """Return the design matrix: the points with the constant feature 1 appended.

    The weight of this feature is the bias.

    Args:
        X: points as rows.

    Example:
        >>> design(np.array([[2.0], [3.0]])).tolist()
        [[2.0, 1.0], [3.0, 1.0]]
    """
    check_matrix("design: X", X, "have points as rows")
    return np.column_stack([X, np.ones(len(X))])


def ols(X: Float[ndarray, "s n"], y: Float[ndarray, "s *m"]) -> Float[ndarray, "*m n"]:
    r"""Return the shortest of the weights that minimise :math:`\lVert Xw - y \rVert^2`.

    .. math:: w^+ = X^+ y = \sum_{k=1}^{r} \frac{u_k^\top y}{d_k}\, v_k

    With several targets per point, ``y`` of shape ``(s, m)``, the answer has a row of
    weights for each: the matrix of a layer.

    Equals ``numpy.linalg.lstsq``. Equals ``sklearn.linear_model.LinearRegression`` with
    the bias among the weights, by :func:`design`.

    Args:
        X: points as rows.
        y: targets.

    Example:
        >>> X, y = design(np.array([[0.0], [1], [2]])), np.array([0.0, 0, 3])
        >>> ols(X, y).round(3).tolist()  # slope and bias
        [1.5, -0.5]
    """
    check_data("ols", X, y, dims=2)
    U, d, V = _svd(X)
    return ((U.T @ y).T / d) @ V.T


def hat(X: Float[ndarray, "s n"]) -> Float[ndarray, "s s"]:
    r"""Return the hat matrix, which projects onto the span of the columns of ``X``.

    It takes the targets to the predictions :math:`\hat y` of :func:`ols`.

    .. math:: P = X X^+ = \sum_{k=1}^{r} u_k u_k^\top

    Args:
        X: points as rows.

    Example:
        >>> hat(np.ones((2, 1))).round(3).tolist()  # takes y to its mean
        [[0.5, 0.5], [0.5, 0.5]]
    """
    check_data("hat", X)
    U, _, _ = _svd(X)
    return U @ U.T


def standard_errors(
    X: Float[ndarray, "s n"], y: Float[ndarray, "s"]
) -> Float[ndarray, "n"]:
    r"""Estimate the standard deviations of the weights that :func:`ols` returns.

    .. math::
        \hat\sigma^2 = \frac{\lVert y - X\hat w \rVert^2}{s - n}, \qquad
        \mathrm{se}_j^2 = \hat\sigma^2\, (X^\top X)^{-1}_{jj}
            = \hat\sigma^2 \sum_{k=1}^{n} \frac{v_{jk}^2}{d_k^2}

    Equals ``scipy.stats.linregress`` in ``stderr`` and ``intercept_stderr``, for one
    feature and a bias.

    Args:
        X: points as rows.
        y: targets.

    Example:
        >>> X, y = design(np.array([[0.0], [1], [2]])), np.array([0.0, 0, 3])
        >>> (standard_errors(X, y) ** 2).round(3).tolist()
        [0.75, 1.25]
    """
    check_data("standard_errors", X, y)
    U, d, V = _svd(X)
    s, n = X.shape
    what = "standard_errors: X"
    check(len(d) == n, what, f"have {n} independent columns", f"rank {len(d)}")
    check(s > n, what, "have more rows than columns", f"shape {X.shape}")
    r = y - U @ (U.T @ y)
    variance = r @ r / (s - n)
    return np.sqrt(variance * ((V / d) ** 2).sum(axis=1))


def least_absolute(
    X: Float[ndarray, "s n"], y: Float[ndarray, "s"]
) -> Float[ndarray, "n"]:
    r"""Return weights that minimise :math:`\sum_i \lvert y_i - x_i \cdot w \rvert`.

    A linear program: minimise :math:`\sum_i t_i` subject to :math:`-t \le y - Xw \le t`.
    Where several weights are optimal, it returns one of them.

    Equals ``sklearn.linear_model.QuantileRegressor`` with ``quantile=0.5`` and
    ``alpha=0`` in the sum it reaches.

    Args:
        X: points as rows.
        y: targets.

    Example:
        >>> y = np.array([1.0, 2.0, 9.0])
        >>> least_absolute(np.ones((3, 1)), y).round(3).tolist()  # the median
        [2.0]
    """
    check_data("least_absolute", X, y)
    s, n = X.shape
    slack = identity(s)
    solution = linprog(
        np.r_[np.zeros(n), np.ones(s)],
        A_ub=bmat([[X, -slack], [-X, -slack]], format="csc"),
        b_ub=np.r_[y, -y],
        bounds=[(None, None)] * n + [(0, None)] * s,
    )
    ok, hint = solution.status == 0, "Scale the columns of X to similar sizes."
    check(ok, "least_absolute: linprog", "find a solution", solution.message, hint)
    return solution.x[:n]


def huber(
    X: Float[ndarray, "s n"], y: Float[ndarray, "s"], delta: float = 1.0
) -> Float[ndarray, "n"]:
    r"""Return weights that minimise the sum of Huber's losses (Huber 1964).

    The loss of a residual :math:`r` is :math:`\tfrac12 r^2` up to :math:`\lvert r \rvert =
    \delta` and a straight line, :math:`\delta (\lvert r \rvert - \tfrac12 \delta)`, beyond.
    Its derivative is :math:`c\, r` with :math:`c = \min(1, \delta / \lvert r \rvert)`. So at
    the minimum the weights solve a least-squares problem in which point ``i`` counts
    :math:`c_i` times; the loop computes both in turn, and no turn raises the sum. It ends
    when the predictions stay and the gradient, :math:`\sum_i c_i r_i x_i`, is zero but for
    a millionth of what it could be.

    Equals ``sklearn.linear_model.HuberRegressor`` with ``alpha=0``, if ``delta`` is its
    ``epsilon`` times its ``scale_``.

    Args:
        X: points as rows.
        y: targets.
        delta: where the loss becomes straight, :math:`\delta`.

    Example:
        >>> y = np.array([0.0, 0.0, 0.0, 8.0])
        >>> huber(np.ones((4, 1)), y).round(3).tolist()  # 3w = delta
        [0.333]
    """
    check_data("huber", X, y)
    check_positive("huber: delta", delta)
    w = ols(X, y)
    for _ in range(_MAX_ROUNDS):
        r = np.abs(y - X @ w)
        root = np.sqrt(delta / np.maximum(r, delta))
        w, before = ols(root[:, None] * X, root * y), w
        moved = np.abs(X @ (w - before)).max()
        stays = moved <= 1e-13 * (np.abs(y).max() + np.abs(X @ w).max())
        gradient = X.T @ np.clip(y - X @ w, -delta, delta)
        flat = np.abs(gradient) <= 1e-6 * delta * np.abs(X).sum(axis=0)
        if stays and flat.all():
            return w
    raise ValueError(
        f"huber: delta must be large enough for {_MAX_ROUNDS:,} rounds to settle; got "
        f"{delta} for targets up to {np.abs(y).max():g}. Use least_absolute, which is "
        "the limit of small delta."
    )


def _svd(X: Float[ndarray, "s n"]) -> Svd:
    """Decompose ``X`` and keep what is not taken for zero."""
    U, d, Vt = np.linalg.svd(X, full_matrices=False)
    kept = d > d[0] * max(X.shape) * np.finfo(d.dtype).eps
    return Svd(U[:, kept], d[kept], Vt[kept].T)
