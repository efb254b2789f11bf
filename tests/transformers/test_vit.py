import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from twins import copy_block, normal, randomised, torch_encoder

from dlcore.transformers.vit import ViT, patchify, rollout, unpatchify

sizes = st.integers(1, 3)


@given(seeds, sizes, sizes, sizes, sizes, sizes)
def test_pictures_come_back_from_their_patches(rng, B, C, P, r, s):
    X = normal(rng, B, C, r * P, s * P)
    patches = patchify(X, P)
    assert patches.shape == (B, r * s, C * P * P)
    assert torch.equal(unpatchify(patches, P, C, r * P), X)


@given(seeds, sizes, sizes, sizes)
def test_patches_are_those_of_torch(rng, C, P, r):
    X = normal(rng, 2, C, r * P, 2 * P)
    theirs = F.unfold(X, P, stride=P).transpose(1, 2)
    assert torch.equal(patchify(X, P), theirs)


@given(seeds, sizes, sizes)
def test_a_linear_map_of_patches_is_a_convolution_with_their_stride(rng, C, P):
    X, W = normal(rng, 2, C, 2 * P, 2 * P), normal(rng, 5, C, P, P)
    theirs = F.conv2d(X, W, stride=P).flatten(2).transpose(1, 2)
    torch.testing.assert_close(patchify(X, P) @ W.flatten(1).T, theirs)


@given(seeds, sizes)
def test_values_and_gradients_are_those_of_layers_of_torch(rng, B):
    ours = randomised(ViT(6, 3, 4, 8, 2, 2, channels=2).double(), rng)
    theirs = torch_encoder(ours.stack)
    X = normal(rng, B, 2, 6, 6).requires_grad_()
    W = ours.embed.weight.unflatten(1, (2, 3, 3))
    E = F.conv2d(X, W, ours.embed.bias, stride=3).flatten(2).transpose(1, 2)
    first = ours.class_token.expand(B, 1, 8)
    want = ours.head(theirs(torch.cat([first, E], dim=1) + ours.places)[:, 0])
    got = ours(X)
    torch.testing.assert_close(got, want)
    delta = normal(rng, B, 4)
    torch.testing.assert_close(
        torch.autograd.grad(got, [X, ours.class_token], delta),
        torch.autograd.grad(want, [X, ours.class_token], delta),
    )


@given(seeds, sizes)
def test_maps_are_those_of_attentions_of_torch(rng, B):
    ours = randomised(ViT(6, 3, 4, 8, 2, 2, channels=2).double(), rng)
    X = normal(rng, B, 2, 6, 6)
    stream, maps = ours.tokens(X), ours.maps(X)
    assert len(maps) == 2
    for block, A in zip(ours.stack.blocks, maps, strict=True):
        theirs = nn.TransformerEncoderLayer(
            8, 2, 32, 0, "gelu", batch_first=True, norm_first=True
        ).double()
        copy_block(block, theirs)
        read = theirs.norm1(stream)
        _, want = theirs.self_attn(read, read, read, average_attn_weights=False)
        assert A.shape == (B, 2, 5, 5)
        torch.testing.assert_close(A, want)
        torch.testing.assert_close(A.sum(dim=-1), torch.ones(B, 2, 5).double())
        stream = theirs(stream)
    scores = ours.head(ours.stack.norm(stream)[:, 0])
    torch.testing.assert_close(scores, ours(X))


@given(seeds, st.permutations(range(4)))
def test_without_places_the_order_of_patches_does_not_matter(rng, p):
    net = randomised(ViT(4, 2, 3, 8, 2, 1).double(), rng)
    X = normal(rng, 2, 1, 4, 4)
    moved = unpatchify(patchify(X, 2)[:, p], 2, 1, 4)
    with torch.no_grad():
        if p != [0, 1, 2, 3]:
            assert not torch.allclose(net(moved), net(X))
        net.places.zero_()
    torch.testing.assert_close(net(moved), net(X))


@given(seeds, sizes, st.integers(1, 4))
def test_rollout_gives_shares(rng, layers, T):
    maps = [normal(rng, 2, 3, T, T).softmax(dim=-1) for _ in range(layers)]
    R = rollout(maps)
    assert bool((R >= 0).all())
    torch.testing.assert_close(R.sum(dim=-1), torch.ones(2, T).double())
    eye = torch.eye(T).double().expand(2, 3, T, T)
    torch.testing.assert_close(rollout([eye] * layers), eye[:, 0])


def test_by_hand():
    X = torch.arange(16.0).reshape(1, 1, 4, 4)
    want = [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    assert patchify(X, 2)[0].tolist() == want
    first = torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]]])
    second = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]])
    want = [[0.5, 0.5], [0.25, 0.75]]
    assert rollout([first, second])[0].tolist() == want


def test_count_of_the_base_model():
    """Dosovitskiy et al. (2021): 86 million parameters, 16 × 16 of 224 × 224 pixels."""
    with torch.device("meta"):
        net = ViT(224, 16, 1000, 768, 12, 12, channels=3)
    count = sum(p.numel() for p in net.parameters())
    assert count == 86_567_656


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: patchify(torch.ones(1, 1, 4, 5), 2), "last two multiples of 2"),
        (lambda: patchify(torch.ones(4, 4), 2), "got shape (4, 4)"),
        (lambda: patchify(torch.ones(1, 1, 4, 4), 0), "patch must be a whole"),
        (
            lambda: unpatchify(torch.ones(1, 4, 5), 2, 1, 4),
            "P must have the shape (…, …, 4)",
        ),
        (lambda: ViT(7, 2, 3, 8, 2, 1), "side must be a multiple of patch = 2"),
        (
            lambda: ViT(4, 2, 3, 8, 2, 1)(torch.ones(1, 1, 6, 6)),
            "X must have the shape (…, 1, 4, 4); got shape (1, 1, 6, 6).",
        ),
        (lambda: rollout([]), "maps must have at least one layer"),
    ],
)
def test_refusals(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
