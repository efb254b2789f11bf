import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from twins import leaf

from dlcore.transformers.attention import (
    MultiHeadAttention,
    attend,
    causal_mask,
    masked_softmax,
)

sizes = st.integers(1, 5)
heads = st.sampled_from([1, 2, 4])


def some_mask(rng, *shape):
    return torch.tensor(rng.random(shape) < 0.5)


def layer(rng, h, bias=True):
    torch.manual_seed(int(rng.integers(1000)))
    return MultiHeadAttention(8, h, bias).double()


@given(seeds, sizes, sizes, sizes, sizes, st.booleans())
def test_values_and_gradients_are_those_of_torch(rng, B, Tq, Tk, d, masked):
    Q, K, V = (leaf(rng, B, Tq, d), leaf(rng, B, Tk, d), leaf(rng, B, Tk, 3))
    mask = some_mask(rng, B, Tq, Tk) if masked else None
    Y, A = attend(Q, K, V, mask)
    want = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    torch.testing.assert_close(Y, want)
    torch.testing.assert_close(A @ V, want)
    delta = torch.tensor(rng.normal(size=Y.shape))
    ours = torch.autograd.grad(Y, [Q, K, V], delta)
    theirs = torch.autograd.grad(want, [Q, K, V], delta)
    torch.testing.assert_close(ours, theirs)


@given(seeds, sizes, sizes)
def test_weights_are_shares_of_what_may_be_seen(rng, Tq, Tk):
    mask = some_mask(rng, Tq, Tk)
    A = masked_softmax(leaf(rng, 2, Tq, Tk), mask)
    assert bool((A >= 0).all())
    assert bool((A[:, ~mask] == 0).all())
    sums = mask.any(dim=1).double().expand(2, -1)
    torch.testing.assert_close(A.sum(dim=-1), sums)


def test_a_query_that_may_look_nowhere_gets_zero_and_sends_no_gradient():
    Q, K, V = (torch.randn(2, 3, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[True, False], [False, False]])
    Y, A = attend(Q, K, V, mask)
    assert A.tolist() == [[1, 0], [0, 0]]
    for g in torch.autograd.grad(Y.sum(), [Q, K, V]):
        assert bool(g.isfinite().all())
        assert g[1].abs().sum() == 0


def test_by_hand():
    Q = torch.tensor([[2.0, 0, 0, 0]])
    K = torch.tensor([[torch.log(torch.tensor(3.0)), 0, 0, 0], [0, 5.0, 0, 0]])
    Y, A = attend(Q, K, torch.tensor([[0.0], [4.0]]))
    torch.testing.assert_close(A, torch.tensor([[0.75, 0.25]]))
    torch.testing.assert_close(Y, torch.tensor([[1.0]]))


@given(seeds, sizes, sizes, sizes, heads, st.booleans())
def test_heads_are_those_of_torch(rng, B, Tq, Tk, h, bias):
    ours = layer(rng, h, bias)
    theirs = nn.MultiheadAttention(8, h, bias=bias, batch_first=True).double()
    parts = [ours.W_Q, ours.W_K, ours.W_V]
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([p.weight for p in parts]))
        theirs.out_proj.weight.copy_(ours.W_O.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([p.bias for p in parts]))
            theirs.out_proj.bias.copy_(ours.W_O.bias)
    X, Z = leaf(rng, B, Tq, 8), leaf(rng, B, Tk, 8)
    mask = some_mask(rng, Tq, Tk)
    mask[:, 0] = True
    got = ours(X, Z, mask)
    want = theirs(X, Z, Z, attn_mask=~mask, average_attn_weights=False)
    torch.testing.assert_close(got, want)
    delta = torch.tensor(rng.normal(size=X.shape))
    mine = torch.autograd.grad(got[0], [X, Z, ours.W_O.weight], delta)
    other = torch.autograd.grad(want[0], [X, Z, theirs.out_proj.weight], delta)
    torch.testing.assert_close(mine, other)


@given(seeds, sizes, heads, st.data())
def test_self_attention_commutes_with_permutations(rng, T, h, data):
    mha, X = layer(rng, h), leaf(rng, 2, T, 8)
    p = data.draw(st.permutations(range(T)))
    torch.testing.assert_close(mha(X[:, p], X[:, p])[0], mha(X, X)[0][:, p])


@given(seeds, st.integers(2, 6), heads)
def test_causal_mask_hides_the_future(rng, T, h):
    mha, X = layer(rng, h), leaf(rng, 1, T, 8)
    J = torch.autograd.functional.jacobian(lambda x: mha(x, x, causal_mask(T))[0][0], X)
    reach = J[:, :, 0].abs().sum(dim=(1, 3)) > 0
    assert torch.equal(reach, torch.ones(T, T, dtype=torch.bool).tril())


@given(seeds, sizes, sizes, heads)
def test_a_mask_for_each_example(rng, T, S, h):
    mha, X, Z = layer(rng, h), leaf(rng, 3, T, 8), leaf(rng, 3, S, 8)
    mask = some_mask(rng, 3, T, S)
    Y, A = mha(X, Z, mask)
    for i in range(3):
        y, a = mha(X[i : i + 1], Z[i : i + 1], mask[i])
        torch.testing.assert_close(Y[i : i + 1], y)
        torch.testing.assert_close(A[i : i + 1], a)
    until = torch.tensor(rng.random((3, 1, S)) < 0.5)
    torch.testing.assert_close(mha(X, Z, until), mha(X, Z, until.expand(3, T, S)))


def test_mask_with_a_past():
    want = [[True, True, True, False], [True, True, True, True]]
    assert causal_mask(2, past=2).tolist() == want
    assert causal_mask(1).tolist() == [[True]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: MultiHeadAttention(8, 3),
            "d_model must be a multiple of num_heads = 3; got 8.",
        ),
        (lambda: MultiHeadAttention(8, 0), "num_heads must be a whole number"),
        (
            lambda: MultiHeadAttention(8, 2)(torch.ones(1, 3, 7), torch.ones(1, 3, 8)),
            "X must have the axes (B, T, 8)",
        ),
        (
            lambda: MultiHeadAttention(8, 2)(torch.ones(1, 3, 8), torch.ones(1, 0, 8)),
            "Z must have the axes (B, T, 8) with at least one time",
        ),
        (
            lambda: MultiHeadAttention(8, 2)(
                torch.ones(1, 3, 8), torch.ones(1, 3, 8), causal_mask(2)
            ),
            "mask must fit the scores, of shape (1, 3, 3); got shape (2, 2).",
        ),
        (
            lambda: attend(*[torch.ones(2, 2)] * 3, torch.ones(2, 2)),
            "mask must have truth values; got torch.float32. True means: may look.",
        ),
        (
            lambda: attend(*[torch.ones(2, 2)] * 3, torch.ones(2, 1) > 0),
            "mask must fit the scores, of shape (2, 2); got shape (2, 1).",
        ),
        (
            lambda: attend(torch.ones(2, 3), torch.ones(2, 2), torch.ones(2, 2)),
            "keys as wide as the queries",
        ),
        (
            lambda: attend(torch.ones(2, 3), torch.ones(2, 3), torch.ones(1, 3)),
            "a value for each key",
        ),
        (lambda: causal_mask(0), "T must be a whole number from 1 on"),
        (lambda: causal_mask(1, -1), "past must be a whole number from 0 on"),
    ],
)
def test_refusals(call, message, unchecked):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
