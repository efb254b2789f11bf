import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from dlcore.transformers.positions import frequencies, rotary, shift, sinusoidal

widths = st.integers(1, 8).map(lambda k: 2 * k)
places = st.integers(-50, 50)


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_by_hand():
    assert frequencies(4, base=100).tolist() == [1, 0.1]
    p = sinusoidal(torch.tensor([0, 2]), 4, base=100)
    want = [[0, 1, 0, 1], [np.sin(2), np.cos(2), np.sin(0.2), np.cos(0.2)]]
    np.testing.assert_allclose(p, want)


def test_formula_of_the_paper():
    p = sinusoidal(torch.arange(30), 6)
    for t in range(30):
        for i in range(3):
            angle = t / 10000 ** (2 * i / 6)
            np.testing.assert_allclose(p[t, 2 * i], np.sin(angle))
            np.testing.assert_allclose(p[t, 2 * i + 1], np.cos(angle))


@given(places, places, widths)
def test_a_shift_is_one_rotation_for_all_places(t, by, d):
    R = shift(by, d)
    p = sinusoidal(torch.tensor([t, t + by]), d)
    torch.testing.assert_close(R @ p[0], p[1])
    torch.testing.assert_close(R @ R.T, torch.eye(d))
    torch.testing.assert_close(shift(by, d) @ shift(t, d), shift(by + t, d))


@given(seeds, places, places, places, widths)
def test_rotated_products_depend_on_the_difference_of_places(rng, s, t, by, d):
    q, k = torch.tensor(rng.normal(size=(2, 1, d)))

    def product(s, t):
        return rotary(q, torch.tensor([s])) @ rotary(k, torch.tensor([t])).T

    torch.testing.assert_close(product(s, t), product(s + by, t + by))
    torch.testing.assert_close(product(t, t), q @ k.T)


@given(seeds, widths, st.integers(1, 5))
def test_rotary_is_a_product_of_complex_numbers(rng, d, T):
    X = torch.tensor(rng.normal(size=(3, T, d)))
    t = torch.tensor(rng.integers(-20, 20, T))
    turned = torch.view_as_complex(X.unflatten(-1, (-1, 2)))
    turned = turned * torch.exp(1j * t[:, None] * frequencies(d))
    want = torch.view_as_real(turned).flatten(-2)
    torch.testing.assert_close(rotary(X, t), want)


def test_far_places_stay_apart():
    p = sinusoidal(torch.tensor([20_000, 20_001]), 64)
    assert (p[0] - p[1]).norm() > 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: frequencies(5), "d must be even"),
        (lambda: frequencies(0), "d must be a whole number from 2 on"),
        (lambda: frequencies(4, base=1), "base must be more than 1"),
        (lambda: sinusoidal(torch.tensor([0.5]), 4), "list of whole numbers"),
        (lambda: sinusoidal(torch.tensor(3), 4), "list of whole numbers"),
        (
            lambda: rotary(torch.ones(3, 4), torch.arange(2)),
            "X must have a row for each of the 2 places; got shape (3, 4).",
        ),
        (lambda: rotary(torch.ones(2, 3), torch.arange(2)), "d must be even"),
    ],
)
def test_refusals(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
