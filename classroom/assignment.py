"""Read an instructor's notebook: its tasks, their cases, and what known mistakes give.

The notebook defines its tasks in the hidden part of its test cells, with two decorators:

    @task(softmax, cases=4)
    def inputs(rng):
        return (rng.normal(size=(3, 4)),)

    @mistake(softmax, "The sum runs over the rows: each row is one example.")
    def wrong_axis(x):
        ...

Expected values are what the reference solution gives. Everything here is the author's
code; nothing of a student is ever run in this process.
"""

import hashlib
import inspect
import io
import json
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import numpy as np
from nbformat import NotebookNode

from dlcore.assignment.checks import pack
from dlcore.assignment.judging import Case, Task, differ
from dlcore.assignment.plain_data import Outcome, call, encode
from dlcore.checks import check

MARK = re.compile(r"### (BEGIN|END) (SOLUTION|HIDDEN TESTS)")
VARIANTS = 8  # of the visible cases; the student's name chooses one
Function = Callable[..., Any]


class Mistake(NamedTuple):
    """A wrong function, and the hint for those who wrote it."""

    function: Function
    hint: str


@dataclass(frozen=True)
class Recipe:
    """How the cases of a task are made.

    Attributes:
        function: the reference solution.
        inputs: draws the arguments of one case from a random generator.
        cases: how many of them are drawn.
        edges: further arguments, the same for everyone.
        rtol: the tolerance, if not that of the type.
        without: names that the solution should do without, such as "torch.softmax".
        mistakes: the known mistakes by name.
    """

    function: Function
    inputs: Callable[[np.random.Generator], tuple[Any, ...]]
    cases: int
    edges: Sequence[tuple[Any, ...]] = ()
    rtol: float | None = None
    without: Sequence[str] = ()
    mistakes: dict[str, Mistake] = field(default_factory=dict)

    @property
    def task(self) -> Task:
        """What is needed to judge an answer."""
        parameters = list(inspect.signature(self.function).parameters)
        hints = {name: m.hint for name, m in self.mistakes.items()}
        return Task(parameters, hints, self.rtol)

    def make(self, rng: np.random.Generator) -> list[Case]:
        """Draw cases and compute what the reference gives, not yet the mistakes."""
        drawn = [self.inputs(rng) for _ in range(self.cases)]
        return [self._case(arguments) for arguments in [*drawn, *self.edges]]

    def with_mistakes(self, cases: Sequence[Case]) -> list[Case]:
        """Add to cases what the known mistakes give, where it is not right."""
        return [
            case._replace(mistakes=self._wrong(case.arguments, case.answer))
            for case in cases
        ]

    def _case(self, values: tuple[Any, ...]) -> Case:
        name = self.function.__name__
        check(
            type(values) is tuple,
            f"{name}: the inputs of a case",
            "be a tuple of arguments",
            repr(values),
        )
        arguments = encode(values)
        right, _ = call(self.function, arguments)
        check(not right.why, f"{name}: the solution", "have an answer", right.why)
        return Case(arguments, right.value, {})

    def _wrong(self, arguments: Any, answer: Any) -> dict[str, Outcome]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            outcomes = {
                mistake: call(wrong.function, arguments)[0]
                for mistake, wrong in self.mistakes.items()
            }
        return {
            mistake: outcome
            for mistake, outcome in outcomes.items()
            if differ(answer, outcome, self.rtol)
        }


class Register:
    """The decorators of an instructor's notebook, and what they were given."""

    def __init__(self) -> None:
        self.recipes: dict[str, Recipe] = {}

    def task(
        self,
        function: Function,
        *,
        cases: int = 4,
        edges: Sequence[tuple[Any, ...]] = (),
        rtol: float | None = None,
        without: Sequence[str] = (),
    ) -> Callable[[Function], Function]:
        """Let the decorated function draw the inputs of a task."""

        def decorate(inputs: Function) -> Function:
            name = function.__name__
            check(name not in self.recipes, "task", "be defined once", name)
            self.recipes[name] = Recipe(function, inputs, cases, edges, rtol, without)
            return inputs

        return decorate

    def mistake(self, function: Function, hint: str) -> Callable[[Function], Function]:
        """Let the decorated function be a known mistake of a task."""

        def decorate(wrong: Function) -> Function:
            recipe = self.recipes.get(function.__name__)
            check(recipe is not None, "mistake", "follow its task", function)
            assert recipe is not None
            known = recipe.mistakes
            new = wrong.__name__ not in known
            check(new, "mistake", "have a name of its own", wrong.__name__)
            known[wrong.__name__] = Mistake(wrong, hint)
            return wrong

        return decorate


