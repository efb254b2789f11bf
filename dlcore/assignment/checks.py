"""Assignments on the student's side: try a function on cases that a notebook carries.

The cases travel inside the notebook as one text, made by ``pack``: inputs, answers and
hints, no code. There are several variants of them, and the student's name chooses one.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dlcore.assignment.judging import NOT_WRITTEN, Case, Task, Verdict, judge, show
from dlcore.assignment.plain_data import Outcome, call, decode
from dlcore.checks import check

__all__ = ["Checks", "Variants", "choose", "pack", "unpack"]

#: The cases of each variant of a task.
Variants = Sequence[Sequence[Case]]


def pack(tasks: Mapping[str, tuple[Task, Variants]]) -> str:
    """Pack tasks with their variants into one text, which a notebook can carry.

    Example:
        >>> tasks = {"square": (Task(["x"], {}), [[Case([3], 9, {})]])}
        >>> unpack(pack(tasks)) == tasks
        True
    """
    text = json.dumps(tasks, separators=(",", ":"))
    return base64.b85encode(zlib.compress(text.encode(), 9)).decode()


def unpack(text: str) -> dict[str, tuple[Task, list[list[Case]]]]:
    """Return the tasks that :func:`pack` made a text of; of an empty text, none.

    Example:
        >>> unpack(pack({"square": (Task(["x"], {}), [])}))
        {'square': (Task(parameters=['x'], hints={}, rtol=None), [])}
    """
    if not text:
        return {}
    tasks = json.loads(zlib.decompress(base64.b85decode(text)))
    return {
        name: (Task(*task), [[_case(*case) for case in cases] for cases in variants])
        for name, (task, variants) in tasks.items()
    }


def choose(student: str, variants: int) -> int:
    """Return which variant a student gets, from 0; case and spaces do not matter.

    Example:
        >>> choose("Ada Lovelace", 5) == choose("ada  LOVELACE", 5)
        True
    """
    name = " ".join(student.casefold().split())
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % variants


class Checks:
    """The checks of one student's notebook: called with a function, they try it.

    Args:
        text: what ``pack`` made.
        student: the student's name, which chooses the numbers.

    Example:
        >>> text = pack({"square": (Task(["x"], {}), [[Case([2], 4, {})] * 2])})
        >>> def square(x): return x * x
        >>> Checks(text, "Ada")(square)
        square: right in all 2 cases.
    """

    def __init__(self, text: str, student: str) -> None:
        self._tasks = {
            name: (task, variants[choose(student, len(variants))])
            for name, (task, variants) in unpack(text).items()
        }

    def numbers(self, name: str) -> Any:
        """Return the arguments of the student's first case of a task."""
        check(name in self._tasks, "numbers: name", self._known(), repr(name))
        _, cases = self._tasks[name]
        return decode(cases[0].arguments)

    def __call__(self, function: Callable[..., object]) -> None:
        """Say that a function is right in all cases, or raise ``AssertionError``."""
        if not self._tasks:
            print("The student's version has cases to check.")
            return
        name = getattr(function, "__name__", "")
        check(name in self._tasks, "check: function", self._known(), repr(name))
        task, cases = self._tasks[name]
        results = [call(function, case.arguments) for case in cases]
        verdict = judge(task, cases, [outcome for outcome, _ in results])
        if not verdict.passed:
            error = results[verdict.case][1]
            raise AssertionError(_report(name, task, cases, verdict)) from error
        print(f"{name}: right in all {len(cases)} cases.")

    def _known(self) -> str:
        return f"be a task of this notebook ({', '.join(self._tasks)})"


def _case(arguments: Any, answer: Any, mistakes: dict[str, Any]) -> Case:
    return Case(
        arguments,
        answer,
        {name: Outcome(*outcome) for name, outcome in mistakes.items()},
    )


def _report(name: str, task: Task, cases: Sequence[Case], verdict: Verdict) -> str:
    """Say for which input, what was expected, what came, and the hint."""
    case, (rule, detail) = cases[verdict.case], verdict.difference
    title = f"{name}, case {verdict.case + 1} of {len(cases)}: {rule}"
    if rule == NOT_WRITTEN:
        return f"{name}: {rule}"
    values = decode(case.arguments, tensors=False)
    given = [
        _beside(f"  {parameter} = ", show(value))
        for parameter, value in zip(task.parameters, values, strict=False)
    ]
    hint = [f"Hint: {verdict.hint}"] if verdict.hint else []
    return "\n".join([title, detail, "The case was:", *given, *hint])


def _beside(label: str, text: str) -> str:
    """Write a text of several lines beside a label."""
    return label + text.replace("\n", "\n" + " " * len(label))
