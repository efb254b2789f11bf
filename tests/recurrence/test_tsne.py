"""Tests of dlcore.recurrence.tsne."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.manifold import TSNE
from sklearn.manifold._t_sne import _kl_divergence
from sklearn.manifold._utils import _binary_search_perplexity
from strategies import seeds

from dlcore.recurrence.tsne import (
    bandwidths,
    conditional,
    divergence,
    perplexity,
    similarities,
    squared_distances,
    tsne,
)

points = st.integers(5, 12)


def drawn(rng, s, m=2):
    P = rng.random((s, s))
    P = P + P.T
    np.fill_diagonal(P, 0)
    return P / P.sum(), rng.normal(size=(s, m))


@given(seeds, points, st.integers(1, 4))
def test_distances_are_those_of_scipy(rng, s, n):
    X = rng.normal(size=(s, n))
    theirs = cdist(X, X, "sqeuclidean")
    np.testing.assert_allclose(squared_distances(X), theirs, atol=1e-12)


@given(seeds, points, st.floats(2, 3.9))
def test_every_point_gets_the_perplexity(rng, s, target):
    d2 = squared_distances(rng.normal(size=(s, 3)) * 10 ** rng.uniform(-5, 5))
    p = conditional(d2, bandwidths(d2, target))
    np.testing.assert_allclose(perplexity(p), target, rtol=1e-9)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert not p.diagonal().any()


@given(seeds, points)
def test_conditionals_are_those_of_scikit_learn(rng, s):
    d2 = squared_distances(rng.normal(size=(s, 3)))
    theirs = _binary_search_perplexity(d2.astype(np.float32), 3.0, 0)
    ours = conditional(d2, bandwidths(d2, 3.0))
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_two_distances_by_hand():
    # Weights 1 and t; the entropy is that of a coin with chance 1 / (1 + t).
    d2 = np.array([[0.0, 1, 3], [1, 0, 2], [3, 2, 0]])
    p = conditional(d2, np.array([0.5, 0.5, 0.5]))
    assert p[0, 1] == pytest.approx(1 / (1 + np.exp(-1)))
    beta = bandwidths(d2, 1.5)
    assert perplexity(conditional(d2, beta)) == pytest.approx(1.5)
    assert perplexity(np.full((1, 4), 0.25)) == pytest.approx(4)
    assert perplexity(np.eye(2)) == pytest.approx(1)


@given(seeds, points, st.integers(1, 3))
def test_gradient_is_that_of_autograd_and_of_scikit_learn(rng, s, m):
    P, Z = drawn(rng, s, m)
    J, g = divergence(P, Z)
    z = torch.tensor(Z, requires_grad=True)
    w = 1 / (1 + ((z[:, None] - z) ** 2).sum(-1))
    others = ~torch.eye(s, dtype=torch.bool)
    p, q = torch.tensor(P)[others], w[others] / w[others].sum()
    cost = (p * torch.log(p / q)).sum()
    cost.backward()
    np.testing.assert_allclose(J, cost.item(), atol=1e-12)
    np.testing.assert_allclose(g, z.grad.numpy(), atol=1e-12)
    theirs, other = _kl_divergence(Z.ravel(), squareform(P), 1, s, m)
    np.testing.assert_allclose(J, theirs, atol=1e-12)
    np.testing.assert_allclose(g.ravel(), other, atol=1e-12)


@given(seeds, points)
def test_a_map_may_be_moved_and_turned(rng, s):
    P, Z = drawn(rng, s)
    turn, _ = np.linalg.qr(rng.normal(size=(2, 2)))
    J, g = divergence(P, Z)
    other, h = divergence(P, Z @ turn + rng.normal(size=2))
    np.testing.assert_allclose(other, J)
    np.testing.assert_allclose(h, g @ turn, atol=1e-12)
    np.testing.assert_allclose(g.sum(axis=0), 0, atol=1e-12)
    assert J >= 0


@settings(deadline=None, max_examples=2)
@given(seeds)
def test_map_is_as_good_as_that_of_scikit_learn(rng):
    X = rng.normal(size=(60, 5)) + 6 * rng.integers(0, 3, (60, 1))
    ours = min(tsne(X, 10, rng, steps=500).cost for _ in range(2))
    theirs = TSNE(perplexity=10, method="exact", init="random", random_state=0)
    assert ours < 1.25 * theirs.fit(X).kl_divergence_ + 0.02


def test_similarities_are_symmetric_with_sum_one():
    P = similarities(np.random.default_rng(0).normal(size=(20, 3)), 5)
    np.testing.assert_array_equal(P, P.T)
    assert P.sum() == pytest.approx(1)
    assert P.sum(axis=1).min() > 1 / 40 - 1e-12  # nobody is forgotten


def test_two_groups_stay_apart():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 4)), 20 + rng.normal(size=(20, 4))])
    Z, cost = tsne(X, 5, rng, steps=300)
    near = squareform(pdist(Z)) + 1e9 * np.eye(40)
    assert ((near.argmin(axis=1) < 20) == (np.arange(40) < 20)).all()
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
    P = similarities(X, 5)
    assert cost == pytest.approx(divergence(P, Z)[0])


def refusals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3))
    same = np.zeros((10, 3))
    return [
        (lambda: tsne(X, 9.5, rng), r"perplexity must lie in \(1, 9\); got 9.5"),
        (lambda: tsne(X, 1.0, rng), r"lie in \(1, 9\); got 1"),
        (lambda: tsne(same, 5.0, rng), "exceed 9, the equally near .*; got 5"),
        (lambda: tsne(X[0], 5.0, rng), "points as rows"),
        (lambda: tsne(X * np.nan, 5.0, rng), "must be finite"),
        (lambda: tsne(X, 5.0, rng, steps=0), "whole number from 1 on"),
        (lambda: tsne(X, 5.0, rng, lr=-1.0), "lr must be positive"),
        (lambda: divergence(np.ones((3, 3)), X), r"P must have the shape \(10, 10\)"),
    ]


@pytest.mark.parametrize("place", range(len(refusals())))
@pytest.mark.usefixtures("unchecked")
def test_refusals(place):
    call, message = refusals()[place]
    with pytest.raises(ValueError, match=message):
        call()
