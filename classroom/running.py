"""Run one submission in a box, and bring back what its functions answered.

A cell or a task that takes too long, or ends its process, costs only itself. What ends the
whole box is left out in a fresh one, a few times; in the last only what answers may need is
run. What cells print is kept from the time before the first task: whatever one box may
tell the next, it cannot be a hidden input. All boxes together have one budget of time, of
which cells that no answer needs get the first half.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from classroom.box import Box, Crashed, Late, Limits, Stopped
from dlcore.assignment.plain_data import Json, Outcome, decode

SET_UP = "the set-up"
WORD = re.compile(r"[^\W\d]\w*")
BINDING = ("def ", "class ", "async ", "import ", "from ", "for ", "with ", "global ")
RESTARTS = 3
EXTRA = 0.5  # of the budget is also for cells that no answer needs
STATES = 3  # at most, in which a function is called
MAX_TEXT = 12_000  # characters of a cell's output
MAX_OUTPUT = 200_000  # characters of the outputs of all cells


class Code(NamedTuple):
    """A cell to run.

    Attributes:
        place: where it is in the notebook.
        source: its text.
        name: what to call it.
        answers: the tasks whose answers it is meant to hold.
        needed: whether answers may need it.
    """

    place: int
    source: str
    name: str
    answers: tuple[str, ...] = ()
    needed: bool = True


def mark_needed(program: Sequence[Code], tasks: Sequence[str]) -> list[Code]:
    """Mark the cells that answers may need: those that lead to the names of the tasks.

    A cell is needed if it has the name of a task, or binds a word of one that is needed.
    """
    words = [{*WORD.findall(cell.source)} for cell in program]
    bound = [{*_bound(cell.source)} for cell in program]
    wanted, needed = {*tasks}, {0}
    while more := {
        i
        for i, own in enumerate(words)
        if i not in needed and (bound[i] & wanted or own & {*tasks})
    }:
        needed |= more
        wanted |= {word for i in more for word in words[i]}
    return [c._replace(needed=i in needed) for i, c in enumerate(program)]


def _bound(source: str) -> Iterator[str]:
    """Yield the words that a cell seems to bind, as a look at its text tells."""
    for line in source.splitlines():
        left, equals, _ = line.partition("=")
        if line.lstrip().startswith(BINDING):
            yield from WORD.findall(line)
        elif equals:
            yield from WORD.findall(left)


class Task(NamedTuple):
    """A function to call.

    Attributes:
        cases: the encoded arguments of each case.
        hidden: modules that it should do without.
        right: tells whether outcomes are right.
    """

    cases: Sequence[Json]
    hidden: Sequence[str] = ()
    right: Callable[[list[Outcome]], bool] = lambda _: True


class Budget:
    """The seconds on the clock that one submission has left, whatever it is run for."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds


class Broken(Exception):
    """The box itself does not work; the submission has nothing to do with it."""


@dataclass
class Run:
    """What came of running a submission.

    Attributes:
        cells: what each cell printed and how it failed, by the cell's place.
        tasks: the outcomes of each task; or a sentence, if there are none.
        stopped: cells and tasks that used too much.
        crashed: cells and tasks in which the process ended.
        skipped: cells for which there was no time.
        later: functions that are wrong after their cell, and right in a later state.
        late: whether something was stopped by the clock, as on a machine that is busy.
        seconds: how long it took.
    """

    cells: dict[int, tuple[str, str]] = field(default_factory=dict)
    tasks: dict[str, list[Outcome] | str] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    late: bool = False
    seconds: float = 0.0


def run(
    program: Sequence[Code],
    tasks: Mapping[str, Task],
    limits: Limits,
    budget: Budget | None = None,
    number: int = 0,
    boxed: bool = True,
) -> Run:
    """Run the cells of a program, then call its functions.

    Args:
        program: the cells.
        tasks: the functions by name.
        limits: what the code may use.
        budget: the time it has; what it takes is taken off.
        number: a small number that no other run has at the same time.
        boxed: run it in a box.
    """
    budget = budget or Budget(limits.budget)
    done, start = Run(), time.monotonic()
    end = start + budget.left
    extra = start + EXTRA * budget.left
    for restart in range(1 + RESTARTS):
        if time.monotonic() > end:
            break
        left = [
            cell
            for cell in program
            if cell.name not in {*done.stopped, *done.crashed}
            and (restart < RESTARTS or cell.needed)
        ]
        with Box(limits, number, boxed, end) as box:
            if not _greet(box, end):
                break
            if _run_cells(box, left, tasks, extra, done) and _call_tasks(
                box, tasks, done
            ):
                break
    for name in tasks:
        done.tasks.setdefault(name, "It was not reached.")
    done.seconds = time.monotonic() - start
    budget.left -= done.seconds
    return done


