"""Putting submissions in: names, archives, and what is refused."""

import io
import json
import os
import stat
import unicodedata
import zipfile
from datetime import UTC, datetime

import pytest
from nbgrader.apps.api import NbGraderAPI

from classroom import archives, collecting
from classroom.__main__ import main
from classroom.collecting import collect
from classroom.course import Course, check_name, check_unseen, enrol, start
from classroom.owners import Roster, whose
from classroom.reading import examine, submitted
from classroom.submissions import EARLIER, REFUSED_NOTE, STAMP, look, take, write_whole

NAME = "connectionism"
DATA = json.dumps({"cells": [{"cell_type": "code", "source": ["x = 1"]}]}).encode()


OTHER = DATA.replace(b"x = 1", b"x = 2")
LIST = """\
id,first_name,last_name,email
ann,Ann,Arbor,ann.arbor@example.org
bob,Bob,Burns,bob@example.org
eve,Eve,Evans,eve@example.org
jose,José,Núñez,jn@example.org
lee1,Kim,Lee,kim1@example.org
lee2,Kim,Lee,kim2@example.org
"""
MOODLE = "assignsubmission_file_"


@pytest.fixture
def listed(course, tmp_path):
    """A course with a list of students."""
    (tmp_path / "names.csv").write_text(LIST, encoding="utf-8")
    return start(course.root, tmp_path / "names.csv")


def gather(course, *sources):
    return [(c.student, c.what) for c in collect(course, NAME, sources)]


def reasons(course, *sources):
    return {c.student: c.why for c in collect(course, NAME, sources) if c.why}


def pack(file, **members):
    """Make an archive."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file


def spread(folder, **files):
    """Make a folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def there(course, student):
    return course.notebook("submitted", NAME, student).read_bytes()


def note(course, student):
    folder = course.folder("submitted", NAME, student)
    return (folder / REFUSED_NOTE).read_text(encoding="utf-8")


def test_notebooks_are_named_after_students(course, tmp_path):
    (tmp_path / "ann.ipynb").write_bytes(DATA)
    assert gather(course, tmp_path / "ann.ipynb") == [("ann", "new")]
    assert gather(course, tmp_path / "ann.ipynb") == [("ann", "unchanged")]
    (tmp_path / "ann.ipynb").write_bytes(DATA + b" ")
    assert gather(course, tmp_path / "ann.ipynb") == [("ann", "replaced")]
    assert there(course, "ann") == DATA + b" "
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
    enrol(course, [{"id": "ann"}, {"id": "eve"}])
    take(course, NAME, "ann", DATA)
    if kind == "folder":
        source = spread(tmp_path / "in", **{"class/eve/ann.ipynb": OTHER})
    elif kind == "archive":
        source = pack(tmp_path / "in.zip", **{"class/eve/ann.ipynb": OTHER})
    else:
        source = pack(tmp_path / "eve.zip", **{"ann.ipynb": OTHER})
    assert reasons(course, source) == {
        "eve": "It is in a folder of eve, but called 'ann.ipynb'."
    }
    assert there(course, "ann") == DATA
    assert "called 'ann.ipynb'" in note(course, "eve")


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("packed", [True, False])
def test_the_folder_of_a_platform_says_whose_it_is(listed, tmp_path, packed, order):
    take(listed, NAME, "bob", DATA)
    files = {
        f"Bob Burns_102_{MOODLE}/{NAME}.ipynb": DATA,
        f"Eve Evans_103_{MOODLE}/bob.ipynb": OTHER,
    }
    files = dict([*files.items()][::order])
    make = pack if packed else spread
    source = make(tmp_path / ("in.zip" if packed else "in"), **files)
    assert gather(listed, source) == [("bob", "unchanged"), ("eve", "new")]
    assert there(listed, "bob") == DATA
    assert there(listed, "eve") == OTHER


@pytest.mark.parametrize("order", [1, -1])
def test_two_different_notebooks_of_one_student_are_refused(listed, tmp_path, order):
    take(listed, NAME, "ann", DATA)
    files = {"ann.ipynb": OTHER, "bob.ipynb": OTHER}
    sources = [
        spread(tmp_path / "in", **files),
        pack(tmp_path / "in.zip", **{f"Ann Arbor_1_{MOODLE}/{NAME}.ipynb": DATA}),
    ]
    found = gather(listed, *sources[::order])
    assert found == [("ann", "refused"), ("ann", "refused"), ("bob", "new")]
    assert there(listed, "ann") == DATA
    assert "2 different notebooks were handed in" in note(listed, "ann")


