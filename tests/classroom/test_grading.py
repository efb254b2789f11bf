"""Grading again, going on after a stop, and failing without harm."""

import os
import resource
import signal
import subprocess
import sys
import time

import nbformat
import psutil
import pytest
from nbgrader.apps.api import NbGraderAPI
from students import add, answer, find, mark_of, submit

from classroom import grading, results
from classroom.__main__ import main
from classroom.box import Limits
from classroom.course import BOOK
from classroom.feedback import feedback
from classroom.grading import Grader
from classroom.marks import marks
from classroom.running import Run

pytestmark = pytest.mark.usefixtures("boxes")
NAME, FULL = "connectionism", 17
GRADE = [sys.executable, "-m", "classroom", "grade"]
STUDENTS = [f"student-{i}" for i in range(6)]


@pytest.fixture
def ran(monkeypatch):
    """Count the submissions that are run."""
    runs = []
    real = grading.run

    def run(*arguments):
        runs.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(grading, "run", run)
    return runs


def test_what_was_graded_is_not_run_again(course, solved, ran):
    submit(course, "ann", solved, NAME)
    submit(course, "bob", solved, NAME)
    first = Grader(course, NAME).grade()
    assert Grader(course, NAME).grade() == first
    assert len(ran) == 2
    submit(course, "bob", answer(solved, hebb=""), NAME)
    assert [r.score for r in Grader(course, NAME).grade()] == [FULL, FULL - 2]
    assert len(ran) == 3
    Grader(course, NAME).grade(["ann"], again=True)
    assert len(ran) == 4


def test_formgrader_sees_what_is_graded(course, solved):
    submit(course, "ann", solved, NAME)
    stamp = course.folder("submitted", NAME, "ann") / "timestamp.txt"
    stamp.write_text("2026-03-04 05:06:07 UTC\n")
    Grader(course, NAME).grade()
    nbgrader = NbGraderAPI(course.directory(NAME))
    assert nbgrader.get_autograded_students(NAME) == {"ann"}
    stamp.write_text("next Friday, perhaps\0")
    assert Grader(course, NAME).grade(again=True)[0].score == FULL


@pytest.mark.parametrize("step", ["autograde", "generate_feedback"])
def test_nbgrader_grades_nothing_and_replaces_nothing(course, solved, step):
    submit(course, "ann", solved, NAME)
    Grader(course, NAME).grade()
    (given,) = feedback(course, NAME)
    files = [course.notebook("autograded", NAME, "ann"), given.page]
    before = [file.read_bytes() for file in files]
    command = [sys.executable, "-m", "nbgrader", step, NAME, "--force"]
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True)
    assert done.returncode != 0
    assert "python -m classroom grade" in done.stderr
    assert [file.read_bytes() for file in files] == before


def test_marks_given_by_hand_stay(course, solved):
    submit(course, "ann", solved, NAME)
    grade = Grader(course, NAME).grade
    grade()
    assert mark_of(course, "ann", NAME).waiting
    by_hand(course, "ann", 2.5)
    grade(again=True)
    assert mark_of(course, "ann", NAME) == (FULL + 2.5, FULL + 3, False)
    changed = answer(solved, hebb="")
    find(changed, "no-unit").source = "I have thought again."
    submit(course, "ann", changed, NAME)
    grade()
    assert mark_of(course, "ann", NAME) == (FULL - 2 + 2.5, FULL + 3, True)


def test_answer_that_changed_waits_for_a_mark_also_after_a_stop(
    course, solved, monkeypatch
):
    submit(course, "ann", solved, NAME)
    grade = Grader(course, NAME).grade
    grade()
    by_hand(course, "ann", 2.5)
    find(solved, "no-unit").source = "I have thought again."
    submit(course, "ann", solved, NAME)

    def fail(*_):
        raise RuntimeError("stopped before the marks were entered")

    monkeypatch.setattr(grading, "record", fail)
    for again in (False, True):
        (ann,) = grade(again=again)
        assert ann.status == "not graded"
    monkeypatch.undo()
    grade()
    assert mark_of(course, "ann", NAME).waiting


