import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from twins import fixed

from dlcore.convolution.cnn import (
    SHRINK,
    LayerCost,
    as_table,
    classifier,
    conv_stack,
    feature_maps,
    he_linear,
    lenet5,
    rows_seen,
    shape_trace,
)
from dlcore.convolution.conv import Conv2d
from dlcore.convolution.pooling import AvgPool2d, MaxPool2d


def ours(layer):
    """The same layer of the package, with the same weights."""
    if isinstance(layer, nn.Conv2d):
        how = {"stride": layer.stride[0], "padding": layer.padding[0]}
        twin = Conv2d(layer.in_channels, layer.out_channels, 5, **how)
        twin.W, twin.b = layer.weight, layer.bias
        return twin
    if isinstance(layer, nn.AvgPool2d):
        return AvgPool2d(layer.kernel_size)
    return MaxPool2d(layer.kernel_size) if isinstance(layer, nn.MaxPool2d) else layer


@pytest.mark.parametrize("shrink", SHRINK)
@pytest.mark.parametrize("padding", [0, 2])
def test_values_and_gradients_are_those_of_our_layers(shrink, padding):
    net = classifier(
        (2, 20, 24), [3, 4], [7], 5, padding=padding, shrink=shrink, generator=fixed()
    ).double()
    other = nn.Sequential(*map(ours, net))
    assert {Conv2d, nn.Conv2d} <= {*map(type, [*net, *other])}
    x = torch.randn(3, 2, 20, 24, dtype=torch.float64, generator=fixed(1))
    scores, expected = net(x), other(x)
    torch.testing.assert_close(scores, expected)
    delta = torch.randn(3, 5, dtype=torch.float64, generator=fixed(2))
    weights = list(net.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(scores, weights, delta),
        torch.autograd.grad(expected, weights, delta),
    )


@pytest.mark.parametrize("shrink", SHRINK)
def test_multiplications_are_half_of_the_operations_that_torch_counts(shrink):
    net = classifier((1, 28, 28), [8, 16], [30], 10, shrink=shrink)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        net(torch.zeros(1, 1, 28, 28))
    for model in (net, nn.Sequential(*map(ours, net))):
        counted = sum(s.multiplications for s in shape_trace(model, (1, 28, 28)))
        assert 2 * counted == counter.get_total_flops()


def test_lenet5_by_hand():
    steps = shape_trace(lenet5(fixed()), (1, 32, 32))
    assert [s.shape for s in steps if s.layer != "ReLU"] == [
        (1, 32, 32),
        (6, 28, 28),
        (6, 14, 14),
        (16, 10, 10),
        (16, 5, 5),
        (400,),
        (120,),
        (84,),
        (10,),
    ]
    assert [s.parameters for s in steps if s.parameters] == [
        6 * 26,
        16 * (6 * 25 + 1),
        120 * 401,
        84 * 121,
        10 * 85,
    ]
    assert [s.multiplications for s in steps if s.multiplications] == [
        6 * 25 * 28 * 28,
        16 * 6 * 25 * 10 * 10,
        48_000,
        10_080,
        840,
    ]


def test_a_table_has_a_row_for_each_layer_and_the_sums():
    steps = [
        LayerCost("input", (1, 4, 4), 0, 0),
        LayerCost("Conv2d", (2, 3, 3), 10, 72),
        LayerCost("Linear", (1000,), 19_000, 18_000),
    ]
    assert as_table(steps).split("\n") == [
        "layer              shape  parameters  multiply-adds",
        "input          1 × 4 × 4",
        "Conv2d         2 × 3 × 3          10             72",
        "Linear              1000      19,000         18,000",
        "together                      19,010         18,072",
    ]


def test_maps_come_in_the_order_of_work_and_leave_no_trace():
    bend = nn.ReLU()
    shared = he_linear(4, 4, fixed())
    net = nn.Sequential(shared, bend, shared, bend)
    x = torch.randn(2, 4, generator=fixed(1))
    maps = feature_maps(net, x)
    assert [layer for layer, _ in maps] == [shared, bend, shared, bend]
    assert torch.equal(maps[-1][1], net(x))
    assert torch.equal(maps[0][1], shared(x))
    assert not any(layer._forward_hooks for layer in net)
    counts = [step.parameters for step in shape_trace(net, (4,))]
    assert counts == [0, 20, 0, 0, 0]


def test_maps_are_those_of_each_layer_when_the_next_works_in_place():
    first = he_linear(3, 3, fixed())
    x = torch.tensor([[1.0, -2.0, 3.0], [-1.0, 2.0, -3.0]])
    maps = feature_maps(nn.Sequential(first, nn.ReLU(inplace=True)), x)
    assert torch.equal(maps[0][1], first(x))
    assert torch.equal(maps[1][1], first(x).relu())


