r"""Regression without training: the mean of known values, the nearer the more (1964).

A query :math:`q` gets the values :math:`v_i` of the keys :math:`k_i` with the weights

.. math::
    \alpha_i(q) = \frac{K(\lVert q - k_i \rVert / h)}{\sum_j K(\lVert q - k_j \rVert / h)} .
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import check, check_columns, check_data, check_finite, check_one_of

__all__ = [
    "KERNELS",
    "boxcar",
    "epanechnikov",
    "gaussian",
    "predict",
    "triangular",
    "weights",
]


def gaussian(u: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
    r"""Return the Gaussian kernel :math:`e^{-u^2/2}`, which reaches everywhere.

    Example:
        >>> gaussian(np.array([0.0, 1.0, 2.0])).round(4).tolist()
        [1.0, 0.6065, 0.1353]
    """
    return np.exp(-(u**2) / 2)


def boxcar(u: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
    r"""Return the boxcar kernel: 1 within the distance 1, and 0 beyond.

    Example:
        >>> boxcar(np.array([0.5, 1.0, 1.5])).tolist()
        [1.0, 1.0, 0.0]
    """
    return np.where(np.abs(u) <= 1, 1.0, 0.0)


def triangular(u: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
    r"""Return the triangular kernel :math:`\max(0, 1 - |u|)`.

    Example:
        >>> triangular(np.array([0.0, 0.25, 1.5])).tolist()
        [1.0, 0.75, 0.0]
    """
    return np.maximum(0, 1 - np.abs(u))


def epanechnikov(u: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
    r"""Return the kernel :math:`\tfrac34 \max(0, 1 - u^2)` of Epanechnikov (1969).

    Example:
        >>> epanechnikov(np.array([0.0, 0.5, 1.0])).tolist()
        [0.75, 0.5625, 0.0]
    """
    return 0.75 * np.maximum(0, 1 - u**2)


#: The kernels by name.
KERNELS: dict[str, Callable[[ndarray], ndarray]] = {
    "Gaussian": gaussian,
    "boxcar": boxcar,
    "triangular": triangular,
    "Epanechnikov": epanechnikov,
}


def weights(
    queries: Float[ndarray, "m n"],
    keys: Float[ndarray, "s n"],
    width: float | Float[ndarray, "n"],
    kernel: str = "Gaussian",
) -> Float[ndarray, "m s"]:
    r"""Return the weight of each key for each query in kernel regression.

    A row holds the weights :math:`\alpha_i(q)` of a query, with the sum 1.

    Equals ``sklearn.neighbors.KernelDensity`` of each key alone, over the sum of all,
    for the kernels other than the boxcar.

    Args:
        queries: points to predict at.
        keys: points with known values.
        width: the width :math:`h`, for all coordinates or for each.
        kernel: a name from :data:`KERNELS`.

    Returns:
        Weights. A row is zero where no key is within reach.

    Example:
        >>> query, keys = np.array([[0.0]]), np.array([[0.0], [1.0], [3.0]])
        >>> weights(query, keys, 1.5, "triangular").round(6).tolist()  # 1 to 1/3 to 0
        [[0.75, 0.25, 0.0]]
    """
    check_data("weights", keys)
    check_columns("weights: queries", queries, keys.shape[1])
    check_finite("weights: queries", queries)
    check_one_of("weights: kernel", kernel, KERNELS)
    ok = np.shape(width) in ((), keys.shape[1:]) and bool(np.all(width > 0))
    check(ok, "weights: width", f"be positive: one number, or {keys.shape[1]}", width)
    apart = (queries[:, None] - keys[None]) / width
    u = np.linalg.norm(apart, axis=2)
    if kernel == "Gaussian":  # the nearest key has the weight one: no 0 / 0 far away
        u = np.sqrt(u**2 - (u**2).min(axis=1, keepdims=True))
    near = KERNELS[kernel](u)
    total = near.sum(axis=1, keepdims=True)
    return np.divide(near, total, out=np.zeros_like(near), where=total > 0)


def predict(
    queries: Float[ndarray, "m n"],
    keys: Float[ndarray, "s n"],
    values: Float[ndarray, "s *k"],
    width: float | Float[ndarray, "n"],
    kernel: str = "Gaussian",
) -> Float[ndarray, "m *k"]:
    r"""Return the predictions of kernel regression (Nadaraya 1964; Watson 1964).

    They are the means :math:`\sum_i \alpha_i(q)\, v_i`.

    With one-hot values these are probabilities of classes.

    Equals ``sklearn.neighbors.RadiusNeighborsRegressor`` if the kernel is the boxcar.

    Args:
        queries: points to predict at.
        keys: points with known values.
        values: the value of each key: a number, or a row.
        width: the width :math:`h`, for all coordinates or for each.
        kernel: a name from :data:`KERNELS`.

    Returns:
        Predictions; NaN where no key is within reach.

    Example:
        >>> keys, values = np.array([[-1.0], [1.0], [5.0]]), np.array([2.0, 4.0, 9.0])
        >>> predict(np.array([[0.0]]), keys, values, 1.5, "boxcar").tolist()
        [3.0]
    """
    check_data("predict", keys, values, dims=2)
    alpha = weights(queries, keys, width, kernel)
    mean: ndarray = alpha @ values
    mean[alpha.sum(axis=1) == 0] = np.nan
    return mean
