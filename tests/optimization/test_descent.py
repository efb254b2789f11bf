import numpy as np
import pytest
import torch
from draws import seeds
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy.optimize import rosen_der, rosen_hess

from dlcore.optimization.descent import (
    pl_constant,
    smoothness,
    steps_to_critical,
)
from dlcore.optimization.landscapes import quadratic, wavy


def symmetric(rng, n):
    A = rng.normal(size=(n, n))
    return A + A.T


@given(rng=seeds, n=st.integers(1, 6), sign=st.sampled_from([-1, 1]))
def test_smoothness_is_the_norm_of_a_quadratics_matrix(rng, n, sign):
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    curvatures = np.append(rng.uniform(-3, 3, n - 1), 5 * sign)
    A, x = (Q * curvatures) @ Q.T, rng.normal(size=n)
    norm = np.linalg.norm(A, 2)
    ours = smoothness(lambda x: A @ x, x, rng, 60)
    assert_allclose(ours, norm, rtol=1e-6)


@given(rng=seeds, n=st.integers(1, 6))
def test_smoothness_approaches_from_below(rng, n):
    A, seed = symmetric(rng, n), rng.integers(1000)
    few, more = (
        smoothness(lambda x: A @ x, np.zeros(n), default_rng(seed), steps)
        for steps in (1, 5)
    )
    assert few <= more * (1 + 1e-9)
    assert more <= np.linalg.norm(A, 2) * (1 + 1e-9)


def test_smoothness_of_scipys_rosenbrock():
    x = np.array([-1.2, 1.0, 0.3, 2.0])
    norm = np.linalg.norm(rosen_hess(x), 2)
    assert_allclose(smoothness(rosen_der, x, default_rng(0)), norm, rtol=1e-6)


def test_smoothness_of_a_network_equals_torchs_hessian():
    rng = default_rng(1)
    X, y = (torch.tensor(rng.normal(size=(9, k))) for k in (3, 1))

    def cost(theta):
        W, v = theta[:12].reshape(4, 3), theta[12:]
        return ((torch.tanh(X @ W.T) @ v - y[:, 0]) ** 2).mean()

    x = rng.normal(size=16)
    H = torch.autograd.functional.hessian(cost, torch.tensor(x)).numpy()

    def gradient(x):
        theta = torch.tensor(x, requires_grad=True)
        return torch.autograd.grad(cost(theta), theta)[0].numpy()

    ours = smoothness(gradient, x, rng, 100)
    assert_allclose(ours, np.abs(np.linalg.eigvalsh(H)).max(), rtol=1e-5)


def test_smoothness_by_hand():
    h = quadratic(np.array([1.0, -5.0, 0.0]))
    assert_allclose(smoothness(h.gradient, np.ones(3), default_rng(2)), 5)
    twins = quadratic(np.array([3.0, -3.0]))  # no direction wins; the norm is known
    assert_allclose(smoothness(twins.gradient, np.ones(2), default_rng(2)), 3)
    assert smoothness(np.ones_like, np.ones(2), default_rng(0)) == 0  # a plane


@given(rng=seeds, s=st.integers(1, 5), n=st.integers(1, 5))
def test_pl_constant_of_least_squares_is_the_smallest_eigenvalue_not_zero(rng, s, n):
    X = rng.normal(size=(s, n))
    A = X.T @ X
    curvatures, V = np.linalg.eigh(A)
    mu = curvatures[curvatures > 1e-9 * curvatures[-1]][0]
    W = np.vstack([V.T, rng.normal(size=(50, n))])  # eigenvectors, and others
    values = ((W @ X.T) ** 2).sum(axis=1) / 2
    flat = values < 1e-12 * values.max()
    values[flat] = 0
    assert_allclose(pl_constant(values, W @ A, 0), mu, rtol=1e-4)


def test_pl_constant_of_the_wavy_bowl():
    x = np.linspace(-10, 10, 20001)[:, None]
    mu = pl_constant(wavy(x), wavy.gradient(x), wavy.lowest)
    assert_allclose(mu, 0.1755, atol=5e-5)


def test_pl_constant_does_not_mind_rounding():
    rng = default_rng(3)
    X, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    W = best + np.vstack([np.eye(2), 1e-9 * rng.normal(size=(500, 2))])
    values = ((W @ X.T - y) ** 2).sum(axis=1) / 2
    gradients = (W @ X.T - y) @ X
    lowest = ((X @ best - y) ** 2).sum() / 2
    assert (values < lowest).any()  # some lie below, by rounding
    assert (values > lowest).sum() > 2  # and some above
    exact = (np.eye(2) @ X.T @ X) ** 2
    gaps = ((np.eye(2) @ X.T) ** 2).sum(axis=1) / 2
    assert_allclose(
        pl_constant(values, gradients, lowest),
        (exact.sum(axis=1) / (2 * gaps)).min(),
    )


