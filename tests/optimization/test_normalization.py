import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import seeds
from torch.nn.utils.parametrizations import weight_norm

from dlcore.optimization.autograd import Tensor
from dlcore.optimization.modules import Linear, Sequential
from dlcore.optimization.normalization import (
    BatchNorm,
    LayerNorm,
    WeightNorm,
    standardize,
)

SHAPES = st.sampled_from([(2, 3), (5, 3), (30, 3), (4, 3, 7), (2, 3, 4, 5)])


def pull_back(layer, x, delta):
    """Send a gradient back through a layer, of ours or of torch."""
    if isinstance(layer, torch.nn.Module):
        x = torch.tensor(x, requires_grad=True)
        y, delta = layer(x), torch.tensor(delta)
    else:
        x = Tensor(x, requires_grad=True)
        y = layer(x)
    (y * delta).sum().backward()
    return (y.detach().numpy() if isinstance(y, torch.Tensor) else y.data), x


def copy_affine(ours, theirs, rng):
    gamma, beta = rng.normal(size=(2, ours.gamma.size))
    ours.gamma.data[:], ours.beta.data[:] = gamma, beta
    with torch.no_grad():
        theirs.weight.copy_(torch.tensor(gamma))
        theirs.bias.copy_(torch.tensor(beta))


def assert_same_both_ways(ours, theirs, rng, shape):
    """Send a random input up and a random gradient down through both."""
    x, delta = rng.normal(2, 3, size=shape), rng.normal(size=shape)
    y, x_ours = pull_back(ours, x, delta)
    y_theirs, x_theirs = pull_back(theirs, x, delta)
    assert_allclose(y, y_theirs, atol=1e-9)
    assert_allclose(x_ours.grad, x_theirs.grad, atol=1e-9)


@given(
    rng=seeds,
    shape=SHAPES,
    eps=st.sampled_from([1e-5, 0.1]),
    momentum=st.sampled_from([0.1, 0.7, 1.0]),
)
def test_batch_norm_equals_torch(rng, shape, eps, momentum):
    Theirs = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d}
    ours = BatchNorm(3, eps, momentum)
    theirs = Theirs[len(shape)](3, eps, momentum, dtype=torch.float64)
    copy_affine(ours, theirs, rng)
    for training in (True, True, False):
        ours.train(training)
        theirs.train(training)
        assert_same_both_ways(ours, theirs, rng, shape)
    assert_allclose(ours.gamma.grad, theirs.weight.grad, atol=1e-8)
    assert_allclose(ours.beta.grad, theirs.bias.grad, atol=1e-9)
    assert_allclose(ours.running_mean, theirs.running_mean, atol=1e-12)
    assert_allclose(ours.running_var, theirs.running_var, atol=1e-12)


@given(rng=seeds, shape=st.sampled_from([(3,), (1, 3), (5, 3), (2, 4, 3)]))
def test_layer_norm_equals_torch(rng, shape):
    ours, theirs = LayerNorm(3), torch.nn.LayerNorm(3, dtype=torch.float64)
    copy_affine(ours, theirs, rng)
    assert_same_both_ways(ours, theirs, rng, shape)
    assert_allclose(ours.gamma.grad, theirs.weight.grad, atol=1e-9)
    assert_allclose(ours.beta.grad, theirs.bias.grad, atol=1e-9)


@given(rng=seeds)
def test_weight_norm_equals_torch(rng):
    ours = WeightNorm(Linear(4, 3, rng))
    ours.g.data[:] = rng.normal(size=(3, 1))
    theirs = weight_norm(torch.nn.Linear(4, 3, dtype=torch.float64))
    g, v = theirs.parametrizations.weight.parameters()
    with torch.no_grad():
        g.copy_(torch.tensor(ours.g.data))
        v.copy_(torch.tensor(ours.V.data))
        theirs.bias.zero_()
    x, delta = rng.normal(size=(6, 4)), rng.normal(size=(6, 3))
    y, x_ours = pull_back(ours, x, delta)
    y_theirs, x_theirs = pull_back(theirs, x, delta)
    assert_allclose(y, y_theirs, atol=1e-12)
    assert_allclose(x_ours.grad, x_theirs.grad, atol=1e-12)
    assert_allclose(ours.g.grad, g.grad, atol=1e-12)
    assert_allclose(ours.V.grad, v.grad, atol=1e-12)
    assert_allclose(ours.b.grad, theirs.bias.grad, atol=1e-12)


