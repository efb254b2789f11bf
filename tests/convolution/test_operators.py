import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from strategies import seeds

from dlcore.convolution.operators import (
    MODES,
    circulant,
    convolve,
    correlate,
    dft_matrix,
    equivariant_projection,
    fft_convolve,
    gaussian_kernel,
    integral_operator,
    matrix_of,
    midpoints,
    output_size,
    shift,
    toeplitz,
)

SIZES = st.integers(1, 9)


def whole(rng, *shape):
    return rng.integers(-9, 10, size=shape)


@given(SIZES, SIZES, seeds)
def test_convolutions_agree_with_numpy_and_scipy(n, m, rng):
    x, h = whole(rng, n), whole(rng, m)
    assert_array_equal(convolve(x, h), np.convolve(x, h))
    same = scipy.signal.convolve(x, h, "same", method="direct")
    assert_array_equal(convolve(x, h, "same"), same)
    if m <= n:
        assert_array_equal(convolve(x, h, "valid"), np.convolve(x, h, "valid"))
    wrapped = np.zeros(n)
    np.add.at(wrapped, np.arange(m) % n, h)
    around = np.fft.ifft(np.fft.fft(x) * np.fft.fft(wrapped)).real
    assert_allclose(convolve(x, h, "circular"), around, atol=1e-9)