def test_a_trace_changes_nothing_and_counts_torchs_layers_too():
    net = nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.BatchNorm2d(4))
    net[0].eval()
    net[1].running_mean += 1
    steps = shape_trace(net, (2, 5, 5))
    assert [s.parameters for s in steps] == [0, 40, 8]
    assert steps[1].multiplications == 4 * 9 * 9
    assert net[1].num_batches_tracked == 0
    assert torch.equal(net[1].running_mean, torch.ones(4))
    assert [m.training for m in net.modules()] == [True, False, True]


def test_a_table_shows_the_work_of_a_layer_that_works_twice():
    shared = he_linear(4, 4)
    table = as_table(shape_trace(nn.Sequential(shared, shared), (4,)))
    works = [row.split()[-1] for row in table.split("\n")[2:]]
    assert works == ["16", "16", "32"]


class Scaled(nn.Module):
    """A part, and a parameter beside it."""

    def __init__(self):
        super().__init__()
        self.part, self.scale = he_linear(4, 4), nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.scale * self.part(x)


def test_a_trace_refuses_parameters_that_it_would_not_count():
    with pytest.raises(ValueError, match=r"in layers.* that work; got scale"):
        shape_trace(Scaled(), (4,))


def test_first_weights_keep_the_scale():
    layer = he_linear(500, 400, fixed())
    assert abs(layer.weight.var().item() * 500 / 2 - 1) < 0.02
    assert not layer.bias.any()
    again = he_linear(500, 400, fixed())
    assert torch.equal(layer.weight, again.weight)


@given(
    seeds,
    st.lists(
        st.tuples(
            st.sampled_from(["conv", "pool"]),
            st.integers(1, 3),
            st.integers(1, 2),
            st.integers(1, 2),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_the_outermost_pixels_that_matter_are_the_ones_computed(rng, sizes, own):
    layers = []
    for kind, k, s, d, p in sizes:
        if kind == "conv":
            layer = Conv2d(1, 1, k, stride=s, dilation=d, padding=p)
            layer.W.data = layer.W.data.abs() + 0.1  # nothing cancels
            layers += [layer if own else layer.in_torch(), nn.ReLU()]
        else:
            pool = AvgPool2d if own else nn.AvgPool2d
            layers.append(pool(k, s))
    n = 60
    x = torch.rand(1, 1, n, n, generator=fixed(), requires_grad=True)
    y = nn.Sequential(*layers)(x)
    i, j = rng.integers(0, y.shape[2:])
    y[0, 0, i, j].backward()
    fields = [rows_seen(layers, int(place)) for place in (i, j)]
    whole = [first >= 0 and last <= n for first, last in fields]
    for (first, last), inside, axis in zip(fields, whole, (1, 0), strict=True):
        touched = torch.nonzero(x.grad[0, 0].sum(dim=axis))[:, 0].tolist()
        assert touched or not all(whole)  # of padding alone, nothing is seen
        if touched and inside:
            assert (touched[0], touched[-1] + 1) == (first, last)
        elif touched:
            assert first <= touched[0]
            assert touched[-1] < last


def test_receptive_fields_of_lenet5_by_hand():
    body = list(lenet5(fixed()))[:6]
    assert rows_seen(body[:1], 3) == (3, 8)
    assert rows_seen(body[:3], 3) == (6, 12)
    assert rows_seen(body[:4], 0) == (0, 14)
    assert rows_seen(body, 4) == (16, 32)
    padded = conv_stack([1, 2, 3], 5, padding=2)
    assert rows_seen(padded[:4], 0) == (-6, 8)
    assert rows_seen([nn.MaxPool2d(3, 2, 1), nn.Conv2d(1, 1, (2, 5))], 1) == (1, 6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: conv_stack([3]), "conv_stack: channels must be two or more; got [3]"),
        (lambda: conv_stack([1, 2], shrink="min"), "conv_stack: shrink must be one"),
        (
            lambda: classifier((1, 8, 8), [2, 2], [4], 3),
            "classifier: shape must have sides of 16 or more; got (1, 8, 8)",
        ),
        (lambda: he_linear(0, 3), "he_linear: inputs must be a whole number from 1"),
        (lambda: he_linear(3, 0), "he_linear: outputs must be a whole number from 1"),
        (lambda: rows_seen([], -1), "rows_seen: place must be a whole number from 0"),
        (
            lambda: rows_seen([nn.Flatten()], 0),
            "rows_seen: layers must be convolutions, poolings or ReLUs; got Flatten",
        ),
        (
            lambda: rows_seen([nn.Conv2d(1, 1, 3, padding="same")], 0),
            "rows_seen: padding must be a number; got same",
        ),
    ],
)
def test_refusals_say_what_is_wrong(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()
