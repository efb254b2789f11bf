"""Hand out, collect and give back through nbgrader's exchange, as on a JupyterHub.

Everybody can write to the exchange, so what lies there is read as the work of a stranger.
``nbgrader collect`` follows links with the teacher's rights, and one folder with a strange
name stops it; what is here does neither.
"""

import argparse
import os
import pwd
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from nbgrader.apps import NbGrader
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError, ExchangeFactory
from nbgrader.utils import parse_utc
from traitlets.config import Config

from classroom.collecting import report
from classroom.course import Course, check_name, check_unseen, open_course, quietly
from classroom.owners import Roster
from classroom.submissions import (
    STAMP,
    Collected,
    note_refusal,
    open_file,
    read,
    take,
    write_whole,
)
from dlcore.checks import check

SECRET = "submission_secret.txt"
MAX_NOTE = 1_000  # bytes of it, and of the time

CYCLE = """\
With a JupyterHub, these stand for handing out, collecting and giving back:

  python -m classroom.exchange release ~/course connectionism
      students fetch it, and submit it, in the menu Nbgrader, Assignment List
  python -m classroom.exchange collect ~/course connectionism
  python -m classroom grade ~/course connectionism
  python -m classroom feedback ~/course connectionism
  python -m classroom.exchange feedback ~/course connectionism
      students fetch it in the same list

Where the exchange is, nbgrader's settings say (c.Exchange.root), or --exchange.
"""


class Inbound(NamedTuple):
    """A folder that somebody put into the exchange."""

    name: str
    student: str
    time: datetime


class Exchange:
    """The exchange as a teacher uses it, for one assignment of a course.

    Args:
        course: the course.
        assignment: the name of the assignment.
        root: the folder of the exchange, if not the one that nbgrader's settings name.
    """

    def __init__(
        self, course: Course, assignment: str, root: Path | None = None
    ) -> None:
        self.course = course
        self.assignment = assignment
        self._config = _settings(course, root)
        self.root = Path(getattr(self._nbgrader("List"), "root", course.root))
        check_unseen("The exchange", self.root)

    @property
    def folder(self) -> Path:
        """The folder of this course in the exchange."""
        return self.root / self.course.root.name

    def release(self) -> None:
        """Put the student's version where students fetch it."""
        self._nbgrader("ReleaseAssignment", force=True).start()

    def collect(self) -> Iterator[Collected]:
        """Put the latest submission of each student into the course."""
        latest: dict[str, Inbound] = {}
        refused: list[Collected] = []
        roster = Roster(self.course)
        for name in self._names():
            try:
                one = _parse(name)
                check_name("A student's name", one.student)
                self._check_owner(one, roster)
            except (ValueError, OSError) as error:
                refused.append(Collected("", "refused", name, str(error)))
                continue
            if one.student not in latest or latest[one.student].time < one.time:
                latest[one.student] = one
        for _, one in sorted(latest.items()):
            yield self._take(one, roster)
        yield from refused

    def feedback(self) -> Iterator[tuple[str, str]]:
        """Put each student's page where only that student's server finds it."""
        pattern = f"*/{self.assignment}/{self.assignment}.html"
        for page in sorted((self.course.root / "feedback").glob(pattern)):
            student = page.parents[1].name
            try:
                self._prepare(student, page)
                self._nbgrader("ReleaseFeedback", student=student).start()
            except FileNotFoundError:
                yield student, "did not hand in through the exchange"
            except ValueError as error:
                yield student, str(error)
            else:
                yield student, "given back"

    def _names(self) -> list[str]:
        """Return the folders in the exchange that are for this assignment."""
        inbound = self.folder / "inbound"
        hint = f"First: python -m classroom.exchange release {self.course.root}"
        hint += f" {self.assignment}"
        check(inbound.is_dir(), "The exchange", "have a folder", inbound, hint)
        return sorted(
            name
            for name in os.listdir(inbound)
            if name.split("+")[1:2] == [self.assignment]
        )

    def _check_owner(self, one: Inbound, roster: Roster) -> None:
        """Refuse what another student of the course owns."""
        owner = os.lstat(self.folder / "inbound" / one.name).st_uid
        with suppress(KeyError):
            login = pwd.getpwuid(owner).pw_name
            others = {*roster.ids} - {one.student}
            check(login not in others, "It", "be the student's", f"{login}'s")

    def _take(self, one: Inbound, roster: Roster) -> Collected:
        """Put a submission into the course, or leave a note why not."""
        student, place = one.student, (self.course, self.assignment)
        try:
            data, secret = self._read(one)
            roster.admit(student)
            what = take(*place, student, data)
            folder = self.course.folder("submitted", self.assignment, student)
            write_whole(folder / STAMP, str(one.time).encode())
            write_whole(folder / SECRET, secret)
        except (ValueError, OSError) as error:
            if student in roster.ids:
                with suppress(OSError):
                    note_refusal(*place, student, str(error))
            return Collected(student, "refused", one.name, str(error))
        return Collected(student, what, one.name)

    def _read(self, one: Inbound) -> tuple[bytes, bytes]:
        """Read the notebook, and what nbgrader needs to give feedback."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            folder = os.open(self.folder / "inbound" / one.name, flags)
        except OSError:
            raise ValueError("It is not a folder.") from None
        try:
            file = _notebook(os.listdir(folder), f"{self.assignment}.ipynb")
            with open_file(file, folder) as opened:
                data = read(opened)
            with open_file(SECRET, folder) as opened:
                secret = read(opened, MAX_NOTE, SECRET)
        finally:
            os.close(folder)
        return data, secret

    def _prepare(self, student: str, page: Path) -> None:
        """Put beside a page what says which submission it is about."""
        submitted = self.course.notebook("submitted", self.assignment, student)
        graded = self.course.notebook("autograded", self.assignment, student)
        times = [file.stat().st_mtime for file in (submitted, graded, page)]
        if times != sorted(times):
            raise ValueError("handed in again: grade, then feedback, once more")
        for name in (STAMP, SECRET):
            note = submitted.with_name(name)
            page.with_name(name).unlink(missing_ok=True)
            if note.is_file() and not note.is_symlink():
                write_whole(page.with_name(name), note.read_bytes())

    def _nbgrader(self, step: str, student: str = "*", **more: object):  # type: ignore[no-untyped-def]
        """Return nbgrader's own class for a step of the exchange."""
        config = Config(self._config)
        config.CourseDirectory.assignment_id = self.assignment
        config.CourseDirectory.student_id = student
        with quietly():
            return getattr(ExchangeFactory(config=config), step)(
                coursedir=CourseDirectory(config=config),
                authenticator=Authenticator(config=config),
                config=config,
                **more,
            )


