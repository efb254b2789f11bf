from itertools import chain, count, islice, product, repeat
from math import comb, floor

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import Perceptron
from sklearn.svm import SVC

from dlcore import data
from dlcore.connectionism.perceptron import (
    averaged,
    certificate,
    errors,
    fit,
    hesse,
    margin,
    max_margin,
    novikoff_bound,
    pocket,
    predict,
    separate,
    signed_distance,
    version_arc,
)


def lattice(s, n, seed):
    """Draw points with whole coordinates, so that sums are exact and ties happen.

    A plane gives the labels; none, some or all of them are then drawn anew.
    """
    rng = default_rng(seed)
    X, w = rng.integers(-4, 5, (s, n)).astype(float), rng.integers(-4, 5, n)
    y = np.where(X @ w + rng.integers(-2, 3) > 0, 1.0, -1.0)
    redrawn = rng.random(s) < rng.choice([0.0, 0.1, 1.0])
    return X, np.where(redrawn, rng.choice([-1.0, 1.0], s), y)


def cloud(s, n, seed):
    return default_rng(seed).normal(size=(s, n)), lattice(s, n, seed)[1]


def apart(s, n, seed, margin, spread):
    return data.separable(s, n, margin, default_rng(seed), spread)


def weights(h):
    return np.column_stack([h.w, h.b])


SEED, FLAG = st.integers(0, 2**16), st.booleans()
MANY = (st.integers(1, 200), st.integers(1, 4), SEED)  # a pass takes several blocks
FEW = st.integers(1, 12), st.integers(1, 3), SEED
APART = (
    st.integers(2, 5),
    SEED,
    st.sampled_from([0.01, 0.05, 0.2, 0.6]),  # margin
    st.sampled_from([0.0, 0.2, 1.0]),  # spread
)


def plain_loop(X, y, bias, passes, looked):
    """Run the algorithm as its formula says it, one point after the other."""
    w, b, used, mistakes, seen = np.zeros(X.shape[1]), 0.0, [], [], []
    for i in islice(chain.from_iterable(passes), looked):
        used.append([*w, b])
        if y[i] * (w @ X[i] + b) <= 0:
            w, b = w + y[i] * X[i], b + y[i] * bias
            mistakes.append(i)
            seen.append(len(used))
    return np.array([*used, [*w, b]]), mistakes, seen


@given(problem=st.builds(lattice, *MANY), bias=FLAG, seed=SEED)
def test_fit_is_the_plain_loop(problem, bias, seed):
    X, y = problem
    rng, order = default_rng(seed), default_rng(seed).permutation(len(y))
    for options, passes in [
        ({}, repeat(range(len(y)))),
        ({"order": order}, repeat(order)),
        ({"rng": default_rng(seed)}, (rng.permutation(len(y)) for _ in count())),
    ]:
        h = fit(X, y, bias=bias, max_updates=300, **options)
        used, mistakes, seen = plain_loop(X, y, bias, passes, h.looked)
        assert (h.mistakes.tolist(), h.seen.tolist()) == (mistakes, seen)
        assert_array_equal(weights(h), used[[0, *seen]])
        assert_allclose(np.hstack(averaged(h)), used[:-1].mean(axis=0), atol=1e-12)


@given(st.builds(lattice, *MANY), FLAG, FLAG, st.sampled_from([1, 50, 1000]))
def test_fit_stops_for_one_of_three_reasons(problem, bias, shuffle, max_updates):
    X, y = problem
    rng = default_rng(0) if shuffle else None
    h = fit(X, y, bias=bias, rng=rng, max_updates=max_updates)
    ends = np.arange(0, h.looked + 1, len(y))
    t = np.searchsorted(h.seen, ends, side="right")  # updates before every pass
    starts, clean = weights(h)[t].tolist(), np.diff(t) == 0
    reasons = [h.converged, h.cycle is not None, h.updates == max_updates]
    assert reasons.count(True) == 1
    assert not clean[:-1].any()
    assert h.converged == clean[-1:].any()
    if h.converged:
        assert (y * (X @ h.w[-1] + h.b[-1]) > 0).all()
    elif shuffle:
        assert h.cycle is None
    else:
        assert all(start not in starts[:k] for k, start in enumerate(starts[:-1]))
        assert h.cycle is None or starts[-1] == starts[-1 - h.cycle]
    assert h.looked == (h.seen[-1] if h.updates == max_updates else ends[-1])


