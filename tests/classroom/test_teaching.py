"""The page on teaching: its commands run, in order, and do what it says."""

import csv
import re
import shlex
import zipfile
from pathlib import Path

import nbformat
import pytest
from students import answer, mistaken

from classroom import reader, results
from classroom.__main__ import main
from classroom.assignment import read
from classroom.box import TICK, Limits
from classroom.course import ASSIGNMENTS, BOOK, Course
from classroom.running import EXTRA, RESTARTS
from classroom.verify import solve

ASSIGNMENT = "connectionism"
PAGE = (BOOK / "book" / "teaching.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
ACTIVATE = ". .venv/bin/activate\n"  # these tests have an environment


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(PAGE) if name == language]


def run(line: str, home: Path) -> None:
    """Run a command of the page in this process, which is faster."""
    python, option, package, *words = shlex.split(line)
    assert (python, option, package) == ("python", "-m", "classroom")
    assert main([word.replace("~", str(home)) for word in words]) == 0


def hand_in(home: Path) -> None:
    """Make the archive that the page collects: right, wrong, and nothing from Eve."""
    course = Course(home / "course")
    assignment = read(course.notebook("source", ASSIGNMENT))
    empty = nbformat.read(course.notebook("release", ASSIGNMENT), 4)
    wrong = {task: text for task, (_, text) in mistaken(assignment, 0).items()}
    with zipfile.ZipFile(home / "submissions.zip", "w") as archive:
        right = nbformat.writes(solve(empty, assignment.notebook))
        archive.writestr("ann.ipynb", right)
        text = nbformat.writes(answer(empty, **wrong))
        archive.writestr(f"bob/{ASSIGNMENT}.ipynb", text)


@pytest.mark.usefixtures("boxes")
def test_commands_run_from_monday_to_friday(tmp_path):
    (names,) = blocks("text")
    (tmp_path / "names.csv").write_text(names)
    first, *commands = blocks("sh")
    assert first == ACTIVATE
    for line in "".join(commands).splitlines():
        if " collect " in line:
            hand_in(tmp_path)
        run(line, tmp_path)
    course = Course(tmp_path / "course")
    full = sum(read(ASSIGNMENTS / f"{ASSIGNMENT}.ipynb").points.values())
    with (tmp_path / "marks.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [(r["student"], r["status"], float(r["points"])) for r in rows] == [
        ("ann", "graded", full),
        ("bob", "graded", 0),
        ("eve", "missing", 0),
    ]
    assert rows[0]["written"] == "waits"
    for student in ("ann", "bob"):
        folder = course.folder("feedback", ASSIGNMENT, student)
        assert (folder / f"{ASSIGNMENT}.html").is_file()
    assert found_in(PAGE, r"\| `([\w.]+)/?(?:ann/)?` \|") == {
        *(place.name for place in course.root.iterdir())
    }


def found_in(text: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, text))


def test_page_names_all_assignments():
    for file in ASSIGNMENTS.glob("*.ipynb"):
        assert f"`{file.stem}`" in PAGE


def test_page_explains_every_status():
    known = re.search(r"status: (.*?)\.", results.Result.__doc__, re.S)[1]
    named = set(re.split(r",\s+|\s+or\s+", known))
    assert named <= found_in(PAGE, r"(?m)^\| ([a-z ]+) \|")


def test_page_has_the_limits():
    limits = Limits()
    assert f"{limits.seconds:g} seconds of computing" in PAGE
    stopped = f"{limits.memory >> 30} GB, {limits.disk >> 20} MB, "
    stopped += f"{limits.processes} processes, {limits.sockets} sockets, "
    assert f"{stopped}{limits.names:,} files" in PAGE
    reading = f"with {reader.MEMORY >> 30} GB and {reader.SECONDS} seconds"
    assert reading in PAGE
    assert (limits.budget, "five minutes" in PAGE) == (300, True)
    assert (EXTRA, "the first half" in PAGE) == (0.5, True)
    assert (1 / TICK, "five times a second" in PAGE) == (5, True)
    assert (RESTARTS, "up to three times" in PAGE) == (3, True)
