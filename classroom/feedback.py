"""Give each student a page with marks, results and hints."""

import hashlib
import json
import os
import queue
import re
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from classroom.course import Course
from classroom.facts import (
    AGAIN,
    EMPTY,
    MARKED,
    RIGHT,
    UNSEEN,
    WAITS,
    WRONG,
    Facts,
    Task,
)
from classroom.gradebook import Entry, Sheet, sheets
from classroom.printer import Printer
from classroom.reading import CORRUPT, REFUSED
from classroom.results import GRADED, Result, load
from classroom.submissions import write_whole
from dlcore.assignment.judging import NOT_WRITTEN
from dlcore.checks import check

CODE = ("facts.py", "page.css", "page.py", "typeset.py")  # what makes a page
DIGEST = re.compile(r'<meta name="digest" content="(\w+)">')
HEADING = re.compile(r"^#+ +(.*?)(?: *\([^()]*points?[^()]*\))?$", re.M)

WRITTEN, SIMPLIFIED, UNCHANGED = "written", "simplified", "unchanged"
UNREAD = (CORRUPT, REFUSED)  # there is no notebook to show


class Given(NamedTuple):
    """What became of a student's page.

    Attributes:
        student: the id of the student.
        page: the page, ``None`` if there is none.
        what: written, simplified, unchanged, or why there is no page.
    """

    student: str
    page: Path | None
    what: str


class Outline(NamedTuple):
    """What the student's version says about an assignment.

    Attributes:
        title: its first heading.
        headings: the headings above its tasks and written answers, by their ids.
        answers: the ids of the cells in which each of them is answered.
    """

    title: str
    headings: dict[str, str]
    answers: dict[str, list[str]]


def feedback(
    course: Course,
    assignment: str,
    students: Sequence[str] = (),
    again: bool = False,
    jobs: int = 2,
) -> Iterator[Given]:
    """Write the pages of students whose submissions were graded.

    Args:
        course: the course.
        assignment: the name of the assignment.
        students: whose pages to write, by default everyone's.
        again: write also what has not changed.
        jobs: how many pages to make at a time.

    Yields:
        What became of each page, in order.
    """
    press = _Press(course, assignment, again)
    waiting: deque[Future[Given] | Given] = deque()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for student in students or graded(course, assignment):
                waiting.append(press.begin(student, pool))
                if len(waiting) > 2 * jobs:
                    yield _wait(waiting.popleft())
            yield from map(_wait, waiting)
        finally:
            pool.shutdown(cancel_futures=True)
            press.close()


def graded(course: Course, assignment: str) -> list[str]:
    """Return the students who have a graded notebook."""
    pattern = f"*/{assignment}/{assignment}.ipynb"
    files = (course.root / "autograded").glob(pattern)
    return sorted(file.parents[1].name for file in files)