def test_the_same_notebook_twice_is_one(listed, tmp_path):
    source = spread(tmp_path / "in", **{"ann.ipynb": DATA, f"ann/{NAME}.ipynb": DATA})
    assert gather(listed, source) == [("ann", "new"), ("ann", "left out")]


def test_of_notebooks_in_one_folder_the_title_counts(listed, tmp_path):
    files = {f"bob/{NAME}.ipynb": DATA, "bob/trial.ipynb": OTHER}
    assert gather(listed, spread(tmp_path / "one", **files)) == [
        ("bob", "new"),
        ("bob", "left out"),
    ]
    assert there(listed, "bob") == DATA
    files[f"bob/{NAME} (1).ipynb"] = OTHER + b" "
    assert gather(listed, spread(tmp_path / "two", **files)) == [("bob", "refused")] * 3
    files = {f"bob/{NAME}.ipynb": b"PK", "bob/trial.ipynb": OTHER}
    assert (
        gather(listed, spread(tmp_path / "three", **files)) == [("bob", "refused")] * 2
    )
    assert there(listed, "bob") == DATA


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("ann.rar", b"Rar!", "must be a notebook (.ipynb); got 'ann.rar'"),
        ("ann.pdf", b"%PDF", "must be a notebook"),
        (f"ann/{NAME}.py", b"x = 1", "must be a notebook"),
        ("ann.ipynb", b"Rar!", "called a notebook, but it is none"),
        ("ann.ipynb", b"", "It is empty."),
        ("ann.ipynb", b"[1, 2]", "called a notebook, but it is none"),
        ("ann.ipynb", b'{"a": "cells"}', ""),  # as far as a look can tell
        ("ann.ipynb", b'{"a": 1}', "it has no cells"),
        ("ann.ipynb", b"{" + b" " * 20_000_000, "have ≤ 20,000,000 bytes"),
    ],
)
def test_what_is_no_notebook_replaces_none(listed, tmp_path, name, data, why):
    take(listed, NAME, "ann", DATA)
    found = list(collect(listed, NAME, [spread(tmp_path / "in", **{name: data})]))
    assert [one.student for one in found] == ["ann"]
    if why:
        assert found[0].refused
        assert why in found[0].why
        assert why in note(listed, "ann")
        assert there(listed, "ann") == DATA
        take(listed, NAME, "ann", OTHER)
    folder = listed.folder("submitted", NAME, "ann")
    assert not (folder / REFUSED_NOTE).exists()


def test_whoever_is_refused_is_not_missing(listed, tmp_path):
    gather(listed, spread(tmp_path / "in", **{"ann.pdf": b"%PDF"}))
    seen = examine(listed, NAME, "ann")
    assert (seen.status, seen.note) == (
        "refused",
        "ann.pdf: It must be a notebook (.ipynb); got 'ann.pdf'.",
    )
    gather(listed, spread(tmp_path / "in", **{"ann.ipynb": DATA}))
    assert examine(listed, NAME, "ann").status == ""


def test_archives_in_archives_are_listed(listed, tmp_path):
    inner = io.BytesIO()
    pack(inner, **{"ann.ipynb": DATA})
    source = pack(tmp_path / "in.zip", **{"ann.zip": inner.getvalue()})
    assert "Unpack it first." in reasons(listed, source)["ann"]


@pytest.mark.parametrize("text", ["utf-8-sig", "utf-16", "utf-32"])
def test_notebooks_in_any_unicode_are_taken(listed, tmp_path, text):
    data = DATA.decode().encode(text)
    source = spread(tmp_path / "in", **{"ann.IPYNB": data})
    assert gather(listed, source) == [("ann", "new")]


def test_the_word_may_lie_between_two_looks():
    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 5))

    assert look(Slow(DATA)) == look(io.BytesIO(DATA))


