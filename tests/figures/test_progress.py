import pytest

from dlcore.figures import progress as module
from dlcore.figures.progress import progress


class Bar:
    """Stands in for the widget and keeps what was done to it."""

    model_id, made = "1", []

    def __init__(self, max, description):
        self.max, self.description, self.values = max, description, []
        self.closed = False
        Bar.made.append(self)

    value = property(fset=lambda self, value: self.values.append(value))

    def close(self):
        self.closed = True


@pytest.fixture
def live(monkeypatch):
    """Behave as in a live notebook."""

    class Shell:
        kernel = None

    shown = []
    monkeypatch.delenv("DLCORE_EXPLORE", raising=False)
    monkeypatch.setattr(module, "get_ipython", Shell)
    monkeypatch.setattr(module, "display", lambda *data, raw: shown.append(data))
    monkeypatch.setattr(module, "IntProgress", Bar)
    monkeypatch.setattr(Bar, "made", [])
    return shown


@pytest.mark.parametrize("n", [0, 1, 7, 1234])
def test_the_bar_runs_to_its_end_and_goes_away(live, n):
    assert list(progress(range(n), "work")) == list(range(n))
    (bar,) = Bar.made
    assert (bar.max, bar.description, len(live)) == (n, "work", 1)
    assert bar.values == sorted(set(bar.values))
    assert len(bar.values) <= 100
    assert bar.values[-1:] == ([n] if n else [])
    assert bar.closed


@pytest.mark.usefixtures("live")
def test_the_bar_goes_away_also_after_an_error():
    with pytest.raises(ZeroDivisionError):
        [1 / item for item in progress([1, 0], "work")]
    (bar,) = Bar.made
    assert bar.closed


def test_nothing_is_shown_where_nobody_looks(live, monkeypatch):
    monkeypatch.setenv("DLCORE_EXPLORE", "still")
    assert list(progress("ab", "work")) == ["a", "b"]
    monkeypatch.delenv("DLCORE_EXPLORE")
    monkeypatch.setattr(module, "get_ipython", lambda: None)
    assert list(progress("ab", "work")) == ["a", "b"]
    assert not live
    assert not Bar.made
