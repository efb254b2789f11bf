r"""Preferring simple fits: a price on weights, and what amounts to one.

Points are the rows of ``X``. All costs are means over the :math:`s` points of the half
squared loss, as in the rest of the book; scikit-learn's ``Ridge`` takes the sum, so that its
``alpha`` is :math:`s\lambda`, and its ``Lasso`` takes the mean.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import check, check_between, check_data, check_finite, check_positive
from dlcore.feedforward.linear_regression import ols

__all__ = ["dropout_penalty", "lasso", "ridge", "soft_threshold"]

_MAX_STEPS = 50_000  # of lasso
_GAP = 1e-13  # how far from the minimum lasso may end, as a part of the cost at zero


def ridge(
    X: Float[ndarray, "s n"],
    y: Float[ndarray, "s *m"],
    penalty: float | Float[ndarray, "n"],
) -> Float[ndarray, "*m n"]:
    r"""Return the weights of ridge regression: least squares with an L2 penalty.

    .. math::
        \frac{1}{2s} \lVert Xw - y \rVert^2 + \frac12 \sum_j \lambda_j w_j^2
        = \frac{1}{2s} \left\lVert
            \begin{pmatrix} X \\ \sqrt{s\lambda_1} \;\cdots\; \end{pmatrix} w
            - \begin{pmatrix} y \\ 0 \end{pmatrix} \right\rVert^2

    So it is a problem of least squares with a further row for each weight.

    Equals ``sklearn.linear_model.Ridge``, whose ``alpha`` is :math:`s\lambda`, without
    an intercept.

    Args:
        X: points.
        y: targets; with several per point, the answer has a row of weights for each.
        penalty: :math:`\lambda`, the same for all weights, or one for each; 0 for a
            weight that is free, as a bias should be. If several weights are optimal, as
            may be with zeros, the shortest are returned.

    Example:
        >>> X, y = np.ones((2, 1)), np.array([1.0, 3.0])
        >>> [ridge(X, y, penalty).round(3).item() for penalty in (0.0, 1.0, 3.0)]
        [2.0, 1.0, 0.5]
    """
    check_data("ridge", X, y, dims=2)
    s, n = X.shape
    prices = np.asarray(penalty)
    check(
        prices.dtype.kind in "iuf" and prices.shape in [(), (n,)],
        "ridge: penalty",
        f"be a number, or one for each of the {n} weights",
        f"{prices.dtype} of shape {prices.shape}",
    )
    check_finite("ridge: penalty", prices)
    ok = bool((prices >= 0).all())
    check(ok, "ridge: penalty", "not be negative", penalty)
    rows = np.diag(np.broadcast_to(np.sqrt(s * prices), n))
    zeros = np.zeros((n, *y.shape[1:]))
    return ols(np.vstack([X, rows]), np.concatenate([y, zeros]))


def soft_threshold(
    z: Float[ndarray, "*shape"], by: float | Float[ndarray, "*shape"]
) -> Float[ndarray, "*shape"]:
    r"""Move numbers towards zero by ``by``; those that would pass it become zero.

    .. math::
        S_\lambda(z) = \operatorname{sgn}(z) \max(|z| - \lambda, 0)
        = \arg\min_w \tfrac12 (w - z)^2 + \lambda |w|

    Args:
        z: the numbers :math:`z`.
        by: the threshold :math:`\lambda`, for all numbers or one for each.

    Example:
        >>> soft_threshold(np.array([-3.0, 0.5, 2.0]), 1.0).tolist()
        [-2.0, 0.0, 1.0]
    """
    ok = bool(np.all(np.asarray(by) >= 0))
    check(ok, "soft_threshold: by", "not be negative", by)
    moved = np.sign(z) * np.maximum(np.abs(z) - by, 0)
    return np.asarray(moved + 0.0)  # no −0


def lasso(
    X: Float[ndarray, "s n"], y: Float[ndarray, "s"], penalty: float
) -> Float[ndarray, "n"]:
    r"""Return the weights of the lasso: least squares with an L1 penalty.

    .. math:: \frac{1}{2s} \lVert Xw - y \rVert^2 + \lambda \lVert w \rVert_1

    By proximal gradient steps (Daubechies, Defrise and De Mol 2004) from a point ahead
    of the last (Beck and Teboulle 2009), which starts anew where it overshoots. The end
    is where a lower bound on the minimum, from the residual scaled down until no
    column's product with it exceeds :math:`s\lambda`, is all but reached. The steps are
    taken with columns of length one, each weight with the price that this gives it.

    Equals ``sklearn.linear_model.Lasso`` without an intercept.

    Args:
        X: points.
        y: targets.
        penalty: :math:`\lambda > 0`.

    Example:
        >>> X, y = np.ones((2, 1)), np.array([1.0, 3.0])
        >>> [lasso(X, y, penalty).round(3).item() for penalty in (0.5, 1.0, 2.0)]
        [1.5, 1.0, 0.0]
    """
    check_data("lasso", X, y)
    check_positive("lasso: penalty", penalty)
    s, n = X.shape
    with np.errstate(over="ignore"):
        sizes, at_zero = np.linalg.norm(X, axis=0), float(y @ y) / (2 * s)
    ok = bool(np.isfinite(sizes).all() and np.isfinite(at_zero))
    check(ok, "lasso: X and y", "have finite squares", "larger numbers")
    sizes[sizes == 0] = 1.0
    X, prices = X / sizes, penalty / sizes
    w, ahead, t = np.zeros(n), np.zeros(n), 1.0
    smooth = float(np.linalg.norm(X, 2)) ** 2 / s
    for _ in range(_MAX_STEPS):
        r = y - X @ w
        slope = float((np.abs(X.T @ r) / prices).max())
        bound = r * min(1.0, s / slope) if slope > 0 else r
        here = r @ r / (2 * s) + prices @ np.abs(w)
        lowest = at_zero - (y - bound) @ (y - bound) / (2 * s)
        if here - lowest <= _GAP * at_zero:
            return w / sizes
        g = X.T @ (X @ ahead - y) / s
        moved = soft_threshold(ahead - g / smooth, prices / smooth)
        if (ahead - moved) @ (moved - w) > 0:
            t = 1.0
        t, before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        w, ahead = moved, moved + (before - 1) / t * (moved - w)
    raise ValueError(
        f"lasso: X must let {_MAX_STEPS:,} steps settle; got condition number "
        f"{np.linalg.cond(X):.0e}. Leave out a column that nearly depends on others."
    )


def dropout_penalty(X: Float[ndarray, "s n"], p: float) -> Float[ndarray, "n"]:
    r"""Return the penalty on squared weights that dropout of the inputs amounts to.

    .. math:: \lambda_j = \frac{p}{1 - p} \cdot \frac1s \sum_i x_{ij}^2

    The weights with the lowest expected cost are
    ``ridge(X, y, dropout_penalty(X, p))``.

    Args:
        X: points.
        p: probability of dropping, in [0, 1).

    Example:
        >>> dropout_penalty(np.array([[1.0], [3.0]]), p=0.5).tolist()
        [5.0]
    """
    check_data("dropout_penalty", X)
    check_between("dropout_penalty: p", p, 0, 1, "[)")
    return p / (1 - p) * (X**2).mean(axis=0)
