"""Submissions: what was handed in, as it lies in the course.

Everything here is written by strangers. A file is opened without following links, read up
to a limit, and never parsed. The folder of a submission, ``submitted/ann/connectionism``:

``connectionism.ipynb``
    what counts.
``timestamp.txt``
    when it was handed in, as far as is known (see ``take``).
``earlier/``
    what it has replaced, each named by its time.
``refused.txt``
    why something else was not taken; the next good submission removes it.
"""

import hashlib
import io
import os
import stat
import tempfile
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import IO, NamedTuple

from classroom.course import Course
from dlcore.checks import check

MAX_BYTES = 20_000_000  # of a notebook
CHUNK = 1 << 20  # bytes that are looked at together
STAMP = "timestamp.txt"  # where nbgrader keeps when something was handed in
REFUSED_NOTE = "refused.txt"
EARLIER = "earlier"
OLDEST = datetime(1990, 1, 1, tzinfo=UTC)  # archives say 1980 if they do not know
CAREFULLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # to open a stranger's file


class Collected(NamedTuple):
    """What became of one file that was handed in.

    Attributes:
        student: whose it is, if that can be told.
        what: new, replaced or unchanged; left out, if the student's notebook was taken
            and this was not needed; or refused.
        file: its name.
        why: a sentence, if it was not taken.
    """

    student: str
    what: str
    file: str
    why: str = ""

    @property
    def refused(self) -> bool:
        """Whether somebody has to look after it."""
        return self.what == "refused"

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return printable(f"{self.student or '?':20} {self.what:9} {self.file}{why}")


def printable(text: str) -> str:
    """Return a text that does nothing to a terminal but show itself."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def take(
    course: Course,
    assignment: str,
    student: str,
    data: bytes,
    came: datetime | None = None,
) -> str:
    """Put the notebook of a student into the course: new, replaced or unchanged.

    Args:
        course: the course.
        assignment: the name of the assignment.
        student: the id of the student.
        data: the notebook.
        came: the time of the file: at best when it was saved or handed in. Students can
            set it. If it cannot be true, the time of collecting stands for it.
    """
    look(io.BytesIO(data))
    file = course.notebook("submitted", assignment, student)
    file.with_name(REFUSED_NOTE).unlink(missing_ok=True)
    there = os.path.lexists(file)
    if there and _same(file, data):
        return "unchanged"
    if there:
        _keep(file)
    write_whole(file, data)
    now = datetime.now(UTC)
    time = came if came and OLDEST < came <= now else now
    text = time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    write_whole(file.with_name(STAMP), f"{text}\n".encode())
    return "replaced" if there else "new"


def note_refusal(course: Course, assignment: str, student: str, why: str) -> None:
    """Leave a sentence where the notebook would be, for the status of the student."""
    folder = course.folder("submitted", assignment, student)
    text = printable(why).encode("utf-8", "replace")
    write_whole(folder / REFUSED_NOTE, text + b"\n")


def look(file: IO[bytes]) -> str:
    """Return the digest of a notebook, and refuse what is none or is too big.

    Nothing is parsed: a notebook begins with a brace and has the word "cells" in it. All
    else is found when it is graded, where a strange text can do no harm.
    """
    digest, size, named, before = hashlib.sha256(), 0, False, b""
    while part := file.read(CHUNK):
        plain = part.replace(b"\0", b"")  # as if all were one byte a letter
        begins = plain.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"{")
        if not size and not begins:
            raise ValueError("It is called a notebook, but it is none.")
        size += len(part)
        check_size(size)
        named = named or b'"cells"' in before + plain
        before = plain[-len(b'"cells"') :]
        digest.update(part)
    if not size:
        raise ValueError("It is empty.")
    if not named:
        raise ValueError("It is called a notebook, but it has no cells.")
    return digest.hexdigest()


def open_file(file: Path | str, folder: int | None = None) -> IO[bytes]:
    """Open an ordinary file, perhaps in an open folder, and follow no link."""
    try:
        handle = os.open(file, CAREFULLY, dir_fd=folder)
    except OSError as error:
        raise ValueError(f"It cannot be opened: {error.strerror}.") from None
    opened = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        opened.close()
        raise ValueError("It is not an ordinary file.")
    return opened


def read_file(file: Path) -> bytes:
    """Read an ordinary file that is not too big, and follow no link."""
    with open_file(file) as opened:
        return read(opened)


def read(opened: IO[bytes], most: int = MAX_BYTES, what: str = "A notebook") -> bytes:
    """Read what is not too big."""
    data = opened.read(most + 1)
    check_size(len(data), most, what)
    return data


def check_size(size: int, most: int = MAX_BYTES, what: str = "A notebook") -> None:
    """Refuse what is too big."""
    check(size <= most, what, f"have ≤ {most:,} bytes", "more")


def _same(file: Path, data: bytes) -> bool:
    try:
        return read_file(file) == data
    except ValueError:
        return False


def _keep(file: Path) -> None:
    """Keep what is about to be replaced, under its time."""
    time, places = _time(file), file.parent / EARLIER
    names = (f"{time}-{n}.ipynb" if n else f"{time}.ipynb" for n in count())
    kept = next(places / n for n in names if not os.path.lexists(places / n))
    try:
        write_whole(kept, read_file(file))
    except ValueError:  # a link, or too big to be read
        places.mkdir(exist_ok=True)
        os.replace(file, kept)


def _time(file: Path) -> str:
    """Return when a notebook was handed in, or else when it was written."""
    try:
        text = read_file(file.with_name(STAMP)).decode("ascii")
        stamped = datetime.fromisoformat(text[:19]).replace(tzinfo=UTC)
    except ValueError:
        stamped = datetime.fromtimestamp(os.lstat(file).st_mtime, UTC)
    return stamped.strftime("%Y-%m-%dT%H-%M-%SZ")


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
