"""Grade the submissions of an assignment, whatever they do.

Student's code runs in boxes, several at a time; everything else happens in this process,
which never runs any of it. A run that was interrupted goes on where it stopped: what has
a result for the same submission, assignment and grader is not run again.
"""

import fcntl
import hashlib
import json
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import nbformat
from nbformat import NotebookNode

from classroom import groups
from classroom.assignment import Assignment, is_test, read, role
from classroom.autograded import build, changed
from classroom.box import Limits, why_not
from classroom.course import Course
from classroom.exchange import check_apart
from classroom.gradebook import record
from classroom.reading import (
    MISSING,
    Cell,
    Reader,
    Submission,
    examine,
    handed_in,
    submitted,
)
from classroom.results import (
    CRASHED,
    EMPTY,
    GRADED,
    NOT_GRADED,
    STOPPED,
    Result,
    folder,
    load,
    save,
)
from classroom.running import SET_UP, Budget, Code, Run, Task, mark_needed, run
from classroom.submissions import write_whole
from dlcore.assignment.judging import NOT_WRITTEN, Case, judge
from dlcore.assignment.plain_data import Outcome
from dlcore.checks import check

VERSION = 3  # of the grader; change it when results may change

NOT_ALLOWED = "NotAllowedHere"  # what is raised by modules that were hidden

T = TypeVar("T")
Progress = Callable[[Result, int, int], None]  # a result, how many, of how many


@dataclass(frozen=True)
class Job:
    """A submission that has to be run."""

    student: str
    key: str
    submission: Submission
    program: list[Code]
    cases: dict[str, list[Case]]
    budget: Budget
    before: list[Run] = field(default_factory=list)