def test_weight_norm_starts_as_a_linear_layer():
    x = Tensor(np.random.default_rng(1).normal(size=(5, 4)))
    normed = WeightNorm(Linear(4, 3, np.random.default_rng(0)))
    linear = Linear(4, 3, np.random.default_rng(0))
    assert_allclose(normed(x).data, linear(x).data, atol=1e-14)
    assert {*normed.named_parameters()} == {"V", "b", "g"}


@given(rng=seeds, axis=st.sampled_from([0, 1, -1, (0, 1), None]))
def test_standardized_numbers_forget_shift_and_scale(rng, axis):
    x = rng.normal(size=(4, 5))
    once = standardize(Tensor(x), axis, eps=0).data
    assert_allclose(once.mean(axis=axis), 0, atol=1e-12)
    assert_allclose(once.var(axis=axis), 1, atol=1e-12)
    again = standardize(Tensor(3 * x - 7), axis, eps=0).data
    assert_allclose(again, once, atol=1e-9)


def test_batch_of_two_by_hand():
    norm = BatchNorm(2, eps=0)
    norm.gamma.data[:] = [3, 1]
    norm.beta.data[:] = [1, 0]
    y = norm(Tensor([[2.0, 5.0], [4.0, -5.0]])).data
    assert_array_equal(y, [[-2, 1], [4, -1]])
    assert_allclose(norm.running_mean, [0.3, 0])
    assert_allclose(norm.running_var, [0.9 + 0.2, 0.9 + 5])


def test_small_variance_is_not_blown_up():
    x = Tensor(1e-3 * np.array([[1.0], [-1.0]]))
    assert_allclose(BatchNorm(1)(x).data.var(), 1 / 11)
    constant = Tensor(np.full((4, 1), 7.0))
    assert_array_equal(BatchNorm(1)(constant).data, np.zeros((4, 1)))


def test_running_statistics_belong_to_the_state():
    rng = np.random.default_rng(0)

    def build():
        return Sequential(Linear(3, 2, rng), BatchNorm(2))

    trained, fresh = build(), build()
    for _ in range(5):
        trained(Tensor(rng.normal(size=(8, 3))))
    state = trained.state_dict()
    assert "layers.1.running_var" in state
    fresh.load_state_dict(state)
    x = Tensor(rng.normal(size=(1, 3)))
    assert_array_equal(fresh.eval()(x).data, trained.eval()(x).data)
    trained.train()(Tensor(rng.normal(size=(8, 3))))  # the state is a copy
    assert (state["layers.1.running_mean"] != trained.layers[1].running_mean).all()
    assert trained.size == 3 * 2 + 2 + 2 + 2


def test_use_changes_no_statistics():
    norm = BatchNorm(2).eval()
    norm(Tensor(np.random.default_rng(0).normal(size=(9, 2))))
    assert_array_equal(norm.running_mean, 0)
    assert_array_equal(norm.running_var, 1)


