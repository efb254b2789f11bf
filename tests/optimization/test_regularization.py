from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from sklearn.linear_model import Lasso, Ridge
from strategies import seeds

from dlcore.feedforward.linear_regression import design, ols
from dlcore.optimization.regularization import (
    dropout_penalty,
    lasso,
    ridge,
    soft_threshold,
)

SIZES = st.integers(1, 12), st.integers(1, 8)
PRICE = st.floats(0.01, 3)


def problem(rng, s, n):
    return rng.normal(size=(s, n)), rng.normal(size=s)


@given(seeds, *SIZES, PRICE)
def test_ridge_equals_sklearn(rng, s, n, lam):
    X, y = problem(rng, s, n)
    theirs = Ridge(alpha=s * lam, fit_intercept=False, solver="svd").fit(X, y)
    assert_allclose(ridge(X, y, lam), theirs.coef_, atol=1e-9)


@given(seeds, PRICE)
def test_a_free_bias_is_sklearns_intercept(rng, lam):
    X, y = problem(rng, 9, 3)
    theirs = Ridge(alpha=9 * lam).fit(X, y)
    w = ridge(design(X), y + 100, np.array([lam, lam, lam, 0]))
    assert_allclose(w, [*theirs.coef_, theirs.intercept_ + 100], atol=1e-9)


@given(seeds, *SIZES)
def test_ridge_with_one_price_each_has_a_gradient_of_zero(rng, s, n):
    X, y = problem(rng, s, n)
    lam = rng.uniform(0.1, 2, n)
    w = ridge(X, y, lam)
    assert_allclose(X.T @ (X @ w - y) / s + lam * w, 0, atol=1e-12)


@given(seeds, *SIZES)
def test_without_a_price_ridge_is_the_shortest_least_squares_fit(rng, s, n):
    X, y = problem(rng, s, n)
    assert_allclose(ridge(X, y, 0.0), ols(X, y), atol=1e-6)


@given(seeds)
def test_ridge_fits_several_targets_one_by_one(rng):
    X, Y = rng.normal(size=(7, 3)), rng.normal(size=(7, 2))
    W = ridge(X, Y, 0.3)
    assert W.shape == (2, 3)
    for w, y in zip(W, Y.T, strict=True):
        assert_allclose(w, ridge(X, y, 0.3))


def test_ridge_by_hand():
    """One feature: w = Σxy / (Σx² + sλ) = 6 / (4 + 2)."""
    X, y = np.array([[2.0], [0.0]]), np.array([3.0, 5.0])
    assert_allclose(ridge(X, y, 1.0), [1.0])


@given(st.floats(-5, 5), st.floats(0, 3))
def test_soft_threshold_minimises(z, lam):
    found = minimize_scalar(
        lambda w: (w - z) ** 2 / 2 + lam * abs(w),
        bounds=(-6, 6),
        method="bounded",
        options={"xatol": 1e-9},
    )
    ours = soft_threshold(np.array(z), lam)
    assert_allclose(ours, found.x, atol=1e-5)


def test_soft_threshold_by_hand():
    z = np.array([-3.0, -1.0, -0.5, 0.0, 1.5])
    assert_array_equal(soft_threshold(z, 1), [-2, 0, 0, 0, 0.5])
    assert not np.signbit(soft_threshold(z, 1)[1:]).any()
    by = np.array([1.0, 0.0, 1.0, 0.0, 2.0])
    assert_array_equal(soft_threshold(z, by), [-2, -1, 0, 0, 0])


@given(seeds, *SIZES, PRICE)
def test_lasso_equals_sklearn(rng, s, n, lam):
    X, y = problem(rng, s, n)
    theirs = Lasso(lam / 5, fit_intercept=False, tol=1e-12, max_iter=10**6)
    ours = lasso(X, y, lam / 5)
    assert_allclose(ours, theirs.fit(X, y).coef_, atol=1e-5)


@given(seeds, *SIZES)
def test_lasso_is_zero_from_the_largest_slope_on(rng, s, n):
    X, y = problem(rng, s, n)
    largest = float(np.abs(X.T @ y).max()) / s
    assert not lasso(X, y, largest * 1.0001).any()
    assert lasso(X, y, largest * 0.99).any()


def test_lasso_with_columns_of_very_different_sizes(monkeypatch):
    monkeypatch.setattr("dlcore.optimization.regularization._MAX_STEPS", 5000)
    rng, lam = np.random.default_rng(0), 1e-6
    X, y = rng.normal(size=(30, 10)), rng.normal(size=30)
    X *= np.geomspace(1, 1e-6, 10)
    w = lasso(X, y, lam)
    g = X.T @ (X @ w - y) / 30
    assert 0 < (w == 0).sum() < 10
    assert_allclose(g[w != 0], -lam * np.sign(w[w != 0]), atol=1e-3 * lam)
    assert (np.abs(g[w == 0]) <= lam).all()


def test_lasso_of_nothing():
    assert_array_equal(lasso(np.zeros((3, 2)), np.ones(3), 0.1), [0, 0])
    assert_array_equal(lasso(np.ones((3, 2)), np.zeros(3), 0.1), [0, 0])


@given(seeds, st.floats(0, 0.9))
def test_dropout_penalty_gives_the_best_fit_to_all_masked_copies(rng, p):
    X, y = rng.normal(size=(6, 4)) * [1, 3, 0.2, 1], rng.normal(size=6)
    masks = np.array([*product([0.0, 1.0], repeat=4)])
    chance = (p ** (1 - masks) * (1 - p) ** masks).prod(axis=1)
    root = np.sqrt(np.repeat(chance, 6))
    copies = (masks[:, None] * X / (1 - p)).reshape(-1, 4)
    best = ols(root[:, None] * copies, root * np.tile(y, 16))
    assert_allclose(ridge(X, y, dropout_penalty(X, p)), best, atol=1e-7)


def test_dropout_penalty_by_hand():
    X = np.array([[1.0, 0.0], [3.0, 2.0]])
    assert_allclose(dropout_penalty(X, 0.75), [15, 6])  # 3 times 5 and 2


X, y = np.eye(3), np.ones(3)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ridge(X, y, -0.1), "ridge: penalty must not be negative"),
        (lambda: ridge(X, y, np.ones(2)), "one for each of the 3 weights; got"),
        (lambda: ridge(X, y, np.nan), "ridge: penalty must be finite"),
        (lambda: ridge(y, y, 1.0), "ridge: X must have points as rows"),
        (lambda: ridge(X, np.ones(2), 1.0), "ridge: y must have a target for each"),
        (lambda: lasso(X, np.full(3, np.inf), 1.0), "lasso: y must be finite"),
        (lambda: lasso(X, y, 0.0), "lasso: penalty must be positive and finite"),
        (lambda: lasso(X, y, np.nan), "lasso: penalty must be positive and finite"),
        (
            lambda: lasso(np.array([[1.0, 1.0], [0.0, 1e-7]]), np.ones(2), 1e-12),
            r"lasso: X must let .* steps settle",
        ),
        (lambda: lasso(X, y, np.ones(3)), "lasso: penalty must be positive and finite"),
        *(
            (
                lambda big=big: lasso(big, 1e170 * y, 1.0),
                "X and y must have finite squares",
            )
            for big in (1e170 * X, X)
        ),
        (lambda: ridge(X, y, "a"), "ridge: penalty must be a number"),
        (lambda: soft_threshold(y, -1.0), "soft_threshold: by must not be"),
        (lambda: dropout_penalty(X, 1.0), r"dropout_penalty: p must lie in \[0"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
