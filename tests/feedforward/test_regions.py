from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from strategies import seeds

from dlcore.feedforward import regions
from dlcore.feedforward.activations import relu, tanh
from dlcore.feedforward.network import Network, Residual, layered
from dlcore.feedforward.regions import (
    cells,
    count_regions,
    folding_bound,
    folding_network,
    patterns,
    zaslavsky,
)

SIZES = st.lists(st.integers(1, 5), min_size=0, max_size=3)
BOX = (-2.0, 3.0, -1.0, 2.0)


def network(sizes, rng, whole=False):
    def draw(*shape):
        return rng.integers(-2, 3, shape) + 0.0 if whole else rng.normal(size=shape)

    return layered([(draw(m, n), draw(m)) for n, m in pairwise(sizes)], relu)


def by_programs(W, b):
    """Count the regions by a linear program for each list of signs."""
    count = 0
    for signs in product([-1.0, 1.0], repeat=len(W)):
        s = np.array(signs)[:, None]
        # largest gap t <= 1 with  s (W x + b) >= t
        A = np.hstack([-s * W, np.ones((len(W), 1))])
        bounds = [(None, None)] * W.shape[1] + [(None, 1)]
        c = np.append(np.zeros(W.shape[1]), -1)
        found = linprog(c, A, s[:, 0] * b, bounds=bounds)
        count += -found.fun > 1e-7
    return count