@given(problem=st.builds(cloud, *MANY), bias=FLAG)
def test_fit_equals_sklearn(problem, bias):
    X, y = problem
    h = fit(X, y, bias=bias, max_updates=1000)
    passes = h.looked // len(y)
    assume(passes > 0 and len(set(y)) == 2)
    options = {"fit_intercept": bias, "shuffle": False, "tol": None}
    theirs = Perceptron(max_iter=passes, **options).fit(X, y)
    t = np.searchsorted(h.seen, passes * len(y), side="right")
    assert_allclose(h.w[t], theirs.coef_[0], atol=1e-9)
    assert_allclose(h.b[t], theirs.intercept_[0], atol=1e-9)


@given(problem=st.builds(lattice, *FEW), bias=FLAG)
def test_fit_converges_on_separable_data_and_cycles_on_all_other(problem, bias):
    h = fit(*problem, bias=bias, max_updates=20_000)
    assert h.converged == (separate(*problem, bias) is not None)
    assert (h.cycle is not None) == (certificate(*problem, bias) is not None)


@given(problem=st.builds(apart, MANY[0], *APART))
def test_updates_never_exceed_novikoffs_bound(problem):
    X, y, w = problem
    h = fit(X, y, bias=False, max_updates=20_000)
    R, gamma = np.linalg.norm(X, axis=1).max(), (y * (X @ w)).min()
    assert novikoff_bound(X, y, 3 * w) == pytest.approx(R**2 / gamma**2)
    assert 1 <= h.updates <= floor(novikoff_bound(X, y, w) + 1e-9)
    t = np.arange(h.updates + 1)
    assert (h.w @ w >= t * gamma - 1e-9).all()
    assert (np.linalg.norm(h.w, axis=1) <= R * np.sqrt(t) + 1e-9).all()


@given(problem=st.builds(apart, MANY[0], *APART), b=st.floats(-3, 3))
def test_with_a_bias_the_bound_holds_for_augmented_points(problem, b):
    X, y, w = problem
    X = X - b * w
    R2, gamma2 = (X**2).sum(axis=1).max(), (y * (X @ w + b)).min() ** 2
    bound = novikoff_bound(X, y, w, b)
    assert bound == pytest.approx((R2 + 1) * (1 + b**2) / gamma2)
    assert fit(X, y, max_updates=20_000).updates <= floor(bound + 1e-9)


@given(problem=st.builds(lattice, *MANY), bias=FLAG)
def test_flipped_labels_flip_the_weights(problem, bias):
    X, y = problem
    h, flipped = (fit(X, t, bias=bias, max_updates=300) for t in (y, -y))
    assert_array_equal(weights(flipped), -weights(h))
    assert h.mistakes[0] == flipped.mistakes[0] == 0  # for sgn(0) is no label


@given(st.builds(lattice, *MANY), st.sampled_from([0.25, 2.0, 1024.0]))
def test_scaled_points_scale_the_weights(problem, c):
    X, y = problem
    h, scaled = (fit(f * X, y, bias=False, max_updates=300) for f in (1, c))
    assert_array_equal(scaled.w, c * h.w)


@given(st.builds(cloud, *MANY), SEED, st.floats(0.01, 100), st.floats(-5, 5))
def test_signed_distance_is_geometric(problem, seed, c, shift):
    X, y = problem
    w, b = default_rng(seed).normal(size=X.shape[1]), shift / 2
    (normal, d), distance = hesse(w, b), signed_distance(w, b, X, y)
    foot = X - (y * distance)[:, None] * normal  # on the boundary, straight below X
    assert np.linalg.norm(normal) == pytest.approx(1)
    assert_allclose(foot @ w, -b, atol=1e-9)
    assert_allclose(foot @ normal, d, atol=1e-9)
    assert_array_equal(distance > 0, predict(w, b, X) == y)
    assert margin(w, b, X, y) == min(distance)
    assert_allclose(np.hstack(hesse(c * w, c * b)), [*normal, d])
    moved = w, b - shift * w.sum()
    assert_allclose(signed_distance(*moved, X + shift, y), distance, atol=1e-9)
    assert_allclose(hesse(*moved)[1], d + shift * normal.sum(), atol=1e-9)


