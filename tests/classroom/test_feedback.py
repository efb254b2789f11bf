"""Pages of feedback: what they say, that they do nothing, and when they are written."""

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from html.parser import HTMLParser
from itertools import pairwise

import nbformat
import pytest
from nbconvert.filters import markdown2html
from students import answer, find

from classroom import feedback as module
from classroom import typeset
from classroom.__main__ import main
from classroom.assignment import is_test, role
from classroom.autograded import build, changed, harmless
from classroom.course import ASSIGNMENTS, BOOK, enrol
from classroom.facts import WAITS, Facts, Task
from classroom.feedback import SIMPLIFIED, UNCHANGED, WRITTEN, feedback
from classroom.gradebook import record
from classroom.page import MEANING
from classroom.printer import Limits, Printer
from classroom.reading import Cell, Submission
from classroom.results import Result, save
from dlcore.assignment.judging import NOT_WRITTEN

NAME = "connectionism"
NAMES = sorted(file.stem for file in ASSIGNMENTS.glob("*.ipynb"))
WRITTEN_ANSWER = "no-unit"
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> **mine** $i<n$\n"
    "https://evil.example/x www.evil.example eve@evil.example\n"
    "[a](javascript:alert(3)) [b](&#106;avascript:alert(3)) [c][c]\n"
    "![p](https://evil.example/p.png) <https://evil.example>\n\n"
    "[c]: javascript:alert(3)\n\n"
    "<iframe src=//evil.example></iframe>\n\n"
    r"$\href{https://evil.example}{x}$ $\text{<img src=x>}$ $\eqref{x}$ "
    r'$\label{x}y$ $\style{background:url("https://evil.example")}{z}$'
)
BREAKS_THE_STACK = f"before ${'{' * 9_000}x{'}' * 9_000}$ after"


class Page(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *one) for one in attributes]

    def handle_data(self, data):
        self.text += f"{data} "

    def values(self, name):
        return [value for _, key, value in self.attributes if key == name]


SAID = "The answer has wrong numbers.\nHint: Divide by <n>."


def enter(course, student, notebook, wrong=(), status="graded", note="", said=SAID):
    """Do what grading does, without running anything."""
    release = nbformat.read(course.notebook("release", NAME), 4)
    cells = [
        Cell(cell.cell_type, cell.source, role(cell, "grade_id") or "")
        for cell in notebook.cells
    ]
    submission = Submission(cells=tuple(cells))
    result = Result(student, status, note)
    for cell in filter(is_test, release.cells):
        task = role(cell, "grade_id")
        result.scores[task] = 0.0 if task in wrong else float(points(cell))
        result.said[task] = f"{task}: right in all 4 cases."
        if task in wrong:
            result.said[task] = f"{task}: {said}"
    shown = build(
        release,
        submission,
        {},
        {task: (score > 0, "") for task, score in result.scores.items()},
        "" if status == "graded" else f"**Status: {status}.** {note}",
    )
    file = course.notebook("autograded", NAME, student)
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(shown, file)
    save(course, NAME, result)
    with course.gradebook() as gradebook:
        answers = changed(release, submission)
        came = datetime(2030, 1, 2, 13, 14)
        record(gradebook, NAME, student, result.scores, answers, False, came=came)


def points(cell):
    return cell.metadata.nbgrader.points


def mark(course, student, score, comment="", waits=False):
    """Mark the written answer by hand."""
    with course.gradebook() as gradebook:
        (notebook,) = gradebook.find_submission(NAME, student).notebooks
        grade = next(g for g in notebook.grades if g.name == WRITTEN_ANSWER)
        grade.manual_score, grade.needs_manual_grade = score, waits
        where = next(c for c in notebook.comments if c.name == WRITTEN_ANSWER)
        where.manual_comment = comment
        gradebook.db.commit()


def written(course, **more):
    """Write pages, and return what became of each."""
    return {one.student: one.what for one in feedback(course, NAME, **more)}


