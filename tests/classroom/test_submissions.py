"""Putting submissions in: names, archives, and what is refused."""

import json
import os
import stat
import zipfile

import pytest

from classroom.course import check_name, start
from classroom.reading import examine, submitted
from classroom.submissions import collect, write_whole

NAME = "connectionism"
DATA = json.dumps(
    {"cells": [{"cell_type": "code", "source": ["x = 1"]}]}
).encode()


def gather(course, *sources):
    return [(c.student, c.what) for c in collect(course, NAME, sources)]


def test_notebooks_are_named_after_students(course, tmp_path):
    (tmp_path / "ann.ipynb").write_bytes(DATA)
    assert gather(course, tmp_path / "ann.ipynb") == [("ann", "new")]
    assert gather(course, tmp_path / "ann.ipynb") == [("ann", "unchanged")]
    (tmp_path / "ann.ipynb").write_bytes(DATA + b" ")
    assert gather(course, tmp_path / "ann.ipynb") == [("ann", "replaced")]
    assert course.notebook("submitted", NAME, "ann").read_bytes() == DATA + b" "
    assert submitted(course, NAME) == ["ann"]
    assert examine(course, NAME, "ann").cells[0].source == "x = 1"


def test_folders_are_named_after_students(course, tmp_path):
    for student in ["ann", "bob"]:
        (tmp_path / "in" / student).mkdir(parents=True)
        (tmp_path / "in" / student / f"{NAME}.ipynb").write_bytes(DATA)
    (tmp_path / "in" / ".ipynb_checkpoints").mkdir()
    (tmp_path / "in" / ".ipynb_checkpoints" / "eve.ipynb").write_bytes(DATA)
    assert gather(course, tmp_path / "in") == [("ann", "new"), ("bob", "new")]


@pytest.mark.parametrize("kind", ["folder", "archive", "archive of one"])
def test_nobody_hands_in_for_another(course, tmp_path, kind):
    (tmp_path / "ann.ipynb").write_bytes(DATA)
    (tmp_path / "eve.ipynb").write_bytes(DATA)
    gather(course, tmp_path / "ann.ipynb", tmp_path / "eve.ipynb")
    inside = "ann.ipynb" if kind == "archive of one" else "class/eve/ann.ipynb"
    source = tmp_path / ("eve.zip" if kind == "archive of one" else "in")
    if kind == "folder":
        (source / inside).parent.mkdir(parents=True)
        (source / inside).write_bytes(b"empty")
    else:
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr(inside, b"empty")
    assert gather(course, source) == [
        ("ann", "refused: It must be of one student; got a notebook of 'ann' from 'eve'.")
    ]  # fmt: skip
    assert course.notebook("submitted", NAME, "ann").read_bytes() == DATA


def test_archives_are_unpacked_with_care(course, tmp_path):
    file = tmp_path / "all.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"class/ann/{NAME}.ipynb", DATA)
        archive.writestr("bob.ipynb", DATA)
        archive.writestr("../../evil.ipynb", DATA)
        archive.writestr("/etc/root.ipynb", DATA)
        archive.writestr("bomb.ipynb", b"0" * 50_000_000)
        archive.writestr("__MACOSX/bob.ipynb", DATA)
        archive.writestr("readme.txt", DATA)
        link = zipfile.ZipInfo("link.ipynb")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "../../gradebook.db")
    before = sorted(tmp_path.rglob("*"))
    found = dict(gather(course, file))
    assert {s: w for s, w in found.items() if w == "new"} == {
        "ann": "new",
        "bob": "new",
    }
    assert "leads out" in found["evil"]
    assert "leads out" in found["root"]
    assert "bytes" in found["bomb"]
    assert "link" in found["link"]
    new = [f for f in tmp_path.rglob("*") if f not in before]
    assert all(f.is_relative_to(course.root / "submitted") for f in new)


def test_archive_with_too_many_files_is_refused(course, tmp_path):
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for i in range(6000):
            archive.writestr(f"{i}.ipynb", "")
    ((_, what),) = gather(course, tmp_path / "many.zip")
    assert "5000 files" in what


def test_names_in_archives_do_nothing_to_a_terminal(course, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a\x1b[2J\nann  new.ipynb", DATA)
    (one,) = collect(course, NAME, [tmp_path / "x.zip"])
    assert one.refused
    assert f"{one}".isprintable()


def test_broken_archive_is_refused(course, tmp_path):
    with zipfile.ZipFile(
        tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED
    ) as archive:
        archive.writestr("ann.ipynb", DATA * 1000)
    data = bytearray((tmp_path / "x.zip").read_bytes())
    data[60:80] = bytes(20)
    (tmp_path / "x.zip").write_bytes(data)
    ((_, what),) = gather(course, tmp_path / "x.zip")
    assert what.startswith("refused: It cannot be unpacked")


def test_unknown_students_are_refused_if_there_is_a_list(course, tmp_path):
    (tmp_path / "names.csv").write_text("id\nannabel\n")
    start(course.root, tmp_path / "names.csv")
    (tmp_path / "anabel.ipynb").write_bytes(DATA)
    ((_, what),) = gather(course, tmp_path / "anabel.ipynb")
    assert what == (
        "refused: A student must be on the list; got 'anabel'. Is it annabel?"
    )


@pytest.mark.parametrize(
    "name", ["", "..", ".hidden", "a/b", "-x", "a b", "x" * 101, "字" * 90]
)
def test_names_that_are_no_folders_are_refused(name):
    with pytest.raises(ValueError, match="must be made of letters"):
        check_name("A name", name)


@pytest.mark.parametrize(
    ("file", "language"),
    [(b"\xff\x1b[2J.ipynb", "python"), (b"x.ipynb", "\x1b[2J\n")],
)
def test_flags_do_nothing_to_a_terminal(course, file, language):
    folder = course.folder("submitted", NAME, "ann")
    folder.mkdir(parents=True)
    kernel = {"metadata": {"kernelspec": {"language": language}}}
    data = json.dumps({**json.loads(DATA), **kernel})
    (folder / os.fsdecode(file)).write_text(data)
    flags = examine(course, NAME, "ann").flags
    assert flags
    assert all(flag.isprintable() for flag in flags)


def test_title_alone_does_not_say_whose_it_is(course, tmp_path):
    file = tmp_path / f"{NAME}.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{NAME}.ipynb", DATA)
    ((_, what),) = gather(course, file)
    assert "say whose it is" in what


def test_links_are_refused(course, tmp_path):
    (tmp_path / "ann.ipynb").symlink_to(course.root / "secret.txt")
    ((_, what),) = gather(course, tmp_path / "ann.ipynb")
    assert what == "refused: It is a link."


def test_writing_fails_as_a_whole(tmp_path, monkeypatch):
    file = tmp_path / "file"
    write_whole(file, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_course_keeps_what_is_there(course, tmp_path):
    secret = course.secret
    (tmp_path / "names.csv").write_text("id,first_name\nann,Ann\nbob,Bob\n")
    again = start(course.root, tmp_path / "names.csv")
    assert again.secret == secret
    assert again.students() == ["ann", "bob"]
    assert (course.root / "secret.txt").stat().st_mode & 0o077 == 0


def test_tables_without_ids_are_refused(tmp_path):
    (tmp_path / "names.csv").write_text("name\nann\n")
    with pytest.raises(ValueError, match="columns id, and perhaps"):
        start(tmp_path / "course", tmp_path / "names.csv")
