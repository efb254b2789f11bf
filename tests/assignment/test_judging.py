"""Comparing answers: what counts as equal, and what is said where it is not."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlcore.assignment.judging import Case, Task, compare, differ, judge, show
from dlcore.assignment.plain_data import Outcome, call, decode, encode


def difference(want, got, **options):
    """Compare two values after a journey as plain data."""
    plain = [decode(encode(value), tensors=False) for value in (want, got)]
    return compare(*plain, **options)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        (1.0, 1),
        (1.0, np.float32(1)),
        (1.0, np.array(1.0)),
        (1.0, torch.tensor(1.0)),
        (3, np.int8(3)),
        (10**40, 10**40),
        (2.0**70, 2**70),
        (0.0, 1e-12),
        (np.nan, np.nan),
        (-np.inf, -np.inf),
        (np.ones(3), np.ones(3, dtype=int)),
        (np.ones(3), 1 + 1e-7 * np.ones(3)),
        (np.array([1e6, 0.0]), np.array([1e6, 1e-3])),
        (torch.ones(2), torch.ones(2, dtype=torch.float64) + 1e-5),
        (np.ones(2) * 1j, np.ones(2) * 1j),
        ((1.0, "a"), [1.0, "a"]),
        ({"a": np.ones(2), "b": None}, {"b": None, "a": np.ones(2)}),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_equal(want, got):
    assert difference(want, got) is None


@pytest.mark.parametrize(
    ("want", "got", "rule", "detail"),
    [
        (1, 1.0, "a whole number", "a real number"),
        (1, True, "a whole number", "True or False"),
        (True, 1, "True or False", "a whole number"),
        (1.0, 1j, "a real number", "a complex number"),
        (1.0, "1.0", "a real number", "a text"),
        (1.0, None, "a real number", "Is a return missing?"),
        (1.0, np.ones(1), "a real number", "an array of shape (1,)"),
        (np.ones(3), [1.0] * 3, "an array of shape (3,)", "a tuple or list"),
        (np.ones(3), np.ones((3, 1)), "of shape (3,)", "shape (3, 1)"),
        (np.ones(3), torch.ones(3), "an array", "a tensor"),
        (np.ones(3), np.ones(3) > 0, "of real numbers", "of truth values"),
        (np.ones(3, int), np.ones(3), "of whole numbers", "real numbers"),
        ((1, 2), (1, 2, 3), "list of 2", "list of 3"),
        ({"a": 1}, {"b": 1}, "keys 'a'", "keys 'b'"),
        (1.0, 1.001, "answer is wrong", "Expected 1.0, got 1.001"),
        (1.0, np.nan, "NaN", "got nan"),
        (np.inf, -np.inf, "wrong", "Expected inf, got -inf"),
        (10**40, 10**40 + 1, "wrong", "Expected 1000"),
        (np.ones(2), np.zeros(2), "has wrong numbers", "array([0., 0.])"),
        ("cat", "dog", "answer is wrong", "Expected 'cat', got 'dog'"),
        ((1.0, 2.0), (1.0, 3.0), "Item 2 of the answer", "2.0, got 3.0"),
        ({"a": 1.0}, {"a": 2.0}, "Entry 'a' of the answer", "got 2.0"),
        (torch.ones(2), torch.ones(2) + 1e-3, "has wrong numbers", "1.001"),
    ],
)
def test_different(want, got, rule, detail):
    found = difference(want, got)
    assert rule in found.rule
    assert detail in found.detail


def test_first_wrong_number_of_a_large_array_is_named():
    want = np.arange(30.0).reshape(5, 6)
    got = want.copy()
    got[2:, 3] = -1
    assert difference(want, got).detail == (
        "At [2, 3], expected 15, got -1; 3 of 30 numbers differ."
    )


def test_a_coarse_type_does_not_make_an_answer_right():
    want = np.array([1000.0, 1.0])
    near, off = np.array([1000.0, 1.05]), np.array([1000.0, 9.0])
    assert not compare(want, near.astype("float32"))
    for name in ("float64", "float32", "float16"):
        assert compare(want, off.astype(name))
    assert not compare(want.astype("float16"), off.astype("float16"))


def test_tolerance_can_be_chosen():
    assert difference(1.0, 1.01, rtol=0.1) is None
    assert difference(1.0, 1.0 + 1e-7, rtol=1e-9) is not None


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(1e-5, 1))
def test_a_number_that_is_off_is_found(numbers, error):
    want = np.array(numbers)
    got = want.copy()
    got[-1] += error * max(np.abs(want).max(), 1e-3)
    assert difference(want, want) is None
    assert difference(want, got) is not None


@given(st.floats(width=32), st.integers(-(10**20), 10**20))
def test_rules_give_no_number_away(secret, answer):
    found = difference(np.full(3, secret), np.full(3, 0.123456))
    if found:
        assert "0.123456" not in found.rule
        assert repr(float(secret)) not in found.rule
    assert str(answer + 7) not in difference(answer, answer + 7).rule


def square(x):
    return x * x


def double(x):
    return 2 * x


def broken(x):
    raise KeyError(x)


TASK = Task(["x"], {"double": "Do not add.", "broken": "Do not look it up."})


def case(x):
    wrong = {"double": double, "broken": broken}
    outcomes = {k: call(f, encode((x,)))[0] for k, f in wrong.items()}
    return Case(
        encode((x,)),
        encode(square(x)),
        {k: o for k, o in outcomes.items() if differ(square(x), o)},
    )


CASES = [case(2), case(3)]  # at 2, doubling is right


@pytest.mark.parametrize(
    ("function", "passed", "mistake"),
    [
        (square, True, ""),
        (double, False, "double"),
        (broken, False, "broken"),
        (lambda x: -x, False, ""),
        (lambda x: 4, False, ""),
    ],
)
def test_judge_names_the_mistake_that_has_all_the_answers(function, passed, mistake):
    outcomes = [call(function, c.arguments)[0] for c in CASES]
    verdict = judge(TASK, CASES, outcomes)
    assert (verdict.passed, verdict.mistake) == (passed, mistake)
    assert verdict.hint == TASK.hints.get(mistake, "")


def test_judge_points_at_the_first_wrong_case():
    outcomes = [call(double, c.arguments)[0] for c in CASES]
    assert judge(TASK, CASES, outcomes).case == 1


@pytest.mark.parametrize(
    ("outcome", "rule"),
    [
        (Outcome(raised="NotImplementedError"), "It is not written yet."),
        (Outcome(raised="KeyError", why="secret"), "It stops with KeyError."),
        (Outcome(raised="Secret12", why=""), "It stops with an exception."),
        (Outcome(raised="print", why=""), "It stops with an exception."),
        (Outcome(why="secret"), "Its answer is not plain data."),
    ],
)
def test_failed_calls_have_a_sentence(outcome, rule):
    assert differ(1, outcome).rule == rule


def test_values_are_shown_as_one_would_write_them():
    value = ([np.ones(2), 1.5], {"a": (None,)}, np.array(2.0))
    assert show(value) == "([array([1., 1.]), 1.5], {'a': (None,)}, 2.0)"
    light = decode(encode(torch.ones(2, dtype=torch.float64)), tensors=False)
    assert show(light) == "tensor([1., 1.])"
