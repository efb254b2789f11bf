import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import special, stats
from strategies import seeds

from dlcore.feedforward.activations import softmax
from dlcore.feedforward.losses import (
    absolute,
    binary_cross_entropy,
    cross_entropy,
    huber,
    one_hot,
    poisson,
    squared,
)

THEIRS = {
    squared: lambda o, y: F.mse_loss(o, y, reduction="none") / 2,
    absolute: lambda o, y: F.l1_loss(o, y, reduction="none"),
    huber: lambda o, y: F.huber_loss(o, y, reduction="none"),
    binary_cross_entropy: lambda o, y: F.binary_cross_entropy_with_logits(
        o, y, reduction="none"
    ),
}
SCALES = st.sampled_from([1e-3, 1.0, 1000.0])


def assert_equal(loss, theirs, o, y):
    """Compare values and gradients with those of torch."""
    leaf = torch.tensor(o, requires_grad=True)
    value = theirs(leaf, torch.tensor(y))
    value.sum().backward()
    rows = value.detach().numpy().reshape(len(o), -1).sum(axis=1)
    rounding = 1e-15 * np.abs(o).max()  # torch subtracts numbers of this size
    assert_allclose(loss(o, y), rows, rtol=1e-12, atol=rounding)
    assert_allclose(loss.gradient(o, y), leaf.grad, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("loss", THEIRS, ids=lambda loss: loss.name)
@given(rng=seeds, scale=SCALES, shape=st.sampled_from([(5,), (4, 3), (1, 1)]))
def test_value_and_gradient_equal_torch(loss, rng, scale, shape):
    o = scale * rng.normal(size=shape)
    y = rng.integers(0, 2, size=shape).astype(float)
    assert_equal(loss, THEIRS[loss], o, y)


@given(rng=seeds, scale=SCALES, s=st.integers(1, 6), C=st.integers(1, 5))
def test_cross_entropy_equals_torch(rng, scale, s, C):
    o = scale * rng.normal(size=(s, C))
    theirs = lambda o, y: F.cross_entropy(o, y, reduction="none")  # noqa: E731
    y = rng.integers(0, C, size=s)
    assert_equal(cross_entropy, theirs, o, y)
    assert_equal(cross_entropy, theirs, o, softmax(rng.normal(size=(s, C))))
    assert (cross_entropy(o, y) == cross_entropy(o, one_hot(y, C))).all()


@given(rng=seeds, C=st.integers(2, 5))
def test_cross_entropy_is_least_at_the_target(rng, C):
    p, q = softmax(rng.normal(size=(2, 1, C)))
    assert cross_entropy(np.log(p), p) <= cross_entropy(np.log(q), p)
    assert_allclose(cross_entropy.gradient(np.log(p), p), 0, atol=1e-15)


def test_scores_of_a_thousand():
    sure = np.array([[1000.0, -1000.0]])
    assert cross_entropy(sure, np.array([0])) == [0]
    assert cross_entropy(sure, np.array([1])) == [2000]
    assert binary_cross_entropy(sure, np.array([[1.0, 0.0]])) == [0]
    assert binary_cross_entropy(sure, np.array([[0.0, 1.0]])) == [2000]
    assert binary_cross_entropy(np.array([40.0]), np.ones(1)) > 0


@given(rng=seeds, shape=st.sampled_from([(5,), (4, 3), (1, 1)]))
def test_poisson_equals_torch_and_the_likelihood(rng, shape):
    o, y = rng.normal(size=shape), rng.poisson(3, shape).astype(float)
    theirs = lambda o, y: F.poisson_nll_loss(o, y, reduction="none")  # noqa: E731
    assert_equal(poisson, theirs, o, y)
    likelihood = stats.poisson.logpmf(y, np.exp(o)) + special.gammaln(y + 1)
    rows = likelihood.reshape(len(o), -1).sum(axis=1)
    assert_allclose(poisson(o, y), -rows, rtol=1e-9, atol=1e-9)


def test_by_hand():
    o, y = np.array([[1.0, 5.0]]), np.array([[0.0, 2.0]])
    assert squared(o, y) == [5]
    assert absolute(o, y) == [4]
    assert huber(o, y) == [0.5 + 2.5]
    assert huber.gradient(o, y).tolist() == [[1, 1]]
    assert poisson(np.zeros((1, 2)), y) == [2]
    assert poisson.gradient(np.zeros((1, 2)), y).tolist() == [[1, -1]]
    assert one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.usefixtures("unchecked")
def test_refusals():
    with pytest.raises(
        ValueError, match=r"y must have the shape \(3, 1\); got shape \(3,\). A col"
    ):
        squared(np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(ValueError, match="turns labels ±1 into 0 and 1"):
        binary_cross_entropy(np.zeros(2), np.array([-1.0, 1.0]))
    with pytest.raises(ValueError, match="y must lie in 0 … 2"):
        cross_entropy(np.zeros((1, 3)), np.array([3]))
    with pytest.raises(
        ValueError, match=r"y must have the shape \(1,\); got shape \(2,\)"
    ):
        cross_entropy(np.zeros((1, 3)), np.array([0, 1]))
    with pytest.raises(ValueError, match="y must lie in 0 … 2"):
        one_hot(np.array([-1]), 3)
    with pytest.raises(ValueError, match="whole numbers, one per example"):
        cross_entropy(np.zeros((1, 3)), np.array([1.0]))
    with pytest.raises(ValueError, match="rows of probabilities with sum 1"):
        cross_entropy(np.zeros((1, 2)), np.array([[1.0, 1.0]]))
    with pytest.raises(
        ValueError, match=r"o must have the shape \(…, …\); got shape \(3,\)"
    ):
        cross_entropy(np.zeros(3), np.array([0, 1, 2]))
    for wrong, shown in [(-2.0, "-2"), (2.5, "2.5"), (np.inf, "inf")]:
        with pytest.raises(ValueError, match=rf"be counts .*; got \[{shown}"):
            poisson(np.zeros(2), np.array([3.0, wrong]))
    with pytest.raises(ValueError, match=r"logs of rates, at most 709; got 710\.0"):
        poisson.gradient(np.array([1.0, 710.0]), np.zeros(2))
    assert np.isfinite(poisson(np.array([709.0, -1e5]), np.ones(2))).all()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "o",
    [
        np.array([100, -100], dtype=np.int8),
        np.array([True, False]),
        np.array(1.0),
        np.zeros((0, 2)),
        np.zeros((2, 0)),
    ],
    ids=lambda o: f"{o.dtype}{o.shape}",
)
def test_refuses_outputs_that_are_not_rows_of_floats(o):
    for loss in [*THEIRS, cross_entropy, poisson]:
        for call in loss, loss.gradient:
            with pytest.raises(
                ValueError,
                match=rf"{loss.name} loss: o must be floats.*; got {o.dtype} of",
            ):
                call(o, np.zeros(o.shape))


def test_whole_targets_do_not_wrap():
    o, y = np.array([-100.0]), np.array([100], dtype=np.int8)
    assert squared(o, y) == [20_000]
    assert poisson(o, y) == [10_000]
