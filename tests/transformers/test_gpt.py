import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from twins import randomised, tokens, torch_encoder

from dlcore.transformers.gpt import GPT


def model(rng):
    return randomised(GPT(7, 6, 8, 2, 2).double(), rng)


@given(seeds, st.integers(1, 3), st.integers(1, 6))
def test_values_are_those_of_layers_of_torch(rng, B, T):
    ours, x = model(rng), tokens(rng, 7, B, T)
    theirs = torch_encoder(ours.stack)
    X = ours.embed(x) + ours.places.E[:T]
    causal = nn.Transformer.generate_square_subsequent_mask(T) < 0
    want = theirs(X, mask=causal) @ ours.embed.E.T
    torch.testing.assert_close(ours(x), want)


@given(seeds, st.integers(1, 3), st.integers(1, 6))
def test_steps_give_what_the_parallel_form_gives(rng, B, T):
    net, x = model(rng), tokens(rng, 7, B, T)
    whole, cache = net(x).log_softmax(dim=2), net.begin(B)
    for t in range(T):
        scores, cache = net.step(cache, x[:, t])
        torch.testing.assert_close(scores, whole[:, t])


@given(seeds, st.integers(2, 6))
def test_the_future_is_hidden(rng, T):
    net, x = model(rng), tokens(rng, 7, 1, T)
    other = x.clone()
    other[:, -1] = (other[:, -1] + 1) % 7
    torch.testing.assert_close(net(other)[:, :-1], net(x)[:, :-1])
    assert not torch.allclose(net(other)[:, -1], net(x)[:, -1])


def test_parameters_are_twelve_times_the_square_of_the_width_per_layer():
    D, N = 64, 3
    net = GPT(10, 20, D, 4, N)
    tables = (10 + 20) * D
    small = N * (4 * D + 4 * D + D + 4 * D) + 2 * D  # biases and norms
    count = sum(p.numel() for p in net.parameters())
    assert count == 12 * N * D**2 + tables + small


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda n: n(torch.zeros(1, 7, dtype=torch.long)),
            "no longer than the context of 6 tokens; got 7. Cut the beginning",
        ),
        (lambda n: n(torch.tensor([[7]])), "lie between 0 and 6"),
        (lambda n: n.begin(0), "B must be a whole number from 1 on"),
        (lambda n: GPT(7, 0, 8, 2, 1), "context must be a whole number"),
        (lambda n: GPT(7, 6, 8, 3, 1), "be a multiple of num_heads = 3"),
    ],
)
def test_refusals(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(GPT(7, 6, 8, 2, 1))


def test_refuses_a_step_beyond_the_context():
    net = GPT(7, 2, 8, 2, 1)
    x, cache = torch.tensor([0]), net.begin(1)
    for _ in range(2):
        _, cache = net.step(cache, x)
    with pytest.raises(ValueError, match="context of 2 tokens; got 3"):
        net.step(cache, x)
