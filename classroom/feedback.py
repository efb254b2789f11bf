"""Give each student a page with marks, results and hints."""

from collections.abc import Iterator
from pathlib import Path

from nbgrader.converters import GenerateFeedback
from traitlets.config import Config

from classroom.course import Course, quietly

# A notebook may hold any HTML; in the page of somebody else it must do nothing.
SAFE = Config({"HTMLExporter": {"sanitize_html": True}})


def feedback(course: Course, assignment: str) -> Iterator[tuple[str, Path]]:
    """Write the pages of all students whose submissions were graded."""
    for student in graded(course, assignment):
        with quietly():
            GenerateFeedback(
                coursedir=course.directory(assignment, student),
                config=SAFE,
                force=True,
            ).start()
        folder = course.folder("feedback", assignment, student)
        yield student, folder / f"{assignment}.html"


def graded(course: Course, assignment: str) -> list[str]:
    """Return the students who have a graded notebook."""
    pattern = f"*/{assignment}/{assignment}.ipynb"
    files = (course.root / "autograded").glob(pattern)
    return sorted(file.parents[1].name for file in files)
