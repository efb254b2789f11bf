"""Names that a task asks to do without are found, other names are not."""

import pytest

from classroom.flags import uses


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch\ntorch.softmax(x, 0)", True),
        ("import torch as t\nt.softmax(x, 0)", True),
        ("from torch import softmax", True),
        ("from torch import softmax as s", True),
        ("import torch\ndef softmax(x): return x", False),
        ("import torch\ntorch.softplus(x)", False),
        ("softmax(x)", False),
        ("def broken(:", False),
    ],
)
def test_function(source, found):
    assert uses([source], ["torch.softmax"]) == ["torch.softmax"] * found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from dlcore import hopfield", True),
        ("import dlcore.hopfield", True),
        ("import dlcore.hopfield as h", True),
        ("from dlcore.hopfield import hebbian", True),
        ("import dlcore\ndlcore.hopfield.hebbian(X)", True),
        ("from dlcore import hopfields", False),
        ("from dlcore.assignment import Checks", False),
    ],
)
def test_module(source, found):
    assert uses([source], ["dlcore.hopfield"]) == ["dlcore.hopfield"] * found


def test_aliases_reach_over_cells():
    assert uses(
        ["import numpy as np", "np.linalg.solve(A, b)"], ["numpy.linalg"]
    )
