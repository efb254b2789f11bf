"""A course: the folder in which a teacher keeps releases, submissions and marks."""

import csv
import io
import os
import secrets
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config

from dlcore.checks import check

BOOK = Path(__file__).resolve().parents[1]
ASSIGNMENTS = BOOK / "book" / "assignments"
CONFIG = "nbgrader_config.py"
SECRET = "secret.txt"
STUDENTS = "students.csv"
ALIASES = {
    "username": "id",
    "id_number": "id",
    "surname": "last_name",
    "email_address": "email",
}

SETTINGS = '''\
"""Settings of nbgrader for this course. Its exchange and its formgrader work as usual.

Grade with `python -m classroom grade`: it runs students' code in a box. What follows
keeps `nbgrader autograde`, which does not, from running it, or from removing anything, and
`nbgrader generate_feedback` from replacing the pages of `python -m classroom feedback`.
"""

from nbconvert.exporters import NotebookExporter


class Refuse(NotebookExporter):
    def __init__(self, *args, **kwargs):
        raise RuntimeError("Use: python -m classroom grade, or feedback")


c = get_config()
c.CourseDirectory.course_id = {course!r}
c.Autograde.exporter_class = Refuse
c.GenerateFeedback.exporter_class = Refuse
'''


class Person(NamedTuple):
    """A student, as the list says."""

    id: str
    first_name: str
    last_name: str
    email: str


@dataclass(frozen=True)
class Course:
    """The folder of a course, laid out as nbgrader expects it."""

    root: Path

    @property
    def database(self) -> str:
        """The address of the gradebook."""
        return f"sqlite:///{self.root / 'gradebook.db'}"

    @property
    def secret(self) -> str:
        """What, with a student's name, seeds the hidden cases; it is never released."""
        return (self.root / SECRET).read_text().strip()

    @contextmanager
    def gradebook(self) -> Iterator[Gradebook]:
        """Open the gradebook, and close it at the end."""
        with quietly(), Gradebook(self.database, self.root.name) as opened:
            yield opened

    def folder(self, step: str, assignment: str, student: str = ".") -> Path:
        """Return the folder of a step: source, release, submitted, autograded, feedback."""
        return self.root / step / student / assignment

    def notebook(self, step: str, assignment: str, student: str = ".") -> Path:
        """Return the notebook of an assignment in a step."""
        return self.folder(step, assignment, student) / f"{assignment}.ipynb"

    def settings(self) -> Config:
        """Return the settings with which nbgrader's converters find this folder."""
        config = Config()
        config.CourseDirectory.root = str(self.root)
        config.CourseDirectory.course_id = self.root.name
        config.CourseDirectory.db_url = self.database
        return config

    def directory(self, assignment: str, student: str = "*") -> CourseDirectory:
        """Return nbgrader's view of one assignment of this course."""
        config = self.settings()
        config.CourseDirectory.assignment_id = assignment
        config.CourseDirectory.student_id = student
        return CourseDirectory(config=config)

    @property
    def has_list(self) -> bool:
        """Whether the teacher gave a list of students."""
        return (self.root / STUDENTS).is_file()

    def students(self) -> list[str]:
        """Return the ids of all students, in order."""
        return [person.id for person in self.people()]

    def people(self) -> list[Person]:
        """Return all students, in the order of their ids."""
        with self.gradebook() as gradebook:
            return sorted(
                Person(
                    student.id,
                    student.first_name or "",
                    student.last_name or "",
                    student.email or "",
                )
                for student in gradebook.students
            )


def open_course(root: Path) -> Course:
    """Return the course in a folder that ``start`` made."""
    ok = (root / SECRET).is_file() and (root / CONFIG).is_file()
    hint = f"Make one with: python -m classroom start {root}"
    check(ok, "COURSE", "be the folder of a course", str(root), hint)
    check_unseen("COURSE", root)
    return Course(root.resolve())


