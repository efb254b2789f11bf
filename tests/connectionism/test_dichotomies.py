from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_array_equal
from scipy.stats import binom
from strategies import SEED, lattice

from dlcore.connectionism.dichotomies import (
    coin_fraction,
    cover_count,
    cover_fraction,
    dichotomies,
    free_points,
    in_general_position,
)
from dlcore.connectionism.perceptron import separate

FEW = st.integers(1, 6), st.integers(1, 4), SEED


def cloud(s, n, seed):
    return default_rng(seed).normal(size=(s, n))


def exact_rank(X):
    """Eliminate with fractions."""
    rows, rank = [[Fraction(int(a)) for a in x] for x in X], 0
    for column in range(X.shape[1]):
        pivot = next((r for r in rows[rank:] if r[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows.insert(rank, pivot)
        for r in rows[rank + 1 :]:
            factor = r[column] / pivot[column]
            r[:] = [a - factor * p for a, p in zip(r, pivot, strict=True)]
        rank += 1
    return rank


def as_set(Y):
    return {tuple(y) for y in Y.tolist()}


@given(st.builds(lattice, *FEW) | st.builds(cloud, *FEW))
def test_dichotomies_are_the_labellings_that_a_linear_program_separates(X):
    found = dichotomies(X)
    labellings = product([-1.0, 1.0], repeat=len(X))
    want = {y for y in labellings if separate(X, np.array(y), bias=False) is not None}
    assert len(found) == len(want)
    assert as_set(found) == want


@given(st.integers(1, 9), st.integers(1, 5), SEED)
def test_points_in_general_position_have_covers_count(s, n, seed):
    X = cloud(s, n, seed)
    assert in_general_position(X)
    assert len(dichotomies(X)) == cover_count(s, n)


@given(st.builds(lattice, *FEW))
def test_no_points_have_more_dichotomies_than_their_rank_allows(X):
    rank = exact_rank(X)
    count = len(dichotomies(X))
    assert count <= cover_count(len(X), rank)
    assert (count == 2 ** len(X)) == (rank == len(X))


@given(st.builds(lattice, *FEW), SEED)
def test_dichotomies_depend_on_directions_only_and_not_on_the_basis(X, seed):
    rng = default_rng(seed)
    scale = 10.0 ** rng.integers(-200, 200, (len(X), 1))
    basis, _ = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))
    assert as_set(dichotomies(scale * X)) == as_set(dichotomies(X))
    assert as_set(dichotomies(X @ basis)) == as_set(dichotomies(X))


@given(st.builds(lattice, *FEW))
def test_general_position_is_what_exact_elimination_says(X):
    k = min(X.shape)
    subsets = combinations(range(len(X)), k)
    want = all(exact_rank(X[list(chosen)]) == k for chosen in subsets)
    assert in_general_position(X) == want


@given(st.builds(lattice, *FEW))
def test_free_points_are_those_whose_loss_lowers_the_rank(X):
    rank = exact_rank(X)
    without = [exact_rank(np.delete(X, i, axis=0)) for i in range(len(X))]
    assert free_points(X).tolist() == [r < rank for r in without]


@given(st.builds(lattice, st.integers(2, 6), *FEW[1:]))
def test_a_free_point_doubles_the_count(X):
    free = free_points(X)
    if free.any() and not free.all():
        rest = len(dichotomies(X[~free]))
        assert len(dichotomies(X)) == 2 ** free.sum() * rest


@given(st.integers(1, 300), st.integers(1, 300))
def test_the_fraction_is_a_tail_of_coin_tosses(s, n):
    assert cover_fraction(s, n) == pytest.approx(binom.cdf(n - 1, s - 1, 0.5), rel=1e-9)
    assert cover_count(s + 1, n) == cover_count(s, n) + cover_count(s, n - 1)


@pytest.mark.parametrize("n", [1, 2, 10, 500])
def test_the_fraction_is_one_up_to_n_and_half_at_two_n(n):
    assert cover_fraction(n, n) == 1
    assert cover_count(n + 1, n) == 2 ** (n + 1) - 2
    assert cover_fraction(2 * n, n) == 0.5


@pytest.mark.usefixtures("unchecked")
def test_numpy_integers_do_not_overflow():
    s, n = np.array([400, 200])
    assert cover_fraction(s, n) == 0.5


def test_counts_by_hand():
    table = {(4, 2): 8, (5, 2): 10, (6, 3): 32, (7, 3): 44, (8, 4): 128}
    assert {key: cover_count(*key) for key in table} == table
    for s in range(1, 20):
        assert cover_count(s, 0) == 0
        assert cover_count(s, 1) == 2
        assert cover_count(s, 2) == 2 * s
        assert cover_count(s, 3) == s**2 - s + 2  # regions of s great circles
        assert cover_count(s, s) == cover_count(s, s + 5) == 2**s


def test_dichotomies_by_hand():
    X = np.array([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0]])
    assert dichotomies(X).tolist() == [
        [1, 1, 1],
        [1, -1, 1],
        [1, -1, -1],
        [-1, -1, -1],
        [-1, 1, -1],
        [-1, 1, 1],
    ]
    assert dichotomies(X[[0, 0]]).tolist() == [[1, 1], [-1, -1]]
    assert dichotomies(np.array([[1.0], [0.0]])).shape == (0, 2)
    assert not in_general_position(X[[0, 0]])
    assert not in_general_position(0 * X[:1])
    assert free_points(X[[0, 0, 1]]).tolist() == [False, False, True]


