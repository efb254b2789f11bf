import numpy as np
import pytest
import torch
from draws import seeds
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose

from dlcore.feedforward.activations import identity, relu, tanh
from dlcore.feedforward.layers import Concat, Dense, Residual
from dlcore.feedforward.losses import cross_entropy, squared
from dlcore.feedforward.network import Network, mlp
from dlcore.optimization.optimizers import GD, Adam
from dlcore.optimization.training import fit


def twin(network):
    """Build the same multilayer perceptron in torch."""
    parts = []
    for layer in network.layers:
        linear = torch.nn.Linear(layer.inputs, layer.outputs).double()
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(layer.W))
            linear.bias.copy_(torch.tensor(layer.b))
        parts += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])


@given(rng=seeds, sizes=st.lists(st.integers(1, 5), min_size=2, max_size=5))
def test_gradient_equals_torch(rng, sizes):
    network = mlp(sizes, relu, rng)
    X, y = rng.normal(size=(6, sizes[0])), rng.integers(0, sizes[-1], size=6)
    cost, gradients = network.gradient(X, y, cross_entropy)
    model = twin(network)
    theirs = torch.nn.functional.cross_entropy(model(torch.tensor(X)), torch.tensor(y))
    theirs.backward()
    assert_allclose(cost, theirs.item(), rtol=1e-12)
    for ours, p in zip(gradients, model.parameters(), strict=True):
        assert_allclose(ours, p.grad, atol=1e-12)


@given(rng=seeds)
def test_gradient_of_mixed_layers_is_the_slope(rng):
    draw = lambda *shape: rng.normal(size=shape)  # noqa: E731
    network = Network(
        [
            Concat(draw(2, 3), draw(2), tanh),
            Residual(draw(5, 5), draw(5), tanh),
            Residual(draw(2, 5), draw(2), tanh, draw(2, 5)),
        ]
    )
    X, y, h = draw(4, 3), draw(4, 2), 1e-6
    _, gradients = network.gradient(X, y, squared)
    for p, g in zip(network.parameters(), gradients, strict=True):
        direction = draw(*p.shape)
        p += h * direction
        above = squared(network(X), y).mean()
        p -= 2 * h * direction
        below = squared(network(X), y).mean()
        p += h * direction
        assert_allclose((g * direction).sum(), (above - below) / (2 * h), atol=1e-6)


def test_training_equals_torch():
    rng = default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 2, size=20)
    network = mlp([3, 8, 2], relu, rng)
    model = twin(network)
    theirs = torch.optim.Adam(model.parameters(), 0.01)
    want = []
    for _ in range(50):
        theirs.zero_grad()
        cost = torch.nn.functional.cross_entropy(
            model(torch.tensor(X)), torch.tensor(y)
        )
        cost.backward()
        theirs.step()
        want.append(cost.item())
    costs = fit(network, X, y, cross_entropy, Adam(network.parameters(), 0.01), 50, rng)
    assert_allclose(costs, want, rtol=1e-9)


@given(rng=seeds, batch=st.integers(1, 12))
def test_an_epoch_sees_every_row_once(rng, batch):
    X, y = rng.normal(size=(10, 2)), np.zeros((10, 1))
    network = mlp([2, 1], relu, rng)
    seen = []

    def note(rows):
        seen.append(rows)
        return rows

    fit(
        network,
        X,
        y,
        squared,
        GD(network.parameters(), 1e-9),
        1,
        rng,
        batch,
        note,
    )
    assert {len(rows) for rows in seen[:-1]} <= {batch}
    assert_allclose(np.sort(np.vstack(seen), axis=0), np.sort(X, axis=0))


def test_by_hand():
    rng = default_rng(0)
    network = mlp([4, 3, 2], relu, rng)
    assert network.size == 4 * 3 + 3 + 3 * 2 + 2
    assert network.layers[0].phi is relu
    assert network.layers[1].phi is identity
    X = rng.normal(size=(5, 4))
    first, hidden, last = network.activations(X)
    assert first is X
    assert_allclose(hidden, network.layers[0](X))
    assert_allclose(last, network(X))
    wide = mlp([1000, 400, 1], relu, rng)
    assert_allclose(wide.layers[0].W.var(), 2 / 1000, rtol=0.02)


@pytest.mark.usefixtures("unchecked")
def test_refusals():
    rng = default_rng(0)
    layer = Dense(np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(
        ValueError, match="3 outputs of layer 1 for 2 inputs of layer 2"
    ):
        Network([layer, layer])
    with pytest.raises(ValueError, match="Network: layers must not be empty"):
        Network([])
    with pytest.raises(ValueError, match="mlp: sizes must name inputs and outputs"):
        mlp([3], relu, rng)
    with pytest.raises(
        ValueError, match="mlp: each size must be a whole number from 1"
    ):
        mlp([3, 0, 1], relu, rng)
    network = Network([layer])
    adam = Adam(network.parameters())
    with pytest.raises(ValueError, match="fit: y must have 4 targets; got 3"):
        fit(network, np.zeros((4, 2)), np.zeros((3, 3)), squared, adam, 1, rng)
    other = Network([Dense(layer.W.copy(), layer.b.copy())])
    with pytest.raises(
        ValueError, match="fit: optimizer must hold the parameters of this net"
    ):
        fit(other, np.zeros((4, 2)), np.zeros((4, 3)), squared, adam, 1, rng)
    with pytest.raises(ValueError, match="train: epochs must be a whole number"):
        fit(network, np.zeros((4, 2)), np.zeros((4, 3)), squared, adam, 0, rng)
