import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from strategies import seeds

from dlcore import data
from dlcore.connectionism import perceptron
from dlcore.feedforward.logistic_regression import (
    logistic_gradient,
    logistic_hessian,
    logistic_regression,
    overlap,
    softmax_gradient,
    softmax_hessian,
    softmax_regression,
)
from dlcore.feedforward.losses import cross_entropy


def drawn(rng, classes=2, s=60, n=3):
    """Draw points whose classes overlap: labels do not look at them."""
    y = np.concatenate([np.arange(classes), rng.integers(classes, size=s - classes)])
    return rng.normal(size=(s, n)), y


def lattice(rng, s, n, classes=2):
    """Draw points with small whole coordinates, so that they lie on common planes."""
    y = np.concatenate([np.arange(classes), rng.integers(classes, size=s - classes)])
    return rng.integers(-1, 2, size=(s, n)).astype(float), y


def test_the_shuttle_as_printed_in_textbooks():
    X, y = data.shuttle()
    w, b = logistic_regression(X, y)
    error = np.sqrt(np.diag(np.linalg.inv(23 * logistic_hessian(X, w, b))))
    assert_allclose([*w, b], [-0.2322, 15.0429], atol=5e-5)
    assert_allclose(error, [0.1082, 7.3786], atol=5e-5)


def test_two_irises_as_printed_by_r():
    X, y = load_iris(return_X_y=True)
    w, b = logistic_regression(X[y > 0], y[y > 0] - 1)
    assert_allclose([b, *w], [-42.638, -2.465, -6.681, 9.429, 18.286], atol=5e-4)


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_equals_scikit_learn(classes, penalty):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    theirs = LogisticRegression(C=1 / (penalty * len(X)), tol=1e-12, max_iter=10_000)
    theirs.fit(X, y)
    if classes == 2:
        w, b = logistic_regression(X, y, penalty)
        assert_allclose(w, theirs.coef_[0], atol=1e-4)
        assert_allclose(b, theirs.intercept_[0], atol=1e-4)
    else:
        W, c = softmax_regression(X, y, penalty)
        assert_allclose(W, theirs.coef_, atol=1e-4)
        assert_allclose(c, theirs.intercept_ - theirs.intercept_.mean(), atol=1e-4)


@given(seeds, st.integers(2, 4))
def test_derivatives_equal_those_of_torch(rng, classes):
    X, y = drawn(rng, classes, 20)
    W, b = rng.normal(size=(classes, 3)), rng.normal(size=classes)
    A, V = np.column_stack([X, np.ones(20)]), np.column_stack([W, b])

    def cost(V):
        scores = torch.tensor(A) @ V.reshape(classes, 4).T
        return torch.nn.functional.cross_entropy(scores, torch.tensor(y))

    v = torch.tensor(V.ravel(), requires_grad=True)
    gradient = torch.autograd.grad(cost(v), v)[0].numpy()
    hessian = torch.autograd.functional.hessian(cost, v).numpy()
    assert_allclose(softmax_gradient(X, y, W, b).ravel(), gradient, atol=1e-14)
    assert_allclose(softmax_hessian(X, W, b), hessian, atol=1e-14)

    w, b1 = W[1] - W[0], b[1] - b[0]
    v = torch.tensor([*w, b1], requires_grad=True)

    def binary(v):
        return torch.nn.functional.binary_cross_entropy_with_logits(
            torch.tensor(A) @ v, torch.tensor(y > 0, dtype=torch.float64)
        )

    gradient = torch.autograd.grad(binary(v), v)[0].numpy()
    hessian = torch.autograd.functional.hessian(binary, v).numpy()
    label = (y > 0).astype(int)
    assert_allclose(logistic_gradient(X, label, w, b1), gradient, atol=1e-14)
    assert_allclose(logistic_hessian(X, w, b1), hessian, atol=1e-14)


@given(seeds, st.sampled_from([0.0, 0.01, 1.0]))
def test_two_classes_of_a_softmax_are_one_logistic_unit(rng, penalty):
    X, y = drawn(rng)
    w, b = logistic_regression(X, y, penalty)
    slope = logistic_gradient(X, y, w, b) + penalty * np.append(w, 0)
    assert_allclose(slope, 0, atol=1e-12)
    W, c = softmax_regression(X, y, 2 * penalty)
    assert_allclose(W[1] - W[0], w, atol=1e-8)
    assert_allclose(c[1] - c[0], b, atol=1e-8)
    assert_allclose([*W.sum(axis=0), c.sum()], 0, atol=1e-12)