def test_what_can_be_listed_depends_on_the_rank():
    X = cloud(40, 2, 0) @ cloud(2, 30, 1)
    assert len(dichotomies(X)) == 80


def test_all_labellings_of_twelve_independent_points_are_found():
    assert len(as_set(dichotomies(cloud(12, 12, 0)))) == 2**12


@given(st.builds(cloud, st.integers(1, 8), st.integers(1, 4), SEED), SEED)
def test_coins_land_on_dichotomies(X, seed):
    known = as_set(dichotomies(X))
    tosses = default_rng(seed).choice([-1.0, 1.0], size=(50, len(X)))
    want = sum(tuple(y) in known for y in tosses.tolist()) / 50
    assert coin_fraction(X, 50, default_rng(seed)) == want


@pytest.mark.parametrize("s", [150, 200, 250])
def test_coins_agree_with_cover_in_a_hundred_dimensions(s):
    got = coin_fraction(cloud(s, 100, s), 100, default_rng(s))
    p = cover_fraction(s, 100)
    assert abs(got - p) <= 4 * np.sqrt(p * (1 - p) / 100) + 1e-3


FAN = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 0, 1.0], [0, 0, -1.0]])


@pytest.mark.parametrize(
    ("g", "count", "general"),
    [(1e-4, 14, True), (2e-9, 14, True), (9e-11, 4, False), (0, 4, False)],
)
def test_margins_are_found_down_to_a_billionth(g, count, general):
    X = FAN + np.array([0, g, 0])
    assert len(dichotomies(X)) == count
    assert in_general_position(X) == general


@pytest.mark.parametrize("g", [2e-10, 9e-10])
def test_refuses_margins_that_are_neither_zero_nor_large_enough(g):
    with pytest.raises(ValueError, match=rf"above 1e-09; got {g:.1e}. Move"):
        dichotomies(FAN + np.array([0, g, 0]))


@given(st.integers(2, 6), st.integers(2, 4), st.floats(-14, -2), SEED)
def test_no_count_contradicts_general_position(s, n, exponent, seed):
    rng, X = default_rng(seed), cloud(s, n, seed)
    k = rng.integers(2, min(s, n) + 1)
    X[0] = rng.normal(size=k - 1) @ X[1:k]  # dependent, but for
    X[0] += 10.0**exponent * rng.normal(size=n)
    try:
        count = len(dichotomies(X))
    except ValueError as refusal:
        assert "Move the points" in str(refusal)  # noqa: PT017
    else:
        assert (count == cover_count(s, n)) == in_general_position(X)


def test_nearly_dependent_points_by_hand():
    X = np.array([[1.0, 0.0], [1.0, 1e-7]])
    assert in_general_position(X)
    assert len(dichotomies(X)) == 4
    assert free_points(X).all()


def test_points_that_touch_a_plane_only_to_rounding_are_dependent():
    rng = default_rng(0)
    flat = rng.normal(size=(3, 2)) @ rng.normal(size=(2, 3))
    assert np.linalg.matrix_rank(flat, tol=0) == 3  # rounding errors
    assert not in_general_position(flat)
    assert not free_points(flat).any()
    assert len(dichotomies(flat)) == cover_count(3, 2)
    assert_array_equal(free_points(cloud(3, 3, 0)), [True] * 3)


ONE = np.ones((2, 2))
REFUSALS = [
    (
        lambda: cover_count(0, 2),
        r"cover_count: s must be a whole number from 1 on; got 0",
    ),
    (lambda: cover_count(4.0, 2), r"s must be a whole .*; got 4.0"),
    (lambda: cover_count(2, -1), r"n must be a whole .* from 0 on; got -1"),
    (
        lambda: dichotomies(cloud(20, 8, 0)),
        rf"X must have at most 5,000 .* up to {cover_count(20, 8):,} for 20 .*"
        "of rank 8. .* coin_fraction",
    ),
    (
        lambda: in_general_position(np.ones((40, 5))),
        rf"subsets of 5 points must .* 100,000; got {comb(40, 5):,}",
    ),
    (lambda: dichotomies(ONE[:0]), r"have points as rows; got shape \(0, 2\)"),
    (lambda: dichotomies(ONE[0]), r"have points as rows; got shape \(2,\)"),
    (lambda: free_points(ONE[0]), r"free_points: X must have points as rows"),
    (lambda: free_points(ONE * np.nan), r"free_points: X must be finite"),
    (
        lambda: coin_fraction(ONE * np.inf, 3, default_rng(0)),
        r"X must be finite; got NaN or ∞",
    ),
    (
        lambda: coin_fraction(ONE, 0, default_rng(0)),
        r"trials must be a whole number from 1 on; got 0",
    ),
    (
        lambda: coin_fraction(ONE, 3.5, default_rng(0)),
        r"trials must be a whole number from 1 on; got 3.5",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
