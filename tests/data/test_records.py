"""Records, as a page opens them."""

import numpy as np
import pytest

from dlcore.data import records
from dlcore.data.records import record


def test_record_has_figures_curves_and_weights():
    run = record("digits")
    assert repr(run) == "record of digits: 3 minutes of one core, recorded"
    assert run.figures("cnn", "test").shape == (3,)
    curve = run.curve("cnn", seed=1)
    assert curve["step"][-1] == 10_000
    assert curve["valid"][-1] < 1.2 < curve["valid"][0]
    shapes = {name: W.shape for name, W in run.weights("cnn").items()}
    assert sum(np.prod(shape) for shape in shapes.values()) == 42_962


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda run: record("digit"),
            "record: name must be one of .*'digits'.*got 'digit'",
        ),
        (
            lambda run: run.figures("rnn", "test"),
            "digits: model must be one of .*got 'rnn'",
        ),
        (lambda run: run.figures("cnn", "tests"), "figure must be one of .*'test'"),
        (lambda run: run.curve("cnn", 7), "digits: seed must be one of .*got 7"),
        (
            lambda run: run.weights("cnn", 2),
            "weights must be of cnn with seed 0; got cnn",
        ),
    ],
)
def test_what_was_not_recorded_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call(record("digits"))


def test_record_beside_the_package_comes_first(tmp_path, monkeypatch):
    own = records.folders()[0] / "digits"
    installed = tmp_path / "runs" / "digits"
    installed.mkdir(parents=True)
    (installed / "card.json").write_text("{}")
    monkeypatch.setattr(records, "folders", lambda: [own.parent, installed.parent])
    assert record("digits").folder == own
    monkeypatch.setattr(records, "folders", lambda: [installed.parent])
    assert record("digits").folder == installed


def test_stored_weights_hold_no_code(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, W=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        records.load_weights(path)
