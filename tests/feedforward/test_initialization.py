"""The first weights, beside those of PyTorch."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy import stats
from strategies import seeds

from dlcore.feedforward.initialization import fans, he, lecun, normal, uniform, xavier

sizes = st.integers(1, 40)
shapes = st.lists(sizes, min_size=2, max_size=4).map(tuple)


@given(shapes)
def test_fans_are_those_of_torch(shape):
    weights = torch.empty(shape)
    theirs = torch.nn.init._calculate_fan_in_and_fan_out(weights)
    assert fans(shape) == theirs


@pytest.mark.parametrize("draw", [normal, uniform])
@pytest.mark.parametrize(
    ("rule", "theirs"),
    [
        (xavier, "xavier"),
        (lambda shape: xavier(shape, 1.7), "xavier gain"),
        (he, "kaiming"),
        (lambda shape: he(shape, 0.3), "kaiming leak"),
    ],
)
def test_weights_are_distributed_as_those_of_torch(draw, rule, theirs):
    torch.manual_seed(0)
    shape = (40, 30, 3)
    name, *more = theirs.split()
    function = getattr(torch.nn.init, f"{name}_{draw.__name__}_")
    options = {"gain": {"gain": 1.7}, "leak": {"a": 0.3}}
    keywords = options[more[0]] if more else {}
    W = function(torch.empty(shape), **keywords).numpy().ravel()
    ours = draw(shape, rule(shape), default_rng(0)).ravel()
    assert stats.ks_2samp(ours, W).pvalue > 1e-3
    assert ours.std() == pytest.approx(W.std(), rel=0.04)
    assert ours.std() == pytest.approx(math.sqrt(rule(shape)), rel=0.04)


@given(sizes, sizes)
def test_each_rule_keeps_what_it_promises(n, m):
    assert n * lecun((m, n)) == pytest.approx(1)
    assert n * he((m, n)) / 2 == pytest.approx(1)
    assert (n + m) / 2 * xavier((m, n)) == pytest.approx(1)
    assert xavier((m, n)) == pytest.approx(xavier((n, m)))


@given(st.floats(0, 100), seeds)
def test_uniform_weights_stay_within_their_bound(variance, rng):
    W = uniform((30, 5), variance, rng)
    assert np.abs(W).max() <= math.sqrt(3 * variance)


def test_variances_by_hand():
    assert fans((100, 400)) == (400, 100)
    assert fans((8, 4, 3, 3)) == (36, 72)
    assert lecun((100, 400), gain=2) == 0.01
    assert xavier((100, 400)) == 0.004
    assert he((100, 400)) == 0.005
    assert he((100, 400), leak=1) == 0.0025
    assert not normal((2, 3), 0, default_rng(0)).any()


RNG = default_rng(0)
REFUSALS = [
    (lambda: fans((3,)), r"shape must be \(outputs, inputs\).*; got \(3,\)"),
    (lambda: fans(5), r"fans: shape must be \(outputs, inputs\).*; got 5"),
    (lambda: normal(5, 1.0, RNG), r"normal: shape must be a tuple .*; got 5"),
    (lambda: normal((3, 2), None, RNG), r"variance must .*; got None"),
    (lambda: he((0, 2)), r"fans: each size must be a whole .* from 1 .* 0"),
    (lambda: xavier((3, 2.0)), r"each size must be a whole .*; got 2.0"),
    (lambda: xavier((3, 2), -1.0), r"xavier: gain must lie in \[0, ∞\); got -1"),
    (lambda: lecun((3, 2), math.nan), r"lecun: gain must lie in \[0, ∞\); got nan"),
    (lambda: he((3, 2), math.inf), r"he: leak must lie in \(-∞, ∞\); got inf"),
    (lambda: normal((3, 2), -1.0, RNG), r"normal: variance must lie .*; got -1.0"),
    (lambda: uniform((3, 2), math.nan, RNG), r"uniform: variance .*; got nan"),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
