"""Set-up of all tests: shapes are checked, examples repeat, no window opens."""

import re

import jaxtyping
import matplotlib
import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# Check the shapes in dlcore's signatures at every call; an int may stand for a float.
# The hook must be in place before the first import of dlcore.
jaxtyping.install_import_hook(
    "dlcore",
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)
matplotlib.use("Agg")
settings.register_profile(
    "repo", deadline=None, max_examples=25, derandomize=True
)
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
    """Let ``--dist loadscope`` deal out pages instead of files."""
    chosen = config.getvalue("dist") == "loadscope"
    return ByPage(config, log) if chosen else None
