"""Marks: for every student and assignment a status beside the points."""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from classroom.course import Course, Person
from classroom.gradebook import Sheet, sheets
from classroom.reading import MISSING, examine, is_there
from classroom.results import Result, folder, load
from dlcore.checks import check

NOT_RUN = "not graded yet"


class Row(NamedTuple):
    """What is known about one student and one assignment.

    Attributes:
        student: the id of the student.
        first_name: the student's first name.
        last_name: the student's last name.
        email: the student's address.
        assignment: the name of the assignment.
        status: what became of the submission.
        points: tasks and written answers together, as far as they have marks.
        most: what the assignment is worth.
        written: "waits" if an answer waits for a mark by hand.
        note: a sentence about the status.
        flags: what the teacher may want to look at.
        mistakes: the known mistakes that were recognised.
        tasks: the points of each task, and of each written answer that has a mark.
    """

    student: str
    first_name: str
    last_name: str
    email: str
    assignment: str
    status: str
    points: float
    most: float
    written: str
    note: str
    flags: str
    mistakes: str
    tasks: Mapping[str, float]

    @property
    def total(self) -> str:
        """The points and what they are of."""
        return f"{self.points:g} of {self.most:g}"

    @property
    def remark(self) -> str:
        """Everything that is said about the submission."""
        said = (self.note, self.flags, self.mistakes)
        return "; ".join(part for part in said if part)


def marks(course: Course, name: str = "") -> list[Row]:
    """Return the marks of everyone, of one assignment or of all."""
    with course.gradebook() as gradebook:
        known = [assignment.name for assignment in gradebook.assignments]
    check(name in ("", *known), "ASSIGNMENT", "have been released", repr(name))
    students = course.students()
    return [
        row
        for one in known
        if name in ("", one)
        for row in rows(
            course, one, {who: _known(course, one, who) for who in students}
        )
    ]


def rows(
    course: Course, assignment: str, results: Mapping[str, Result | None]
) -> list[Row]:
    """Return the marks of some students, whose results are at hand.

    Args:
        course: the course.
        assignment: the name of the assignment.
        results: what is known of each student; ``None`` if nothing was graded.
    """
    with course.gradebook() as gradebook:
        most = gradebook.find_assignment(assignment).max_score
        known = sheets(gradebook, assignment)
    persons = {person.id: person for person in course.people()}
    return [
        _row(
            assignment,
            result or _unseen(course, assignment, student),
            persons.get(student, Person(student, "", "", "")),
            known.get(student, Sheet()),
            most,
        )
        for student, result in results.items()
    ]


def summary(rows: Sequence[Row]) -> str:
    """Return a sentence about the marks of one assignment."""
    counted = Counter(row.status for row in rows).most_common()
    statuses = ", ".join(f"{count} {status}" for status, count in counted)
    there = [row for row in rows if row.status != MISSING]
    said = [f"{len(rows)} students: {statuses or 'nobody'}"]
    if there:
        mean = sum(row.points for row in there) / len(there)
        said.append(f"mean {mean:.1f} of {there[0].most:g}")
    waiting = sum(bool(row.written) for row in rows)
    if waiting:
        said.append(f"{waiting} {_written(waiting)}")
    return "; ".join(said)


def _written(count: int) -> str:
    return "written answer waits" if count == 1 else "written answers wait"


def export(rows: Sequence[Row], file: Path) -> None:
    """Write marks as a table for a spreadsheet; tasks of one assignment have columns."""
    single = len({row.assignment for row in rows}) == 1
    tasks = [*dict.fromkeys(t for row in rows for t in row.tasks)] * single
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow([*Row._fields[:-1], *tasks])
        writer.writerows(_line(row, tasks) for row in rows)


def _line(row: Row, tasks: Iterable[str]) -> list[str | float]:
    values = [*row[:-1], *(row.tasks.get(task, "") for task in tasks)]
    return [_unarmed(value) for value in values]


def _known(course: Course, assignment: str, student: str) -> Result | None:
    """Return the result of a submission; what is new since has none."""
    result = load(course, assignment, student)
    graded = folder(course, assignment) / f"{student}.json"
    came = course.notebook("submitted", assignment, student)
    try:
        new = came.lstat().st_mtime > graded.stat().st_mtime
    except OSError:
        new = False
    return None if new else result


def _unseen(course: Course, assignment: str, student: str) -> Result:
    """Return the result of a submission that was not graded, or is not there."""
    if is_there(course, assignment, student):
        return Result(student, NOT_RUN)
    return Result(student, MISSING, examine(course, assignment, student).note)


def _row(
    assignment: str, result: Result, person: Person, sheet: Sheet, most: float
) -> Row:
    mistakes = [f"{task}: {name}" for task, name in result.mistakes.items()]
    return Row(
        *person,
        assignment,
        result.status,
        sheet.mark.score,
        most,
        "waits" if sheet.mark.waiting else "",
        result.note,
        "; ".join(result.flags),
        "; ".join(mistakes),
        {
            name: entry.score
            for name, entry in sheet.entries.items()
            if entry.by_hand or not entry.waits
        },
    )


def _unarmed(value: str | float) -> str | float:
    """Keep a spreadsheet from taking a text for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