class Grader:
    """Everything that grading one assignment of a course needs.

    Args:
        course: the course.
        name: the name of the assignment.
        limits: what a submission may use.
        boxed: run students' code in a box.
    """

    def __init__(
        self,
        course: Course,
        name: str,
        limits: Limits | None = None,
        boxed: bool = True,
    ) -> None:
        source = course.notebook("source", name)
        release = course.notebook("release", name)
        there = source.is_file() and release.is_file()
        hint = f"First: python -m classroom release {course.root} {name}"
        check(there, "ASSIGNMENT", "have been released", repr(name), hint)
        if boxed:
            why = why_not()
            hint = "Install bubblewrap; `grade --help` says what else there is."
            check(not why, "The box", "work on this machine", why, hint)
            check_apart(course)
        self.course = course
        self.name = name
        self.assignment: Assignment = read(source)
        self.release: NotebookNode = nbformat.read(release, as_version=4)
        self.limits = limits or Limits()
        self.boxed = boxed
        self._version = digest(
            str(VERSION), course.secret, source.read_text(), release.read_text()
        )

    def grade(
        self,
        students: Sequence[str] = (),
        again: bool = False,
        jobs: int = 2,
        progress: Progress = lambda *_: None,
    ) -> list[Result]:
        """Grade students, by default all of them, and return their results in order."""
        groups.prepare()
        everyone = {*self.course.students(), *submitted(self.course, self.name)}
        chosen = sorted(set(students) or everyone)
        results: dict[str, Result] = {}
        numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(jobs):
            numbers.put(number)

        def take(student: str, result: Result) -> None:
            results[student] = result
            progress(result, len(results), len(chosen))

        with (
            _only_one(self.course, self.name),
            self.course.gradebook() as self._gradebook,
            Reader() as self._reader,
            ThreadPoolExecutor(jobs) as pool,
        ):
            running: dict[Future[Run], Job] = {}
            late: list[Job] = []
            beside = late if jobs > 1 else None
            try:
                for student in chosen:
                    job = _safely(student, self._begin, student, again)
                    if isinstance(job, Result):
                        take(student, job)
                        continue
                    running[pool.submit(self._run, job, numbers)] = job
                    while len(running) > jobs:
                        self._wait(running, take, beside)
                while running:
                    self._wait(running, take, beside)
                for job in late:  # alone, so that nobody pays for the others
                    running[pool.submit(self._run, job, numbers)] = job
                    self._wait(running, take)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return [results[student] for student in chosen]

    def _begin(self, student: str, again: bool) -> Job | Result:
        """Return a job for a submission that has to be run, or else its result."""
        submission = examine(self.course, self.name, student, self._reader)
        if submission.status == MISSING:
            return Result(student, MISSING, submission.note)
        key = digest(self._version, student, submission.digest)
        before = load(self.course, self.name, student)
        shown = self.course.notebook("autograded", self.name, student).is_file()
        if before and before.key == key and shown and not again:
            return before if before.recorded else self._record(before)
        if submission.status:
            scores = dict.fromkeys(self.assignment.points, 0.0)
            result = Result(student, submission.status, submission.note, key, scores)
            return self._keep(result, submission, Run())
        cases = self.assignment.hidden(student, self.course.secret)
        program = self._program(student, submission)
        budget = Budget(self.limits.budget)
        return Job(student, key, submission, program, cases, budget)

    def _run(self, job: Job, numbers: "queue.SimpleQueue[int]") -> Run:
        """Run a submission; this is what several threads do at a time."""
        number = numbers.get()
        try:
            tasks = {name: self._task(name, c) for name, c in job.cases.items()}
            return run(job.program, tasks, self.limits, job.budget, number, self.boxed)
        finally:
            numbers.put(number)

    def _task(self, name: str, cases: list[Case]) -> Task:
        """Return how the function of a task is called, and what is right."""
        recipe = self.assignment.recipes[name]
        return Task(
            [case.arguments for case in cases],
            recipe.without,
            lambda outcomes: judge(recipe.task, cases, outcomes).passed,
        )

    def _wait(
        self,
        running: dict[Future[Run], Job],
        take: Callable[[str, Result], None],
        late: list[Job] | None = None,
    ) -> None:
        """Wait until a run has ended, and enter its result, or note that it was late."""
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            job = running.pop(future)
            enough = job.budget.left > self.limits.seconds
            if late is not None and enough and _was_late(future):
                late.append(job)
                job.before.append(future.result())
                continue
            take(job.student, _safely(job.student, self._finish, job, future))

    def _finish(self, job: Job, future: Future[Run]) -> Result:
        """Judge what the runs have brought, and enter the best of them everywhere."""
        done = max(
            [future.result(), *job.before], key=lambda run: self._judge(job, run).score
        )
        result = self._judge(job, done)
        result.seconds = round(done.seconds, 2)
        return self._keep(result, job.submission, done)

    def _judge(self, job: Job, done: Run) -> Result:
        answers = changed(self.release, job.submission)
        result = Result(job.student, GRADED, key=job.key)
        result.answers = {name: digest(text) for name, text in answers.items()}
        for name, cases in job.cases.items():
            self._judge_task(name, cases, done, result)
        flags = [*job.submission.flags, *result.flags, *self._flags(job)]
        result.flags = list(dict.fromkeys(flags))
        if done.stopped or done.crashed or done.skipped:
            crashed = not done.stopped and not done.skipped
            result.status = CRASHED if crashed else STOPPED
            result.note = _what_happened(done)
        elif not answers and all(s.endswith(NOT_WRITTEN) for s in result.said.values()):
            result.status = EMPTY
        return result

    def _judge_task(
        self, name: str, cases: list[Case], done: Run, result: Result
    ) -> None:
        """Enter the mark of a task, and what the student is told about it."""
        outcomes = done.tasks[name]
        result.scores[name] = 0.0
        if isinstance(outcomes, str):
            result.said[name] = f"{name}: {outcomes}"
            return
        recipe = self.assignment.recipes[name]
        if hidden := _called(outcomes, recipe.without):
            result.flags += [f"{name} should do without {one}" for one in hidden]
            result.said[name] = f"{name}: It should do without {hidden[0]}."
            return
        if judge(recipe.task, cases, outcomes).passed:
            result.scores[name] = self.assignment.points[name]
            result.said[name] = f"{name}: right in all {len(cases)} cases."
            return
        verdict = judge(recipe.task, recipe.with_mistakes(cases), outcomes)
        said = f"{name}: {verdict.difference.rule}"
        if verdict.mistake:
            result.mistakes[name] = verdict.mistake
            said += f"\nHint: {verdict.hint}"
        if name in done.later:
            result.flags.append(f"{name} is right as a later cell left it")
            said += "\nWhat counts is the function as it stands after its own cell."
        result.said[name] = said

    def _keep(self, result: Result, submission: Submission, done: Run) -> Result:
        """Write the result, the graded notebook and the marks, in this order."""
        before = load(self.course, self.name, result.student)
        result.rewritten = (
            before is None
            or before.answers != result.answers
            or (before.rewritten and not before.recorded)
        )
        ok = result.status == GRADED
        title = "" if ok else f"**Status: {result.status}.** {result.note}"
        notebook = build(
            self.release,
            submission,
            done.cells,
            {
                name: (score > 0, result.said.get(name, result.note))
                for name, score in result.scores.items()
            },
            title,
        )
        file = self.course.notebook("autograded", self.name, result.student)
        save(self.course, self.name, result)
        write_whole(file, nbformat.writes(notebook).encode())
        return self._record(result)

    def _record(self, result: Result) -> Result:
        record(
            self._gradebook,
            self.name,
            result.student,
            result.scores,
            result.answers,
            result.rewritten,
            handed_in(self.course, self.name, result.student),
        )
        result.recorded = True
        save(self.course, self.name, result)
        return result

    def _program(self, student: str, submission: Submission) -> list[Code]:
        """Return the cells to run: those handed out first, then the student's own.

        What was handed out is run as it was. Tests are not run, the tasks are called.
        """
        given = [
            cell
            for cell in self.release.cells
            if cell.cell_type == "code" and role(cell, "locked") and not is_test(cell)
        ]
        known = {
            cell.source.strip()
            for cell in self.release.cells
            if role(cell, "locked") or is_test(cell)
        }
        begin = "\n".join([f"student = {student!r}", *(c.source for c in given)])
        places = [p for p, c in enumerate(submission.cells) if c.kind == "code"]
        recipes = self.assignment.recipes
        own = [
            self._code(place, count, submission.cells[place])
            for count, place in enumerate(places, 1)
            if submission.cells[place].source.strip() not in known
        ]
        return mark_needed([Code(-1, begin, SET_UP), *own], [*recipes])

    def _code(self, place: int, count: int, cell: Cell) -> Code:
        """Return a cell to run: with the task that it answers, if its id says so."""
        names = self.assignment.recipes
        answers = tuple(n for n in names if cell.grade_id == f"{n}-answer")
        title = " ".join([f"code cell {count}", *(f"({n})" for n in answers)])
        return Code(place, cell.source, title, answers)

    def _flags(self, job: Job) -> Iterator[str]:
        """Yield what the teacher may want to look at."""
        sources = [cell.source for cell in job.program if cell.place >= 0]
        recipes = self.assignment.recipes
        unwanted = {name: list(r.without) for name, r in recipes.items()}
        try:
            used = self._reader.uses(sources, unwanted)
        except (ValueError, RuntimeError) as error:
            yield f"its code cannot be looked at: {error}"
            used = {}
        for name, found in used.items():
            for one in found:
                yield f"{name} should do without {one}"
        handed_out = {
            role(cell, "grade_id"): cell.source.strip()
            for cell in self.release.cells
            if role(cell, "locked")
        }
        for cell in job.submission.cells:
            if cell.source.strip() != handed_out.get(
                cell.grade_id, cell.source.strip()
            ):
                yield f"the locked cell {cell.grade_id} was changed"


