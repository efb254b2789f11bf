"""Collect: find out whose everything is, then put one notebook of each student in.

Nothing is written until all sources have been looked through, so no order of theirs
decides. Two different notebooks of one student are both refused, with one exception: of
notebooks that were handed in together, the one that is called like the assignment counts.
Students keep trials beside it, and a folder of one student's holds nobody else's work.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from classroom.archives import Piece, pieces
from classroom.course import Course
from classroom.owners import Owner, Roster, is_title, whose
from classroom.submissions import (
    MAX_BYTES,
    Collected,
    check_size,
    look,
    note_refusal,
    read,
    take,
)
from dlcore.checks import check

MAX_FILES = 1_000  # of a student
MAX_OWN = 5 * MAX_BYTES  # of all notebooks of a student
MAX_ALL = 20_000_000_000  # bytes of all notebooks
PACKED = {".zip", ".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".xz"}
TAKEN = ("new", "replaced", "unchanged")


@dataclass
class Handed:
    """A file with its owner.

    Attributes:
        piece: the file.
        owner: whose it is.
        digest: of a notebook, as soon as it was looked at.
        why: a sentence, if it is not taken.
    """

    piece: Piece
    owner: Owner
    digest: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self.piece.names[-1]

    @property
    def is_notebook(self) -> bool:
        """Whether it is called one."""
        return self.name.casefold().endswith(".ipynb")

    @property
    def cost(self) -> int:
        """The bytes that have to be read of it."""
        readable = self.is_notebook and self.piece.size <= MAX_BYTES
        return self.piece.size if readable and not self.piece.wrong else 0

    def look(self) -> None:
        """Find out whether it is a notebook that can be taken."""
        self.why = self.owner.why or self.piece.wrong
        try:
            if not self.is_notebook:
                packed = PurePosixPath(self.name).suffix.casefold() in PACKED
                hint = "Unpack it first." if packed else ""
                got = f"{self.name[-40:]!r}"
                check(False, "It", "be a notebook (.ipynb)", got, hint)
            check_size(self.piece.size)
            if not self.why:
                with self.piece.open() as opened:
                    self.digest = look(opened)
        except ValueError as error:
            self.why = self.why or str(error)
        except Exception as error:  # zipfile raises many kinds
            self.why = f"It cannot be read: {error}"


def collect(
    course: Course, assignment: str, sources: Iterable[Path]
) -> Iterator[Collected]:
    """Put notebooks, folders and zip archives of them into the course."""
    roster = Roster(course)
    groups: dict[str, list[Handed]] = defaultdict(list)
    with ExitStack() as stack:
        for piece in pieces(sources, stack):
            owner = whose(piece.names, assignment, roster)
            groups[owner.student].append(Handed(piece, owner))
        strangers = groups.pop("", [])
        dear = _dear(groups)
        for student, files in sorted(groups.items()):
            one = _settle(roster, assignment, student, files, student in dear)
            lines = list(one)
            _note(roster, assignment, student, lines)
            yield from lines
    yield from _unknown(roster, strangers)


def report(course: Course, assignment: str, lines: Iterable[Collected]) -> int:
    """Print what became of everything; return 1 if something was refused."""
    found: Counter[str] = Counter()
    for line in lines:
        print(line)
        found[line.what] += 1
    print(summary(course, assignment, found))
    return int(found["refused"] > 0)


def summary(course: Course, assignment: str, found: Counter[str]) -> str:
    """Return in one line how much was taken, and how many handed in nothing."""
    kinds = [*TAKEN, "refused", *(["left out"] if found["left out"] else [])]
    counts = ", ".join(f"{found[kind]} {kind}" for kind in kinds)
    places = [
        course.folder("submitted", assignment, student) for student in course.students()
    ]
    absent = sum(not os.path.lexists(place) for place in places)
    have = "has" if absent == 1 else "have"
    of = f"{absent} of {len(places)} students"
    return f"{counts}; {of} {have} handed in nothing."


def _dear(groups: dict[str, list[Handed]]) -> set[str]:
    """Return the students whose notebooks are those too many, the biggest first."""
    costs = {s: sum(one.cost for one in files) for s, files in groups.items()}
    rest, dear = MAX_ALL, set()
    for student in sorted(costs, key=lambda student: costs[student]):
        rest -= costs[student]
        if rest < 0 or costs[student] > MAX_OWN:
            dear.add(student)
    return dear


def _settle(
    roster: Roster, assignment: str, student: str, files: list[Handed], dear: bool
) -> Iterator[Collected]:
    """Take one notebook of a student, if there is one, and say what became of all."""
    if dear or len(files) > MAX_FILES:
        why = f"Of one student, ≤ {MAX_FILES:,} files and ≤ {MAX_OWN:,} bytes"
        why += " of notebooks are read."
        yield Collected(student, "refused", f"{len(files)} files", why)
        return
    chosen = _choose(files, assignment)
    what = _take(roster, assignment, student, chosen) if chosen else ""
    files.sort(key=lambda one: (bool(one.why), not one.is_notebook))
    for one in files:
        left = "left out" if what and not one.owner.why else "refused"
        yield Collected(student, left if one.why else what, one.piece.file, one.why)


def _choose(files: list[Handed], title: str) -> Handed | None:
    """Return the notebook that counts, if there is one; all others learn why not."""
    for one in files:
        one.look()
    books = [one for one in files if one.is_notebook and not one.owner.why]
    books.sort(key=lambda one: is_title(one.name, title))
    distinct = {one.digest or one.piece.file: one for one in books}
    titled = [one for one in distinct.values() if is_title(one.name, title)]
    hands = {(one.piece.source, one.owner.hand) for one in books}
    several = f"{len(distinct)} different notebooks were handed in, none was taken."
    chosen = None
    if len(distinct) == 1 or (len(hands) == 1 and len(titled) == 1):
        chosen = [*distinct.values(), *titled][-1]
        several = f"{chosen.name} is there, and counts."
    for one in books:
        one.why = one.why or (several if one is not chosen else "")
    return chosen if chosen and not chosen.why else None


def _take(roster: Roster, assignment: str, student: str, one: Handed) -> str:
    """Put a notebook into the course; if that fails, it learns why."""
    try:
        with one.piece.open() as opened:
            data = read(opened)
        roster.admit(student)
        return take(roster.course, assignment, student, data, one.piece.time)
    except (ValueError, OSError) as error:
        one.why = str(error)
        return ""


def _note(
    roster: Roster, assignment: str, student: str, lines: list[Collected]
) -> None:
    """Leave a note for a student of whom something was refused, and nothing taken."""
    refused = [line for line in lines if line.refused]
    if len(refused) == len(lines) and student in roster.ids.values():
        name = re.split("/|: ", refused[0].file)[-1]
        more = f" And {len(refused) - 1} more." if len(refused) > 1 else ""
        why = f"{name}: {refused[0].why}{more}"
        with suppress(OSError):
            note_refusal(roster.course, assignment, student, why)


def _unknown(roster: Roster, files: list[Handed]) -> Iterator[Collected]:
    """List what is nobody's, as far as can be told."""
    for one in sorted(files[:MAX_FILES], key=lambda one: one.piece.file):
        why = one.piece.wrong or roster.explain(one.owner)
        yield Collected("", "refused", one.piece.file, why)
    if (more := len(files) - MAX_FILES) > 0:
        yield Collected("", "refused", f"{more} more files", "Whose are they?")