def check_apart(course: Course) -> None:
    """Refuse a course or an exchange that students' code could see in its box."""
    check_unseen("COURSE", course.root)
    Exchange(course, "")


def _settings(course: Course, root: Path | None) -> Config:
    """Return what nbgrader's files of settings say, for this course."""
    with chdir(course.root):
        app = NbGrader()
        app.load_config_file()
    config: Config = app.config
    config.merge(course.settings())
    if root is not None:
        config.Exchange.root = str(root.resolve())
    return config


def _parse(name: str) -> Inbound:
    """Read what the name of a folder says: student, assignment, time, anything."""
    parts = name.split("+")
    check(len(parts) in (3, 4), "A folder", "be named by nbgrader", repr(name))
    try:
        return Inbound(name, parts[0], parse_utc(parts[2]))
    except Exception:  # whatever a strange text does to the parser
        check(False, "A folder", "tell a time", repr(parts[2]))
        raise


def _notebook(names: list[str], title: str) -> str:
    """Return the notebook of a folder; a single one may have another name."""
    found = [name for name in names if name.casefold().endswith(".ipynb")]
    if title in found:
        return title
    hint = "Submit one notebook."
    check(len(found) == 1, "It", f"have {title}", f"{len(found)} others", hint)
    return found[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(
        prog="python -m classroom.exchange",
        description="Hand out, collect and give back through nbgrader's exchange.",
        epilog=CYCLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["release", "collect", "feedback"])
    parser.add_argument("course", type=Path, metavar="COURSE")
    parser.add_argument("assignment", metavar="ASSIGNMENT")
    parser.add_argument("--exchange", type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        course = open_course(options.course)
        exchange = Exchange(course, options.assignment, options.exchange)
        return _run(exchange, options.command)
    except (ValueError, OSError, ExchangeError) as error:
        print(error, file=sys.stderr)
        return 2


def _run(exchange: Exchange, command: str) -> int:
    if command == "release":
        exchange.release()
        print("Students can fetch it.")
    elif command == "collect":
        return report(exchange.course, exchange.assignment, exchange.collect())
    else:
        for student, what in exchange.feedback():
            print(f"{student:20} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