@given(problem=st.builds(lattice, *MANY), bias=FLAG)
def test_pocket_is_never_worse_than_any_iterate(problem, bias):
    X, y = problem
    h = fit(X, y, bias=bias, max_updates=50)
    planes = [*zip(h.w, h.b, strict=True), pocket(h, X, y)]
    points = list(zip(X, y, strict=True))
    *wrong, best = [sum(t * (w @ x + b) <= 0 for x, t in points) for w, b in planes]
    assert_allclose(errors(h, X, y) * len(y), wrong)
    assert best == min(wrong)


@given(problem=st.builds(lattice, *FEW), bias=FLAG)
def test_either_a_plane_or_a_certificate(problem, bias):
    X, y = problem
    Z = y[:, None] * np.column_stack([X, np.full(len(y), bias)])
    plane, lam = separate(X, y, bias), certificate(X, y, bias)
    assert (plane is None) != (lam is None)
    if plane is not None:
        assert (Z @ np.hstack(plane) > 0).all()
    else:
        assert lam.min() >= 0
        assert lam.sum() == pytest.approx(1)
        assert_allclose(lam @ Z, 0, atol=1e-9)


@pytest.mark.parametrize(("s", "n", "bias"), [(5, 2, True), (6, 3, False)])
def test_separable_labellings_number_as_cover_counted(s, n, bias):
    X = default_rng(s).normal(size=(s, n))
    labellings = map(np.array, product([-1.0, 1.0], repeat=s))
    found = sum(separate(X, y, bias) is not None for y in labellings)
    assert found == 2 * sum(comb(s - 1, k) for k in range(n + bias))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@given(problem=st.builds(cloud, *FEW))
def test_separability_agrees_with_a_support_vector_machine(problem):
    X, y = problem
    assume(len(set(y)) == 2)
    plane = separate(X, y)
    assume(plane is None or margin(*max_margin(X, y), X, y) > 0.01)  # for their sake
    svm = SVC(kernel="linear", C=1e10, max_iter=100_000).fit(X, y)
    assert (plane is not None) == (svm.score(X, y) == 1)


@given(problem=st.builds(apart, st.integers(2, 60), *APART[:3], st.just(0.5)))
def test_max_margin_equals_a_support_vector_machine(problem):
    X, y, w = problem
    assume(len(set(y)) == 2)
    X = X + 2 * w
    svm = SVC(kernel="linear", C=1e10, tol=1e-6).fit(X, y)
    w, b = max_margin(X, y)
    theirs, length = ((svm.coef_[0], svm.intercept_[0]), np.linalg.norm(svm.coef_))
    assert_allclose([*w, b], np.hstack(theirs) / length, atol=1e-3)
    assert margin(w, b, X, y) == pytest.approx(margin(*theirs, X, y), rel=1e-3)
    assert margin(w, b, X, y) >= margin(*theirs, X, y) - 1e-9


