"""Submissions: put what was handed in into the course.

A submission is untrusted: links and archives are read with limits, and what is not as it
should be is refused with a sentence.
"""

import difflib
import os
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from classroom.course import Course, check_name, enrol
from dlcore._check import check

MAX_BYTES = 20_000_000  # of a notebook
MAX_MEMBERS = 5_000  # of an archive
MAX_UNPACKED = 2_000_000_000  # bytes of all of them

CAREFULLY = (
    os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
)  # to open a stranger's file
STAMP = "timestamp.txt"  # where nbgrader keeps when something was handed in


class Collected(NamedTuple):
    """What became of one file that was handed in."""

    file: str
    student: str
    what: str  # new, replaced, unchanged, or a sentence that says why it was refused

    @property
    def refused(self) -> bool:
        """Whether it was not put into the course."""
        return self.what.startswith("refused")

    def __str__(self) -> str:
        return printable(f"{self.student or '?':20} {self.what:12} {self.file}")


def printable(text: str) -> str:
    """Return a text that does nothing to a terminal but show itself."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in text
    )


def collect(
    course: Course, assignment: str, sources: Iterable[Path]
) -> Iterator[Collected]:
    """Put notebooks, folders and zip archives of them into the course."""
    known = course.students()
    for source in sources:
        for name, data in _open(source):
            file = f"{source}: {name}" if name != str(source) else name
            student = _student(name, assignment)
            try:
                if isinstance(data, Exception):
                    raise data
                _check_one(student, _folders(source, name), known)
                what = take(course, assignment, student, data, known)
            except (ValueError, OSError) as error:
                what = f"refused: {error}"
            yield Collected(file, student, what)


def take(
    course: Course,
    assignment: str,
    student: str,
    data: bytes,
    known: list[str],
) -> str:
    """Put the submission of a student into the course, and say what became of it.

    Args:
        course: the course.
        assignment: the name of the assignment.
        student: the id of the student, as somebody claims.
        data: the notebook.
        known: the students; if there is no list of them, the student is added.
    """
    _check_student(student, known if course.has_list else None)
    if student not in known:
        enrol(course, [{"id": student}])
        known.append(student)
    return _put(course, assignment, student, data)


def _open(source: Path) -> Iterator[tuple[str, bytes | Exception]]:
    """Yield the names and bytes of all notebooks in a file, folder or archive."""
    try:
        if source.is_symlink():
            raise ValueError("It is a link.")
        if source.is_dir():
            for file in sorted(source.rglob("*.ipynb")):
                if ".ipynb_checkpoints" not in file.parts:
                    yield str(file), _try_read(file)
        elif zipfile.is_zipfile(source):
            yield from _open_zip(source)
        else:
            yield str(source), _try_read(source)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        yield str(source), ValueError(str(error))


def _open_zip(source: Path) -> Iterator[tuple[str, bytes | Exception]]:
    with zipfile.ZipFile(source) as archive:
        members = archive.infolist()
        few = len(members) <= MAX_MEMBERS
        check(few, "An archive", f"have ≤ {MAX_MEMBERS} files", len(members))
        size = sum(min(member.file_size, MAX_BYTES) for member in members)
        fits = size <= MAX_UNPACKED
        check(fits, "An archive", f"hold ≤ {MAX_UNPACKED:,} bytes", f"{size:,}")
        for member in members:
            name = member.filename
            hidden = (
                name.startswith("__MACOSX/") or ".ipynb_checkpoints" in name
            )
            if name.endswith(".ipynb") and not hidden:
                yield name, _try_member(archive, member)


def _try_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> bytes | Exception:
    path = PurePosixPath(member.filename)
    if stat.S_ISLNK(member.external_attr >> 16):
        return ValueError("It is a link.")
    if path.is_absolute() or ".." in path.parts:
        return ValueError("It leads out of the archive.")
    try:
        with archive.open(member) as file:
            return _at_most(file.read(MAX_BYTES + 1))
    except Exception as error:  # zipfile raises many kinds on broken members
        return ValueError(f"It cannot be unpacked: {error}")


def _try_read(file: Path) -> bytes | Exception:
    try:
        return read_file(file)
    except (OSError, ValueError) as error:
        return error


def read_file(file: Path) -> bytes:
    """Read an ordinary file that is not too big, and follow no link."""
    try:
        handle = os.open(file, CAREFULLY)
    except OSError as error:
        raise ValueError(f"It cannot be opened: {error.strerror}.") from None
    return read_open(handle)


def read_open(
    handle: int, most: int = MAX_BYTES, what: str = "A notebook"
) -> bytes:
    """Read and close what was opened, if it is an ordinary file that is not too big."""
    with os.fdopen(handle, "rb") as opened:
        ordinary = stat.S_ISREG(os.fstat(handle).st_mode)
        check(ordinary, what, "be a file", "something else")
        return _at_most(opened.read(most + 1), most, what)


def _at_most(
    data: bytes, most: int = MAX_BYTES, what: str = "A notebook"
) -> bytes:
    check(len(data) <= most, what, f"have ≤ {most:,} bytes", "more")
    return data


def _student(name: str, assignment: str) -> str:
    """Guess whose a notebook is: by its name, or by its folder's."""
    path = PurePosixPath(name)
    folders = [part for part in path.parent.parts if part != assignment]
    if path.stem != assignment:
        return path.stem
    return folders[-1] if folders else ""


def _folders(source: Path, name: str) -> list[str]:
    """Return the names of a source and of the folders in it that lead to a notebook."""
    path = PurePosixPath(name)
    inside = path.relative_to(source) if path.is_relative_to(source) else path
    return [source.stem, *inside.parent.parts]


def _check_one(student: str, folders: list[str], known: list[str]) -> None:
    """Refuse a notebook that one student named after another."""
    others = {*folders} & {*known} - {student}
    got = f"a notebook of {student!r} from {', '.join(map(repr, others))}"
    check(not others, "It", "be of one student", got)


def _check_student(student: str, known: list[str] | None) -> None:
    hint = "Name the file, or its folder, after the student."
    check(bool(student), "A notebook", "say whose it is", "only a title", hint)
    check_name("A student's name", student)
    if known is not None and student not in known:
        near = difflib.get_close_matches(student, known, 1)
        hint = f"Is it {near[0]}?" if near else "Add the student to the list."
        check(False, "A student", "be on the list", repr(student), hint)


def _put(course: Course, assignment: str, student: str, data: bytes) -> str:
    """Write a submission so that it is there as a whole, or not at all."""
    file = course.notebook("submitted", assignment, student)
    before = _try_read(file) if os.path.lexists(file) else None
    if before == data:
        return "unchanged"
    write_whole(file, data)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    write_whole(file.with_name(STAMP), f"{now}\n".encode())
    return "new" if before is None else "replaced"


def write_whole(file: Path, data: bytes) -> None:
    """Write a file in one step: whatever happens, it is the old one or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(handle)
        os.chmod(name, 0o644)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
