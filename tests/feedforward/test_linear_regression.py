from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import huber as huber_loss
from scipy.stats import linregress
from sklearn.linear_model import HuberRegressor, LinearRegression, QuantileRegressor
from strategies import seeds

from dlcore.feedforward.linear_regression import (
    design,
    hat,
    huber,
    least_absolute,
    ols,
    standard_errors,
)


def lattice(rng, s, n):
    """Small whole numbers: dependent columns and ties are common, sums are exact."""
    X = rng.integers(-2, 3, (s, n)).astype(float)
    return X, rng.integers(-3, 4, s).astype(float)


def line(rng, s, n, noise=1.0):
    X = design(rng.normal(size=(s, n)))
    return X, X @ rng.normal(size=n + 1) + noise * rng.normal(size=s)


sizes = st.integers(1, 8), st.integers(1, 6)


@given(seeds, *sizes)
def test_least_squares_is_what_lapack_finds(rng, s, n):
    X, y = lattice(rng, s, n)
    assert_allclose(ols(X, y), np.linalg.lstsq(X, y)[0], atol=1e-12)
    assert_allclose(hat(X), X @ np.linalg.pinv(X), atol=1e-12)


@given(seeds, *sizes)
def test_normal_equations_hold_for_every_rank(rng, s, n):
    X, y = lattice(rng, s, n)
    assert_allclose(X.T @ (y - X @ ols(X, y)), 0, atol=1e-12)


@given(seeds, *sizes)
def test_weights_are_the_shortest_of_all_minimisers(rng, s, n):
    X, y = lattice(rng, s, n)
    w = ols(X, y)
    *_, Vt = np.linalg.svd(X)
    null = Vt[np.linalg.matrix_rank(X) :]
    assert_allclose(X @ null.T, 0, atol=1e-12)
    assert_allclose(null @ w, 0, atol=1e-12)


@given(seeds, *sizes)
def test_hat_is_a_projection_with_trace_rank(rng, s, n):
    X, y = lattice(rng, s, n)
    P = hat(X)
    assert_allclose(P, P.T)
    assert_allclose(P @ P, P, atol=1e-12)
    assert_allclose(P @ X, X, atol=1e-12)
    assert np.trace(P) == pytest.approx(np.linalg.matrix_rank(X))
    assert_allclose(P @ y, X @ ols(X, y), atol=1e-12)


@given(seeds, st.integers(5, 20), st.integers(1, 3), st.integers(1, 3))
def test_several_targets_give_a_layer(rng, s, n, m):
    X, Y = rng.normal(size=(s, n)), rng.normal(size=(s, m))
    theirs = LinearRegression().fit(X, Y)
    W = ols(design(X), Y)
    assert_allclose(W[:, :-1], theirs.coef_, atol=1e-10)
    assert_allclose(W[:, -1], theirs.intercept_, atol=1e-10)
    for k in range(m):
        assert_allclose(W[k], ols(design(X), Y[:, k]))


def test_a_line_by_hand():
    X = design(np.array([[0.0], [1.0], [2.0]]))
    y = np.array([0.0, 0.0, 3.0])
    assert_allclose(ols(X, y), [1.5, -0.5])
    assert_allclose(hat(X) * 6, [[5, 2, -1], [2, 2, 2], [-1, 2, 5]])
    # residuals 1/2, −1, 1/2: their squares add up to 3/2, one of them is free
    variance = Fraction(3, 2) / (3 - 2)
    want = [variance / 2, variance * Fraction(5, 6)]
    assert_allclose(standard_errors(X, y) ** 2, [*map(float, want)])


def test_nothing_to_go_by_gives_zero():
    assert_allclose(ols(np.zeros((3, 2)), np.ones(3)), 0)
    assert_allclose(hat(np.zeros((3, 2))), 0)
    assert_allclose(ols(np.ones((1, 4)), np.array([2.0])), 0.5)


@given(seeds, st.integers(2, 8))
def test_rank_is_decided_with_the_epsilon_of_the_numbers(rng, s):
    X = rng.normal(size=(s, 2)).astype(np.float32)
    X = np.column_stack([X, X @ np.array([0.1, 0.7], dtype=np.float32)])
    y = rng.normal(size=s).astype(np.float32)
    assert np.trace(hat(X)) == pytest.approx(np.linalg.matrix_rank(X))
    if np.linalg.svd(X)[1][1] > 1e-2:  # and the third is rounding
        theirs = np.linalg.lstsq(X.astype(float), y, rcond=1e-6)[0]
        assert_allclose(ols(X, y), theirs, atol=1e-3 * np.abs(theirs).max())


@given(seeds, st.integers(3, 30))
def test_standard_errors_are_those_of_scipy(rng, s):
    X, y = line(rng, s, 1)
    theirs = linregress(X[:, 0], y)
    want = [theirs.stderr, theirs.intercept_stderr]
    assert_allclose(standard_errors(X, y), want, rtol=1e-8)


