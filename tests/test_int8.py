"""Weights in eight bits: never off by more than half a step of their row."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays
from hypothesis.strategies import floats

from dlcore.int8 import from_int8, to_int8

WEIGHTS = arrays(
    float, array_shapes(max_dims=4, max_side=5), elements=floats(-1e3, 1e3)
)


@given(WEIGHTS)
def test_no_weight_moves_by_more_than_half_a_scale(W):
    whole, scales = to_int8(W)
    rows = W.reshape(len(scales), -1)
    apart = np.abs(from_int8(whole, scales).reshape(rows.shape) - rows)
    assert (apart <= scales[:, None] * 0.5001).all()


@given(WEIGHTS)
def test_what_was_rounded_stays_as_it_is(W):
    once = from_int8(*to_int8(W))
    np.testing.assert_allclose(from_int8(*to_int8(once)), once, rtol=1e-6)


def test_rows_are_those_of_torch():
    W = np.random.default_rng(0).normal(size=(5, 7)) * np.arange(1, 6)[:, None]
    whole, scales = to_int8(W)
    torch_s = torch.fake_quantize_per_channel_affine(
        torch.tensor(W).float(),
        torch.tensor(scales),
        torch.zeros(5, dtype=torch.int32),
        axis=0,
        quant_min=-127,
        quant_max=127,
    )
    np.testing.assert_allclose(torch_s, from_int8(whole, scales), rtol=1e-6)


def test_a_vector_is_one_row_and_zeros_stay():
    whole, scales = to_int8(np.array([0.0, -2.0, 1.0]))
    assert (whole.tolist(), len(scales)) == ([0, -127, 64], 1)
    assert from_int8(*to_int8(np.zeros((2, 3)))).tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
def test_shape_is_kept(shape):
    assert to_int8(np.ones(shape))[0].shape == shape