def test_pl_constant_by_hand():
    # J = x^4: gradient 4x^3, square 16 x^6, over 2 x^4: 8 x^2
    x = np.array([0.0, -2.0, 0.5])
    assert pl_constant(x**4, 4 * x[:, None] ** 3, 0) == 2
    assert pl_constant(x**4 + 3, 4 * x[:, None] ** 3, 3) == 2


def test_steps_by_hand():
    h = quadratic(np.array([1.0]))
    assert steps_to_critical(h.gradient, np.array([8.0]), 0.5, 1.0) == 3
    assert steps_to_critical(h.gradient, np.array([8.0]), 0.5, 8.0) == 0
    assert steps_to_critical(h.gradient, np.array([8.0]), 1.0, 1e-9, most=1) == 1


@given(rng=seeds, n=st.integers(1, 4), log=st.floats(-3, 0))
def test_steps_on_a_bowl_stay_below_the_bound(rng, n, log):
    c, eps = rng.uniform(0.05, 1, n), 10**log
    h, x = quadratic(c), rng.normal(size=n)
    steps = steps_to_critical(h.gradient, x, 1 / c.max(), eps)
    assert steps <= np.ceil(2 * c.max() * h(x) / eps**2)
    if steps:
        before = steps_to_critical(h.gradient, x, 1 / c.max(), eps, most=steps)
        assert before == steps


@pytest.mark.usefixtures("unchecked")
def test_whole_numbers_are_points_too():
    assert_allclose(smoothness(lambda x: x, np.array([1, 2]), default_rng(0)), 1)
    assert steps_to_critical(lambda x: x, np.array([8]), 0.5, 1) == 3


@pytest.mark.usefixtures("unchecked")
def test_refusals():
    rng, one = default_rng(0), np.ones(1)
    with pytest.raises(ValueError, match=r"smoothness: x must be a vector; got"):
        smoothness(lambda x: x, np.eye(2), rng)
    with pytest.raises(ValueError, match="smoothness: x must be finite"):
        smoothness(lambda x: x, np.array([np.nan]), rng)
    with pytest.raises(ValueError, match="smoothness: steps must be a whole"):
        smoothness(lambda x: x, one, rng, 0)
    with pytest.raises(ValueError, match=r"gradient must have shape \(1,\)"):
        smoothness(lambda x: 3.0, one, rng)
    with pytest.raises(ValueError, match="1e-05 from x, must be finite"):
        smoothness(np.log, 1e-7 * one, rng)
    with pytest.raises(ValueError, match=r"have the shapes \(points,\) and"):
        pl_constant(np.ones(3), np.ones(3), 0)
    with pytest.raises(ValueError, match="nowhere below the lowest, 2"):
        pl_constant(one, np.ones((1, 1)), 2)
    with pytest.raises(ValueError, match=r"and somewhere above; got 1.0"):
        pl_constant(one, np.ones((1, 1)), 1)
    with pytest.raises(ValueError, match="got none"):
        pl_constant(np.ones(0), np.ones((0, 2)), 1)
    with pytest.raises(ValueError, match="pl_constant: input must be finite"):
        pl_constant(np.array([np.inf]), np.ones((1, 1)), 1)
    with pytest.raises(ValueError, match="lr must be positive and finite; got 0"):
        steps_to_critical(lambda x: x, one, 0, 1)
    with pytest.raises(ValueError, match=r"eps must be positive and .* got nan"):
        steps_to_critical(lambda x: x, one, 1, np.nan)
    with pytest.raises(ValueError, match="most must be a whole number"):
        steps_to_critical(lambda x: x, one, 1, 1, -1)
    with pytest.raises(ValueError, match=r"stay finite; got inf after .* smaller"):
        steps_to_critical(lambda x: x**3, 9 * one, 5, 1)
    with pytest.raises(ValueError, match=r"fall to 0.5 in 10 steps; got 1.0"):
        steps_to_critical(lambda x: np.ones(1), one, 1, 0.5, 10)
    with pytest.raises(ValueError, match="start must be finite"):
        steps_to_critical(lambda x: x, np.array([np.inf]), 1, 1)
