from itertools import pairwise

import numpy as np
import pytest
import torch
from draws import seeds
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from dlcore.optimization.autograd import Tensor, cross_entropy
from dlcore.optimization.modules import (
    Dropout,
    Linear,
    Module,
    Parameter,
    Sequential,
)


class Branches(Module):
    """A list, a dictionary, a shared module and something that is no parameter."""

    def __init__(self, rng):
        shared = Linear(2, 2, rng)
        self.steps, self.heads = [shared, shared], {"mean": Linear(2, 1, rng)}
        self.scale, self.name = Parameter(1.0), "no parameter"

    def forward(self, x):
        for step in self.steps:
            x = step(x).tanh()
        return self.heads["mean"](x) * self.scale


def test_parameters_are_found_in_lists_of_lists():
    rng, model = np.random.default_rng(0), Module()
    model.blocks = [[Linear(1, 1, rng)], {"a": (Parameter(1.0), [])}]
    names = ["blocks.0.0.W", "blocks.0.0.b", "blocks.1.a.0"]
    assert list(model.named_parameters()) == names
    assert not model.eval().blocks[0][0].training


def test_parameters_are_found_once_wherever_they_are():
    model = Branches(np.random.default_rng(0))
    assert list(model.named_parameters()) == [
        "steps.0.W",
        "steps.0.b",
        "steps.1.W",
        "steps.1.b",
        "heads.mean.W",
        "heads.mean.b",
        "scale",
    ]
    assert len(model.parameters()) == 5
    assert model.size == 4 + 2 + 2 + 1 + 1


@given(rng=seeds, widths=st.lists(st.integers(1, 5), min_size=2, max_size=4))
def test_equals_torch(rng, widths):
    layers, theirs = [], []
    for n, m in pairwise(widths):
        layer, twin = Linear(n, m, rng), torch.nn.Linear(n, m).double()
        twin.load_state_dict(
            {
                "weight": torch.tensor(layer.W.data),
                "bias": torch.tensor(layer.b.data),
            }
        )
        layers += [layer, Tensor.tanh]
        theirs += [twin, torch.nn.Tanh()]
    model, twin = Sequential(*layers), torch.nn.Sequential(*theirs)
    X, y = rng.normal(size=(6, widths[0])), rng.integers(0, widths[-1], 6)
    cost = cross_entropy(model(Tensor(X)), y)
    want = torch.nn.functional.cross_entropy(twin(torch.tensor(X)), torch.tensor(y))
    cost.backward()
    want.backward()
    assert_allclose(cost.item(), want.item(), rtol=1e-10)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert_allclose(p.grad, q.grad, rtol=1e-9, atol=1e-12)


def test_weights_have_the_promised_variance_and_precision():
    layer = Linear(50, 2000, np.random.default_rng(0), dtype=np.float32)
    assert layer.W.data.dtype == layer.b.data.dtype == np.float32
    assert_allclose(layer.W.data.var(), 2 / 50, rtol=0.02)
    assert not layer.b.data.any()


def test_a_parameter_is_a_copy():
    start = np.zeros(2)
    p = Parameter(start)
    p.data += 1
    assert_array_equal(start, [0, 0])


@given(rng=seeds)
def test_state_brings_a_model_back(rng):
    model, X = Branches(rng), rng.normal(size=(3, 2))
    before, state = model(Tensor(X)).data, model.state_dict()
    for p in model.parameters():
        p.data += 1.0
    assert not np.array_equal(model(Tensor(X)).data, before)
    model.load_state_dict(state)
    assert_array_equal(model(Tensor(X)).data, before)


def test_dropout_keeps_the_mean_while_training_and_rests_in_use():
    model = Sequential(Dropout(0.25, np.random.default_rng(0)))
    x = Tensor(np.ones((1000, 200)), requires_grad=True)
    y = model(x)
    y.sum().backward()
    assert_array_equal(np.unique(y.data), [0, 1 / 0.75])
    assert_array_equal(x.grad, y.data)  # the same mask backwards
    assert_allclose(np.mean(y.data == 0), 0.25, atol=0.005)
    assert model.eval() is model
    assert model(x) is x
    assert model.train().layers[0].training


def test_a_model_takes_arrays_whatever_its_first_layer_is():
    rng, X = np.random.default_rng(0), np.array([[-1.0, 2.0]])
    layer = Linear(2, 1, rng)
    model = Sequential(Tensor.relu, Dropout(0.0, rng), layer)
    assert_array_equal(model(X).data, layer(Tensor([[0.0, 2.0]])).data)
    assert_array_equal(Sequential(Dropout(0.5, rng))(0 * X).data, 0 * X)


@pytest.mark.usefixtures("unchecked")
def test_refusals():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"Linear: inputs must be a whole .* got 0"):
        Linear(0, 2, rng)
    with pytest.raises(
        ValueError, match=r"Linear: x must have 3 columns; got shape \(2, 4\)"
    ):
        Linear(3, 2, rng)(Tensor(np.ones((2, 4))))
    with pytest.raises(ValueError, match=r"Linear: x .* got shape \(3,\)"):
        Linear(3, 2, rng)(Tensor(np.ones(3)))
    with pytest.raises(ValueError, match="Sequential: layers must not be empty"):
        Sequential()
    for p in (1, -0.1, np.nan):
        with pytest.raises(
            ValueError, match=r"Dropout: p must be a number in \[0, 1\)"
        ):
            Dropout(p, rng)
    with pytest.raises(ValueError, match="Linear: dtype must be a floating"):
        Linear(2, 1, rng, int)
    model = Sequential(Linear(2, 1, rng))
    with pytest.raises(
        ValueError, match=r"load_state_dict: state must have the arrays"
    ):
        model.load_state_dict({"layers.0.W": np.zeros((1, 2))})
    with pytest.raises(NotImplementedError):
        Module()(Tensor(1.0))