def page_of(course, student):
    return course.folder("feedback", NAME, student) / f"{NAME}.html"


def read(course, student):
    return Page(page_of(course, student).read_text(encoding="utf-8"))


def one_line(page):
    return " ".join(page.text.split())


def with_text(notebook, text):
    changed = answer(notebook)
    find(changed, WRITTEN_ANSWER).source = text
    return changed


@pytest.mark.parametrize("name", NAMES)
def test_every_formula_is_set(name):
    notebook = nbformat.read(ASSIGNMENTS / f"{name}.ipynb", 4)
    texts = [c.source for c in notebook.cells if c.cell_type == "markdown"]
    html = "".join(typeset.text(text) for text in texts)
    formulas = re.findall(r"\$\$.+?\$\$|\$.+?\$", "\n\n".join(texts), re.S)
    assert 'class="tex"' not in html
    assert len(re.findall("<math", html)) >= len(formulas) - 4 > 20
    assert "$" not in html


def test_a_formula_that_cannot_be_set_is_shown_as_it_is():
    assert typeset.formula(r"\unknown{<y>}") == (
        r'<code class="tex">\unknown{&lt;y&gt;}</code>'
    )


def test_page_says_how_each_task_stands(course, solved):
    enrol(course, [{"id": "ann", "first_name": "Ann", "last_name": "Arbor"}])
    enter(course, "ann", with_text(solved, "My answer."), wrong=["hebb"])
    written(course)
    page = read(course, "ann")
    text = one_line(page)
    assert "Assignment: connectionism Ann Arbor handed in 2" in text
    assert "· graded " in text
    assert "15 of 17 points so far" in text
    assert "The written answer waits for its mark: up to 3 points more" in text
    assert "5. Writing to the memory ✗ Wrong 0 of 2" in text
    assert "6. A height for every state ✓ Right 2 of 2" in text
    assert "8. Let it run? … Waits of 3" in text
    assert "The answer has wrong numbers. Hint Divide by <n>." in text
    assert "hebb: right" not in text
    assert "energy: right in all 4 cases." in text
    assert "My answer." in text
    assert "0.0 / 3.0" not in text
    targets = {f"#{place}" for place in page.values("id")}
    assert set(page.values("href")) <= targets
    assert len(page.values("href")) == 8


def test_marks_and_comments_by_hand_are_shown(course, solved):
    notebook = with_text(solved, "My answer.")
    for student in ("ann", "bob", "eve"):
        enter(course, student, notebook if student != "eve" else solved)
    enter(course, "eve", with_text(solved, ""))
    mark(course, "ann", 2.5, "Well said.\n<b>Nearly</b> all of it.")
    mark(course, "bob", 1, waits=True)
    written(course)
    text = one_line(read(course, "ann"))
    assert "19.5 of 20 points Task" in text
    assert "✎ Marked 2.5 of 3" in text
    assert "Comment Well said. <b>Nearly</b> all of it." in text
    text = one_line(read(course, "bob"))
    assert "18 of 20 points Task" in text
    assert "Waits again 1 of 3 points This answer has changed" in text
    assert "– No answer 0 of 3" in one_line(read(course, "eve"))


def test_a_task_that_was_not_written_is_not_called_wrong(course, empty):
    enter(course, "ann", empty, wrong=["hebb"], said=NOT_WRITTEN)
    written(course)
    text = one_line(read(course, "ann"))
    assert "5. Writing to the memory – No answer 0 of 2" in text
    assert "✗" not in text


def test_page_explains_a_status(course, solved, empty):
    enter(course, "ann", solved, [], "stopped", "The 5th cell was stopped.")
    enter(course, "bob", empty, ["hebb"], "corrupt", "It is a recipe.")
    written(course)
    text = one_line(read(course, "ann"))
    assert "Stopped A part of your notebook took too much time" in text
    assert text.count("The 5th cell was stopped.") == 1
    text = one_line(read(course, "bob"))
    assert "Corrupt The file that you handed in cannot be read" in text
    assert "It is a recipe." in text
    assert "– Not graded 0 of 2" in text
    assert "Your notebook" not in text


