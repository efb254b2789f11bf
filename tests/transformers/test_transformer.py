import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from twins import copy_stack, randomised, tokens

from dlcore.recurrence.decoding import beam_search, greedy
from dlcore.transformers.attention import causal_mask
from dlcore.transformers.positions import sinusoidal
from dlcore.transformers.transformer import Transformer

sizes = st.integers(1, 4)


def model(rng, first=True):
    return randomised(Transformer(7, 5, 8, 2, 2, norm_first=first).double(), rng)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@given(seeds, sizes, sizes, sizes, st.booleans())
def test_values_and_gradients_are_those_of_torch(rng, B, S, T, first):
    ours = model(rng, first)
    theirs = nn.Transformer(
        8, 2, 2, 2, 32, dropout=0, batch_first=True, norm_first=first
    ).double()
    for mine, other in [(ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)]:
        copy_stack(mine, other)
    x, y = tokens(rng, 7, B, S), tokens(rng, 5, B, T)
    lengths = torch.tensor(rng.integers(1, S + 1, B))
    padding = torch.arange(S) >= lengths[:, None]
    enter = [
        8**0.5 * table(ids) + sinusoidal(torch.arange(ids.shape[1]), 8)
        for table, ids in [(ours.read, x), (ours.write, y)]
    ]
    want = ours.output(
        theirs(
            *enter,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(T) < 0,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
    )
    got = ours(x, y, lengths)
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)
    delta = torch.tensor(rng.normal(size=got.shape))
    tables = [ours.read.E, ours.write.E]
    torch.testing.assert_close(
        torch.autograd.grad(got, tables, delta),
        torch.autograd.grad(want, tables, delta),
        rtol=1e-5,
        atol=1e-5,
    )


@given(seeds, sizes, st.integers(1, 5), sizes)
def test_steps_give_what_the_parallel_form_gives(rng, B, T, S):
    net, x, y = model(rng), tokens(rng, 7, B, S), tokens(rng, 5, B, T)
    lengths = torch.tensor(rng.integers(1, S + 1, B))
    whole = torch.log_softmax(net(x, y, lengths), dim=-1)
    cache = net.begin(x, lengths)
    for t in range(T):
        p, cache = net.step(cache, y[:, t])
        torch.testing.assert_close(p, whole[:, t])


@given(seeds, st.integers(1, 5))
def test_learned_places_enter_both_sides_and_every_step(rng, T):
    net = randomised(Transformer(7, 5, 8, 2, 1, places=6).double(), rng)
    x, y = tokens(rng, 7, 2, 6), tokens(rng, 5, 2, T)
    whole = torch.log_softmax(net(x, y), dim=-1)
    cache = net.begin(x)
    for t in range(T):
        p, cache = net.step(cache, y[:, t])
        torch.testing.assert_close(p, whole[:, t])
    entered = 8**0.5 * (net.read(x) + net.places.E)
    torch.testing.assert_close(net.encode(x)[0], net.encoder(entered))
    memory = net.encode(x)[0]
    written = 8**0.5 * (net.write(y) + net.places.E[:T])
    behind = net.decoder(written, causal_mask(T), memory)
    torch.testing.assert_close(net(x, y), net.output(behind))


def test_base_is_that_of_the_encoding():
    net = Transformer(7, 5, 8, 2, 1, base=30)
    x = torch.tensor([[3, 1, 4]])
    entered = 8**0.5 * net.read(x) + sinusoidal(torch.arange(3), 8, 30)
    torch.testing.assert_close(net.encode(x)[0], net.encoder(entered))


def test_learned_places_leave_the_other_weights_as_they_are():
    plain, learned = (
        Transformer(
            7, 5, 8, 2, 1, places=n, generator=torch.Generator().manual_seed(0)
        ).state_dict()
        for n in (None, 6)
    )
    assert learned.keys() - plain.keys() == {"places.E"}
    assert all(torch.equal(learned[name], plain[name]) for name in plain)


@given(seeds, st.integers(1, 4), st.integers(0, 3))
def test_padding_changes_nothing(rng, S, more):
    net, x, y = model(rng), tokens(rng, 7, 1, S), tokens(rng, 5, 1, 3)
    padded = torch.cat([x, tokens(rng, 7, 1, more)], dim=1)
    got = net(padded, y, torch.tensor([S]))
    torch.testing.assert_close(got, net(x, y))


@given(seeds)
def test_greedy_is_beam_search_of_width_one(rng):
    net, x = model(rng), tokens(rng, 7, 1, 4)
    ((best, _),) = beam_search(net.step, net.begin(x), 0, 4, 1, 6)
    written = greedy(net.step, net.begin(x), 0, 6)[0].tolist()
    assert written[: len(best)] == best


def test_count_of_the_base_model():
    """Vaswani et al. (2017): 65 million with 37,000 tokens, shared by both sides."""
    net = Transformer(1, 1, 512, 8, 6, norm_first=False)
    layers = [net.encoder, net.decoder]
    assert sum(p.numel() for s in layers for p in s.parameters()) == 44_138_496


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda n, x: n(x + 6, x), "x must lie between 0 and 6"),
        (lambda n, x: n(x, x - 1), "y must lie between 0 and 4"),
        (lambda n, x: n(x, x[:1]), "y must have the axes (2, T) with T > 0"),
        (lambda n, x: n(x[:, :0], x), "x must have the axes (B, T) with T > 0"),
        (lambda n, x: n(x, x, torch.tensor([4, 1])), "lengths"),
        (
            lambda n, x: Transformer(0, 5, 8, 2, 1),
            "Transformer: sources must be a whole",
        ),
        (
            lambda n, x: Transformer(7, 5, 8, 2, 1, places=2)(x, x),
            "a text must have at most 2 places, one for each learned vector; got 3",
        ),
        (lambda n, x: Transformer(7, 5, 7, 1, 1)(x, x), "d must be even"),
    ],
)
def test_refusals(call, message, unchecked):
    x = torch.tensor([[0, 1, 2], [2, 1, 0]])
    with pytest.raises(ValueError, match=re.escape(message)):
        call(Transformer(7, 5, 8, 2, 1), x)
