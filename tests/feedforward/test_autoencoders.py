from math import inf, log10

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from strategies import SEED

from dlcore.connectionism.dense_memory import modern_update
from dlcore.feedforward.activations import identity, tanh
from dlcore.feedforward.autoencoders import (
    autoencoder,
    gaussian_noise,
    posterior_mean,
    psnr,
    split,
)
from dlcore.feedforward.losses import squared
from dlcore.feedforward.network import mlp
from dlcore.feedforward.pca import pca
from dlcore.optimization.optimizers import GD
from dlcore.optimization.training import fit


def test_an_autoencoder_is_the_mirror_image_of_its_encoder():
    net = autoencoder([6, 5, 2], tanh, default_rng(0))
    shapes = [layer.W.shape for layer in net.layers]
    assert shapes == [(5, 6), (2, 5), (5, 2), (6, 5)]
    linear = [layer.phi is identity for layer in net.layers]
    assert linear == [False, True, False, True]


def test_an_autoencoder_computes_what_torch_computes():
    net, nn = autoencoder([6, 5, 2], tanh, default_rng(0)), torch.nn
    shapes = [(6, 5), (5, 2), (2, 5), (5, 6)]
    linear = [nn.Linear(*shape, dtype=torch.float64) for shape in shapes]
    for theirs, ours in zip(linear, net.layers, strict=True):
        theirs.weight.data = torch.tensor(ours.W)
        theirs.bias.data = torch.tensor(ours.b)
    a, b, c, d = linear
    theirs = nn.Sequential(a, nn.Tanh(), b, c, nn.Tanh(), d)
    X = default_rng(1).normal(size=(4, 6))
    assert_allclose(net(X), theirs(torch.tensor(X)).detach().numpy())


@given(st.integers(1, 3), SEED)
def test_the_parts_of_a_network_make_the_whole_and_share_its_arrays(k, seed):
    net = mlp([3, 4, 2, 5, 3], tanh, default_rng(seed))
    X = default_rng(seed).normal(size=(7, 3))
    encoder, rest = split(net, k)
    assert_array_equal(rest(encoder(X)), net(X))
    assert encoder.size + rest.size == net.size
    encoder.parameters()[0][:] = 0
    assert_array_equal(rest(encoder(X)), net(X))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.usefixtures("unchecked")  # many steps
def test_a_trained_linear_autoencoder_projects_on_the_principal_axes(k):
    rng = default_rng(k)
    X = rng.normal(size=(100, 3)) * [2, 1.2, 0.6] + [1, 0, -1]
    net = autoencoder([3, k], identity, rng)
    fit(net, X, X, squared, GD(net.parameters(), 0.05), 2000, rng)
    assert_allclose(net(X), pca(X, k)(X), atol=1e-3)


def test_noise_has_a_level_of_its_own_for_each_row():
    noise = gaussian_noise(2.0, default_rng(0))(np.zeros((2000, 400)))
    levels = noise.std(axis=1)
    assert_allclose(np.quantile(levels, [0.1, 0.5, 0.9]), [0.2, 1, 1.8], 0.1)
    assert abs(noise.mean()) < 0.01
    X = default_rng(1).normal(size=(3, 4))
    assert_array_equal(gaussian_noise(0.0, default_rng(0))(X), X)


def test_psnr_by_hand():
    X = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert psnr(X + 0.1, X) == pytest.approx(20)
    assert psnr(X + np.array([0.2, 0.0]), X) == pytest.approx(-10 * log10(0.02))
    assert psnr(25.5 + 255 * X, 255 * X, peak=255) == pytest.approx(20)
    assert psnr(X, X) == inf


@given(st.integers(1, 6), st.integers(1, 4), st.floats(0.2, 3), SEED)
def test_posterior_mean_is_bayes_theorem(s, n, sigma, seed):
    rng = default_rng(seed)
    X, noisy = rng.normal(size=(s, n)), rng.normal(size=(5, n))
    got = posterior_mean(noisy, X, sigma)
    for x, m in zip(noisy, got, strict=True):
        p = [multivariate_normal.pdf(x, c, sigma**2) for c in X]
        assert_allclose(m, p @ X / np.sum(p), rtol=1e-8, atol=1e-12)


def test_posterior_mean_of_patterns_is_the_modern_update():
    rng = default_rng(0)
    X, x = rng.choice([-1.0, 1.0], size=(9, 5)), rng.normal(size=(4, 5))
    assert_allclose(posterior_mean(x, X, 0.5), modern_update(x, X, beta=4.0))


def test_posterior_mean_does_not_depend_on_the_origin():
    X, noisy = np.array([[0.0], [1.0]]), np.array([[0.25], [0.5]])
    p = 1 / (1 + np.exp((1 - 2 * noisy) / 0.5))  # by hand, sigma = 1/2
    assert_allclose(posterior_mean(noisy, X, 0.5), p)
    assert_allclose(posterior_mean(noisy + 2**30, X + 2**30, 0.5) - 2**30, p)


def test_without_noise_the_closest_point_is_returned():
    X = default_rng(0).normal(size=(50, 3))
    assert_allclose(posterior_mean(X + 1e-6, X, 1e-3), X)
    assert_allclose(posterior_mean(X, X, 1e9), 0 * X + X.mean(axis=0))


ONE = np.ones((2, 2))
NET = mlp([2, 2], tanh, default_rng(0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: autoencoder([3], tanh, default_rng(0)), "inputs and code"),
        (lambda: split(NET, 0), "layer must be a whole number from 1 on"),
        (lambda: split(NET, 1), "leave one of the 1 layers; got 1"),
        (lambda: gaussian_noise(-1, default_rng(0)), "be at least 0; got -1"),
        (lambda: gaussian_noise(np.nan, default_rng(0)), "got nan"),
        (
            lambda: psnr(ONE, ONE[0]),
            r"X_hat must have the shape \(2,\); got shape \(2, 2\)",
        ),
        (lambda: psnr(ONE[:0], ONE[:0]), r"have pixels; got shape \(0, 2\)"),
        (lambda: psnr(ONE * np.nan, ONE), "X_hat and X must be finite"),
        (lambda: posterior_mean(ONE, ONE[:0], 1), "X must have points as rows"),
        (lambda: posterior_mean(ONE * np.nan, ONE, 1), "X_noisy must be finite"),
        (lambda: psnr(ONE, ONE, 0), "peak must be positive; got 0"),
        (lambda: posterior_mean(ONE, ONE, 0), "sigma must be positive; got 0"),
        (
            lambda: posterior_mean(ONE, np.ones((2, 3)), 1),
            r"X_noisy must have 3 columns; got shape \(2, 2\)",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
