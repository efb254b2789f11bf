"""The geometry of live figures, in Chromium, against dlcore's perceptron."""

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

from dlcore import data
from dlcore.connectionism import perceptron
from dlcore.figures.live import as_script


@pytest.fixture(scope="module")
def call(blank):
    """Call a function of the module in a page."""
    blank.add_script_tag(content=as_script("separation"))

    def run(code, X, y):
        rows = np.column_stack([X, y]).tolist()
        points = [dict(zip(("x", "y", "label"), row, strict=True)) for row in rows]
        code = f"(points) => {{ with (separation) return {code}; }}"
        return blank.evaluate(code, points)

    return run


def separable(seed):
    rng = np.random.default_rng(seed)
    s, gamma = int(rng.integers(2, 40)), rng.uniform(0.02, 0.5)
    X, y, _ = data.separable(s, 2, gamma, rng, spread=rng.uniform())
    return X + rng.normal(size=2), y


def any_labels(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(6, 2)).astype(float)  # whole numbers: ties happen
    return X, rng.choice([-1.0, 1.0], size=6)


@pytest.mark.parametrize("seed", range(12))
def test_the_perceptron_takes_the_steps_of_dlcore(call, seed):
    X, y = separable(seed)
    history = perceptron.fit(X, y, max_updates=300)
    code = f"""(() => {{
      const unit = new Perceptron(points), path = [[...unit.w, unit.b]], at = [];
      while (path.length <= {history.updates} && unit.step()) {{
        path.push([...unit.w, unit.b]);
        at.push(unit.mistake);
      }}
      return {{ path, at, more: unit.step() }};
    }})()"""
    found = call(code, X, y)
    path = np.column_stack([history.w, history.b])
    np.testing.assert_allclose(found["path"], path, rtol=1e-12, atol=1e-12)
    assert found["at"] == history.mistakes.tolist()
    assert found["more"] != history.converged


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_is_that_of_the_largest_margin(call, seed):
    X, y = separable(seed)
    lifted = np.column_stack([X, np.ones(len(X))])
    w, _ = perceptron.max_margin(lifted, y, bias=False)
    found = call("separate(points)", X, y)
    assert found["bound"] == pytest.approx(
        perceptron.novikoff_bound(lifted, y, w), rel=1e-5
    )
    assert perceptron.margin(np.array(found["w"]), found["b"], X, y) > 0


@pytest.mark.parametrize("seed", range(40))
def test_a_line_or_a_point_in_both_hulls(call, seed):
    X, y = any_labels(seed)
    found, plane = call("separate(points)", X, y), perceptron.separate(X, y)
    assert ("w" in found) == (plane is not None)
    if plane is None:
        for label in (1, -1):  # the point is a mean of each class
            Z = np.column_stack([X - found["meet"], np.ones(6)])[y == label]
            weights, rest = nnls(Z.T, np.array([0.0, 0.0, 1.0]))
            assert rest < 1e-6, weights
    else:
        assert perceptron.margin(np.array(found["w"]), found["b"], X, y) > 0


@pytest.mark.parametrize("seed", range(12))
def test_the_largest_margin_is_that_of_dlcore(call, seed):
    X, y = separable(seed)
    if len(set(y)) < 2:
        assert call("maxMargin(points)", X, y) is None
        return
    found, (w, b) = call("maxMargin(points)", X, y), perceptron.max_margin(X, y)
    np.testing.assert_allclose([*found["w"], found["b"]], [*w, b], atol=1e-5)
    assert found["margin"] == pytest.approx(perceptron.margin(w, b, X, y), rel=1e-6)
    code = f"signedDistances(points, {(3 * w).tolist()}, {3 * b})"
    distances = call(code, X, y)
    np.testing.assert_allclose(distances, perceptron.signed_distance(w, b, X, y))


def test_xor_has_no_line_and_meets_in_the_middle(call):
    X, y = data.xor()
    assert call("separate(points)", X, y)["meet"] == pytest.approx([0.5, 0.5])
    assert call("maxMargin(points)", X, y) is None


def test_two_points_at_one_place_have_no_line(call):
    X, y = np.array([[0.5, 0.2], [0.5, 0.2], [1.0, 1.0]]), np.array([1.0, -1.0, 1.0])
    assert call("maxMargin(points)", X, y) is None
    assert call("separate(points)", X, y)["meet"] == pytest.approx([0.5, 0.2])


@pytest.mark.parametrize("seed", range(12))
def test_the_hull_has_the_corners_that_scipy_finds(call, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, size=(12, 2)).astype(float)  # whole numbers: ties happen
    corners = np.array(call("hull(points)", X, np.ones(12)))
    around = ConvexHull(X).vertices
    start = [*map(tuple, X[around])].index(tuple(corners[0]))
    assert np.array_equal(corners, np.roll(X[around], -start, axis=0))


def test_the_hull_of_few_points_is_made_of_them(call):
    for X in ([[1.0, 2.0]], [[0.0, 0.0], [1.0, 1.0]]):
        assert call("hull(points)", X, np.ones(len(X))) == X
    line = [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    assert call("hull(points)", line, np.ones(3)) == [line[0], line[2]]
    assert call("hull([])", [[0.0, 0.0]], np.ones(1)) == []
