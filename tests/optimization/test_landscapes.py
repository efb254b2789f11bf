import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize, rosen, rosen_der, rosen_hess
from strategies import seeds

from dlcore.optimization import landscapes
from dlcore.optimization.landscapes import (
    chain,
    descend,
    pl_constant,
    quadratic,
    smoothness,
    steps_to_critical,
    wavy,
)
from dlcore.optimization.optimizers import GD, Adam

FUNCTIONS = [
    landscapes.rosenbrock,
    landscapes.saddle,
    landscapes.plateau,
    wavy,
    quadratic(np.array([1.0, 5.0, 0.0])),
    chain(4),
]


@pytest.mark.parametrize("h", FUNCTIONS, ids=lambda h: h.name)
@given(rng=seeds)
def test_derivatives_equal_finite_differences(h, rng):
    x = rng.uniform(-2, 2, size=h.n)
    assert_allclose(h.gradient(x), approx_fprime(x, h, 1e-7), rtol=1e-3, atol=2e-3)
    H = approx_fprime(x, h.gradient, 1e-7).reshape(h.n, h.n)
    assert_allclose(h.hessian(x), H, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("h", FUNCTIONS, ids=lambda h: h.name)
def test_many_points_at_once(h):
    x = default_rng(0).normal(size=(3, 2, h.n))
    assert h(x).shape == (3, 2)
    assert_allclose(h(x)[1, 1], h(x[1, 1]))
    assert_allclose(h.gradient(x)[2, 0], h.gradient(x[2, 0]))


@pytest.mark.parametrize("h", FUNCTIONS, ids=lambda h: h.name)
def test_lowest_is_what_scipy_finds(h):
    starts = default_rng(1).uniform(-2, 2, size=(5, h.n))
    found = min(minimize(h, x, jac=h.gradient, tol=1e-12).fun for x in starts)
    assert_allclose(found, h.lowest, atol=1e-8)


def test_rosenbrock_equals_scipy():
    x = np.array([-0.7, 1.3])
    h = landscapes.rosenbrock
    assert_allclose(h(x), rosen(x))
    assert_allclose(h.gradient(x), rosen_der(x))
    assert_allclose(h.hessian(x), rosen_hess(x))


@given(n=st.integers(1, 30))
def test_chain_is_convex_one_smooth_and_solved(n):
    h = chain(n)
    curvatures = np.linalg.eigvalsh(h.hessian(np.zeros(n)))
    assert 0 < curvatures[0] <= curvatures[-1] <= 1
    solution = 1 - np.arange(1, n + 1) / (n + 1)
    assert_allclose(h.gradient(solution), 0, atol=1e-12)
    assert_allclose(h(solution), h.lowest)


def test_a_bowl_that_opens_downwards_has_no_lowest():
    assert quadratic(np.array([1.0, -1.0])).lowest == -np.inf


def test_path_on_a_bowl_by_hand():
    h = quadratic(np.array([1.0, 4.0]))
    path = descend(h.gradient, np.array([2.0, 1.0]), lambda p: GD(p, lr=0.25), 2)
    assert_allclose(path, [[2, 1], [1.5, 0], [1.125, 0]])


def test_path_leaves_the_start_alone_and_ends_before_infinity():
    start = np.array([1.0])
    path = descend(lambda x: -(x**3), start, lambda p: GD(p, lr=1e3), 50)
    assert start == 1.0
    assert 1 < len(path) < 51
    assert np.isfinite(path).all()


def test_the_optimizer_keeps_its_memory():
    h = quadratic(np.array([1.0]))
    path = descend(h.gradient, np.array([10.0]), lambda p: Adam(p, lr=0.1), 3)
    assert_allclose(np.diff(path[:, 0]), -0.1, rtol=0.02)


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
        pl_constant(values, gradients, lowest), (exact.sum(axis=1) / (2 * gaps)).min()
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


def along(gradient, start, steps=1, copy=False):
    return descend(
        gradient, start, lambda p: GD([q.copy() if copy else q for q in p], lr=1), steps
    )


ONE = np.ones(1)


def same(x):
    return x


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chain(0), "chain: n must be a whole number"),
        (lambda: quadratic(np.eye(2)), "quadratic: curvatures must be a vector"),
        (lambda: quadratic(np.array([])), "not empty; got shape (0,)"),
        (lambda: quadratic(np.array([np.nan])), "curvatures must be finite"),
        *(
            (
                lambda x=x: quadratic(np.array([1.0, 10.0]))(x),
                "quadratic: points must have 2 coordinates",
            )
            for x in (3.0, np.array([3.0]), np.ones((2, 3)))
        ),
        (lambda: wavy(9.0), "wavy: points must have 1 coordinates"),
        (lambda: along(same, 1.0), "descend: start must be a vector, not empty; got"),
        (lambda: along(same, np.array([np.nan])), "descend: start must be finite"),
        (
            lambda: along(lambda x: np.ones(2), ONE),
            "GD: gradients must be arrays of the shapes [(1,)]; got [(2,)].",
        ),
        (
            lambda: along(lambda x: 2.0, ONE),
            "GD: gradients must be arrays of the shapes [(1,)]; got [()].",
        ),
        (lambda: along(same, ONE, copy=True), "make must build the optimizer"),
        (lambda: along(same, ONE, -1), "descend: steps must be a whole"),
        (
            lambda: smoothness(same, np.eye(2), default_rng(0)),
            "smoothness: x must be a vec",
        ),
        (
            lambda: smoothness(same, np.array([np.nan]), default_rng(0)),
            "smoothness: x must be finite",
        ),
        (
            lambda: smoothness(same, ONE, default_rng(0), 0),
            "smoothness: steps must be a whole",
        ),
        (
            lambda: smoothness(lambda x: 3.0, ONE, default_rng(0)),
            "gradient must have the shape (1,)",
        ),
        (
            lambda: smoothness(np.log, 1e-7 * ONE, default_rng(0)),
            "1e-05 from x, must be finite",
        ),
        (
            lambda: pl_constant(np.ones(3), np.ones(3), 0),
            "pl_constant: gradients must have the shape (…, …)",
        ),
        (
            lambda: pl_constant(np.ones(3), np.ones((1, 2)), 0),
            "pl_constant: values must have the shape (1,); got shape (3,)",
        ),
        (lambda: pl_constant(ONE, np.eye(1), 2), "nowhere below the lowest, 2"),
        (lambda: pl_constant(ONE, np.eye(1), 1), "and somewhere above; got 1.0"),
        (lambda: pl_constant(np.ones(0), np.ones((0, 2)), 1), "got none"),
        (
            lambda: pl_constant(np.inf * ONE, np.eye(1), 1),
            "pl_constant: input must be finite",
        ),
        (
            lambda: steps_to_critical(same, ONE, 0, 1),
            "lr must be positive and finite; got 0",
        ),
        (
            lambda: steps_to_critical(same, ONE, 1, np.nan),
            "eps must be positive and finite; got nan",
        ),
        (lambda: steps_to_critical(same, ONE, 1, 1, -1), "most must be a whole number"),
        (
            lambda: steps_to_critical(lambda x: x**3, 9 * ONE, 5, 1),
            "stay finite; got inf after 4 steps. Take a smaller lr",
        ),
        (
            lambda: steps_to_critical(np.ones_like, ONE, 1, 0.5, 10),
            "fall to 0.5 in 10 steps; got 1.0",
        ),
        (lambda: steps_to_critical(same, np.inf * ONE, 1, 1), "start must be finite"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
