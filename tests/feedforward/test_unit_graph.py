"""Graphs of units against brute force and against layers."""

import re
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from dlcore.feedforward.activations import identity, relu, step, tanh
from dlcore.feedforward.network import Dense, Network
from dlcore.feedforward.unit_graph import depths, evaluate, layout


def random_edges(rng, n, p):
    """Draw edges along a hidden order of the units, in random sequence."""
    names = rng.permutation([f"u{k}" for k in range(n)])
    edges = [
        (str(names[i]), str(names[j]))
        for i in range(n)
        for j in range(i + 1, n)
        if rng.random() < p
    ] or [("u0", "u1")]
    return [edges[k] for k in rng.permutation(len(edges))]


def longest_path_to(unit, edges):
    """Try all sequences of units."""
    names = {name for edge in edges for name in edge} - {unit}
    return max(
        k
        for k in range(len(names) + 1)
        for before in permutations(names, k)
        if all(edge in edges for edge in pairwise([*before, unit]))
    )


@given(seeds, st.integers(2, 5), st.floats(0.2, 1))
def test_the_layer_is_the_length_of_the_longest_path(rng, n, p):
    edges = random_edges(rng, n, p)
    depth = depths(edges)
    assert depth == {name: longest_path_to(name, edges) for name in depth}


@given(seeds, st.integers(2, 12), st.floats(0.1, 1))
def test_edges_lead_up_and_to_later_units(rng, n, p):
    edges = random_edges(rng, n, p)
    depth = depths(edges)
    order = list(depth)
    assert {name for edge in edges for name in edge} == set(order)
    for i, j in edges:
        assert depth[i] < depth[j]
        assert order.index(i) < order.index(j)


@given(seeds, st.integers(2, 12), st.floats(0.1, 1))
def test_units_stand_in_the_column_of_their_layer_one_apart(rng, n, p):
    edges = random_edges(rng, n, p)
    places = layout(edges)
    depth = depths(edges)
    assert {name: x for name, (x, _) in places.items()} == depth
    for column in set(depth.values()):
        heights = sorted(y for x, y in places.values() if x == column)
        assert sum(heights) == 0
        assert all(b - a == 1 for a, b in pairwise(heights))


@given(seeds, st.integers(1, 4), st.integers(1, 4), st.integers(1, 5))
def test_layers_are_graphs(rng, n, m, s):
    net = Network(
        [
            Dense(rng.normal(size=(m, n)), rng.normal(size=m), tanh),
            Dense(rng.normal(size=(1, m)), rng.normal(size=1)),
        ]
    )
    first, last = net.layers
    weights = {
        (f"x{i}", f"h{j}"): first.W[j, i] for i in range(n) for j in range(m)
    } | {(f"h{j}", "y"): last.W[0, j] for j in range(m)}
    biases = {f"h{j}": first.b[j] for j in range(m)} | {"y": last.b[0]}
    phi = {f"h{j}": tanh for j in range(m)} | {"y": identity}
    X = rng.normal(size=(s, n))
    x = evaluate(weights, biases, phi, {f"x{i}": X[:, i] for i in range(n)})
    assert np.allclose(x["y"], net(X)[:, 0])


def test_a_shortcut_by_hand():
    weights = {("x", "h"): 2.0, ("h", "y"): -1.0, ("x", "y"): 3.0}
    assert depths(weights) == {"x": 0, "h": 1, "y": 2}
    x = evaluate(
        weights,
        {"h": 1.0, "y": 0.5},
        {"h": relu, "y": identity},
        {"x": np.array([1.0, -1.0])},
    )
    assert x["h"].tolist() == [3, 0]
    assert x["y"].tolist() == [0.5, -2.5]


def test_a_layout_by_hand():
    places = layout([("x", "z"), ("w", "z"), ("z", "y"), ("w", "y")])
    assert places["z"] == (1, 0)
    assert places["y"] == (2, 0)
    assert {places["x"], places["w"]} == {(0, 0.5), (0, -0.5)}


CYCLE = {("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "b"): 1.0}
EDGE = {("a", "b"): 1.0}
REFUSALS = [
    (
        lambda: depths(CYCLE),
        r"edges must not form a cycle; got (b → c → b|c → b → c)\.",
    ),
    (lambda: depths({("a", "a"): 1.0}), r"got a → a\."),
    (lambda: depths([]), r"edges must not be empty"),
    (
        lambda: evaluate(EDGE, {"b": 0.0}, {"b": step}, {}),
        r"inputs must have an entry for each of \['a'\] and no other; got \[\]",
    ),
    (
        lambda: evaluate(EDGE, {}, {"b": step}, {"a": np.ones(1)}),
        r"biases must have an entry for each of \['b'\]",
    ),
    (
        lambda: evaluate(EDGE, {"b": 0.0}, {}, {"a": np.ones(1)}),
        r"phi must have an entry for each of \['b'\]",
    ),
    (
        lambda: evaluate(
            EDGE, {"b": 0.0}, {"b": step}, {"a": np.ones(1), "b": np.ones(1)}
        ),
        r"inputs must .* no other; got \['a', 'b'\]",
    ),
    (
        lambda: evaluate(EDGE, {"b": 0.0, "B": 1.0}, {"b": step}, {"a": np.ones(1)}),
        r"biases must .* no other; got \['b', 'B'\]",
    ),
    (
        lambda: evaluate(
            EDGE | {("c", "b"): 1.0},
            {"b": 0.0},
            {"b": step},
            {"a": np.ones(1), "c": np.ones(2)},
        ),
        r"inputs must be equally long; got shapes \{'a': \(1,\), 'c': \(2,\)",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
def test_units_may_be_numbers():
    assert depths([(1, 2), (2, 3)]) == {1: 0, 2: 1, 3: 2}
    with pytest.raises(ValueError, match=r"cycle; got (1 → 2 → 1|2 → 1 → 2)"):
        depths([(1, 2), (2, 1)])


def test_a_cycle_is_named_along_its_arrows():
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    with pytest.raises(ValueError, match="cycle") as refusal:
        depths(ring)
    named = re.findall(r"\b[abcd]\b", str(refusal.value).split("got")[1])
    assert all(edge in ring for edge in pairwise(named))
    assert len(named) == 5
