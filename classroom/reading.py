"""Look at a submitted notebook before anything is run.

Of a notebook only the cells' kinds, sources and ids are kept.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from nbgrader.utils import parse_utc

from classroom.course import Course
from classroom.submissions import STAMP, read_file
from dlcore._check import check

MAX_CELLS = 2_000
MAX_SOURCE = 1_000_000  # characters of one cell

MISSING, CORRUPT, REFUSED = "missing", "corrupt", "refused"


class Cell(NamedTuple):
    """What is kept of a cell of a submitted notebook."""

    kind: str
    source: str
    grade_id: str


@dataclass(frozen=True)
class Submission:
    """A submitted notebook, or why there is none.

    Attributes:
        status: empty if the notebook can be run; otherwise missing, corrupt or refused.
        note: a sentence about the status.
        digest: changes when the submission does.
        cells: the cells of the notebook.
        flags: what the teacher may want to look at.
    """

    status: str = ""
    note: str = ""
    digest: str = ""
    cells: tuple[Cell, ...] = ()
    flags: tuple[str, ...] = ()


def examine(course: Course, assignment: str, student: str) -> Submission:
    """Read the submission of a student, as far as it can be read."""
    folder = course.folder("submitted", assignment, student)
    try:
        if any(place.is_symlink() for place in (folder.parent, folder)):
            raise ValueError("The folder is a link.")
        if not folder.is_dir():
            return Submission(MISSING, "Nothing was handed in.")
        file, flags = _find(folder, assignment)
        if file is None:
            return Submission(MISSING, "There is no notebook.")
        data = read_file(file)
    except (ValueError, OSError) as error:
        return Submission(REFUSED, str(error), _digest(str(error).encode()))
    try:
        notebook = json.loads(data)
        cells = _cells(notebook)
    except (ValueError, RecursionError) as error:
        note = f"It cannot be read as a notebook: {str(error)[:200]}"
        return Submission(CORRUPT, note, _digest(data))
    more = [*flags, *_look(notebook, cells)]
    return Submission("", "", _digest(data), tuple(cells), tuple(more))


def handed_in(course: Course, assignment: str, student: str) -> datetime | None:
    """Return when a submission came, without a time zone, if its folder says so."""
    folder = course.folder("submitted", assignment, student)
    try:
        return parse_utc(read_file(folder / STAMP).decode().strip())
    except Exception:  # whatever a strange text does to the parser
        return None


def submitted(course: Course, assignment: str) -> list[str]:
    """Return the students who have a folder for this assignment."""
    root = course.root / "submitted"
    if not root.is_dir():
        return []
    return sorted(
        place.name
        for place in root.iterdir()
        if os.path.lexists(place / assignment)
    )


def _find(folder: Path, assignment: str) -> tuple[Path | None, list[str]]:
    """Find the notebook of a submission; a single one may have another name."""
    file = folder / f"{assignment}.ipynb"
    if os.path.lexists(file):
        return file, []
    others = sorted(folder.glob("*.ipynb"))
    if len(others) > 1:
        raise ValueError(
            "There are several notebooks, none with the right name."
        )
    if others:
        return others[0], [f"the notebook is called {others[0].name[:80]!r}"]
    return None, []


def _cells(notebook: Any) -> list[Cell]:
    """Return the cells of a notebook of format 4; refuse what is none."""
    ok = type(notebook) is dict and type(notebook.get("cells")) is list
    check(ok, "A notebook", "have cells", "something else")
    few = len(notebook["cells"]) <= MAX_CELLS
    check(few, "A notebook", f"have ≤ {MAX_CELLS} cells", "more")
    return [_cell(cell) for cell in notebook["cells"]]


def _cell(cell: Any) -> Cell:
    check(
        type(cell) is dict, "A cell", "have a kind and a source", "no entries"
    )
    kind, source = cell.get("cell_type"), cell.get("source")
    if type(source) is list and all(type(line) is str for line in source):
        source = "".join(source)
    ok = type(kind) is str and type(source) is str
    check(ok, "A cell", "have a kind and a source", "others")
    short = len(source) <= MAX_SOURCE
    check(short, "A cell", f"have ≤ {MAX_SOURCE:,} characters", len(source))
    role = cell.get("metadata")
    role = role.get("nbgrader") if type(role) is dict else None
    grade_id = role.get("grade_id") if type(role) is dict else None
    clean = source.encode("utf-8", "replace").decode()
    return Cell(kind, clean, grade_id if type(grade_id) is str else "")


def _look(notebook: dict[str, Any], cells: list[Cell]) -> Iterator[str]:
    """Yield what is unusual about a notebook that can be read."""
    ids = [cell.grade_id for cell in cells if cell.grade_id]
    if len(set(ids)) < len(ids):
        yield "cells were copied, ids appear twice"
    kernel = notebook.get("metadata")
    for key in ("kernelspec", "language"):
        kernel = kernel.get(key) if type(kernel) is dict else None
    if type(kernel) is str and kernel.lower() != "python":
        yield f"the kernel's language is {kernel[:40]!r}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
