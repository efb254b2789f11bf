import re

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import seeds
from torch.nn import functional as F

from dlcore.convolution.conv import (
    Conv2d,
    causal_conv1d,
    conv2d,
    conv2d_loops,
    out_size,
    receptive_field,
)

sizes = st.integers(1, 9)
settings = st.fixed_dictionaries(
    {
        "stride": st.integers(1, 4),
        "padding": st.integers(0, 4),
        "dilation": st.integers(1, 3),
    }
)


def normal(rng, *shape, grad=True):
    return torch.tensor(rng.normal(size=shape), requires_grad=grad)


@st.composite
def layers(draw):
    """Pictures, kernels, biases and settings that fit together."""
    rng, how = draw(seeds), draw(settings)
    groups, c, each = (draw(st.integers(1, 3)) for _ in range(3))
    rows, columns = draw(sizes), draw(sizes)
    k, l = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    for n, side in ((rows, k), (columns, l)):
        assume(how["dilation"] * (side - 1) < n + 2 * how["padding"])
    x = normal(rng, draw(st.integers(1, 7)), groups * c, rows, columns)
    W = normal(rng, groups * each, c, k, l)
    b = normal(rng, groups * each) if draw(st.booleans()) else None
    return x, W, b, {**how, "groups": groups}


@given(layers())
def test_values_and_gradients_are_those_of_torch(layer):
    x, W, b, how = layer
    ours, theirs = conv2d(x, W, b, **how), F.conv2d(x, W, b, **how)
    torch.testing.assert_close(ours, theirs)
    delta = torch.randn_like(ours)
    leaves = [t for t in (x, W, b) if t is not None]
    for mine, other in zip(
        torch.autograd.grad(ours, leaves, delta),
        torch.autograd.grad(theirs, leaves, delta),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


@given(layers())
def test_fast_version_obeys_the_specification(layer):
    x, W, b, how = layer
    slow = conv2d_loops(x.detach(), W.detach(), b, **how)
    torch.testing.assert_close(conv2d(x, W, b, **how), slow)


@given(layers())
def test_convolution_is_linear_in_picture_and_kernel(layer):
    x, W, _, how = layer
    z, V = torch.randn_like(x), torch.randn_like(W)
    torch.testing.assert_close(
        conv2d(2 * x + z, W, **how), 2 * conv2d(x, W, **how) + conv2d(z, W, **how)
    )
    torch.testing.assert_close(
        conv2d(x, 2 * W + V, **how), 2 * conv2d(x, W, **how) + conv2d(x, V, **how)
    )


@given(seeds, st.integers(-4, 4), st.integers(-4, 4))
def test_what_moves_in_the_picture_moves_in_the_output(rng, down, right):
    x = torch.zeros(1, 2, 20, 20, dtype=torch.float64)
    x[:, :, 6:12, 6:12] = torch.tensor(rng.normal(size=(2, 6, 6)))
    W = normal(rng, 3, 2, 3, 3)
    moved = x.roll((down, right), (2, 3))
    there = conv2d(x, W).roll((down, right), (2, 3))
    torch.testing.assert_close(conv2d(moved, W), there)


def test_small_picture_by_hand():
    x = torch.arange(9.0).reshape(1, 1, 3, 3)
    W = torch.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    expected = torch.tensor([[[[19.0, 25.0], [37.0, 43.0]]]])
    assert torch.equal(conv2d(x, W), expected)
    assert torch.equal(conv2d(x, W, torch.tensor([1.0])), expected + 1)
    assert torch.equal(conv2d(x, W, stride=2), expected[:, :, :1, :1])


@given(layers())
def test_gradients_of_gradients_are_those_of_torch(layer):
    x, W, _, how = layer
    delta = torch.randn_like(F.conv2d(x, W, **how), requires_grad=True)

    def twice(function):
        y = function(x, W, **how)
        slopes = torch.autograd.grad(y, [x, W], delta, create_graph=True)
        penalty = sum((slope**2).sum() for slope in slopes)
        return torch.autograd.grad(penalty, [x, W, delta])

    for mine, other in zip(twice(conv2d), twice(F.conv2d), strict=True):
        torch.testing.assert_close(mine, other)


def test_penalty_on_a_slope_is_not_forgotten():
    x, W = torch.ones(1, 1, 3, 3, requires_grad=True), torch.ones(1, 1, 2, 2)
    W.requires_grad_()
    (slope,) = torch.autograd.grad(conv2d(x, W).sum(), x, create_graph=True)
    slope.sum().backward()  # of 4 sums of the kernel
    assert W.grad.flatten().tolist() == [4, 4, 4, 4]
    by_W = torch.func.grad(lambda V: conv2d(x.detach(), V).sum())
    assert by_W(W.detach()).flatten().tolist() == [4, 4, 4, 4]


@given(layers())
def test_order_in_memory_does_not_matter(layer):
    x, W, b, how = layer
    plain = conv2d(x, W, b, **how)
    delta = torch.randn_like(plain)
    slopes = torch.autograd.grad(plain, [x, W], delta)
    last = {"memory_format": torch.channels_last}
    for z, V, d in (
        (x.clone(**last), W.clone(**last), delta.clone(**last)),
        (x.mT.contiguous().mT, W.mT.contiguous().mT, delta.mT.clone().mT),
    ):
        y = conv2d(z, V, b, **how)
        torch.testing.assert_close(y, plain)
        for mine, other in zip(torch.autograd.grad(y, [z, V], d), slopes, strict=True):
            torch.testing.assert_close(mine, other)


def test_empty_batch_gives_an_empty_batch_and_no_gradient():
    x = torch.zeros(0, 3, 8, 6, requires_grad=True)
    W = torch.ones(4, 3, 3, 3, requires_grad=True)
    y = conv2d(x, W, padding=1)
    assert y.shape == (0, 4, 8, 6)
    dx, dW = torch.autograd.grad(y.sum(), [x, W])
    assert dx.shape == x.shape
    assert torch.equal(dW, torch.zeros_like(W))


@pytest.mark.usefixtures("unchecked")
def test_sizes_may_be_numpys_and_do_not_overflow():
    x, W = torch.randn(1, 1, 9, 9), torch.randn(1, 1, 3, 3)
    two = np.int64(2)
    assert torch.equal(conv2d(x, W, stride=two), conv2d(x, W, stride=2))
    assert out_size(np.uint8(200), 3, padding=np.uint8(100)) == 398
    assert receptive_field([(np.int8(100), np.int8(100), np.int8(2))] * 2) == (
        1 + 198 + 198 * 100,
        10_000,
    )


@given(sizes, st.integers(1, 5), settings)
def test_out_size_is_that_of_torch(n, k, how):
    x, W = torch.zeros(1, 1, 1, n), torch.zeros(1, 1, 1, k)
    pads = {**how, "padding": (0, how["padding"])}
    if how["dilation"] * (k - 1) >= n + 2 * how["padding"]:
        with pytest.raises(ValueError, match="the kernel must fit into"):
            out_size(n, k, **how)
    else:
        assert out_size(n, k, **how) == F.conv2d(x, W, **pads).shape[-1]


def test_layer_is_that_of_torch():
    how = {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}
    ours, theirs = (
        Conv2d(4, 6, 3, **how).double(),
        torch.nn.Conv2d(4, 6, 3, **how).double(),
    )
    with torch.no_grad():
        theirs.weight.copy_(ours.W)
        theirs.bias.copy_(ours.b.normal_())
    x = torch.randn(2, 4, 9, 9, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x))
    assert repr(ours) == (
        "Conv2d(4 → 6, k=3, stride=2, padding=1, dilation=2, groups=2)"
    )
    assert Conv2d(4, 6, 3, bias=False).b is None


