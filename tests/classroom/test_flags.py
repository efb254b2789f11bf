"""Names that a task asks to do without are found, other names are not."""

import re

import pytest

from classroom.flags import uses
from classroom.reading import Reader


def found(source, *names):
    """Return which names the function f of some code uses."""
    return uses([source], {"f": names})["f"]


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("import torch\ndef f(x): return torch.softmax(x, 0)", True),
        ("import torch as t\ndef f(x): return t.softmax(x, 0)", True),
        ("from torch import softmax\ndef f(x): return softmax(x)", True),
        ("from torch import softmax as f", True),
        ("from torch import softmax as s\nf = s", True),
        ("def f(x):\n    from torch import softmax\n    return softmax(x)", True),
        ("import torch\ndef g(x): return torch.softmax(x)\ndef f(x): return g(x)", True),
        ("%matplotlib inline\nfrom torch import softmax as f", True),
        ("from torch import softmax\ndef f(x): return x", False),
        ("import torch\ndef g(x): return torch.softmax(x)\ndef f(x): return x", False),
        ("import torch\ndef softmax(x): return x\ndef f(x): return softmax(x)", False),
        ("import torch\ndef f(x): return torch.softplus(x)", False),
        ("def f(x): return softmax(x)", False),
        ("def broken(:", False),
    ],
)  # fmt: skip
def test_function(source, used):
    assert found(source, "torch.softmax") == ["torch.softmax"] * used


@pytest.mark.parametrize(
    ("source", "used"),
    [
        (
            "from dlcore.connectionism import hopfield\ndef f(X): return hopfield.h(X)",
            True,
        ),
        (
            "import dlcore.connectionism.hopfield\ndef f(X): return dlcore.connectionism.hopfield.h(X)",
            True,
        ),
        (
            "import dlcore.connectionism.hopfield as h\ndef f(X): return h.hebbian(X)",
            True,
        ),
        ("from dlcore.connectionism.hopfield import h\nf = lambda X: h(X)", True),
        ("from dlcore import hopfields\ndef f(X): return hopfields.h(X)", False),
        (
            "from dlcore.connectionism.hopfield import h\nprint(h)\ndef f(X): return X",
            False,
        ),
    ],
)
def test_module(source, used):
    assert (
        found(source, "dlcore.connectionism.hopfield")
        == ["dlcore.connectionism.hopfield"] * used
    )


def test_aliases_and_functions_reach_over_cells():
    cells = ["import numpy as np", "def g(A): return np.linalg.inv(A)", "f = g"]
    assert uses(cells, {"f": ["numpy.linalg"], "g": ["numpy.fft"]}) == {
        "f": ["numpy.linalg"],
        "g": [],
    }


@pytest.mark.parametrize(
    "source",
    [
        "import " + "a." * 99_000 + "b",
        "import " + "a.\\\n" * 60_000 + "b",
        "x = " + "(" * 90_000 + ")" * 90_000,
        "x = " + "-" * 150_000 + "1",
        "%x\n" * 20_000,
    ],
    ids=["dots", "dots in lines", "brackets", "signs", "magics"],
)
def test_code_that_no_parser_likes_is_looked_at_within_limits(source):
    honest = "import torch\ndef f(x): return torch.softmax(x)"
    names = {"f": ["torch"]}
    with Reader() as reader:
        try:
            found = str(reader.uses([source, honest], names))
        except ValueError as error:
            found = str(error)
        assert re.search(r"to read|characters|A line|\['torch'\]", found)
        assert reader.uses([honest], names) == {"f": ["torch"]}
