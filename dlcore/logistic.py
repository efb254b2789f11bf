r"""Logistic regression: linear scores that are read as log-odds, fitted by likelihood.

With two classes one score :math:`z = w \cdot x + b` is the log-odds of class 1; with ``C``
classes the scores :math:`o = Wx + b` become probabilities by the softmax. The cost is the
mean cross-entropy. It is convex and has no formula for its minimum, so Newton's method
looks for it, with the *design matrix* :math:`A` of rows :math:`(x, 1)`.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.optimize import linprog

from dlcore._check import check, check_finite, check_matrix
from dlcore.activations import sigmoid, softmax
from dlcore.losses import binary_cross_entropy, cross_entropy, one_hot

MAX_STEPS = 100  # of Newton's method; ten are usual
NEAR = 1e-12  # fall of the cost that a step promises when one more is the last
APART = 1e-7  # what a linear program may leave of zero


def design(X: Float[ndarray, "s n"]) -> Float[ndarray, "s m"]:
    r"""Return :math:`A`, the points with a column of ones behind them for the bias."""
    return np.column_stack([X, np.ones(len(X))])


def logistic_gradient(
    X: Float[ndarray, "s n"],
    y: Int[ndarray, "s"],
    w: Float[ndarray, "n"],
    b: float,
) -> Float[ndarray, "m"]:
    r"""Return :math:`\frac1s A^\top (p - y)` with :math:`p = \sigma(Xw + b)`.

    It is the gradient of the mean cross-entropy by :math:`(w, b)`.
    """
    p = sigmoid(X @ w + b)
    return design(X).T @ (p - y) / len(X)


def logistic_hessian(
    X: Float[ndarray, "s n"], w: Float[ndarray, "n"], b: float
) -> Float[ndarray, "m m"]:
    r"""Return :math:`\frac1s A^\top \operatorname{diag}(p(1 - p))\, A`.

    Times ``s`` and inverted, at the fit, it estimates the covariance of :math:`(w, b)`.
    """
    A, p = design(X), sigmoid(X @ w + b)
    return (A.T * (p * (1 - p))) @ A / len(X)


def softmax_gradient(
    X: Float[ndarray, "s n"],
    y: Int[ndarray, "s"],
    W: Float[ndarray, "C n"],
    b: Float[ndarray, "C"],
) -> Float[ndarray, "C m"]:
    r"""Return :math:`\frac1s (P - Y)^\top A`: row ``c`` is the gradient by :math:`(w_c, b_c)`."""
    P, Y = softmax(X @ W.T + b), one_hot(y, len(b))
    return (P - Y).T @ design(X) / len(X)


def softmax_hessian(
    X: Float[ndarray, "s n"], W: Float[ndarray, "C n"], b: Float[ndarray, "C"]
) -> Float[ndarray, "Cm Cm"]:
    r"""Return the second derivatives by all :math:`(w_c, b_c)`, one class after another.

    The block of classes ``c`` and ``d`` is
    :math:`\frac1s A^\top \operatorname{diag}(p_c (\delta_{cd} - p_d))\, A`.
    """
    A, P = design(X), softmax(X @ W.T + b)
    delta = np.eye(len(b))
    blocks = [
        [(A.T * (p * (delta[c, d] - q))) @ A for d, q in enumerate(P.T)]
        for c, p in enumerate(P.T)
    ]
    return np.block(blocks) / len(X)


def overlap(X: Float[ndarray, "s n"], y: Int[ndarray, "s"]) -> bool:
    r"""Tell whether the classes overlap, so that the cost without a penalty has a minimum.

    They do not if some scores are nowhere wrong and somewhere right: :math:`o_y - o_c \ge
    0` at all points and for all other classes ``c``, with one difference positive. A
    linear program looks for such scores, with differences up to 1, and makes their sum
    as large as it can.
    """
    C = _check_data("overlap", X, y)
    shift, scale = X.mean(axis=0), np.abs(X - X.mean(axis=0)).max(axis=0)
    A = design((X - shift) / np.where(scale == 0, 1.0, scale))
    # Row (i, c) maps all weights to the difference of two scores of point i.
    other = (one_hot(y, C)[:, None] - np.eye(C))[np.arange(C) != y[:, None]]
    rows = np.repeat(A, C - 1, axis=0)
    D = (other[:, :, None] * rows[:, None]).reshape(len(rows), -1)
    found = linprog(
        -D.mean(axis=0),
        A_ub=np.vstack([D, -D]),
        b_ub=np.repeat([1.0, 0.0], len(D)),
        bounds=(None, None),
    )
    check(found.success, "overlap: linprog", "decide", found.message)
    return bool((D @ found.x).max() < APART)


def logistic_regression(
    X: Float[ndarray, "s n"], y: Int[ndarray, "s"], penalty: float = 0.0
) -> tuple[Float[ndarray, "n"], float]:
    r"""Fit :math:`\Pr(y = 1 \mid x) = \sigma(w \cdot x + b)` by Newton's method.

    Args:
        X: points.
        y: labels 0 and 1.
        penalty: the factor :math:`\lambda` of :math:`\frac{\lambda}{2} \|w\|^2`, which is
            added to the mean cross-entropy; the bias is free. Without it the classes must
            overlap, or there is no minimum.
    """
    who = "logistic_regression"
    C = _check_data(who, X, y, penalty)
    check(C == 2, f"{who}: y", "be coded as 0 and 1", f"{C} classes")
    _check_minimum(who, X, y, penalty)
    shrink = penalty * np.append(np.ones(X.shape[1]), 0.0)

    def cost(v: ndarray) -> float:
        loss = binary_cross_entropy(X @ v[:-1] + v[-1], y)
        return float(loss.mean() + shrink @ v**2 / 2)

    def slope(v: ndarray) -> ndarray:
        return logistic_gradient(X, y, v[:-1], v[-1]) + shrink * v

    def curvature(v: ndarray) -> ndarray:
        return logistic_hessian(X, v[:-1], v[-1]) + np.diag(shrink)

    v = _newton(who, np.zeros(X.shape[1] + 1), cost, slope, curvature)
    return v[:-1], float(v[-1])


def softmax_regression(
    X: Float[ndarray, "s n"], y: Int[ndarray, "s"], penalty: float = 0.0
) -> tuple[Float[ndarray, "C n"], Float[ndarray, "C"]]:
    r"""Fit :math:`\Pr(y = c \mid x) = \operatorname{softmax}(Wx + b)_c` by Newton's method.

    To add the same vector to all rows of :math:`W`, or the same number to all biases,
    changes no probability. Of all fits this is the one in which both sum to zero.

    Args:
        X: points.
        y: labels 0, …, C − 1.
        penalty: the factor :math:`\lambda` of :math:`\frac{\lambda}{2} \|W\|^2`, which is
            added to the mean cross-entropy; the biases are free. Without it the classes
            must overlap, or there is no minimum.
    """
    who = "softmax_regression"
    C, m = _check_data(who, X, y, penalty), X.shape[1] + 1
    _check_minimum(who, X, y, penalty)
    shrink = penalty * np.tile(np.append(np.ones(m - 1), 0.0), C)

    def split(v: ndarray) -> tuple[ndarray, ndarray]:
        return v.reshape(C, m)[:, :-1], v.reshape(C, m)[:, -1]

    def cost(v: ndarray) -> float:
        W, b = split(v)
        loss = cross_entropy(X @ W.T + b, y)
        return float(loss.mean() + shrink @ v**2 / 2)

    def slope(v: ndarray) -> ndarray:
        return softmax_gradient(X, y, *split(v)).ravel() + shrink * v

    def curvature(v: ndarray) -> ndarray:
        return softmax_hessian(X, *split(v)) + np.diag(shrink)

    W, b = split(_newton(who, np.zeros(C * m), cost, slope, curvature))
    return W - W.mean(axis=0), b - b.mean()


def _newton(
    who: str,
    v: Float[ndarray, "m"],
    cost: Callable[[ndarray], float],
    slope: Callable[[ndarray], ndarray],
    curvature: Callable[[ndarray], ndarray],
) -> Float[ndarray, "m"]:
    r"""Minimise a convex cost by :math:`v \leftarrow v - t H^{-1} g`.

    Where the cost is constant along a direction, :math:`H u = g` has many solutions, and
    least squares takes a short one; ``t`` is halved until the cost falls by at least a quarter
    of what the slope promises.
    """
    for _ in range(MAX_STEPS):
        g, H = slope(v), curvature(v)
        size = np.sqrt(np.diag(H))  # so that units of measurement do not matter
        size = np.where(size == 0, 1.0, size)
        step = np.linalg.lstsq(H / np.outer(size, size), g / size)[0] / size
        promise, t = float(g @ step), 1.0
        if promise <= NEAR:
            return v - step
        while cost(v - t * step) > cost(v) - t * promise / 4:
            t /= 2
        v = v - t * step
    raise ValueError(
        f"{who}: Newton's method must settle in {MAX_STEPS} steps."
    )


def _check_data(
    who: str,
    X: Float[ndarray, "s n"],
    y: Int[ndarray, "s"],
    penalty: float = 0.0,
) -> int:
    """Return the number of classes."""
    check_matrix(f"{who}: X", X, "have points as rows")
    check_finite(f"{who}: X", X)
    check(
        np.shape(y) == (len(X),),
        f"{who}: y",
        f"have one label per point ({len(X)})",
        f"shape {np.shape(y)}",
    )
    labels = np.unique(y)
    check(
        len(labels) > 1 and np.array_equal(labels, np.arange(len(labels))),
        f"{who}: y",
        "be coded as 0, 1, … without gaps, at least two classes",
        labels,
        "For labels −1 and +1, pass (y + 1) // 2.",
    )
    check(
        bool(0 <= penalty < np.inf),
        f"{who}: penalty",
        "be finite and not negative",
        penalty,
    )
    return len(labels)


def _check_minimum(
    who: str, X: Float[ndarray, "s n"], y: Int[ndarray, "s"], penalty: float
) -> None:
    check(
        penalty > 0 or overlap(X, y),
        f"{who}: classes",
        "overlap, or the weights grow without end",
        "classes that a hyperplane keeps apart",
        "Give a penalty, or separate them: see perceptron.separate and max_margin.",
    )
