from math import comb

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.interpolate import BPoly
from scipy.stats import chi
from strategies import seeds

from dlcore.feedforward.activations import relu, sigmoid, step, tanh
from dlcore.feedforward.approximation import (
    barron_constant,
    barron_sample,
    bernstein,
    combine,
    parts,
    power,
    shallow,
    sigmoid_to_tanh,
    staircase,
    sup_distance,
    uniform_fit,
)
from dlcore.feedforward.network import mlp

GRID = np.linspace(0, 1, 101)


def random_net(rng, n, m, phi):
    W, b, a = rng.normal(size=(m, n)), rng.normal(size=m), rng.normal(size=m)
    return shallow(W, b, a, float(rng.normal()), phi)


def corner(x):
    return np.abs(x - 0.5)


def parabola(x):
    return x**2


# Parity with what is not ours.


@given(seeds, st.integers(1, 5), st.integers(1, 6))
def test_a_shallow_network_is_torchs_with_one_hidden_layer(rng, n, m):
    net, X = random_net(rng, n, m, tanh), rng.normal(size=(7, n))
    theirs = torch.nn.Sequential(
        torch.nn.Linear(n, m), torch.nn.Tanh(), torch.nn.Linear(m, 1)
    ).double()
    with torch.no_grad():
        for p, value in zip(theirs.parameters(), net.parameters(), strict=True):
            p.copy_(torch.tensor(value))
        want = theirs(torch.tensor(X)).numpy()
    assert_allclose(net(X), want, atol=1e-12)
    assert sum(p.numel() for p in theirs.parameters()) == (n + 2) * m + 1 == net.size


@given(st.integers(1, 40), seeds)
def test_bernstein_is_scipys_polynomial_in_bernsteins_basis(k, rng):
    values = rng.normal(size=k + 1)
    want = BPoly(values[:, None], [0, 1])(GRID)
    got = bernstein(lambda t: values[np.rint(k * t).astype(int)], k, GRID)
    assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("k", range(7))
def test_the_best_uniform_fit_of_a_power_is_chebyshevs(k):
    x = np.cos(np.pi * np.arange(20 * (k + 1) + 1) / (20 * (k + 1)))
    H = np.vander(x, k + 1, increasing=True)
    a, error = uniform_fit(H, x ** (k + 1))
    chebyshev = np.polynomial.Chebyshev.basis(k + 1)
    monic = chebyshev.convert(kind=np.polynomial.Polynomial).coef / 2.0**k
    assert error == pytest.approx(2.0**-k, rel=1e-7)
    assert_allclose(a, -monic[:-1], atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 1000])
def test_barrons_constant_is_the_mean_of_scipys_chi_distribution(n):
    assert barron_constant(n) == pytest.approx(chi.mean(n), rel=1e-9)


def test_barrons_constant_is_the_integral_of_the_definition():
    density = lambda u: np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)  # noqa: E731
    want, _ = quad(lambda u: abs(u) * density(u), -20, 20)
    assert barron_constant(1) == pytest.approx(want)


# Laws.


@given(seeds, st.integers(1, 5), st.integers(1, 6))
def test_logistic_and_tanh_networks_are_the_same_functions(rng, n, m):
    net, X = random_net(rng, n, m, sigmoid), 5 * rng.normal(size=(20, n))
    turned = sigmoid_to_tanh(net)
    assert parts(turned).phi is tanh
    assert len(parts(turned).a) == m
    assert_allclose(turned(X), net(X), atol=1e-12)


@given(seeds, st.integers(1, 4), st.lists(st.integers(1, 5), min_size=1))
def test_a_combination_of_networks_is_a_network(rng, n, widths):
    nets = [random_net(rng, n, m, tanh) for m in widths]
    X, factors = rng.normal(size=(9, n)), rng.normal(size=len(nets))
    whole = combine(nets, factors, 0.5)
    each = np.array([net(X)[:, 0] for net in nets])
    assert_allclose(whole(X)[:, 0], factors @ each + 0.5, atol=1e-12)
    assert len(parts(whole).a) == sum(widths)


