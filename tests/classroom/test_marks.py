"""Marks as a teacher sees them: on the screen after grading, later, and in a table."""

import csv

import pytest
from students import answer, find, submit

from classroom.__main__ import main
from classroom.course import enrol
from classroom.marks import marks, summary
from classroom.results import Result, save

NAME = "connectionism"
WRONG = "def hebb(X):\n    return 0"


@pytest.fixture
def handed_in(course, solved):
    """A course in which Ann and Bob handed in, and Eve did not."""
    enrol(
        course,
        [
            {"id": "ann", "first_name": "Ann", "email": "ann@example.org"},
            {"id": "bob", "last_name": "=Burns"},
            {"id": "eve"},
        ],
    )
    right = answer(solved)
    find(right, "no-unit").source = "It runs for ever."
    submit(course, "ann", right, NAME)
    unanswered = answer(solved, hebb=WRONG)
    find(unanswered, "no-unit").source = ""
    submit(course, "bob", unanswered, NAME)
    return course


@pytest.mark.usefixtures("boxes")
def test_grade_and_marks_show_the_same(handed_in, capsys):
    root = str(handed_in.root)
    assert main(["grade", root, NAME]) == 0
    *graded, total, logs = capsys.readouterr().out.splitlines()
    assert main(["marks", root, NAME]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert graded == shown
    assert "17 of 20  written answer waits" in graded[1]
    assert "15 of 20" in graded[2]
    assert "waits" not in graded[2]
    assert total == (
        "3 students: 2 graded, 1 missing; mean 16.0 of 20; 1 written answer waits"
    )
    assert logs.startswith("Logs: ")
    with handed_in.gradebook() as gradebook:
        (notebook,) = gradebook.find_submission(NAME, "ann").notebooks
        grade = next(g for g in notebook.grades if g.name == "no-unit")
        grade.manual_score, grade.needs_manual_grade = 2.5, False
        gradebook.db.commit()
    for command in ("grade", "marks"):
        assert main([command, root, NAME]) == 0
        ann = capsys.readouterr().out.splitlines()[1]
        assert ann.endswith("19.5 of 20")


@pytest.mark.usefixtures("boxes")
def test_table_has_names_and_tasks(handed_in, tmp_path):
    root, file = str(handed_in.root), tmp_path / "marks.csv"
    assert main(["grade", root, NAME]) == 0
    assert main(["marks", root, NAME, "--csv", str(file)]) == 0
    ann, bob, eve = csv.DictReader(file.read_text().splitlines())
    assert (ann["first_name"], ann["email"]) == ("Ann", "ann@example.org")
    assert bob["last_name"] == "'=Burns"  # no formula of a spreadsheet
    assert (ann["hebb"], bob["hebb"], eve["hebb"]) == ("2.0", "0.0", "")
    assert (ann["no-unit"], bob["no-unit"]) == ("", "0.0")
    assert eve["status"] == "missing"


def test_mistakes_are_among_the_remarks(course):
    enrol(course, [{"id": "ann"}])
    result = Result("ann", "stopped", "A cell was stopped.", flags=["copied"])
    result.mistakes["hebb"] = "diagonal_kept"
    save(course, NAME, result)
    (row,) = marks(course, NAME)
    assert row.remark == "A cell was stopped.; copied; hebb: diagonal_kept"


def test_summary_of_nobody(course):
    assert summary(marks(course)) == "0 students: nobody"


def test_marks_of_what_was_not_released_are_refused(course, capsys):
    assert main(["marks", str(course.root), "nothing"]) == 2
    said = "ASSIGNMENT must have been released; got 'nothing'."
    assert said in capsys.readouterr().err
