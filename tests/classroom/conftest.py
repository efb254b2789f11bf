"""A course with a released assignment, made once and copied for each test."""

import shutil
from functools import cache
from pathlib import Path

import jaxtyping
import nbformat
import nbgrader.api
import pytest

from classroom import box
from classroom.course import Course, start
from classroom.release import release
from classroom.verify import solve

ASSIGNMENT = "connectionism"


@pytest.fixture(scope="session", autouse=True)
def fast():
    """Let calls of dlcore through as a grader does, where nothing checks their types."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session", autouse=True)
def one_version():
    """Ask once for the version of a gradebook: nbgrader starts a process to tell it."""
    ask = cache(nbgrader.api.get_alembic_version)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nbgrader.api, "get_alembic_version", ask)
        yield


@pytest.fixture(scope="session")
def started(tmp_path_factory) -> Path:
    """An empty course."""
    return start(tmp_path_factory.mktemp("started") / "course").root


@pytest.fixture(scope="session")
def made(started, tmp_path_factory) -> Path:
    """A course with a released assignment."""
    root = tmp_path_factory.mktemp("made") / "course"
    shutil.copytree(started, root)
    release(Course(root), ASSIGNMENT)
    return root


@pytest.fixture
def course(made, tmp_path) -> Course:
    shutil.copytree(made, tmp_path / "course")
    return Course(tmp_path / "course")


@pytest.fixture(scope="session")
def empty(made):
    """The student's version, as it was handed out."""
    return nbformat.read(Course(made).notebook("release", ASSIGNMENT), 4)


@pytest.fixture(scope="session")
def instructor(made):
    return nbformat.read(Course(made).notebook("source", ASSIGNMENT), 4)


@pytest.fixture(scope="session")
def solved(empty, instructor):
    """The student's version with the reference solutions in it."""
    return solve(empty, instructor)


@pytest.fixture(scope="session")
def boxes():
    """Skip a test where no box can be built."""
    why = box.why_not()
    if why:
        pytest.skip(
            f"No box on this machine ({why}): grading was not tested. "
            "On Debian: apt-get install bubblewrap"
        )
