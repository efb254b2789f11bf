"""The page on notation: what it prints is what the code does."""

import ast
import importlib
import inspect
import math
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dlcore
from dlcore.connectionism.neurons import heaviside, sign
from dlcore.connectionism.perceptron import fit, predict, separate
from dlcore.feedforward.activations import relu
from dlcore.feedforward.network import layered

PAGE = (Path(__file__).parents[1] / "book" / "notation.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| $")
]
RULES = dict(re.findall(r"^- \*\*(.+?)\.?\*\*(.*)", PAGE, re.M))
CODES = [code for row in ROWS for code in re.findall("`(.+?)`", row[-1])]
FUNCTIONS = {
    name: function
    for info in pkgutil.walk_packages(dlcore.__path__, "dlcore.")
    # autograd has the names of others, for tensors
    if not info.name.endswith((".autograd", ".__main__"))
    for name, function in inspect.getmembers(
        importlib.import_module(info.name),
        lambda member: inspect.isfunction(member) or inspect.isclass(member),
    )
    if function.__module__ == info.name
}


def names():
    """Return something for each letter that the page uses in code."""
    rng = np.random.default_rng(0)
    s, n, m = 5, 3, 2
    X, y, w = rng.normal(size=(s, n)), np.array([1.0, -1, 1, -1, 1]), np.ones(n)
    numbers = {"a": 2.0, "b": 2.0, "mu": 1.0, "sigma": 2.0, "i": 2, "j": 3}
    arrays = {"X": X, "x": X[0], "y": y, "w": w, "u": w, "h": w}
    arrays["z"] = X[:, 0] ** 2
    matrices = {"W": rng.normal(size=(m, n)), "A": X[:n]}
    pairs = [(matrices["W"], np.ones(m)), (np.ones((1, m)), np.ones(1))]
    matrices["network"] = layered(pairs, relu)
    for letter in "QKVE":
        matrices[letter] = torch.ones(m, n)
    sizes = {"s": s, "n": n, "m": m, "t": 0, "v": 1}
    return {"np": np, "math": math, "rng": rng} | numbers | arrays | matrices | sizes


def rule(name):
    assert name in RULES, f"notation.md, Conventions: {name!r} is missing"
    return RULES[name]


def test_page_is_read():
    assert len(ROWS) > 25
    assert len(RULES) > 10
    assert "X @ W.T + b" in CODES


def test_every_symbol_has_one_row():
    symbols = [row[0] for row in ROWS]
    assert len(set(symbols)) == len(symbols)


@pytest.mark.parametrize("code", CODES)
def test_code_on_the_page_runs(code):
    exec(code, FUNCTIONS | names())


@pytest.mark.parametrize(
    "code", [c for c in CODES if re.match(r"(?!np|math|rng)\w+\(", c)]
)
def test_page_calls_functions_as_they_are(code):
    call = ast.parse(code, mode="eval").body
    parameters = inspect.signature(FUNCTIONS[call.func.id]).parameters
    assert [a.id for a in call.args] == list(parameters)[: len(call.args)]
    for keyword in call.keywords:
        default = parameters[keyword.arg].default
        assert default == ast.literal_eval(keyword.value)


def test_shapes_on_the_page_fit_together():
    pattern = r"`(\w)` of shape `(\(.+?\))`"
    shapes = {
        letter: eval(shape, names())
        for row in ROWS
        for letter, shape in re.findall(pattern, row[-1])
    }
    assert shapes.keys() == {"x", "X", "y", "w", "W"}
    for letter, shape in shapes.items():
        assert names()[letter].shape == shape
    assert (
        predict(np.ones(shapes["w"]), 0.0, np.ones(shapes["X"])).shape == (shapes["y"])
    )


def test_ranges_have_both_ends():
    (code,) = [c for c in CODES if c.startswith("x[")]
    letters = {"x": np.arange(1, 10), "i": 3, "j": 6}  # the k-th entry is k
    assert eval(code, letters).tolist() == [3, 4, 5, 6]