def test_what_is_beside_a_notebook_is_left_out(listed, tmp_path):
    source = pack(
        tmp_path / "in.zip",
        **{
            f"ann/{NAME}.ipynb": DATA,
            "ann/plot.png": b"",
            "ann/.DS_Store": b"",
            "ann/.git/config": b"",
            "ann/.ipynb_checkpoints/x.ipynb": OTHER,
            "__MACOSX/ann/._x.ipynb": b"",
            "Thumbs.db": b"",
            "readme.txt": b"",
        },
    )
    assert gather(listed, source) == [
        ("ann", "new"),
        ("ann", "left out"),
        ("", "refused"),
    ]


def test_what_is_replaced_is_kept(listed, tmp_path):
    folder = listed.folder("submitted", NAME, "ann")
    for data in (DATA, OTHER, DATA + b" "):
        assert take(listed, NAME, "ann", data, datetime(2020, 1, 2, 3, 4, 5, 0, UTC))
    assert (folder / STAMP).read_text() == "2020-01-02 03:04:05 UTC\n"
    kept = {f.name: f.read_bytes() for f in (folder / EARLIER).iterdir()}
    assert kept == {
        "2020-01-02T03-04-05Z.ipynb": DATA,
        "2020-01-02T03-04-05Z-1.ipynb": OTHER,
    }
    assert examine(listed, NAME, "ann").status == ""
    api = NbGraderAPI(listed.directory("*"))
    assert api.get_submitted_students(NAME) == {"ann"}
    assert api.get_submitted_timestamp(NAME, "ann").year == 2020


@pytest.mark.parametrize("year", [1980, 2999])
def test_times_that_cannot_be_true_are_not_believed(listed, year):
    take(listed, NAME, "ann", DATA, datetime(year, 1, 1, tzinfo=UTC))
    stamp = listed.folder("submitted", NAME, "ann") / STAMP
    assert not stamp.read_text().startswith(str(year))


