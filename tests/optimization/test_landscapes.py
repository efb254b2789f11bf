import numpy as np
import pytest
from draws import seeds
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize, rosen, rosen_der, rosen_hess

from dlcore.optimization import landscapes
from dlcore.optimization.landscapes import chain, descend, quadratic
from dlcore.optimization.optimizers import GD, Adam

FUNCTIONS = [
    landscapes.rosenbrock,
    landscapes.saddle,
    landscapes.plateau,
    landscapes.wavy,
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
    x = np.random.default_rng(0).normal(size=(3, 2, h.n))
    assert h(x).shape == (3, 2)
    assert_allclose(h(x)[1, 1], h(x[1, 1]))
    assert_allclose(h.gradient(x)[2, 0], h.gradient(x[2, 0]))


@pytest.mark.parametrize("h", FUNCTIONS, ids=lambda h: h.name)
def test_lowest_is_what_scipy_finds(h):
    starts = np.random.default_rng(1).uniform(-2, 2, size=(5, h.n))
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


@pytest.mark.usefixtures("unchecked")
def test_refusals():
    with pytest.raises(ValueError, match="chain: n must be a whole number"):
        chain(0)
    with pytest.raises(ValueError, match="quadratic: curvatures must be a li"):
        quadratic(np.eye(2))
    with pytest.raises(ValueError, match=r"at least one .* got shape \(0,\)"):
        quadratic(np.array([]))
    bowl = quadratic(np.array([1.0, 10.0]))
    for x in [3.0, np.array([3.0]), np.ones((2, 3))]:
        with pytest.raises(ValueError, match="quadratic: points must have 2 c"):
            bowl(x)
    with pytest.raises(ValueError, match="wavy: points must have 1 coord"):
        landscapes.wavy(9.0)
    with pytest.raises(ValueError, match=r"start must be a vector; got .*\(\)"):
        descend(lambda x: x, 1.0, lambda p: GD(p, lr=1), 1)
    with pytest.raises(ValueError, match=r"gradients must have the shapes"):
        descend(lambda x: 2.0, np.ones(1), lambda p: GD(p, lr=1), 1)
    with pytest.raises(ValueError, match="descend: make must build the opti"):
        descend(lambda x: x, np.ones(1), lambda p: GD([p[0].copy()], lr=1), 1)
    with pytest.raises(ValueError, match="descend: start must be finite"):
        descend(lambda x: x, np.array([np.nan]), lambda p: GD(p, lr=1), 1)
    with pytest.raises(ValueError, match="descend: steps must be a whole"):
        descend(lambda x: x, np.zeros(1), lambda p: GD(p, lr=1), -1)
