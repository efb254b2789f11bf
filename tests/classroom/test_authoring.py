"""What an author of assignments is told about a notebook that is not ready."""

import copy

import nbformat
import pytest
from students import find

from classroom.__main__ import main

NAME = "mine"
SOLUTION, TESTS = "SOLUTION", "HIDDEN TESTS"


def begin(what):
    return f"### BEGIN {what}"


def end(what):
    return f"### END {what}"


def write(course, instructor, **sources):
    """Write a notebook of one's own, with other sources in some cells."""
    notebook = copy.deepcopy(instructor)
    for name, source in sources.items():
        find(notebook, name.replace("_answer", "-answer")).source = source
    file = course.notebook("source", NAME)
    file.parent.mkdir(parents=True)
    nbformat.write(notebook, file)
    return file


@pytest.mark.parametrize("command", ["verify", "release"])
@pytest.mark.parametrize(
    ("cell", "old", "new", "said"),
    [
        ("train-answer", end(SOLUTION), "", f"have {end(SOLUTION)}"),
        (
            "train-answer",
            begin(SOLUTION),
            "",
            f"have {begin(SOLUTION)} before {end(SOLUTION)}",
        ),
        (
            "train-answer",
            begin(SOLUTION),
            f"{begin(SOLUTION)}\n    {begin(SOLUTION)}",
            f"have {end(SOLUTION)} before {begin(SOLUTION)}",
        ),
        ("train", end(TESTS), "", f"have {end(TESTS)}"),
        ("train", begin(TESTS), "", f"have {begin(TESTS)} before {end(TESTS)}"),
        (
            "train",
            end(TESTS),
            end(SOLUTION),
            f"have {end(TESTS)} before {end(SOLUTION)}",
        ),
    ],
)
def test_marks_that_do_not_match_get_a_sentence(
    course, instructor, capsys, command, cell, old, new, said
):
    source = find(instructor, cell).source.replace(old, new)
    file = write(course, instructor, **{cell.replace("-", "_"): source})
    words = [str(file)] if command == "verify" else [str(course.root), NAME]
    assert main([command, *words]) != 0
    shown = capsys.readouterr()
    sentence = f"{NAME}.ipynb, cell {9 + (cell == 'train')} ({cell}) must {said}"
    assert f"{sentence}; got none." in shown.out + shown.err


def test_nbgraders_reason_is_passed_on(course, instructor, capsys):
    twice = copy.deepcopy(instructor)
    find(twice, "hebb-task").metadata.nbgrader.grade_id = "train-task"
    write(course, twice)
    assert main(["release", str(course.root), NAME]) == 2
    said = "mine cannot be released. Duplicate grade id: train-task\n"
    assert capsys.readouterr().err == said


def test_one_notebook_that_is_not_ready_stops_no_other(
    course, instructor, tmp_path, capsys
):
    other = tmp_path / "other.ipynb"
    other.write_text("{}")
    file = write(course, instructor, hebb_answer="def hebb(X:\n    pass")
    assert main(["verify", str(other), str(file)]) == 1
    said = capsys.readouterr().out
    assert "other: not ready\n  " in said
    assert "mine: not ready\n  mine.ipynb, cell 18 (hebb-answer) must run" in said