def test_the_time_of_a_file_in_an_archive_counts(listed, tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        member = zipfile.ZipInfo("ann.ipynb", (2021, 6, 15, 12, 0, 0))
        archive.writestr(member, DATA)
        archive.writestr(zipfile.ZipInfo("bob.ipynb", (2021, 0, 0, 0, 0, 0)), DATA)
    gather(listed, tmp_path / "in.zip")
    stamp = listed.folder("submitted", NAME, "ann") / STAMP
    assert stamp.read_text().startswith("2021-06-1")


def test_many_files_cost_only_their_student(listed, tmp_path, monkeypatch):
    monkeypatch.setattr(collecting, "MAX_FILES", 20)
    files = {f"Eve Evans_1_{MOODLE}/{i}.txt": b"" for i in range(30)}
    files[f"Eve Evans_1_{MOODLE}/{NAME}.ipynb"] = OTHER
    source = pack(tmp_path / "in.zip", **{"ann.ipynb": DATA, **files})
    ann, eve = collect(listed, NAME, [source])
    assert (ann.student, ann.what) == ("ann", "new")
    assert (eve.student, eve.what, eve.file) == ("eve", "refused", "31 files")
    assert "≤ 20 files" in note(listed, "eve")


def test_big_notebooks_cost_only_their_student(listed, tmp_path, monkeypatch):
    monkeypatch.setattr(collecting, "MAX_OWN", 3 * len(DATA))
    monkeypatch.setattr(collecting, "MAX_ALL", 5 * len(DATA))
    files = {f"eve/{i}.ipynb": DATA for i in range(4)}
    files |= {f"bob/{i}.ipynb": DATA for i in range(3)}
    files |= {"ann.ipynb": DATA, "lee1.ipynb": DATA}
    files["ann/large.txt"] = DATA * 100
    found = gather(listed, pack(tmp_path / "in.zip", **files))
    assert found == [
        ("ann", "new"),
        ("ann", "left out"),
        ("bob", "new"),
        ("bob", "left out"),
        ("bob", "left out"),
        ("eve", "refused"),
        ("lee1", "new"),
    ]
    monkeypatch.setattr(collecting, "MAX_ALL", 2 * len(DATA))
    assert ("bob", "refused") in gather(listed, tmp_path / "in.zip")


@pytest.mark.parametrize(
    ("name", "student"),
    [
        # by people
        ("ann.ipynb", "ann"),
        ("Ann.IPYNB", "ann"),
        ("Ann Arbor.ipynb", "ann"),
        ("Arbor, Ann.ipynb", "ann"),
        ("ann.arbor@example.org.ipynb", "ann"),
        (f"ann_{NAME}.ipynb", "ann"),
        (f"{NAME} - Ann Arbor.ipynb", "ann"),
        (f"ann/{NAME}.ipynb", "ann"),
        ("ann/solution.ipynb", "ann"),
        (f"class/ann/week 1/{NAME}.ipynb", "ann"),
        # by browsers and programs
        ("ann (1).ipynb", "ann"),
        (f"ann/{NAME} (1).ipynb", "ann"),
        (f"ann/{NAME}-1.ipynb", "ann"),
        (f"ann/{NAME}-Copy1.ipynb", "ann"),
        (f"ann (2)/{NAME} - Copy.ipynb", "ann"),
        (f"ann/Copy of {NAME}.ipynb", "ann"),
        # by Moodle
        (f"Ann Arbor_4711_{MOODLE}/{NAME}.ipynb", "ann"),
        (f"Ann Arbor_4711_{MOODLE}/bob/{NAME}.ipynb", "ann"),
        (f"Ann Arbor_4711_{MOODLE}{NAME}.ipynb", "ann"),
        ("Ann Arbor_4711_assignsubmission_onlinetext_onlinetext.html", "ann"),
        ("Ann Arbor_4711_assignsubmission_onlinetext_/onlinetext.html", "ann"),
        (f"Eve Evans_1_{MOODLE}bob.ipynb", "eve"),
        (f"Eve Evans_1_{MOODLE}Bob Burns_2_{MOODLE}x.ipynb", "eve"),
        (f"Eve Evans_1_{MOODLE}x_bob_attempt_2026-01-01-12-00-00_x.ipynb", "eve"),
        (f"José Núñez_4711_{MOODLE}/{NAME}.ipynb", "jose"),
        (f"Jose Nunez_4711_{MOODLE}/{NAME}.ipynb", "jose"),
        (f"Participant_4711_{MOODLE}/bob.ipynb", ""),
        (f"Kim Lee_4711_{MOODLE}/{NAME}.ipynb", ""),
        # by Canvas
        (f"arborann_12345_678910_{NAME}.ipynb", "ann"),
        (f"arborann_LATE_12345_678910_{NAME}-1.ipynb", "ann"),
        ("evanseve_1_2_burnsbob_3_4_x.ipynb", "eve"),
        ("evanseve_1_2_bob.ipynb", "eve"),
        (f"evanseve_1_2_Bob Burns_3_{MOODLE}x.ipynb", "eve"),
        ("evanseve_1_2_x_bob_attempt_2026-01-01-12-00-00_x.ipynb", "eve"),
        ("nobody_1_2_bob.ipynb", ""),
        (f"submissions_2026_01_15/bob/{NAME}.ipynb", "bob"),
        # by Blackboard
        (f"{NAME}_ann_attempt_2026-01-01-12-00-00_{NAME}.ipynb", "ann"),
        (f"Lab_2_ann_attempt_2026-01-01-12-00-00_{NAME}.ipynb", "ann"),
        (f"{NAME}_ann_attempt_2026-01-01-12-00-00.txt", "ann"),
        ("a_eve_attempt_2026-01-01-12-00-00_bob_1_2_x.ipynb", "eve"),
        ("a_eve_attempt_2026-01-01-12-00-00_bob_attempt_2026-01-01-12-00-00_x.ipynb", "eve"),
        # by nobody
        (f"{NAME}.ipynb", ""),
        (f"{NAME} (1).ipynb", ""),
        ("x" * 300 + ".ipynb", ""),
    ],
)  # fmt: skip
def test_names_say_whose_it_is(roster, name, student):
    for form in ("NFC", "NFD"):
        names = archives.composed(unicodedata.normalize(form, name)).split("/")
        assert whose(["in", *names], NAME, roster).student == student


@pytest.fixture(scope="session")
def roster(started, tmp_path_factory):
    """The students of the list."""
    folder = tmp_path_factory.mktemp("roster")
    (folder / "names.csv").write_text(LIST, encoding="utf-8")
    return Roster(start(folder / "course", folder / "names.csv"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Kim Lee.ipynb", "2 students are called 'Kim Lee': lee1, lee2."),
        (f"Kim Lee_1_{MOODLE}/a.ipynb", "2 students are called 'Kim Lee'"),
        ("anna.ipynb", "got 'anna', which is no id, name or e-mail on it. Is it ann?"),
        (f"Participant_1_{MOODLE}/x.ipynb", "must be on the list; got 'Participant'"),
        (f"{NAME}.ipynb", "It must say whose it is; got only a title."),
    ],
)  # fmt: skip
def test_refusals_say_what_was_compared(listed, tmp_path, name, why):
    source = pack(tmp_path / "in.zip", **{name: DATA})
    assert why in reasons(listed, source)[""]


def test_names_in_archives_may_be_in_old_letters(listed, tmp_path):
    name = f"José Núñez_1_{MOODLE}_/{NAME}.ipynb"
    for letters in ("cp437", "utf-8"):
        raw = name.encode(letters)
        file = pack(tmp_path / f"{letters}.zip", **{"?" * len(raw): DATA})
        data = file.read_bytes().replace(b"?" * len(raw), raw)
        file.write_bytes(data)
    both = [tmp_path / "cp437.zip", tmp_path / "utf-8.zip"]
    assert gather(listed, *both) == [("jose", "new"), ("jose", "left out")]


@pytest.mark.parametrize("system", ["Windows", "Unix"])
def test_only_windows_writes_backslashes_between_folders(listed, tmp_path, system):
    member = zipfile.ZipInfo("evanseve_1_2_x\\bob.ipynb")
    member.create_system = 0 if system == "Windows" else 3
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr(member, DATA)
    ((student, _),) = gather(listed, tmp_path / "in.zip")
    assert student == ("bob" if system == "Windows" else "eve")


def test_odd_names_in_archives_are_listed(listed, tmp_path):
    source = pack(tmp_path / "in.zip", **{"eve.ipynb": DATA})
    data = source.read_bytes().replace(b"eve.ipynb", b"eve\0ipynb")
    source.write_bytes(data)
    assert reasons(listed, source) == {"": "It has no name that a file can have."}


def test_notebooks_may_be_named_one_by_one(listed, tmp_path):
    folder = spread(
        tmp_path / "in",
        **{f"ann/{NAME}.ipynb": DATA, "ann/trial.ipynb": OTHER, "eve/bob.ipynb": DATA},
    )
    assert gather(listed, *folder.glob("*/*")) == [
        ("ann", "new"),
        ("ann", "left out"),
        ("eve", "refused"),
    ]


def test_nothing_is_taken_if_a_file_is_not_there(listed, tmp_path):
    spread(tmp_path, **{"ann.ipynb": DATA})
    with pytest.raises(ValueError, match="FILE must be there"):
        gather(listed, tmp_path / "ann.ipynb", tmp_path / "bob.ipynb")
    assert submitted(listed, NAME) == []


def test_collect_ends_with_a_summary(listed, tmp_path, capsys):
    spread(tmp_path / "in", **{"bob.ipynb": DATA, "ann.ipynb": DATA})
    words = ["collect", str(listed.root), NAME, str(tmp_path / "in")]
    assert main(words) == 0
    spread(tmp_path / "in", **{"bob.ipynb": OTHER, "eve.pdf": b"", "x": b""})
    capsys.readouterr()
    assert main(words) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["ann", "unchanged"],
        ["bob", "replaced"],
        ["eve", "refused"],
        ["?", "refused"],
    ]
    assert lines[0].count(str(tmp_path)) == 1
    assert last == (
        "0 new, 1 replaced, 1 unchanged, 2 refused; "
        "3 of 6 students have handed in nothing."
    )


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
    taken = [one for one in gather(course, file) if one[1] == "new"]
    assert taken == [("ann", "new"), ("bob", "new")]
    found = reasons(course, file)
    assert "leads out" in found["evil"]
    assert "leads out" in found["root"]
    assert "bytes" in found["bomb"]
    assert "link" in found["link"]
    new = [f for f in tmp_path.rglob("*") if f not in before]
    assert all(f.is_relative_to(course.root / "submitted") for f in new)


