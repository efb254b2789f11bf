import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import norm
from strategies import seeds

from dlcore.optimization.convexity import (
    Segment,
    chord_below,
    classify,
    goe,
    segment_outside,
)


def polytope(rng):
    """Draw the half-spaces of a bounded set round the origin."""
    A = np.vstack([rng.normal(size=(5, 2)), np.eye(2), -np.eye(2)])
    return lambda X: (A @ X.T <= 1).all(axis=0)


@given(rng=seeds)
def test_no_segment_leaves_an_intersection_of_half_spaces(rng):
    X = rng.uniform(-1.2, 1.2, size=(200, 2))
    assert segment_outside(polytope(rng), X, 500, rng) is None


@given(rng=seeds, inner=st.floats(0.3, 0.9))
def test_a_segment_that_leaves_an_annulus_is_found_and_is_one(rng, inner):
    def annulus(X):
        length = np.linalg.norm(X, axis=1)
        return (inner <= length) & (length <= 1)

    found = segment_outside(annulus, rng.uniform(-1, 1, (500, 2)), 2000, rng)
    assert found is not None
    ends = annulus(np.array([found.u, found.v]))
    assert ends.all()
    assert not annulus(found.point[None])[0]
    assert 0 <= found.weight <= 1


@given(rng=seeds)
def test_points_and_lines_are_not_refuted(rng):
    for point in rng.normal(size=(20, 1, 2)):
        found = segment_outside(lambda X, p=point: (p == X).all(1), point, 50, rng)
        assert found is None
    X = np.outer(rng.normal(size=50), [1, 3])
    line = segment_outside(lambda X: np.isclose(X[:, 1], 3 * X[:, 0]), X, 500, rng)
    assert line is None


@pytest.mark.usefixtures("unchecked")
def test_lists_are_points_too():
    X, rng = [[0, 2], [2, 0]], default_rng(0)
    assert chord_below(lambda X: X[:, 0] * X[:, 1], X, 99, rng) is not None
    assert segment_outside(lambda X: X[:, 0] >= 0, X, 99, rng) is None


CONVEX = {
    "square": lambda X: (X**2).sum(axis=1),
    "length": lambda X: np.linalg.norm(X, axis=1),
    "logsumexp": lambda X: logsumexp(X, axis=1),
    "affine": lambda X: 1e6 + X @ np.arange(3.0),
    "max": lambda X: X.max(axis=1),
}
OTHERS = {
    "product": lambda X: X[:, 0] * X[:, 1],
    "wave": lambda X: np.cos(X[:, 0]),
    "root": lambda X: np.sqrt(np.abs(X).sum(axis=1)),
    "min": lambda X: X.min(axis=1),
    "minus": lambda X: -np.linalg.norm(X, axis=1),
}


@pytest.mark.parametrize("f", CONVEX.values(), ids=CONVEX)
@given(rng=seeds)
def test_no_chord_of_a_convex_function_passes_below(f, rng):
    assert chord_below(f, rng.normal(size=(50, 3)), 1000, rng) is None


@pytest.mark.parametrize("f", OTHERS.values(), ids=OTHERS)
@given(rng=seeds)
def test_a_chord_below_the_graph_is_found_and_is_one(f, rng):
    found = chord_below(f, rng.normal(size=(50, 3)), 1000, rng)
    assert found is not None
    left, right, graph = f(np.array([found.u, found.v, found.point]))
    assert (1 - found.weight) * left + found.weight * right < graph


def test_searches_by_hand():
    X, rng = np.array([[0.0], [2.0]]), default_rng(0)
    found = segment_outside(lambda X: X[:, 0] % 2 == 0, X, 100, rng)
    assert found is not None
    assert {found.u[0], found.v[0]} == {0.0, 2.0}
    assert segment_outside(lambda X: X[:, 0] == 0, X, 100, rng) is None
    assert chord_below(lambda X: -(X[:, 0] ** 2), X[:1], 100, rng) is None
    middle = Segment(np.array([0.0, 4.0]), np.array([2.0, 0.0]), 0.25).point
    assert_array_equal(middle, [0.5, 3.0])