def test_page_explains_every_status():
    known = re.search(r"status: (.*?)\.", Result.__doc__, re.S)[1]
    named = set(re.split(r",\s+|\s+or\s+", known))
    assert named - {"graded", "missing", "not graded"} == {*MEANING}


def test_page_loads_and_runs_nothing(course, solved):
    enter(course, "ann", solved)
    written(course)
    page = read(course, "ann")
    assert page.tags[:2] == ["html", "head"]
    policy, charset = page.values("content")[0], page.values("charset")
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    assert charset == ["utf-8"]
    assert ("html", "lang", "en") in page.attributes
    assert "width=device-width, initial-scale=1" in page.values("content")
    assert not {"script", "link", "img", "iframe", "base"} & {*page.tags}
    assert not page.values("src")
    assert all(place.startswith("#") for place in page.values("href"))
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h\d", tag)]
    assert levels.count(1) == 1
    steps = pairwise(levels)
    assert all(after <= before + 1 for before, after in steps)


def test_students_text_is_only_text(course, solved):
    notebook = with_text(solved, HOSTILE)
    notebook.cells.append(nbformat.v4.new_raw_cell(HOSTILE))
    notebook.cells.append(nbformat.v4.new_code_cell(f"'''{HOSTILE}'''"))
    enter(course, "ann", notebook)
    enter(course, "bob", solved)
    written(course)
    page, plain = read(course, "ann"), read(course, "bob")
    math = {"math", "mi", "mo", "mtext", "strong", "code", "pre", "span"}
    assert {*page.tags} <= {*plain.tags} | math
    assert {*page.values("href")} == {*plain.values("href")}
    assert all("evil" not in (value or "") for _, _, value in page.attributes)
    names = {key for _, key, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")}
    html = page_of(course, "ann").read_text(encoding="utf-8")
    assert "<strong>mine</strong> <math><mi>i</mi><mo>&lt;</mo>" in html
    text = one_line(page)
    for part in HOSTILE.splitlines()[2:6]:
        assert part.replace("&#106;", "j") in text


def test_what_cannot_be_seen_is_left_out():
    hidden = "a\x1b[31mb\x1b[0m\x00\N{RIGHT-TO-LEFT OVERRIDE}c\xa0d\r\ne"
    assert typeset.plain(hidden) == '<pre tabindex="0">abc\xa0d\ne</pre>'


@pytest.mark.parametrize("text", HOSTILE.splitlines())
def test_formgrader_makes_no_link_of_a_students_text(text):
    html = markdown2html(harmless(text))
    assert not {"a", "img", "script", "iframe"} & {*Page(html).tags}
    assert typeset.clean(harmless(text)) == text


def test_text_that_breaks_the_converter_is_shown_as_it_is(course, solved):
    enter(course, "ann", with_text(solved, BREAKS_THE_STACK))
    enter(course, "bob", with_text(solved, "$x^2$"))
    assert written(course, jobs=1) == {"ann": SIMPLIFIED, "bob": WRITTEN}
    assert written(course) == {"ann": UNCHANGED, "bob": UNCHANGED}
    html = page_of(course, "ann").read_text(encoding="utf-8")
    assert f">{BREAKS_THE_STACK}</pre>" in html
    assert "17 of 17 points so far" in one_line(read(course, "ann"))
    assert "<msup>" in page_of(course, "bob").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("\\begin{align}\n" * 20_000, Limits(seconds=1)),
        ("*a* " * 300_000, Limits(memory=1 << 28)),
        ("a\n\n" * 30_000, Limits(size=200_000)),
    ],
    ids=["time", "memory", "size"],
)
def test_text_that_takes_too_much_is_shown_as_it_is(text, limits):
    cell = {"cell_type": "markdown", "metadata": {}, "source": text}
    notebook = json.dumps({"cells": [cell]})
    tasks = [Task("hebb", "Hebb", 1.0, 2.0, WAITS)]
    facts = Facts("Title", "Ann", "", "", "graded", "", tasks, notebook)
    printer = Printer(limits)
    try:
        page, simple = printer.print(facts, "digest")
    finally:
        printer.close()
    assert f'<div class="text yours"><pre tabindex="0">{text[:100]}' in page
    assert simple
    assert "Hebb" in page


