"""Open files, folders and zip archives of submissions, and read nothing yet.

Left aside without a word is what systems and programs put there by themselves: folders
with a dot before their name (``.ipynb_checkpoints``, ``.git``), ``__MACOSX``, and the
files ``.DS_Store``, ``._*``, ``Thumbs.db`` and ``desktop.ini``.
"""

import os
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from classroom.submissions import open_file
from dlcore.checks import check

MAX_MEMBERS = 200_000  # of a folder or an archive; they are only counted
MAX_NAME = 1_000  # characters, with all folders
NOISE = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"}
WINDOWS = 0  # the system that made a member
UTF_8 = 0x800  # the flag of a member whose name is in UTF-8


@dataclass(frozen=True)
class Piece:
    """A file that was handed in, not read yet.

    Attributes:
        file: where it is, to be shown.
        source: the file, folder or archive that was named.
        names: of the source, of the folders in it, and of the file.
        open: opens it.
        size: bytes, as its folder or archive says.
        time: when it was last changed, as its folder or archive says.
        wrong: a sentence, if it cannot be opened.
    """

    file: str
    source: Path
    names: tuple[str, ...]
    open: Callable[[], IO[bytes]]
    size: int = 0
    time: datetime | None = None
    wrong: str = ""


def pieces(sources: Iterable[Path], stack: ExitStack) -> Iterator[Piece]:
    """Yield what is in files, folders and archives; a stack keeps archives open."""
    found = list(dict.fromkeys(sources))
    for source in found:
        check(os.path.lexists(source), "FILE", "be there", repr(str(source)))
    for source in found:
        if source.is_symlink():
            yield _on_disk(source, source.parent.parent, _near(source))
        elif source.is_dir():
            yield from _in_folder(source)
        elif source.suffix.casefold() == ".zip":
            yield from _in_archive(source, stack)
        else:
            yield _on_disk(source, source.parent.parent, _near(source))


def _near(source: Path) -> tuple[str, ...]:
    """Return the names of a file and of the folder that it is in."""
    return "", composed(source.parent.name), composed(source.name)


def _in_folder(source: Path) -> Iterator[Piece]:
    number = 0
    for place, folders, files in os.walk(source, onerror=_stop):
        folders[:] = sorted(name for name in folders if not _hidden(name))
        links = [f for f in folders if os.path.islink(os.path.join(place, f))]
        number += len(files)
        if number > MAX_MEMBERS:
            yield _refused(source, _too_many())
            return
        for name in sorted([*links, *files]):
            file = Path(place, name)
            inside = file.relative_to(source).parts
            names = tuple(map(composed, (source.resolve().name, *inside)))
            if not _noise(names):
                yield _on_disk(file, source, names)


def _stop(error: OSError) -> None:
    raise error


def _on_disk(file: Path, source: Path, names: tuple[str, ...]) -> Piece:
    about = os.lstat(file)
    return Piece(
        str(file),
        source,
        names,
        partial(open_file, file),
        about.st_size,
        datetime.fromtimestamp(about.st_mtime, UTC),
        "It is a link." if stat.S_ISLNK(about.st_mode) else "",
    )


def _in_archive(source: Path, stack: ExitStack) -> Iterator[Piece]:
    try:
        archive = stack.enter_context(
            zipfile.ZipFile(stack.enter_context(open_file(source)))
        )
    except Exception as error:  # zipfile raises many kinds
        yield _refused(source, f"It cannot be opened as an archive: {error}")
        return
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        yield _refused(source, _too_many())
        return
    for member in members:
        name = _name(member)
        names = composed(source.stem), *PurePosixPath(name).parts
        if not name.endswith("/") and not _noise(names):
            yield Piece(
                f"{source}: {name}",
                source,
                names,
                partial(archive.open, member),
                member.file_size,
                _time(member),
                _wrong(member, name),
            )


def _refused(source: Path, why: str) -> Piece:
    """Return what stands for a folder or an archive that cannot be opened."""
    return replace(_on_disk(source, source, _near(source)), wrong=why)


def _too_many() -> str:
    return f"It has more than {MAX_MEMBERS:,} files."


def _name(member: zipfile.ZipInfo) -> str:
    """Return the name of a member as its writer meant it.

    Windows may write backslashes between folders; elsewhere they are letters like others.
    macOS writes UTF-8 without saying so, which is then taken for the letters of an old PC.
    """
    name = member.orig_filename
    if member.create_system == WINDOWS:
        name = name.replace("\\", "/")
    if not member.flag_bits & UTF_8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return composed(name)


def _wrong(member: zipfile.ZipInfo, name: str) -> str:
    """Return why a member is not opened; nothing if it is."""
    path = PurePosixPath(name)
    if stat.S_ISLNK(member.external_attr >> 16):
        return "It is a link."
    if path.is_absolute() or ".." in path.parts:
        return "It leads out of the archive."
    if "\0" in name or len(name) > MAX_NAME:
        return "It has no name that a file can have."
    return ""


def _time(member: zipfile.ZipInfo) -> datetime | None:
    """Return the time of a member; archives know no time zones, so it is taken for ours."""
    try:
        return datetime(*member.date_time).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def composed(name: str) -> str:
    """Return a name in which a letter and its accent are one, as not on macOS."""
    return unicodedata.normalize("NFC", name)


def _noise(names: tuple[str, ...]) -> bool:
    """Tell whether nobody handed this in."""
    *folders, name = names[1:] or names
    return any(map(_hidden, folders)) or name in NOISE or name.startswith("._")


def _hidden(folder: str) -> bool:
    dotted = folder.startswith(".") and folder not in (".", "..")
    return dotted or folder in NOISE
