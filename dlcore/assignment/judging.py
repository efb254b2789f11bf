"""Compare an answer with the expected one, and name the mistake if it is a known one.

A function is judged by its answers in a few cases, which must equal those of a
reference. The answers of some wrong functions are known too: whoever gives all of these
gets the hint that belongs to them.
"""

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from dlcore.assignment.plain_data import Json, Outcome, Tensor, decode

__all__ = [
    "NOT_WRITTEN",
    "Case",
    "Difference",
    "Task",
    "Verdict",
    "compare",
    "differ",
    "judge",
    "show",
]

_COARSE = {"float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}
_FINE = 1e-6  # the tolerance of all other types
_SINGLE = 1e-4  # the most that the type of an answer alone allows
_SHOWN = 12  # numbers of an array that is shown whole
_SMALL = 1e-3  # numbers below it are compared as if they were that large
_KINDS = {
    "b": ("True or False", "truth values"),
    "i": ("a whole number", "whole numbers"),
    "f": ("a real number", "real numbers"),
    "c": ("a complex number", "complex numbers"),
}
#: What is said of a function that raises ``NotImplementedError``.
NOT_WRITTEN = "It is not written yet."
_FITS = {"bb", "ii", "ff", "cc", "fi"}  # a whole number may stand for a real one


class Case(NamedTuple):
    """One case of a task: arguments, right answer, and answers of known mistakes.

    Attributes:
        arguments: the encoded arguments.
        answer: the encoded answer of the reference.
        mistakes: the outcomes of known mistakes, where they are not the right answer.

    Example:
        >>> case = Case([3], 9, {"doubled": Outcome(6)})
        >>> case.answer, case.mistakes["doubled"].value
        (9, 6)
    """

    arguments: Json
    answer: Json
    mistakes: Mapping[str, Outcome]


class Task(NamedTuple):
    """What is needed to judge a function: names, hints and a tolerance.

    Attributes:
        parameters: the names of its arguments.
        hints: the hint for each known mistake.
        rtol: the tolerance, relative to the largest number of an array; by default that
            of its type.

    Example:
        >>> task = Task(["x"], {"doubled": "Multiply x by itself."}, rtol=0.1)
        >>> judge(task, [Case([3], 9.0, {})], [Outcome(9.5)]).passed
        True
    """

    parameters: Sequence[str]
    hints: Mapping[str, str]
    rtol: float | None = None


class Difference(NamedTuple):
    """How an answer differs from the expected one, in words.

    Attributes:
        rule: what is wrong, in words that give away no number of the case.
        detail: what was expected, and what came.

    Example:
        >>> compare(9, 6)
        Difference(rule='The answer is wrong.', detail='Expected 9, got 6.')
    """

    rule: str
    detail: str


class Verdict(NamedTuple):
    """The result of judging a function by its answers in all cases.

    Attributes:
        passed: whether all of them are right.
        case: the first case with a wrong answer, from 0.
        difference: why it is wrong.
        mistake: the known mistake that gives all these answers.
        hint: its hint.

    Example:
        >>> cases = [Case([2], 4, {}), Case([3], 9, {})]
        >>> judge(Task(["x"], {}), cases, [Outcome(4), Outcome(6)]).case
        1
    """

    passed: bool
    case: int = 0
    difference: Difference = Difference("", "")
    mistake: str = ""
    hint: str = ""


def judge(task: Task, cases: Sequence[Case], outcomes: Sequence[Outcome]) -> Verdict:
    """Judge the outcomes of all cases of a task, and recognise known mistakes.

    Example:
        >>> task = Task(["x"], {"doubled": "Multiply x by itself."})
        >>> case = Case([3], 9, {"doubled": Outcome(6)})
        >>> judge(task, [case], [Outcome(6)]).hint
        'Multiply x by itself.'
    """
    for i, (case, outcome) in enumerate(zip(cases, outcomes, strict=True)):
        wrong = differ(case.answer, outcome, task.rtol)
        if wrong:
            name = _recognise(task, cases, outcomes)
            return Verdict(False, i, wrong, name, task.hints.get(name, ""))
    return Verdict(True)


def differ(
    answer: Json, outcome: Outcome, rtol: float | None = None
) -> Difference | None:
    """Return how an outcome differs from an encoded answer; ``None`` if it does not.

    Example:
        >>> differ(9, Outcome(9)) is None, differ(9, Outcome(6)).detail
        (True, 'Expected 9, got 6.')
    """
    if outcome.raised == "NotImplementedError":
        return Difference(NOT_WRITTEN, outcome.why)
    if outcome.raised:
        known = isinstance(getattr(builtins, outcome.raised, None), type)
        name = outcome.raised if known else "an exception"
        return Difference(f"It stops with {name}.", outcome.why)
    if outcome.why:
        return Difference("Its answer is not plain data.", outcome.why)
    want = decode(answer, tensors=False)
    return compare(want, decode(outcome.value, tensors=False), rtol)


def compare(want: Any, got: Any, rtol: float | None = None) -> Difference | None:
    """Return how a value differs from the expected one; ``None`` if it does not.

    Values are those that ``decode`` gives without torch. Lists and tuples may stand
    for each other, so may numbers and arrays without axes, and whole numbers for real
    ones. Numbers are equal up to ``rtol`` times the largest one that is expected.

    Example:
        >>> compare(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9])) is None
        True
        >>> compare(1.0, "one").rule
        'The answer must be a real number.'
    """
    want, got = _as_array(want), _as_array(got)
    if not _same_form(want, got):
        hint = " Is a return missing?" if got is None else ""
        return Difference(
            f"The answer must be {_describe(want)}.", f"It is {_describe(got)}.{hint}"
        )
    if isinstance(want, ndarray | Tensor):
        return _compare_numbers(_values(want), _values(got), rtol)
    if isinstance(want, list | tuple):
        names = [f"Item {i}" for i in range(1, len(want) + 1)]
        return _first(zip(names, want, got, strict=True), rtol)
    if isinstance(want, dict):
        return _first(((f"Entry {k!r}", want[k], got[k]) for k in want), rtol)
    if want == got:
        return None
    detail = f"Expected {show(want)}, got {show(got)}."
    return Difference("The answer is wrong.", detail)


def _describe(value: Any) -> str:
    """Say what form a value has, without its numbers."""
    value = _as_array(value)
    if value is None:
        return "None"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, dict):
        return f"a dictionary with the keys {', '.join(map(repr, value))}"
    if isinstance(value, list | tuple):
        parts = [_describe(item) for item in value[:4]] + ["…"] * (len(value) > 4)
        return f"a tuple or list of {len(value)} ({', '.join(parts)})"
    numbers = _values(value)
    one, many = _KINDS[_kind(numbers)]
    if not numbers.ndim:
        return one
    form = "a tensor" if isinstance(value, Tensor) else "an array"
    return f"{form} of shape {numbers.shape} of {many}"


