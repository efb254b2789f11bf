"""The commands of a teacher, and of an author of assignments."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from classroom.box import Limits

if TYPE_CHECKING:  # what a command needs it imports itself: nbgrader takes a second
    from classroom.course import Course
    from classroom.marks import Row
    from classroom.results import Result

CYCLE = """\
A course from Monday to Friday:

  python -m classroom start ~/course --students names.csv
  python -m classroom release ~/course connectionism
      hand out ~/course/release/connectionism/connectionism.ipynb
  python -m classroom collect ~/course connectionism ~/Downloads/submissions.zip
  python -m classroom grade ~/course connectionism
      mark written answers in nbgrader's formgrader: cd ~/course && jupyter lab
  python -m classroom feedback ~/course connectionism
      give back ~/course/feedback/<student>/connectionism/connectionism.html
  python -m classroom marks ~/course --csv marks.csv

Every command can be run again. What was graded stays graded until the submission or the
assignment changes; marks that were given by hand stay. The folder of a course is one of
nbgrader's, whose exchange and formgrader work in it, and lies outside the book.
"""

RISK = """\
Without the box, students' code runs with your rights: it can read and change your files,
the marks and all submissions, and use your network. Do this only if you have read every
submission, or on a machine that holds nothing else.
"""


def run_start(options: argparse.Namespace) -> int:
    """Make the folder of a course, or add students to it."""
    from classroom.course import start, unlisted

    course = start(options.course, options.students)
    print(f"{course.root}: {len(course.students())} students")
    if options.students and (gone := unlisted(course, options.students)):
        print(f"Not on this list, and still in the course: {', '.join(gone)}")
    return 0


def run_release(options: argparse.Namespace) -> int:
    """Make the student's version of an assignment."""
    from classroom.release import release

    print(release(_course(options), options.assignment))
    return 0


def run_collect(options: argparse.Namespace) -> int:
    """Put submissions in: notebooks named after students, folders, zip archives."""
    from classroom.collecting import collect, report

    course, assignment = _course(options), options.assignment
    return report(course, assignment, collect(course, assignment, options.files))


def run_grade(options: argparse.Namespace) -> int:
    """Run the submissions in a box and enter their marks."""
    from classroom.grading import Grader
    from classroom.marks import rows, summary

    if not options.boxed:
        print(RISK, file=sys.stderr)
    course = _course(options)
    limits = Limits(seconds=options.seconds)
    grader = Grader(course, options.assignment, limits, options.boxed)
    results = grader.grade(options.student, options.again, options.jobs, _progress)
    found = rows(course, options.assignment, {r.student: r for r in results})
    _show(found)
    print(summary(found))
    print(f"Logs: {course.root / 'results' / options.assignment}")
    return int(any(r.status == "not graded" for r in results))


def run_feedback(options: argparse.Namespace) -> int:
    """Write a page with marks, results and hints for each student."""
    from classroom.feedback import SIMPLIFIED, UNCHANGED, WRITTEN, feedback

    given = Counter({WRITTEN: 0, UNCHANGED: 0})
    for student, page, what in feedback(
        _course(options),
        options.assignment,
        options.student,
        options.again,
        options.jobs,
    ):
        given[what if page else "failed"] += 1
        if page is None:
            print(f"{student}: no page. {what}")
        elif what == SIMPLIFIED:
            print(f"{page}: simplified, it takes too much to typeset it")
        elif what == WRITTEN:
            print(page)
    print(", ".join(f"{count} {what}" for what, count in given.items()))
    return int("failed" in given)


def run_marks(options: argparse.Namespace) -> int:
    """Show the marks of everyone, with a status beside each, or export them."""
    from classroom.marks import export, marks

    rows = marks(_course(options), options.assignment)
    if options.csv:
        export(rows, options.csv)
        print(f"{options.csv}: {len(rows)} rows")
    else:
        _show(rows)
    return 0


def run_verify(options: argparse.Namespace) -> int:
    """Check instructors' notebooks before they are handed out."""
    from classroom.assignment import read
    from classroom.course import ASSIGNMENTS
    from classroom.verify import verify

    wrong = 0
    for file in options.notebooks or sorted(ASSIGNMENTS.glob("*.ipynb")):
        path = file if file.suffix else ASSIGNMENTS / f"{file}.ipynb"
        try:
            sentences = list(verify(read(path)))
        except ValueError as error:
            sentences = [str(error)]
        wrong += len(sentences)
        print(f"{path.stem}: {'not ready' if sentences else 'ready'}")
        print("".join(f"  {said}\n" for said in sentences), end="")
    return int(wrong > 0)


def _course(options: argparse.Namespace) -> "Course":
    from classroom.course import open_course

    return open_course(options.course)


def _show(rows: "Sequence[Row]") -> None:
    """Print marks."""
    _table(
        ("student", "assignment", "status", "points", "", ""),
        [
            (
                *(row.student, row.assignment, row.status, row.total),
                "written answer waits" if row.written else "",
                row.remark,
            )
            for row in rows
        ],
    )


def _progress(result: "Result", done: int, of: int) -> None:
    """Show on a terminal how far it is, elsewhere a line for each submission."""
    text = f"{done} of {of}: {result.student} {result.status}"
    if sys.stderr.isatty():
        end = "\n" if done == of else ""
        print(f"\r\033[K{text}", end=end, file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [titles, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    for line in lines:
        cells = [c.ljust(w) for c, w in zip(line, widths, strict=True)]
        print("  ".join(cells).rstrip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m classroom",
        description="Hand out, grade and return assignments.",
        epilog=CYCLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        run: Callable[[argparse.Namespace], int], assignment: str | None = None
    ) -> argparse.ArgumentParser:
        name = run.__name__.removeprefix("run_")
        added = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        added.set_defaults(run=run)
        if run is not run_verify:
            added.add_argument("course", type=Path, metavar="COURSE")
        if assignment is not None:
            added.add_argument(
                "assignment", nargs=assignment or None, metavar="ASSIGNMENT", default=""
            )
        return added

    added = command(run_start)
    added.add_argument(
        "--students",
        type=Path,
        metavar="CSV",
        help="a table with the columns id, and perhaps first_name, last_name, email",
    )
    command(run_release, "")
    added = command(run_collect, "")
    added.add_argument("files", nargs="+", type=Path, metavar="FILE")
    added = command(run_grade, "")
    _chosen(added, "submissions", "also what has a result already")
    added.add_argument(
        "--seconds",
        type=float,
        default=Limits.seconds,
        help="of computing for one cell or one task (default: %(default)g)",
    )
    added.add_argument(
        "--unboxed-i-trust-all-submissions",
        dest="boxed",
        action="store_false",
        help=f"do without bubblewrap. {' '.join(RISK.split())}",
    )
    added = command(run_feedback, "")
    _chosen(added, "pages", "also what has not changed")
    added = command(run_marks, "?")
    added.add_argument("--csv", type=Path, metavar="FILE", help="write a table")
    added = command(run_verify)
    added.add_argument("notebooks", nargs="*", type=Path, metavar="ASSIGNMENT")
    return parser


def _chosen(command: argparse.ArgumentParser, what: str, again: str) -> None:
    """Let a command take some students, what it has done already, several at a time."""
    command.add_argument(
        "--student",
        action="append",
        default=[],
        help="only this one; repeat it for more",
    )
    command.add_argument("--again", action="store_true", help=again)
    command.add_argument(
        "--jobs", type=int, default=2, help=f"{what} at a time (default: 2)"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted. Run it again to go on.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