def check_unseen(what: str, place: Path) -> None:
    """Refuse a place that students' code can see in its box, or that Python is in."""
    from classroom.box import mounted

    own = [Path(sys.prefix)] if sys.prefix != sys.base_prefix else []
    parents = [place.resolve(), *place.resolve().parents]
    seen = [one for one in [*mounted(), *own] if one.resolve() in parents]
    rule = "lie where no student's code can see it"
    hint = f"{seen[0]} is seen by it." if seen else ""
    check(not seen, what, rule, str(place), hint)


def start(root: Path, students: Path | None = None) -> Course:
    """Make the folder of a course, or add students to it. What is there stays."""
    root = root.resolve()
    outside = root != BOOK and BOOK not in root.parents
    hint = "Marks and submissions are no part of the book."
    check(outside, "COURSE", "lie outside the book's folder", str(root), hint)
    check_unseen("COURSE", root)
    rows = _read_students(students) if students else []
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if students and students.resolve() != root / STUDENTS:
        shutil.copyfile(students, root / STUDENTS)
    _keep(root / SECRET, secrets.token_hex(32) + "\n", 0o600)
    _keep(root / CONFIG, SETTINGS.format(course=root.name), 0o644)
    course = Course(root)
    with _programs_in_reach():
        enrol(course, rows)
    return course


def enrol(course: Course, rows: Iterable[dict[str, str]]) -> None:
    """Enter students into the gradebook, or change what it says about them."""
    with course.gradebook() as gradebook:
        for row in rows:
            more = {key: row[key] for key in Person._fields[1:] if row.get(key)}
            gradebook.update_or_create_student(row["id"], **more)


def is_name(name: str) -> bool:
    """Tell whether a name could be the name of a folder everywhere."""
    return (
        bool(name)
        and len(os.fsencode(name)) <= 100
        and all(c.isalnum() or c in "-_.@" for c in name)
        and name[0].isalnum()
    )


def check_name(what: str, name: str) -> None:
    """Refuse a name that could not be the name of a folder everywhere."""
    rule = "be made of letters, digits and -_.@, and begin with one of the first two"
    check(is_name(name), what, rule, repr(name[:100]))


def unlisted(course: Course, students: Path) -> list[str]:
    """Return the students of a course who are not on a list."""
    listed = {row["id"] for row in _read_students(students)}
    return [one for one in course.students() if one not in listed]


def _read_students(file: Path) -> list[dict[str, str]]:
    """Read a list of students, in which commas, semicolons or tabs part the columns."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        titles = text.partition("\n")[0]
        between = max(",;\t", key=titles.count)
        table = csv.DictReader(
            io.StringIO(text), delimiter=between, skipinitialspace=True, restval=""
        )
        table.fieldnames = [_column(name) for name in table.fieldnames or []]
        rows = list(table)
    except (UnicodeDecodeError, csv.Error):
        hint = 'In a spreadsheet, save it as "CSV UTF-8".'
        check(False, str(file), "be a table in UTF-8", "something else", hint)
        raise
    ok = bool(rows) and table.fieldnames.count("id") == 1
    rule = "be a table with the columns id, and perhaps first_name, last_name, email"
    check(ok, str(file), rule, repr(titles[:200]) if rows else "no rows")
    for row in rows:
        check_name(f"{file}: id", row["id"])
    ids = Counter(row["id"] for row in rows)
    twice = ", ".join(one for one, number in ids.items() if number > 1)
    check(not twice, str(file), "have each id once", f"{twice} more than once")
    return rows


def _column(title: str) -> str:
    """Return what a column is called here; Moodle, for one, has words of its own."""
    name = title.strip().casefold().replace(" ", "_")
    return ALIASES.get(name, name)


@contextmanager
def quietly() -> Iterator[None]:
    """Keep to ourselves what nbgrader's libraries warn its developers of."""
    with warnings.catch_warnings():
        for kind in (SAWarning, DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        yield


@contextmanager
def _programs_in_reach() -> Iterator[None]:
    """Let nbgrader find alembic, which it calls by name when it makes a gradebook."""
    before = os.environ.get("PATH", os.defpath)
    here = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([here, before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _keep(file: Path, text: str, mode: int) -> None:
    """Write a file that is not there yet."""
    if not file.exists():
        file.touch(mode=mode)
        file.write_text(text)
