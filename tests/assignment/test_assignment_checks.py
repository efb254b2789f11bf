"""The student's side of an assignment: variants, reports and hints."""

import numpy as np
import pytest

from dlcore.assignment.checks import Checks, choose, pack, unpack
from dlcore.assignment.judging import Case, Task
from dlcore.assignment.plain_data import Outcome, encode


def case(x):
    mistakes = {"half": Outcome(encode(x.sum() / 2))}
    return Case(encode((x,)), encode(x.sum()), mistakes)


VARIANTS = [[case(np.arange(1.0, n))] for n in range(4, 8)]
TASKS = {"total": (Task(["x"], {"half": "Why halve it?"}), VARIANTS)}
TEXT = pack(TASKS)


def total(x):
    return x.sum()


def test_unpacking_undoes_packing():
    assert unpack(TEXT) == {
        "total": (Task(["x"], {"half": "Why halve it?"}, None), VARIANTS)
    }


def test_text_can_stand_in_a_cell():
    assert '"' not in TEXT
    assert "\\" not in TEXT
    assert TEXT.isprintable()


def test_name_chooses_the_variant():
    chosen = [choose(f"student {i}", 8) for i in range(400)]
    assert set(chosen) == set(range(8))
    assert max(map(chosen.count, range(8))) < 80
    assert choose("Ann  Smith", 8) == choose("ann smith ", 8)


def test_numbers_are_those_of_the_first_case():
    for name in ["ann", "bob", "eve"]:
        (x,) = Checks(TEXT, name).numbers("total")
        assert len(x) == 3 + choose(name, 4)


def test_right_function_is_told_so(capsys):
    Checks(TEXT, "ann")(total)
    assert capsys.readouterr().out == "total: right in all 1 cases.\n"


def failure(function, name="total"):
    function.__name__ = name
    with pytest.raises(AssertionError) as caught:
        Checks(TEXT, "ann")(function)
    return caught.value


def test_report_has_input_expectation_answer_and_hint():
    x = np.arange(1.0, 4 + choose("ann", 4))
    report = str(failure(lambda x: x.sum() / 2))
    assert report == (
        "total, case 1 of 1: The answer is wrong.\n"
        f"Expected {x.sum()}, got {x.sum() / 2}.\n"
        f"The case was:\n  x = {x!r}\nHint: Why halve it?"
    )


def test_unknown_mistake_has_no_hint():
    assert "Hint" not in str(failure(lambda x: -x.sum()))


def test_missing_function_is_no_crash():
    def stub(x):
        raise NotImplementedError

    assert str(failure(stub)) == "total: It is not written yet."


def test_exception_keeps_its_traceback():
    error = failure(lambda x: x[99])
    assert "It stops with IndexError." in str(error)
    assert isinstance(error.__cause__, IndexError)


def test_arrays_are_written_beside_their_names():
    table = Case(encode((np.eye(2),)), encode(1.0), {})
    text = pack({"total": (Task(["x"], {}), [[table]])})
    with pytest.raises(AssertionError) as caught:
        Checks(text, "ann")(total)
    assert "  x = array([[1., 0.],\n             [0., 1.]])" in str(caught.value)


def test_functions_of_other_names_are_refused():
    with pytest.raises(ValueError, match=r"task of this notebook \(total\)"):
        Checks(TEXT, "ann")(print)
    with pytest.raises(ValueError, match="total"):
        Checks(TEXT, "ann").numbers("sum")


def test_without_cases_nothing_is_checked(capsys):
    Checks("", "ann")(print)
    assert "student's version" in capsys.readouterr().out
