"""Bad submissions among honest ones: marks stay right, and nothing else changes."""

import hashlib
import os
import shutil

import hostile
import pytest
from hostile import ANY_STATUS, BREAKING, FILES, FULL, HONEST, TAMPERING
from students import add, mark_of, submit

from classroom.box import Limits
from classroom.feedback import feedback
from classroom.grading import Grader

pytestmark = pytest.mark.usefixtures("boxes")
NAME = "connectionism"
ANN, ZOE = "a-ann", "z-zoe"  # honest, graded first and last


def snapshot(*places):
    """Return the digests of all files in some folders."""
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for place in places
        for file in sorted(place.rglob("*"))
        if file.is_file() and not file.is_symlink()
    }


def outside(course):
    """Return the digests of all files beside the course."""
    here = snapshot(course.root.parent)
    return {f: d for f, d in here.items() if not f.startswith(f"{course.root}/")}


def grade(course, cases, empty, solved, seconds=20.0, jobs=2):
    """Grade cases among honest students; return results by the names of the cases."""
    names = {name: f"s-{i}" for i, name in enumerate(cases)}
    submit(course, ANN, solved, NAME)
    submit(course, ZOE, solved, NAME)
    for name, student in names.items():
        submit(course, student, cases[name].make(empty, solved), NAME)
    (course.root.parent / "notes.txt").write_text("The teacher's own.")
    kept = [course.root / step for step in ("source", "release", "submitted")]
    before = snapshot(*kept), outside(course)
    grader = Grader(course, NAME, Limits(seconds=seconds))
    results = {r.student: r for r in grader.grade(jobs=jobs)}
    assert (snapshot(*kept), outside(course)) == before
    for student in (ANN, ZOE):
        assert (results[student].status, results[student].score) == ("graded", FULL)
        assert mark_of(course, student, NAME).score == FULL
    return {name: results[student] for name, student in names.items()}


def assert_as_expected(cases, results):
    wrong = {
        name: (result.score, result.status, result.note)
        for name, result in results.items()
        if cases[name].points not in (None, result.score)
        or (name not in ANY_STATUS and result.status != cases[name].status)
    }
    assert not wrong, wrong


def test_there_are_enough():
    bad = {**TAMPERING, **BREAKING, **FILES}
    assert len(bad) >= 60


def test_clumsy_students_get_their_marks(course, empty, solved):
    results = grade(course, HONEST, empty, solved)
    assert_as_expected(HONEST, results)
    assert "R" in results["another kernel"].flags[0]
    assert "twice" in results["cells copied"].flags[0]
    assert "too long" in results["a large picture"].flags[0]
    assert not results["imports to compare with"].flags


def test_cheats_get_nothing(course, empty, solved):
    results = grade(course, TAMPERING, empty, solved)
    assert_as_expected(TAMPERING, results)
    (flag,) = results["three formulas"].flags
    assert flag == "hebb is right as a later cell left it"
    student = f"s-{list(TAMPERING).index('files searched')}"
    ((_, page, _),) = feedback(course, NAME, [student])
    assert "FOUND []" in page.read_text()


def test_what_breaks_costs_only_itself(course, empty, solved):
    # Some wait until they are stopped, so more of them go side by side.
    results = grade(course, BREAKING, empty, solved, seconds=2.0, jobs=4)
    assert_as_expected(BREAKING, results)
    student = f"s-{list(BREAKING).index('more rights')}"
    notebook = course.notebook("autograded", NAME, student).read_text()
    assert "HELD" in notebook
    student = f"s-{list(BREAKING).index('200 MB of output')}"
    file = course.notebook("autograded", NAME, student)
    assert file.stat().st_size < 200_000


def place_links(course, solved):
    """Hand in links instead of files, and other things that are no notebooks."""
    victim = course.root / "gradebook.db"
    for student in ("link", "folder-link", "student-link", "pipe", "folder", "two"):
        course.folder("submitted", NAME, student).mkdir(parents=True)
    course.notebook("submitted", NAME, "link").symlink_to(victim)
    folder = course.folder("submitted", NAME, "folder-link")
    folder.rmdir()
    folder.symlink_to(course.folder("submitted", NAME, ANN))
    shutil.rmtree(course.root / "submitted" / "student-link")
    (course.root / "submitted" / "student-link").symlink_to(
        course.root / "submitted" / ANN
    )
    os.mkfifo(course.notebook("submitted", NAME, "pipe"))
    course.notebook("submitted", NAME, "folder").mkdir()
    for name in ("one.ipynb", "two.ipynb"):
        (course.folder("submitted", NAME, "two") / name).write_text("{}")
    course.folder("submitted", NAME, "none").mkdir(parents=True)
    submit(course, "renamed", solved, NAME)
    file = course.notebook("submitted", NAME, "renamed")
    file.rename(file.with_name("final version (2).ipynb"))


def test_broken_files_have_a_status(course, empty, solved):
    submit(course, ANN, solved, NAME)
    submit(course, ZOE, solved, NAME)
    for i, (data, _, _) in enumerate(FILES.values()):
        file = course.notebook("submitted", NAME, f"s-{i}")
        file.parent.mkdir(parents=True)
        file.write_bytes(data)
    place_links(course, solved)
    results = {r.student: r for r in Grader(course, NAME).grade()}
    wrong = {
        name: (result.status, result.note)
        for i, (name, (_, points, status)) in enumerate(FILES.items())
        if (result := results[f"s-{i}"])
        and (result.score, result.status) != (points, status)
    }
    assert not wrong, wrong
    refused = ("link", "folder-link", "student-link", "pipe", "folder", "two")
    assert {results[student].status for student in refused} == {"refused"}
    assert results["none"].status == "missing"
    assert results["renamed"].score == FULL
    assert "final version" in results["renamed"].flags[0]
    for student in (ANN, ZOE):
        assert (results[student].status, results[student].score) == ("graded", FULL)
    assert len(list(feedback(course, NAME))) == len(results) - 1


def test_hidden_inputs_are_not_carried_out(course, empty, solved):
    """Try to bring the inputs out by printing, raising, naming and answering."""
    bodies = {
        "print": "print('SECRET', X); import sys; sys.stderr.write(str(X))",
        "raise": "raise ValueError('SECRET' + str(X.tolist()))",
        "name": "raise type('SECRET' + str(abs(hash(X.tobytes()))), (Exception,), {})",
        "answer": "return 'SECRET' + str(X.tolist())",
        "shape": "import numpy as np; return np.zeros(int(abs(X.sum())) + 100)",
        "key": "return {'SECRET' + str(X.tolist()): 1}",
        "type": "return type('SECRET', (), {})()",
        "file": "import os\n    for place in ('/tmp', '/dev/shm'):\n"
        "        open(place + '/SECRET', 'w').write(str(X))\n    os.kill(-1, 9)",
    }
    for student, body in bodies.items():
        case = hostile.one_bad(body, "graded")
        looks = (
            "import glob\nprint('LEFT', glob.glob('/tmp/S*'), glob.glob('/dev/shm/S*'))"
        )
        submit(course, student, add(case.make(empty, solved), looks), NAME)
    results = Grader(course, NAME).grade()
    assert [r.score for r in results] == [FULL - 2] * len(bodies)
    for result in results:
        assert "SECRET" not in result.said["hebb"]
        assert "shape (10" not in result.said["hebb"]
    for student, page, _ in feedback(course, NAME):
        source = bodies[student]
        text = page.read_text()
        assert "LEFT [] []" in text
        assert text.count("SECRET") == source.count("SECRET")