def by_hand(course, student, points):
    """Give a mark as the formgrader does."""
    with course.gradebook() as gradebook:
        grade = gradebook.find_grade("no-unit", NAME, NAME, student)
        grade.manual_score = points
        grade.needs_manual_grade = False
        gradebook.db.commit()


def test_written_answer_that_was_not_given_gets_zero(course, empty):
    submit(course, "eve", empty, NAME)
    Grader(course, NAME).grade()
    assert mark_of(course, "eve", NAME) == (0, FULL + 3, False)


def test_killed_run_goes_on_where_it_stopped(course, solved, ran):
    for student in STUDENTS:
        submit(course, student, solved, NAME)
    running = subprocess.Popen(
        [*GRADE, course.root, NAME, "--jobs", "1"],
        cwd=BOOK,
        stderr=subprocess.PIPE,
        text=True,
    )
    with running:
        for _ in range(2):
            running.stderr.readline()
        running.send_signal(signal.SIGKILL)
    done = [s for s in STUDENTS if results.load(course, NAME, s)]
    assert 2 <= len(done) < len(STUDENTS)
    assert [r.score for r in Grader(course, NAME).grade()] == [FULL] * 6
    assert len(ran) == len(STUDENTS) - len(done)
    assert {row.points for row in marks(course)} == {FULL}