def show(value: Any) -> str:
    """Return a value as text, shortened where it is long.

    Example:
        >>> show([1, (2.5,), np.array([1, 2])])
        '[1, (2.5,), array([1, 2])]'
    """
    if isinstance(value, Tensor):
        return show(value.values).replace("array", "tensor", 1)
    if isinstance(value, list):
        return "[" + ", ".join(map(show, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(show, value)) + ("," * (len(value) == 1)) + ")"
    if isinstance(value, dict):
        pairs = (f"{show(k)}: {show(v)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, ndarray):
        with np.printoptions(precision=6, threshold=40, edgeitems=2):
            return repr(value) if value.ndim else str(value)
    return repr(value)


def _recognise(task: Task, cases: Sequence[Case], outcomes: Sequence[Outcome]) -> str:
    """Return the first known mistake that has these outcomes in all cases, or ""."""

    def gives(mistake: str) -> bool:
        return all(
            _same_outcome(
                case.mistakes.get(mistake, Outcome(case.answer)), outcome, task.rtol
            )
            for case, outcome in zip(cases, outcomes, strict=True)
        )

    return next(filter(gives, task.hints), "")


def _same_outcome(want: Outcome, got: Outcome, rtol: float | None) -> bool:
    if want.raised or got.raised:
        return want.raised == got.raised
    return differ(want.value, got, rtol) is None


def _as_array(value: Any) -> Any:
    """Turn numbers into arrays without axes, and tensors without axes too."""
    if type(value) is int and not -(2**63) <= value < 2**63:
        return np.array(value, dtype=object)
    if type(value) in (bool, int, float):
        return np.array(value)
    if isinstance(value, Tensor) and not value.values.ndim:
        return value.values
    return value


def _values(value: ndarray | Tensor) -> ndarray:
    return value.values if isinstance(value, Tensor) else value


def _kind(numbers: ndarray) -> str:
    """Return the letter in _KINDS; large whole numbers are objects to NumPy."""
    kind = numbers.dtype.kind
    return "i" if kind in "uO" else kind


def _same_form(want: Any, got: Any) -> bool:
    if isinstance(want, ndarray | Tensor):
        if type(want) is not type(got):
            return False
        want, got = _values(want), _values(got)
        return want.shape == got.shape and _kind(want) + _kind(got) in _FITS
    if isinstance(want, list | tuple):
        return isinstance(got, list | tuple) and len(want) == len(got)
    if isinstance(want, dict):
        return isinstance(got, dict) and want.keys() == got.keys()
    return type(want) is type(got)


def _first(
    pairs: Iterable[tuple[str, Any, Any]], rtol: float | None
) -> Difference | None:
    """Return the first difference among the parts of two values."""
    for name, want, got in pairs:
        difference = compare(want, got, rtol)
        if difference:
            rule = difference.rule.replace("The answer", f"{name} of the answer", 1)
            return Difference(rule, difference.detail)
    return None


def _compare_numbers(
    want: ndarray, got: ndarray, rtol: float | None
) -> Difference | None:
    equal = _equal(want, got, rtol)
    if equal.all():
        return None
    if _kind(got) in "fc" and np.isnan(got[~equal]).any():
        rule = "The answer has NaN where a number is expected."
    elif want.ndim:
        rule = "The answer has wrong numbers."
    else:
        rule = "The answer is wrong."
    return Difference(rule, _where(want, got, equal))


def _equal(want: ndarray, got: ndarray, rtol: float | None) -> ndarray:
    """Tell which numbers are equal, up to the tolerance if they are real."""
    if _kind(want) in "bi":
        return np.asarray(want == got)
    if rtol is None:
        asked, given = (_COARSE.get(x.dtype.name, _FINE) for x in (want, got))
        rtol = max(asked, min(given, _SINGLE))
    kind = "complex128" if _kind(want) == "c" else "float64"
    want, got = want.astype(kind), got.astype(kind)
    size = np.abs(want[np.isfinite(want)]).max(initial=_SMALL)
    with np.errstate(invalid="ignore"):
        near = np.abs(want - got) <= rtol * size
    both_nan = np.isnan(want) & np.isnan(got)
    return np.asarray(near | (want == got) | both_nan)


def _where(want: ndarray, got: ndarray, equal: ndarray) -> str:
    """Show what was expected and what came; of large arrays the first wrong number."""
    if want.size <= _SHOWN:
        return f"Expected {show(want)}, got {show(got)}."
    at = tuple(map(int, np.argwhere(~equal)[0]))
    return (
        f"At {list(at)}, expected {want[at]:.6g}, got {got[at]:.6g}; "
        f"{np.sum(~equal)} of {want.size} numbers differ."
    )
