"""Write marks into nbgrader's gradebook, and read them from it."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from nbgrader.api import Grade, Gradebook, MissingEntry


class Mark(NamedTuple):
    """What the gradebook says about one submission."""

    score: float
    most: float
    waiting: bool  # for a mark by hand


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
    unmarked = grade.manual_score is None or rewritten
    grade.needs_manual_grade = written and unmarked


def mark(gradebook: Gradebook, assignment: str, student: str) -> Mark | None:
    """Return what the gradebook says about a submission, if it knows of one."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return None
    return Mark(
        submission.score,
        submission.max_score,
        submission.needs_manual_grade,
    )