def _greet(box: Box, end: float) -> bool:
    """Wait for the runner, so that a box that fails is not taken for bad code."""
    try:
        box.receive(patience=3)
    except (Stopped, Crashed):
        if time.monotonic() > end:
            return False
        raise Broken("The box could not be started.") from None
    return True


def _run_cells(
    box: Box,
    program: Sequence[Code],
    tasks: Mapping[str, Task],
    extra: float,
    done: Run,
) -> bool:
    """Run the cells; return whether the box is still there."""
    box.send({"tasks": list(tasks)})
    for cell in program:
        if not cell.needed and time.monotonic() > extra:
            done.skipped += [cell.name] * (cell.name not in done.skipped)
            continue
        try:
            _run_cell(box, cell, done)
        except (Stopped, Crashed) as end:
            done.cells[cell.place] = ("", _blame(end, cell.name, done))
            return False
    return True


def _run_cell(box: Box, cell: Code, done: Run) -> None:
    """Run a cell, and note what it printed, or that it did not come back."""
    reply = _ask(
        box, {"cell": cell.name, "source": cell.source, "answers": cell.answers}
    )
    if end := _ended(reply):
        done.cells[cell.place] = ("", _blame(end, cell.name, done))
    elif not done.tasks:
        done.cells.pop(cell.place, None)
        room = MAX_OUTPUT - sum(len(t + e) for t, e in done.cells.values())
        text = _text(reply, "text")[:room]
        error = _text(reply, "error")[: room - len(text)]
        done.cells[cell.place] = (text, error)


def _call_tasks(box: Box, tasks: Mapping[str, Task], done: Run) -> bool:
    """Call the functions that were not called yet; return whether all were."""
    for name, task in tasks.items():
        if name in done.tasks:
            continue
        try:
            done.tasks[name] = _call_task(box, name, task, done)
        except (Stopped, Crashed) as end:
            done.tasks[name] = _blame(end, name, done)
            return False
    return True


def _call_task(box: Box, name: str, task: Task, done: Run) -> list[Outcome] | str:
    """Call a function as it stood after its cell; if it does not answer there, later.

    A wrong answer stays wrong, or a function could learn from being called again. If a
    later state has it right, that is noted.
    """
    found: list[Outcome] = []
    for state in range(STATES):
        reply = _ask(
            box,
            {
                "task": name,
                "state": state,
                "cases": list(task.cases),
                "hidden": list(task.hidden),
            },
        )
        if "none" in reply:
            break
        outcomes = _outcomes(reply, name, len(task.cases), done)
        if isinstance(outcomes, str):
            return found or outcomes
        right = task.right(outcomes)
        if any(not one.raised for one in found):
            done.later += [name] * right
        elif right:
            return outcomes
        elif all(one.raised == "NotImplementedError" for one in found) or any(
            not one.raised for one in outcomes
        ):
            found = outcomes
    return found


def _ask(box: Box, request: dict[str, Any]) -> dict[str, Any]:
    box.send({**request, "seconds": box.limits.seconds})
    return box.receive(patience=2)


def _ended(reply: dict[str, Any]) -> Exception | None:
    """Return how a cell or a task ended before its time, if it did."""
    if "stopped" in reply:
        return (Late if reply.get("late") else Stopped)("took too long")
    return Crashed() if "crashed" in reply else None


def _blame(end: Exception, what: str, done: Run) -> str:
    """Note what a cell or a task did, and return a sentence about it."""
    if isinstance(end, Stopped):
        done.late = done.late or isinstance(end, Late) or what == SET_UP
        done.stopped.append(what)
        return f"It {end} and was stopped."
    done.crashed.append(what)
    return "It ended the process."


def _outcomes(
    reply: dict[str, Any], name: str, count: int, done: Run
) -> list[Outcome] | str:
    """Read the outcomes of a task; they may be anything."""
    if end := _ended(reply):
        return _blame(end, name, done)
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
