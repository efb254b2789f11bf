from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_array_equal
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import SVC

from dlcore.connectionism.output_codes import (
    NO_CLASS,
    binary_code,
    decode,
    encode,
    one_hot,
    read,
    separable_bits,
)
from dlcore.data import xor

SEED, UNITS = st.integers(0, 2**16), st.integers(1, 6)
CORNERS = xor()[0]


def scores(m, seed):
    return default_rng(seed).normal(size=(200, m))


def some_code(m, seed):
    rng, words = default_rng(seed), binary_code(m)
    return rng.permutation(words)[: rng.integers(1, len(words) + 1)]


@given(st.integers(3, 9), SEED)
def test_one_hot_labels_equal_sklearn(m, seed):
    classes = default_rng(seed).integers(m, size=50)
    theirs = LabelBinarizer(neg_label=-1).fit(range(m)).transform(classes)
    assert_array_equal(encode(classes, one_hot(m)), theirs)


@given(UNITS)
def test_binary_code_counts_in_binary(m):
    bits = (binary_code(m) + 1) / 2
    assert (bits @ 2.0 ** np.arange(m)[::-1]).tolist() == list(range(2**m))


@given(UNITS, SEED)
def test_reading_undoes_encoding(m, seed):
    code = some_code(m, seed)
    classes = default_rng(seed).integers(len(code), size=30)
    Z = encode(classes, code) * np.abs(scores(m, seed)[:30])
    assert_array_equal(read(Z, code), classes)
    assert_array_equal(decode(Z, code), classes)


@given(UNITS, SEED)
def test_decoding_answers_as_reading_does_where_reading_answers(m, seed):
    code, Z = some_code(m, seed), scores(m, seed)
    exact, best = read(Z, code), decode(Z, code)
    answered = exact != NO_CLASS
    assert_array_equal(best[answered], exact[answered])
    words = {tuple(word) for word in code.tolist()}
    fits = [tuple(z) in words for z in np.sign(Z).tolist()]
    assert_array_equal(answered, fits)


@given(UNITS, SEED)
def test_decoding_one_hot_takes_the_largest_score(m, seed):
    Z = scores(m, seed)
    assert_array_equal(decode(Z, one_hot(m)), Z.argmax(axis=1))
    one_fires = (Z > 0).sum(axis=1) == 1
    assert_array_equal(read(Z, one_hot(m)) != NO_CLASS, one_fires)


@given(UNITS, SEED)
def test_a_full_binary_code_always_has_an_answer(m, seed):
    Z = scores(m, seed)
    assert_array_equal(read(Z, binary_code(m)), decode(Z, binary_code(m)))


def test_eight_of_the_24_codes_of_the_corners_are_separable():
    good = []
    for order in permutations(range(4)):
        code = binary_code(2)[list(order)]
        bits = separable_bits(CORNERS, np.arange(4), code)
        theirs = [
            SVC(kernel="linear", C=1e6).fit(CORNERS, y).score(CORNERS, y) == 1
            for y in code.T
        ]
        assert bits.tolist() == theirs
        # opposite corners are 0 and 3, 1 and 2
        assert bits.all() == (not (code[[0, 1]] + code[[3, 2]]).any())
        good.append(bits.all())
    assert (len(good), sum(good)) == (24, 8)


def test_a_class_in_the_middle_needs_two_units():
    X, classes = np.array([[-1.0], [0.0], [1.0]]), np.arange(3)
    assert separable_bits(X, classes, one_hot(3)).tolist() == [True, False, True]
    thermometer = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0]])
    assert separable_bits(X, classes, thermometer).all()


def test_readings_by_hand():
    Z = np.array([[1.0, -2.0], [3.0, 1.0], [-1.0, -4.0], [0.0, -1.0]])
    assert one_hot(2).tolist() == [[1, -1], [-1, 1]]
    assert read(Z, one_hot(2)).tolist() == [0, -1, -1, -1]
    assert decode(Z, one_hot(2)).tolist() == [0, 0, 0, 0]
    assert read(Z, binary_code(2)).tolist() == [2, 3, 0, 0]  # zero: not fired


I = np.eye(2)
REFUSALS = [
    (
        lambda: encode(np.array([0, 2]), one_hot(2)),
        r"classes must lie between 0 and 1; got \[2\]\.",
    ),
    (lambda: encode(np.array([-1]), one_hot(2)), r"between 0 and 1; got \[-1\]"),
    (
        lambda: encode(np.array([0]), I),
        r"code must hold −1 and \+1; got \[0. 1.\]. .* 2 \* code - 1",
    ),
    (
        lambda: decode(I, np.ones((3, 2))),
        r"code must give each class its own word; got 1 words for 3 classes",
    ),
    (lambda: read(I, one_hot(3)), r"read: Z must have 3 columns; got shape \(2, 2\)"),
    (
        lambda: decode(I[0], one_hot(2)),
        r"Z must have 2 columns; got shape \(2,\). One score",
    ),
    (
        lambda: encode(np.array([0.0]), one_hot(2)),
        r"be a row of whole numbers; got float64 of shape \(1,\)",
    ),
    (lambda: encode(np.array([True]), one_hot(2)), r"numbers; got bool of"),
    (
        lambda: encode(np.array([[0]]), one_hot(2)),
        r"numbers; got int64 of shape \(1, 1\)",
    ),
    (
        lambda: decode(np.zeros((1, 0)), np.zeros((1, 0))),
        r"code must have one row per class and one column .* shape \(1, 0\)",
    ),
    (lambda: decode(I * np.nan, one_hot(2)), r"Z must be finite; got NaN or ∞"),
    (lambda: binary_code(40), r"m must be at most 16; got 40"),
    (lambda: binary_code(0), r"m must be a whole number from 1 on; got 0"),
    (lambda: one_hot(0), r"one_hot: m must be a whole number .*; got 0"),
    (lambda: one_hot(2.0), r"m must be a whole number from 1 on; got 2.0"),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
