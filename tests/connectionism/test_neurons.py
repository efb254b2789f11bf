from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from dlcore.connectionism.neurons import (
    Neuron,
    all_inputs,
    heaviside,
    identity,
    normal_form,
    plus_minus_unit,
    reachable,
    sigmoid,
    sign,
    stochastic_binary,
    veto_unit,
)

POTENTIALS = arrays(float, array_shapes(), elements=st.integers(-3, 3).map(float))
REALS = arrays(float, array_shapes(), elements=st.floats(-800, 800))
BITS = st.integers(1, 5)


def test_by_hand():
    z = np.array([-2.5, -0.0, 0.0, 1e-300])
    assert sign(z).tolist() == [-1, 0, 0, 1]
    assert sign(z, at0=1.0).tolist() == [-1, 1, 1, 1]
    assert heaviside(z).tolist() == [0, 0, 0, 1]
    assert heaviside(z, at0=0.5).tolist() == [0, 0.5, 0.5, 1]
    assert identity(z).tolist() == z.tolist()


@given(z=POTENTIALS, at0=st.floats(0, 1))
def test_sign_is_heaviside_stretched(z, at0):
    assert_array_equal(sign(z, 2 * at0 - 1), 2 * heaviside(z, at0) - 1)


@given(z=POTENTIALS, at0=st.sampled_from([0.0, 1.0]))
def test_both_codings_decide_alike(z, at0):
    assert_array_equal(sign(z, 2 * at0 - 1) == 1, heaviside(z, at0) == 1)


@given(z=POTENTIALS, at0=st.floats(-1, 1))
def test_sign_is_odd_and_ignores_scale(z, at0):
    assert_array_equal(sign(-z, -at0), -sign(z, at0))
    assert_array_equal(sign(7.0 * z, at0), sign(z, at0))


@given(z=POTENTIALS, at0=st.sampled_from([0.0, 0.5, 1.0]))
def test_thresholds_equal_torch(z, at0):
    theirs = torch.heaviside(torch.tensor(z), torch.tensor(at0, dtype=torch.float64))
    assert_array_equal(heaviside(z, at0), theirs.numpy())
    assert_array_equal(sign(z), torch.sign(torch.tensor(z)).numpy())


@given(z=REALS)
def test_sigmoid_equals_scipy_to_the_last_digits(z):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        ours = sigmoid(z)
    assert_allclose(ours, expit(z), rtol=1e-14, atol=1e-300)


@given(z=REALS)
def test_sigmoid_is_a_rising_symmetric_step(z):
    assert_allclose(sigmoid(-z), 1 - sigmoid(z), rtol=0, atol=1e-15)
    assert (np.diff(sigmoid(np.sort(z.ravel()))) >= 0).all()


def test_sigmoid_by_hand():
    z = np.array([-np.inf, -1000, -np.log(3), 0, np.log(3), 1000, np.inf])
    assert_allclose(sigmoid(z), [0, 0, 1 / 4, 1 / 2, 3 / 4, 1, 1])


def test_stochastic_units_fire_with_their_probability_each_on_its_own():
    z = np.broadcast_to([-3.0, -1.0, 0.0, 0.5, 2.0], (40_000, 5))
    fires, q = stochastic_binary(z, default_rng(0)), expit(z[0])
    assert set(fires.ravel()) == {0, 1}
    spread = np.sqrt(q * (1 - q))
    assert (abs(fires.mean(axis=0) - q) < 4 * spread / 200).all()
    assert_allclose(np.corrcoef(fires.T), np.eye(5), atol=0.02)
    assert_array_equal(fires, stochastic_binary(z, default_rng(0)))


@given(z=POTENTIALS, seed=st.integers(0, 99))
def test_a_stochastic_unit_is_a_threshold_unit_with_logistic_noise(z, seed):
    U = default_rng(seed).random(z.shape)
    fires = stochastic_binary(z, default_rng(seed))
    assert_array_equal(fires, z > np.log(U / (1 - U)))


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 999))
def test_neuron_equals_torch(s, n, seed):
    rng = default_rng(seed)
    X, w, b = rng.normal(size=(s, n)), rng.normal(size=n), rng.normal()
    theirs = map(torch.from_numpy, (X, w[None], np.array([b])))
    layer = torch.nn.functional.linear(*theirs)
    y = Neuron(w, b, sigmoid)(X)
    assert_allclose(y, torch.sigmoid(layer)[:, 0].numpy(), atol=1e-12)
    ones = Neuron(np.zeros(0), 1.0)(np.zeros((s, 0)))
    absorbed = Neuron(np.append(w, b), 0.0, sigmoid)
    assert_allclose(absorbed(np.column_stack([X, ones])), y, atol=1e-12)


def test_neuron_by_hand():
    X = np.array([[1.0, 2.0], [0.0, -1.0]])
    assert Neuron(np.array([3.0, -1.0]), 0.5)(X).tolist() == [1.5, 1.5]
    assert Neuron(np.array([3.0, -1.0]), -1.0, sign)(X).tolist() == [0, 0]


GATES = {  # truth tables at 00, 01, 10, 11
    (0, 0, 0, 1): ([1, 1], 2),
    (0, 1, 1, 1): ([1, 1], 1),
    (1, 1, 1, 0): ([-1, -1], -1),
    (1, 0, 0, 0): ([-1, -1], 0),
    (0, 0, 1, 0): ([1, -1], 1),
}


