"""nbgrader's exchange, where strangers write and the teacher reads."""

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeFactory
from traitlets.config import Config

from classroom.course import Course, check_unseen, enrol
from classroom.exchange import Exchange, check_apart, main

ASSIGNMENT = "connectionism"
NAME = f"{ASSIGNMENT}.ipynb"
OLD = f"+{ASSIGNMENT}+2020-01-01 00:00:00.000000 UTC+x"
NEW = f"+{ASSIGNMENT}+2030-01-01 00:00:00.000000 UTC+x"


@pytest.fixture
def exchange(course, tmp_path):
    """A course whose assignment is in the exchange."""
    enrol(course, [{"id": name} for name in ("ann", "bob", "eve", "fay", "gus")])
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
    return {one.file: one.what + (f": {one.why}" if one.why else "") for one in found}


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
            student(exchange, tmp_path, name, "FetchFeedback").glob("feedback/*/*.html")
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
        f"eve{OLD}": "refused: It cannot be opened: Too many levels of symbolic links.",
    }
    kept = exchange.course.root / "submitted"
    assert [file.name for file in sorted(kept.glob("*/*/*"))] == [
        NAME,
        "submission_secret.txt",
        "timestamp.txt",
        *("refused.txt", "refused.txt"),
    ]


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
    (kept,) = (folder / "earlier").iterdir()
    assert kept.name == "2030-01-01T00-00-00Z.ipynb"
    assert nbformat.read(kept, 4) == solved


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
    folder = exchange.course.folder("submitted", ASSIGNMENT, "ann")
    assert not (folder / "refused.txt").exists()


def test_what_is_no_notebook_replaces_none(exchange, inbound, solved, capsys):
    put(inbound / f"ann{OLD}", solved)
    taken(exchange)
    put(inbound / f"ann{NEW}", solved)
    (inbound / f"ann{NEW}" / NAME).write_text("Rar!")
    put(inbound / f"bob{NEW}", solved)
    (inbound / f"bob{NEW}" / NAME).rename(inbound / f"bob{NEW}" / "b.IPYNB")
    shared = ["--exchange", str(exchange.root)]
    course = exchange.course
    assert main(["collect", str(course.root), ASSIGNMENT, *shared]) == 1
    *_, last = capsys.readouterr().out.splitlines()
    assert last == (
        "1 new, 0 replaced, 0 unchanged, 1 refused; "
        "3 of 5 students have handed in nothing."
    )
    folder = course.folder("submitted", ASSIGNMENT, "ann")
    assert nbformat.read(folder / NAME, 4) == solved
    note = "It is called a notebook, but it is none.\n"
    assert (folder / "refused.txt").read_text() == note
    shutil.rmtree(inbound / f"ann{NEW}")
    assert taken(exchange)[f"ann{OLD}"] == "unchanged"
    assert not (folder / "refused.txt").exists()


def test_no_exchange_lies_where_students_code_can_see_it(course, tmp_path, monkeypatch):
    check_unseen("The exchange", Path("/usr/local/share/nbgrader/exchange"))
    monkeypatch.setattr("classroom.box.mounted", lambda: [tmp_path / "seen"])
    with pytest.raises(ValueError, match="The exchange must lie where no"):
        Exchange(course, ASSIGNMENT, tmp_path / "seen" / "exchange")
    with (course.root / "nbgrader_config.py").open("a") as settings:
        settings.write(f"c.Exchange.root = {str(tmp_path / 'seen')!r}\n")
    with pytest.raises(ValueError, match="The exchange must lie where no"):
        check_apart(course)


def test_a_course_that_was_not_released_is_refused(course, tmp_path, capsys):
    (tmp_path / "exchange").mkdir()
    shared = ["--exchange", str(tmp_path / "exchange")]
    assert main(["collect", str(course.root), ASSIGNMENT, *shared]) == 2
    assert "First: python -m classroom.exchange" in capsys.readouterr().err