@dataclass(frozen=True)
class Assignment:
    """An instructor's notebook that was read.

    Attributes:
        name: the name of the assignment and of its notebook.
        notebook: the notebook itself.
        recipes: how the cases of each task are made.
        points: what each task is worth.
    """

    name: str
    notebook: NotebookNode
    recipes: dict[str, Recipe]
    points: dict[str, float]

    def visible(self, variants: int = VARIANTS) -> str:
        """Return the visible cases of all tasks, in all variants, as one text."""
        return pack(
            {
                name: (
                    recipe.task,
                    [
                        recipe.with_mistakes(recipe.make(self.rng(name, i)))
                        for i in range(variants)
                    ],
                )
                for name, recipe in self.recipes.items()
            }
        )

    def hidden(self, student: str, secret: str) -> dict[str, list[Case]]:
        """Return the hidden cases of a student for each task, without mistakes."""
        return {
            name: recipe.make(self.rng(name, student, secret))
            for name, recipe in self.recipes.items()
        }

    def rng(self, *words: str | int) -> np.random.Generator:
        """Return a generator that is seeded by the assignment and by words."""
        text = json.dumps([self.name, *words])
        digest = hashlib.sha256(text.encode()).digest()
        return np.random.default_rng(int.from_bytes(digest))


def read(file: Path) -> Assignment:
    """Read an instructor's notebook, and run its code."""
    try:
        notebook = nbformat.read(file, as_version=4)
    except (ValueError, OSError, nbformat.ValidationError) as error:
        why = str(error).partition("\n")[0]
        raise ValueError(f"{file} must be a notebook; {why}.") from None
    for i, cell in enumerate(notebook.cells):
        _check_marks(f"{file.name}, {place(i, cell)}", cell.source)
    register = Register()
    namespace = {
        "__name__": "__main__",
        "task": register.task,
        "mistake": register.mistake,
    }
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            _run(f"{file.name}, {place(i, cell)}", cell.source, namespace)
    points = {
        cell.metadata.nbgrader.grade_id: float(cell.metadata.nbgrader.points)
        for cell in notebook.cells
        if is_test(cell)
    }
    check(
        points.keys() == register.recipes.keys(),
        f"{file.name}: the ids of its test cells",
        f"be the names of its tasks ({', '.join(register.recipes)})",
        ", ".join(points) or "none",
    )
    return Assignment(file.stem, notebook, register.recipes, points)


def role(cell: NotebookNode, name: str) -> Any:
    """Return an entry of a cell's nbgrader metadata, ``None`` if it has none."""
    return cell.metadata.get("nbgrader", {}).get(name)


def place(i: int, cell: NotebookNode) -> str:
    """Return where a cell is, for people, who count from one; or rather its id."""
    name = role(cell, "grade_id")
    return f"cell {i + 1} ({name})" if name else f"cell {i + 1}"


def is_test(cell: NotebookNode) -> bool:
    """Tell whether a cell holds the test of a task."""
    return bool(role(cell, "grade") and not role(cell, "solution"))


def _check_marks(where: str, source: str) -> None:
    """Refuse a cell in which the marks around what is not handed out do not match."""
    begun = ""
    for line in source.splitlines():
        found = MARK.search(line)
        if found is None:
            continue
        edge, what = found.groups()
        end = f"### END {begun}"
        if edge == "BEGIN":
            check(not begun, where, f"have {end} before {found[0]}", "none")
            begun = what
        else:
            rule = end if begun else f"### BEGIN {what}"
            check(begun == what, where, f"have {rule} before {found[0]}", "none")
            begun = ""
    check(not begun, where, f"have ### END {begun}", "none")


def _run(where: str, source: str, namespace: dict[str, Any]) -> None:
    try:
        with redirect_stdout(io.StringIO()):
            exec(compile(source, where, "exec"), namespace)
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"{where} must run; {kind}: {error}") from error
