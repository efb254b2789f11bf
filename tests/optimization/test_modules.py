import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import seeds

from dlcore.optimization.autograd import Tensor, cross_entropy
from dlcore.optimization.modules import (
    Dropout,
    Linear,
    Module,
    Parameter,
    Residual,
    Sequential,
    Skip,
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
            {"weight": torch.tensor(layer.W.data), "bias": torch.tensor(layer.b.data)}
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


THEIRS = {
    "concat": lambda x, y: torch.cat([x, y], dim=-1),
    "mean": lambda x, y: torch.stack([x, y]).mean(dim=0),
    "max": torch.maximum,
}


def both_ways(ours, theirs, W, x, rng):
    """Values and gradients by x and W, ours and those of torch."""
    a, b = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    w = torch.tensor(W.data, requires_grad=True)
    y, z = ours(a), theirs(b, torch.tanh(b @ w.T))
    delta = rng.normal(size=y.shape)
    (y * delta).sum().backward()
    (z * torch.tensor(delta)).sum().backward()
    assert_allclose(y.data, z.detach(), atol=1e-12)
    assert_allclose(a.grad, b.grad, atol=1e-12)
    assert_allclose(W.grad, w.grad, atol=1e-12)


@given(rng=seeds, combine=st.sampled_from(sorted(THEIRS)))
def test_skip_equals_torch(rng, combine):
    linear = Linear(4, 4, rng)
    skip = Skip(Sequential(linear, Tensor.tanh), combine)
    x = rng.normal(size=(5, 4))
    both_ways(skip, THEIRS[combine], linear.W, x, rng)
    assert skip.parameters() == [linear.W, linear.b]


@given(rng=seeds, scale=st.floats(-2, 2))
def test_residual_equals_torch(rng, scale):
    linear = Linear(4, 4, rng)
    residual = Residual(Sequential(linear, Tensor.tanh), scale)
    x = rng.normal(size=(5, 4))
    both_ways(residual, lambda x, y: x + scale * y, linear.W, x, rng)


def test_max_shares_the_gradient_of_equal_entries():
    x = Tensor([[1.0, -2.0]], requires_grad=True)
    Skip(Tensor.abs, "max")(x).sum().backward()
    assert_array_equal(x.grad, [[0.5 + 0.5, -1]])


@given(rng=seeds)
def test_zero_branch_is_the_identity(rng):
    linear = Linear(3, 3, rng)
    linear.W.data[:] = 0
    x = rng.normal(size=(2, 3))
    assert_array_equal(Residual(linear)(Tensor(x)).data, x)


def test_shortcuts_keep_single_precision():
    x = Tensor(np.ones((2, 3), np.float32))
    f = Linear(3, 3, np.random.default_rng(0), np.float32)
    assert Residual(f, 3**-0.5)(x).data.dtype == np.float32
    assert Skip(f, "mean")(x).data.dtype == np.float32


RNG = np.random.default_rng(0)
X = Tensor(np.ones((2, 3)))
F = Linear(3, 1, RNG)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Linear(0, 2, RNG),
            "Linear: inputs must be a whole number from 1 on; got 0",
        ),
        (lambda: Linear(2, 1, RNG, int), "Linear: dtype must be a floating"),
        (
            lambda: Linear(2, 2, RNG)(X),
            "Linear: x must have 2 columns; got shape (2, 3)",
        ),
        (
            lambda: F(Tensor(np.ones(3))),
            "Linear: x must have 3 columns; got shape (3,)",
        ),
        (Sequential, "Sequential: layers must not be empty"),
        *(
            (lambda p=p: Dropout(p, RNG), "Dropout: p must lie in [0, 1)")
            for p in (1, -0.1, np.nan)
        ),
        (
            lambda: Sequential(F).load_state_dict({"layers.0.W": np.zeros((1, 2))}),
            "load_state_dict: state must have the arrays",
        ),
        (
            lambda: Skip(F, "sum"),
            "Skip: combine must be one of ['concat', 'mean', 'max']; got 'sum'",
        ),
        (lambda: Skip(F, ["mean"]), "combine must be one of"),
        (lambda: Residual(F, np.nan), "scale must lie in (-∞, ∞); got nan"),
        (lambda: Residual(F, "a"), "scale must lie in (-∞, ∞); got a"),
        (
            lambda: Residual(lambda t: t.data)(X),
            "Residual: the branch must be a Tensor (2, 3); got ndarray",
        ),
        (
            lambda: Residual(F)(X),
            "must be a Tensor (2, 3); got Tensor (2, 1). It keeps the shape.",
        ),
        (lambda: Skip(F, "max")(X), "Skip: the branch must be a Tensor (2, 3)"),
        (lambda: Skip(F, "mean")(X), "Skip: the branch must be a Tensor (2, 3)"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_a_module_says_what_it_computes():
    with pytest.raises(NotImplementedError):
        Module()(X)
