"""Look at a submitted notebook before anything is run.

Of a notebook only the cells' kinds, sources and ids are kept. Another program takes it
apart, within limits.
"""

import hashlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from nbgrader.utils import parse_utc

from classroom.course import BOOK, Course
from classroom.submissions import REFUSED_NOTE, STAMP, printable, read_file

READER = Path(__file__).with_name("reader.py")
MAX_NOTE = 500  # characters of a reason
PATIENCE = 120  # seconds on the clock for one notebook

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


class Reader:
    """A program with limits that reads what strangers wrote; use it in a ``with``."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def cells(self, data: bytes) -> tuple[tuple[Cell, ...], tuple[str, ...]]:
        """Return the cells of a notebook, and what is unusual about it."""
        found = self._ask({"bytes": len(data)}, data)
        return tuple(Cell(*cell) for cell in found["cells"]), tuple(found["flags"])

    def uses(
        self, sources: Iterable[str], names: Mapping[str, Sequence[str]]
    ) -> dict[str, list[str]]:
        """Return for each function those of its dotted names that its code uses."""
        found = self._ask({"sources": list(sources), "names": dict(names)})
        uses: dict[str, list[str]] = found["uses"]
        return uses

    def _ask(self, request: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
        """Return the answer; raise ``ValueError`` with a sentence if it is refused.

        If the program itself has ended, that is nobody's fault, and no such error.
        """
        process = self._process = self._process or subprocess.Popen(
            [sys.executable, "-I", "-B", str(READER), str(BOOK)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n" + data)
            process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            in_time = selector.select(PATIENCE)
        if not in_time:
            self._end()
            raise ValueError("It takes too long to read.")
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            self._end()
            raise RuntimeError("The program that reads notebooks has ended.")
        answer: dict[str, Any] = json.loads(line)
        if "refused" in answer:
            raise ValueError(answer["refused"])
        return answer

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def examine(
    course: Course, assignment: str, student: str, reader: Reader | None = None
) -> Submission:
    """Read the submission of a student, as far as it can be read."""
    if reader is None:
        with Reader() as reader:
            return examine(course, assignment, student, reader)
    folder = course.folder("submitted", assignment, student)
    try:
        if any(place.is_symlink() for place in (folder.parent, folder)):
            raise ValueError("The folder is a link.")
        if not folder.is_dir():
            return Submission(MISSING, "Nothing was handed in.")
        refused = _refused(folder)
        file, flags = _find(folder, assignment)
        if file is None:
            if refused:
                raise ValueError(refused)
            return Submission(MISSING, "There is no notebook.")
        data = read_file(file)
    except (ValueError, OSError) as error:
        return Submission(REFUSED, str(error), _digest(str(error).encode()))
    if refused:
        flags.append(f"something later was refused: {refused}")
    try:
        cells, more = reader.cells(data)
    except ValueError as error:
        note = f"It cannot be read as a notebook: {error}"
        return Submission(CORRUPT, note, _digest(data))
    digest = _digest(data + refused.encode())
    return Submission("", "", digest, cells, (*flags, *more))


def is_there(course: Course, assignment: str, student: str) -> bool:
    """Tell whether a student handed something in, whatever it is."""
    folder = course.folder("submitted", assignment, student)
    return os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir()))


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
        place.name for place in root.iterdir() if os.path.lexists(place / assignment)
    )


def _refused(folder: Path) -> str:
    """Return why something that was handed in is not in the folder, if it is so."""
    if not os.path.lexists(folder / REFUSED_NOTE):
        return ""
    text = read_file(folder / REFUSED_NOTE).decode(errors="replace")
    return printable(text.strip()[:MAX_NOTE])


def _find(folder: Path, assignment: str) -> tuple[Path | None, list[str]]:
    """Find the notebook of a submission; a single one may have another name."""
    file = folder / f"{assignment}.ipynb"
    if os.path.lexists(file):
        return file, []
    others = sorted(folder.glob("*.ipynb"))
    if len(others) > 1:
        raise ValueError("There are several notebooks, none with the right name.")
    if others:
        return others[0], [f"the notebook is called {others[0].name[:80]!r}"]
    return None, []


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
