"""Check an instructor's notebook before anybody gets it.

Each rule yields a sentence for each breach. The reference must be right everywhere, an
empty answer and constant answers nowhere; every known mistake must be wrong, for all
students, and be recognised as itself; the student's version must run with ``dlcore``
alone and hold nothing of the solution.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from classroom.assignment import VARIANTS, Assignment, Recipe, is_test, place, role
from classroom.course import BOOK, start
from classroom.release import release_read
from dlcore.assignment.judging import Case, Verdict, judge
from dlcore.assignment.plain_data import Outcome, call

TASKS = range(5, 9)
MISTAKES = 3
STUDENTS = 20  # whose hidden cases are tried
MAX_BYTES = 400_000  # of the student's version
SOLUTION = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.S)
HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS\n(.*?)### END HIDDEN TESTS", re.S)

# Runs a notebook's code cells without nbgrader or this package; prints their errors.
RUN = """
import json, sys
sys.modules["classroom"] = sys.modules["nbgrader"] = None
space, errors = {"__name__": "__main__"}, []
for cell in json.load(sys.stdin)["cells"]:
    if cell["cell_type"] == "code":
        try:
            exec("".join(cell["source"]), space)
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
print(json.dumps(errors))
"""


def verify(assignment: Assignment, students: int = STUDENTS) -> Iterator[str]:
    """Yield a sentence for everything that is wrong with an assignment.

    Args:
        assignment: what was read.
        students: how many students' hidden cases are tried.
    """
    yield from _structure(assignment)
    for name, recipe in assignment.recipes.items():
        found = [*_task(recipe), *_cases(assignment, recipe, students)]
        yield from (f"{name}: {said}" for said in found)
    yield from _student_version(assignment)


def _structure(assignment: Assignment) -> Iterator[str]:
    notebook = assignment.notebook
    count = len(assignment.recipes)
    if count not in TASKS:
        yield f"There are {count} tasks. Have from {TASKS[0]} to {TASKS[-1]}."
    written = [c for c in notebook.cells if role(c, "grade") and role(c, "solution")]
    if len(written) != 1 or written[0].cell_type != "markdown":
        yield "Have one written answer: a text cell with solution and grade."
    for i, cell in enumerate(notebook.cells):
        yield from _cell(i, cell)


def _cell(i: int, cell: NotebookNode) -> Iterator[str]:
    here = f"C{place(i, cell)[1:]}"
    if cell.cell_type == "code" and (cell.outputs or cell.execution_count):
        yield f"{here} has outputs. Clear them: they may show the solution."
    if is_test(cell):
        visible = HIDDEN.sub("", cell.source).strip()
        wanted = f"check({role(cell, 'grade_id')})"
        if visible != wanted:
            yield f"{here} shows {visible!r}. Its visible part must be {wanted}."
        if not HIDDEN.search(cell.source):
            yield f"{here} has no hidden tests. Define the task between the marks."
    elif role(cell, "solution") and cell.cell_type == "code":
        if not SOLUTION.search(cell.source):
            yield f"{here} has no solution. Mark it with ### BEGIN and ### END SOLUTION."
    elif cell.cell_type == "markdown" and not (
        role(cell, "locked") or role(cell, "solution")
    ):
        yield f"{here} is not locked. Prose is locked, or an answer."


def _task(recipe: Recipe) -> Iterator[str]:
    hints = [mistake.hint for mistake in recipe.mistakes.values()]
    if len(hints) < MISTAKES:
        yield f"it has {len(hints)} mistakes. Name at least {MISTAKES}."
    if len(set(hints)) < len(hints):
        yield "two mistakes have the same hint. Each needs its own."


def _cases(assignment: Assignment, recipe: Recipe, students: int) -> Iterator[str]:
    """Try the solution, the mistakes and constant answers on many sets of cases."""
    name = recipe.function.__name__
    words: list[tuple[str | int, ...]] = [
        *((name, i) for i in range(VARIANTS)),
        *((name, f"student-{i}", "secret") for i in range(students)),
    ]
    said: set[str] = set()
    for word in words:
        cases = recipe.with_mistakes(recipe.make(assignment.rng(*word)))
        said |= {*_right(recipe, cases), *_wrong(recipe, cases)}
        said |= {*_constant(recipe, cases)}
    yield from sorted(said)


def _verdict(
    recipe: Recipe, cases: list[Case], function: Callable[..., Any]
) -> Verdict:
    outcomes = [call(function, case.arguments)[0] for case in cases]
    return judge(recipe.task, cases, outcomes)


def _right(recipe: Recipe, cases: list[Case]) -> Iterator[str]:
    if not _verdict(recipe, cases, recipe.function).passed:
        yield "the solution gives other answers the second time. Let it be a function."

    def empty(*arguments: object) -> None:
        raise NotImplementedError

    if _verdict(recipe, cases, empty).passed:
        yield "an empty answer passes."


def _wrong(recipe: Recipe, cases: list[Case]) -> Iterator[str]:
    for mistake in recipe.mistakes:
        outcomes = [case.mistakes.get(mistake, Outcome(case.answer)) for case in cases]
        verdict = judge(recipe.task, cases, outcomes)
        if verdict.passed:
            yield (
                f"{mistake} is right in all cases of some student. Draw inputs on which "
                "it is wrong, or add an edge case."
            )
        elif verdict.mistake != mistake:
            yield (
                f"{mistake} is taken for {verdict.mistake or 'no known mistake'}. Draw "
                "inputs that tell the two apart, or let it give plain data."
            )


def _constant(recipe: Recipe, cases: list[Case]) -> Iterator[str]:
    for case in cases:
        outcomes = [Outcome(case.answer)] * len(cases)
        if judge(recipe.task, cases, outcomes).passed:
            yield (
                "the same answer is right in all cases of some student. Draw inputs with "
                "different answers, or more cases."
            )


def _student_version(assignment: Assignment) -> Iterator[str]:
    """Release the assignment into a folder that is thrown away, and run it."""
    with tempfile.TemporaryDirectory() as folder:
        course = start(Path(folder) / "course")
        file = course.notebook("source", assignment.name)
        file.parent.mkdir(parents=True)
        nbformat.write(assignment.notebook, file)
        try:
            released = release_read(course, assignment)
        except ValueError as error:
            yield str(error)
            return
        text = released.read_text(encoding="utf-8")
        notebook = nbformat.reads(text, as_version=4)
    if len(text) > MAX_BYTES:
        yield (
            f"The student's version has {len(text):,} bytes. Keep it below {MAX_BYTES:,}: "
            "draw smaller arrays, whole numbers, or fewer cases."
        )
    for line in secrets(assignment.notebook):
        if line in text or json.dumps(line)[1:-1] in text:
            yield f"The student's version shows a line of the solution: {line!r}."
    yield from _runs(assignment, notebook)


def secrets(notebook: NotebookNode) -> set[str]:
    """Return the lines of solutions and hidden tests, without those that say little."""
    lines = {
        line.strip()
        for cell in notebook.cells
        for mark in (SOLUTION, HIDDEN)
        for part in mark.findall(cell.source)
        for line in part.splitlines()
    }
    shown = "\n".join(
        HIDDEN.sub("", SOLUTION.sub("", cell.source)) for cell in notebook.cells
    )
    return {line for line in lines if len(line) > 15 and line not in shown}


def _runs(assignment: Assignment, notebook: NotebookNode) -> Iterator[str]:
    empty = _run(notebook)
    tasks = len(assignment.recipes)
    if len(empty) != tasks or not all("is not written yet" in e for e in empty):
        yield (
            "In the student's version each check, and nothing else, should stop with "
            f"'It is not written yet.'; got {empty}."
        )
    solved = _run(solve(notebook, assignment.notebook))
    if solved:
        yield f"With the solutions the student's version stops with {solved}."


def solve(notebook: NotebookNode, instructor: NotebookNode) -> NotebookNode:
    """Return the student's version with the instructor's answers in it."""
    answers = {
        role(cell, "grade_id"): cell.source
        for cell in instructor.cells
        if role(cell, "solution")
    }
    solved = nbformat.from_dict(notebook)
    for cell in solved.cells:
        if role(cell, "grade_id") in answers:
            cell.source = answers[role(cell, "grade_id")]
    return solved


def _run(notebook: NotebookNode) -> list[str]:
    """Run a student's notebook in a fresh process and return its errors."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", RUN],
            input=nbformat.writes(notebook),
            capture_output=True,
            text=True,
            cwd=folder,
            env={"PYTHONPATH": str(BOOK), "PATH": "/usr/bin:/bin"},
        )
    if done.returncode:
        return [done.stderr.strip()]
    return list(json.loads(done.stdout.splitlines()[-1]))
