import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from strategies import seeds
from twins import fixed, randomised, tokens, torch_encoder

from dlcore.transformers.bert import (
    BERT,
    IGNORED,
    ClassHead,
    MaskedHead,
    SpanHead,
    best_span,
    hide,
    pack,
)

sizes = st.integers(1, 4)


def test_pack_by_hand():
    assert pack("ab") == (["[CLS]", "a", "b", "[SEP]"], [0, 0, 0, 0])
    both = ["[CLS]", "a", "[SEP]", "b", "c", "[SEP]"]
    assert pack("a", "bc") == (both, [0, 0, 0, 1, 1, 1])


def within(count, n, p):
    """Tell whether so many of n is no surprise: four standard deviations."""
    return abs(count - n * p) <= 4 * binom.std(n, p)


@pytest.mark.parametrize(
    "shares", [{}, {"masked": 1.0, "swapped": 0.0}, {"masked": 0.2}]
)
def test_shares_of_what_is_hidden(shares):
    x = torch.full((1000, 100), 7)
    seen, wanted = hide(x, x > 0, 4, (10, 1010), fixed(), **shares)
    chosen = wanted != IGNORED
    n = int(chosen.sum())
    masked = shares.get("masked", 0.8)
    swapped = shares.get("swapped", 0.1)
    assert within(n, x.numel(), 0.15)
    assert within(int((seen[chosen] == 4).sum()), n, masked)
    assert within(int((seen[chosen] == 7).sum()), n, 1 - masked - swapped)
    assert within(int((seen[chosen] >= 10).sum()), n, swapped)
    assert torch.equal(seen[~chosen], x[~chosen])
    assert torch.equal(wanted[chosen], x[chosen])


@given(st.integers(0, 1000), st.floats(0, 1))
def test_what_may_not_be_chosen_stays(seed, rate):
    x = torch.randint(10, 20, (5, 8), generator=fixed(seed))
    may = torch.rand(5, 8, generator=fixed(seed)) < 0.5
    seen, wanted = hide(x, may, 4, (10, 20), fixed(seed), rate)
    assert torch.equal(seen[~may], x[~may])
    assert bool((wanted[~may] == IGNORED).all())
    if rate == 1:
        assert torch.equal(wanted[may], x[may])


@given(seeds, sizes, sizes)
def test_states_are_those_of_layers_of_torch(rng, B, T):
    ours = randomised(BERT(7, 5, 8, 2, 2).double(), rng)
    theirs = torch_encoder(ours.stack)
    x, s = tokens(rng, 7, B, T), tokens(rng, 7, B, T) % 2
    lengths = torch.tensor(rng.integers(1, T + 1, B))
    padding = torch.arange(T) >= lengths[:, None]
    X = ours.embed(x) + ours.segments(s) + ours.places.E[:T]
    want = theirs(X, src_key_padding_mask=padding)
    got = ours(x, s, lengths)
    torch.testing.assert_close(got[~padding], want[~padding])


@given(seeds, sizes, st.integers(0, 3))
def test_padding_changes_nothing(rng, T, more):
    net, x = randomised(BERT(7, 9, 8, 2, 1).double(), rng), tokens(rng, 7, 1, T)
    padded = torch.cat([x, tokens(rng, 7, 1, more)], dim=1)
    got = net(padded, None, torch.tensor([T]))[:, :T]
    torch.testing.assert_close(got, net(x))


@given(seeds)
def test_every_token_sees_both_sides(rng):
    net, x = randomised(BERT(7, 5, 8, 2, 1).double(), rng), tokens(rng, 7, 1, 4)
    for t in range(4):
        other = x.clone()
        other[0, t] = (other[0, t] + 1) % 7
        changed = (net(other) - net(x)).abs().sum(dim=2)[0] > 0
        assert bool(changed.all())


def test_masked_head_shares_the_embeddings():
    bert = BERT(7, 5, 8, 2, 1)
    head = MaskedHead(bert)
    assert head.E is bert.embed.E
    assert head(bert(torch.tensor([[0, 1]]))).shape == (1, 2, 7)


def test_class_head_reads_the_first_token_only():
    X = torch.randn(2, 3, 8)
    head = ClassHead(8, 5)
    want = X[:, 0] @ head.weight.T + head.bias
    torch.testing.assert_close(head(X), want)


@given(seeds, sizes, st.integers(1, 6), st.integers(1, 6) | st.none())
def test_best_span_is_that_of_trying_all(rng, B, T, longest):
    scores = torch.tensor(rng.normal(size=(B, T, 2)))
    got = best_span(scores, longest)
    for row, (i, j) in zip(scores, got.tolist(), strict=True):
        spans = [(a, b) for a in range(T) for b in range(a, min(T, a + (longest or T)))]
        best = max(spans, key=lambda s: float(row[s[0], 0] + row[s[1], 1]))
        assert (i, j) == best


def test_answers_stand_where_they_may():
    head, X = SpanHead(4), torch.randn(1, 3, 4)
    may = torch.tensor([[False, True, False]])
    assert best_span(head(X, may)).tolist() == [[1, 1]]
    assert head(X).isfinite().all()


X = torch.zeros(1, 3, dtype=torch.long)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BERT(7, 2, 8, 2, 1)(X), "context of 2 tokens; got 3"),
        (lambda: BERT(7, 5, 8, 2, 1)(X + 7), "lie between 0 and 6"),
        (lambda: BERT(7, 5, 8, 2, 1)(X, X + 2), "segments must lie between 0 and 1"),
        (lambda: BERT(7, 5, 8, 3, 1), "be a multiple of num_heads = 3"),
        (
            lambda: hide(X, X == 0, 4, (5, 9), fixed(), 1.5),
            "rate must lie in [0, 1]; got 1.5",
        ),
        (lambda: hide(X, X, 4, (5, 9), fixed()), "may must have the shape"),
        (
            lambda: hide(X, X == 0, 4, (5, 9), fixed(), 0.2, 0.9, 0.2),
            "masked and swapped must not be negative",
        ),
        (lambda: hide(X, X == 0, 4, (9, 9), fixed()), "words must be a range"),
        (lambda: best_span(torch.ones(1, 2, 2), 0), "longest must be a whole"),
    ],
)
def test_refusals(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