@given(problem=st.builds(apart, FEW[0], *APART))
def test_max_margin_is_the_distance_of_zero_from_the_hull(problem):
    X, y, known = problem
    Z = y[:, None] * X
    hull = minimize(
        lambda lam: ((lam @ Z) ** 2).sum(),
        np.full(len(y), 1 / len(y)),
        jac=lambda lam: 2 * Z @ (lam @ Z),
        bounds=[(0, 1)] * len(y),
        constraints={"type": "eq", "fun": lambda lam: lam.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    w, b = max_margin(X, y, bias=False)
    assert (np.linalg.norm(w), b) == (pytest.approx(1), 0)
    assert margin(w, b, X, y) == pytest.approx(np.sqrt(hull.fun), abs=1e-5)
    assert margin(w, b, X, y) >= margin(known, 0.0, X, y) - 1e-12


@given(
    st.builds(apart, st.integers(1, 30), st.just(2), *APART[1:])
    | st.builds(cloud, st.integers(1, 5), st.just(2), SEED)
)
def test_version_arc_is_every_angle_that_separates(problem):
    X, y, *_ = problem
    angle = np.linspace(0, 2 * np.pi, 3000)
    right = (y[:, None] * (X @ [np.cos(angle), np.sin(angle)]) > 0).all(axis=0)
    arc = version_arc(X, y)
    assert (arc is None) == (separate(X, y, bias=False) is None)
    if arc is None:
        assert not right.any()
        return
    low, high = arc
    assert 0 < high - low < np.pi + 1e-9
    assert_array_equal((angle - low) % (2 * np.pi) < high - low, right)
    w, _ = max_margin(X, y, bias=False)
    assert (np.arctan2(w[1], w[0]) - low) % (2 * np.pi) < high - low
    arcs = np.array([version_arc(X[:k], y[:k]) for k in range(1, len(y) + 1)])
    assert (np.diff(arcs, axis=0) * [1, -1] >= 0).all()  # more points shrink it


def test_one_point_needs_one_update_and_the_bound_is_one():
    X, y = np.array([[3.0, 4.0]]), np.ones(1)
    assert np.hstack(hesse(X[0], -10.0)).tolist() == [0.6, 0.8, 2]
    assert signed_distance(X[0], -10.0, X, -y).tolist() == [-3]
    assert fit(X, y, bias=False).updates == novikoff_bound(X, y, X[0]) == 1


@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_novikoffs_bound_is_tight_on_orthonormal_points(n):
    X, y = np.eye(n), np.ones(n)
    h = fit(X, y, bias=False)
    assert (h.updates, h.looked, h.converged) == (n, 2 * n, True)
    assert novikoff_bound(X, y, h.w[-1]) == pytest.approx(n)


def test_a_learned_bias_breaks_the_bound_without_it():
    X, y, w = (np.array([[10.0], [12.0]]), np.array([1.0, -1.0]), np.array([-1.0]))
    assert (X**2).max() / margin(w, 11.0, X, y) ** 2 == 144
    assert fit(X, y).updates == 233
    assert novikoff_bound(X, y, w, 11.0) == pytest.approx(145 * 122)
    assert np.hstack(max_margin(X, y)).tolist() == [-1, 11]


def test_xor_by_hand():
    X, y = data.xor()
    h = fit(X, y)
    assert h.w.tolist() == [[0, 0], [0, 0], [0, 1], [1, 1], [0, 0]]
    assert h.b.tolist() == [0, -1, 0, 1, 0]
    assert (h.converged, h.cycle, h.looked) == (False, 1, 4)
    assert (errors(h, X, y) * 4).tolist() == [4, 2, 3, 2, 4]
    assert np.hstack(pocket(h, X, y)).tolist() == [0, 0, -1]
    assert np.hstack(averaged(h)).tolist() == [0.25, 0.5, 0]
    assert predict(h.w[2], 0.0, X).tolist() == [0, 1, 0, 1]
    assert predict(h.w[2], 0.0, X, at0=-1.0).tolist() == [-1, 1, -1, 1]
    assert_allclose(certificate(X, y), 1 / 4)


def test_the_best_plane_on_xor_makes_one_error_where_the_perceptron_makes_four():
    X, y = data.xor()
    labellings = map(np.array, product([-1.0, 1.0], repeat=4))
    wrong = [np.sum(t != y) for t in labellings if separate(X, t) is not None]
    assert (len(wrong), min(wrong)) == (14, 1)
    assert errors(fit(X, y), X, y)[-1] * 4 == 4


I, ONE = np.eye(2), np.ones(2)
REFUSALS = [
    (lambda: fit(I, I[0]), r"y must .* −1 and \+1; got \[0. 1.\]. .* 2 \* y - 1"),
    (
        lambda: fit(I, ONE[:1]),
        r"y must have a target for each of the 2 rows .* shape \(1,\)",
    ),
    (lambda: fit(I * np.nan, ONE), r"X must be finite; got NaN"),
    (lambda: fit(I[:0], ONE[:0]), r"X must have points as rows; got shape \(0, 2\)"),
    (lambda: fit(I, ONE, order=[1, 1]), r"order must .* points once; got \[1 1\]"),
    (lambda: hesse(0 * ONE, 1.0), r"hesse: w must not be zero; got \[0. 0.\]"),
    (lambda: margin(0 * ONE, 1.0, I, ONE), r"signed_distance: w must not be zero"),
    (lambda: novikoff_bound(I, ONE, -ONE), r"w must separate .* margin -0.707"),
    (lambda: novikoff_bound(I, ONE, I[0]), r"w must separate .* margin 0"),
    (lambda: max_margin(I, ONE), r"both labels; got 2 positive and 0 negative"),
    (
        lambda: max_margin(*data.xor()),
        r"data must be linearly separable.* See certificate",
    ),
    (lambda: max_margin(*data.xor(), bias=False), r"must be linearly separable"),
    (
        lambda: max_margin(np.zeros((2002, 20)), np.repeat([1.0, -1.0], 1001)),
        r"max_margin: .*pairs .*must number at most",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


SCALE = st.sampled_from([1e-10, 1e-5, 1.0, 1e5, 1e10])


@given(st.integers(1, 40), st.integers(0, 999), SCALE, st.booleans(), st.booleans())
def test_separability_does_not_depend_on_units(s, seed, c, bias, noise):
    X, y, _ = apart(s, 3, seed, 0.05, 0.0)
    y = default_rng(seed).choice([-1.0, 1.0], s) if noise else y
    plane, lam = separate(c * X, y, bias), certificate(c * X, y, bias)
    assert (plane is None) == (separate(X, y, bias) is None) == (lam is not None)
    if plane is not None and (not bias or len(set(y)) == 2):
        want = margin(*max_margin(X, y, bias), X, y)
        assert margin(*max_margin(c * X, y, bias), c * X, y) == pytest.approx(c * want)


@given(st.integers(2, 40), st.integers(0, 999), st.sampled_from([1.0, 1e3, 1e6]))
def test_separability_does_not_depend_on_the_origin(s, seed, shift):
    X, y, _ = apart(s, 3, seed, 0.05, 0.0)
    plane = separate(X + shift, y)
    assert (y * ((X + shift) @ plane[0] + plane[1]) > 0).all()
    assert certificate(X + shift, y) is None


@pytest.mark.parametrize("gamma", [1e-4, 1e-6, 1e-8])
def test_tiny_margins_are_found(gamma):
    X = np.array([[1, gamma], [-1, gamma]])
    assert separate(X, np.ones(2), bias=False) is not None
    assert certificate(X, np.ones(2), bias=False) is None


@given(st.integers(0, 9999))
def test_opposite_points_leave_no_arc(seed):
    u, z = default_rng(seed).integers(-5, 6, (2, 2)) + 0.5
    assert version_arc(np.array([u, z, -2 * z]), np.ones(3)) is None
    assert version_arc(np.array([u, 0 * z]), np.ones(2)) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: fit(X, y, max_updates=0), "max_updates must be at least 1"),
        (
            lambda X, y: fit(X, y, order=[0, 1, 2, 3], rng=default_rng(0)),
            "order must not come with rng",
        ),
        (lambda X, y: errors(fit(X, y), X, (y + 1) / 2), "y must be coded"),
        (lambda X, y: signed_distance(X[1], 0.0, X, (y + 1) / 2), "y must be coded"),
        (lambda X, y: separate(X * np.nan, y), "X must be finite"),
    ],
)
def test_refuses_what_would_give_a_wrong_result(call, message):
    with pytest.raises(ValueError, match=message):
        call(*data.xor())


@pytest.mark.usefixtures("unchecked")
def test_small_integers_do_not_wrap_around():
    X = np.array([[200, 10], [10, 200]], dtype=np.uint8)
    y = np.array([1, -1], dtype=np.int8)
    assert_allclose(max_margin(X, y)[0], [0.5**0.5, -(0.5**0.5)])
    assert novikoff_bound(X, y, np.array([1.0, -1.0])) == pytest.approx(40100 / 18050)


def test_data_on_which_the_simplex_method_gives_up_get_a_certificate():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 100)), rng.choice([-1.0, 1.0], size=200)
    assert separate(X, y, bias=False) is None
    proof = certificate(X, y, bias=False)
    assert proof.min() >= -1e-12
    assert np.isclose(proof.sum(), 1)
    assert np.abs(proof @ (y[:, None] * X)).max() < 1e-7