@given(st.floats(0.1, 50), st.floats(-10, 10), st.integers(2, 200))
def test_the_distance_lies_in_its_enclosure(p, q, points):
    low, high = sup_distance(
        lambda x: np.sin(p * x + q), lambda x: 0 * x, p, -1, 2, points
    )
    fine = np.abs(np.sin(p * np.linspace(-1, 2, 20_001) + q)).max()
    assert low <= fine + p * 1e-3
    assert fine <= high + 1e-12
    assert high - low == pytest.approx(p * 3 / (points - 1) / 2)


@given(st.integers(1, 200))
def test_bernstein_keeps_lines_and_lifts_the_parabola_by_a_variance(k):
    line = bernstein(lambda t: 3 * t - 1, k, GRID)
    assert_allclose(line, 3 * GRID - 1, atol=1e-12)
    lifted = GRID**2 + GRID * (1 - GRID) / k
    assert_allclose(bernstein(parabola, k, GRID), lifted, atol=1e-12)


@given(st.integers(1, 30), st.floats(1, 1000))
def test_the_staircase_keeps_its_bound(m, steepness):
    x = np.linspace(0, 1, 801)
    eps = 1 / (1 + np.exp(steepness / (2 * m)))
    smooth = staircase(corner, m, steepness)(x[:, None])[:, 0]
    steps = staircase(corner, m, steepness, step)(x[:, None])[:, 0]
    bound = (1 + (m - 1) * eps) * min(1 / m, 0.5)
    assert np.abs(smooth - corner(x)).max() <= bound + 1e-12
    assert np.abs(steps - corner(x)).max() <= 1 / (2 * m) + 1e-12


@given(st.integers(1, 4), st.floats(1e-2, 0.5))
def test_powers_of_exponentials_are_powers_of_a_difference(k, h):
    x = np.linspace(-2, 2, 41)
    net = power(k, h, np.exp, 0.0, 1.0)
    want = (np.expm1(h * x[:, None]) / h) ** k
    assert_allclose(net(x[:, None]), want, atol=1e-6)
    assert len(parts(net).a) == k


@given(seeds)
def test_no_other_coefficients_fit_better(rng):
    H, y = rng.normal(size=(15, 3)), rng.normal(size=15)
    a, error = uniform_fit(H, y)
    assert error == pytest.approx(np.abs(y - H @ a).max())
    for size in (1e-3, 1e-1, 10):
        other = a + size * rng.normal(size=3)
        assert np.abs(y - H @ other).max() >= error - 1e-9


@given(seeds)
def test_dependent_columns_change_nothing(rng):
    H, y = rng.normal(size=(15, 3)), rng.normal(size=15)
    _, error = uniform_fit(H, y)
    a, same = uniform_fit(np.hstack([H, H @ rng.normal(size=(3, 2))]), y)
    assert same == pytest.approx(error)
    assert len(a) == 5


@given(seeds)
def test_the_best_fit_does_not_depend_on_the_sizes_of_the_columns(rng):
    H, y = rng.normal(size=(15, 3)), rng.normal(size=15)
    a, error = uniform_fit(H, y)
    for sizes in ([1e-11, 1, 1e11], [1e-30, 1e30, 1]):
        b, same = uniform_fit(H * np.array(sizes), 1e30 * y)
        assert same / 1e30 == pytest.approx(error)
        assert_allclose(b * sizes / 1e30, a, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_drawn_networks_are_the_bell_on_average(n):
    rng, r, m = np.random.default_rng(n), 1.5, 50_000
    X = rng.uniform(-1, 1, (30, n))
    X *= r / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), r)
    for centre in (None, rng.normal(size=n)):
        net = barron_sample(n, m, r, rng, centre)
        G = m * net.layers[0](X) * parts(net).a
        error = 5 * G.std(axis=1) / np.sqrt(m) + 1e-12
        gap = X - (0 if centre is None else centre)
        bell = np.exp(-(gap**2).sum(axis=1) / 2)
        assert (np.abs(net(X)[:, 0] - bell) <= error).all()
        assert np.abs(G).max() <= 2 * r * barron_constant(n)
        assert_allclose(np.linalg.norm(parts(net).W, axis=1), 1)


# By hand.