@given(SIZES, SIZES, seeds)
def test_correlations_agree_with_numpy_and_torch(n, m, rng):
    x, h = whole(rng, n), whole(rng, m)
    full = scipy.signal.correlate(x, h, "full", method="direct")
    assert_array_equal(correlate(h, x, "full"), full)
    tensors = [torch.tensor(a, dtype=torch.float64)[None, None] for a in (x, h)]
    same = torch.nn.functional.pad(tensors[0], ((m - 1) // 2, m // 2))
    layer = torch.nn.functional.conv1d(same, tensors[1])[0, 0]
    assert_array_equal(correlate(h, x, "same"), layer.numpy())
    if m <= n:
        layer = torch.nn.functional.conv1d(*tensors)[0, 0]
        assert_array_equal(correlate(h, x, "valid"), layer.numpy())
        assert_array_equal(correlate(h, x), layer.numpy())


@given(SIZES, SIZES, seeds)
def test_flipped_kernel_turns_one_into_the_other(n, m, rng):
    x, h = whole(rng, n), whole(rng, m)
    modes = ["full"] + ["valid"] * (m <= n) + ["same"] * (m % 2)
    for mode in modes:
        assert_array_equal(correlate(h, x, mode), convolve(x, h[::-1].copy(), mode))


@given(SIZES, SIZES, seeds)
def test_sizes_are_those_of_the_outputs(n, m, rng):
    x, h = whole(rng, n), whole(rng, m)
    for mode in MODES:
        if mode != "valid" or m <= n:
            assert len(convolve(x, h, mode)) == output_size(n, m, mode)
            assert len(correlate(h, x, mode)) == output_size(n, m, mode)


@given(SIZES, SIZES, st.integers(-20, 20), seeds)
def test_circular_convolution_commutes_with_shifts(n, m, k, rng):
    x, h = whole(rng, n), whole(rng, m)
    assert_array_equal(shift(x, k), [x[(t - k) % n] for t in range(n)])
    for f in (convolve(x, h, "circular"), correlate(h, x, "circular")):
        assert len(f) == n
    assert_array_equal(
        convolve(shift(x, k), h, "circular"), shift(convolve(x, h, "circular"), k)
    )
    assert_array_equal(
        correlate(h, shift(x, k), "circular"), shift(correlate(h, x, "circular"), k)
    )


@given(SIZES, SIZES, seeds)
def test_matrices_agree_with_scipy_and_act_as_convolutions(n, m, rng):
    h, x = whole(rng, m), whole(rng, n)
    zeros = np.zeros(n - 1, int)
    theirs = scipy.linalg.toeplitz([*h, *zeros], [h[0], *zeros])
    assert_array_equal(toeplitz(h, n), theirs)
    assert_array_equal(toeplitz(h, n) @ x, convolve(x, h))
    c = whole(rng, n)
    assert_array_equal(circulant(c), scipy.linalg.circulant(c))
    assert_array_equal(circulant(c) @ x, convolve(x, c, "circular"))
    assert_array_equal(circulant(c).T @ x, correlate(c, x, "circular"))


@given(SIZES, SIZES, seeds)
def test_matrix_of_a_linear_map_is_the_map(p, n, rng):
    A, x = rng.normal(size=(p, n)), rng.normal(size=n)
    assert_allclose(matrix_of(lambda v: A @ v, n), A)
    h = whole(rng, p)
    assert_array_equal(matrix_of(lambda v: convolve(v, h), n), toeplitz(h, n))
    assert_allclose(matrix_of(np.fft.fft, n) @ x, np.fft.fft(x), atol=1e-9)


@pytest.mark.parametrize(
    "f",
    [
        np.abs,
        np.square,
        lambda x: np.maximum(x, np.roll(x, 1)),
        lambda x: np.maximum(x, 0),
        lambda x: np.clip(x, -1, 1),
        lambda x: x * x.sum(),
        lambda x: np.where(np.abs(x) < 0.01, 0, x),
        lambda x: np.where(x < 0, np.nan, x),
    ],
)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_map_that_is_not_linear_has_no_matrix(f, n):
    if n == 1 and f(np.array([-0.7])) == -0.7 and f(np.array([9.0])) == 9:
        return  # the maximum of one number is linear
    with pytest.raises(ValueError, match="f must be linear; got a map that is"):
        matrix_of(f, n)


@given(SIZES, seeds)
def test_projection_is_the_closest_circulant(n, rng):
    A = rng.normal(size=(n, n))
    P = equivariant_projection(A)
    basis = np.stack([scipy.linalg.circulant(e).ravel() for e in np.eye(n)], 1)
    h = np.linalg.lstsq(basis, A.ravel())[0]
    assert_allclose(P, scipy.linalg.circulant(h), atol=1e-12)
    assert_allclose(equivariant_projection(P), P, atol=1e-12)


@given(SIZES, SIZES, seeds)
def test_fourier_agrees_with_numpy_and_scipy(n, m, rng):
    x = rng.normal(size=n) + 1j * rng.normal(size=n)
    assert_allclose(dft_matrix(n) @ x, np.fft.fft(x), atol=1e-12)
    a, h = rng.normal(size=n), rng.normal(size=m)
    theirs = scipy.signal.fftconvolve(a, h)
    assert_allclose(fft_convolve(a, h), theirs, atol=1e-12)
    assert fft_convolve(a, h).dtype == np.float64
    assert_allclose(fft_convolve(x, h), np.convolve(x, h), atol=1e-12)


def test_cases_by_hand():
    x, h = np.array([1, 2, 3, 4]), np.array([1, 10])
    assert_array_equal(shift(x, 1), [4, 1, 2, 3])
    assert_array_equal(convolve(x, h), [1, 12, 23, 34, 40])
    assert_array_equal(convolve(x, h, "same"), [1, 12, 23, 34])
    assert_array_equal(convolve(x, h, "valid"), [12, 23, 34])
    assert_array_equal(convolve(x, h, "circular"), [41, 12, 23, 34])
    assert_array_equal(correlate(h, x, "full"), [10, 21, 32, 43, 4])
    assert_array_equal(correlate(h, x, "same"), [21, 32, 43, 4])
    assert_array_equal(correlate(h, x), [21, 32, 43])
    assert_array_equal(correlate(h, x, "circular"), [21, 32, 43, 14])
    assert_array_equal(toeplitz(h, 2), [[1, 0], [10, 1], [0, 10]])
    assert_array_equal(circulant(x[:3]), [[1, 3, 2], [2, 1, 3], [3, 2, 1]])
    A = np.array([[1, 2], [4, 9]])
    assert_array_equal(equivariant_projection(A), [[5, 3], [3, 5]])
    assert_allclose(dft_matrix(2), [[1, 1], [1, -1]], atol=1e-15)
    assert_array_equal(midpoints(0, 1, 2), [0.25, 0.75])


def test_integrals_are_those_of_the_midpoint_rule():
    t = midpoints(-1, 3, 2000)
    f = np.sin(t)
    running = integral_operator(lambda u, t: t < u, t + 1e-3, t) @ f
    assert_allclose(running, np.cos(-1) - np.cos(t + 1e-3), atol=1e-5)
    constant = integral_operator(lambda u, t: np.ones(()), t[:3], t)
    assert_allclose(constant @ f, np.full(3, np.cos(-1) - np.cos(3)), atol=1e-6)
    wide = midpoints(-9, 9, 400)
    K = integral_operator(lambda u, t: np.exp(-2j * np.pi * u * t), wide / 18, wide)
    found = K @ norm.pdf(wide)
    assert_allclose(found, np.exp(-2 * (np.pi * wide / 18) ** 2), atol=1e-12)


def test_gaussian_kernel_is_the_density_scaled_to_sum_one():
    for width in (0.3, 1.0, 2.5):
        h = gaussian_kernel(width)
        r = len(h) // 2
        assert r >= 4 * width
        expected = norm.pdf(np.arange(-r, r + 1), scale=width)
        assert_allclose(h, expected / expected.sum())
    assert_array_equal(gaussian_kernel(5.0, radius=0), [1])
    assert_array_equal(gaussian_kernel(1e-200), [0, 1, 0])
    assert_allclose(gaussian_kernel(1e200, radius=1), np.full(3, 1 / 3))
    theirs = scipy.signal.windows.gaussian(7, 1.5)
    assert_allclose(gaussian_kernel(1.5, 3), theirs / theirs.sum())


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int8])
@pytest.mark.usefixtures("unchecked")
def test_small_whole_numbers_do_not_run_over(kind):
    x = np.ones(300, kind)
    h = np.full(3, 100, kind)
    wide = int(h[0])
    for mode in MODES:
        found = convolve(x, h, mode), correlate(h, x, mode)
        for y in found:
            assert y.max() == 3 * wide
    assert convolve(x, x).max() == 300
    assert equivariant_projection(np.ones((300, 300), kind)).max() == 1