@given(seeds, st.integers(2, 4), st.sampled_from([0.0, 0.01]))
def test_no_neighbour_has_a_lower_cost(rng, classes, penalty):
    X, y = drawn(rng, classes)

    def cost(W, b):
        return cross_entropy(X @ W.T + b, y).mean() + penalty * (W**2).sum() / 2

    W, b = softmax_regression(X, y, penalty)
    for size in [1e-3, 0.1, 3.0]:
        dW, db = (size * rng.normal(size=W.shape), size * rng.normal(size=b.shape))
        assert cost(W + dW, b + db) > cost(W, b)


@given(seeds)
def test_units_of_measurement_do_not_matter(rng):
    X, y = drawn(rng)
    scale, shift = 10.0 ** rng.integers(-4, 5, 3), rng.normal(size=3)
    w, b = logistic_regression(X, y)
    v, c = logistic_regression((X + shift) * scale, y)
    assert_allclose(((X + shift) * scale) @ v + c, X @ w + b, atol=1e-6)


@pytest.mark.parametrize("penalty", [0.0, 0.01])
@pytest.mark.parametrize("shift", [3e7, 1e8, -1e12])
def test_the_origin_does_not_matter(shift, penalty):
    X = np.array([[0.0, 1], [1, 0], [2, 2], [3, 1], [1, 1], [1, 2]])
    y = np.array([0, 1, 0, 1, 0, 1])
    w, b = logistic_regression(X, y, penalty)
    v, c = logistic_regression(X + shift, y, penalty)
    assert_allclose(v, w, rtol=1e-12)
    assert_allclose(c, b - shift * w.sum(), rtol=1e-12)
    y[0] = 2
    W, b = softmax_regression(X, y, penalty + 0.01)
    V, c = softmax_regression(X + shift, y, penalty + 0.01)
    assert_allclose(V, W, atol=1e-12)
    assert_allclose(c, b - shift * W.sum(axis=1), rtol=1e-11)


@pytest.mark.parametrize("unit", [1e-90, 1e-5, 1e90])
def test_nor_does_a_unit_however_small_or_large(unit):
    X, y = np.arange(4.0)[:, None], np.array([0, 1, 0, 1])
    w, b = logistic_regression(X, y)
    v, c = logistic_regression(X * unit, y)
    assert_allclose([*v * unit, c], [*w, b], rtol=1e-12)
    v, c = logistic_regression(X / 1000, y, 1e-6)
    assert_allclose([*v / 1000, c], [*logistic_regression(X, y, 1.0)[0], c])


@pytest.mark.parametrize("penalty", [1e-2, 1e-5, 1e-10, 1e-14, 1e-30])
def test_tiny_penalties_against_a_root(penalty):
    """By symmetry b = −1.5 w, and the slope by w is a function of one number."""
    X, y = np.arange(4.0)[:, None], np.array([0, 0, 1, 1])

    def slope(w):
        pull = 0.5 * expit(-0.5 * w) + 1.5 * expit(-1.5 * w)
        return penalty * w - pull / 2

    root = brentq(slope, 0, 1000, xtol=1e-12)
    w, b = logistic_regression(X, y, penalty)
    assert_allclose([*w, b], [root, -1.5 * root], rtol=1e-10)
    W, _ = softmax_regression(X, y, 2 * penalty)
    assert_allclose(W[:, 0], [-root / 2, root / 2], rtol=1e-10)


def test_gradients_keep_their_digits_where_a_unit_is_sure():
    X, y = np.array([[100.0]]), np.array([1])
    g = logistic_gradient(X, y, np.ones(1), 0.0)
    assert_allclose(g, np.exp(-100.0) * np.array([-100, -1]))
    G = softmax_gradient(X, y, np.array([[0.0], [1.0]]), np.zeros(2))
    assert_allclose(G, np.outer([-1, 1], g))
    H = softmax_hessian(X, np.array([[0.0], [1.0]]), np.zeros(2))
    assert_allclose(H[3, 3], np.exp(-100.0))


def test_a_column_without_information_gets_the_weight_zero():
    X, y = drawn(np.random.default_rng(0))
    w, b = logistic_regression(X, y)
    v, c = logistic_regression(np.column_stack([X, np.zeros(60)]), y)
    assert_allclose([*v, c], [*w, 0, b], atol=1e-10)


