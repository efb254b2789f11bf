"""Associative memory against brute force, SciPy, PyTorch and published numbers."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf
from strategies import seeds, signs

from dlcore.connectionism import hopfield
from dlcore.connectionism.hopfield import Hopfield


def whole_network(rng, n):
    """Weights and biases of small whole numbers: sums are exact and ties happen."""
    upper = np.triu(rng.integers(-2, 3, size=(n, n)), 1).astype(float)
    return Hopfield(upper + upper.T, rng.integers(-1, 2, size=n).astype(float))


def all_states(n):
    return np.array([*itertools.product([-1.0, 1.0], repeat=n)])


# the network


def test_energy_counts_agreements_by_hand():
    net = Hopfield(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([0.5, 0.0]))
    states = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert net.energy(states).tolist() == [-2.5, 1.5, 2.5, -1.5]
    assert net.field(states[1]).tolist() == [-1.5, 2.0]


def test_ground_state_is_that_of_an_exhaustive_search():
    rng = np.random.default_rng(0)
    for _ in range(20):
        net = whole_network(rng, 8)
        states = all_states(8)
        energies = [
            -sum(net.W[i, j] * x[i] * x[j] for i in range(8) for j in range(i))
            - sum(net.b * x)
            for x in states
        ]
        assert np.array_equal(net.energy(states), energies)
        assert net.is_fixed(states)[np.argmin(energies)] or np.isclose(
            sorted(energies)[0], sorted(energies)[1]
        )


@given(seeds, st.integers(1, 25))
def test_every_flip_lowers_the_energy_or_fills_a_tie(rng, n):
    net = whole_network(rng, n)
    run = net.relax(signs(rng, n), rng)
    path = run.states()
    assert np.array_equal(run.energy, net.energy(path))
    fall, plus = -np.diff(run.energy), np.diff(path.sum(axis=1))
    assert (fall >= 0).all()
    assert (plus[fall == 0] == 2).all()
    assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 2).all()
    assert net.is_fixed(run.state)


@given(seeds, st.integers(1, 300))
def test_kept_fields_give_the_same_walk_as_fields_computed_anew(rng, n):
    net = whole_network(rng, n)
    start = signs(rng, n)
    x, flips, settled = start.copy(), [], False
    while not settled:
        settled = True
        for i in range(n):
            want = 1.0 if net.W[i] @ x + net.b[i] >= 0 else -1.0
            if want != x[i]:
                x[i], settled = want, False
                flips.append(i)
    run = net.relax(start)
    assert run.flips.tolist() == flips
    assert np.array_equal(run.state, x)


def test_a_sweep_does_not_recompute_the_field(monkeypatch):
    rng = np.random.default_rng(1)
    net = Hopfield(hopfield.hebbian(signs(rng, 60, 200)))
    calls = []
    field = Hopfield.field
    monkeypatch.setattr(
        Hopfield, "field", lambda self, x: calls.append(1) or field(self, x)
    )
    assert len(net.relax(signs(rng, 200)).flips) > 50
    assert len(calls) == 1


def test_ties_survive_weights_that_are_not_whole():
    # three patterns of three units: fields are multiples of 1/3, ties are sums like
    # 1/3 − 2/3 + 1/3 that floating point need not hit
    for X in itertools.product(all_states(3), repeat=3):
        W = hopfield.hebbian(np.array(X))
        exact = np.rint(3 * W)
        for x in all_states(3):
            want = np.where(exact @ x >= 0, 1.0, -1.0)
            assert np.array_equal(Hopfield(W).step(x), want)


@given(seeds, st.integers(1, 20))
def test_together_the_states_rest_or_alternate(rng, n):
    net = whole_network(rng, n)
    x = signs(rng, n)
    for _ in range(300):
        x = net.step(x)
    assert np.array_equal(net.step(net.step(x)), x)


def test_two_units_that_want_to_differ_alternate_together_and_rest_in_turn():
    net = Hopfield(np.array([[0.0, -1.0], [-1.0, 0.0]]))
    assert net.step(np.ones(2)).tolist() == [-1, -1]
    assert net.step(-np.ones(2)).tolist() == [1, 1]
    assert net.relax(np.ones(2)).state.tolist() == [-1, 1]


# storing


@given(seeds, st.integers(1, 8), st.integers(1, 12))
def test_hebb_adds_up_and_has_no_diagonal(rng, s, n):
    X = signs(rng, s, n)
    W = hopfield.hebbian(X)
    loop = [[sum(x[i] * x[j] for x in X) / n for j in range(n)] for i in range(n)]
    assert np.allclose(W, np.array(loop) - s / n * np.eye(n))
    assert np.array_equal(W, W.T)
    assert np.allclose(W, sum(hopfield.hebbian(x[None]) for x in X))


def test_one_pattern_is_recalled_from_any_cue_nearer_to_it_than_to_its_negative():
    rng = np.random.default_rng(2)
    xi = signs(rng, 11)
    net = Hopfield(hopfield.hebbian(xi[None]))
    cues = all_states(11)
    for x in cues[np.abs(cues @ xi) > 1]:  # nearer by more than the unit that asks
        assert np.array_equal(net.relax(x).state, np.sign(x @ xi) * xi)


def test_projection_is_that_of_least_squares_and_fixes_every_pattern():
    rng = np.random.default_rng(3)
    for s in [1, 5, 20, 30]:
        X = signs(rng, s, 40)
        v = rng.normal(size=40)
        coefficients = np.linalg.lstsq(X.T, v, rcond=None)[0]
        P = hopfield.projection(X)
        diagonal = (np.linalg.qr(X.T)[0] ** 2).sum(axis=1)
        assert np.allclose(P @ v + diagonal * v, X.T @ coefficients)
        assert Hopfield(P).is_fixed(X).all()


def test_projection_of_orthogonal_patterns_is_hebbs_rule():
    X = np.array([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1]])
    assert np.allclose(hopfield.projection(X), hopfield.hebbian(X))


@given(seeds, st.integers(1, 30), st.data())
def test_flip_changes_exactly_k_signs(rng, n, choose):
    k = choose.draw(st.integers(0, n))
    x = signs(rng, n)
    before = x.copy()
    assert (hopfield.flip(x, k, rng) != x).sum() == k
    assert np.array_equal(x, before)


# cross-talk and capacity


def test_crosstalk_is_the_double_sum():
    X = signs(np.random.default_rng(4), 4, 7)
    loop = np.zeros((4, 7))
    for m, i in np.ndindex(4, 7):
        for v, j in np.ndindex(4, 7):
            if v != m and j != i:
                loop[m, i] += X[v, i] * X[v, j] * X[m, j] / 7
    assert np.allclose(hopfield.crosstalk(X), loop)


@pytest.mark.parametrize(("s", "n"), [(1, 3), (2, 3), (3, 3), (2, 5), (3, 4)])
def test_flip_probability_is_that_of_all_pattern_sets(s, n):
    unstable = total = 0
    for bits in all_states(s * n):
        X = bits.reshape(s, n)
        field = (X.T @ X - s * np.eye(n)) @ X[0]
        unstable += np.sum(np.where(field >= 0, 1, -1) != X[0])
        total += n
    assert np.isclose(hopfield.flip_probability(s, n), unstable / total)


def test_flip_probability_has_the_published_value_and_tends_to_its_limit():
    assert round(hopfield.flip_probability_limit(0.15), 4) == 0.0049
    # Hertz, Krogh and Palmer (1991), table 2.1: P_error at s/n
    for error, alpha in [
        (0.001, 0.105),
        (0.0036, 0.138),
        (0.01, 0.185),
        (0.05, 0.37),
        (0.1, 0.61),
    ]:
        assert np.isclose(hopfield.flip_probability_limit(alpha), error, rtol=0.03)
    gaps = [
        abs(hopfield.flip_probability(n // 5, n) - hopfield.flip_probability_limit(0.2))
        for n in [100, 1000, 10_000]
    ]
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]


def test_critical_load_and_overlap_are_the_published_ones():
    critical = hopfield.critical_load()
    assert round(critical, 3) == 0.138
    assert round(hopfield.mean_field_overlap(critical - 1e-9), 3) == 0.967
    assert hopfield.mean_field_overlap(critical + 1e-6) == 0
    assert hopfield.mean_field_overlap(0.01) > 0.999999


def test_mean_field_overlap_solves_the_three_equations_of_the_theory():
    # m = erf(m / √(2αr)), r = 1 / (1 − q)², q = √(2 / (παr)) exp(−m² / 2αr)
    for alpha in [0.02, 0.05, 0.1, 0.13]:
        m, r = 1.0, 1.0
        for _ in range(2000):
            q = np.sqrt(2 / (np.pi * alpha * r)) * np.exp(-(m**2) / (2 * alpha * r))
            m, r = erf(m / np.sqrt(2 * alpha * r)), 1 / (1 - q) ** 2
        assert np.isclose(hopfield.mean_field_overlap(alpha), m, atol=1e-9)


# refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Hopfield(np.zeros((2, 3))),
            "W must be a square matrix; got shape (2, 3)",
        ),
        (
            lambda: Hopfield(np.array([[0.0, 1.0], [-1.0, 0.0]])),
            "W must be symmetric; got W[0, 1] = 1 and W[1, 0] = -1",
        ),
        (
            lambda: Hopfield(np.eye(2)),
            "W must be zero on the diagonal; got [1. 1.]. Use np.fill",
        ),
        (lambda: Hopfield(np.full((2, 2), np.nan)), "W and b must be finite"),
        (
            lambda: Hopfield(np.zeros((2, 2)), np.zeros(3)),
            "b must have the shape (2,); got shape (3,)",
        ),
        (
            lambda: Hopfield(np.zeros((2, 2))).relax(np.array([0.0, 1.0])),
            "x must hold nothing but −1 and +1; got [0. 1.]. For bits 0 and 1, pass 2 * x - 1",
        ),
        (
            lambda: Hopfield(np.zeros((2, 2))).relax(np.ones(3)),
            "relax: x must have 2 units; got shape (3,)",
        ),
        (
            lambda: Hopfield(np.zeros((2, 2))).relax(np.ones((1, 2))),
            "relax: x must be one state",
        ),
        (
            lambda: Hopfield(np.zeros((2, 2))).energy(np.array([np.nan, 1.0])),
            "nothing but −1 and +1",
        ),
        (
            lambda: hopfield.hebbian(np.array([[0.2, 0.9]])),
            "patterns must hold nothing but −1 and +1",
        ),
        (
            lambda: hopfield.hebbian(np.ones((0, 3))),
            "patterns must be the rows of a matrix",
        ),
        (
            lambda: hopfield.projection(np.ones((2, 3))),
            "linearly independent; got 2 patterns of rank 1",
        ),
        (
            lambda: hopfield.flip(np.ones((2, 3)), 1, np.random.default_rng(0)),
            "flip: x must be one state; got shape (2, 3)",
        ),
        (
            lambda: hopfield.flip_probability(2.5, 10),
            "s must be a whole number from 1 on; got 2.5",
        ),
        (
            lambda: hopfield.flip(np.ones(3), 4, np.random.default_rng(0)),
            "k must lie between 0 and 3; got 4",
        ),
        (
            lambda: hopfield.flip_probability(0, 5),
            "s must be a whole number from 1 on; got 0",
        ),
        (
            lambda: hopfield.flip_probability(5, 1),
            "n must be a whole number from 2 on; got 1",
        ),
        (lambda: hopfield.flip_probability_limit(0.0), "alpha must be positive"),
        (lambda: hopfield.mean_field_overlap(-1.0), "alpha must be positive"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused_with_a_sentence(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