@pytest.mark.usefixtures("unchecked")
def test_lists_of_python_are_lists():
    for mode in MODES:
        ours = convolve([1, 2, 3], [4, 5], mode)
        assert_array_equal(ours, convolve(np.arange(1, 4), np.arange(4, 6), mode))
    assert_array_equal(correlate([4, 5], [1, 2, 3]), [14, 23])
    assert_array_equal(toeplitz([4, 5], 1), [[4], [5]])
    assert_array_equal(circulant([4, 5]), [[4, 5], [5, 4]])


def test_matrix_of_a_map_that_works_in_place():
    buffer = np.zeros(3)

    def double(x):
        x *= 2
        return x

    def reuse(x):
        buffer[:] = x[::-1]
        return buffer

    assert_array_equal(matrix_of(double, 3), 2 * np.eye(3))
    assert_array_equal(matrix_of(reuse, 3), np.eye(3)[::-1])


@given(SIZES, SIZES, seeds)
def test_fft_errors_scale_with_the_largest_number(n, m, rng):
    x, h = rng.normal(size=n) * 1e12, rng.normal(size=m)
    limit = 1e-14 * np.abs(x).sum() * np.abs(h).sum()
    assert_allclose(fft_convolve(x, h), np.convolve(x, h), rtol=0, atol=limit)


ONE, TWO = np.ones(1), np.ones(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shift(np.eye(2), 1), r"shift: x must be a list.*\(2, 2\)"),
        (lambda: shift(TWO, 1.5), "k must be a whole number; got 1.5"),
        (lambda: shift(TWO, np.array([1, 2])), "k must be a whole number"),
        (lambda: convolve(TWO[:0], TWO), "x must be a list.*not empty"),
        (lambda: convolve(TWO, TWO[:0]), "h must be a list.*not empty"),
        (
            lambda: convolve(ONE, TWO, "valid"),
            "kernel must fit into the 1 places; got length 2",
        ),
        (lambda: convolve(ONE, TWO, "zero"), "mode must be one of .'full'"),
        (lambda: correlate(np.eye(2), TWO), "correlate: h must be a list"),
        (lambda: correlate(TWO, np.eye(2)), "correlate: x must be a list"),
        (lambda: output_size(0, 1), "n must be a whole number from 1 on"),
        (lambda: output_size(1, 0), "m must be a whole number from 1 on"),
        (lambda: toeplitz(np.eye(2), 1), "toeplitz: h must be a list"),
        (lambda: toeplitz(TWO, 2.0), "n must be a whole number from 1 on"),
        (lambda: circulant(np.eye(2)), "circulant: h must be a list"),
        (lambda: matrix_of(np.abs, 0), "n must be a whole number from 1 on"),
        (
            lambda: matrix_of(lambda x: 2 * x + 3, 4),
            "f must map zeros to zeros; got a largest entry of 3.0. Subtract",
        ),
        (lambda: matrix_of(np.sum, 2), r"f\(0\) must be a list of numbers"),
        (
            lambda: equivariant_projection(np.ones((2, 3))),
            r"A must be a square matrix; got shape \(2, 3\)",
        ),
        (lambda: dft_matrix(0), "n must be a whole number from 1 on; got 0"),
        (lambda: fft_convolve(TWO, np.eye(2)), "fft_convolve: h must be a"),
        (lambda: fft_convolve(np.eye(2), TWO), "fft_convolve: x must be a"),
        (
            lambda: fft_convolve(TWO, TWO * np.nan),
            "fft_convolve: x and h must be finite; got NaN",
        ),
        (lambda: midpoints(1, 1, 3), "a and b must be finite, a below b"),
        (lambda: midpoints(0, np.inf, 3), "a and b must be finite, a below"),
        (lambda: midpoints(0, 1, 0), "n must be a whole number from 1 on"),
        (
            lambda: integral_operator(np.multiply, TWO, np.array([0, 1, 3.0])),
            "t must have at least two points, increasing and equally spaced",
        ),
        (
            lambda: integral_operator(np.multiply, TWO, ONE),
            "equally spaced; got 1 points. Take midpoints",
        ),
        (
            lambda: integral_operator(np.multiply, TWO * np.nan, TWO),
            "u and t must be finite; got NaN",
        ),
        (
            lambda: integral_operator(np.multiply, TWO, np.array([0, 1, 5]) * 1e-9),
            "increasing and equally spaced; got 3 points",
        ),
        (
            lambda: integral_operator(
                lambda u, t: np.where(u == t, np.inf, 1.0), TWO, np.arange(3.0)
            ),
            "values of the kernel must be finite; got NaN or ∞",
        ),
        (lambda: gaussian_kernel(0), "width must be positive and finite"),
        (lambda: gaussian_kernel(1, 1.5), "radius must be a whole number"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
