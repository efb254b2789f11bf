from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import make_interp_spline
from strategies import seeds

from dlcore.feedforward.activations import relu, tanh
from dlcore.feedforward.network import layered
from dlcore.feedforward.piecewise import breakpoints, relu_sum
from dlcore.feedforward.regions import cells, patterns

SIZES = st.lists(st.integers(1, 6), min_size=0, max_size=4)
FOLD = np.array([[2.0, -4.0]])
TENT = np.ones((2, 1)), np.array([0.0, -0.5])


def network(sizes, rng):
    shapes = pairwise(sizes)
    pairs = [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in shapes]
    return layered(pairs, relu)


@given(st.integers(2, 20), seeds)
def test_a_relu_sum_is_the_linear_spline(k, rng):
    x, y = np.sort(rng.uniform(-3, 3, k)), rng.normal(size=k)
    if np.diff(x).min() < 1e-3:
        x = np.arange(k) + 0.0
    t = np.linspace(x[0] - 1, x[-1] + 1, 200)  # the ends go on
    spline = make_interp_spline(x, y, k=1)
    assert_allclose(relu_sum(x, y)(t), spline(t), atol=1e-9 * k / 1e-3)


def test_a_relu_sum_by_hand():
    f = relu_sum(np.array([-1.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0]))  # |t|
    assert (f.a, f.c, f.v.tolist(), f.knots.tolist()) == (-1, 0, [2], [0])
    line = relu_sum(np.array([0.0, 2.0]), np.array([1.0, 5.0]))
    assert (line.a, line.c, line.v.size) == (2, 1, 0)
    assert line(np.array([-1.0, 0.0])).tolist() == [-1, 1]


@pytest.mark.usefixtures("unchecked")
def test_numbers_of_any_type_are_connected():
    for kind in (list, lambda a: np.array(a, np.uint8)):
        f = relu_sum(kind([0, 1, 2]), kind([3, 1, 2]))
        assert (f.a, f.c, f.v.tolist(), f.knots.tolist()) == (-2, 3, [3], [1])
        assert f(kind([0, 1, 2])).tolist() == [3, 1, 2]


@given(SIZES, st.integers(1, 3), seeds)
def test_the_output_is_straight_between_breakpoints_and_bends_there(hidden, n, rng):
    net = network([n, *hidden, 2], rng)
    start, end = rng.normal(size=(2, n)) * 3
    t, Y = breakpoints(net, start, end)
    assert t[0] == 0
    assert t[-1] == 1
    assert (np.diff(t) > 0).all()
    u = np.linspace(0, 1, 2001)
    want = net(start + u[:, None] * (end - start))
    got = np.column_stack([np.interp(u, t, y) for y in Y.T])
    assert_allclose(got, want, atol=1e-9 * (1 + np.abs(want).max()))
    slopes = np.diff(Y, axis=0) / np.diff(t)[:, None]
    assert (np.abs(np.diff(slopes, axis=0)).max(axis=1) > 0).all()


@given(SIZES, seeds)
def test_breakpoints_are_where_patterns_change(hidden, rng):
    net = network([2, *hidden, 1], rng)
    net.layers[-1].W[:] = 1
    start, end = np.array([-2.0, -1.0]), np.array([3.0, 2.0])
    t, _ = breakpoints(net, start, end)
    middle = (t[1:] + t[:-1]) / 2
    places = start + middle[:, None] * (end - start)
    found = np.unique(patterns(net, places), axis=0)
    assert len(t) - 1 <= len(cells(net, (-2, 3, -1, 2)))
    assert len(found) <= len(t) - 1