def area(corners):
    x, y = corners.T
    return (x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


@given(st.integers(1, 4), st.integers(1, 3), seeds)
def test_regions_are_the_signs_that_a_linear_program_finds(m, n, rng):
    W, b = rng.integers(-1, 2, (m, n)) + 0.0, rng.integers(-1, 2, m) + 0.0
    W[~W.any(axis=1), 0] = 1
    assert count_regions(W, b) == by_programs(W, b)


@given(st.integers(1, 8), st.integers(1, 4), seeds)
def test_random_hyperplanes_are_in_general_position(m, n, rng):
    W, b = rng.normal(size=(m, n)), rng.normal(size=m)
    assert count_regions(W, b) == zaslavsky(m, n)


@given(st.integers(1, 7), st.integers(1, 3), seeds)
def test_the_count_does_not_depend_on_order_scale_or_repetition(m, n, rng):
    W, b = rng.integers(-2, 3, (m, n)) + 0.0, rng.integers(-2, 3, m) + 0.0
    want = count_regions(W, b)
    order = rng.permutation(np.append(np.arange(m), rng.integers(m)))
    scale = rng.choice([-4.0, 0.5, 3.0], m + 1)
    assert count_regions(scale[:, None] * W[order], scale * b[order]) == want


def test_regions_by_hand():
    assert [zaslavsky(m, 2) for m in range(7)] == [1, 2, 4, 7, 11, 16, 22]
    assert [zaslavsky(m, 3) for m in range(7)] == [1, 2, 4, 8, 15, 26, 42]
    assert zaslavsky(10, 2) == 56
    assert zaslavsky(5, 0) == 1
    ones, steps = np.ones((6, 2)), np.arange(6.0)
    assert count_regions(ones, steps) == 7  # parallels
    assert count_regions(ones, 0 * steps) == 2  # all equal
    assert count_regions(0 * ones, steps) == 1  # no hyperplanes
    fan = np.column_stack([steps, np.ones(6)])
    assert count_regions(fan, 0 * steps) == 12
    cube = np.vstack([np.eye(3), np.eye(3)])
    assert count_regions(cube, np.repeat([0.0, 1.0], 3)) == 27


@pytest.mark.usefixtures("unchecked")
def test_numbers_of_any_type_are_counted():
    W, b = [[1, 0], [0, 1], [1, 1]], [0, 0, 1]
    for kind in (int, bool, np.float32, np.longdouble):
        assert count_regions(np.array(W, kind), np.array(b, kind)) == 7
    assert count_regions(W, b) == 7
    net = layered([(np.array(W), b), ([[1, 1, 1]], [0])], relu)
    assert patterns(net, [[0, 1]]).tolist() == [[False, True, True]]
    assert len(cells(net, [-2, 2, -2, 2])) == 7


def test_nothing_is_rounded():
    W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert count_regions(W, np.zeros(3)) == 6
    assert count_regions(W, np.array([0, 0, 1e-300])) == 7


@given(SIZES, st.booleans(), seeds)
def test_cells_tile_the_box_and_are_flat(hidden, whole, rng):
    net = network([2, *hidden, 2], rng, whole)
    found = cells(net, BOX)
    areas = [area(cell.corners) for cell in found]
    assert min(areas) > 0
    assert sum(areas) == pytest.approx(15)
    assert len({cell.pattern.tobytes() for cell in found}) == len(found)
    for cell in found:
        share = rng.dirichlet(np.full(len(cell.corners), 3.0), size=8)
        inside = share @ cell.corners
        flat = inside @ cell.slope.T + cell.offset
        assert_allclose(net(inside), flat, atol=1e-9)
        if area(cell.corners) > 1e-4:
            assert (patterns(net, inside) == cell.pattern).all()


@given(SIZES, seeds)
def test_no_point_has_a_pattern_without_a_cell(hidden, rng):
    net = network([2, *hidden, 1], rng)
    known = {cell.pattern.tobytes() for cell in cells(net, BOX)}
    X = rng.uniform([-2, -1], [3, 2], size=(500, 2))
    assert {row.tobytes() for row in patterns(net, X)} <= known


@given(st.integers(1, 8), seeds)
def test_a_large_box_meets_all_regions_of_one_layer(m, rng):
    net = network([2, m, 1], rng, whole=True)
    found = cells(net, (-1e3, 1e3, -1e3, 1e3))
    assert len(found) == count_regions(net.layers[0].W, net.layers[0].b)


@given(SIZES, st.integers(-8, 8), seeds)
def test_the_cells_do_not_depend_on_the_scale_of_a_layer(hidden, power, rng):
    net = network([2, *hidden, 1], rng, whole=True)
    want = cells(net, BOX)
    scale = 10.0**power
    if hidden:
        W, b, V, *_ = net.parameters()
        W *= scale
        b *= scale
        V /= scale
    found = cells(net, BOX)
    for cell, other in zip(want, found, strict=True):
        assert_allclose(cell.corners, other.corners, atol=1e-9)
        assert_array_equal(cell.pattern, other.pattern)


@given(SIZES, st.sampled_from([1e-6, 1e6]), seeds)
def test_the_cells_do_not_depend_on_the_scale_of_the_plane(hidden, scale, rng):
    net = network([2, *hidden, 1], rng, whole=True)
    want = cells(net, BOX)
    net.layers[0].W /= scale
    found = cells(net, tuple(scale * side for side in BOX))
    assert [c.pattern.tolist() for c in found] == [c.pattern.tolist() for c in want]


def test_cells_of_small_weights_and_far_boxes():
    end = np.ones((1, 1)), np.zeros(1)
    small = [(np.array([[1e-4, 0.0]]), np.zeros(1)), (1e4 * end[0], end[1])]
    assert len(cells(layered(small, relu), (-1, 1, -1, 1))) == 2  # max(0, x1)
    far = [(np.array([[1.0, 0.0]]), np.array([-1e6 - 0.5])), end]
    assert len(cells(layered(far, relu), (1e6, 1e6 + 1, 0, 1))) == 2
    constant = [
        (np.zeros((2, 2)), np.array([1e-11, 0.0])),
        (np.ones((1, 2)), np.zeros(1)),
    ]
    (cell,) = cells(layered(constant, relu), BOX)
    assert cell.pattern.tolist() == [True, False]
    assert cell.offset.tolist() == [1e-11]


def test_cells_by_hand():
    first = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.zeros(2)
    rest = [(np.ones((1, 2)), -np.ones(1)), (np.ones((1, 1)), np.zeros(1))]
    fold = layered([first, *rest], relu)  # max(0, |x| - 1)
    found = cells(fold, (-2, 2, 0, 1))
    spans = sorted((c.corners[:, 0].min(), c.corners[:, 0].max()) for c in found)
    assert spans == [(-2, -1), (-1, 0), (0, 1), (1, 2)]
    slopes = {c.corners[:, 0].min(): c.slope[0, 0] for c in found}
    assert slopes == {-2: -1, -1: 0, 0: 0, 1: 1}
    at0 = patterns(fold, np.array([[0.0, 5.0], [2.0, 5.0]]))
    assert at0.tolist() == [[False, False, False], [True, False, True]]
    whole = cells(layered([(np.eye(2), np.ones(2))], relu), (0, 1, 0, 1))
    assert len(whole) == 1
    assert whole[0].pattern.shape == (0,)


@pytest.mark.parametrize(
    ("m", "n", "L"), [(2, 2, 1), (3, 2, 3), (4, 2, 3), (5, 2, 2), (6, 2, 2), (7, 2, 2)]
)
def test_the_folding_network_has_its_pieces_all_different(m, n, L):
    net = folding_network(m, n, L, default_rng(m + L))
    shapes = [layer.W.shape for layer in net.layers]
    assert shapes == [(m, n), *[(m, m)] * (L - 1), (1, m)]
    found = cells(net, (0, 1, 0, 1))
    assert len(found) == folding_bound(m, n, L)
    maps = np.array([[*cell.slope[0], *cell.offset] for cell in found])
    apart = np.abs(maps[:, None] - maps).max(axis=2) + np.eye(len(maps))
    assert apart.min() > 1e-7
    if m > n:
        assert all(cell.pattern[-m:].any() for cell in found)


def test_folds_in_three_dimensions_reach_the_bound():
    W, b, *_ = folding_network(6, 3, 1, default_rng(0)).parameters()
    net = folding_network(6, 3, 2, default_rng(0))  # the same cuts, folded
    near = np.array([*product([-1e-6, 1e-6], repeat=3)])
    vertices = [
        np.linalg.solve(W[i], near.T - b[i, None]).T
        for i in map(list, combinations(range(6), 3))
    ]
    P = np.vstack(vertices)
    assert P.min() > 0
    assert P.max() < 1
    assert len(np.unique(P @ W.T + b > 0, axis=0)) == zaslavsky(6, 3)
    unfolded = [
        np.where(side, 1 - P / 2, P / 2) for side in product([False, True], repeat=3)
    ]
    found = np.unique(patterns(net, np.vstack(unfolded)), axis=0)
    assert len(found) == folding_bound(6, 3, 2) == 8 * 42


def test_folding_bounds_by_hand():
    assert folding_bound(10, 2, 3) == 5**4 * 56
    assert folding_bound(2, 1, 5) == 2**4 * 3
    assert folding_bound(5, 2, 1) == zaslavsky(5, 2)
    assert folding_bound(3, 3, 9) == 8


ONE = layered([(np.ones((2, 2)), np.ones(2))], relu)
SHORTCUT = Residual(np.ones((2, 2)), np.ones(2), relu)
REFUSALS = [
    (lambda: zaslavsky(-1, 2), r"zaslavsky: m must be a whole .*; got -1"),
    (lambda: zaslavsky(2, 1.5), r"zaslavsky: n must be a whole .*; got 1.5"),
    (lambda: folding_bound(1, 2, 1), r"m must be a whole number from 2 on"),
    (lambda: folding_network(2, 2, 0, default_rng(0)), r"L must .* from 1 on"),
    (
        lambda: count_regions(np.ones(3), np.ones(3)),
        r"W must be a matrix, a row per unit; got shape \(3,\)",
    ),
    (
        lambda: count_regions(np.ones((3, 2)), np.ones(2)),
        r"b must have one bias for each of the 3 rows of W; got shape \(2,\)",
    ),
    (
        lambda: count_regions(np.full((1, 2), np.nan), np.ones(1)),
        r"W and b must be finite",
    ),
    (
        lambda: cells(Network([*ONE.layers, *ONE.layers]), BOX),
        r"cells: network must have dense layers of ReLU .*; got .*'identity'",
    ),
    (
        lambda: patterns(Network([SHORTCUT, *ONE.layers]), np.ones((1, 2))),
        r"patterns: network must have dense layers .*; got \[\('Residual', 'ReLU'\)",
    ),
    (
        lambda: cells(layered([(np.eye(2), np.ones(2))] * 2, tanh), BOX),
        r"a linear last one; got \[\('Dense', 'tanh'\), .* with layered\(pairs, relu\)",
    ),
    (
        lambda: cells(layered([(np.ones((1, 3)), np.ones(1))], relu), BOX),
        r"cells: network must take two inputs; got 3",
    ),
    (lambda: cells(ONE, (1, 0, 0, 1)), r"box must be left < right"),
    (lambda: cells(ONE, (0, np.inf, 0, 1)), r"box must be finite"),
    (lambda: cells(ONE, (0, 1, 0)), r"cells: box must be four numbers; got"),
    (lambda: cells(ONE, None), r"cells: box must be four numbers; got None"),
    (
        lambda: patterns(ONE, np.ones((1, 3))),
        r"X must have 2 columns; got shape \(1, 3\)",
    ),
    (lambda: patterns(ONE, np.full((1, 2), np.nan)), r"X must be finite"),
    (
        lambda: folding_network(60, 20, 1, default_rng(0)),
        r"at most 100,000 subsets of n hyperplanes; got 60 and 20",
    ),
    (lambda: patterns(ONE, np.ones(2)), r"patterns: X must have points as rows"),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_networks_are_left_as_they_are():
    net = network([2, 3, 1], default_rng(0))
    before = [p.copy() for p in net.parameters()]
    cells(net, BOX)
    for p, q in zip(net.parameters(), before, strict=True):
        assert_array_equal(p, q)


def test_refuses_networks_with_too_many_cells(monkeypatch):
    net = folding_network(4, 2, 2, default_rng(0))  # 44 cells
    monkeypatch.setattr(regions, "MAX_CELLS", 44)
    assert len(cells(net, (0, 1, 0, 1))) == 44
    monkeypatch.setattr(regions, "MAX_CELLS", 43)
    with pytest.raises(ValueError, match=r"at most 43 cells; got more. Take a"):
        cells(net, (0, 1, 0, 1))
