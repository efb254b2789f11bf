import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch.nn import functional as F
from twins import fixed

from dlcore.convolution.cnn import shape_trace
from dlcore.convolution.conv import conv2d
from dlcore.convolution.pooling import avg_pool2d, max_pool2d
from dlcore.convolution.unet import UNet, Upsample, upsample


def random(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=fixed(seed))


@given(seeds, st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_upsampling_is_that_of_torch_and_undone_by_the_mean(rng, rows, columns, factor):
    x = torch.tensor(rng.normal(size=(2, 3, rows, columns)))
    large = Upsample(factor)(x)
    assert torch.equal(large, F.interpolate(x, scale_factor=factor))
    torch.testing.assert_close(avg_pool2d(large, factor), x)


@given(seeds, st.integers(1, 3))
def test_the_adjoint_of_upsampling_is_the_sum_over_each_square(rng, factor):
    x = torch.tensor(rng.normal(size=(1, 2, 3, 4)), requires_grad=True)
    y = torch.tensor(rng.normal(size=(1, 2, 3 * factor, 4 * factor)))
    (grad,) = torch.autograd.grad(upsample(x, factor), x, y)
    torch.testing.assert_close(grad, factor**2 * avg_pool2d(y, factor))


def ready(*sizes, **how):
    """A U-Net whose last kernels are not zero."""
    net = UNet(*sizes, **how, generator=fixed()).double()
    net.head.weight.data = random(*net.head.weight.shape, seed=3)
    return net


def by_line(net, x):
    """A U-Net of depth 2, line by line, with our functions."""

    def two(level, x):
        for conv in (level[0], level[2]):
            x = conv2d(x, conv.weight, conv.bias, padding=1).relu()
        return x

    a = two(net.down[0], x)
    b = two(net.down[1], max_pool2d(a, 2))
    c = two(net.down[2], max_pool2d(b, 2))
    c = F.interpolate(c, scale_factor=2)
    b = two(net.up[0], torch.cat([b, c], 1) if net.skips else c)
    b = F.interpolate(b, scale_factor=2)
    a = two(net.up[1], torch.cat([a, b], 1) if net.skips else b)
    return conv2d(a, net.head.weight, net.head.bias)


@pytest.mark.parametrize("skips", [True, False])
def test_values_and_gradients_are_those_of_the_lines(skips):
    net = ready(2, 3, 2, skips=skips)
    x = random(2, 2, 8, 12)
    ours, other = net(x), by_line(net, x)
    torch.testing.assert_close(ours, other)
    delta, weights = random(2, 3, 8, 12, seed=1), list(net.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(ours, weights, delta),
        torch.autograd.grad(other, weights, delta),
    )


@given(seeds, st.integers(0, 2), st.booleans())
def test_a_shift_by_the_smallest_square_shifts_the_output(rng, depth, skips):
    net = ready(1, 2, 2, depth, skips=skips)
    step = 2**depth
    x = torch.zeros(1, 1, 96, 96, dtype=torch.float64)
    x[0, 0, 44:52, 44:52] = torch.tensor(rng.normal(size=(8, 8)))
    moved = x.roll((step, -2 * step), (2, 3))  # the biases are zero: so is the frame
    expected = net(x).roll((step, -2 * step), (2, 3))
    torch.testing.assert_close(net(moved), expected)


def test_sizes_by_hand():
    net = UNet(1, 3, generator=fixed())
    assert sum(p.numel() for p in net.parameters()) == 29_635
    shapes = [s.shape for s in shape_trace(net, (1, 16, 8))]
    assert shapes[0] == (1, 16, 8)
    assert shapes[-1] == (3, 16, 8)
    assert (32, 4, 2) in shapes
    assert net(torch.ones(1, 1, 8, 8)).eq(0).all()
    single = UNet(1, 3, 12, repeat=1)
    assert sum(p.numel() for p in single.parameters()) == 32_667
    assert UNet(1, 3, depth=0)(torch.zeros(2, 1, 3, 5)).shape == (2, 3, 3, 5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: UNet(1, 3)(torch.zeros(1, 1, 10, 8)),
            "UNet: x must have sides that 4 divides; got 10 × 8",
        ),
        (
            lambda: UNet(1, 3)(torch.zeros(1, 8, 8)),
            "UNet: x must have the axes (B, C, rows, columns); got shape (1, 8",
        ),
        (
            lambda: upsample(torch.zeros(1, 1, 2, 2, 2)),
            "upsample: x must have the axes (B, C, rows, columns); got shape",
        ),
        (lambda: UNet(1, 3, 0), "UNet: width must be a whole number from 1"),
        (lambda: UNet(1, 3, depth=-1), "UNet: depth must be a whole number"),
        (lambda: UNet(1, 3, repeat=0), "UNet: repeat must be a whole number"),
        (lambda: Upsample(0), "Upsample: factor must be a whole number from 1"),
        (
            lambda: upsample(torch.zeros(1, 1, 2, 2), 0),
            "upsample: factor must be a whole number",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refusals_say_what_is_wrong(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()
