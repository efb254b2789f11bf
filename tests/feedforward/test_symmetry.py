"""Other weights, same function; what PyTorch computes is the judge."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from dlcore.feedforward.activations import identity, leaky_relu, relu, sigmoid, tanh
from dlcore.feedforward.network import Dense, Network, Residual, mlp
from dlcore.feedforward.symmetry import is_permutation, permute_hidden, scale_hidden

TORCH = {
    "ReLU": torch.relu,
    "tanh": torch.tanh,
    "leaky ReLU": torch.nn.functional.leaky_relu,
    "identity": lambda z: z,
    "logistic": torch.sigmoid,
}


def by_torch(net, X):
    x = torch.tensor(X)
    for layer in net.layers:
        x = torch.nn.functional.linear(x, torch.tensor(layer.W), torch.tensor(layer.b))
        x = TORCH[layer.phi.name](x)
    return x.numpy()


def draw(rng, phi, sizes):
    net = mlp(sizes, phi, rng)
    for layer in net.layers:
        layer.b += rng.normal(size=len(layer.b))
    return net


@pytest.mark.parametrize("phi", [relu, tanh, sigmoid])
@given(rng=seeds, sizes=st.lists(st.integers(1, 5), min_size=3, max_size=5))
def test_the_order_of_hidden_units_does_not_matter(phi, rng, sizes):
    net, X = draw(rng, phi, sizes), rng.normal(size=(4, sizes[0]))
    k = int(rng.integers(1, len(sizes) - 1))
    order = rng.permutation(sizes[k]).tolist()
    other = permute_hidden(net, k, order)
    assert np.allclose(by_torch(other, X), by_torch(net, X))
    assert np.array_equal(other.activations(X)[k], net.activations(X)[k][:, order])


@pytest.mark.parametrize(
    ("phi", "kind"),
    [(relu, "positive"), (leaky_relu, "positive"), (tanh, "signs"), (identity, "any")],
)
@given(rng=seeds, sizes=st.lists(st.integers(1, 5), min_size=3, max_size=5))
def test_factors_that_commute_do_not_matter(phi, kind, rng, sizes):
    net, X = draw(rng, phi, sizes), rng.normal(size=(4, sizes[0]))
    k = int(rng.integers(1, len(sizes) - 1))
    sign, size = (rng.choice([-1.0, 1.0], sizes[k]), rng.uniform(0.2, 5, sizes[k]))
    d = {"positive": size, "signs": sign, "any": sign * size}[kind]
    other = scale_hidden(net, k, d)
    assert np.allclose(by_torch(other, X), by_torch(net, X))
    assert np.allclose(other.activations(X)[k], d * net.activations(X)[k])


def test_the_given_network_is_left_alone():
    net = mlp([2, 3, 1], relu, np.random.default_rng(0))
    before = [p.copy() for p in net.parameters()]
    permute_hidden(net, 1, [2, 0, 1]).layers[1].b += 1
    scale_hidden(net, 1, np.array([1.0, 2.0, 3.0])).layers[1].b += 1
    for p, q in zip(net.parameters(), before, strict=True):
        assert np.array_equal(p, q)


def test_a_permutation_by_hand():
    first = Dense(np.array([[1.0], [2.0], [3.0]]), np.array([4.0, 5.0, 6.0]), relu)
    net = Network([first, Dense(np.array([[7.0, 8.0, 9.0]]), np.zeros(1))])
    other = permute_hidden(net, 1, [2, 0, 1])
    assert other.layers[0].W.ravel().tolist() == [3, 1, 2]
    assert other.layers[0].b.tolist() == [6, 4, 5]
    assert other.layers[1].W.tolist() == [[9, 7, 8]]


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_permutation_matrices_are_the_rows_of_the_identity_in_some_order(m):
    grid = np.indices((2,) * (m * m)).reshape(m * m, -1).T if m < 4 else []
    found = {tuple(a) for a in grid if is_permutation(a.reshape(m, m) * 1.0)}
    want = {
        tuple(np.eye(m, dtype=int)[list(p)].ravel()) for p in permutations(range(m))
    }
    assert len(want) == factorial(m)
    if m < 4:
        assert found == want
    assert all(is_permutation(np.reshape(a, (m, m)) * 1.0) for a in want)


def test_sums_of_one_do_not_make_a_permutation():
    assert not is_permutation(np.full((2, 2), 0.5))
    assert not is_permutation(np.array([[2.0, -1.0], [-1.0, 2.0]]))
    assert not is_permutation(np.eye(3)[:2])
    assert not is_permutation(np.zeros((0, 0)))


NET = mlp([2, 3, 1], relu, np.random.default_rng(0))
TANH = mlp([2, 3, 1], tanh, np.random.default_rng(0))
SHORTCUT = Network(
    [Residual(np.eye(2), np.zeros(2), relu), Dense(np.eye(2), np.zeros(2))]
)
REFUSALS = [
    (lambda: permute_hidden(NET, 2, [0]), r"layer must be one of 1 … 1; got 2"),
    (lambda: permute_hidden(NET, 0, [0]), r"layer must be a whole number from 1 on"),
    (lambda: permute_hidden(NET, 1, [0, 1, 1]), r"order must hold each of 0 … 2 once"),
    (
        lambda: permute_hidden(NET, 1, [0.0, 1.0, 2.0]),
        r"order must hold each of 0 … 2 once",
    ),
    (
        lambda: permute_hidden(SHORTCUT, 1, [1, 0]),
        r"have Dense layers only; got .*Residual",
    ),
    (
        lambda: scale_hidden(NET, 1, np.ones(2)),
        r"d must have the shape \(3,\); got shape \(2,\)",
    ),
    (lambda: scale_hidden(NET, 1, np.zeros(3)), r"be finite and not zero"),
    (lambda: scale_hidden(NET, 1, -np.ones(3)), r"commute with ReLU; got \[-1"),
    (lambda: scale_hidden(TANH, 1, 2 * np.ones(3)), r"commute with tanh; got \[2"),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