@pytest.mark.parametrize("L", range(1, 11))
def test_the_sawtooth_is_found_exactly(L):
    W, b = TENT
    pairs = [TENT, *[(W @ FOLD, b)] * (L - 1), (FOLD, np.zeros(1))]
    t, y = breakpoints(layered(pairs, relu), np.zeros(1), np.ones(1))
    assert_array_equal(t, np.arange(2**L + 1) / 2**L)
    assert_array_equal(y[:, 0], np.arange(2**L + 1) % 2)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_small_output_bends_beside_a_large_one(scale):
    W, b = np.ones((3, 1)), -np.array([0.25, 0.5, 0.75])
    out = np.array([[scale, 0.0, 0.0], [0.0, 1.0, 1.0]])
    net = layered([(W, b), (out, np.zeros(2))], relu)
    t, _ = breakpoints(net, np.zeros(1), np.ones(1))
    assert t.tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_a_gentle_bend_counts_beside_a_steep_one():
    W, b = np.ones((2, 1)), -np.array([0.25, 0.5])
    out = np.array([[1.0, 1e11]])
    net = layered([(W, b), (out, np.zeros(1))], relu)
    t, _ = breakpoints(net, np.zeros(1), np.ones(1))
    assert t.tolist() == [0, 0.25, 0.5, 1]


@given(SIZES, st.integers(1, 2), seeds)
def test_a_layer_that_passes_all_on_adds_no_bends(hidden, out, rng):
    net = network([1, *hidden, out], rng)
    start, end = -np.full(1, 5.0), np.full(1, 5.0)
    want, _ = breakpoints(net, start, end)
    *rest, (W, b) = [
        (layer.W, layer.b) for layer in net.layers
    ]  # y = max(0, y) - max(0, -y)
    both = np.vstack([W, -W]), np.append(b, -b)
    join = np.hstack([np.eye(out), -np.eye(out)]), np.zeros(out)
    got, _ = breakpoints(layered([*rest, both, join], relu), start, end)
    assert_allclose(got, want, atol=1e-12)


def test_bends_that_cancel_are_none():
    W = np.array([[1.0], [-1.0]])
    both = np.array([[1.0, -1.0]])
    identity = layered([(W, np.zeros(2)), (both, np.zeros(1))], relu)
    t, y = breakpoints(identity, -np.ones(1), np.ones(1))
    assert t.tolist() == [0, 1]
    assert y.tolist() == [[-1], [1]]
    constant = layered([(0 * W, np.ones(2)), (np.ones((1, 2)), np.zeros(1))], relu)
    assert len(breakpoints(constant, -np.ones(1), np.ones(1))[0]) == 2
    assert len(breakpoints(identity, np.ones(1), np.ones(1))[0]) == 2
    V = np.array([[0.1, 0.2, -0.3]])  # its sum is a rounding error
    cancels = [(np.ones((3, 1)), np.full(3, -0.3)), (V, np.zeros(1))]
    nothing = layered(cancels, relu)
    assert nothing(np.ones((1, 1)))[0, 0] != 0
    assert len(breakpoints(nothing, np.zeros(1), np.ones(1))[0]) == 2


X, Y = np.array([0.0, 1.0]), np.array([2.0, 3.0])
NET = network([2, 3, 1], default_rng(0))
REFUSALS = [
    (lambda: relu_sum(X[:1], Y[:1]), r"be at least two knots and as many"),
    (lambda: relu_sum(X, Y[:1]), r"got shapes \(2,\) and \(1,\)"),
    (lambda: relu_sum(X[::-1], Y), r"x must increase; got a step of -1"),
    (lambda: relu_sum(0 * X, Y), r"x must increase; got a step of 0\.$"),
    (lambda: relu_sum(X, Y * np.inf), r"x and y must be finite"),
    (
        lambda: breakpoints(NET, np.ones(1), np.ones(1)),
        r"start must have the shape \(2,\); got shape \(1,\)",
    ),
    (
        lambda: breakpoints(NET, X * np.nan, X),
        r"breakpoints: start and end must be finite",
    ),
    (
        lambda: breakpoints(layered([(np.eye(2), X)] * 2, tanh), X, X),
        r"breakpoints: network must have dense layers of ReLU units",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
