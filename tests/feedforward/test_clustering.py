from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from strategies import SEED, lattice

from dlcore.connectionism.neurons import all_inputs
from dlcore.feedforward.clustering import binary_code, kmeans, nearest


def brute_force(X, table):
    """Try all codes: the least cost of the least-squares fit to rows of the table."""
    codes = list(product(range(len(table)), repeat=len(X)))
    design = table[np.array(codes)]
    rest = X - design @ (np.linalg.pinv(design) @ X)
    return (rest**2).sum(axis=(1, 2)).min() / (2 * len(X))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("unchecked")  # many starts
def test_kmeans_finds_the_best_of_all_groupings(seed):
    X = lattice(6, 1 + seed % 3, seed)
    for k in (1, 2, 3):
        best = kmeans(X, k, default_rng(0))
        assert_allclose(best.cost, brute_force(X, np.eye(k)), atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("unchecked")  # many starts
def test_binary_code_finds_the_best_of_all_codes(seed):
    X = lattice(5, 1 + seed % 3, seed)
    for bits in (1, 2):
        table = np.c_[np.ones(2**bits), all_inputs(bits)]
        best = binary_code(X, bits, default_rng(0), starts=100)
        assert_allclose(best.cost, brute_force(X, table), atol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_kmeans_is_no_worse_than_scikit_learn(k):
    X = default_rng(k).normal(size=(60, 2)) + default_rng(0).integers(-3, 4, (60, 2))
    theirs = KMeans(k, n_init=20, random_state=0).fit(X).inertia_
    ours = kmeans(X, k, default_rng(0))
    assert ours.cost <= theirs / 120 + 1e-9
    for c in range(k):
        assert_allclose(ours.words[c], X[ours.labels == c].mean(axis=0))


@given(st.builds(lattice, st.integers(5, 12), st.just(2), SEED))
def test_words_of_bits_are_corners_of_a_parallelotope(X):
    b, second, first, both = binary_code(X, 2, default_rng(0), 3).words
    assert_allclose(b + both, first + second, atol=1e-9)
    three = binary_code(X, 3, default_rng(0), 3).words
    W = (three[[4, 2, 1]] - three[0]).T
    assert_allclose(three, three[0] + all_inputs(3) @ W.T, atol=1e-9)


@given(st.builds(lattice, st.integers(2, 8), st.integers(1, 3), SEED))
def test_one_bit_is_two_means(X):
    best = brute_force(X, np.eye(2))
    assert_allclose(brute_force(X, np.array([[1.0, 0], [1, 1]])), best, atol=1e-9)
    for found in (binary_code(X, 1, default_rng(0)), kmeans(X, 2, default_rng(0))):
        assert found.cost >= best - 1e-9  # both may rest at a local optimum
        for c in np.unique(found.labels):
            mean = X[found.labels == c].mean(axis=0)
            assert_allclose(found.words[c], mean, atol=1e-6)


def test_nearest_by_hand():
    X = np.array([[0.0, 0], [2, 0], [1, 0]])
    found = nearest(X, np.array([[0.0, 0], [2, 1]]))
    assert_array_equal(found.labels, [0, 1, 0])
    assert found.cost == pytest.approx((0 + 1 + 1) / 6)
    assert nearest(X, np.array([[0.0, 0], [2, 0]])).labels[2] == 0  # a tie


@pytest.mark.usefixtures("unchecked")  # whole numbers
def test_whole_numbers_are_points_like_others():
    X = np.array([[0, 0], [1, 1], [5, 5], [8, 9]])  # means are halves
    for search, m in ((kmeans, 2), (kmeans, 3), (binary_code, 2)):
        whole, floats = (search(Y, m, default_rng(0)) for Y in (X, X + 0.0))
        assert_array_equal(whole.words, floats.words)
        assert whole.cost == floats.cost
    assert kmeans(X, 3, default_rng(0)).cost == pytest.approx(1 / 8)


def test_repeated_points_leave_words_without_points():
    found = kmeans(np.ones((4, 2)), 3, default_rng(0))
    assert found.cost == 0
    assert binary_code(np.ones((4, 2)), 2, default_rng(0)).cost < 1e-20


def test_two_bits_on_a_line_by_hand():
    X = np.array([[0.0], [1], [2], [5]])
    assert binary_code(X, 2, default_rng(0)).cost == pytest.approx(1 / 16)
    assert kmeans(X, 4, default_rng(0)).cost == 0


ONE, RNG = np.ones((2, 2)), default_rng(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kmeans(ONE[0], 1, RNG), "kmeans: X must have points as rows"),
        (lambda: kmeans(ONE * np.inf, 1, RNG), "kmeans: X must be finite"),
        (lambda: kmeans(ONE, 0, RNG), "k must be a whole number from 1 on"),
        (lambda: kmeans(ONE, 3, RNG), "k must be at most 2, .*; got 3"),
        (lambda: kmeans(ONE, 1, RNG, 0), "starts must be a whole .*; got 0"),
        (lambda: binary_code(ONE[:0], 1, RNG), "binary_code: X must have"),
        (lambda: binary_code(ONE, 0, RNG), "bits must be a whole .*; got 0"),
        (lambda: binary_code(ONE, 2, RNG), "fewer than the points, .*; got 2"),
        (lambda: nearest(ONE, np.ones((1, 3))), "words must have 2 columns"),
        (lambda: binary_code(np.eye(50), 40, RNG), ", at most 16; got 40"),
        (lambda: kmeans(ONE * 1e200, 1, RNG), "squares .* finite; got 1e.200"),
        (lambda: nearest(ONE, np.nan * ONE), "words must be finite"),
        (lambda: nearest(np.nan * ONE, ONE), "X must be finite"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
