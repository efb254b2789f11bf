import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from strategies import seeds

from dlcore.feedforward.activations import gelu, identity, relu, sigmoid, softplus, tanh
from dlcore.feedforward.losses import cross_entropy, squared
from dlcore.feedforward.network import (
    Concat,
    Dense,
    Network,
    Residual,
    initialize,
    layered,
    mlp,
)
from dlcore.optimization.optimizers import GD, Adam
from dlcore.optimization.training import fit

TORCH = {
    identity: lambda z: z,
    relu: F.relu,
    tanh: torch.tanh,
    sigmoid: torch.sigmoid,
    softplus: F.softplus,
    gelu: F.gelu,
}
ACTIVATIONS = st.sampled_from(list(TORCH))
SIZES = st.integers(1, 4)


def draw(kind, m, n, phi, rng):
    """Draw a layer; ``"shortcut"`` is a residual layer with a matrix V."""
    W, b = rng.normal(size=(m, n)), rng.normal(size=m)
    if kind == "shortcut":
        return Residual(W, b, phi, rng.normal(size=(m, n)))
    return kind(W, b, phi)


def theirs(layer, X, W, b, V=None):
    """Compute a layer with torch."""
    u = TORCH[layer.phi](F.linear(X, W, b))
    if isinstance(layer, Concat):
        return torch.cat([X, u], dim=1)
    if isinstance(layer, Residual):
        short = X if V is None else F.linear(X, V)
        return short + u - TORCH[layer.phi](torch.zeros(1).double())
    return u


@pytest.mark.parametrize("kind", [Dense, Residual, Concat, "shortcut"])
@given(rng=seeds, s=SIZES, m=SIZES, n=SIZES, phi=ACTIVATIONS)
def test_value_and_gradient_equal_torch(kind, rng, s, m, n, phi):
    layer = draw(kind, n if kind is Residual else m, n, phi, rng)
    X = rng.normal(size=(s, n))
    Y, Z = layer.forward(X)
    dY = rng.normal(size=Y.shape)
    leaves = [torch.tensor(a, requires_grad=True) for a in [X, *layer.parameters()]]
    value = theirs(layer, *leaves)
    value.backward(torch.tensor(dY))
    assert_allclose(Y, value.detach(), atol=1e-12)
    dX, gradients = layer.backward(X, Z, dY)
    for ours, leaf in zip([dX, *gradients], leaves, strict=True):
        assert_allclose(ours, leaf.grad, atol=1e-12)
    assert Y.shape[1] == layer.outputs


@given(rng=seeds, n=SIZES, phi=ACTIVATIONS)
def test_residual_layer_of_zeros_is_the_identity(rng, n, phi):
    X = rng.normal(size=(5, n))
    layer = Residual(np.zeros((n, n)), np.zeros(n), phi)
    assert_array_equal(layer(X), X)


@given(rng=seeds, m=SIZES, n=SIZES, phi=ACTIVATIONS)
def test_rows_do_not_see_each_other(rng, m, n, phi):
    layer = draw(Dense, m, n, phi, rng)
    X = rng.normal(size=(4, n))
    assert_allclose(layer(X), np.vstack([layer(x[None]) for x in X]), atol=1e-14)


def test_layers_by_hand():
    W = np.array([[1.0, 1.0], [-1.0, -1.0]])
    layer = Dense(W, np.array([-1.5, 0.5]), relu)
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert layer(X).tolist() == [[0, 0.5], [0, 0], [0.5, 0]]
    assert (layer.inputs, layer.outputs) == (2, 2)
    shortcut = Residual(np.zeros((1, 2)), np.zeros(1), relu, np.ones((1, 2)))
    assert shortcut(X).tolist() == [[0], [1], [2]]
    assert Concat(W, np.zeros(2))(X[2:]).tolist() == [[1, 1, 2, -2]]


