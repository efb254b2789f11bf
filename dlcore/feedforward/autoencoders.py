r"""Autoencoders: networks that predict their input through a code.

An autoencoder is a network whose target is its input. One of its layers is the code; the
layers up to it are the encoder, the others the decoder.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import (
    check,
    check_columns,
    check_data,
    check_finite,
    check_shape,
    check_whole,
)
from dlcore.feedforward.activations import Activation, identity, softmax
from dlcore.feedforward.network import Network, mlp

__all__ = ["autoencoder", "gaussian_noise", "posterior_mean", "psnr", "split"]


def autoencoder(sizes: Sequence[int], phi: Activation, rng: Generator) -> Network:
    """Build an autoencoder: given layers down to the code, and back in mirror image.

    Code and output are linear, all layers between have the activation ``phi``.

    Equals ``torch.nn.Sequential`` of the same layers.

    Args:
        sizes: number of inputs, of units in each layer of the encoder, of the code.
        phi: activation of the other layers.
        rng: source of randomness.

    Example:
        >>> from dlcore.feedforward.activations import tanh
        >>> net = autoencoder([8, 4, 2], tanh, np.random.default_rng(0))
        >>> [layer.outputs for layer in net.layers]
        [4, 2, 4, 8]
    """
    check(len(sizes) >= 2, "autoencoder: sizes", "name inputs and code", sizes)
    network = mlp([*sizes, *sizes[-2::-1]], phi, rng)
    network.layers[len(sizes) - 2].phi = identity
    return network


def split(network: Network, layer: int) -> tuple[Network, Network]:
    """Cut a network in two after a layer, such as an autoencoder after its code.

    Args:
        network: the network.
        layer: the last layer of the first part, counted from 1.

    Returns:
        The part that makes a code and the part that reads it. They share the arrays of
        the network: training one of them changes it too.

    Example:
        >>> net = autoencoder([3, 2], identity, np.random.default_rng(0))
        >>> encoder, decoder = split(net, 1)
        >>> bool((decoder(encoder(np.eye(3))) == net(np.eye(3))).all())
        True
    """
    check_whole("split: layer", layer, 1)
    n = len(network.layers)
    check(layer < n, "split: layer", f"leave one of the {n} layers", layer)
    return Network(network.layers[:layer]), Network(network.layers[layer:])


def gaussian_noise(sigma: float, rng: Generator) -> Callable[[ndarray], ndarray]:
    r"""Return a function that adds noise, :math:`\tilde x = x + u\sigma\,\varepsilon`.

    The numbers :math:`\varepsilon` are standard normal, and each row has its own level: ``u``
    is uniform between 0 and 1.

    Args:
        sigma: the largest level :math:`\sigma`.
        rng: source of randomness.

    Example:
        >>> corrupt = gaussian_noise(1.0, np.random.default_rng(0))
        >>> float(corrupt(np.zeros((10_000, 10))).var().round(2))  # mean of u²: 1/3
        0.33
    """
    check(0 <= sigma < np.inf, "gaussian_noise: sigma", "be at least 0", sigma)

    def corrupt(X: ndarray) -> ndarray:
        level = sigma * rng.random((len(X), 1))
        return X + level * rng.normal(size=X.shape)

    return corrupt


def psnr(
    X_hat: Float[ndarray, "s n"], X: Float[ndarray, "s n"], peak: float = 1.0
) -> float:
    r"""Return the peak signal-to-noise ratio of pictures in decibels.

    .. math:: 10 \log_{10} \frac{\text{peak}^2}{\text{mean of } (\hat x - x)^2}

    Args:
        X_hat: pictures :math:`\hat x` as rows.
        X: what they should be, :math:`x`.
        peak: the largest value of a pixel.

    Example:
        >>> round(psnr(np.full((1, 4), 0.1), np.zeros((1, 4))), 3)  # a tenth off: 20 dB
        20.0
    """
    check_shape("psnr: X_hat", X_hat, *X.shape)
    check(X.size > 0, "psnr: X", "have pixels", f"shape {X.shape}")
    check_finite("psnr: X_hat and X", X_hat, X)
    check(peak > 0, "psnr: peak", "be positive", peak)
    error = float(((X_hat - X) ** 2).mean())
    return float(10 * np.log10(peak**2 / error)) if error else np.inf


def posterior_mean(
    X_noisy: Float[ndarray, "t n"], X: Float[ndarray, "s n"], sigma: float
) -> Float[ndarray, "t n"]:
    r"""Return the mean of a point given a noisy view of it, the best denoiser.

    The rows :math:`x_i` of ``X`` are equally likely, and the noise is Gaussian.

    .. math::
        p_i &\propto e^{-\|\tilde x - x_i\|^2 / 2\sigma^2}, \\
        \mathbb{E}[x \mid \tilde x] &= \sum_i p_i x_i

    Args:
        X_noisy: noisy points :math:`\tilde x` as rows.
        X: the points :math:`x_i` that are possible.
        sigma: standard deviation :math:`\sigma` of the noise.

    Example:
        >>> X = np.array([[-1.0], [1.0]])
        >>> posterior_mean(np.array([[0.5]]), X, 1.0).round(3).tolist()  # tanh(0.5)
        [[0.462]]
    """
    check_data("posterior_mean", X)
    check_columns("posterior_mean: X_noisy", X_noisy, X.shape[1])
    check_finite("posterior_mean: X_noisy", X_noisy)
    check(sigma > 0, "posterior_mean: sigma", "be positive", sigma)
    # of the square, |x~|^2 is the same for all i, and drops out; the rest is exact only
    # for numbers that are not large, so measure from the mean
    mean = X.mean(axis=0)
    X, X_noisy = X - mean, X_noisy - mean
    scores = X_noisy @ X.T - (X**2).sum(axis=1) / 2
    return mean + softmax(scores / sigma**2) @ X
