"""Tests of dlcore.data.memory_tasks."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from twins import source

from dlcore.data.memory_tasks import adding, copying, spikes


@given(seeds, st.integers(1, 5), st.integers(2, 9))
def test_sum_is_that_of_one_marked_number_in_each_half(rng, B, T):
    x, y = adding(B, T, source(rng))
    assert x.shape == (B, T, 2)
    numbers, marks = x.unbind(dim=2)
    assert ((marks == 0) | (marks == 1)).all()
    assert (marks[:, : T // 2].sum(dim=1) == 1).all()
    assert (marks[:, T // 2 :].sum(dim=1) == 1).all()
    for row in range(B):
        two = numbers[row, marks[row] == 1]
        assert y[row] == two[0] + two[1]


def test_sums_have_mean_one_and_variance_one_sixth():
    x, y = adding(20_000, 6, torch.Generator().manual_seed(0))
    assert y.mean().item() == pytest.approx(1, abs=0.01)
    assert y.var().item() == pytest.approx(1 / 6, abs=0.005)
    places = x[:, :, 1].mean(dim=0)
    assert places.tolist() == pytest.approx([1 / 3] * 6, abs=0.015)


@given(
    seeds, st.integers(1, 4), st.integers(1, 4), st.integers(2, 5), st.integers(0, 6)
)
def test_word_comes_first_and_the_bell_where_it_is_asked_for(rng, B, word, C, lag):
    x, y = copying(B, word, C, lag, source(rng))
    assert x.shape == (B, 2 * word + lag, C + 2)
    assert (x.sum(dim=2) == 1).all()
    tokens = x.argmax(dim=2)
    assert torch.equal(tokens[:, :word], y)
    assert (y < C).all()
    bell = torch.full((lag + word,), C)
    bell[lag] = C + 1
    assert (tokens[:, word:] == bell).all()


@given(seeds, st.integers(1, 12), st.integers(1, 4), st.integers(0, 3))
def test_waits_are_counted_from_the_spike_before(rng, T, least, more):
    x, since = spikes(3, T, least, least + more, source(rng))
    for row, waits in zip(x[:, :, 0].tolist(), since.tolist(), strict=True):
        at = [t for t in range(T) if row[t]]
        assert at[0] == 0
        gaps = [b - a for a, b in pairwise(at)]
        assert all(least <= gap <= least + more for gap in gaps)
        assert T - at[-1] <= least + more
        for t in range(T):
            before = [a for a in at if a < t]
            assert waits[t] == (t - before[-1] if before else 0)


def test_by_hand():
    x, since = spikes(1, 8, 3, 3)
    assert x.flatten().tolist() == [1, 0, 0, 1, 0, 0, 1, 0]
    assert since.flatten().tolist() == [0, 1, 2, 3, 1, 2, 3, 1]


@pytest.mark.parametrize(
    ("draw", "sizes", "sentence"),
    [
        (adding, (3, 1), "adding: T must be a whole number from 2 on; got 1."),
        (adding, (0, 5), "adding: B must be a whole number from 1 on; got 0."),
        (copying, (3, 0, 2, 1), "copying: word must be a whole number from 1"),
        (copying, (3, 1, 1, 1), "copying: C must be a whole number from 2"),
        (copying, (3, 1, 2, -1), "copying: lag must be a whole number from 0"),
        (spikes, (3, 5, 4, 3), "spikes: most must be a whole number from 4"),
        (spikes, (3, 0, 1, 1), "spikes: T must be a whole number from 1"),
        (spikes, (3, 5, 0, 1), "spikes: least must be a whole number from 1"),
    ],
)
def test_refusals(draw, sizes, sentence):
    with pytest.raises(ValueError, match=sentence):
        draw(*sizes)
