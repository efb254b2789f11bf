"""How fast a class is graded, and where the time goes: ``python -m classroom.benchmark``."""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell

from classroom import grading
from classroom.assignment import Assignment
from classroom.box import Box
from classroom.course import start
from classroom.feedback import feedback
from classroom.grading import Grader
from classroom.release import release
from classroom.verify import solve

PARTS: dict[str, tuple[Any, list[str]]] = {
    "cases and expected values": (Assignment, ["hidden"]),
    "start and stop of boxes": (Box, ["__init__", "close"]),
    "students' code in boxes": (Box, ["receive"]),
    "marks into the gradebook": (grading, ["record"]),
    "results and notebooks": (grading, ["save", "build", "write_whole"]),
}


@contextmanager
def measured(spent: dict[str, float]) -> Iterator[None]:
    """Add up the time that the parts of grading take, in all threads together."""

    def timed(function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                spent[part] += time.perf_counter() - begin

        return wrapper

    real = {}
    for part, (owner, names) in PARTS.items():
        spent[part] = 0.0
        for name in names:
            real[owner, name] = getattr(owner, name)
            setattr(owner, name, timed(real[owner, name], part))
    yield
    for (owner, name), function in real.items():
        setattr(owner, name, function)


def main() -> None:
    """Grade a class that was made up, and print the speed."""
    parser = argparse.ArgumentParser(prog="python -m classroom.benchmark")
    parser.add_argument("assignment", nargs="?", default="connectionism")
    parser.add_argument("--students", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--torch", action="store_true", help="let everybody import torch"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        course = start(Path(folder) / "course")
        release(course, options.assignment)
        grader = Grader(course, options.assignment)
        handed_out = nbformat.read(course.notebook("release", options.assignment), 4)
        solved = solve(handed_out, grader.assignment.notebook)
        if options.torch:
            solved.cells.append(new_code_cell("import torch"))
        for i in range(options.students):
            file = course.notebook("submitted", options.assignment, f"student-{i}")
            file.parent.mkdir(parents=True)
            nbformat.write(solved, file)
        spent: dict[str, float] = {}
        begin = time.perf_counter()
        with measured(spent):
            results = grader.grade(jobs=options.jobs)
        wall = time.perf_counter() - begin
        begin = time.perf_counter()
        pages = list(feedback(course, options.assignment, jobs=options.jobs))
        printing = time.perf_counter() - begin
    full = sum(grader.assignment.points.values())
    assert all(result.score == full for result in results)
    rate = 60 * len(results) / wall
    print(f"{len(results)} submissions of {options.assignment} in {wall:.0f} s")
    print(f"{rate:.0f} submissions a minute with {options.jobs} at a time")
    print(f"{60 * len(pages) / printing:.0f} pages of feedback a minute")
    for part, seconds in spent.items():
        print(f"{part:28} {seconds / len(results):6.2f} s each")


if __name__ == "__main__":
    main()
