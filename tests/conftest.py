"""Set-up of all tests: shapes are checked, examples repeat, no window opens."""

import inspect
import re
from functools import partial, wraps
from typing import get_args

import jaxtyping
import matplotlib
import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling, WorkStealingScheduling

with_shapes = jaxtyping.jaxtyped


def names_shapes(hint):
    """Tell whether a type hint holds a shape, or is a text that may."""
    shape = inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray)
    return shape or isinstance(hint, str) or any(map(names_shapes, get_args(hint)))


def checked(function=None, *, typechecker):
    """Check the arguments and the answer of a function at every call.

    Where no hint holds a shape, beartype alone does what jaxtyping would, which lets it
    look twice and binds the arguments besides: most calls are such, and short.
    """
    if function is None:
        return partial(checked, typechecker=typechecker)
    hints = getattr(function, "__annotations__", {}).values()
    if not inspect.isfunction(function) or any(map(names_shapes, hints)):
        return with_shapes(function, typechecker=typechecker)
    strict = typechecker(function)

    @wraps(function)
    def call(*args, **kwargs):
        free = jaxtyping.config.jaxtyping_disable
        return (function if free else strict)(*args, **kwargs)

    return function if strict is function else call


# Check the shapes in dlcore's signatures at every call; an int may stand for a float.
# The hook must be in place before the first import of dlcore.
jaxtyping.jaxtyped = checked
jaxtyping.install_import_hook(
    "dlcore", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
)
matplotlib.use("Agg")
settings.register_profile("repo", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("repo")


@pytest.fixture
def unchecked(monkeypatch):
    """Let calls through as a notebook does, where nothing checks their shapes."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


class ByPage(LoadScopeScheduling):
    """Give all tests of one visit to a page to one worker."""

    def _split_scope(self, nodeid):
        visit = re.search(r"(server|folder)-[^]]+", nodeid)
        return visit[0] if visit else nodeid


def pytest_xdist_make_scheduler(config, log):
    """Let ``--dist loadscope`` deal out pages instead of files, and ``load`` as needed.

    By itself ``load`` gives an eighth of the tests to one of two workers at once. The
    first ones, of the classroom, take as long as all others.
    """
    kinds = {"loadscope": ByPage, "load": WorkStealingScheduling}
    kind = kinds.get(config.getvalue("dist"))
    return kind and kind(config, log)
