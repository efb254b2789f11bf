import base64
import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from dlcore.figures import live as module
from dlcore.figures.live import (
    LIVE,
    as_module,
    as_script,
    figures,
    live,
    quantised,
    stored_weights,
)

WIDGET = "application/vnd.jupyter.widget-view+json"
X, Y = np.array([[0.5, 1.0], [-1.0, 0.0]]), np.array([1.0, -1.0])


def points(X, y):
    """Two points
    in the plane.

    Only the first paragraph describes the figure.
    """
    return plt.figure(figsize=(1, 1), facecolor="0.2")


def undescribed(X, y):
    return plt.figure()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of modules of our own, in place of those of the book."""
    monkeypatch.setattr(module, "_FOLDER", tmp_path)

    def write(**sources):
        for name, source in sources.items():
            (tmp_path / f"{name}.js").write_text(source)

    return write


def shown(monkeypatch, mode):
    monkeypatch.setenv("DLCORE_EXPLORE", mode)
    return live("edge", points, X=X, y=Y)._repr_mimebundle_()[0]


def test_a_stored_figure_has_its_data_and_a_still(monkeypatch):
    bundle = shown(monkeypatch, "frames")
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"] == "live('edge', points)"
    names = {"figure": "edge", "name": "points", "about": "Two points in the plane."}
    data = {"X": X.tolist(), "y": Y.tolist()}
    assert bundle[LIVE] == {**names, "data": data}
    json.dumps(bundle[LIVE])


def test_a_kernel_is_asked_only_where_there_is_one(monkeypatch):
    assert WIDGET in shown(monkeypatch, "live")
    assert WIDGET not in shown(monkeypatch, "still")


def test_the_kernel_sees_what_the_reader_did():
    figure = live("edge", points, X=X, y=Y)
    assert figure.state == {}
    figure.widget().state = {"angle": 57.2}
    assert figure.state == {"angle": 57.2}


def test_small_arrays_are_stored_to_be_read_and_large_ones_as_bytes():
    large = np.arange(600.0).reshape(2, 300)
    inside = {"weights": [large], "words": ["a", "b"], "n": np.int64(3)}
    stored = live("edge", points, **inside).description()["data"]
    (weights,) = stored["weights"]
    numbers = np.frombuffer(base64.b64decode(weights["f32"]), "<f4")
    assert np.array_equal(numbers.reshape(weights["shape"]), large)
    assert (stored["words"], stored["n"]) == (["a", "b"], 3)


def test_bytes_stay_bytes():
    pixels = np.arange(300, dtype=np.int64).astype(np.uint8).reshape(3, 100)
    stored = live("edge", points, X=pixels).description()["data"]["X"]
    assert base64.b64decode(stored["u8"]) == pixels.tobytes()
    assert stored["shape"] == [3, 100]


def test_weights_are_stored_by_name_vectors_as_floats():
    W, b = np.eye(40) * np.arange(1, 41), np.arange(3.0)
    stored = stored_weights({"weight": W, "bias": b})
    assert base64.b64decode(stored["bias"]["f32"]) == b.astype("<f4").tobytes()
    whole = np.frombuffer(base64.b64decode(stored["weight"]["i8"]), np.int8)
    assert np.array_equal(whole.reshape(40, 40), 127 * np.eye(40))
    scales = base64.b64decode(stored["weight"]["scales"]["f32"])
    scales = np.frombuffer(scales, "<f4")
    np.testing.assert_allclose(scales, np.arange(1, 41) / 127, rtol=1e-6)


def test_quantised_weights_are_within_half_a_scale():
    W = np.random.default_rng(0).normal(size=(5, 3, 2)) * np.arange(5)[:, None, None]
    stored = quantised(W)
    whole = np.frombuffer(base64.b64decode(stored["i8"]), np.int8).reshape(W.shape)
    scales = np.array(stored["scales"])[:, None, None]
    assert (np.abs(whole * scales - W) <= scales * 0.5001).all()
    assert np.abs(whole).max() == 127


def test_what_a_module_imports_stands_before_it_once(folder):
    folder(
        a='import { b } from "./b.js";\nimport { c } from "./c.js";\n'
        "export function render() { return b + c; }",
        b='import { c } from "./c.js";\nexport const b = c + 1;',
        c="export const c = 1;\nconst own = 2;",
    )
    text = as_module("a")
    order = [text.index(f"const ${name} =") for name in "cba"]
    assert order == sorted(order)
    assert text.count("const c = 1;") == 1
    assert "import" not in text
    assert text.count("export") == 1
    assert "return { c };" in text
    assert as_script("a", "held").endswith("held.a = $a;\n})();\n")
    assert figures() == ["a"]


@pytest.mark.parametrize(
    ("figure", "draw", "said"),
    [
        ("none", points, "live: figure must be one of .*; got 'none'"),
        ("plot", points, "live: figure must be one of .*; got 'plot'"),
        ("edge", undescribed, "must have a docstring .*; got 'undescribed'"),
    ],
)
def test_refuses(figure, draw, said):
    with pytest.raises(ValueError, match=said):
        live(figure, draw, X=X, y=Y)


def test_refuses_a_still_that_is_no_figure():
    def axes(X, y):
        """No figure."""
        return 3

    with pytest.raises(ValueError, match="live: draw must return a Figure; got 3"):
        live("edge", axes, X=X, y=Y)._repr_mimebundle_()
