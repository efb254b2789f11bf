import numpy as np
import pytest
import torch
from draws import seeds
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from dlcore.optimization.autograd import Tensor
from dlcore.optimization.modules import Linear, Sequential
from dlcore.optimization.shortcuts import Residual, Skip

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


def test_single_precision_stays():
    x = Tensor(np.ones((2, 3), np.float32))
    f = Linear(3, 3, np.random.default_rng(0), np.float32)
    assert Residual(f, 3**-0.5)(x).data.dtype == np.float32
    assert Skip(f, "mean")(x).data.dtype == np.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f, x: Skip(f, "sum"), "combine must .*; got sum. .*Residual"),
        (lambda f, x: Skip(f, ["mean"]), "combine must be one of"),
        (lambda f, x: Residual(f, np.nan), "scale must be a finite number"),
        (lambda f, x: Residual(f, "a"), "scale must be a finite number"),
        (
            lambda f, x: Residual(lambda t: t.data)(x),
            "branch must return a Tensor; got ndarray",
        ),
        (lambda f, x: Residual(f)(x), r"keep the shape \(2, 3\); got \(2, 1\)"),
        (lambda f, x: Skip(f, "max")(x), r"keep the shape \(2, 3\)"),
        (lambda f, x: Skip(f, "mean")(x), r"keep the shape \(2, 3\)"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refusals(call, message):
    f = Linear(3, 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        call(f, Tensor(np.ones((2, 3))))
