r"""How large the signal is, layer by layer, on its way up and on its way down."""

from collections.abc import Callable
from itertools import pairwise
from math import isfinite, log2, pi, sqrt
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.integrate import quad

from dlcore.checks import check, check_finite, check_matrix, check_positive, check_shape
from dlcore.feedforward.activations import Activation
from dlcore.feedforward.network import Network

__all__ = ["Signal", "gains", "gaussian_mean", "signal"]

_FAR = 38.0  # standard deviations; beyond, the density is less than any float


class Signal(NamedTuple):
    r"""Mean squares of signals and of gradients, at the inputs and after each layer.

    Attributes:
        forward: of :math:`x^{(l)}`.
        backward: of :math:`p^{(l)} = \partial J / \partial x^{(l)}`.

    Example:
        >>> s = Signal(forward=np.array([4.0, 2.0, 1.0]), backward=np.ones(3))
        >>> (s.forward[1:] / s.forward[:-1]).tolist()  # every layer halves the signal
        [0.5, 0.5]
    """

    forward: Float[ndarray, "layers"]
    backward: Float[ndarray, "layers"]


def signal(
    network: Network, X: Float[ndarray, "s n"], P: Float[ndarray, "s m"]
) -> Signal:
    """Send inputs forward and gradients backward, and measure both in every layer.

    Args:
        network: what they pass through.
        X: inputs :math:`x^{(0)}`, rows are samples.
        P: gradients of a cost by the outputs, one row for each input.

    Example:
        >>> from dlcore.feedforward.network import Dense
        >>> network = Network([Dense(np.array([[w]]), np.zeros(1)) for w in (2.0, 3.0)])
        >>> up, down = signal(network, np.array([[5.0]]), np.array([[1.0]]))
        >>> up.tolist(), down.tolist()  # 5, 10, 30 and 6, 3, 1, squared
        ([25.0, 100.0, 900.0], [36.0, 9.0, 1.0])
    """
    X, P = np.asarray(X, float), np.asarray(P, float)
    check_matrix("signal: X", X, "have rows of inputs")
    steps, Y = network.forward(X)
    up = [below for _, below, _ in steps] + [Y]
    check_shape("signal: P", P, *Y.shape, hint="A row per input.")
    check_finite("signal: X and P", X, P)
    down = [P]
    for layer, below, Z in reversed(steps):
        down.append(layer.backward(below, Z, down[-1])[0])
    return Signal(_mean_squares(up), _mean_squares(down[::-1]))


def gaussian_mean(f: Callable[[ndarray], ndarray], variance: float) -> float:
    r"""Return the mean of a function of a Gaussian number.

    This is :math:`\mathbb{E} f(z)` for :math:`z \sim \mathcal{N}(0, v)`.

    Both sides of zero are added, as activations have their kink there, and integrated
    piece by piece, so that neither what happens near zero nor the bell is missed.

    Args:
        f: a function of arrays, entry by entry.
        variance: :math:`v`.

    Example:
        >>> round(gaussian_mean(lambda z: z**4, variance=2.0), 6)  # 3 times its square
        12.0
    """
    check_positive("gaussian_mean: variance", variance)
    sd = sqrt(variance)

    def integrand(t: float) -> float:
        pair = f(np.array([sd * t, -sd * t]))
        return float(pair.sum()) * np.exp(-(t**2) / 2) / sqrt(2 * pi)

    powers = 8.0 ** np.arange(1 + log2(_FAR * max(1, sd)) / 3) / sd
    ends = [0, *np.union1d([1, 6], powers[powers < _FAR]), _FAR]
    error = 1e-12 * min(1, 1 / sd)
    mean = sum(quad(integrand, *p, epsabs=error)[0] for p in pairwise(ends))
    check(isfinite(mean), "gaussian_mean: f", "have a finite mean", mean)
    return float(mean)


def gains(phi: Activation, variance: float = 1.0) -> tuple[float, float]:
    r"""Return the factors of a wide layer on the mean squares of its signals.

    For sums :math:`z \sim \mathcal{N}(0, v)` these are
    :math:`\mathbb{E}\,\varphi(z)^2 / v` on the way up and
    :math:`\mathbb{E}\,\varphi'(z)^2` on the way down, per unit of :math:`n v_w`, the
    variance of the weights times their fan.

    Equals ``scipy.stats.norm.expect`` of these squares.

    Args:
        phi: activation :math:`\varphi`.
        variance: :math:`v` of the weighted sums.

    Example:
        >>> from dlcore.feedforward.activations import relu
        >>> [round(gain, 6) for gain in gains(relu)]
        [0.5, 0.5]
    """
    up = gaussian_mean(lambda z: phi(z) ** 2, variance) / variance
    return up, gaussian_mean(lambda z: phi.derivative(z) ** 2, variance)


def _mean_squares(arrays: list[ndarray]) -> Float[ndarray, "layers"]:
    return np.array([np.mean(a**2) for a in arrays])
