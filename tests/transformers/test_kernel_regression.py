import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KernelDensity, RadiusNeighborsRegressor
from strategies import seeds

from dlcore.transformers.kernel_regression import (
    KERNELS,
    boxcar,
    epanechnikov,
    predict,
    weights,
)

kernels = st.sampled_from([*KERNELS])
sizes = st.integers(1, 6)
THEIRS = {
    "Gaussian": "gaussian",
    "boxcar": "tophat",
    "triangular": "linear",
    "Epanechnikov": "epanechnikov",
}


@given(seeds, sizes, sizes, st.integers(1, 3), kernels)
def test_weights_are_shares(rng, m, s, n, kernel):
    q, k = rng.normal(size=(m, n)), rng.normal(size=(s, n))
    alpha = weights(q, k, 0.7, kernel)
    assert (alpha >= 0).all()
    reached = alpha.any(axis=1)
    np.testing.assert_allclose(alpha.sum(axis=1), reached)
    near = np.linalg.norm(q[:, None] - k, axis=2).min(axis=1) < 0.7
    assert reached[near].all()


@given(seeds, st.sampled_from(sorted(set(KERNELS) - {"boxcar"})))
def test_weights_are_ratios_of_the_kernels_of_scikit_learn(rng, kernel):
    q, k = rng.uniform(size=(4, 1)), rng.uniform(size=(5, 1))
    alpha = weights(q, k, 1.5, kernel)
    density = [
        np.exp(
            KernelDensity(kernel=THEIRS[kernel], bandwidth=1.5)
            .fit(one[None])
            .score_samples(q)
        )
        for one in k
    ]
    want = np.stack(density, axis=1)
    np.testing.assert_allclose(alpha, want / want.sum(axis=1, keepdims=True))


@given(seeds, st.integers(1, 3))
def test_boxcar_is_the_mean_of_neighbours_in_scikit_learn(rng, n):
    q, k, v = (rng.normal(size=(6, n)), rng.normal(size=(8, n)), rng.normal(size=8))
    with np.errstate(all="ignore"):
        theirs = RadiusNeighborsRegressor(radius=1.0).fit(k, v)
        reached = np.linalg.norm(q[:, None] - k, axis=2).min(axis=1) <= 1
        ours = predict(q, k, v, 1.0, "boxcar")
    assert np.isnan(ours[~reached]).all()
    if reached.any():
        np.testing.assert_allclose(ours[reached], theirs.predict(q[reached]))


@given(seeds, sizes, sizes)
def test_gaussian_weights_are_a_softmax_of_scores(rng, m, s):
    q, k = rng.normal(size=(m, 2)), rng.normal(size=(s, 2))
    scores = -(torch.cdist(torch.tensor(q), torch.tensor(k)) ** 2) / 2 / 0.3**2
    np.testing.assert_allclose(weights(q, k, 0.3), scores.softmax(dim=1))


@given(seeds, kernels)
def test_a_width_for_each_coordinate_rescales_it(rng, kernel):
    q, k = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    h = rng.uniform(0.5, 2, size=2)
    got = weights(q, k, h, kernel)
    np.testing.assert_allclose(got, weights(q / h, k / h, 1.0, kernel))


def test_far_queries_take_the_nearest_value():
    alpha = weights(np.array([[1e4]]), np.array([[0.0], [1.0]]), 1.0)
    np.testing.assert_allclose(alpha, [[0, 1]], atol=1e-300)
    nothing = predict(np.array([[5.0]]), np.zeros((1, 1)), np.ones(1), 1.0, "boxcar")
    assert np.isnan(nothing).all()


def test_by_hand():
    q, k = np.array([[0.25]]), np.array([[0.0], [1.0]])
    np.testing.assert_allclose(weights(q, k, 1.0, "triangular"), [[0.75, 0.25]])
    values = np.array([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(predict(q, k, values, 1.0, "triangular"), [[0.75, 0.25]])
    area = quad(lambda u: epanechnikov(np.array([u]))[0], -1, 1)[0]
    np.testing.assert_allclose(area, 1)


def test_a_wide_kernel_gives_the_mean():
    rng = np.random.default_rng(0)
    k, v = rng.normal(size=(9, 2)), rng.normal(size=9)
    flat = LinearRegression().fit(np.zeros_like(k), v).predict(k[:1])
    np.testing.assert_allclose(predict(k[:1], k, v, 1e8), flat)


K, V = np.zeros((2, 1)), np.zeros(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weights(K, K, 0.0), "width must be positive: one number, or 1"),
        (lambda: weights(K, K, np.ones(2)), "width must be positive"),
        (lambda: weights(K, K, 1.0, "cosine"), "kernel must be one of"),
        (lambda: weights(np.zeros((1, 2)), K, 1.0), "have 1 columns"),
        (lambda: weights(K * np.nan, K, 1.0), "queries must be finite"),
        (lambda: predict(K, K, np.zeros(3), 1.0), "a target for each of the 2"),
        (lambda: predict(K, np.zeros((0, 1)), V, 1.0), "have points as rows"),
    ],
)
def test_refusals(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_boxcar_has_its_border():
    assert boxcar(np.array([-1.0, 1.0, np.nextafter(1, 2)])).tolist() == [1, 1, 0]
