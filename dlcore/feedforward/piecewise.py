r"""Continuous piecewise linear functions of one variable, as sums of ReLUs and in networks."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import check, check_finite, check_shape
from dlcore.feedforward.network import Network
from dlcore.feedforward.regions import check_relu

__all__ = ["ReluSum", "breakpoints", "relu_sum"]

_LEVEL = 1e-12  # a sum up to this part of its largest value is taken for zero
_STRAIGHT = 1e-9  # a change of slope up to this part of it is taken for none
_ROUND = 1e-13  # a change of height up to this part of its terms is none


class ReluSum(NamedTuple):
    r"""A sum of ReLUs, :math:`f(t) = a t + c + \sum_k v_k \max(0, t - t_k)`.

    Attributes:
        a: slope on the left, :math:`a`.
        c: constant :math:`c`.
        v: changes of slope :math:`v_k`.
        knots: where they are, :math:`t_k`.

    Example:
        >>> f = ReluSum(-1.0, 0.0, np.array([2.0]), np.array([0.0]))
        >>> f(np.array([-3.0, 2.0])).tolist()  # |t|
        [3.0, 2.0]
    """

    a: float
    c: float
    v: Float[ndarray, "k"]
    knots: Float[ndarray, "k"]

    def __call__(self, t: Float[ndarray, "s"]) -> Float[ndarray, "s"]:
        """Evaluate the sum."""
        t = np.asarray(t, dtype=float)
        bends = np.maximum(0, t[:, None] - self.knots)
        return self.a * t + self.c + bends @ self.v


def relu_sum(x: Float[ndarray, "k"], y: Float[ndarray, "k"]) -> ReluSum:
    r"""Write the polyline through the points :math:`(x_i, y_i)` as a sum of ReLUs.

    The first slope goes into the affine part, and each inner knot gets a ReLU weighted
    with the change of slope there.

    Equals ``scipy.interpolate.make_interp_spline`` with ``k=1``.

    Args:
        x: knots in increasing order, at least two.
        y: the values there.

    Example:
        >>> f = relu_sum(np.array([0.0, 1, 2]), np.array([0.0, 1, 0]))  # a tent
        >>> f.a, f.c, f.v.tolist(), f.knots.tolist()
        (1.0, 0.0, [-2.0], [1.0])
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    ok, got = x.shape == y.shape == (x.size,), f"shapes {x.shape} and {y.shape}"
    must = "be at least two knots and as many values"
    check(ok and x.size >= 2, "relu_sum: x and y", must, got)
    check_finite("relu_sum: x and y", x, y)
    least = float(np.diff(x).min())
    check(least > 0, "relu_sum: x", "increase", f"a step of {least:g}")
    slopes = np.diff(y) / np.diff(x)
    a = float(slopes[0])
    return ReluSum(a, float(y[0] - a * x[0]), np.diff(slopes), x[1:-1])


def breakpoints(
    network: Network, start: Float[ndarray, "n"], end: Float[ndarray, "n"]
) -> tuple[Float[ndarray, "k"], Float[ndarray, "k out"]]:
    r"""Find where a ReLU network bends along a segment.

    The outputs of a layer are piecewise linear along the segment. So are the sums of the
    next one, and the zeros of these sums are the new bends.

    Args:
        network: with ReLU units.
        start: where the segment begins.
        end: where it ends.

    Returns:
        The numbers ``t`` from 0 to 1, both included, such that the output bends at
        ``start + t * (end - start)``, and the outputs there. Between them it is affine,
        so there are ``len(t) - 1`` linear pieces. What cannot be told from rounding is
        no bend: a change of slope below :math:`10^{-9}` of the slopes beside it.

    Example:
        >>> from dlcore.feedforward.regions import layered, relu
        >>> W = np.array([[1.0], [-1.0]])
        >>> net = layered([(W, np.zeros(2)), (W.T**2, np.zeros(1))], relu)  # |x|
        >>> breakpoints(net, np.array([-1.0]), np.array([3.0]))[0].tolist()
        [0.0, 0.25, 1.0]
    """
    check_relu("breakpoints", network)
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    n = network.layers[0].inputs
    check_shape("breakpoints: start", start, n)
    check_shape("breakpoints: end", end, n)
    check_finite("breakpoints: start and end", start, end)
    *hidden, last = network.layers
    t, X = np.array([0.0, 1.0]), np.array([start, end])
    for layer in hidden:
        t, Z = _with_zeros(t, layer.forward(X)[1])
        X = np.maximum(Z, 0)
    scale = (np.abs(X) @ np.abs(last.W).T + np.abs(last.b)).max(axis=0)
    return _bends(t, last(X), scale)


def _with_zeros(
    t: Float[ndarray, "k"], Z: Float[ndarray, "k m"]
) -> tuple[Float[ndarray, "k2"], Float[ndarray, "k2 m"]]:
    """Add the knots at which one of the piecewise linear functions is zero."""
    Z = np.where(np.abs(Z) <= _LEVEL * np.abs(Z).max(axis=0), 0.0, Z)
    before, unit = np.nonzero(Z[:-1] * Z[1:] < 0)
    z0, z1 = Z[before, unit], Z[before + 1, unit]
    zero = t[before] + z0 / (z0 - z1) * (t[before + 1] - t[before])
    knots = np.unique(np.append(t, zero))
    finer = np.column_stack([np.interp(knots, t, z) for z in Z.T])
    finer[np.searchsorted(knots, zero), unit] = 0.0
    return knots, finer


def _bends(
    t: Float[ndarray, "k"], Y: Float[ndarray, "k out"], scale: Float[ndarray, "out"]
) -> tuple[Float[ndarray, "k2"], Float[ndarray, "k2 out"]]:
    """Drop the inner knots at which no output changes its slope."""
    step = np.diff(t)[:, None]
    slopes = np.diff(Y, axis=0) / step
    size = np.abs(slopes)
    doubt = _STRAIGHT * size + _ROUND * (scale + size) / step
    change = np.abs(np.diff(slopes, axis=0))
    bent = (change > doubt[:-1] + doubt[1:]).any(axis=1)
    keep = np.concatenate([[True], bent, [True]])
    return t[keep], Y[keep]
