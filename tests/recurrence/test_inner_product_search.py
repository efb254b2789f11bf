"""Tests of dlcore.recurrence.inner_product_search."""

from math import pi

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors
from strategies import seeds

from dlcore.recurrence.inner_product_search import (
    HyperplaneTables,
    collision_probability,
    largest,
    lift,
    lift_query,
    nearest,
)


def vectors(rng, C=30, D=4):
    W = torch.tensor(rng.normal(size=(C, D)) * rng.exponential(size=(C, 1)))
    return W, torch.tensor(rng.normal(size=D))


@given(seeds, st.integers(1, 10))
def test_nearest_is_that_of_scikit_learn(rng, k):
    W, z = vectors(rng)
    theirs = NearestNeighbors(n_neighbors=k).fit(W.numpy())
    _, rows = theirs.kneighbors(z.numpy()[None])
    assert nearest(W, z, k).tolist() == rows[0].tolist()


@given(seeds, st.integers(1, 10))
def test_largest_sorts_inner_products(rng, k):
    W, z = vectors(rng)
    rows = np.argsort(-(W.numpy() @ z.numpy()), kind="stable")[:k]
    assert largest(W, z, k).tolist() == rows.tolist()


@given(seeds, st.integers(1, 30))
def test_nearest_after_the_lift_is_largest(rng, k):
    W, z = vectors(rng)
    z = z * rng.exponential() * 3
    assert torch.equal(nearest(lift(W), lift_query(z), k), largest(W, z, k))


@given(seeds)
def test_lifted_rows_are_equally_long(rng):
    W, z = vectors(rng)
    lengths = lift(W).norm(dim=1)
    assert torch.allclose(lengths, W.norm(dim=1).max().expand(30))
    assert torch.allclose(lift(W) @ lift_query(z), W @ z)


def test_by_hand():
    W = torch.tensor([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]])
    z = torch.tensor([1.0, 0.0])
    assert largest(W, z, 3).tolist() == [1, 0, 2]
    assert nearest(W, z).tolist() == [0]
    assert torch.allclose(lift(W)[:, 2] ** 2, torch.tensor([24.0, 0, 21]))
    twice = torch.ones(2, 3)
    assert largest(twice, torch.ones(3), 2).tolist() == [0, 1]  # ties


def test_buckets_hold_the_rows_on_the_same_sides():
    rng = np.random.default_rng(0)
    W, z = vectors(rng, 200)
    tables = HyperplaneTables(W, 3, 4, torch.Generator().manual_seed(0))
    same = torch.zeros(200, dtype=torch.bool)
    for normals in tables.normals:
        sides = lift(W) @ normals.T > 0
        same |= (sides == (lift_query(z) @ normals.T > 0)).all(1)
    assert tables.candidates(z).tolist() == same.nonzero()[:, 0].tolist()
    fewer = tables.candidates(z, 1)
    assert set(fewer.tolist()) <= set(tables.candidates(z).tolist())
    found = tables.search(z, 5)
    products = (W @ z)[tables.candidates(z)].sort(descending=True).values
    assert torch.equal((W @ z)[found], products[:5])


def test_share_of_collisions_follows_the_formula():
    W = torch.tensor([[1.0, 0.0]]).double()
    angle = torch.tensor(1.0).double()
    z = torch.tensor([torch.cos(angle), torch.sin(angle)])
    source = torch.Generator().manual_seed(0)
    hits = sum(len(HyperplaneTables(W, 2, 3, source).candidates(z)) for _ in range(600))
    expected = collision_probability(angle, 2, 3).item()
    assert abs(hits / 600 - expected) < 0.06
    ends = collision_probability(torch.tensor([0.0, pi]), 4, 7)
    assert torch.allclose(ends, torch.tensor([1.0, 0.0]))


def test_no_candidates_is_an_empty_answer():
    W = torch.tensor([[1.0, 0.0]]).double()
    tables = HyperplaneTables(W, 20, 1, torch.Generator().manual_seed(0))
    assert tables.search(-W[0]).tolist() == []


@pytest.mark.usefixtures("unchecked")
def test_refusals():
    W, z = torch.ones(3, 2), torch.ones(2)
    with pytest.raises(
        ValueError, match=r"largest: z must have the shape \(2,\); got shape \(3,"
    ):
        largest(W, torch.ones(3))
    with pytest.raises(ValueError, match="at most the 3 rows; got 4"):
        largest(W, z, 4)
    with pytest.raises(ValueError, match="whole number from 1"):
        nearest(W, z, 0)
    with pytest.raises(ValueError, match="vectors as rows"):
        lift(torch.ones(0, 2))
    with pytest.raises(ValueError, match="at most 62"):
        HyperplaneTables(W, 63, 1)
    with pytest.raises(ValueError, match="tables must"):
        HyperplaneTables(W, 2, 0)
    with pytest.raises(ValueError, match="tables must"):
        HyperplaneTables(W, 2, 2).candidates(z, 0)
    with pytest.raises(ValueError, match="bits must"):
        collision_probability(torch.ones(1), 0, 1)
