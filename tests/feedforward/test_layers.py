import numpy as np
import pytest
import torch
import torch.nn.functional as F
from draws import seeds
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from dlcore.feedforward.activations import (
    gelu,
    identity,
    relu,
    sigmoid,
    softplus,
    tanh,
)
from dlcore.feedforward.layers import Concat, Dense, Residual

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


def test_by_hand():
    W = np.array([[1.0, 1.0], [-1.0, -1.0]])
    layer = Dense(W, np.array([-1.5, 0.5]), relu)
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert layer(X).tolist() == [[0, 0.5], [0, 0], [0.5, 0]]
    assert (layer.inputs, layer.outputs) == (2, 2)
    shortcut = Residual(np.zeros((1, 2)), np.zeros(1), relu, np.ones((1, 2)))
    assert shortcut(X).tolist() == [[0], [1], [2]]
    assert Concat(W, np.zeros(2))(X[2:]).tolist() == [[1, 1, 2, -2]]


@pytest.mark.usefixtures("unchecked")
def test_refusals():
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
        ValueError,
        match=r"Dense: X must have 2 columns; got shape \(5, 3\). Rows",
    ):
        Dense(W, np.zeros(3))(np.zeros((5, 3)))
    with pytest.raises(
        ValueError, match=r"Dense: b must have one bias .* got shape \(\)"
    ):
        Dense(W, 1.0)
    with pytest.raises(
        ValueError, match=r"Residual: V must have the shape of W, \(3, 2\)"
    ):
        Residual(W, np.zeros(3), relu, np.eye(3))
    with pytest.raises(ValueError, match="Residual: V must be finite"):
        Residual(W, np.zeros(3), relu, W * np.nan)
    with pytest.raises(
        ValueError,
        match=r"Residual: W must be square without V; got shape \(3, 2\)",
    ):
        Residual(W, np.zeros(3))


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
