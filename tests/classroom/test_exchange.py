"""nbgrader's exchange, where strangers write and the teacher reads."""

import os
import shutil

import nbformat
import pytest
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeFactory
from traitlets.config import Config

from classroom.course import Course, enrol
from classroom.exchange import Exchange, main

ASSIGNMENT = "connectionism"
NAME = f"{ASSIGNMENT}.ipynb"
OLD = f"+{ASSIGNMENT}+2020-01-01 00:00:00.000000 UTC+x"
NEW = f"+{ASSIGNMENT}+2030-01-01 00:00:00.000000 UTC+x"


@pytest.fixture
def exchange(course, tmp_path):
    """A course whose assignment is in the exchange."""
    enrol(
        course, [{"id": name} for name in ("ann", "bob", "eve", "fay", "gus")]
    )
    shared = Exchange(course, ASSIGNMENT, tmp_path / "exchange")
    shared.release()
    return shared


@pytest.fixture
def inbound(exchange):
    return exchange.folder / "inbound"


def student(exchange, tmp_path, name, step):
    """Do what the server of a student does: fetch, submit, fetch feedback."""
    home = tmp_path / "home" / name
    home.mkdir(parents=True, exist_ok=True)
    config = Config()
    config.Exchange.root = str(exchange.folder.parent)
    config.Exchange.cache = str(home / "cache")
    config.Exchange.assignment_dir = str(home)
    config.CourseDirectory.course_id = exchange.course.root.name
    config.CourseDirectory.assignment_id = ASSIGNMENT
    config.CourseDirectory.student_id = name
    getattr(ExchangeFactory(config=config), step)(
        coursedir=CourseDirectory(config=config),
        authenticator=Authenticator(config=config),
        config=config,
    ).start()
    return home / ASSIGNMENT


def put(folder, notebook, secret="s"):
    """Write what a submission consists of."""
    folder.mkdir()
    nbformat.write(notebook, folder / NAME)
    (folder / "submission_secret.txt").write_text(secret)


def taken(exchange):
    found = list(exchange.collect())
    assert all(f"{one}".encode().decode().isprintable() for one in found)
    return {one.file: one.what for one in found}


@pytest.mark.usefixtures("boxes")
@pytest.mark.filterwarnings("ignore:unclosed file.*timestamp:ResourceWarning")
def test_each_student_gets_their_own_page(exchange, solved, tmp_path, capsys):
    root, shared = str(exchange.course.root), str(exchange.folder.parent)
    for name in ("ann", "eve"):
        work = student(exchange, tmp_path, name, "FetchAssignment")
        if name == "ann":
            nbformat.write(solved, work / NAME)
        student(exchange, tmp_path, name, "Submit")
    steps = ["classroom.exchange collect", "classroom grade"]
    steps += ["classroom feedback", "classroom.exchange feedback"]
    for step in steps:
        run(step, root, shared)
    pages = {
        name: list(
            student(exchange, tmp_path, name, "FetchFeedback").glob(
                "feedback/*/*.html"
            )
        )
        for name in ("ann", "eve")
    }
    for name, (page,) in pages.items():
        own = Course(exchange.course.root).folder("feedback", ASSIGNMENT, name)
        assert page.read_bytes() == (own / f"{ASSIGNMENT}.html").read_bytes()
    assert "ann                  given back" in capsys.readouterr().out
    student(exchange, tmp_path, "eve", "Submit")
    run("classroom.exchange collect", root, shared)
    nbformat.write(solved, tmp_path / "home" / "eve" / ASSIGNMENT / NAME)
    student(exchange, tmp_path, "eve", "Submit")
    run("classroom.exchange collect", root, shared)
    run("classroom.exchange feedback", root, shared)
    assert "eve                  handed in again" in capsys.readouterr().out


def run(step, root, shared):
    from classroom.__main__ import main as classroom

    package, command = step.split()
    if package == "classroom":
        assert classroom([command, root, ASSIGNMENT]) == 0
    else:
        assert main([command, root, ASSIGNMENT, "--exchange", shared]) == 0


def test_links_are_not_followed(exchange, inbound, solved, tmp_path):
    put(inbound / f"ann{OLD}", solved)
    put(tmp_path / "elsewhere", solved)
    (inbound / f"bob{OLD}").symlink_to(tmp_path / "elsewhere")
    put(inbound / f"eve{OLD}", solved)
    (inbound / f"eve{OLD}" / NAME).unlink()
    source = exchange.course.notebook("source", ASSIGNMENT)
    (inbound / f"eve{OLD}" / NAME).symlink_to(source)
    assert taken(exchange) == {
        f"ann{OLD}": "new",
        f"bob{OLD}": "refused: It is not a folder.",
        f"eve{OLD}": f"refused: {NAME}: Too many levels of symbolic links.",
    }
    assert os.listdir(exchange.course.root / "submitted") == ["ann"]


def test_strange_folders_stop_nobody(exchange, inbound, solved):
    put(inbound / f"ann{OLD}", solved)
    put(inbound / f"..{OLD}", solved)
    put(inbound / f"bob+{ASSIGNMENT}+yesterday, perhaps", solved)
    put(inbound / f"bob+{ASSIGNMENT}", solved)
    (inbound / f"eve{OLD}").write_text("a file")
    os.mkfifo(inbound / f"fay{OLD}")
    (inbound / f"gus{OLD}").mkdir()
    no_text = os.fsdecode(b"\xff\x1b[2J")
    put(inbound / f"{no_text}{OLD}", solved)
    put(inbound / f"{ASSIGNMENT}{OLD}", solved)
    what = taken(exchange)
    assert what.pop(f"ann{OLD}") == "new"
    assert what.pop(f"{ASSIGNMENT}{OLD}") == "new"
    assert len(what) == 7
    assert all(said.startswith("refused: ") for said in what.values())
    assert not (exchange.course.root / ASSIGNMENT).exists()


def test_the_latest_submission_counts(exchange, inbound, solved, empty):
    put(inbound / f"ann{OLD}", empty)
    put(inbound / f"ann{NEW}", solved, "new")
    assert taken(exchange) == {f"ann{NEW}": "new"}
    folder = exchange.course.folder("submitted", ASSIGNMENT, "ann")
    assert (folder / "submission_secret.txt").read_text() == "new"
    assert nbformat.read(folder / NAME, 4) == solved
    shutil.rmtree(inbound / f"ann{NEW}")
    assert taken(exchange) == {f"ann{OLD}": "replaced"}


def test_what_another_student_owns_is_refused(
    exchange, inbound, solved, empty, monkeypatch
):
    put(inbound / f"ann{OLD}", solved)
    put(inbound / f"bob{OLD}", solved)
    taken(exchange)
    put(inbound / f"ann{NEW}", empty)
    owner = os.lstat(inbound / f"ann{NEW}").st_uid

    class User:
        pw_name = "bob"

    monkeypatch.setattr("pwd.getpwuid", lambda uid: {owner: User}[uid])
    what = taken(exchange)
    assert what[f"ann{NEW}"] == "refused: It must be the student's; got bob's."
    assert what[f"bob{OLD}"] == "unchanged"


def test_a_course_that_was_not_released_is_refused(course, tmp_path, capsys):
    (tmp_path / "exchange").mkdir()
    shared = ["--exchange", str(tmp_path / "exchange")]
    assert main(["collect", str(course.root), ASSIGNMENT, *shared]) == 2
    assert "First: python -m classroom.exchange" in capsys.readouterr().err
