import copy
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from twins import normal

from dlcore.convolution.batchnorm import BatchNorm2d
from dlcore.optimization.autograd import Tensor
from dlcore.optimization.normalization import BatchNorm

sizes = st.tuples(*(st.integers(1, 5) for _ in range(4))).filter(
    lambda s: s[0] * s[2] * s[3] > 1
)


def twins(rng, channels, **how):
    """Return our layer and that of PyTorch with the same parameters."""
    ours = BatchNorm2d(channels, **how).double()
    theirs = torch.nn.BatchNorm2d(channels, **how).double()
    with torch.no_grad():
        ours.gamma.copy_(theirs.weight.copy_(normal(rng, channels)))
        ours.beta.copy_(theirs.bias.copy_(normal(rng, channels)))
    return ours, theirs


@given(seeds, sizes, st.sampled_from([1e-5, 0.1]), st.sampled_from([0.1, 1.0]))
def test_values_gradients_and_statistics_are_those_of_torch(rng, shape, eps, momentum):
    ours, theirs = twins(rng, shape[1], eps=eps, momentum=momentum)
    for _ in range(3):
        x = (3 * normal(rng, *shape) + 1).requires_grad_()
        delta = normal(rng, *shape)
        y, z = ours(x), theirs(x)
        torch.testing.assert_close(y, z)
        for mine, other in zip(
            torch.autograd.grad(y, [x, ours.gamma, ours.beta], delta),
            torch.autograd.grad(z, [x, theirs.weight, theirs.bias], delta),
            strict=True,
        ):
            torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    ours.eval(), theirs.eval()
    x = normal(rng, 1, shape[1], 1, 1).requires_grad_()
    torch.testing.assert_close(ours(x), theirs(x))
    mine, other = (torch.autograd.grad(f(x).sum(), x)[0] for f in (ours, theirs))
    torch.testing.assert_close(mine, other)


@given(seeds, st.floats(0.1, 10), st.floats(-5, 5))
def test_scale_and_bias_of_a_channel_do_not_matter(rng, factor, shift):
    norm, x = BatchNorm2d(3, eps=0).double(), normal(rng, 4, 3, 5, 5)
    torch.testing.assert_close(norm(factor * x + shift), norm(x))


@given(seeds)
def test_places_and_pictures_are_all_alike(rng):
    norm, x = BatchNorm2d(2).double(), normal(rng, 3, 2, 4, 5)
    order = torch.tensor(rng.permutation(60))
    flat = x.transpose(0, 1).reshape(2, 60)

    def back(table):
        return table.reshape(2, 3, 4, 5).transpose(0, 1)

    shuffled = norm(back(flat[:, order]))
    expected = norm(x).transpose(0, 1).reshape(2, 60)[:, order]
    torch.testing.assert_close(shuffled, back(expected))


def test_is_the_layer_for_tables_with_places_as_examples():
    x = torch.randn(4, 3, 5, 2, dtype=torch.float64)
    table = BatchNorm(3)(Tensor(x.numpy())).data
    ours = BatchNorm2d(3).double()(x).detach()
    torch.testing.assert_close(ours, torch.tensor(table))


def test_two_pixels_by_hand():
    norm = BatchNorm2d(1, eps=0)
    with torch.no_grad():
        norm.gamma.fill_(3.0), norm.beta.fill_(10.0)
    y = norm(torch.tensor([[[[2.0, 6.0]]]]))
    assert torch.equal(y, torch.tensor([[[[7.0, 13.0]]]]))
    assert torch.allclose(norm.running_mean, torch.tensor([0.4]))
    assert torch.allclose(norm.running_var, torch.tensor([0.9 + 0.8]))
    assert repr(norm) == "BatchNorm2d(1)"


@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("training", [True, False])
@given(seeds)
def test_second_derivatives_are_those_of_torch(training, power, rng):
    ours, theirs = (norm.train(training) for norm in twins(rng, 2))
    x, weights = normal(rng, 3, 2, 3, 2).requires_grad_(), normal(rng, 3, 2, 3, 2)

    def twice(norm):
        cost = (weights * norm(x) ** power).sum()
        (slope,) = torch.autograd.grad(cost, x, create_graph=True)
        return torch.autograd.grad((slope**2).sum(), [x, *norm.parameters()][:2])

    torch.testing.assert_close(twice(ours), twice(theirs), rtol=1e-6, atol=1e-7)


def test_input_and_its_gradient_are_left_alone():
    x = torch.randn(2, 3, 4, 4, requires_grad=True)
    before, delta = x.detach().clone(), torch.randn(2, 3, 4, 4)
    kept = delta.clone()
    norm = BatchNorm2d(3)
    y = norm(x)
    y.backward(delta, retain_graph=True)
    first = x.grad.clone()
    y.backward(delta)
    assert torch.equal(x.detach(), before)
    assert torch.equal(delta, kept)
    torch.testing.assert_close(x.grad, 2 * first)


def test_statistics_are_saved_and_do_not_carry_gradients():
    norm = BatchNorm2d(2)
    norm(torch.randn(3, 2, 2, 2, requires_grad=True))
    assert {"running_mean", "running_var"} < {*norm.state_dict()}
    assert not norm.running_mean.requires_grad
    copy.deepcopy(norm)


X = torch.randn(2, 3, 4, 4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: BatchNorm2d(0), "channels must be a whole number from 1 on"),
        (lambda: BatchNorm2d(3, eps=-1), "eps must lie in [0, ∞); got -1"),
        (lambda: BatchNorm2d(3, momentum=0), "momentum must lie in (0, 1]"),
        (
            lambda: BatchNorm2d(4)(X),
            "have the shape (…, 4, …, …); got shape (2, 3, 4, 4)",
        ),
        (lambda: BatchNorm2d(3)(X[0]), "got shape (3, 4, 4)"),
        (lambda: BatchNorm2d(3)(X.double()), "have dtype torch.float32"),
        (
            lambda: BatchNorm2d(3)(X[:1, :, :1, :1]),
            "have at least two numbers; got 1. One number",
        ),
        (lambda: BatchNorm2d(3)(X / 0), "have a finite variance"),
        (lambda: BatchNorm2d(3, eps=0)(0 * X), "vary in every channel where eps is 0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses_with_a_sentence(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()


def test_refused_batch_leaves_the_statistics():
    norm = BatchNorm2d(3)
    with pytest.raises(ValueError, match="finite variance"):
        norm(X / 0)
    assert not norm.running_mean.any()