@given(
    st.lists(st.sampled_from([-2.0, -1.0, 0.0, 3.0]), min_size=1, max_size=5),
    st.sampled_from([1e-200, 1.0, 1e200]),
    seeds,
)
def test_the_signs_of_the_curvatures_decide_in_every_basis(c, scale, rng):
    up, down, flat = max(c) > 0, min(c) < 0, 0 in c
    want = (
        "saddle"
        if up and down
        else "undecided"
        if flat
        else "minimum"
        if up
        else "maximum"
    )
    Q, _ = np.linalg.qr(rng.normal(size=(len(c), len(c))))
    H = scale * (Q @ np.diag(c) @ Q.T)
    assert classify(H) == want


def test_a_positive_diagonal_decides_nothing():
    assert classify(np.array([[2.0, -4.0], [-4.0, 2.0]])) == "saddle"
    assert classify(np.array([[4.0, -2.0], [-2.0, 4.0]])) == "minimum"
    assert classify(np.array([[1.0, -1.0], [-1.0, 1.0]])) == "undecided"
    assert classify(np.zeros((2, 2))) == "undecided"


def test_goe_has_its_moments_and_no_preferred_axes():
    A = goe(3, 100_000, default_rng(0))
    assert_array_equal(A, A.transpose(0, 2, 1))
    assert_allclose(A.mean(axis=0), 0, atol=0.03)
    assert_allclose(A.var(axis=0), 1 + np.eye(3), atol=0.04)
    u = np.array([1.0, 2.0, 2.0]) / 3
    assert_allclose(np.var(A @ u @ u), 2, atol=0.04)
    assert_allclose(goe(1, 4, default_rng(1)).shape, (4, 1, 1))
    one = goe(1, 100_000, default_rng(2))[:, 0, 0] / np.sqrt(2)
    assert_allclose(np.mean(one < 1), norm.cdf(1), atol=0.006)


ONE = np.ones((2, 2))
REFUSALS = [
    (
        lambda: segment_outside(lambda X: X[:, 0] > 5, ONE, 3, default_rng(0)),
        r"segment_outside: X must have points of the set; got none. Draw",
    ),
    (
        lambda: chord_below(lambda X: X**2, ONE, 3, default_rng(0)),
        r"chord_below: f must give one answer per row; got shape \(3, 2\)",
    ),
    (
        lambda: chord_below(lambda X: X[:, 0] / 0, ONE, 3, default_rng(0)),
        r"chord_below: f must be finite; got NaN or ∞",
    ),
    (
        lambda: chord_below(CONVEX["max"], ONE, 0, default_rng(0)),
        r"trials must be a whole number from 1 on; got 0",
    ),
    (
        lambda: chord_below(CONVEX["max"], ONE[0], 3, default_rng(0)),
        r"X must have points as rows; got shape \(2,\)",
    ),
    (
        lambda: segment_outside(CONVEX["max"], ONE * np.nan, 3, default_rng(0)),
        r"segment_outside: X must be finite",
    ),
    (
        lambda: segment_outside(CONVEX["max"], ONE, 3, default_rng(0)),
        r"contains must answer True or False; got float64. Compare",
    ),
    (
        lambda: classify(np.arange(4.0).reshape(2, 2)),
        "H must be symmetric; got a difference of 1 to its transpose",
    ),
    (lambda: classify(np.ones((2, 3))), r"a square matrix; got shape \(2, 3\)"),
    (
        lambda: classify(np.array([[1, 1j], [-1j, 1]])),
        "H must be real; got complex numbers",
    ),
    (lambda: classify(np.ones(3)), r"be a square matrix; got shape \(3,\)"),
    (lambda: classify(ONE * np.inf), "H must be finite"),
    (lambda: goe(0, 3, default_rng(0)), "n must be a whole number from 1"),
    (lambda: goe(2, 1.5, default_rng(0)), "count must be a whole number"),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
