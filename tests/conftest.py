"""Set-up of all tests: shapes are checked, examples repeat, no window opens."""

import jaxtyping
import matplotlib
import pytest
from hypothesis import settings

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
