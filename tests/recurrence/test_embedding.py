"""Tests of dlcore.recurrence.cooccurrence and dlcore.recurrence.embedding."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors
from strategies import seeds
from torch import nn
from twins import normal

from dlcore.recurrence.cooccurrence import (
    cooccurrence,
    factor,
    pairs,
    pmi,
    ppmi,
    windows,
)
from dlcore.recurrence.embedding import (
    CBOW,
    Embedding,
    SkipGram,
    bag_of_words,
    cosine,
    neighbours,
)

sizes = st.integers(1, 6)


def tokens(rng, C, *shape):
    return torch.tensor(rng.integers(C, size=shape), dtype=torch.long)


def filled(model, rng):
    with torch.no_grad():
        for p in model.double().parameters():
            p.copy_(normal(rng, *p.shape))
    return model


@given(seeds, sizes, sizes, st.lists(st.integers(0, 4), max_size=3))
def test_embedding_is_that_of_torch(rng, C, D, shape):
    ours = filled(Embedding(C, D), rng)
    theirs = nn.Embedding(C, D, _weight=ours.E.detach().clone())
    words = tokens(rng, C, *shape)
    h, other = ours(words), theirs(words)
    assert torch.equal(h, other)
    g = normal(rng, *h.shape)
    h.backward(g)
    other.backward(g)
    torch.testing.assert_close(ours.E.grad, theirs.weight.grad)


@given(seeds, sizes, sizes, sizes)
def test_only_rows_in_use_get_a_gradient(rng, C, D, B):
    model, words = filled(Embedding(C, D), rng), tokens(rng, C, B)
    (model(words) ** 2).sum().backward()
    used = torch.zeros(C, dtype=torch.bool)
    used[words] = True
    assert torch.equal(model.E.grad.abs().sum(dim=1) > 0, used)


@given(seeds, sizes, sizes, sizes, sizes)
def test_a_context_has_no_order(rng, C, D, B, K):
    model, context = filled(CBOW(C, D), rng), tokens(rng, C, B, K)
    other = context[:, torch.tensor(rng.permutation(K))]
    torch.testing.assert_close(model(context), model(other))


@given(seeds, sizes, sizes, sizes, sizes)
def test_cbow_is_a_linear_map_of_a_bag_of_words(rng, C, D, B, K):
    model, context = filled(CBOW(C, D), rng), tokens(rng, C, B, K)
    bag = bag_of_words(context, C).double()
    table = model.embedding.E
    torch.testing.assert_close(model(context), bag @ table @ model.W.T / K)


@given(seeds, sizes, sizes, sizes, sizes)
def test_a_few_scores_are_those_among_all(rng, C, D, B, k):
    some = tokens(rng, C, B, k)
    for model, words in [
        (filled(SkipGram(C, D), rng), tokens(rng, C, B)),
        (filled(CBOW(C, D), rng), tokens(rng, C, B, 3)),
    ]:
        every = model(words)
        torch.testing.assert_close(model.score(words, some), every.gather(1, some))


@given(seeds, sizes, st.integers(2, 12), st.integers(1, 4))
def test_counts_are_those_of_a_loop(rng, C, T, r):
    text = tokens(rng, C, T)
    loop = torch.zeros(C, C)
    for i in range(T):
        for j in range(T):
            if 0 < abs(i - j) <= r:
                loop[text[i], text[j]] += 1
    counts = cooccurrence(text, C, r)
    assert torch.equal(counts, loop)
    assert torch.equal(counts, counts.T)
    assert counts.sum() == len(pairs(text, r)[0])
    if 2 * r + 1 <= T:
        words, context = windows(text, r)
        for n in range(T - 2 * r):
            row = text[n : n + 2 * r + 1].tolist()
            assert words[n] == row.pop(r)
            assert context[n].tolist() == row


def test_counts_by_hand():
    # a b a c, company one place away: ab ba ba ab ac ca
    text = torch.tensor([0, 1, 0, 2])
    counts = cooccurrence(text, 3, 1)
    assert counts.tolist() == [[0, 2, 1], [2, 0, 0], [1, 0, 0]]
    assert pmi(counts)[0, 1].item() == pytest.approx(math.log(6 * 2 / (3 * 2)))
    assert pmi(counts)[0, 0] == -torch.inf
    assert ppmi(counts)[0, 0] == 0
    assert ppmi(counts, shift=0.5)[0, 1].item() == pytest.approx(math.log(2) - 0.5)


@given(seeds, sizes, sizes)
def test_independence_has_no_information(rng, A, C):
    rows, columns = rng.integers(1, 9, A), rng.integers(1, 9, C)
    counts = torch.tensor(rows[:, None] * columns).double()
    torch.testing.assert_close(pmi(counts), torch.zeros(A, C).double())


@settings(deadline=None)
@given(seeds, st.integers(5, 40), st.integers(5, 40), st.integers(1, 5))
def test_factors_are_the_first_of_the_full_decomposition(rng, A, C, D):
    M = normal(rng, A, C)  # singular values that hardly fall: the hard case
    U, d, V = factor(M, D, torch.Generator().manual_seed(0))
    full = torch.linalg.svd(M, full_matrices=False)
    torch.testing.assert_close(d, full.S[:D])
    best = full.U[:, :D] * full.S[:D] @ full.Vh[:D]
    torch.testing.assert_close(U * d @ V.T, best, rtol=1e-5, atol=1e-6)
    for Q in (U, V):
        torch.testing.assert_close(Q.T @ Q, torch.eye(D).double())


@given(seeds, st.integers(3, 8), st.integers(1, 4))
def test_neighbours_are_those_of_scikit_learn(rng, C, D):
    X = normal(rng, C, D + 1)
    torch.testing.assert_close(cosine(X, X), torch.tensor(cosine_similarity(X.numpy())))
    near = NearestNeighbors(n_neighbors=3, metric="cosine").fit(X.numpy())
    theirs = near.kneighbors(X.numpy(), return_distance=False)
    ours = neighbours(X, torch.arange(C), 2)
    assert ours.tolist() == theirs[:, 1:].tolist()
    other = neighbours(X, torch.arange(1, C), 1, without=(0,))
    assert 0 not in other.tolist()


def test_bags_are_those_of_scikit_learn():
    texts = ["this is it", "is it this is"]
    theirs = CountVectorizer().fit(texts)
    rows = [[theirs.vocabulary_[w] for w in text.split()] for text in texts]
    for text, row in zip(texts, rows, strict=True):
        ours = bag_of_words(torch.tensor([row]), 3)
        assert ours.tolist() == theirs.transform([text]).toarray().tolist()


def refusals():
    text = torch.tensor([0, 1, 2])
    table = torch.ones(3, 2)
    return [
        (lambda: Embedding(0, 2), "num_embeddings must be a whole number"),
        (lambda: Embedding(3, 2)(torch.tensor([3])), "0 and 2, .* got 3"),
        (lambda: Embedding(3, 2)(torch.tensor([-1])), "0 and 2, .* got -1"),
        (lambda: Embedding(3, 2)(torch.ones(2)), "must be whole numbers"),
        (lambda: CBOW(3, 0), "embedding_dim must be a whole number"),
        (lambda: CBOW(3, 2)(text), "one token or more"),
        (lambda: CBOW(3, 2)(text[:, None][:, :0]), "one token or more"),
        (
            lambda: SkipGram(3, 2)(text[None]),
            r"must have the shape \(…,\); got shape \(1, 3\)",
        ),
        (
            lambda: SkipGram(3, 2).score(text, text[None]),
            r"words must have the shape \(3, …\)",
        ),
        (lambda: windows(text, 2), r"row of 5 or more; got shape \(3,\)"),
        (lambda: windows(text, 0), "whole number from 1 on"),
        (lambda: pairs(text[:1], 1), "row of 2 or more"),
        (lambda: cooccurrence(text, 2, 1), "0 and 1, .* got 2"),
        (
            lambda: pmi(torch.tensor([[1.0, 0], [1, 0]])),
            "positive entry in every row and column",
        ),
        (lambda: pmi(torch.tensor([[1.0, -1]])), "counts must not be negative; got -1"),
        (lambda: factor(table, 3, torch.Generator()), "at most 2"),
        (lambda: cosine(table, torch.zeros(1, 2)), "must not be zero"),
        (lambda: neighbours(table, text, 3), "at most 2, the others; got 3"),
        (lambda: bag_of_words(text[None], 2), "0 and 1, .* got 2"),
    ]


@pytest.mark.parametrize("place", range(len(refusals())))
@pytest.mark.usefixtures("unchecked")
def test_refusals(place):
    call, message = refusals()[place]
    with pytest.raises(ValueError, match=message):
        call()
