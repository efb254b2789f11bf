r"""A map in which near points stay near: t-SNE.

Neighbours in the data have probabilities :math:`p_{ij}`, neighbours in the map
:math:`q_{ij}`; the map is moved until :math:`\operatorname{KL}(p \,\|\, q)` is small.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import (
    check,
    check_between,
    check_data,
    check_finite,
    check_positive,
    check_shape,
    check_whole,
)

__all__ = [
    "Map",
    "bandwidths",
    "conditional",
    "divergence",
    "gradient",
    "perplexity",
    "similarities",
    "squared_distances",
    "tsne",
]


def squared_distances(X: Float[ndarray, "s n"]) -> Float[ndarray, "s s"]:
    r"""Return the squared distances between all pairs of points.

    They are :math:`\|x_i - x_j\|^2`, exactly zero on the diagonal.

    Equals ``scipy.spatial.distance.cdist`` with the metric ``"sqeuclidean"``.

    Example:
        >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]])).tolist()
        [[0.0, 25.0], [25.0, 0.0]]
    """
    squares = (X**2).sum(axis=1)
    d2 = squares[:, None] + squares - 2 * X @ X.T
    np.fill_diagonal(d2, 0)
    return np.maximum(d2, 0)


def conditional(
    d2: Float[ndarray, "s s"], beta: Float[ndarray, "s"]
) -> Float[ndarray, "s s"]:
    r"""Return the probabilities with which each point chooses another as its neighbour.

    They are :math:`p_{j|i} \propto e^{-\beta_i d_{ij}^2}` for :math:`j \ne i`.

    Args:
        d2: squared distances.
        beta: :math:`1 / (2 \sigma_i^2)`, one per point.

    Example:
        >>> conditional(1 - np.eye(3), np.ones(3)).tolist()  # all equally far
        [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
    """
    away = np.where(np.eye(len(d2), dtype=bool), np.inf, d2)
    nearest = away.min(axis=1, keepdims=True)  # divides out, and nothing vanishes
    p = np.exp(-beta[:, None] * (away - nearest))
    return p / p.sum(axis=1, keepdims=True)


def perplexity(p: Float[ndarray, "s k"]) -> Float[ndarray, "s"]:
    r"""Return the perplexity of each row: the number of neighbours it has, in effect.

    .. math:: e^{H(p_i)}

    Example:
        >>> p = np.array([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]])
        >>> perplexity(p).round(6).tolist()
        [4.0, 1.0]
    """
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    return np.exp(-(p * logs).sum(axis=1))


def bandwidths(
    d2: Float[ndarray, "s s"], target: float, rounds: int = 100
) -> Float[ndarray, "s"]:
    r"""Find the bandwidth with which each point has a given perplexity, by bisection.

    The result are :math:`\beta_i = 1 / (2 \sigma_i^2)`.

    Args:
        d2: squared distances.
        target: the perplexity.
        rounds: of halving an interval for :math:`\log \beta_i`.

    Example:
        >>> d2 = squared_distances(np.array([[0.0], [1.0], [3.0], [7.0]]))
        >>> perplexity(conditional(d2, bandwidths(d2, 2.0))).round(6).tolist()
        [2.0, 2.0, 2.0, 2.0]
    """
    s = len(d2)
    check_between("t-SNE: perplexity", target, 1, s - 1, "()")
    away = np.where(np.eye(s, dtype=bool), np.inf, d2)
    nearest = away.min(axis=1)
    ties = (away == nearest[:, None]).sum(axis=1)
    rule = f"exceed {ties.max()}, the equally near neighbours of a point"
    check(bool((ties < target).all()), "t-SNE: perplexity", rule, target)
    spread = (np.where(np.isinf(away), 0, away) - nearest[:, None]).max(axis=1)
    low, high = -40 - np.log(spread), 60 - np.log(spread)
    for _ in range(rounds):
        middle = (low + high) / 2
        wide = perplexity(conditional(d2, np.exp(middle))) > target
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return np.exp((low + high) / 2)


def similarities(X: Float[ndarray, "s n"], target: float) -> Float[ndarray, "s s"]:
    r"""Return the symmetric similarities of points that t-SNE preserves.

    They are :math:`p_{ij} = (p_{j|i} + p_{i|j}) / 2s`, with sum one.

    Args:
        X: points as rows.
        target: the perplexity.

    Example:
        >>> P = similarities(np.array([[0.0], [1.0], [3.0], [7.0]]), 2.0)
        >>> round(float(P.sum()), 6), bool(np.allclose(P, P.T))
        (1.0, True)
    """
    check_data("t-SNE", X)
    d2 = squared_distances(X)
    p = conditional(d2, bandwidths(d2, target))
    return (p + p.T) / (2 * len(X))


def divergence(
    P: Float[ndarray, "s s"], Z: Float[ndarray, "s m"]
) -> tuple[float, Float[ndarray, "s m"]]:
    r"""Return the cost of a t-SNE map, a Kullback–Leibler divergence, and its gradient.

    .. math::
        w_{ij} &= (1 + \|z_i - z_j\|^2)^{-1}, \quad w_{ii} = 0 \\
        q_{ij} &= w_{ij} / \textstyle\sum_{kl} w_{kl} \\
        J &= \textstyle\sum_{i \ne j} p_{ij} \log (p_{ij} / q_{ij}) \\
        \nabla_{z_i} J &= 4 \textstyle\sum_j (p_{ij} - q_{ij})\, w_{ij}\, (z_i - z_j)

    Equals ``sklearn.manifold._t_sne._kl_divergence``.

    Args:
        P: symmetric similarities with sum one, zero on the diagonal.
        Z: the map, points as rows.

    Example:
        >>> P = np.array([[0.0, 0.5], [0.5, 0.0]])  # two points are neighbours anywhere
        >>> divergence(P, np.array([[0.0], [3.0]]))[0]
        0.0
    """
    check_shape("divergence: P", P, len(Z), len(Z))
    w = 1 / (1 + squared_distances(Z))
    np.fill_diagonal(w, 0)
    Q = w / w.sum()
    some = P > 0
    J = float((P[some] * np.log(P[some] / Q[some])).sum())
    return J, gradient(P, Q, w, Z)


def gradient(
    P: Float[ndarray, "s s"],
    Q: Float[ndarray, "s s"],
    w: Float[ndarray, "s s"],
    Z: Float[ndarray, "s m"],
) -> Float[ndarray, "s m"]:
    r"""Return the gradient of the t-SNE cost, given the similarities of data and map.

    It is :math:`4 \sum_j F_{ij} (z_i - z_j)` with :math:`F = (P - Q) \odot w`.

    Args:
        P: similarities of the data.
        Q: similarities in the map.
        w: the weights :math:`w_{ij}` of :func:`divergence`.
        Z: the map, points as rows.

    Example:
        >>> P, Z = np.array([[0.0, 0.5], [0.5, 0.0]]), np.array([[0.0], [1.0]])
        >>> gradient(P, np.zeros((2, 2)), np.ones((2, 2)), Z).tolist()
        [[-2.0], [2.0]]
    """
    F = (P - Q) * w
    return 4 * (F.sum(axis=1, keepdims=True) * Z - F @ Z)


class Map(NamedTuple):
    """A map made by :func:`tsne`, and its cost.

    Attributes:
        Z: the map, points as rows.
        cost: the divergence at the end.

    Example:
        >>> X = np.arange(8.0)[:, None] ** 2
        >>> found = tsne(X, 3.0, np.random.default_rng(0), steps=20)
        >>> bool(np.allclose(found.Z.mean(axis=0), 0)), found.cost > 0
        (True, True)
    """

    Z: Float[ndarray, "s m"]
    cost: float


def tsne(
    X: Float[ndarray, "s n"],
    target: float,
    rng: Generator,
    steps: int = 500,
    lr: float | None = None,
    early: int = 100,
    factor: float = 12.0,
    m: int = 2,
) -> Map:
    r"""Draw a map of points in which near points stay near, by gradient descent.

    For the first steps all :math:`p_{ij}` are multiplied by a factor ("early
    exaggeration"), so that neighbours find each other while the map is small. Each
    coordinate has a gain, which grows while it moves in one direction and shrinks when it
    turns (van der Maaten and Hinton, 2008).

    Args:
        X: points as rows.
        target: the perplexity.
        rng: source of the first map, a tiny cloud.
        steps: of gradient descent.
        lr: step size; without it the number of points over the factor, or 10 if that is more.
        early: number of steps with exaggeration.
        factor: of the exaggeration.
        m: dimensions of the map.

    Example:
        >>> X = np.concatenate([np.arange(5.0), 100 + np.arange(5.0)])[:, None]
        >>> Z = tsne(X, 3.0, np.random.default_rng(0)).Z
        >>> near = (squared_distances(Z) + 1e9 * np.eye(10)).argmin(axis=1)
        >>> (near // 5).tolist()  # the group of each point's neighbour in the map
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    """
    check_whole("tsne: steps", steps, 1)
    check_whole("tsne: early", early, 0)
    check_whole("tsne: m", m, 1)
    P = similarities(X, target)
    s = len(X)
    lr = max(s / factor, 10.0) if lr is None else lr
    check_positive("tsne: lr", lr)
    Z = 1e-4 * rng.normal(size=(s, m))
    velocity, gain = np.zeros_like(Z), np.ones_like(Z)
    for t in range(steps):
        w = 1 / (1 + squared_distances(Z))
        np.fill_diagonal(w, 0)
        more = factor if t < early else 1.0
        g = gradient(more * P, w / w.sum(), w, Z)
        onward = np.sign(g) != np.sign(velocity)
        gain = np.maximum(np.where(onward, gain + 0.2, 0.8 * gain), 0.01)
        velocity = (0.5 if t < early else 0.8) * velocity - lr * gain * g
        Z = Z + velocity
    check_finite("tsne: map", Z)
    return Map(Z - Z.mean(axis=0), divergence(P, Z)[0])
