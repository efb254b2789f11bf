import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from twins import leaf

from dlcore.recurrence.decoding import beam_search, greedy
from dlcore.recurrence.recurrent import GRU, LSTM, RNN, length_mask
from dlcore.recurrence.seq2seq import AdditiveAttention, Seq2Seq

sizes = st.integers(1, 4)


def layer(rng, S, H, A):
    made = AdditiveAttention(S, H, A).double()
    with torch.no_grad():
        for p in made.parameters():
            p.copy_(torch.tensor(rng.normal(size=p.shape)))
    return made


def by_hand(attention, s, h, mask):
    """One place at a time, with numbers only."""
    W, U, v = (p.tolist() for p in (attention.W, attention.U, attention.v))
    contexts, weights = [], []
    for row, states, look in zip(s.tolist(), h.tolist(), mask.tolist(), strict=True):
        e = []
        for state in states:
            inside = [
                sum(w * q for w, q in zip(W[k], row, strict=True))
                + sum(u * q for u, q in zip(U[k], state, strict=True))
                for k in range(len(v))
            ]
            e.append(sum(b * math.tanh(z) for b, z in zip(v, inside, strict=True)))
        powers = [math.exp(z) if m else 0.0 for z, m in zip(e, look, strict=True)]
        a = [p / sum(powers) for p in powers]
        weights.append(a)
        contexts.append(
            [
                sum(a[j] * states[j][k] for j in range(len(a)))
                for k in range(len(states[0]))
            ]
        )
    return torch.tensor(contexts), torch.tensor(weights)


@given(seeds, sizes, st.integers(1, 6), sizes, sizes, sizes)
def test_attention_is_the_formula_place_by_place(rng, B, T, S, H, A):
    attention = layer(rng, S, H, A)
    s, h = leaf(rng, B, S), leaf(rng, B, T, H)
    mask = torch.tensor(rng.random((B, T)) < 0.7)
    mask[:, rng.integers(T)] = True
    context, weights = attention(s, attention.remember(h, mask))
    c, a = by_hand(attention, s, h, mask)
    torch.testing.assert_close(weights, a.double(), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(context, c.double(), atol=1e-6, rtol=1e-6)


@given(seeds, st.integers(1, 5))
def test_attention_is_a_hidden_layer_on_both_parts_joined(rng, T):
    attention = layer(rng, 3, 4, 5)
    s, h = leaf(rng, 2, 3), leaf(rng, 2, T, 4)
    net = nn.Sequential(
        nn.Linear(7, 5, bias=False), nn.Tanh(), nn.Linear(5, 1, bias=False)
    ).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.cat([attention.W, attention.U], dim=1))
        net[2].weight.copy_(attention.v[None])
    joined = torch.cat([s[:, None].expand(2, T, 3), h], dim=2)
    a = torch.softmax(net(joined)[..., 0], dim=1)
    c = torch.einsum("bt,bth->bh", a, h)
    context, weights = attention(s, attention.remember(h))
    torch.testing.assert_close((context, weights), (c, a))
    delta = torch.tensor(rng.normal(size=c.shape))
    ours = torch.autograd.grad(context, [s, h, attention.v], delta)
    theirs = torch.autograd.grad(c, [s, h, net[2].weight], delta)
    torch.testing.assert_close(ours[:2], theirs[:2])
    torch.testing.assert_close(ours[2], theirs[2][0])


def test_gradients_agree_with_differences():
    source = torch.Generator().manual_seed(0)
    attention = AdditiveAttention(2, 3, 4, source).double()
    s = torch.randn(2, 2, generator=source).double().requires_grad_()
    h = torch.randn(2, 4, 3, generator=source).double().requires_grad_()
    mask = torch.tensor([[True, True, True, True], [True, False, True, False]])

    class Whole(nn.Module):
        """Both steps in one, so that the weights can be replaced."""

        def __init__(self):
            super().__init__()
            self.inside = attention

        def forward(self, s, h):
            return self.inside(s, self.inside.remember(h, mask))

    def contexts(s, h, W, U, v):
        weights = {"inside.W": W, "inside.U": U, "inside.v": v}
        return torch.func.functional_call(Whole(), weights, (s, h))

    inputs = (s, h, attention.W, attention.U, attention.v)
    assert torch.autograd.gradcheck(contexts, inputs)