@given(seeds, st.integers(2, 8), st.integers(1, 2))
def test_weights_stay_bounded_exactly_where_the_classes_overlap(rng, s, n):
    X, y = lattice(rng, s, n)
    sizes = [
        np.linalg.norm(logistic_regression(X, y, penalty)[0])
        for penalty in (1e-5, 1e-10)
    ]
    assert (np.diff(sizes) < 0.1) == overlap(X, y)
    if overlap(X, y):
        w, b = logistic_regression(X, y)
        assert abs(logistic_gradient(X, y, w, b)).max() < 1e-8
        assert perceptron.separate(X, 2.0 * y - 1) is None


@pytest.mark.parametrize(
    ("x", "y", "want"),
    [
        ([0, 1], [0, 1], False),
        ([0, 1, 1, 2], [0, 0, 1, 1], False),  # they touch
        ([0, 1, 1, 2], [0, 1, 0, 1], False),
        ([0, 2, 1, 3], [0, 0, 1, 1], True),
        ([0, 0], [0, 1], True),  # the same point: its odds are even
        ([0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 2, 2], False),  # class 2 touches
        ([0, 0, 1, 1, 1, 0], [0, 1, 0, 1, 2, 2], True),
    ],
)
def test_overlap_by_hand(x, y, want):
    assert overlap(np.array(x, dtype=float)[:, None], np.array(y)) == want


def test_even_odds_by_hand():
    X, y = (np.array([[0.0], [0.0], [1.0], [1.0], [1.0]]), np.array([0, 1, 0, 1, 1]))
    w, b = logistic_regression(X, y)
    assert_allclose([*w, b], [np.log(2), 0], atol=1e-12)  # odds 1 and 2


X, Y = np.arange(4.0)[:, None], np.array([0, 1, 0, 1])
TOUCHING = np.array([[0, 0], [1, 1], [1, 1], [2, 2.3], [0, 2], [2, 0], [2, 1], [1, 2]])
REFUSALS = [
    (
        lambda: logistic_regression(X, np.array([0, 0, 1, 1])),
        r"logistic_regression: classes must overlap, .*kept apart. Give a pen.*separate",
    ),
    (lambda: softmax_regression(X, np.array([0, 1, 1, 2])), r"softmax_.* must overlap"),
    (
        lambda: logistic_regression(X, np.array([0, 1, 2, 1])),
        r"y must .*; got 3 classes",
    ),
    (lambda: logistic_regression(X, 2 * Y - 1), r"0, 1, ….*got \[-1  1\].*// 2"),
    (lambda: softmax_regression(X, 2 * Y), r"without gaps.*got \[0 2\]"),
    (lambda: overlap(X, 0 * Y), r"overlap: y must .*two classes; got \[0\]"),
    (
        lambda: overlap(X[:3], Y),
        r"y must have a target for each of the 3 rows .* shape \(4,\)",
    ),
    (lambda: logistic_regression(X * 1e-200, Y), r"X must .*1e-100.*other units"),
    (lambda: overlap(X * 1e200, Y), r"overlap: X must .*spread"),
    (
        lambda: logistic_regression(X, Y, 1e101),
        r"penalty must lie in \[0, 1e\+100\); got 1e\+101",
    ),
    (
        lambda: logistic_regression(TOUCHING, np.arange(8) // 2 % 2, 1e-18),
        r"penalty must outweigh rounding; got one lost in it",
    ),
    (
        lambda: logistic_regression(X, np.array([0, 0, 1, 1]), 1e-100),
        r"settle in 100 steps. Give a larger penalty",
    ),
    (lambda: logistic_regression(X, Y * 1.0), r"y must be whole .*float64"),
    (lambda: softmax_regression(X, Y > 0, 1.0), r"whole .*bool.*astype"),
    (
        lambda: overlap([[0.0], [1.0]], [0, 1]),
        r"X and y must be arrays; got .*list.*list",
    ),
    (
        lambda: logistic_gradient(X, Y[:, None], np.ones(1), 0.0),
        r"y must have the shape \(4,\); got shape \(4, 1\)",
    ),
    (lambda: logistic_regression(X[:, 0], Y), r"X must have points as rows"),
    (lambda: logistic_regression(X * np.nan, Y), r"X must be finite"),
    (lambda: softmax_regression(X, Y, -1.0), r"penalty must lie in \[0, .*; got -1"),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