def test_labels_are_refused_in_the_other_coding_with_the_remedy_of_the_page():
    (remedy,) = re.findall("`(.+?)`", rule("Labels"))
    X, y = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
    for function in (fit, separate):
        with pytest.raises(ValueError, match="coded as −1 and") as refused:
            function(X, y)
        assert f"pass {remedy}." in str(refused.value)
    assert fit(X, eval(remedy, {"y": y})).converged


def test_value_at_zero_is_that_of_the_page():
    (value,) = re.findall(r"sgn\}\(0\) = (\S+?)\$", rule("Value at zero"))
    (argument,) = re.findall(r"argument `(\w+)`", rule("Value at zero"))
    assert sign(np.zeros(1)) == float(value)
    assert predict(np.ones(1), 0.0, np.zeros((1, 1))) == float(value)
    for function in (sign, heaviside, predict):
        assert argument in inspect.signature(function).parameters
    assert sign(np.zeros(1), **{argument: 1.0}) == 1


@given(st.permutations(range(6)))
def test_rows_are_samples(order):
    assert "row of `X`" in rule("Rows are samples")
    X, w = np.random.default_rng(0).normal(size=(6, 2)), np.array([1.0, -2.0])
    answers = predict(w, 0.1, X)
    np.testing.assert_array_equal(predict(w, 0.1, X[order]), answers[order])
    assert answers[0] == np.sign(w @ X[0] + 0.1)


def test_gaussians_have_a_variance():
    (code,) = [c for c in CODES if c.startswith("rng.normal")]
    letters = {"rng": np.random.default_rng(0), "mu": 1.0, "sigma": 2.0}
    drawn = np.array([eval(code, letters) for _ in range(4000)])
    assert drawn.mean() == pytest.approx(1, abs=0.2)
    assert drawn.var() == pytest.approx(2.0**2, rel=0.1)


# Where the page says "as in PyTorch".


def test_weights_are_out_in():
    (code,) = re.findall("`(X.+?)`", rule("Weights are (out, in)"))
    layer = torch.nn.Linear(3, 2).double()
    X = np.random.default_rng(0).normal(size=(5, 3))
    W, b = (p.detach().numpy() for p in layer.parameters())
    assert W.shape == (2, 3)
    theirs = layer(torch.from_numpy(X)).detach().numpy()
    np.testing.assert_allclose(eval(code, {"X": X, "W": W, "b": b}), theirs)


def test_layers_correlate():
    assert "compute cross-correlations" in rule("Convolution")
    x, k = np.array([1.0, 2, 4, 8, 16]), np.array([1.0, 10, 100])
    tensors = [torch.from_numpy(a)[None, None] for a in (x, k)]
    layer = torch.nn.functional.conv1d(*tensors)[0, 0].numpy()
    np.testing.assert_array_equal(layer, np.correlate(x, k, "valid"))
    assert (layer != np.convolve(x, k, "valid")).all()


def test_dropout_drops_with_probability_p():
    assert "probability of dropping" in rule("Dropout")
    torch.manual_seed(0)
    kept = torch.nn.functional.dropout(torch.ones(10_000), p=0.1) != 0
    assert kept.double().mean() == pytest.approx(0.9, abs=0.02)


def test_true_means_may_look():
    assert "True means *may look*" in rule("Masks")
    q, k, v = torch.ones(1, 2), torch.ones(3, 2), torch.arange(3.0)[:, None]
    mask = torch.tensor([[False, False, True]])
    attend = torch.nn.functional.scaled_dot_product_attention
    assert attend(q, k, v, mask).item() == 2  # only the last value is seen

    module = torch.nn.MultiheadAttention(1, 1)
    x = torch.arange(3.0)[:, None]
    _, weights = module(x, x, x, attn_mask=mask.repeat(3, 1))
    assert (weights[:, 2] == 0).all()  # the other way round
