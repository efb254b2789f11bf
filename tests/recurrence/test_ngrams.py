"""Tests of dlcore.recurrence.ngrams."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from strategies import seeds

from dlcore.recurrence.ngrams import Interpolated, Markov

rows = st.lists(st.lists(st.integers(0, 2), max_size=6), min_size=1, max_size=6)
# a b c as 0 1 2; the border is 3
WORDS = [[0, 1], [0, 2], [0, 1, 1]]


def chains(order):
    return [
        Markov(order, 3, alpha=0.5),
        Interpolated(order, 3, discount=0.75),
        Markov(order, 3, ends=False, alpha=0.5),
        Interpolated(order, 3, ends=False),
    ]


def test_by_hand():
    chain = Markov(1, 3).fit(WORDS)
    assert chain.count([0], 1) == 2
    assert chain.count([], 1) == 3
    assert chain.count([3], 0) == 3
    assert np.allclose(chain.next([0]), [0, 2 / 3, 1 / 3, 0])
    assert np.allclose(chain.next([2, 0]), [0, 2 / 3, 1 / 3, 0])
    assert np.allclose(chain.next([1]), [0, 1 / 3, 0, 2 / 3])
    assert math.isclose(chain.log_prefix([0, 1]), math.log(2 / 3))
    assert math.isclose(chain.log_probability([0, 1]), math.log(4 / 9))
    assert chain.log_probability([1]) == -np.inf
    assert chain.log_probability([0, 1, 2]) == -np.inf
    more = Markov(1, 3, alpha=1).fit(WORDS)
    assert np.allclose(more.next([2]), [1 / 5, 1 / 5, 1 / 5, 2 / 5])


def test_interpolation_by_hand():
    chain = Interpolated(1, 3, discount=0.5).fit(WORDS)
    ten = np.array([3, 3, 1, 3])  # counts of a, b, c, end
    empty = (ten - 0.5 + 0.5 * 4 / 4) / 10
    assert np.allclose(Interpolated(0, 3, discount=0.5).fit(WORDS).next(), empty)
    after_a = np.array([0, 1.5, 0.5, 0]) / 3 + 0.5 * 2 / 3 * empty
    assert np.allclose(chain.next([0]), after_a)
    assert np.allclose(
        chain.fit([[0], [0]]).next([2]), [0.4375, 0.0625, 0.0625, 0.4375]
    )


@given(rows, rows)
def test_one_chain_has_those_of_lower_order_inside(seen, asked):
    found = Interpolated(3, 3, discount=0.6).fit(seen).by_order(asked)
    assert len(found) == 4
    for k, row in enumerate(found):
        lower = Interpolated(k, 3, discount=0.6).fit(seen)
        assert np.array_equal(row, lower.log_probabilities(asked))


def test_counts_are_those_of_scikit_learn():
    words = ["abba", "babble", "cab", "scab", "labs"]
    letters = sorted(set("".join(words)))
    encoded = [[letters.index(x) for x in word] for word in words]
    chain = Markov(2, len(letters)).fit(encoded)
    counter = CountVectorizer(analyzer="char", ngram_range=(3, 3))
    table = counter.fit_transform(words).toarray().sum(axis=0)
    for gram, number in zip(counter.get_feature_names_out(), table, strict=True):
        *context, token = (letters.index(x) for x in gram)
        assert chain.count(context, token) == number


@pytest.mark.parametrize("order", [0, 1, 2])
@given(sequences=rows)
def test_rows_agree_with_one_by_one(order, sequences):
    for chain in chains(order):
        chain.fit(sequences)
        slow = []
        for sequence in sequences:
            ends = [3] if chain.ends else []
            for t, token in enumerate([*sequence, *ends]):
                slow.append(chain.next(sequence[:t])[token])
        assert np.allclose(np.exp(chain.log_probabilities(sequences)), slow)


@pytest.mark.parametrize("order", [0, 1, 2])
@given(sequences=rows)
def test_probabilities_sum_to_one_behind_every_context(order, sequences):
    for chain in chains(order):
        chain.fit(sequences)
        for before in product(range(3), repeat=order):
            p = chain.next(before)
            assert len(p) == chain.outcomes
            assert (p > 0).all()
            assert math.isclose(p.sum(), 1)


@given(rows, seeds)
def test_counts_maximise_the_likelihood(sequences, rng):
    best = Markov(1, 3).fit(sequences)
    most = best.log_probabilities(sequences).sum()
    pairs = Counter(
        pair for row in sequences for pair in zip([3, *row], [*row, 3], strict=True)
    )
    for _ in range(20):
        other = rng.dirichlet(np.ones(4), size=4)
        assert most >= sum(n * np.log(other[c, x]) for (c, x), n in pairs.items())


def test_beginnings_have_the_probability_of_what_begins_so():
    chain = Markov(1, 3).fit([[0, 1], [0, 2], [1, 2], [2]])
    for prefix in [[], [0], [0, 1], [1, 2]]:
        total = sum(
            math.exp(chain.log_probability([*prefix, *rest]))
            for length in range(4)
            for rest in product(range(3), repeat=length)
        )
        assert math.isclose(total, math.exp(chain.log_prefix(prefix)))


def test_samples_have_the_probabilities():
    chain = Markov(1, 3).fit(WORDS)
    rng = np.random.default_rng(0)
    draws = Counter(tuple(chain.sample(rng)) for _ in range(1000))
    for word in [(0, 1), (0, 2), (0, 1, 1)]:
        p = math.exp(chain.log_probability(word))
        assert abs(draws[word] / 1000 - p) < 5 * (p * (1 - p) / 1000) ** 0.5
    endless = Markov(1, 3, ends=False).fit([[0, 1, 0, 1]])
    assert endless.sample(rng, [0], longest=5) == [1, 0, 1, 0, 1]


@pytest.mark.parametrize("k", range(6))
def test_parameters_of_bits(k):
    assert Markov(k, 2, ends=False).parameters == 2**k + 2**k - 1


def test_empty_sequences_count_as_ends():
    chain = Markov(2, 3).fit([[], [0]])
    assert np.allclose(chain.next(), [1 / 2, 0, 0, 1 / 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Markov(-1, 3), "order must be a whole number from 0"),
        (lambda: Markov(1, 0), "tokens must be a whole number from 1"),
        (lambda: Markov(20, 63), r"\(order \+ 1\) < 2\^63 with 63 tokens"),
        (lambda: Markov(1, 3, alpha=-1.0), r"alpha must lie in \[0, ∞\); got -1"),
        (lambda: Interpolated(1, 3, discount=0.0), r"discount must lie in \(0, 1\]"),
        (lambda: Markov(1, 3).fit([[0, 3]]), "numbers from 0 to 2; got"),
        (lambda: Markov(1, 3).fit([[0.5]]), "whole numbers"),
        (lambda: Markov(1, 3).fit(WORDS).next([7]), r"got \[7\]"),
        (lambda: Markov(1, 2).fit([[0]]).next([1]), r"seen.*got \[1\]"),
        (
            lambda: Markov(1, 3, ends=False).fit(WORDS).log_probability([0]),
            "must end; got ends=False. log_prefix",
        ),
        (lambda: Markov(1, 3).count([0, 1], 2), "have at most 1; got 2"),
        (
            lambda: Markov(0, 3, alpha=1).sample(np.random.default_rng(0), longest=-1),
            "longest must be",
        ),
    ],
)
def test_refuses(call, message, unchecked):
    with pytest.raises(ValueError, match=message):
        call()