@pytest.mark.parametrize("bias", [True, False])
def test_layer_of_torch_has_the_same_sums_and_shares_its_parameters(bias):
    how = {"stride": 2, "padding": 1, "dilation": 2, "groups": 2, "bias": bias}
    state = torch.get_rng_state()
    ours = Conv2d(4, 6, 3, **how, generator=torch.Generator()).double()
    theirs = ours.in_torch()
    assert torch.equal(torch.get_rng_state(), state)
    assert type(theirs) is torch.nn.Conv2d
    x = torch.randn(2, 4, 9, 9, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x))
    pairs = zip(ours.parameters(), theirs.parameters(), strict=True)
    assert all(p is q for p, q in pairs)


def test_first_kernels_have_variance_two_over_fan_in():
    layer = Conv2d(32, 64, 5, groups=2, generator=torch.Generator().manual_seed(0))
    assert abs(layer.W.var().item() * 16 * 25 / 2 - 1) < 0.02
    assert not layer.b.any()
    again = Conv2d(32, 64, 5, groups=2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(layer.W, again.W)


@given(seeds, st.integers(1, 4), st.integers(1, 3), st.integers(1, 8))
def test_causal_layer_does_not_see_the_future(rng, k, dilation, t):
    x, W, b = normal(rng, 2, 3, 9), normal(rng, 4, 3, k), normal(rng, 4)
    y = causal_conv1d(x, W, b, dilation)
    assert y.shape == (2, 4, 9)
    other = x.detach().clone()
    other[:, :, t:] = normal(rng, 2, 3, 9 - t, grad=False)
    torch.testing.assert_close(
        causal_conv1d(other, W, b, dilation)[:, :, :t], y[:, :, :t]
    )
    past = F.pad(x, [dilation * (k - 1), 0])
    torch.testing.assert_close(y, F.conv1d(past, W, b, dilation=dilation))


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)),
        min_size=1,
        max_size=3,
    )
)
def test_receptive_field_is_where_the_gradient_reaches(stack):
    field, step = receptive_field(stack)
    n = field + step  # two outputs
    x = torch.zeros(1, 1, n, n, dtype=torch.float64, requires_grad=True)
    y = x
    for k, stride, dilation in stack:
        kernel = torch.ones(1, 1, k, k, dtype=torch.float64)
        y = conv2d(y, kernel, stride=stride, dilation=dilation)
    seen = [
        torch.autograd.grad(y[0, 0, i, i], x, retain_graph=True)[0][0, 0]
        for i in (0, 1)
    ]
    first, second = (s.nonzero() for s in seen)
    assert first.min() == 0
    assert first.max() == field - 1
    assert second.min() == step