@pytest.mark.parametrize("make", [pack, spread])
def test_absurd_archives_are_refused(listed, tmp_path, monkeypatch, make):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 10)
    files = {f"{i}.ipynb": b"" for i in range(11)}
    source = make(tmp_path / "ann.zip", **files)
    assert reasons(listed, source) == {"ann": "It has more than 10 files."}


def test_names_in_archives_do_nothing_to_a_terminal(course, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a\x1b[2J\nann  new.ipynb", DATA)
    (one,) = collect(course, NAME, [tmp_path / "x.zip"])
    assert one.refused
    assert f"{one}".isprintable()


def test_broken_archive_is_refused(course, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ann.ipynb", DATA * 1000)
    data = bytearray((tmp_path / "x.zip").read_bytes())
    data[60:80] = bytes(20)
    (tmp_path / "x.zip").write_bytes(data)
    (why,) = reasons(course, tmp_path / "x.zip").values()
    assert why.startswith("It cannot be read: ")
    (tmp_path / "x.zip").write_bytes(b"PK")
    (why,) = reasons(course, tmp_path / "x.zip").values()
    assert why.startswith("It cannot be opened as an archive: ")


@pytest.mark.parametrize(
    "name", ["", "..", ".hidden", "a/b", "-x", "a b", "x" * 101, "字" * 90]
)
def test_names_that_are_no_folders_are_refused(name):
    with pytest.raises(ValueError, match="must be made of letters"):
        check_name("A name", name)


@pytest.mark.parametrize(
    ("file", "language"), [(b"\xff\x1b[2J.ipynb", "python"), (b"x.ipynb", "\x1b[2J\n")]
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


def test_links_are_refused(course, tmp_path):
    (tmp_path / "ann.ipynb").symlink_to(course.root / "secret.txt")
    assert reasons(course, tmp_path / "ann.ipynb") == {"ann": "It is a link."}


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


def test_lists_may_be_as_spreadsheets_and_moodle_write_them(tmp_path):
    (tmp_path / "names.csv").write_text(
        "\ufeffFirst name;Surname;Username;Email address\nAnn;Arbor;ann;a@x.org\n",
        encoding="utf-8",
    )
    course = start(tmp_path / "course", tmp_path / "names.csv")
    assert course.people() == [("ann", "Ann", "Arbor", "a@x.org")]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("id,first_name\njose,José".encode("latin-1"), "names.csv must be a table in UTF-8"),
        (b"id\nann\nbob\nann\n", "names.csv must have each id once; got ann more than once"),
        (b"id,username\na,b\n", "with the columns id"),
        (b"id,first_name\n,Ann\n", "names.csv: id must be made of letters"),
        (b"", "got no rows"),
    ],
)  # fmt: skip
def test_lists_that_cannot_be_read_are_refused(tmp_path, data, why):
    (tmp_path / "names.csv").write_bytes(data)
    with pytest.raises(ValueError, match=r"names\.csv") as refused:
        start(tmp_path / "course", tmp_path / "names.csv")
    assert why in str(refused.value)
    assert not (tmp_path / "course").exists()


def test_a_shorter_list_says_who_is_missing(listed, tmp_path, capsys):
    (tmp_path / "names.csv").write_text("id\nann\nzoe\n")
    words = ["--students", str(tmp_path / "names.csv")]
    assert main(["start", str(listed.root), *words]) == 0
    said = "Not on this list, and still in the course: bob, eve, jose, lee1, lee2"
    assert said in capsys.readouterr().out
    assert len(Course(listed.root).students()) == 7


def test_no_course_lies_where_students_code_can_see_it(tmp_path, monkeypatch):
    monkeypatch.setattr("classroom.box.mounted", lambda: [tmp_path / "seen"])
    (tmp_path / "seen").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "seen")
    for root in (tmp_path / "seen" / "course", tmp_path / "link"):
        with pytest.raises(ValueError, match="no student's code can see it"):
            start(root)
    check_unseen("COURSE", tmp_path / "course")


@pytest.mark.parametrize(
    ("ids", "taken"), [(["j_smith"], ["j_smith"]), (["j_smith", "smith"], [])]
)
def test_ids_with_underscores_are_not_taken_for_others(course, tmp_path, ids, taken):
    """Blackboard writes the title, which may be anything, before the id."""
    (tmp_path / "names.csv").write_text("\n".join(["id", *ids, "ann"]))
    listed = start(course.root, tmp_path / "names.csv")
    time = "2026-01-01-12-00-00"
    file = tmp_path / f"Homework 1_j_smith_attempt_{time}_{NAME}.ipynb"
    file.write_bytes(DATA)
    gather(listed, file)
    there = [s for s in submitted(listed, NAME) if s in ids]
    assert [
        s for s in there if listed.notebook("submitted", NAME, s).is_file()
    ] == taken