@pytest.mark.parametrize(
    "layer", [BatchNorm(3, dtype=np.float32), LayerNorm(3, dtype=np.float32)]
)
def test_single_precision_stays(layer):
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    for training in (True, False):
        y, source = pull_back(layer.train(training), x, x)
        assert y.dtype == source.grad.dtype == np.float32
        assert layer.gamma.grad.dtype == np.float32
    assert all(array.dtype == np.float32 for array in layer.state_dict().values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BatchNorm(0), "features must be a whole number from 1"),
        (lambda: BatchNorm(2, eps=-1), r"eps must lie in \[0, ∞\)"),
        (lambda: BatchNorm(2, eps=None), r"eps must lie in \[0, ∞\)"),
        (lambda: BatchNorm(2, momentum=0), r"momentum must lie in \(0, 1\]"),
        (lambda: BatchNorm(2, momentum="a"), r"momentum must lie in \(0, 1\]"),
        (lambda: BatchNorm(2, dtype=int), "dtype must be a floating type"),
        (lambda: LayerNorm(1), "features must be a whole number from 2"),
        (lambda: LayerNorm(2, eps=np.nan), r"eps must lie in \[0, ∞\)"),
        (
            lambda: BatchNorm(2)(Tensor([[1.0, 2.0]])),
            "at least two examples; got 1. .*eval",
        ),
        (
            lambda: BatchNorm(2)(Tensor(np.zeros((0, 2)))),
            "at least two examples; got 0",
        ),
        (
            lambda: BatchNorm(2)(Tensor(np.zeros((4, 3)))),
            "have 2 features along its second axis",
        ),
        (
            lambda: BatchNorm(2)(Tensor(np.zeros(2))),
            "have 2 features along its second axis",
        ),
        (
            lambda: LayerNorm(2)(Tensor(np.zeros((4, 3)))),
            "have 2 features along its last axis",
        ),
        (lambda: BatchNorm(1, eps=0)(Tensor(np.ones((4, 1)))), "vary along the axis"),
        (lambda: BatchNorm(1)(Tensor([[1.0], [np.nan]])), "have a finite variance"),
        (lambda: standardize(Tensor([1e200, -1e200]), 0), "have a finite variance"),
        (
            lambda: standardize(Tensor(np.ones((2, 3))), 2),
            "axis must be one of 2 axes; got 2",
        ),
        (lambda: standardize(Tensor(np.zeros((0, 3))), 0), "x must hold numbers"),
        (
            lambda: WeightNorm(Linear(2, 3, np.random.default_rng(0)))(
                Tensor(np.ones((4, 3)))
            ),
            "have 2 columns",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "layer",
    [
        BatchNorm(2),
        LayerNorm(2),
        WeightNorm(Linear(2, 2, np.random.default_rng(0))),
        lambda x: standardize(x, 0),
    ],
)
def test_arrays_are_refused(layer):
    with pytest.raises(ValueError, match="x must be a Tensor; got ndarray"):
        layer(np.ones((3, 2)))


@pytest.mark.parametrize("rows", [2, 3, 7, 10, 100, 1001])
@pytest.mark.parametrize("value", [0.0, 0.1, -0.3, 1e10])
def test_equal_numbers_are_refused_however_many(rows, value):
    x = np.full((rows, 1), value)
    for almost in (x, np.vstack([x, np.nextafter(value, 1e30) + x[:1] * 0])):
        with pytest.raises(ValueError, match="vary along the axis"):
            standardize(Tensor(almost), 0, eps=0)
    far = np.vstack([x, x[:1] + 1e-9 * (1 + abs(value))])
    assert_allclose(standardize(Tensor(far), 0, 0).data.var(), 1)


def test_a_refused_batch_leaves_no_trace():
    norm = BatchNorm(1, eps=0)
    for bad in (np.ones((4, 1)), np.array([[1.0], [np.inf]])):
        with pytest.raises(ValueError, match="standardize: x must"):
            norm(Tensor(bad))
    assert_array_equal(norm.running_mean, 0)
    assert_array_equal(norm.running_var, 1)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_weight_norm_bears_huge_and_tiny_rows(scale):
    layer = WeightNorm(Linear(2, 1, np.random.default_rng(0)))
    layer.V.data[:], layer.g.data[:] = [[3 * scale, -4 * scale]], 5
    assert_allclose(layer(Tensor([[1.0, 0], [0, 1]])).data, [[3], [-4]])


@pytest.mark.parametrize("bad", [0, np.nan, np.inf])
def test_weight_norm_refuses_a_row_without_direction(bad):
    layer = WeightNorm(Linear(2, 2, np.random.default_rng(0)))
    layer.V.data[0] = bad
    with pytest.raises(ValueError, match="V must be finite and not zero"):
        layer(Tensor(np.ones((1, 2))))
