"""Write marks into nbgrader's gradebook, and read them from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy.orm import Query


class Mark(NamedTuple):
    """What the gradebook says about one submission."""

    score: float
    most: float
    waiting: bool  # for a mark by hand


class Entry(NamedTuple):
    """What the gradebook says about one task or written answer."""

    score: float
    most: float
    by_hand: bool
    waits: bool


@dataclass
class Sheet:
    """What the gradebook says about one student and one assignment.

    Attributes:
        came: when the submission was handed in, without a time zone.
        entries: the marks by the ids of their cells.
        comments: what was written by hand, by the ids of the cells it is about.
    """

    came: datetime | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)

    @property
    def mark(self) -> Mark:
        """All marks together."""
        entries = self.entries.values()
        return Mark(
            sum(entry.score for entry in entries),
            sum(entry.most for entry in entries),
            any(entry.waits for entry in entries),
        )


def record(
    gradebook: Gradebook,
    assignment: str,
    student: str,
    scores: Mapping[str, float],
    answers: Mapping[str, str],
    rewritten: bool,
    came: datetime | None = None,
) -> None:
    """Enter the marks of one submission, all of them or none.

    Marks that were given by hand stay.

    Args:
        gradebook: where to enter them.
        assignment: the name of the assignment.
        student: the id of the student.
        scores: the marks of the tasks.
        answers: the answers that the student changed, by the ids of their cells.
        rewritten: whether they may have changed since marks were given by hand.
        came: when it was handed in; by this the formgrader knows what is graded.
    """
    try:
        gradebook.update_or_create_student(student)
        submission = gradebook.update_or_create_submission(
            assignment, student, timestamp=came
        )
        (notebook,) = submission.notebooks
        for grade in notebook.grades:
            _set(grade, scores, answers, rewritten)
        for comment in notebook.comments:
            answered = comment.name in answers
            comment.auto_comment = None if answered else "No response."
        gradebook.db.commit()
    except BaseException:
        gradebook.db.rollback()
        raise


def _set(
    grade: Grade,
    scores: Mapping[str, float],
    answers: Mapping[str, str],
    rewritten: bool,
) -> None:
    """Enter the mark of one cell: a task, or an answer to be marked by hand."""
    written = grade.name not in scores and grade.name in answers
    grade.auto_score = None if written else scores.get(grade.name, 0.0)
    waits = grade.manual_score is None or grade.needs_manual_grade or rewritten
    grade.needs_manual_grade = written and waits


def mark(gradebook: Gradebook, assignment: str, student: str) -> Mark | None:
    """Return what the gradebook says about a submission, if it knows of one."""
    sheet = sheets(gradebook, assignment).get(student)
    return sheet.mark if sheet else None


def sheets(gradebook: Gradebook, assignment: str) -> dict[str, Sheet]:
    """Return the marks and comments of all who handed in, by student."""
    who = SubmittedAssignment.student_id
    rows = gradebook.db.query(who, SubmittedAssignment.timestamp)
    found = {student: Sheet(came) for student, came in _about(rows, assignment)}
    rows = _within(
        gradebook.db.query(
            *(who, GradeCell.name, GradeCell.max_score, Grade.score),
            *(Grade.manual_score, Grade.needs_manual_grade),
        ).join(Grade, Grade.cell_id == GradeCell.id),
        Grade,
    )
    for student, name, most, score, by_hand, waits in _about(rows, assignment):
        entry = Entry(score, most, by_hand is not None, waits)
        found[student].entries[name] = entry
    rows = _within(
        gradebook.db.query(who, BaseCell.name, Comment.manual_comment)
        .join(Comment, Comment.cell_id == BaseCell.id)
        .filter(Comment.manual_comment != ""),
        Comment,
    )
    for student, name, text in _about(rows, assignment):
        found[student].comments[name] = text
    return found


def _within(rows: Query[Any], part: Any) -> Query[Any]:
    """Connect rows about parts of a notebook with the submission it belongs to."""
    return rows.join(SubmittedNotebook, part.notebook_id == SubmittedNotebook.id).join(
        SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id
    )


def _about(rows: Query[Any], assignment: str) -> Query[Any]:
    """Return those rows about submissions that are about one assignment."""
    return rows.join(
        Assignment, SubmittedAssignment.assignment_id == Assignment.id
    ).filter(Assignment.name == assignment)