def test_nothing_of_a_killed_run_lives_on(course, empty):
    endless = add(empty, "while True: pass")
    submit(course, "eve", endless, NAME)
    running = subprocess.Popen([*GRADE, course.root, NAME], cwd=BOOK)
    deadline = time.monotonic() + 60
    while not (inside := boxes_of(running.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    running.send_signal(signal.SIGKILL)
    running.wait()
    while any(map(alive, inside)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert inside
    assert not any(map(alive, inside))


def boxes_of(pid):
    """Return the processes that a grader has started to run a submission."""
    family = psutil.Process(pid).children(recursive=True)
    return [p.pid for p in family if any("runner.py" in w for w in p.cmdline())]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_late_beside_others_is_run_again_alone(course, solved, monkeypatch):
    """A neighbour that keeps the machine busy costs no marks."""
    for student in STUDENTS:
        submit(course, student, solved, NAME)
    real, here, seen = grading.run, [], []

    def run(*arguments):
        here.append(1)
        alone = len(seen) >= len(STUDENTS)
        seen.append(len(here))
        no = dict.fromkeys(arguments[1], "It was not reached.")
        first = Run(late=True, stopped=["cell 1"], tasks=no)
        done = real(*arguments) if alone else first
        here.pop()
        return done

    monkeypatch.setattr(grading, "run", run)
    results = Grader(course, NAME).grade(jobs=3)
    assert [(r.status, r.score) for r in results] == [("graded", FULL)] * 6
    assert seen[len(STUDENTS) :] == [1] * len(STUDENTS)


@pytest.mark.parametrize("what", ["save", "write_whole"])
def test_full_disk_costs_no_marks(course, solved, monkeypatch, what):
    submit(course, "ann", solved, NAME)
    submit(course, "bob", solved, NAME)
    grade = Grader(course, NAME).grade
    grade(["bob"])
    real = getattr(grading, what)

    def full(*arguments):
        if "ann" in repr(arguments):
            raise OSError(28, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(grading, what, full)
    ann, bob = grade(again=True)
    assert (ann.status, ann.score) == ("not graded", 0)
    assert "No space left" in ann.note
    assert (bob.status, bob.score) == ("graded", FULL)
    monkeypatch.undo()
    assert [r.score for r in grade()] == [FULL, FULL]


def test_grader_that_fails_leaves_the_mark_as_it_was(course, solved, monkeypatch):
    submit(course, "ann", solved, NAME)
    grader = Grader(course, NAME)
    grader.grade()

    def fail(*_):
        raise RuntimeError("out of order")

    monkeypatch.setattr(grading, "run", fail)
    (ann,) = grader.grade(again=True)
    assert (ann.status, ann.note) == ("not graded", "RuntimeError: out of order")
    assert mark_of(course, "ann", NAME).score == FULL
    assert results.load(course, NAME, "ann").status == "graded"


def test_box_that_does_not_start_is_no_fault_of_the_student(
    course, solved, monkeypatch
):
    submit(course, "ann", solved, NAME)
    grader = Grader(course, NAME, Limits(memory=1 << 20))
    (ann,) = grader.grade()
    assert ann.status == "not graded"
    assert "box" in ann.note


def test_two_graders_at_a_time_are_refused(course):
    with (
        grading._only_one(course, NAME),
        pytest.raises(ValueError, match="one command at a time"),
    ):
        Grader(course, NAME).grade()


def test_without_bubblewrap_grading_refuses(course, solved, monkeypatch):
    monkeypatch.setattr(grading, "why_not", lambda: "bwrap cannot be found")
    with pytest.raises(ValueError, match=r"bwrap cannot be found. Install"):
        Grader(course, NAME)
    submit(course, "ann", solved, NAME)
    (ann,) = Grader(course, NAME, boxed=False).grade()
    assert ann.score == FULL


def test_graded_notebook_has_results_and_no_cases(course, solved):
    submit(course, "ann", answer(solved, hebb="def hebb(X):\n    return X"), NAME)
    Grader(course, NAME).grade()
    notebook = nbformat.read(course.notebook("autograded", NAME, "ann"), 4)
    nbformat.validate(notebook)
    assert find(notebook, "hebb").outputs[0].output_type == "error"
    assert "right in all 4" in find(notebook, "energy").outputs[0].text
    assert len(find(notebook, "checks").source) < 200


def test_flags_name_what_a_task_should_do_without(course, solved):
    cheat = "from dlcore.connectionism import hopfield as h\n\ndef hebb(X):\n    return h.hebbian(X)"
    submit(course, "ann", answer(solved, hebb=cheat), NAME)
    find(changed := answer(solved), "hebb").source = "# my own test"
    submit(course, "bob", changed, NAME)
    ann, bob = Grader(course, NAME).grade()
    assert (ann.score, bob.score) == (FULL - 2, FULL)
    assert ann.flags == ["hebb should do without dlcore.connectionism.hopfield"]
    assert (
        ann.said["hebb"] == "hebb: It should do without dlcore.connectionism.hopfield."
    )
    assert bob.flags == ["the locked cell hebb was changed"]


@pytest.mark.parametrize(
    "begin",
    [
        "%matplotlib inline\nfrom dlcore.connectionism.hopfield import hebbian as hebb",
        "import importlib\n"
        "hebb = importlib.import_module('dl' 'core.connectionism.hop' 'field').hebbian",
    ],
    ids=["magic", "hidden name"],
)
def test_functions_of_the_book_are_no_answers(course, solved, begin):
    submit(course, "eve", answer(solved, hebb=begin), NAME)
    (eve,) = Grader(course, NAME).grade()
    caught = "hebb should do without dlcore.connectionism.hopfield" in eve.flags
    assert (eve.score, caught) == (FULL - 2, True)


def test_long_names_take_no_memory_of_ours(course, solved):
    """The parser of Python takes memory with the square of a name's length."""
    submit(course, "eve", add(solved, "import " + "a." * 30_000 + "b"), NAME)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (eve,) = Grader(course, NAME).grade()
    assert eve.score == FULL
    assert "cannot be looked at" in eve.flags[0]
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert taken < 100_000  # kilobytes


def test_what_came_after_the_last_grading_is_not_graded_yet(course, solved):
    submit(course, "ann", solved, NAME)
    Grader(course, NAME).grade()
    assert [row.status for row in marks(course)] == ["graded"]
    submit(course, "ann", answer(solved, hebb=""), NAME)
    file = course.notebook("submitted", NAME, "ann")
    later = time.time() + 10
    os.utime(file, (later, later))
    (ann,) = marks(course)
    assert (ann.status, ann.points) == ("not graded yet", FULL)


def test_the_better_of_two_runs_counts(course, solved, monkeypatch):
    submit(course, "ann", solved, NAME)
    real, runs = grading.run, []

    def run(program, tasks, limits, *more):
        done = real(program, tasks, limits, *more)
        if runs:
            done.tasks = dict.fromkeys(tasks, "It was not reached.")
        done.late = not runs
        runs.append(done)
        return done

    monkeypatch.setattr(grading, "run", run)
    (ann,) = Grader(course, NAME).grade(jobs=2)
    assert (len(runs), ann.score) == (2, FULL)


def test_rewritten_answer_waits_until_it_is_marked(course, solved):
    submit(course, "ann", solved, NAME)
    grade = Grader(course, NAME).grade
    grade()
    by_hand(course, "ann", 3)
    find(changed := answer(solved), "no-unit").source = "Now something else."
    submit(course, "ann", changed, NAME)
    for _ in range(3):
        grade(again=True)
        assert mark_of(course, "ann", NAME) == (FULL + 3, FULL + 3, True)
    by_hand(course, "ann", 1)
    grade(again=True)
    assert mark_of(course, "ann", NAME) == (FULL + 1, FULL + 3, False)


def test_hidden_cases_differ_between_students_and_from_the_visible_ones(course):
    assignment = Grader(course, NAME).assignment
    hidden = [
        str(assignment.hidden(student, secret)["hebb"])
        for student, secret in [("ann", "a"), ("bob", "a"), ("ann", "b")]
    ]
    visible = [
        str(assignment.recipes["hebb"].make(assignment.rng("hebb", i)))
        for i in range(8)
    ]
    assert len({*hidden, *visible}) == 11
    again = str(assignment.hidden("ann", "a")["hebb"])
    assert again == hidden[0]


def test_command_says_what_is_missing(course, capsys):
    assert main(["grade", str(course.root), "transformers"]) == 2
    assert "release" in capsys.readouterr().err
    assert main(["marks", str(course.root / "nowhere")]) == 2
    assert "python -m classroom start" in capsys.readouterr().err


def test_endless_text_is_cut(course, solved):
    """The converter of pages would take hours for it, and so would a look for names."""
    long = add(solved, *["x = " + "1 + " * 5_000 + "1"] * 30)
    find(long, "no-unit").source = "\\begin{a}" * 50_000
    submit(course, "ann", long, NAME)
    (ann,) = Grader(course, NAME).grade()
    assert ann.score == FULL
    assert "cannot be looked at" in ann.flags[0]
    notebook = nbformat.read(course.notebook("autograded", NAME, "ann"), 4)
    sizes = [len(cell.source) for cell in notebook.cells]
    assert max(sizes) < 21_000
    assert sum(sizes) < 250_000
    assert find(notebook, "no-unit").source.endswith("[cut here]")


@pytest.mark.parametrize("where", ["no id", "a new cell", "the question"])
def test_written_answer_waits_wherever_it_is(course, empty, where):
    notebook = answer(empty)
    cell = find(notebook, "no-unit")
    if where == "no id":
        cell.source = "It runs for ever."
        for other in notebook.cells:
            other.metadata = {}
    elif where == "a new cell":
        notebook.cells.append(nbformat.v4.new_markdown_cell("It runs for ever."))
    else:
        find(notebook, "no-unit-question").source += "\n\nIt runs for ever."
    submit(course, "ann", notebook, NAME)
    Grader(course, NAME).grade()
    assert mark_of(course, "ann", NAME).waiting
    shown = nbformat.read(course.notebook("autograded", NAME, "ann"), 4)
    assert "It runs for ever." in find(shown, "no-unit").source