X, W = torch.zeros(2, 3, 8, 6), torch.zeros(4, 3, 3, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: conv2d(X, W[:, :2]),
            "have the 2 channels of the kernels; got shape (2, 3, 8, 6)",
        ),
        (
            lambda: conv2d(X[:1, :, :2], W),
            "fit into the padded picture, 2 × 6; got one that covers 3 × 3",
        ),
        (lambda: conv2d(X, W, dilation=3), "8 × 6; got one that covers 7 × 7"),
        (
            lambda: conv2d(X, W, padding=-1),
            "padding must be a whole number from 0 on; got -1",
        ),
        (
            lambda: conv2d(X, W, stride=0),
            "stride must be a whole number from 1 on; got 0",
        ),
        (lambda: conv2d(X, W, stride=1.5), "stride must be a whole number"),
        (
            lambda: conv2d(X, W, groups=2),
            "groups must divide the channels 3 → 4; got 2",
        ),
        (lambda: conv2d(X.double(), W), "have one dtype"),
        (
            lambda: conv2d(X.to(torch.uint8), W.to(torch.uint8)),
            "have one dtype, of floating point; got ['torch.uint8']",
        ),
        (
            lambda: conv2d(X + 0j, W + 0j),
            "have one dtype, of floating point; got ['torch.complex64']",
        ),
        (
            lambda: conv2d(X, W[:, :, :0]),
            "W must have the axes (O, C, k, k), not empty; got shape (4, 3, 0, 3)",
        ),
        (
            lambda: conv2d(X[:, :0], W[:, :0]),
            "x must have the axes (B, C, rows, columns), not empty",
        ),
        (
            lambda: conv2d(X[:, :, :0], W, padding=2),
            "columns), not empty; got shape (2, 3, 0, 6)",
        ),
        (
            lambda: conv2d(X, W, torch.zeros(3)),
            "conv2d: b must have the shape (4,); got shape (3,)",
        ),
        (
            lambda: conv2d(X[0], W),
            "have the axes (B, C, rows, columns), not empty; got shape (3, 8, 6)",
        ),
        (lambda: conv2d(X, W[0]), "have the axes (O, C, k, k)"),
        (
            lambda: Conv2d(3, 4, 3, groups=3),
            "groups must divide the channels 3 → 4; got 3",
        ),
        (lambda: Conv2d(0, 4, 3), "inputs must be a whole number from 1 on; got 0"),
        (lambda: Conv2d(3, 4, 3, padding=-2), "Conv2d: padding must"),
        (
            lambda: causal_conv1d(X[0], torch.zeros(4, 2, 3)),
            "have the 2 channels of the kernels",
        ),
        (
            lambda: causal_conv1d(X, W[0]),
            "causal_conv1d: x must have the axes (B, C, T), not empty; got shape (2, 3, 8, 6)",
        ),
        (
            lambda: causal_conv1d(X[0], W[0, 0]),
            "causal_conv1d: W must have the axes (O, C, k), not empty; got",
        ),
        (
            lambda: causal_conv1d(X[0][:, :, :0], torch.zeros(4, 8, 3)),
            "x must have the axes (B, C, T), not empty; got shape (3, 8, 0)",
        ),
        (
            lambda: causal_conv1d(X[0], torch.zeros(4, 8, 3), dilation=0),
            "dilation must",
        ),
        (
            lambda: out_size(5, 7),
            "fit into the padded length 5 + 2·0 = 5; got length 7",
        ),
        (lambda: receptive_field([(3, 0, 1)]), "receptive_field: stride must"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses_with_the_sizes(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()
