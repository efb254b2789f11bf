"""What a page of feedback is made of."""

from dataclasses import dataclass, field
from typing import Any

RIGHT, WRONG, EMPTY, UNSEEN = "right", "wrong", "empty", "unseen"
MARKED, WAITS, AGAIN = "marked", "waits", "again"  # by hand
STATUS = "status"  # the tag of a cell that tells the status, as the page itself does


@dataclass(frozen=True)
class Task:
    """What the page says about one task or written answer.

    Attributes:
        name: the id of its cell, which for a task is the name of the function.
        title: the heading above it, as Markdown.
        points: the mark.
        most: what it is worth.
        verdict: right, wrong, empty or unseen; marked by hand, waits, or waits again.
        said: a sentence about the answer, perhaps with a hint in a line below.
        comment: what the teacher wrote about it.
    """

    name: str
    title: str
    points: float
    most: float
    verdict: str
    said: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Facts:
    """What a page is made of.

    Attributes:
        title: the title of the assignment.
        student: the name of the student.
        came: when the notebook was handed in, in words.
        graded: when it was graded, in words.
        status: what became of the submission.
        note: a sentence about the status.
        tasks: the tasks in their order.
        notebook: the graded notebook, as JSON; empty if there is none to show.
    """

    title: str
    student: str
    came: str
    graded: str
    status: str
    note: str
    tasks: list[Task] = field(default_factory=list)
    notebook: str = ""

    @classmethod
    def load(cls, data: dict[str, Any]) -> "Facts":
        """Return what ``asdict`` took apart."""
        tasks = [Task(**task) for task in data.pop("tasks")]
        return cls(**data, tasks=tasks)
