"""Whose a file is: what the names say that teachers, platforms and browsers give.

The names on the way to a file are looked at from the outside in. A name that a learning
platform made decides, and whatever a student chose within it is no matter. Where there is
none, all names that are a student's must be the same student's.
"""

import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from classroom.archives import composed
from classroom.course import Course, check_name, enrol, is_name

TIME = r"\d{4}(?:-\d\d){5}"

# What platforms call a file or a folder. ``who`` is the student; ``hand`` is the same for
# all files that were handed in together; what comes after it, the student chose.
FOLDERS = (
    # Moodle: Ann Arbor_4711_assignsubmission_file_connectionism.ipynb, and with a slash
    # after file_, if submissions are downloaded in folders; onlinetext for texts
    r"(?P<hand>(?P<who>.+?)_\d+_assignsubmission_[a-z]+)(?:_(?P<file>.*))?",
    # Blackboard: connectionism_ann_attempt_2026-01-01-12-00-00_solution.ipynb, where the
    # first part is what the teacher called the assignment
    rf"(?P<hand>{{title}}_(?P<who>.+?)_attempt_{TIME})(?:_(?P<file>.*))?",
    rf"(?P<hand>(?P<who>(?P<titled>.+?))_attempt_{TIME})(?:_(?P<file>.*))?",
)
FILES = (
    *FOLDERS,
    # Canvas: arborann_12345_678910_connectionism.ipynb, and arborann_LATE_12345_...
    r"(?P<hand>(?P<who>.+?)_(?:LATE_)?\d+)_\d+_(?P<file>.*)",
)
# What people call a file: with the assignment before or after the student.
TITLED = (r"{title}[ _-]+(?P<who>.+)", r"(?P<who>.+?)[ _-]+{title}")
# What programs add to a name: (1) by browsers; -Copy1 by Jupyter; - Copy and copy 2 by
# Windows and macOS; Copy of by Google.
BEFORE = re.compile(r"^(?:copy of )+", re.I)
AFTER = re.compile(r"(?:[ _]?\(\d+\)|[ _-]+copy[ _]?\d*)+$", re.I)
AGAIN = re.compile(r"-\d+$")  # added by Canvas to what is handed in again
ENDING = re.compile(r"(?:\.ipynb)?(?:\.[^. ]{1,9})?$", re.I)
NAME_IT = "Name it, or its folder, after the student."
LIST_THEM = "For names as platforms make them, give a list: start --students."
LONGEST = 255  # characters of a name that is looked at


class Owner(NamedTuple):
    """What the names say.

    Attributes:
        student: an id; empty if it cannot be told.
        hand: the same for files that were handed in together.
        said: the part of the names that may be a student.
        why: a sentence, if the names do not agree, or several students have one.
    """

    student: str
    hand: tuple[str, ...]
    said: str = ""
    why: str = ""