def digest(*texts: str) -> str:
    """Return a text that changes when one of the texts does."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def _safely(student: str, function: Callable[..., T], *arguments: object) -> T | Result:
    """Let no error that one submission causes reach the others."""
    try:
        return function(*arguments)
    except Exception as error:
        note = f"{type(error).__name__}: {error}"
        return Result(student, NOT_GRADED, note[:500])


def _called(outcomes: list[Outcome], hidden: Sequence[str]) -> list[str]:
    """Return the hidden modules that a function has called."""
    said = [one.why for one in outcomes if one.raised == NOT_ALLOWED]
    return [
        name
        for name in hidden
        if any(why.startswith(f"{NOT_ALLOWED}: {name}") for why in said)
    ]


def _what_happened(done: Run) -> str:
    """Return a sentence about cells and tasks that did not come to their end."""
    what = [f"{one} was stopped" for one in done.stopped]
    what += [f"{one} ended the process" for one in done.crashed]
    what += [f"there was no time for {one}" for one in done.skipped[:1]]
    return "; ".join(what) + "."


def _was_late(future: Future[Run]) -> bool:
    return future.exception() is None and future.result().late


@contextmanager
def _only_one(course: Course, name: str) -> Iterator[None]:
    """Refuse to grade the same assignment twice at the same time."""
    place = folder(course, name)
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            check(False, name, "be graded by one command at a time", "two")
        yield
