"""Give each student a page with marks, results and hints."""

from collections.abc import Iterator
from pathlib import Path

from nbgrader.converters import GenerateFeedback

from classroom.course import Course, quietly


def feedback(
    course: Course, assignment: str
) -> Iterator[tuple[str, Path | Exception]]:
    """Write the pages of all students whose submissions were graded.

    Yields:
        Students, each with the page, or with the reason why there is none.
    """
    for student in graded(course, assignment):
        folder = course.folder("feedback", assignment, student)
        try:
            with quietly():
                GenerateFeedback(
                    coursedir=course.directory(assignment, student),
                    force=True,
                ).start()
        except Exception as error:  # which must not stop the others
            yield student, error
        else:
            yield student, folder / f"{assignment}.html"


def graded(course: Course, assignment: str) -> list[str]:
    """Return the students who have a graded notebook."""
    pattern = f"*/{assignment}/{assignment}.ipynb"
    files = (course.root / "autograded").glob(pattern)
    return sorted(file.parents[1].name for file in files)