class _Press:
    """Everything that the pages of one assignment need."""

    def __init__(self, course: Course, assignment: str, again: bool) -> None:
        self._course = course
        self._assignment = assignment
        self._again = again
        self._outline = outline(course.notebook("release", assignment))
        with course.gradebook() as gradebook:
            self._sheets = sheets(gradebook, assignment)
        self._names = {
            one.id: f"{one.first_name} {one.last_name}".strip()
            for one in course.people()
        }
        self._code = _code()
        self._idle: queue.SimpleQueue[Printer] = queue.SimpleQueue()

    def begin(self, student: str, pool: ThreadPoolExecutor) -> "Future[Given] | Given":
        """Have a page made, unless the one that is there is up to date."""
        try:
            facts = self._facts(student)
        except (ValueError, OSError) as error:
            return Given(student, None, str(error))
        folder = self._course.folder("feedback", self._assignment, student)
        file = folder / f"{self._assignment}.html"
        digest = _digest(self._code, facts)
        if not self._again and _noted(file) == digest:
            os.utime(file)  # it is newer than the graded notebook
            return Given(student, file, UNCHANGED)
        return pool.submit(self._make, student, file, facts, digest)

    def close(self) -> None:
        """End the processes."""
        while not self._idle.empty():
            self._idle.get().close()

    def _make(self, student: str, file: Path, facts: Facts, digest: str) -> Given:
        """Make a page and write it; this is what several threads do at a time."""
        try:
            printer = self._idle.get_nowait()
        except queue.Empty:
            printer = Printer()
        try:
            made, simple = printer.print(facts, digest)
            write_whole(file, made.encode("utf-8", "replace"))
        except (ValueError, OSError) as error:
            return Given(student, None, str(error))
        finally:
            self._idle.put(printer)
        return Given(student, file, SIMPLIFIED if simple else WRITTEN)

    def _facts(self, student: str) -> Facts:
        """Gather what is known about a submission."""
        sheet = self._sheets.get(student)
        notebook = self._course.notebook("autograded", self._assignment, student)
        known = sheet is not None and notebook.is_file()
        check(known, "It", "have been graded", "no result")
        assert sheet is not None
        result = load(self._course, self._assignment, student)
        result = result or Result(student, GRADED)
        graded = datetime.fromtimestamp(notebook.stat().st_mtime, UTC)
        return Facts(
            title=self._outline.title or self._assignment,
            student=self._names.get(student) or student,
            came=_in_words(sheet.came) if sheet.came else "",
            graded=_in_words(graded),
            status=result.status,
            note=result.note,
            tasks=list(_tasks(self._outline, sheet, result)),
            notebook=""
            if result.status in UNREAD
            else notebook.read_text(encoding="utf-8"),
        )


def outline(release: Path) -> Outline:
    """Read what the student's version of an assignment has where."""
    check(release.is_file(), "ASSIGNMENT", "have been released", release.stem)
    title, heading, parts = "", "", list[str]()
    headings, answers = {}, {}
    for cell in json.loads(release.read_text(encoding="utf-8"))["cells"]:
        role = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "markdown" and not role.get("solution"):
            for heading in HEADING.findall("".join(cell["source"])):
                title = title or heading
        if role.get("solution"):
            parts.append(role["grade_id"])
        if role.get("grade"):
            headings[role["grade_id"]] = heading
            answers[role["grade_id"]] = parts
            parts = []
    return Outline(title, headings, answers)


def _tasks(found: Outline, sheet: Sheet, result: Result) -> Iterator[Task]:
    for name, heading in found.headings.items():
        if name not in sheet.entries:
            continue
        entry = sheet.entries[name]
        comments = [sheet.comments.get(part, "") for part in found.answers[name]]
        yield Task(
            name=name,
            title=heading,
            points=entry.score,
            most=entry.most,
            verdict=_verdict(name, entry, result),
            said=result.said.get(name, ""),
            comment="\n".join(filter(None, comments)),
        )


def _verdict(name: str, entry: Entry, result: Result) -> str:
    """Tell how an answer stands."""
    if entry.waits:
        return AGAIN if entry.by_hand else WAITS
    if entry.by_hand:
        return MARKED
    if result.status in UNREAD:
        return UNSEEN
    if result.said.get(name, NOT_WRITTEN).endswith(NOT_WRITTEN):
        return EMPTY
    return RIGHT if result.scores[name] > 0 else WRONG


def _in_words(time: datetime) -> str:
    """Return a time as the teacher's clock shows it; without a zone it is UTC."""
    here = time.replace(tzinfo=UTC).astimezone()
    return f"{here.day} {here:%B %Y, %H:%M %Z}"


def _code() -> str:
    """Return the code that makes pages."""
    here = Path(__file__).parent
    return "".join((here / name).read_text(encoding="utf-8") for name in CODE)


def _digest(code: str, facts: Facts) -> str:
    data = json.dumps([code, asdict(facts)])
    return hashlib.sha256(data.encode()).hexdigest()


def _noted(file: Path) -> str:
    """Return the digest that is noted in a page, empty if there is no such page."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            found = DIGEST.search(opened.read(2_000))
    except OSError:
        return ""
    return found[1] if found else ""


def _wait(one: Future[Given] | Given) -> Given:
    return one if isinstance(one, Given) else one.result()
