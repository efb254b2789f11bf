from itertools import combinations, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import seeds
from torch.utils.data import DataLoader

from dlcore.optimization.gradient_noise import (
    batch_variance,
    noise_floor,
    second_moments,
    updates_per_epoch,
)


@given(s=st.integers(1, 60), batch=st.integers(1, 70), drop=st.booleans())
def test_updates_are_what_torch_loads(s, batch, drop):
    loader = DataLoader(torch.zeros(s), batch_size=batch, drop_last=drop)
    assert updates_per_epoch(s, batch, drop) == len(loader)


def test_updates_by_hand():
    assert updates_per_epoch(60_000, 128) == 469
    assert updates_per_epoch(60_000, 128, drop_last=True) == 468
    assert updates_per_epoch(48_000, 128) == 375


@given(s=st.integers(1, 6), batch=st.integers(1, 6), rng=seeds)
def test_variance_is_that_of_all_samples(s, batch, rng):
    G = rng.integers(-3, 4, size=(s, 2)).astype(float)

    def brute(samples):
        means = np.array([G[list(sample)].mean(axis=0) for sample in samples])
        return ((means - G.mean(axis=0)) ** 2).sum(axis=1).mean()

    if batch <= s:
        want = brute(combinations(range(s), batch))
        assert_allclose(batch_variance(G, batch), want, atol=1e-12)
    if batch <= 4:
        want = brute(product(range(s), repeat=batch))
        got = batch_variance(G, batch, replace=True)
        assert_allclose(got, want, atol=1e-12)


@given(steps=st.integers(0, 8), rng=seeds)
def test_moments_are_those_of_all_coin_tosses(steps, rng):
    c, start, sd = rng.uniform(0, 2, size=(3, 2))
    lrs = rng.uniform(0, 1.5, size=steps)
    moments = second_moments(c, start, sd**2, lrs)
    assert moments.shape == (steps + 1, 2)
    ends = []
    for coins in product([-1, 1], repeat=steps):
        x = start
        for eta, coin in zip(lrs, coins, strict=True):
            x = x - eta * (c * x + coin * sd)
        ends.append(x**2)
    assert_allclose(moments[-1], np.mean(ends, axis=0), rtol=1e-9, atol=1e-12)


@given(rng=seeds)
def test_the_floor_is_where_the_moments_end(rng):
    c, v = rng.uniform(0.5, 2, size=(2, 3))
    lr = rng.uniform(0.05, 0.95)
    last = second_moments(c, np.ones(3), v, [lr] * 1000)[-1]
    assert_allclose(noise_floor(c, v, lr), (c * last).sum() / 2)


def test_by_hand():
    assert batch_variance(np.array([[0.0], [2.0]]), 1) == 1
    assert batch_variance(np.array([[0.0], [2.0]]), 2) == 0
    assert batch_variance(np.array([[0.0], [2.0]]), 2, replace=True) == 0.5
    assert batch_variance(np.array([[7.0]]), 1) == 0  # one example, no noise
    assert noise_floor(np.array([1.0]), np.array([4.0]), 1.0) == 2
    one = np.array([1.0])
    assert second_moments(one, 3 * one, one, [1.0, 0.5]).tolist() == [[9], [1], [0.5]]


ONE, ROWS = np.ones(1), np.ones((3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: updates_per_epoch(0, 1), "updates_per_epoch: s must be a who"),
        (lambda: updates_per_epoch(1, 0), "batch must be a whole number from 1"),
        (lambda: batch_variance(ONE, 1), r"gradients as rows; got shape \(1,\)"),
        (lambda: batch_variance(ROWS, 4), "be at most 3, the number of exam"),
        (lambda: batch_variance(ROWS, 0), "batch must be a whole number from 1"),
        (lambda: batch_variance(np.nan * ROWS, 1), "G must be finite"),
        (lambda: second_moments(ONE, ROWS, ONE, []), "be equally long lists"),
        (lambda: second_moments(1.0, 1.0, 1.0, []), "be equally long lists"),
        (lambda: second_moments(ONE, ONE, ONE, [-1.0]), "lrs must be a list"),
        (lambda: second_moments(ONE, ONE, ONE, 0.1), "lrs must be a list"),
        (lambda: noise_floor(ONE[:0], ONE[:0], 0.1), "be equally long lists"),
        (lambda: noise_floor(np.ones(2), np.ones(3), 1), "be equally long"),
        (lambda: second_moments(ONE, ONE, -ONE, []), "variances must not be"),
        (lambda: second_moments(ONE * np.inf, ONE, ONE, []), "be finite"),
        (lambda: noise_floor(ONE, ONE, 2), "lie between 0 and 2, twice"),
        (lambda: noise_floor(ONE, ONE, 0), "lr must lie between"),
        (lambda: noise_floor(-ONE, ONE, 1), "curvatures must be positive"),
        (lambda: noise_floor(ONE, -ONE, 1), "variances must not be negative"),
        (lambda: noise_floor(ONE, ONE, np.nan), "must be finite"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
