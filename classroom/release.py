"""Make the student's version of an assignment: no solutions, visible cases inside."""

import shutil
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
    NbGraderPreprocessor,
    SaveCells,
)
from traitlets import List, Unicode

from classroom.assignment import Assignment, read, role
from classroom.course import ASSIGNMENTS, Course, quietly
from dlcore.checks import check

EMPTY = 'Checks("", student)'  # in the instructor's notebook


class FillIn(NbGraderPreprocessor):
    """nbgrader's step that puts the visible cases into the notebook."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Give the locked cell that makes the checks its text."""
        cell = checks_cell(nb)
        cell.source = cell.source.replace(
            EMPTY, f'Checks("{resources["visible"]}", student)'
        )
        cell.metadata["jupyter"] = {"source_hidden": True}
        return nb, resources


class Tidy(NbGraderPreprocessor):
    """nbgrader's step that takes away the blank lines before what was hidden."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Let no cell end with blank lines."""
        for cell in nb.cells:
            cell.source = cell.source.rstrip()
        return nb, resources


class Release(GenerateAssignment):
    """nbgrader's converter with two more steps, which keeps what went wrong."""

    failure: BaseException | None = None
    visible = Unicode(help="The visible cases, packed.")
    preprocessors = List(
        [
            LockCells,
            ClearSolutions,
            ClearOutput,
            FillIn,
            CheckCellMetadata,
            ComputeChecksums,
            SaveCells,
            ClearHiddenTests,
            Tidy,
            ComputeChecksums,
            CheckCellMetadata,
        ]
    )

    def init_single_notebook_resources(self, notebook_filename: str) -> dict[str, Any]:
        """Hand the visible cases on to the steps."""
        resources = super().init_single_notebook_resources(notebook_filename)
        return {**resources, "visible": self.visible}

    def convert_single_notebook(self, notebook_filename: str) -> None:
        """Take the steps."""
        try:
            super().convert_single_notebook(notebook_filename)
        except Exception as error:
            self.failure = error.__context__ or error
            raise


def checks_cell(notebook: NotebookNode) -> NotebookNode:
    """Return the locked cell in which an instructor's notebook makes its checks."""
    cells = [
        cell for cell in notebook.cells if EMPTY in cell.source and role(cell, "locked")
    ]
    rule = f"have one locked cell with {EMPTY}"
    check(len(cells) == 1, "An assignment", rule, len(cells))
    return cells[0]


def source(course: Course, name: str) -> Path:
    """Return the instructor's notebook in a course; at first it is the book's."""
    file = course.notebook("source", name)
    if not file.exists():
        original = ASSIGNMENTS / f"{name}.ipynb"
        known = ", ".join(sorted(f.stem for f in ASSIGNMENTS.glob("*.ipynb")))
        hint = f"Your own notebook goes to {file}."
        rule = f"be one of the book's ({known}) or your own"
        check(original.is_file(), "ASSIGNMENT", rule, repr(name), hint)
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, file)
    return file


def release(course: Course, name: str) -> Path:
    """Make the student's version of an assignment, and enter it into the gradebook."""
    return release_read(course, read(source(course, name)))


def release_read(course: Course, assignment: Assignment) -> Path:
    """Make the student's version of an assignment that was read."""
    checks_cell(assignment.notebook)
    converter = Release(
        coursedir=course.directory(assignment.name),
        visible=assignment.visible(),
        force=True,
    )
    try:
        with quietly():
            converter.start()
    except NbGraderException as error:
        why = converter.failure or error
        raise ValueError(f"{assignment.name} cannot be released. {why}") from None
    return course.notebook("release", assignment.name)