def test_a_network_by_hand():
    net = shallow(
        np.array([[1.0, 0.0], [1.0, 1.0]]),
        np.array([0.0, -1.0]),
        np.array([1.0, -2.0]),
        0.5,
        relu,
    )
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    assert net.layers[0](X).tolist() == [[0, 0], [1, 0], [1, 1], [0, 2]]
    assert net(X)[:, 0].tolist() == [0.5, 1.5, -0.5, -3.5]


def test_two_stairs_by_hand():
    net = staircase(parabola, 2, 8.0, step)
    W, b, *_ = parts(net)
    assert (-b / W[:, 0]).tolist() == [0.25, 0.75]
    X = np.array([[0.0], [0.3], [0.7], [1.0]])
    assert net(X).tolist() == [[0], [0.25], [0.25], [1]]


def test_the_square_is_a_second_difference():
    W, _, a, c, _ = parts(power(2, 0.5, np.exp, 0.0, 1.0))
    assert a.tolist() == [-8, 4]
    assert c == 4
    assert W.tolist() == [[0.5], [1.0]]


def test_a_tiny_column_is_used():
    H = np.column_stack([np.ones(101), 1e-11 * GRID, np.zeros(101)])
    a, error = uniform_fit(H, GRID)
    assert error < 1e-9
    assert_allclose(a, [0, 1e11, 0], atol=1e-6)


@pytest.mark.parametrize("H", [np.zeros((3, 1)), np.zeros((3, 2))])
def test_without_columns_the_distance_is_that_of_zero(H):
    y = np.array([1.0, -3.0, 2.0])
    assert uniform_fit(H, y)[1] == 3
    assert uniform_fit(H, 0 * y)[1] == 0


def test_a_power_that_needs_more_than_64_bits():
    a = parts(power(70, 0.25, np.exp, 0.0, 1.0)).a
    assert a[34] / a[69] == -float(comb(70, 35))


def test_constants_are_functions_too():
    constant = lambda t: 1.0  # noqa: E731
    assert_allclose(bernstein(constant, 5, GRID), 1)
    assert_allclose(staircase(constant, 5, 9.0)(GRID[:, None]), 1)
    assert sup_distance(constant, constant, 0.0) == (0, 0)


