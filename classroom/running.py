"""Run one submission in boxes, and bring back what its functions answered.

A cell or a task that takes too long, or ends the process, costs only itself: what is left
is tried again in a fresh box without it, a few times. What cells print is kept from the
time before the first task: whatever one box may tell the next, it cannot be a hidden input.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from classroom.box import Box, Crashed, Late, Limits, Stopped
from dlcore.plain import Json, Outcome, decode

RESTARTS = 3
MAX_TEXT = 12_000  # characters of a cell's output
MAX_OUTPUT = 200_000  # characters of the outputs of all cells

Program = Sequence[tuple[int, str]]


class Broken(Exception):
    """The box itself does not work; the submission has nothing to do with it."""


@dataclass
class Run:
    """What came of running a submission.

    Attributes:
        cells: what each cell printed and how it failed, by the cell's number.
        tasks: the outcomes of each task; or a sentence, if there are none.
        stopped: cells and tasks that used too much.
        crashed: cells and tasks in which the process ended.
        late: whether something was stopped by the clock, as on a machine that is busy.
        seconds: how long it took.
    """

    cells: dict[int, tuple[str, str]] = field(default_factory=dict)
    tasks: dict[str, list[Outcome] | str] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)
    late: bool = False
    seconds: float = 0.0


def run(
    program: Program,
    cases: Mapping[str, Sequence[Json]],
    limits: Limits,
    number: int = 0,
    boxed: bool = True,
) -> Run:
    """Run the cells of a program, then call its functions.

    Args:
        program: the numbers and sources of the cells.
        cases: the encoded arguments of each case, by the name of the function.
        limits: what the code may use.
        number: a small number that no other run has at the same time.
        boxed: run it in a box.
    """
    done, start = Run(), time.monotonic()
    for _ in range(1 + RESTARTS):
        left = [cell for cell in program if _not_stopped(cell[0], done)]
        with Box(limits, number, boxed) as box:
            _greet(box)
            if _run_cells(box, left, done) and _call_tasks(box, cases, done):
                break
        if time.monotonic() - start > limits.patience * limits.seconds:
            break
    for name in cases:
        done.tasks.setdefault(name, "It was not reached.")
    done.seconds = time.monotonic() - start
    return done


def _not_stopped(number: int, done: Run) -> bool:
    return f"cell {number}" not in {*done.stopped, *done.crashed}


def _greet(box: Box) -> None:
    """Wait for the runner, so that a box that fails is not taken for bad code."""
    try:
        box.receive(patience=3)
    except (Stopped, Crashed):
        raise Broken("The box could not be started.") from None


def _run_cells(box: Box, program: Program, done: Run) -> bool:
    """Run the cells; return whether the box is still there."""
    number = 0
    try:
        box.send({"cells": list(program)})
        for number, _ in program:
            reply = box.receive()
            room = MAX_OUTPUT - sum(
                len(t) + len(e) for t, e in done.cells.values()
            )
            text, error = (
                _text(reply, key)[:room] for key in ("text", "error")
            )
            if not done.tasks:
                done.cells[number] = (text, error)
    except (Stopped, Crashed) as end:
        done.cells[number] = ("", _blame(end, f"cell {number}", done))
        return False
    return True


def _call_tasks(
    box: Box, cases: Mapping[str, Sequence[Json]], done: Run
) -> bool:
    """Call the functions that were not called yet; return whether all were."""
    for name in cases:
        if name in done.tasks:
            continue
        try:
            arguments = list(cases[name])
            seconds = box.limits.seconds
            box.send({"task": name, "cases": arguments, "seconds": seconds})
            done.tasks[name] = _outcomes(
                box.receive(patience=2), name, len(arguments), done
            )
        except (Stopped, Crashed) as end:
            done.tasks[name] = _blame(end, name, done)
            return False
    return True


def _blame(end: Exception, what: str, done: Run) -> str:
    """Note what a cell or a task did, and return a sentence about it."""
    if isinstance(end, Stopped):
        done.late = done.late or isinstance(end, Late)
        done.stopped.append(what)
        return f"It {end} and was stopped."
    done.crashed.append(what)
    return "It ended the process."


def _outcomes(
    reply: dict[str, Any], name: str, count: int, done: Run
) -> list[Outcome] | str:
    """Read the outcomes of a task; they may be anything."""
    if "stopped" in reply:
        end = Late if reply.get("late") else Stopped
        return _blame(end("took too long"), name, done)
    outcomes = reply.get("outcomes")
    if type(outcomes) is not list or len(outcomes) != count:
        return _blame(Crashed(), name, done)
    return [_outcome(outcome) for outcome in outcomes]


def _outcome(data: Any) -> Outcome:
    bad = Outcome(why="The answer is not plain data.")
    if type(data) is not list or len(data) != 3:
        return bad
    value, raised, why = data
    if type(raised) is not str or type(why) is not str:
        return bad
    try:
        decode(value, tensors=False)
    except ValueError as error:
        return Outcome(why=str(error))
    return Outcome(value, raised, why)


def _text(reply: dict[str, Any], key: str) -> str:
    text = reply.get(key)
    kept = text[:MAX_TEXT] if type(text) is str else ""
    return kept.encode("utf-8", "replace").decode()
