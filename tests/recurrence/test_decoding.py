"""Tests of dlcore.recurrence.decoding."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from twins import fixed

from dlcore.recurrence.decoding import (
    beam_search,
    greedy,
    nucleus,
    sample,
    tempered,
    top_k,
)

INF = torch.inf
EVEN = torch.full((1, 3), 1 / 3).log()
HALVES = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64).log()


def whole_scores(draw_seed, *shape):
    """Draw whole scores, so that ties happen."""
    return torch.randint(-2, 3, shape, generator=fixed(draw_seed)).double()


def test_by_hand():
    assert tempered(torch.tensor([2.0, -1.0]), 0.5).tolist() == [4.0, -2.0]
    assert top_k(torch.tensor([1.0, 3.0, 3.0]), 2).tolist() == [-INF, 3, 3]
    assert top_k(torch.tensor([1.0, 3.0, 3.0]), 1).tolist() == [-INF, 3, -INF]
    for p, kept in [(0.4, [1]), (0.5, [1]), (0.6, [1, 2]), (0.8, [1, 2])]:
        assert nucleus(HALVES, p).isfinite().nonzero().flatten().tolist() == kept
    assert nucleus(HALVES, 1.0).equal(HALVES)


@given(st.integers(0, 999), st.integers(1, 5))
def test_top_k_keeps_what_torch_finds(seed, k):
    logits = whole_scores(seed, 4, 5)
    kept = top_k(logits, k)
    assert (kept.isfinite().sum(1) == k).all()
    best = torch.topk(logits, k).values
    assert kept.topk(k).values.equal(best)
    rows = torch.stack([top_k(row, k) for row in logits])
    assert kept.equal(rows)


@given(st.integers(0, 999), st.floats(0.01, 1))
def test_nucleus_is_the_smallest_set_of_the_best(seed, p):
    logits = torch.randn(7, generator=fixed(seed)).double()
    kept = nucleus(logits, p).isfinite()
    masses = logits.softmax(0)
    sizes = [
        size for size in range(1, 8) if masses.topk(size).values.sum() >= p - 1e-12
    ]
    assert kept.sum() == (sizes[0] if sizes else 7)
    assert masses[kept].min() >= masses[~kept].max() if not kept.all() else True


def test_full_nucleus_keeps_a_hair():
    logits = torch.tensor([0.0, -60.0, -INF])
    assert nucleus(logits, 1.0).equal(logits)
    assert nucleus(logits, 0.999).tolist() == [0.0, -INF, -INF]


@pytest.mark.parametrize("p", [1e-30, 1e-9])
def test_smallest_nucleus_is_the_best_token(p):
    logits = torch.linspace(0, 1, 5000)
    assert nucleus(logits, p).isfinite().nonzero().tolist() == [[4999]]


def test_rules_can_follow_each_other():
    both = nucleus(top_k(HALVES, 2), 0.6)
    assert both.isfinite().tolist() == [False, True, False]


def test_tempered_is_a_power_of_the_probabilities():
    powers = HALVES.exp() ** (1 / 0.7)
    assert tempered(HALVES, 0.7).softmax(0).allclose(powers / powers.sum())


def test_samples_have_the_probabilities():
    rng = fixed(1)
    tokens = sample(HALVES.expand(20, 3000, 3), rng)
    assert tokens.shape == (20, 3000)
    shares = torch.bincount(tokens.flatten()) / tokens.numel()
    assert shares.allclose(HALVES.exp().float(), atol=0.01)  # 5 deviations
    assert (sample(top_k(HALVES, 2).expand(500, 3), rng) > 0).all()
    assert sample(HALVES, rng).shape == ()


def table_model(seed, C):
    """Return a model of random tables, whose state is the two last tokens."""
    rng = fixed(seed)
    logits = torch.randn(C, C, C, generator=rng).double()
    tables = logits.log_softmax(-1)

    def step(state, tokens):
        before, count = state
        return tables[before[:, 0], tokens], (tokens[:, None], count + 1)

    state = (torch.zeros(1, 1, dtype=torch.long), torch.zeros(1))
    return tables, step, state


def brute_force(tables, end, longest):
    """Return the probability of every sequence that ends, or is cut off."""
    C, found = len(tables), {}
    for length in range(1, longest + 1):
        for tokens in product(range(C), repeat=length):
            early = end in tokens[:-1]
            if early or (tokens[-1] != end and length < longest):
                continue
            before, last, total = 0, 0, 0.0
            for token in tokens:
                total += tables[before, last, token].item()
                before, last = last, token
            found[tokens] = total
    return sorted(found.items(), key=lambda one: -one[1])


@pytest.mark.parametrize("seed", range(5))
def test_wide_beam_finds_all_sequences(seed):
    tables, step, state = table_model(seed, 3)
    exact = brute_force(tables, 2, 4)
    found = beam_search(step, state, 0, 2, 3**4, 4)
    assert len(found) == len(exact)
    assert math.isclose(sum(math.exp(p) for _, p in found), 1)
    logs = {tuple(tokens): p for tokens, p in found}
    assert logs.keys() == dict(exact).keys()
    for (tokens, q), (_, p) in zip(exact, found, strict=True):
        assert math.isclose(logs[tokens], q)
        assert math.isclose(p, q)  # in order, up to ties


@given(st.integers(0, 999), st.integers(1, 6))
def test_beam_says_the_probability_of_what_it_finds(seed, width):
    tables, step, state = table_model(seed, 4)
    exact = dict(brute_force(tables, 3, 4))
    found = beam_search(step, state, 0, 3, width, 4)
    assert 1 <= len(found) <= width
    assert len({tuple(tokens) for tokens, _ in found}) == len(found)
    for tokens, p in found:
        assert math.isclose(p, exact[tuple(tokens)])
    assert found == sorted(found, key=lambda one: -one[1])


@given(st.integers(0, 999))
def test_width_one_is_greedy(seed):
    tables, step, state = table_model(seed, 4)
    ((found, _),) = beam_search(step, state, 0, 3, 1, 6)
    before, last, tokens = 0, 0, []
    while len(tokens) < 6 and last != 3:
        before, last = last, int(tables[before, last].argmax())
        tokens.append(last)
    assert found == tokens
    (written,) = greedy(step, state, 0, 6)
    assert written[: len(found)].tolist() == found


def test_beam_with_one_tensor_as_state():
    chances = torch.tensor([[0.4, 0.6], [0.9, 0.1]]).log()
    found = beam_search(lambda s, t: (chances[t], s), (torch.ones(1, 2),), 0, 1, 2, 2)
    assert [tokens for tokens, _ in found] == [[1], [0, 1]]
    assert math.isclose(found[1][1], math.log(0.24), rel_tol=1e-6)


def test_impossible_tokens_are_not_found():
    chances = torch.tensor([0.0, 1.0]).log()
    found = beam_search(
        lambda s, t: (chances.expand(len(t), 2), s), (torch.ones(1),), 0, 1, 5, 3
    )
    assert found == [([1], 0.0)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tempered(HALVES, 0.0), "temperature must be positive"),
        (lambda: tempered(HALVES, INF), "temperature must be positive"),
        (lambda: top_k(HALVES, 0), "k must be a whole number from 1"),
        (lambda: top_k(HALVES, 4), "at most the number of tokens 3; got 4"),
        (lambda: nucleus(HALVES, 0.0), r"p must lie in \(0, 1\]"),
        (lambda: nucleus(HALVES, 1.1), r"p must lie in \(0, 1\]"),
        (lambda: greedy(max, (torch.ones(1),), 0, 0), "longest must be a whole"),
        (lambda: greedy(max, (torch.ones(1),), -1, 1), "start must be a whole"),
        (lambda: sample(torch.full((2, 3), -INF)), "finite one in each row"),
        (lambda: sample(torch.tensor([0.0, torch.nan])), "be numbers"),
        (lambda: sample(torch.zeros(2, 0)), "at least one token"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"width": 0}, "width must be a whole number"),
        ({"longest": 0}, "longest must be a whole number"),
        ({"end": -1}, "end must be a whole number"),
        ({"end": 4}, "column for each token up to the end 4; got 3"),
        ({"state": (torch.ones(2),)}, "state must have 1 rows; got \\[2\\]"),
        ({"step": lambda s, t: (torch.zeros(len(t), 3), s)}, "log_softmax"),
        ({"step": lambda s, t: (torch.zeros(3), s)}, "shape \\(3,\\)"),
        (
            {"step": lambda s, t: (EVEN.expand(len(t), 3), (torch.ones(7),))},
            "state that step returns must have 1 rows; got \\[7\\]",
        ),
    ],
)
def test_beam_search_refuses(changed, message):
    fine = {
        "step": lambda s, t: (EVEN.expand(len(t), 3), s),
        "state": (torch.ones(1),),
        "start": 0,
        "end": 2,
        "width": 2,
        "longest": 3,
    }
    with pytest.raises(ValueError, match=message):
        beam_search(**(fine | changed))
