"""Results: one file for each submission, written as a whole."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from classroom.course import Course
from classroom.submissions import write_whole

GRADED, EMPTY, STOPPED, CRASHED = "graded", "empty", "stopped", "crashed"
NOT_GRADED = "not graded"


@dataclass
class Result:
    """What is known about one submission.

    Attributes:
        student: the id of the student.
        status: graded, empty, missing, corrupt, refused, stopped, crashed or not graded.
        note: a sentence about the status.
        key: changes when the submission, the assignment or the grader does.
        scores: the mark of each task.
        said: a sentence about each task, for the student.
        mistakes: the known mistakes that were recognised, by task.
        flags: what the teacher may want to look at.
        answers: the digests of written answers, by the ids of their cells.
        rewritten: whether these answers differ from those of the marks before.
        seconds: how long it took.
        recorded: whether the marks are in the gradebook.
    """

    student: str
    status: str
    note: str = ""
    key: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    mistakes: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    rewritten: bool = True
    seconds: float = 0.0
    recorded: bool = False

    @property
    def score(self) -> float:
        """The marks of all tasks together, without written answers."""
        return sum(self.scores.values())


def folder(course: Course, assignment: str) -> Path:
    """Return where the results and logs of an assignment are."""
    return course.root / "results" / assignment


def save(course: Course, assignment: str, result: Result) -> None:
    """Write a result, and a log of it for people."""
    place = folder(course, assignment)
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False)
    write_whole(place / f"{result.student}.log", _log(result).encode())
    write_whole(place / f"{result.student}.json", text.encode())


def load(course: Course, assignment: str, student: str) -> Result | None:
    """Return the result of a submission, if there is one."""
    file = folder(course, assignment) / f"{student}.json"
    try:
        return Result(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _log(result: Result) -> str:
    lines = [
        f"{result.student}: {result.status} in {result.seconds:.1f} s. {result.note}",
        *(f"flag: {flag}" for flag in result.flags),
        *(
            f"{name}: {score:g} points. {result.said.get(name, '')}"
            for name, score in result.scores.items()
        ),
    ]
    return "\n".join(lines) + "\n"