@given(seeds, st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_masked_places_have_no_weight_and_no_gradient(rng, lengths):
    attention = layer(rng, 2, 3, 4)
    mask = length_mask(torch.tensor(lengths), 5)
    s, h = leaf(rng, len(lengths), 2), leaf(rng, len(lengths), 5, 3)
    spoiled = h.detach().clone()
    spoiled[~mask] = torch.nan
    spoiled.requires_grad_()
    results = []
    for states in (h, spoiled):
        context, weights = attention(s, attention.remember(states, mask))
        slopes = torch.autograd.grad(
            context.square().sum(), [s, states, *attention.parameters()]
        )
        results.append((context, weights, slopes))
    torch.testing.assert_close(*results)
    context, weights, (_, by_state, *_) = results[1]
    assert (weights[~mask] == 0).all()
    assert (by_state[~mask] == 0).all()
    for row, T in enumerate(lengths):
        short = attention.remember(h[row : row + 1, :T])
        alone, _ = attention(s[row : row + 1], short)
        torch.testing.assert_close(alone[0], context[row])


@given(seeds, st.integers(1, 6))
def test_order_of_the_states_does_not_matter_to_the_context(rng, T):
    attention = layer(rng, 2, 3, 4)
    s, h = leaf(rng, 1, 2), leaf(rng, 1, T, 3)
    order = rng.permutation(T).tolist()
    c, a = attention(s, attention.remember(h))
    c2, a2 = attention(s, attention.remember(h[:, order]))
    torch.testing.assert_close((c, a[:, order]), (c2, a2))
    assert (h[0].amin(0) - 1e-12 <= c[0]).all()
    assert (c[0] <= h[0].amax(0) + 1e-12).all()


def net_of(attention=True, kind=GRU, seed=0):
    source = torch.Generator().manual_seed(seed)
    return Seq2Seq(5, 4, 6, 3, attention, kind, source).double()


@pytest.mark.parametrize("kind", [RNN, GRU, LSTM])
@pytest.mark.parametrize("attention", [True, False])
@settings(max_examples=15)
@given(seeds, st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_padding_does_not_change_a_translation(kind, attention, rng, lengths):
    net, many = net_of(attention, kind), torch.tensor(lengths)
    x = torch.tensor(rng.integers(0, 5, (len(lengths), 5)))
    y = torch.tensor(rng.integers(0, 4, (len(lengths), 3)))
    scores, weights = net(x, y, many)
    for row, T in enumerate(lengths):
        alone, look = net(x[row : row + 1, :T], y[row : row + 1])
        torch.testing.assert_close(alone[0], scores[row])
        if attention:
            torch.testing.assert_close(look[0], weights[row, :, :T])
            assert (weights[row, :, T:] == 0).all()
    if not attention:
        assert torch.equal(weights, torch.ones(len(lengths), 3, 1).double())


@pytest.mark.parametrize("attention", [True, False])
def test_teacher_forcing_sees_the_past_only(attention):
    net = net_of(attention)
    x = torch.tensor([[0, 1, 2, 3]])
    one, other = torch.tensor([[3, 0, 1, 2]]), torch.tensor([[3, 0, 2, 1]])
    a, b = net(x, one)[0], net(x, other)[0]
    assert torch.equal(a[:, :2], b[:, :2])
    assert not torch.allclose(a[:, 2], b[:, 2])


@pytest.mark.parametrize("kind", [RNN, GRU, LSTM])
@pytest.mark.parametrize("attention", [True, False])
def test_steps_give_what_teacher_forcing_gives(kind, attention):
    net, lengths = net_of(attention, kind), torch.tensor([3, 2])
    x, y = torch.tensor([[4, 1, 2], [3, 3, 0]]), torch.tensor([[3, 0, 1], [3, 2, 2]])
    whole = net(x, y, lengths)[0].log_softmax(dim=2)
    state = net.begin(x, lengths)
    for t in range(3):
        p, state = net.step(state, y[:, t])
        torch.testing.assert_close(p, whole[:, t])


@pytest.mark.parametrize("kind", [GRU, LSTM])
@pytest.mark.parametrize("attention", [True, False])
def test_greedy_is_a_beam_of_one_and_agrees_with_teacher_forcing(kind, attention):
    net = net_of(attention, kind)
    with torch.no_grad():
        net.R.mul_(8)
    x = torch.tensor([[4, 1, 2], [3, 3, 0]])
    written = greedy(net.step, net.begin(x), 3, 4)
    before = torch.cat([torch.full((2, 1), 3), written[:, :-1]], dim=1)
    scores = net(x, before)[0].detach()
    assert torch.equal(scores.argmax(dim=2), written)
    for row in range(2):
        found = beam_search(net.step, net.begin(x[row : row + 1]), 3, 2, 1, 4)
        tokens, value = found[0]
        assert tokens == written[row, : len(tokens)].tolist()
        logs = torch.log_softmax(scores[row], dim=1)
        terms = [logs[i, token] for i, token in enumerate(tokens)]
        assert math.isclose(value, float(sum(terms)), rel_tol=1e-9)


def test_wide_beam_finds_the_best_of_all_sequences():
    net, x = net_of(), torch.tensor([0, 4, 2])
    tokens, value = beam_search(net.step, net.begin(x[None]), 3, 2, 64, 3)[0]
    best = max(
        (
            sum(
                torch.log_softmax(
                    net(x[None], torch.tensor([[3, *sequence[:-1]]]))[0][0], dim=1
                )[i, token].item()
                for i, token in enumerate(sequence)
            ),
            sequence,
        )
        for sequence in (
            [[2]]
            + [[a, 2] for a in (0, 1, 3)]
            + [[a, b, c] for a in (0, 1, 3) for b in (0, 1, 3) for c in range(4)]
        )
    )
    assert tokens == best[1]
    assert math.isclose(value, best[0], rel_tol=1e-9)


def test_thought_vector_is_the_last_state_of_each_direction():
    net, x = net_of(kind=LSTM), torch.tensor([[0, 1, 2], [3, 4, 0]])
    h, thought = net.encode(x, torch.tensor([3, 2]))
    torch.testing.assert_close(thought[0, :6], h[0, 2, :6])
    torch.testing.assert_close(thought[1, :6], h[1, 1, :6])
    torch.testing.assert_close(thought[:, 6:], h[:, 0, 6:])


def test_context_by_hand():
    attention = AdditiveAttention(1, 1, 1).double()
    with torch.no_grad():
        attention.W.fill_(0)
        attention.U.fill_(1)
        attention.v.fill_(math.log(3) / math.tanh(1))
    h = torch.tensor([[[0.0], [1.0]]]).double()
    c, a = attention(torch.zeros(1, 1).double(), attention.remember(h))
    torch.testing.assert_close(a, torch.tensor([[0.25, 0.75]]).double())
    torch.testing.assert_close(c, torch.tensor([[0.75]]).double())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: AdditiveAttention(0, 1, 1),
            "AdditiveAttention: queries must be a whole number from 1 on",
        ),
        (
            lambda: AdditiveAttention(2, 3, 4).remember(torch.zeros(2, 0, 3)),
            "AdditiveAttention: mask must have a place to look at in each row; got [0, 0]",
        ),
        (
            lambda: AdditiveAttention(2, 3, 4).remember(
                torch.zeros(1, 2, 3), torch.tensor([[False, False]])
            ),
            "AdditiveAttention: mask must have a place to look at in each row; got [0]",
        ),
        (
            lambda: net_of().encode(torch.tensor([[5]])),
            "Seq2Seq: x must lie between 0 and 4, the rows of the table",
        ),
        (
            lambda: net_of().encode(torch.zeros(2, 0, dtype=torch.long)),
            "Seq2Seq: x must have the axes (B, T) with T > 0; got shape (2, 0)",
        ),
        (
            lambda: net_of()(torch.tensor([[0]]), torch.tensor([[0], [1]])),
            "Seq2Seq: y must have the axes (1, T) with T > 0; got shape (2, 1)",
        ),
        (
            lambda: net_of()(
                torch.tensor([[0, 1]]), torch.tensor([[0]]), torch.tensor([3])
            ),
            "lengths must lie between 1 and 2; got [3]",
        ),
        (lambda: Seq2Seq(1, 1, 0), "Seq2Seq: hidden must be a whole number"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
