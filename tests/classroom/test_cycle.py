"""The whole cycle of a teacher, from the folder to the marks, for each assignment."""

import csv
import json
import shutil
from html import unescape

import nbformat
import pytest
from students import answer, mistaken, submit

from classroom import results
from classroom.__main__ import main
from classroom.assignment import read
from classroom.course import ASSIGNMENTS, Course
from classroom.verify import secrets, solve, verify

NAMES = sorted(file.stem for file in ASSIGNMENTS.glob("*.ipynb"))
WRONG = 3  # submissions in which everything is wrong


@pytest.mark.parametrize("name", NAMES)
def test_assignment_is_ready(name):
    assignment = read(ASSIGNMENTS / f"{name}.ipynb")
    assert list(verify(assignment, students=3)) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("boxes")
def test_whole_cycle(name, started, tmp_path):
    shutil.copytree(started, tmp_path / "course")
    course, root = Course(tmp_path / "course"), str(tmp_path / "course")
    assert main(["release", root, name]) == 0
    assignment = read(course.notebook("source", name))
    empty = nbformat.read(course.notebook("release", name), 4)
    wrong = [mistaken(assignment, which) for which in range(WRONG)]
    submit(course, "ann", solve(empty, assignment.notebook), name)
    submit(course, "eve", empty, name)
    for which, answers in enumerate(wrong):
        sources = {task: source for task, (_, source) in answers.items()}
        submit(course, f"wrong-{which}", answer(empty, **sources), name)

    assert main(["grade", root, name]) == 0
    assert main(["feedback", root, name]) == 0
    assert main(["marks", root, "--csv", str(tmp_path / "marks.csv")]) == 0

    full = sum(assignment.points.values())
    table = (tmp_path / "marks.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(table.splitlines()))
    assert [(r["student"], r["status"], float(r["points"])) for r in rows] == [
        ("ann", "graded", full),
        ("eve", "empty", 0),
        *((f"wrong-{which}", "graded", 0) for which in range(WRONG)),
    ]
    for which, answers in enumerate(wrong):
        result = results.load(course, name, f"wrong-{which}")
        page = feedback_page(course, name, f"wrong-{which}")
        for task, (mistake, _) in answers.items():
            assert result.mistakes[task] == mistake
            hint = assignment.recipes[task].mistakes[mistake].hint
            assert " ".join(hint.split()) in page
    assert_no_leak(course, assignment)


def feedback_page(course, name, student):
    """Return the text of a page of feedback, in one line."""
    page = course.folder("feedback", name, student) / f"{name}.html"
    return " ".join(unescape(page.read_text(encoding="utf-8")).split())


def assert_no_leak(course, assignment):
    """Search what students get for lines of solutions and hidden tests."""
    name = assignment.name
    hints = [
        mistake.hint
        for recipe in assignment.recipes.values()
        for mistake in recipe.mistakes.values()
    ]
    lines = [
        line
        for line in secrets(assignment.notebook)
        if not any(line.strip("\"' ,)") in hint for hint in hints)
    ]
    assert len(lines) > 50
    released = course.notebook("release", name).read_text(encoding="utf-8")
    page = feedback_page(course, name, "eve")
    for line in lines:
        assert json.dumps(line)[1:-1] not in released
        assert line not in page
