r"""Principal components: the flat space of ``k`` dimensions that lies closest to the points."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import check, check_columns, check_data, check_whole

__all__ = ["PCA", "pca"]


@dataclass(frozen=True, eq=False)
class PCA:
    r"""A linear code of ``k`` numbers, :math:`z = V(x - \bar x)`, and its decoder.

    The decoder returns :math:`\bar x + V^\top z`.

    Attributes:
        mean: the mean :math:`\bar x` of the points.
        V: the first ``k`` principal axes as rows, orthonormal.
        variances: of the points along all principal axes, largest first.

    Example:
        >>> X = np.array([[3.0, 0], [-3, 0], [0, 1], [0, -1]])
        >>> code = pca(X, 1)  # the first axis is horizontal
        >>> abs(code.encode(X)).ravel().round(3).tolist(), round(code.cost, 3)
        ([3.0, 3.0, 0.0, 0.0], 0.25)
    """

    mean: Float[ndarray, "n"]
    V: Float[ndarray, "k n"]
    variances: Float[ndarray, "n"]

    def encode(self, X: Float[ndarray, "s n"]) -> Float[ndarray, "s k"]:
        """Return the coordinates along the axes."""
        check_columns("PCA: X", X, len(self.mean))
        return (X - self.mean) @ self.V.T

    def decode(self, Z: Float[ndarray, "s k"]) -> Float[ndarray, "s n"]:
        """Return the points with the given coordinates."""
        check_columns("PCA: Z", Z, len(self.V))
        return self.mean + Z @ self.V

    def __call__(self, X: Float[ndarray, "s n"]) -> Float[ndarray, "s n"]:
        """Return the closest points of the flat space."""
        return self.decode(self.encode(X))

    @property
    def cost(self) -> float:
        r"""The mean of :math:`\frac12 \|\hat x - x\|^2`, half the variances left out."""
        return float(self.variances[len(self.V) :].sum()) / 2


def pca(X: Float[ndarray, "s n"], k: int) -> PCA:
    r"""Find the ``k`` principal axes of points, along which they vary most.

    They are the first right singular vectors of the centred points. The variances
    :math:`\lambda_i = \sigma_i^2 / s` are the eigenvalues of the covariance
    :math:`\frac1s \sum_i (x_i - \bar x)(x_i - \bar x)^\top`.

    Equals ``sklearn.decomposition.PCA``, whose variances divide by ``s - 1``.

    Args:
        X: points as rows.
        k: how many axes to keep, at most as many as there are columns.

    Example:
        >>> X = np.array([[3.0, 0], [-3, 0], [0, 1], [0, -1]])
        >>> pca(X, 1).variances.round(3).tolist()  # 18/4 and 2/4
        [4.5, 0.5]
    """
    check_data("pca", X)
    check_whole("pca: k", k, 1)
    s, n = X.shape
    check(k <= n, "pca: k", f"be at most the dimension {n}", k)
    mean = X.mean(axis=0)
    _, sigma, V = np.linalg.svd(X - mean, full_matrices=s < n)
    variances = np.zeros(n)
    variances[: len(sigma)] = sigma**2 / s
    return PCA(mean, V[:k], variances)