class Roster:
    """The students of a course, as names of files may call them."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.closed = course.has_list
        self.ids: dict[str, str] = {}
        self._called: dict[str, set[str]] = defaultdict(set)
        for person in course.people():
            self.ids[composed(person.id)] = person.id
            address = person.email.partition("@")[0]
            first, last = person.first_name, person.last_name
            names = (first + last, last + first, address, person.email)
            for name in (person.id, *names):
                self._called[_plain(name)].add(person.id)
        self._called.pop("", None)

    def called(self, name: str) -> set[str]:
        """Return the students with this id, name or local part of an address."""
        if name in self.ids:
            return {self.ids[name]}
        return self._called.get(_plain(name), set())

    def check(self, student: str) -> None:
        """Refuse an id that cannot be one, or that is not on the list."""
        if not self.closed:
            check_name("A student's name", student)
        elif composed(student) not in self.ids:
            raise ValueError(self._not_listed(student))

    def admit(self, student: str) -> None:
        """Add a student to a course that has no list."""
        self.check(student)
        if composed(student) not in self.ids:
            enrol(self.course, [{"id": student}])
            self.ids[composed(student)] = student

    def explain(self, owner: Owner) -> str:
        """Return why it cannot be told whose a file is."""
        if owner.why:
            return owner.why
        if self.closed and owner.said:
            return self._not_listed(owner.said)
        hint = NAME_IT if self.closed else f"{NAME_IT} {LIST_THEM}"
        got = repr(owner.said) if owner.said else "only a title"
        return f"It must say whose it is; got {got}. {hint}"

    def _not_listed(self, name: str) -> str:
        near = difflib.get_close_matches(_plain(name), self._called, 1)
        hint = "Add the student to the list, or rename the file."
        if near:
            hint = f"Is it {' or '.join(sorted(self._called[near[0]]))}?"
        got = f"{name!r}, which is no id, name or e-mail on it"
        return f"A student must be on the list; got {got}. {hint}"


def whose(names: Sequence[str], title: str, roster: Roster) -> Owner:
    """Tell whose a file is.

    Args:
        names: of the source, of the folders in it, and of the file.
        title: the name of the assignment.
        roster: the students.
    """
    first = None
    for depth, name in enumerate(names):
        texts, hand = _texts(name, title, depth == len(names) - 1)
        found = next(filter(None, map(roster.called, texts)), set())
        if first and found and first.student not in found:
            why = f"It is in a folder of {first.student}, but called {name!r}."
            return first._replace(why=why)
        if not first and (found or hand):
            first = _owner(texts, (*names[:depth], hand or name), roster)
            if hand or not first.student:
                return first
    return first or _guess(names, title, roster)


def is_title(name: str, title: str) -> bool:
    """Tell whether a file is called like the assignment, or like a copy of it."""
    made = _made(_stem(name), title, FILES)
    stem = (made["file"] or "") if made else _stem(name)
    return AGAIN.sub("", _bare(stem)).casefold() == title.casefold()


def _owner(texts: list[str], hand: tuple[str, ...], roster: Roster) -> Owner:
    """Return the owner that a name tells, or what it says."""
    said = next(filter(roster.called, texts), texts[0])
    found = sorted({one for text in texts for one in roster.called(text)})
    if len(found) > 1:
        why = f"{len(found)} students are called {said!r}: {', '.join(found)}."
        return Owner("", hand, said, why)
    new = not found and not roster.closed and is_name(said)
    return Owner(said if new else "".join(found), hand, said)


def _guess(names: Sequence[str], title: str, roster: Roster) -> Owner:
    """Take the name of the file, or of its folder, for one of a student."""
    for depth in range(len(names) - 1, 0, -1):
        texts, _ = _texts(names[depth], title, depth == len(names) - 1)
        if texts:
            return _owner(texts[-1:], tuple(names[: depth + 1]), roster)
    return Owner("", tuple(names))


def _texts(name: str, title: str, file: bool) -> tuple[list[str], str]:
    """Return what may be a student in a name, and what a platform made of it."""
    if len(name) > LONGEST:
        return [], ""
    stem = _stem(name) if file else name
    if made := _made(stem, title, FILES if file else FOLDERS):
        parts = made["who"].split("_") if "titled" in made.re.groupindex else []
        ends = ["_".join(parts[i:]) for i in reversed(range(len(parts)))]
        return ends or [made["who"]], made["hand"]
    bare = _bare(stem)
    if not bare.strip("./ ") or is_title(name, title):
        return [], ""
    titled = filter(None, (_match(rule, bare, title) for rule in TITLED))
    return [bare, *(match["who"] for match in titled)], ""


def _made(stem: str, title: str, rules: Sequence[str]) -> re.Match[str] | None:
    """Return how a platform made a name: what it wrote comes first."""
    made = filter(None, (_match(rule, stem, title) for rule in rules))
    return min(made, key=lambda match: match.end("who"), default=None)


def _match(rule: str, text: str, title: str) -> re.Match[str] | None:
    pattern = rule.replace("{title}", re.escape(title))
    return re.fullmatch(pattern, text, re.I | re.S)


def _stem(name: str) -> str:
    """Return the name of a file without its ending."""
    return ENDING.sub("", name, count=1)


def _bare(stem: str) -> str:
    """Return a name without what programs added to it."""
    return AFTER.sub("", BEFORE.sub("", stem))


def _plain(name: str) -> str:
    """Return the letters and digits of a name, small and without accents."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if letter.isalnum())
