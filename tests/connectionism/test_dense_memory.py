"""Steeper memories against brute force, the Hopfield network and PyTorch."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from strategies import seeds, signs

from dlcore.connectionism import hopfield
from dlcore.connectionism.dense_memory import DenseMemory, modern_energy, modern_update
from dlcore.connectionism.hopfield import Hopfield


@given(seeds, st.integers(1, 10), st.integers(1, 20))
def test_degree_two_walks_like_the_hopfield_network(rng, s, n):
    X, x = signs(rng, s, n), signs(rng, n)
    dense, net = DenseMemory(X, 2), Hopfield(hopfield.hebbian(X))
    assert np.array_equal(dense.relax(x).flips, net.relax(x).flips)
    assert np.isclose(dense.energy(x), 2 * n * net.energy(x) - s * n)


@pytest.mark.parametrize("degree", [2, 3, 4, 7, None])
@given(rng=seeds, s=st.integers(1, 10), n=st.integers(1, 12))
def test_dense_field_is_the_difference_of_two_energies(degree, rng, s, n):
    X, x = signs(rng, s, n), signs(rng, n)
    F = np.exp if degree is None else lambda z: z**degree
    memory = DenseMemory(X, degree)
    up, down = np.tile(x, (n, 1)), np.tile(x, (n, 1))
    np.fill_diagonal(up, 1)
    np.fill_diagonal(down, -1)
    gain = F(up @ X.T).sum(axis=1) - F(down @ X.T).sum(axis=1)
    field = memory.field(x)
    tie = np.abs(gain) < 1e-9 * np.abs(F(up @ X.T)).sum(axis=1)
    assert np.array_equal(np.sign(field)[~tie], np.sign(gain)[~tie])
    if degree is not None:
        assert np.allclose(field, gain)
    run = memory.relax(x)
    assert (np.diff(run.energy) <= 1e-12).all()
    assert memory.is_fixed(run.state)
    assert np.array_equal(run.states()[0], x)


def test_exponential_memory_returns_the_nearest_pattern_and_does_not_overflow():
    rng = np.random.default_rng(5)
    X = signs(rng, 500, 2000)
    memory = DenseMemory(X, None)
    cue = hopfield.flip(X[17], 700, rng)
    assert cdist(cue[None], X).argmin() == 17
    assert np.array_equal(memory.relax(cue).state, X[17])
    assert memory.energy(X[17]) == pytest.approx(-2000)


def test_ties_of_the_exponential_memory_go_to_plus_one():
    # With a pattern and its negative, and a unit that both leave undecided, floating
    # point sums need not be zero; without care the first of these never ends.
    signs_of = {"+": 1.0, "-": -1.0}
    rows = [
        "+++-",
        "++++",
        "+-+-",
        "-++-",
        "----",
        "++-+",
        "---+",
        "+--+",
        "-+--",
        "--+-",
        "+-++",
        "-+-+",
    ]
    X = np.array([[signs_of[c] for c in row] for row in rows])
    DenseMemory(X, None).relax(np.array([1.0, -1.0, -1.0, 1.0]))
    rng = np.random.default_rng(8)
    for _ in range(300):
        half = signs(rng, int(rng.integers(1, 6)), n := int(rng.integers(2, 8)))
        X, x = np.vstack([half, -half]), signs(rng, n)
        memory = DenseMemory(X, None)
        field = memory.field(x)
        # e^r for whole r: equal powers cancel exactly when counted
        rest = np.rint((X @ x)[:, None] - X * x).astype(int)
        for i in range(n):
            total = {r: X[rest[:, i] == r, i].sum() for r in set(rest[:, i])}
            assert (field[i] == 0) == (not any(total.values()))
        assert memory.is_fixed(memory.relax(x).state)


def test_a_large_bias_does_not_make_ties_of_small_weights():
    W = np.zeros((3, 3))
    W[1, 2] = W[2, 1] = -1e-3
    net = Hopfield(W, np.array([1e8, 0.0, 0.0]))
    assert not net.is_fixed(np.ones(3))
    assert net.relax(np.ones(3)).energy[-1] < net.energy(np.ones(3))


# real states


def test_modern_update_equals_attention_of_torch():
    rng = np.random.default_rng(6)
    x, X = rng.normal(size=(5, 16)), rng.normal(size=(9, 16))
    for beta in [0.1, 0.25, 3.0]:
        theirs = torch.nn.functional.scaled_dot_product_attention(
            *map(torch.tensor, (x, X, X)), scale=beta
        )
        assert np.allclose(modern_update(x, X, beta), theirs, atol=1e-14)


def test_modern_energy_has_the_gradient_of_autograd():
    rng = np.random.default_rng(7)
    X, beta = rng.normal(size=(6, 4)), 1.7
    x = torch.tensor(rng.normal(size=4), requires_grad=True)
    energy = -torch.logsumexp(beta * torch.tensor(X) @ x, 0) / beta + x @ x / 2
    (gradient,) = torch.autograd.grad(energy, x)
    here = x.detach().numpy()
    assert np.isclose(modern_energy(here, X, beta), energy.item())
    assert np.allclose(here - modern_update(here, X, beta), gradient)


@given(seeds, st.integers(1, 12), st.integers(1, 6), st.floats(1e-3, 50))
def test_modern_energy_falls_by_half_the_squared_step(rng, s, n, beta):
    X, x = rng.normal(size=(s, n)), 3 * rng.normal(size=n)
    new = modern_update(x, X, beta)
    fall = modern_energy(x, X, beta) - modern_energy(new, X, beta)
    assert fall >= np.sum((new - x) ** 2) / 2 - 1e-9


def test_modern_update_survives_large_numbers():
    X = 1000 * np.eye(3)
    assert modern_update(X[0], X, 1000.0).tolist() == [1000, 0, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: DenseMemory(np.ones((1, 2)), 2).field(np.ones((2, 2))),
            "field: x must be one state; got shape (2, 2)",
        ),
        (
            lambda: DenseMemory(np.ones((1, 2)), 2.5),
            "degree must be a whole number from 2 on",
        ),
        (
            lambda: modern_update(np.ones(2), np.ones((1, 2)), np.inf),
            "beta must be positive and finite",
        ),
        (
            lambda: DenseMemory(np.ones((1, 2)), 1),
            "degree must be a whole number from 2 on",
        ),
        (
            lambda: modern_update(np.ones(3), np.ones((2, 4)), 1.0),
            "same width; got shapes (3,) and (2, 4)",
        ),
        (
            lambda: modern_energy(np.ones(2), np.ones((1, 2)), 0.0),
            "beta must be positive and finite",
        ),
        (
            lambda: modern_update(np.array([np.inf, 0]), np.ones((1, 2)), 1.0),
            "must be finite",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused_with_a_sentence(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
