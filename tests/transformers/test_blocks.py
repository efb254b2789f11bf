import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from twins import copy_stack, leaf, randomised

from dlcore.transformers.attention import causal_mask
from dlcore.transformers.blocks import Block, FeedForward, Stack

sizes = st.integers(1, 4)


def stack(*sizes, **options):
    return Stack(2, lambda: Block(8, 2, *sizes, **options)).double()


@given(seeds, sizes, sizes, st.booleans())
def test_encoder_is_that_of_torch(rng, B, T, first):
    ours = randomised(stack(5, norm_first=first), rng)
    layer = nn.TransformerEncoderLayer(
        8, 2, 5, dropout=0, batch_first=True, norm_first=first
    )
    theirs = nn.TransformerEncoder(
        layer, 2, norm=nn.LayerNorm(8) if first else None, enable_nested_tensor=False
    ).double()
    copy_stack(ours, theirs)
    X = leaf(rng, B, T, 8)
    mask = torch.tensor(rng.random((B, 1, T)) < 0.5)
    mask[:, :, 0] = True
    got = ours(X, mask)
    want = theirs(X, src_key_padding_mask=~mask[:, 0])
    torch.testing.assert_close(got, want)
    delta = torch.tensor(rng.normal(size=X.shape))
    grads = [
        torch.autograd.grad(y, [X, w], delta)
        for y, w in [
            (got, ours.blocks[0].feed_forward[0].weight),
            (want, theirs.layers[0].linear1.weight),
        ]
    ]
    torch.testing.assert_close(*grads)


@given(seeds, sizes, sizes, sizes, st.booleans())
def test_decoder_is_that_of_torch(rng, B, T, S, first):
    ours = randomised(stack(5, cross=True, norm_first=first), rng)
    layer = nn.TransformerDecoderLayer(
        8, 2, 5, dropout=0, batch_first=True, norm_first=first
    )
    theirs = nn.TransformerDecoder(
        layer, 2, norm=nn.LayerNorm(8) if first else None
    ).double()
    copy_stack(ours, theirs)
    X, Z = leaf(rng, B, T, 8), leaf(rng, B, S, 8)
    causal = causal_mask(T)
    got = ours(X, causal, Z)
    want = theirs(X, Z, tgt_mask=~causal)
    torch.testing.assert_close(got, want)
    delta = torch.tensor(rng.normal(size=X.shape))
    torch.testing.assert_close(
        torch.autograd.grad(got, [X, Z], delta),
        torch.autograd.grad(want, [X, Z], delta),
    )


@given(seeds, sizes, st.integers(1, 5), sizes, st.booleans(), st.booleans())
def test_steps_with_a_cache_are_the_rows_of_the_parallel_form(
    rng, B, T, S, cross, first
):
    net = randomised(stack(cross=cross, norm_first=first), rng)
    X, Z = leaf(rng, B, T, 8), leaf(rng, B, S, 8) if cross else None
    mask = torch.tensor(rng.random((B, 1, S)) < 0.5) if cross else None
    whole = net(X, causal_mask(T), Z, mask)
    cache = net.begin(B, Z)
    for t in range(T):
        y, cache = net.step(X[:, t : t + 1], cache, mask)
        torch.testing.assert_close(y, whole[:, t : t + 1])
    assert cache[0].shape == (B, 2, T, 4)


@given(seeds, sizes)
def test_network_acts_on_each_place_alone(rng, T):
    net = FeedForward(4, 7)
    X = torch.tensor(rng.normal(size=(2, T, 4)), dtype=torch.float32)
    rows = torch.stack([net(X[:, t]) for t in range(T)], dim=1)
    torch.testing.assert_close(net(X), rows)


def test_counts_of_the_base_model():
    """512 wide, 2048 hidden units (Vaswani et al. 2017)."""

    def count(module):
        return sum(p.numel() for p in module.parameters())

    assert count(FeedForward(512, 2048)) == 2_099_712
    four = 4 * (512 * 512 + 512)
    assert count(Block(512, 8)) == four + 2_099_712 + 2 * 1024
    assert count(Block(512, 8, cross=True)) == 2 * four + 2_099_712 + 3 * 1024


def test_dropout_acts_in_training_only():
    torch.manual_seed(0)
    block, X = Block(8, 2, dropout=0.5), torch.randn(1, 3, 8)
    assert not torch.equal(block(X), block(X))
    block.eval()
    assert torch.equal(block(X), block(X))


X = torch.ones(1, 2, 8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Block(8, 2)(X, None, X), "memory must be left out"),
        (
            lambda: Block(8, 2, cross=True)(X),
            "memory must be left out without cross=True, and given with it; got None",
        ),
        (lambda: Block(9, 2), "d_model must be a multiple of num_heads = 2"),
        (
            lambda: Stack(0, lambda: Block(8, 2)),
            "num_layers must be a whole number from 1",
        ),
        (lambda: FeedForward(8, 0), "d_ff must be a whole number from 1 on"),
        (lambda: Block(8, 2, d_ff=0), "d_ff must be a whole number from 1 on"),
        (lambda: Block(8, 2)(X, causal_mask(3)), "mask must fit the scores"),
        (lambda: Block(8, 2)(X[0]), "X must have the axes (B, T, 8)"),
    ],
)
def test_refusals(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