@given(seeds, st.integers(1, 7), st.integers(1, 3))
def test_least_absolute_residuals_are_no_larger_than_sklearns(rng, s, n):
    X, y = lattice(rng, s, n)
    median = QuantileRegressor(quantile=0.5, alpha=0, fit_intercept=False)
    theirs = median.fit(X, y).coef_
    ours = least_absolute(X, y)
    sums = [np.abs(y - X @ w).sum() for w in (ours, theirs)]
    assert sums[0] == pytest.approx(sums[1], abs=1e-9)


@given(seeds, st.integers(1, 9).map(lambda k: 2 * k - 1))
def test_least_absolute_constant_is_the_median(rng, s):
    y = rng.normal(size=s)
    assert least_absolute(np.ones((s, 1)), y)[0] == pytest.approx(np.median(y))


@given(seeds, st.floats(0.05, 5))
def test_huber_is_at_the_minimum_of_scipys_loss(rng, delta):
    X, y = line(rng, 20, 2)
    y[:4] += 10 * rng.normal(size=4)

    def cost(w):
        return huber_loss(delta, y - X @ w).sum()

    ours = huber(X, y, delta)
    theirs = minimize(cost, ours + 0.1, method="Nelder-Mead", tol=1e-10).x
    assert cost(ours) <= cost(theirs) + 1e-9
    clipped = np.clip(y - X @ ours, -delta, delta)
    assert_allclose(X.T @ clipped, 0, atol=1e-8 * np.abs(X).sum())


def test_huber_agrees_with_sklearn_which_also_estimates_the_scale():
    rng = np.random.default_rng(0)
    X, y = line(rng, 200, 2)
    y[:20] += 15
    theirs = HuberRegressor(alpha=0, epsilon=2, tol=1e-10, max_iter=10_000)
    theirs.fit(X[:, :-1], y)
    ours = huber(X, y, delta=2 * theirs.scale_)
    want = [*theirs.coef_, theirs.intercept_]
    assert_allclose(ours, want, rtol=1e-4)


@given(seeds)
def test_huber_lies_between_the_mean_and_the_median(rng):
    X, y = line(rng, 15, 1)
    far, near = np.abs(y).max() * 1e3, 0.05
    assert_allclose(huber(X, y, far), ols(X, y))
    sums = [np.abs(y - X @ w).sum() for w in (huber(X, y, near), least_absolute(X, y))]
    assert sums[0] == pytest.approx(sums[1], abs=15 * near / 2)


@given(seeds, st.integers(0, 17))
def test_huber_does_not_care_how_wild_a_target_is(rng, power):
    X, y = line(rng, 12, 1)
    near, far = y.copy(), y.copy()
    near[0], far[0] = 1e3, 1e3 * 10.0**power
    assert_allclose(huber(X, far), huber(X, near), rtol=1e-4, atol=1e-4)


ONE = np.ones((3, 2))
WAVY = np.cos(np.outer(np.arange(8), np.arange(4)))
REFUSALS = [
    (
        lambda: ols(ONE.T, np.ones(3)),
        r"ols: y must have a target for each of the 2 rows of X; got shape \(3,\)\. "
        r"If points are the columns of X, pass X.T.",
    ),
    (
        lambda: ols(np.ones(3), np.ones(3)),
        r"ols: X must have points as rows; got shape \(3,\)",
    ),
    (
        lambda: ols(np.ones((0, 2)), np.ones(0)),
        r"ols: X must have points as rows; got shape \(0, 2\)",
    ),
    (lambda: ols(ONE * np.nan, np.ones(3)), "ols: X must be finite"),
    (lambda: ols(ONE, np.full(3, np.inf)), "ols: y must be finite"),
    (lambda: hat(np.ones(3)), "hat: X must have points as rows"),
    (lambda: design(np.ones(3)), "design: X must have points as rows"),
    (
        lambda: standard_errors(ONE, np.ones(3)),
        "standard_errors: X must have 2 independent columns; got rank 1",
    ),
    (
        lambda: standard_errors(np.eye(2), np.ones(2)),
        r"standard_errors: X must have more rows than columns; got shape \(2, 2\)",
    ),
    (
        lambda: huber(ONE, np.ones(3), 0),
        "huber: delta must be positive and finite; got 0",
    ),
    (
        lambda: huber(ONE, np.ones(3), np.inf),
        "huber: delta must be positive and finite; got inf",
    ),
    (
        lambda: huber(WAVY[:, :3], 1e20 * WAVY[:, 3]),
        r"huber: delta must be large .*; got 1.0 for targets up to 1e\+20\. Use",
    ),
    (
        lambda: huber(ONE, np.ones((3, 1))),
        r"huber: y must be a vector; got shape \(3, 1\)",
    ),
    (
        lambda: standard_errors(np.eye(3, 2), np.ones((3, 2))),
        r"standard_errors: y must be a vector; got shape \(3, 2\)",
    ),
    (
        lambda: least_absolute(ONE, np.ones((3, 1))),
        r"least_absolute: y must be a vector; got shape \(3, 1\)",
    ),
    (
        lambda: ols(ONE, np.ones((3, 2, 1))),
        r"ols: y must be a vector or a matrix; got shape \(3, 2, 1\)",
    ),
    (lambda: huber(ONE, np.ones(2)), "huber: y must have a target for each"),
    (
        lambda: least_absolute(ONE, np.ones(2)),
        "least_absolute: y must have a target for each of the 3 rows",
    ),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