def test_only_what_changed_is_written(course, solved, monkeypatch):
    notebook = with_text(solved, "My answer.")
    for student in ("ann", "bob", "eve"):
        enter(course, student, notebook)
    same = dict.fromkeys(("ann", "bob", "eve"), UNCHANGED)
    assert set(written(course).values()) == {WRITTEN}
    assert written(course) == same
    mark(course, "ann", 2)
    assert written(course) == same | {"ann": WRITTEN}
    mark(course, "ann", 2, "Good.")
    enrol(course, [{"id": "eve", "first_name": "Eve"}])
    assert written(course) == {**same, "ann": WRITTEN, "eve": WRITTEN}
    enter(course, "bob", notebook, wrong=["hebb"])
    assert written(course) == same | {"bob": WRITTEN}
    page_of(course, "bob").write_text("another program's page")
    assert written(course) == same | {"bob": WRITTEN}
    assert set(written(course, again=True).values()) == {WRITTEN}
    monkeypatch.setattr(module, "CODE", ("page.py",))
    assert set(written(course).values()) == {WRITTEN}


def test_page_is_never_older_than_what_it_shows(course, solved):
    enter(course, "ann", solved)
    written(course)
    os.utime(page_of(course, "ann"), (0, 0))
    assert written(course) == {"ann": UNCHANGED}
    notebook = course.notebook("autograded", NAME, "ann")
    page = page_of(course, "ann")
    assert page.stat().st_mtime >= notebook.stat().st_mtime


def test_some_students_get_their_pages(course, solved, capsys):
    for student in ("ann", "bob", "eve"):
        enter(course, student, solved)
    command = ["feedback", str(course.root), NAME]
    who = ["--student", "ann", "--student", "bob"]
    assert main([*command, *who]) == 0
    assert capsys.readouterr().out.endswith("2 written, 0 unchanged\n")
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(page_of(course, "eve")),
        "1 written, 2 unchanged",
    ]
    assert main([*command, "--again"]) == 0
    assert capsys.readouterr().out.endswith("3 written, 0 unchanged\n")
    assert main([*command, "--student", "max"]) == 1
    assert "max: no page. It must have been graded" in capsys.readouterr().out


def test_page_that_cannot_be_made_stops_no_other(course, solved, capsys):
    for student in ("ann", "bob"):
        enter(course, student, solved)
    course.notebook("autograded", NAME, "ann").write_text("{}")
    assert main(["feedback", str(course.root), NAME]) == 1
    said = capsys.readouterr().out
    assert "ann: no page" in said
    assert said.endswith("1 written, 0 unchanged, 1 failed\n")
    assert not page_of(course, "ann").exists()


def test_picture_in_an_answer_stops_no_page(course, solved):
    """Pictures that are pasted into a notebook are no part of its text."""
    enter(course, "ann", with_text(solved, "See ![mine](attachment:mine.png)."))
    written(course)
    text = page_of(course, "ann").read_text(encoding="utf-8")
    assert "See ![mine](attachment:mine.png)." in text


@pytest.mark.parametrize("module", ["__main__", "printer", "page"])
def test_what_starts_often_starts_quickly(module):
    """Whatever imports nbgrader takes a second."""
    code = f"import classroom.{module}, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=BOOK,
    )
    slow = {"nbgrader", "nbformat", "nbconvert", "torch"}
    assert not slow & {*done.stdout.split()}