@pytest.mark.parametrize(("table", "unit"), GATES.items())
def test_gates_by_hand(table, unit):
    w, theta = np.array(unit[0], dtype=float), unit[1]
    assert tuple(plus_minus_unit(w, theta, all_inputs(2))) == table


def test_a_veto_is_not_a_minus_sign():
    X, w = np.array([[1.0, 1.0, 1.0]]), np.array([1.0, 1.0, -1.0])
    assert plus_minus_unit(w, 1.0, X).tolist() == [1]
    assert veto_unit(w, 1.0, X).tolist() == [0]
    assert veto_unit(-w, 0.0, 1 - X).tolist() == [1]


@pytest.mark.parametrize("unit", [plus_minus_unit, veto_unit])
@given(n=BITS, m=st.integers(0, 4), seed=st.integers(0, 999))
def test_a_layer_is_its_units(unit, n, m, seed):
    rng, X = default_rng(seed), all_inputs(n)
    w = rng.choice([-1.0, 1.0], size=(m, n))
    theta = rng.integers(-n, n + 1, size=m).astype(float)
    for j, answers in enumerate(unit(w, theta, X).T):
        assert_array_equal(answers, unit(w[j], theta[j], X))


def count_by_symmetry(n):
    """Count, without units, the functions "at least k of n bits, some flipped"."""
    found = {(0,) * 2**n, (1,) * 2**n}
    for flipped in product([0, 1], repeat=n):
        for k in range(1, n + 1):
            bits = product([0, 1], repeat=n)
            ones = (sum(b != f for b, f in zip(x, flipped, strict=True)) for x in bits)
            found.add(tuple(int(one >= k) for one in ones))
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_units_reach_what_the_counts_say(n):
    assert reachable(n).keys() == count_by_symmetry(n)
    assert len(reachable(n)) == n * 2**n + 2
    assert len(reachable(n, veto_unit)) == n * 2 ** (n - 1) + 2**n + 1
    assert len(reachable(n, veto_unit, least=1)) == n * 2 ** (n - 1) + 1


@pytest.mark.parametrize("unit", [plus_minus_unit, veto_unit])
def test_what_is_reachable_is_closed_under_renaming_the_inputs(unit):
    tables = reachable(3, unit)
    for order in permutations(range(3)):
        index = np.ravel_multi_index(all_inputs(3)[:, order].astype(int).T, (2, 2, 2))
        assert {tuple(np.array(t)[index].tolist()) for t in tables} == set(tables)
    for table, (w, theta) in tables.items():
        assert tuple(unit(w, theta, all_inputs(3))) == table


def test_corners_count_in_binary():
    assert all_inputs(0).shape == (1, 0)
    for n in range(1, 7):
        weights = 2 ** np.arange(n)[::-1]
        assert_array_equal(all_inputs(n) @ weights, np.arange(2**n))


@given(n=st.integers(0, 6), seed=st.integers(0, 999))
def test_normal_form_computes_every_table(n, seed):
    rng = default_rng(seed)
    table = (rng.random(2**n) < rng.random()).astype(float)
    w, theta = normal_form(table)
    hidden = plus_minus_unit(w, theta, all_inputs(n))
    assert_array_equal(hidden.sum(axis=1), table)  # one unit for each 1
    assert (hidden.sum(axis=0) == 1).all()
    output = plus_minus_unit(np.ones(len(w)), 1.0, hidden)
    assert_array_equal(output, table)


TWO = all_inputs(2)
REFUSALS = [
    (
        lambda: plus_minus_unit(np.array([1.0, 0.5]), 1.0, TWO),
        r"plus_minus_unit: w must hold only -1 and 1; .* use Neuron",
    ),
    (
        lambda: veto_unit(np.array([1.0, 0.0]), 1.0, TWO),
        r"veto_unit: w must hold only -1 and 1; got \[0. 1.\]",
    ),
    (
        lambda: veto_unit(np.ones(2), 1.0, -TWO),
        r"veto_unit: X must hold only 0 and 1; got \[-1. -0.\]",
    ),
    (lambda: all_inputs(40), r"all_inputs: n must lie in 0\.\.16; got 40"),
    (lambda: normal_form(np.ones(3)), r"2\*\*n entries; got shape \(3,\)"),
    (lambda: normal_form(np.ones(0)), r"2\*\*n entries; got shape \(0,\)"),
    (lambda: normal_form(TWO), r"2\*\*n entries; got shape \(4, 2\)"),
    (
        lambda: plus_minus_unit(np.ones(3), 1.0, TWO),
        r"plus_minus_unit: X must have 3 columns; got shape \(4, 2\)",
    ),
    (
        lambda: plus_minus_unit(np.ones(2), np.ones(4), TWO),
        r"theta must be one number for each unit; got \[1. 1. 1. 1.\]",
    ),
    (lambda: veto_unit(np.ones(2), np.nan, TWO), r"theta must be one number"),
    (lambda: Neuron(np.ones((2, 2)), 0.0), r"w must have the shape \(…,\)"),
    (
        lambda: Neuron(np.ones(3), 0.0)(TWO),
        r"Neuron: X must have 3 columns; got shape \(4, 2\)",
    ),
    (
        lambda: normal_form(np.array([1.0, -1.0])),
        r"table must hold only 0 and 1; got \[-1.  1.\]",
    ),
    (lambda: Neuron(np.array([np.nan]), 0.0), r"Neuron: w and b must be finite"),
    (lambda: Neuron(np.ones(1), np.inf), r"Neuron: w and b must be finite"),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
