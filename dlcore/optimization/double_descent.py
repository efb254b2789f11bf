r"""Fits with more weights than examples: random features, and the error of the shortest fit."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import (
    check,
    check_between,
    check_columns,
    check_finite,
    check_matrix,
    check_shape,
    check_whole,
)

__all__ = ["expected_error", "fourier_features"]


def expected_error(p: int, s: int, used: float, left: float, noise: float) -> float:
    r"""Return the expected squared error of the minimum-norm least-squares fit.

    Features are independent standard Gaussians, :math:`y = x^\top w + \varepsilon`, and
    the fit sees :math:`s` examples and the first :math:`p` features. With
    :math:`v = \lVert w_{\text{left}} \rVert^2 + \sigma^2`, the error on a new example
    is (Belkin, Hsu and Xu 2020)

    .. math::
        v \Bigl(1 + \frac{p}{s - p - 1}\Bigr) & \quad p \le s - 2 \text{ or } p = 0 \\
        \lVert w_{\text{used}} \rVert^2 \Bigl(1 - \frac sp\Bigr)
            + v \Bigl(1 + \frac{s}{p - s - 1}\Bigr) & \quad p \ge s + 2

    and infinite in between, unless :math:`v = 0`.

    Args:
        p: number of features in the fit.
        s: number of examples.
        used: squared length of the true weights of these features.
        left: squared length of the true weights of all others.
        noise: variance of the noise.

    Example:
        >>> [round(expected_error(p, 10, 1.0, 0.0, 1.0), 2) for p in (5, 8, 10, 12, 40)]
        [2.25, 9.0, inf, 11.17, 2.09]
    """
    check_whole("expected_error: p", p, 0)
    check_whole("expected_error: s", s, 1)
    for name, value in [("used", used), ("left", left), ("noise", noise)]:
        check_between(f"expected_error: {name}", value, 0, np.inf, "[)")
    ok = p > 0 or used == 0
    check(ok, "expected_error: used", "be 0 if no feature is used", used)
    v = left + noise
    unseen = used * max(0.0, 1 - s / p) if p else 0.0
    gap = abs(s - p) - 1
    if v == 0 or p == 0:
        return unseen + v
    if gap <= 0:
        return np.inf
    return unseen + v * (1 + min(p, s) / gap)


def fourier_features(
    X: Float[ndarray, "s n"], A: Float[ndarray, "p n"], b: Float[ndarray, "p"]
) -> Float[ndarray, "s p"]:
    r"""Return the Fourier features :math:`\cos(a_j^\top x + b_j)` of the rows of ``X``.

    With random frequencies and phases they are a hidden layer that is not trained
    (Rahimi and Recht 2007).

    Equals ``torch.nn.functional.linear`` followed by a cosine.

    Args:
        X: inputs, rows are examples.
        A: a row of frequencies for each feature.
        b: a phase for each feature.

    Example:
        >>> A, b = np.array([[1.0], [2.0]]), np.zeros(2)
        >>> fourier_features(np.array([[np.pi]]), A, b).round(3).tolist()
        [[-1.0, 1.0]]
    """
    check_matrix("fourier_features: A", A, "have a row per feature")
    check_columns("fourier_features: X", X, A.shape[1])
    check_finite("fourier_features: X, A and b", X, A, b)
    check_shape("fourier_features: b", b, len(A))
    return np.cos(X @ A.T + b)
