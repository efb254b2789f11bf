r"""Logistic regression: linear scores that are read as log-odds, fitted by likelihood.

With two classes one score :math:`z = w \cdot x + b` is the log-odds of class 1; with ``C``
classes the scores :math:`o = Wx + b` become probabilities by the softmax. The cost is the
mean cross-entropy. It is convex and has no formula for its minimum, so Newton's method
looks for it, with the *design matrix* :math:`A` of rows :math:`(x, 1)`. It works on centred
and scaled inputs, so that neither their units nor their origin matter.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.optimize import linprog

from dlcore.checks import check, check_between, check_data, check_shape
from dlcore.feedforward.activations import logsumexp, sigmoid, softmax
from dlcore.feedforward.linear_regression import design
from dlcore.feedforward.losses import one_hot

__all__ = [
    "logistic_gradient",
    "logistic_hessian",
    "logistic_regression",
    "overlap",
    "softmax_gradient",
    "softmax_hessian",
    "softmax_regression",
]

_MAX_STEPS = 100  # of Newton's method; ten are usual
_NEAR = 1e-7  # change of the scores, beside their size, in the last step
_ROUNDING = 1e-14  # of the cost, beside its size
_LIMIT = 1e100  # of penalties and of spreads; their inverses are limits too
_APART = 1e-7  # what a linear program may leave of zero


def logistic_gradient(
    X: Float[ndarray, "s n"], y: Int[ndarray, "s"], w: Float[ndarray, "n"], b: float
) -> Float[ndarray, "m"]:
    r"""Return the gradient of logistic regression, :math:`\frac1s A^\top (p - y)`.

    It is that of the mean cross-entropy by :math:`(w, b)`, with the design matrix
    :math:`A` and :math:`p = \sigma(Xw + b)`.

    Equals ``torch.autograd.grad`` of
    ``torch.nn.functional.binary_cross_entropy_with_logits``.

    Args:
        X: points as rows.
        y: labels 0 and 1.
        w: weights.
        b: bias.

    Example:
        >>> X, y = np.array([[1.0], [3.0]]), np.array([0, 1])
        >>> logistic_gradient(X, y, np.zeros(1), 0.0).tolist()  # p = 1/2
        [-0.5, 0.0]
    """
    check_shape("logistic_gradient: y", y, len(X))
    flip = 1 - 2 * y
    # p − y, exact also near p = 1
    residual = flip * sigmoid(flip * (X @ w + b))
    return design(X).T @ residual / len(X)


def logistic_hessian(
    X: Float[ndarray, "s n"], w: Float[ndarray, "n"], b: float
) -> Float[ndarray, "m m"]:
    r"""Return the Hessian of logistic regression.

    .. math:: \frac1s A^\top \operatorname{diag}(p(1 - p))\, A

    Times ``s`` and inverted, at the fit, it estimates the covariance of :math:`(w, b)`.

    Equals ``torch.autograd.functional.hessian`` of
    ``torch.nn.functional.binary_cross_entropy_with_logits``.

    Args:
        X: points as rows.
        w: weights.
        b: bias.

    Example:
        >>> logistic_hessian(np.array([[1.0], [3.0]]), np.zeros(1), 0.0).tolist()
        [[1.25, 0.5], [0.5, 0.25]]
    """
    A, z = design(X), X @ w + b
    return (A.T * sigmoid.derivative(z)) @ A / len(X)


def softmax_gradient(
    X: Float[ndarray, "s n"],
    y: Int[ndarray, "s"],
    W: Float[ndarray, "C n"],
    b: Float[ndarray, "C"],
) -> Float[ndarray, "C m"]:
    r"""Return the gradient of softmax regression, :math:`\frac1s (P - Y)^\top A`.

    Row ``c`` is the gradient of the mean cross-entropy by :math:`(w_c, b_c)`. The rows
    of :math:`P` are probabilities, those of :math:`Y` one-hot labels.

    Equals ``torch.autograd.grad`` of ``torch.nn.functional.cross_entropy``.

    Args:
        X: points as rows.
        y: labels 0, …, C − 1.
        W: weights, one row per class.
        b: biases.

    Example:
        >>> X, y = np.array([[1.0], [3.0]]), np.array([0, 1])
        >>> softmax_gradient(X, y, np.zeros((2, 1)), np.zeros(2)).tolist()
        [[0.5, 0.0], [-0.5, 0.0]]
    """
    P, Y = softmax(X @ W.T + b), one_hot(y, len(b))
    others = P * (1 - Y)
    residual = others - Y * others.sum(axis=1, keepdims=True)  # P − Y
    return residual.T @ design(X) / len(X)


def softmax_hessian(
    X: Float[ndarray, "s n"], W: Float[ndarray, "C n"], b: Float[ndarray, "C"]
) -> Float[ndarray, "Cm Cm"]:
    r"""Return the Hessian of softmax regression, one class after another.

    The block of classes ``c`` and ``d`` is
    :math:`\frac1s A^\top \operatorname{diag}(p_c (\delta_{cd} - p_d))\, A`.

    Equals ``torch.autograd.functional.hessian`` of
    ``torch.nn.functional.cross_entropy``.

    Args:
        X: points as rows.
        W: weights, one row per class.
        b: biases.

    Example:
        >>> H = softmax_hessian(np.array([[1.0], [3.0]]), np.zeros((2, 1)), np.zeros(2))
        >>> H[:2].tolist()  # p(1 - p) and -pq are 1/4 and -1/4
        [[1.25, 0.5, -1.25, -0.5], [0.5, 0.25, -0.5, -0.25]]
    """
    A, P = design(X), softmax(X @ W.T + b)
    rest = P @ (1 - np.eye(len(b)))  # 1 − P, exact also near P = 1
    blocks = [
        [(A.T * (p * (rest[:, c] if c == d else -q))) @ A for d, q in enumerate(P.T)]
        for c, p in enumerate(P.T)
    ]
    return np.block(blocks) / len(X)


def overlap(X: Float[ndarray, "s n"], y: Int[ndarray, "s"]) -> bool:
    r"""Tell whether the classes overlap, so that the unpenalised cost has a minimum.

    They do not if some scores are nowhere wrong and somewhere right: :math:`o_y - o_c \ge
    0` at all points and for all other classes ``c``, with one difference positive. A
    linear program looks for such scores, with differences up to 1, and makes their sum
    as large as it can.

    Args:
        X: points as rows.
        y: labels 0, …, C − 1.

    Example:
        >>> X = np.array([[0.0], [1.0], [2.0]])
        >>> overlap(X, np.array([0, 1, 0])), overlap(X, np.array([0, 0, 1]))
        (True, False)
    """
    C = _check_data("overlap", X, y)
    A = design(_standard("overlap", X)[0])
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
    return bool((D @ found.x).max() < _APART)


def logistic_regression(
    X: Float[ndarray, "s n"], y: Int[ndarray, "s"], penalty: float = 0.0
) -> tuple[Float[ndarray, "n"], float]:
    r"""Fit :math:`\Pr(y = 1 \mid x) = \sigma(w \cdot x + b)` by Newton's method.

    It is the softmax of two classes: :math:`w = w_1 - w_0`, and where :math:`w_0 = -w_1`,
    :math:`\frac{\lambda}{2} \|w\|^2 = \frac{2\lambda}{2} (\|w_0\|^2 + \|w_1\|^2)`.

    Equals ``sklearn.linear_model.LogisticRegression`` with ``C = 1 / (penalty *
    len(X))``.

    Args:
        X: points.
        y: labels 0 and 1.
        penalty: the factor :math:`\lambda` of :math:`\frac{\lambda}{2} \|w\|^2`, which is
            added to the mean cross-entropy; the bias is free. Without it the classes must
            overlap, or there is no minimum.

    Example:
        >>> X = np.repeat([[0.0], [1.0]], 4, axis=0)
        >>> y = np.array([0, 0, 0, 1, 0, 1, 1, 1])
        >>> w, b = logistic_regression(X, y)
        >>> np.exp([b, w[0] + b]).round(3).tolist()  # odds 1:3 and 3:1
        [0.333, 3.0]
    """
    who = "logistic_regression"
    C = _check_data(who, X, y, penalty)
    check(C == 2, f"{who}: y", "be coded as 0 and 1", f"{C} classes")
    W, b = _fit(who, X, y, 2 * penalty, C)
    return W[1] - W[0], float(b[1] - b[0])


def softmax_regression(
    X: Float[ndarray, "s n"], y: Int[ndarray, "s"], penalty: float = 0.0
) -> tuple[Float[ndarray, "C n"], Float[ndarray, "C"]]:
    r"""Fit :math:`\Pr(y = c \mid x) = \operatorname{softmax}(Wx + b)_c` by Newton's method.

    To add the same vector to all rows of :math:`W`, or the same number to all biases,
    changes no probability. Of all fits this is the one in which both sum to zero.

    Equals ``sklearn.linear_model.LogisticRegression`` with ``C = 1 / (penalty *
    len(X))``, its biases shifted to sum to zero.

    Args:
        X: points.
        y: labels 0, …, C − 1.
        penalty: the factor :math:`\lambda` of :math:`\frac{\lambda}{2} \|W\|^2`, which is
            added to the mean cross-entropy; the biases are free. Without it the classes
            must overlap, or there is no minimum.

    Example:
        >>> X = np.repeat([[0.0], [1.0]], 4, axis=0)
        >>> y = np.array([0, 0, 1, 2, 0, 1, 2, 2])
        >>> W, b = softmax_regression(X, y)
        >>> softmax(X[[0, 4]] @ W.T + b).round(3).tolist()  # as counted
        [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]
    """
    who = "softmax_regression"
    return _fit(who, X, y, penalty, _check_data(who, X, y, penalty))


def _fit(
    who: str, X: Float[ndarray, "s n"], y: Int[ndarray, "s"], penalty: float, C: int
) -> tuple[Float[ndarray, "C n"], Float[ndarray, "C"]]:
    must, got = "overlap, or the weights grow without end", "classes kept apart"
    hint = "Give a penalty, or see perceptron.separate and max_margin."
    check(penalty > 0 or overlap(X, y), f"{who}: classes", must, got, hint)
    m, Y = X.shape[1] + 1, one_hot(y, C)
    Z, shift, scale = _standard(who, X)
    shrink = np.tile(np.append(penalty / scale**2, 0.0), C)

    def split(v: ndarray) -> tuple[ndarray, ndarray]:
        return v.reshape(C, m)[:, :-1], v.reshape(C, m)[:, -1]

    def cost(v: ndarray) -> float:
        o = scores(v)
        lead = (Y * o).sum(axis=1) - logsumexp(o[Y == 0].reshape(-1, C - 1))[:, 0]
        loss = np.logaddexp(0.0, -lead)  # cross-entropy, exact also near zero
        return float(loss.mean() + shrink @ v**2 / 2)

    def slope(v: ndarray) -> ndarray:
        return softmax_gradient(Z, y, *split(v)).ravel() + shrink * v

    def curvature(v: ndarray) -> ndarray:
        return softmax_hessian(Z, *split(v)) + np.diag(shrink)

    def scores(v: ndarray) -> ndarray:
        W, b = split(v)
        return Z @ W.T + b

    rank = C * m - 1 if penalty > 0 else 0  # the biases may move together
    v = _newton(who, np.zeros(C * m), cost, slope, curvature, scores, rank)
    W, b = split(v)
    W = (W - W.mean(axis=0)) / scale
    return W, b - b.mean() - W @ shift


def _newton(
    who: str,
    v: Float[ndarray, "m"],
    cost: Callable[[ndarray], float],
    slope: Callable[[ndarray], ndarray],
    curvature: Callable[[ndarray], ndarray],
    scores: Callable[[ndarray], ndarray],
    rank: int,
) -> Float[ndarray, "m"]:
    r"""Minimise a convex cost by :math:`v \leftarrow v - t H^{-1} g`.

    Where the cost is constant along a direction, :math:`H u = g` has many solutions, and
    least squares takes a short one; ``t`` is halved until the cost falls by at least a quarter
    of what the slope promises, up to rounding. The end is where a step hardly moves a score:
    the cost alone would not show how far it is along a valley that is nearly level.

    Args:
        who: for messages.
        v: start.
        cost: the function to minimise.
        slope: its gradient.
        curvature: its Hessian.
        scores: the linear map from weights to scores.
        rank: the least that the Hessian may have at the end.
    """
    for _ in range(_MAX_STEPS):
        g, H = slope(v), curvature(v)
        size = np.sqrt(np.diag(H))  # so that units of measurement do not matter
        size = np.where(size == 0, 1.0, size)
        u, _, found, _ = np.linalg.lstsq(H / np.outer(size, size), g / size)
        step = u / size
        promise, t, here = float(g @ step), 1.0, cost(v)
        if np.abs(scores(step)).max() <= _NEAR * (1 + np.abs(scores(v)).max()):
            ok, hint = (
                bool(found >= rank),
                "Take a larger one, or 0 if classes overlap.",
            )
            check(ok, f"{who}: penalty", "outweigh rounding", "one lost in it", hint)
            return v - step
        allowed = here * (1 + _ROUNDING)
        while cost(v - t * step) > allowed - t * promise / 4:
            t /= 2
        v = v - t * step
    raise ValueError(
        f"{who}: Newton's method must settle in {_MAX_STEPS} steps."
        " Give a larger penalty."
    )


def _standard(
    who: str, X: Float[ndarray, "s n"]
) -> tuple[Float[ndarray, "s n"], Float[ndarray, "n"], Float[ndarray, "n"]]:
    """Return centred columns of largest entry 1 (or all 0), their shifts and scales."""
    shift = X.mean(axis=0)
    scale = np.abs(X - shift).max(axis=0)
    scale = np.where(scale == 0, 1.0, scale)
    ok = bool(((scale > 1 / _LIMIT) & (scale < _LIMIT)).all())
    must = f"spread over {1 / _LIMIT:g} to {_LIMIT:g} in each column, or not at all"
    check(ok, f"{who}: X", must, scale, "Measure in other units.")
    return (X - shift) / scale, shift, scale


def _check_data(
    who: str, X: Float[ndarray, "s n"], y: Int[ndarray, "s"], penalty: float = 0.0
) -> int:
    """Return the number of classes."""
    ok = isinstance(X, ndarray) and isinstance(y, ndarray)
    check(ok, f"{who}: X and y", "be arrays", (type(X), type(y)))
    whole = y.dtype.kind in "iu"
    check(whole, f"{who}: y", "be whole numbers", y.dtype, "Pass y.astype(int).")
    check_data(who, X, y)
    labels = np.unique(y)
    ok = len(labels) > 1 and np.array_equal(labels, np.arange(len(labels)))
    must, hint = "be 0, 1, … without gaps", "For −1 and +1, pass (y + 1) // 2."
    check(ok, f"{who}: y", f"{must}, at least two classes", labels, hint)
    check_between(f"{who}: penalty", penalty, 0, _LIMIT, "[)")
    return len(labels)
