import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch.nn import functional as F

from dlcore.convolution.pooling import (
    AvgPool2d,
    MaxPool2d,
    avg_pool2d,
    max_pool2d,
    windows,
)

pictures = st.tuples(seeds, st.integers(4, 9), st.integers(4, 9))


@given(pictures, st.integers(1, 4), st.none() | st.integers(1, 5))
def test_values_and_gradients_are_those_of_torch_also_with_ties(picture, size, stride):
    rng, rows, columns = picture
    whole = rng.integers(-1, 2, size=(2, 3, rows, columns))
    x = torch.tensor(whole, dtype=torch.float64, requires_grad=True)
    for ours, theirs in ((max_pool2d, F.max_pool2d), (avg_pool2d, F.avg_pool2d)):
        mine, other = ours(x, size, stride), theirs(x, size, stride)
        torch.testing.assert_close(mine, other)
        delta = torch.randn_like(mine)
        torch.testing.assert_close(
            torch.autograd.grad(mine, x, delta), torch.autograd.grad(other, x, delta)
        )


@given(pictures, st.integers(1, 4))
def test_order_within_a_window_does_not_matter(picture, size):
    rng, rows, columns = picture
    x = torch.tensor(rng.normal(size=(1, 1, rows, columns)))
    patches = windows(x, size)
    mixed = patches[..., torch.tensor(rng.permutation(size * size))]
    assert torch.equal(mixed.max(dim=-1).values, max_pool2d(x, size))


def test_four_by_four_by_hand():
    x = torch.tensor(
        [
            [1.0, 3.0, 2.0, 1.0],
            [2.0, 0.0, 5.0, 3.0],
            [0.0, 1.0, 4.0, 1.0],
            [2.0, 1.0, 2.0, 0.0],
        ]
    )[None, None]
    assert MaxPool2d(2)(x).tolist() == [[[[3.0, 5.0], [2.0, 4.0]]]]
    assert AvgPool2d(2)(x).tolist() == [[[[1.5, 2.75], [1.0, 1.75]]]]
    assert MaxPool2d(2, 1)(x).shape == (1, 1, 3, 3)
    assert repr(MaxPool2d(3, 2)) == "MaxPool2d(3, stride=2)"


X = torch.zeros(2, 3, 8, 6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: max_pool2d(X, 7),
            "windows: size must fit into the picture, 8 × 6; got 7",
        ),
        (
            lambda: max_pool2d(X[0], 2),
            "x must have the axes (B, C, rows, columns); got shape (3, 8, 6)",
        ),
        (lambda: avg_pool2d(X, 0), "size must be a whole number from 1 on"),
        (lambda: max_pool2d(X, 2, 0), "stride must be a whole number from 1"),
        (lambda: MaxPool2d(0), "MaxPool2d: size must"),
        (lambda: AvgPool2d(2, -1), "AvgPool2d: stride must"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses_with_the_sizes(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()
