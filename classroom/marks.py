"""Marks: for every student and assignment a status beside the points."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from classroom.course import Course
from classroom.gradebook import Mark, mark
from classroom.reading import MISSING, examine
from classroom.results import load

NOT_RUN = "not graded yet"


class Row(NamedTuple):
    """What is known about one student and one assignment.

    Attributes:
        student: the id of the student.
        assignment: the name of the assignment.
        status: what became of the submission.
        points: tasks and written answers together, as far as they have marks.
        most: what the assignment is worth.
        written: "waits" if an answer waits for a mark by hand.
        note: a sentence about the status.
        flags: what the teacher may want to look at.
    """

    student: str
    assignment: str
    status: str
    points: float
    most: float
    written: str
    note: str
    flags: str


def marks(course: Course, name: str = "") -> list[Row]:
    """Return the marks of everyone, of one assignment or of all."""
    students = course.students()
    with course.gradebook() as gradebook:
        return [
            _row(
                course,
                student,
                assignment.name,
                assignment.max_score,
                mark(gradebook, assignment.name, student),
            )
            for assignment in gradebook.assignments
            if name in ("", assignment.name)
            for student in students
        ]


def export(rows: Iterable[Row], file: Path) -> None:
    """Write marks as a table for a spreadsheet."""
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(Row._fields)
        writer.writerows([_unarmed(value) for value in row] for row in rows)


def _row(
    course: Course,
    student: str,
    assignment: str,
    most: float,
    known: Mark | None,
) -> Row:
    result = load(course, assignment, student)
    points = known.score if known else 0.0
    if result is None:
        there = examine(course, assignment, student).status != MISSING
        status = NOT_RUN if there else MISSING
        return Row(student, assignment, status, points, most, "", "", "")
    written = "waits" if known and known.waiting else ""
    flags = "; ".join(result.flags)
    return Row(
        student,
        assignment,
        result.status,
        points,
        most,
        written,
        result.note,
        flags,
    )


def _unarmed(value: str | float) -> str | float:
    """Keep a spreadsheet from taking a text for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
