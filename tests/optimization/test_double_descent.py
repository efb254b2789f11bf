import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import seeds

from dlcore.optimization.double_descent import expected_error, fourier_features


@pytest.mark.parametrize("p", [0, 3, 9, 24, 60])
def test_error_equals_simulation(p):
    rng, s, n, sigma = np.random.default_rng(p), 15, 60, 0.5
    w = np.full(n, 0.2)
    errors = []
    for _ in range(1500):
        X = rng.normal(size=(s, n))
        y = X @ w + sigma * rng.normal(size=s)
        fitted = np.zeros(n)
        fitted[:p] = np.linalg.pinv(X[:, :p]) @ y
        errors.append(np.sum((fitted - w) ** 2) + sigma**2)
    expected = expected_error(p, s, p * 0.04, (n - p) * 0.04, sigma**2)
    room = 5 * np.std(errors) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - expected) < room + 1e-12


def test_error_by_hand():
    assert_allclose(expected_error(5, 40, 0, 1, 0.5), 1.5 * 39 / 34)
    assert_allclose(expected_error(80, 40, 2, 0, 1), 1 + 1 + 40 / 39)
    assert expected_error(0, 40, 0, 1, 0.5) == 1.5
    assert expected_error(0, 1, 0, 1, 0.5) == 1.5


@given(s=st.integers(2, 30), gap=st.sampled_from([-1, 0, 1]))
def test_error_is_infinite_where_weights_equal_examples(s, gap):
    p = s + gap
    assert expected_error(p, s, 1, 0, 1) == np.inf
    without_noise = expected_error(p, s, 1, 0, 0)
    assert_allclose(without_noise, max(0, 1 - s / p))


@given(rng=seeds, p=st.integers(1, 9), n=st.integers(1, 5))
def test_features_are_a_layer_of_torch(rng, p, n):
    X, A = rng.normal(size=(6, n)), rng.normal(size=(p, n))
    b = rng.uniform(0, 6, p)
    layer = torch.nn.functional.linear(*map(torch.tensor, (X, A, b))).cos()
    assert_allclose(fourier_features(X, A, b), layer, atol=1e-12)


def test_many_features_approach_the_gaussian_kernel():
    rng, p = np.random.default_rng(0), 200_000
    X = rng.normal(size=(4, 3))
    A, b = rng.normal(size=(p, 3)), rng.uniform(0, 2 * np.pi, p)
    F = fourier_features(X, A, b)
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    assert_allclose(2 * F @ F.T / p, np.exp(-distances / 2), atol=0.015)


X, A, b = np.zeros((4, 2)), np.zeros((3, 2)), np.zeros(3)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda bad=bad: expected_error(1, 2, *bad), "must lie in .0, ∞")
            for bad in [(-1, 0, 0), (0, np.inf, 0), (0, 0, np.nan)]
        ),
        (lambda: expected_error(1, 0, 1, 0, 0), "error: s must be a whole number"),
        (lambda: expected_error(0, 10, 5, 0, 0), "error: used must be 0 if no feature"),
        (lambda: fourier_features(X[:, :1], A, b), "features: X must have 2 columns"),
        (
            lambda: fourier_features(X, A, b[:2]),
            r"features: b must have the shape \(3,\)",
        ),
        (lambda: fourier_features(X, A[0], b), "features: A must have a row per"),
        (
            lambda: fourier_features(X, A, b + np.nan),
            "features: X, A and b must be finite",
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