@pytest.mark.usefixtures("unchecked")
def test_layers_refuse():
    W = default_rng(0).normal(size=(3, 2))
    with pytest.raises(
        ValueError,
        match=r"Dense: b must have one bias for each of the 3 rows of W; got shape \(2,\)",
    ):
        Dense(W, np.zeros(2))
    with pytest.raises(ValueError, match="Dense: W must be a matrix, a row per unit"):
        Dense(np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match="Dense: W and b must be finite"):
        Dense(W * np.nan, np.zeros(3))
    with pytest.raises(
        ValueError, match=r"Dense: X must have 2 columns; got shape \(5, 3\). Rows"
    ):
        Dense(W, np.zeros(3))(np.zeros((5, 3)))
    with pytest.raises(
        ValueError, match=r"Dense: b must have one bias .* got shape \(\)"
    ):
        Dense(W, 1.0)
    with pytest.raises(
        ValueError, match=r"Residual: V must have the shape \(3, 2\); got shape"
    ):
        Residual(W, np.zeros(3), relu, np.eye(3))
    with pytest.raises(ValueError, match="Residual: V must be finite"):
        Residual(W, np.zeros(3), relu, W * np.nan)
    with pytest.raises(
        ValueError, match=r"Residual: W must have the shape \(2, 2\); got .* Or pass V"
    ):
        Residual(W, np.zeros(3))
    ramp = Dense(W, np.zeros(3), lambda z: np.clip(z, 0, 1))
    with pytest.raises(ValueError, match="Dense: phi must know its derivative; got <f"):
        ramp.backward(np.zeros((1, 2)), *np.zeros((2, 1, 3)))


@pytest.mark.usefixtures("unchecked")
def test_whole_numbers_become_floats_and_floats_stay_where_they_are():
    W, b = np.array([[1, 2], [3, 4]]), np.array([5, 6])
    layer = Residual(W, b, relu, W)
    for p in layer.parameters():
        assert p.dtype == float
    layer.W -= 0.5
    assert W.tolist() == [[1, 2], [3, 4]]
    assert layer(np.ones((1, 2))).tolist() == [[3 + 7, 7 + 12]]
    W, b, V = W + 0.5, b + 0.5, np.eye(2)
    layer = Residual(W, b, relu, V)
    assert all(p is q for p, q in zip(layer.parameters(), [W, b, V], strict=True))


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

    fit(network, X, y, squared, GD(network.parameters(), 1e-9), 1, rng, batch, note)
    assert {len(rows) for rows in seen[:-1]} <= {batch}
    assert_allclose(np.sort(np.vstack(seen), axis=0), np.sort(X, axis=0))


def test_networks_by_hand():
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
def test_networks_refuse():
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
    with pytest.raises(ValueError, match=r"rule must be a function .*; got 0.1"):
        initialize(network, 0.1, rng)
    with pytest.raises(ValueError, match=r"normal: variance .*; got None"):
        initialize(network, lambda _: None, rng)
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


@given(rng=seeds, sizes=st.lists(st.integers(1, 5), min_size=2, max_size=5))
def test_layers_of_given_weights_end_in_a_linear_one(rng, sizes):
    drawn = mlp(sizes, tanh, rng)
    built = layered([(layer.W, layer.b) for layer in drawn.layers], tanh)
    X = rng.normal(size=(3, sizes[0]))
    assert_array_equal(built(X), drawn(X))
    assert built.parameters()[0] is drawn.parameters()[0]
    hidden = [layer.phi is tanh for layer in built.layers]
    assert hidden == [True] * (len(sizes) - 2) + [False]


@given(seeds)
def test_initialize_draws_every_layer_by_the_rule_and_clears_biases(rng):
    net = mlp([50, 60, 70], relu, rng)
    for layer in net.layers:
        layer.b += 1
    before = [layer.W for layer in net.layers]
    assert initialize(net, lambda shape: 9 / shape[1], rng) is net
    for layer, W in zip(net.layers, before, strict=True):
        assert layer.W is W  # in place: optimizers hold this array
        assert W.var() * layer.inputs == pytest.approx(9, rel=0.15)
        assert not layer.b.any()