@pytest.mark.parametrize("k", [2, 10, 64])
def test_the_error_at_a_corner_is_the_mean_distance_of_a_fair_coin(k):
    error = bernstein(corner, k, np.array([0.5]))[0]
    assert error == pytest.approx(comb(k, k // 2) / 2 ** (k + 1))


def test_constants_of_the_bell():
    table = {1: 0.798, 10: 3.084, 100: 9.975, 1000: 31.615}
    for n, want in table.items():
        assert barron_constant(n) == pytest.approx(want, abs=5e-4)


ONE = np.ones(1)
REFUSALS = [
    (
        lambda: shallow(np.ones((2, 1)), ONE, ONE, 0.0, relu),
        r"b must have one bias for each of the 2 rows of W; got shape \(1,\)",
    ),
    (
        lambda: shallow(np.ones((2, 1)), np.ones(2), ONE, 0.0, relu),
        "layers must fit together; got 2 outputs of layer 1 for 1 inputs",
    ),
    (lambda: shallow(ONE, ONE, ONE, 0.0, relu), r"a row per unit; got shape \(1,\)"),
    (
        lambda: shallow(np.ones((1, 1)), ONE, ONE, np.inf, relu),
        "W and b must be finite",
    ),
    (
        lambda: parts(mlp([2, 3, 2], relu, np.random.default_rng(0))),
        r"parts: network must have one hidden .*; got layers of \[3, 2\] units",
    ),
    (
        lambda: staircase(corner, 3, 1.0)(GRID),
        r"have 1 columns; got shape \(101,\). .* x\[:, None\]",
    ),
    (
        lambda: staircase(corner, 3, 1.0)(np.ones((4, 2))),
        r"have 1 columns; got shape \(4, 2\)",
    ),
    (
        lambda: combine([staircase(corner, 2, 1.0)], np.ones(2)),
        r"factors must be one number for each network \(1\); got 2",
    ),
    (
        lambda: combine(
            [staircase(corner, 2, 1.0), staircase(corner, 2, 1.0, step)], np.ones(2)
        ),
        "nets must have the same activation; got",
    ),
    (
        lambda: combine(
            [shallow(np.ones((1, n)), ONE, ONE, 0.0, relu) for n in (2, 3)], np.ones(2)
        ),
        r"nets must have the same number of inputs; got \{2, 3\}",
    ),
    (
        lambda: staircase(corner, 3, 1.0, tanh),
        r"phi must go from 0 .* to 1 .*; got \[-1.  1.\]. See sigmoid_to_tanh",
    ),
    (
        lambda: staircase(corner, 3, 1.0, relu),
        r"phi must go from 0 on the left to 1 on the right; got \[0",
    ),
    (
        lambda: staircase(lambda t: t[1:], 3, 1.0),
        r"f\(x\) must have one value per point \(4\); got shape \(3,\)",
    ),
    (
        lambda: staircase(lambda t: t * np.nan, 3, 1.0),
        r"staircase: f\(x\) must be finite",
    ),
    (lambda: staircase(corner, 0, 1.0), "staircase: m must be a whole number"),
    (lambda: staircase(corner, 3, 0.0), "steepness must be positive; got 0"),
    (
        lambda: sup_distance(corner, corner, np.inf),
        r"lipschitz must lie in \[0, ∞\); got inf",
    ),
    (lambda: sup_distance(corner, corner, -1.0), r"lipschitz must lie in .*; got -1"),
    (
        lambda: sup_distance(corner, corner, 1.0, 2.0, 1.0),
        r"low must be less than high \(1.0\); got 2.0",
    ),
    (
        lambda: sup_distance(corner, lambda x: x * np.nan, 1.0),
        r"sup_distance: f\(x\) must be finite",
    ),
    (
        lambda: sup_distance(corner, corner, 1.0, points=1),
        "points must be a whole number from 2 on; got 1",
    ),
    (lambda: bernstein(corner, 0, GRID), "k must be a whole number from 1 on"),
    (
        lambda: bernstein(corner, 3, 0.5),
        r"x must have the shape \(…,\); got shape \(\)",
    ),
    (
        lambda: bernstein(lambda t: np.ones((2, 2)), 3, GRID),
        r"one value per point \(4\); got shape \(2, 2\)",
    ),
    (lambda: bernstein(corner, 3, GRID - 1), "x must lie between 0 and 1; got"),
    (
        lambda: sigmoid_to_tanh(staircase(corner, 2, 1.0, step)),
        "the activation must be dlcore.feedforward.activations.sigmoid; got",
    ),
    (
        lambda: power(3, 0.1, parabola, 1.0, 0.0),
        "derivative must not be zero; got 0. Choose another b",
    ),
    (lambda: power(3, 0.0, np.exp, 0.0, 1.0), "power: h must be positive"),
    (lambda: power(300, 1e-9, np.exp, 0.0, 1.0), "W and b must be finite"),
    (
        lambda: power(1001, 0.1, np.exp, 0.0, 1.0),
        "power: k must be at most 1000; got 1001",
    ),
    (lambda: power(0, 0.1, np.exp, 0.0, 1.0), "power: k must be a whole"),
    (lambda: uniform_fit(GRID, GRID), "H must have one row per point"),
    (
        lambda: uniform_fit(GRID[:, None], GRID[1:]),
        r"uniform_fit: y must have the shape \(101,\); got shape \(100,\)",
    ),
    (lambda: uniform_fit(GRID[:, None] * np.nan, GRID), "H and y must be finite"),
    (
        lambda: uniform_fit(np.zeros((0, 2)), np.zeros(0)),
        r"H must have one row per point; got shape \(0, 2\)",
    ),
    (lambda: barron_constant(0), "n must be a whole number from 1 on; got 0"),
    (
        lambda: barron_sample(2, 0, 1.0, np.random.default_rng(0)),
        "m must be a whole number from 1 on; got 0",
    ),
    (
        lambda: barron_sample(2, 3, -1.0, np.random.default_rng(0)),
        "r must be positive; got -1",
    ),
    (
        lambda: barron_sample(2, 3, 1.0, np.random.default_rng(0), ONE),
        r"centre must have the shape \(2,\); got shape \(1,\)",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
