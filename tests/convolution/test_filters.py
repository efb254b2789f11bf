import numpy as np
import pytest
import scipy.ndimage
import scipy.signal
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose
from strategies import seeds

from dlcore.convolution.filters import (
    bar,
    blur,
    difference_of_gaussians,
    gabor,
    gaussian,
    grating,
    offsets,
    orientation_histograms,
    sharpen,
    sobel,
    sum_shifted,
)

ODD = st.integers(0, 8).map(lambda k: 2 * k + 1)
ANGLES = st.floats(-4, 4)
WIDTHS = st.floats(0.5, 4)


def applied(h, f):
    return scipy.ndimage.correlate(f, h, mode="constant")


def test_sobel_agrees_with_scipy():
    f = default_rng(0).normal(size=(7, 9))
    for axis in (0, 1):
        theirs = scipy.ndimage.sobel(f, axis, mode="constant")
        assert_allclose(applied(sobel(axis), f), theirs, atol=1e-12)


@given(WIDTHS)
def test_gaussian_agrees_with_scipy(sigma):
    impulse = np.zeros((21, 21))
    impulse[10, 10] = 1
    theirs = scipy.ndimage.gaussian_filter(impulse, sigma, mode="constant", radius=10)
    assert_allclose(gaussian(sigma, 21), theirs, atol=1e-15)


def test_gaussian_of_any_width():
    impulse = np.pad([[1.0]], 2)
    for sigma in (1e-320, 1e-200, 1e-3):
        assert np.array_equal(gaussian(sigma, 5), impulse)
    for sigma in (1e9, 1e200):
        assert_allclose(gaussian(sigma, 5), blur(5))


def test_blur_and_sharpen_agree_with_scipy():
    f = default_rng(1).normal(size=(8, 8))
    theirs = scipy.ndimage.uniform_filter(f, 5, mode="constant")
    assert_allclose(applied(blur(5), f), theirs, atol=1e-12)
    theirs = f - 0.7 * scipy.ndimage.laplace(f, mode="constant")
    assert_allclose(applied(sharpen(0.7), f), theirs, atol=1e-12)


@given(WIDTHS, st.floats(1.05, 3), ODD)
def test_kernels_that_see_differences_ignore_grey(sigma, factor, size):
    centre = difference_of_gaussians(sigma, factor * sigma, size)
    for kernel in (centre, sobel(0), sobel(1)):
        assert_allclose(kernel.sum(), 0, atol=1e-12)
    for kernel in (blur(size), gaussian(sigma, size), sharpen(sigma)):
        assert_allclose(kernel.sum(), 1)


@given(ODD, ANGLES)
def test_offsets_are_turned(size, theta):
    x, y = offsets(size)
    u, v = offsets(size, theta)
    turned = np.exp(-1j * theta) * (x + 1j * y)
    assert_allclose(u + 1j * v, turned, atol=1e-12)


@given(ODD, ANGLES, st.floats(2, 9), WIDTHS, ANGLES)
def test_gabor_turns_with_its_angle(size, theta, wavelength, sigma, phase):
    one = gabor(theta, wavelength, sigma, size, phase)
    right_angle = gabor(theta + np.pi / 2, wavelength, sigma, size, phase)
    assert_allclose(right_angle, np.rot90(one), atol=1e-12)
    about = gabor(theta + np.pi, wavelength, sigma, size, phase)
    assert_allclose(about, one[::-1, ::-1], atol=1e-12)
    mirrored = gabor(theta, wavelength, sigma, size, -phase)
    assert_allclose(mirrored, about, atol=1e-12)


def test_gabor_by_hand():
    kernel = gabor(0, 4, 1, 3)
    rows = np.exp(-0.5) * np.cos(np.pi / 2), 1, np.exp(-0.5) * 0
    assert_allclose(kernel[:, 1], rows, atol=1e-15)
    assert_allclose(kernel[1], [np.exp(-0.5), 1, np.exp(-0.5)])
    edge = gabor(np.pi / 2, 4, 1, 3, phase=-np.pi / 2)
    assert_allclose(edge[1], [-np.exp(-0.5), 0, np.exp(-0.5)][::-1], atol=1e-15)
    assert_allclose(grating(0, 4, 5)[:, 0], [-1, 0, 1, 0, -1], atol=1e-15)


def test_bar_by_hand():
    assert np.array_equal(bar(0, 1, 3, 5), np.pad(np.ones((1, 3)), ((2, 2), (1, 1))))
    assert_allclose(bar(np.pi / 2, 1, 3, 5), bar(0, 1, 3, 5).T, atol=1e-15)
    assert_allclose(bar(0, 2, 1, 5)[:, 2], [0, 0.5, 1, 0.5, 0])
    assert_allclose(bar(0, 0.25, 1, 3)[:, 1], [0, 0.25, 0])
    rising = bar(np.pi / 4, 1, 9, 5)
    assert_allclose([rising[0, 4], rising[4, 0]], 1)
    assert rising[0, 0] == 0


@given(st.floats(0.2, 6), st.floats(4, 12), ANGLES)
def test_bar_covers_its_area(width, length, theta):
    assert_allclose(bar(0, width, length, 33).sum(), width * length)
    turned = bar(theta, width, length, 33).sum()
    assert abs(turned - width * length) < 0.35 * length


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.integers(0, 5))
def test_sum_shifted_is_a_convolution(rng, rows, columns, count):
    h = rng.normal(size=(rows, columns))
    shifts = [(int(a), int(b)) for a, b in rng.integers(-8, 9, size=(count, 2))]
    impulses = np.zeros((17, 17))
    for a, b in shifts:
        impulses[8 + a, 8 + b] += 1
    whole = scipy.signal.convolve2d(impulses, h)
    cut = whole[8 : 8 + rows, 8 : 8 + columns]
    assert_allclose(sum_shifted(h, shifts), cut, atol=1e-12)


def slow_histograms(image, cell, bins, eps):
    rows, columns = image.shape
    cells = np.zeros((rows // cell, columns // cell, bins))
    for i in range(rows):
        for j in range(columns):
            above, below = (image[max(i - 1, 0), j], image[min(i + 1, rows - 1), j])
            left = image[i, max(j - 1, 0)]
            right = image[i, min(j + 1, columns - 1)]
            g = complex(right - left, below - above) / 2
            at = np.angle(g) % np.pi / np.pi * bins
            k, share = int(at), at - int(at)
            home = cells[i // cell, j // cell]
            home[k % bins] += abs(g) * (1 - share)
            home[(k + 1) % bins] += abs(g) * share
    features = []
    for i in range(len(cells) - 1):
        for j in range(cells.shape[1] - 1):
            block = cells[i : i + 2, j : j + 2].ravel()
            features.append(block / np.sqrt(block @ block + eps**2))
    return np.concatenate(features)


@given(seeds, st.integers(1, 4), st.integers(1, 9))
def test_histograms_agree_with_loops(rng, cell, bins):
    images = rng.normal(size=(2, 3 * cell, 4 * cell))
    ours = orientation_histograms(images, cell, bins, eps=0.1)
    theirs = [slow_histograms(image, cell, bins, 0.1) for image in images]
    assert_allclose(ours, theirs, atol=1e-9)


def test_histogram_of_a_ramp_by_hand():
    ramp = np.tile(np.arange(4.0), (4, 1))  # brighter to the right
    features = orientation_histograms(ramp[None], 2, 4, eps=1e-9)
    assert_allclose(features.reshape(4, 4), np.outer(np.ones(4), [0.5, 0, 0, 0]))
    down = orientation_histograms(ramp.T[None], 2, 4, eps=1e-9)
    assert_allclose(down.reshape(4, 4)[:, 2], 0.5)
    flat = orientation_histograms(np.ones((1, 4, 4), dtype=np.uint8), 2)
    assert not flat.any()


@given(seeds, st.floats(0.1, 50), st.floats(-9, 9))
def test_histograms_ignore_brightness_and_contrast(rng, contrast, brightness):
    images = rng.normal(size=(1, 12, 12))
    before = orientation_histograms(images, 4, eps=1e-12)
    after = orientation_histograms(contrast * images + brightness, 4, eps=1e-12)
    negative = orientation_histograms(-images, 4, eps=1e-12)
    assert_allclose(after, before, atol=1e-7)
    assert_allclose(negative, before, atol=1e-9)


@given(seeds)
def test_histograms_turn_with_the_picture(rng):
    images = rng.normal(size=(1, 9, 9))
    turned = np.rot90(images, axes=(1, 2))
    before = orientation_histograms(images, 3, 8).reshape(2, 2, 2, 2, 8)
    after = orientation_histograms(turned, 3, 8).reshape(2, 2, 2, 2, 8)
    expected = np.rot90(np.rot90(before), axes=(2, 3))
    assert_allclose(after, np.roll(expected, 4, axis=-1), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian(1, 4), r"offsets: size must be an odd whole number; got 4"),
        (lambda: blur(0), "blur: size must be an odd"),
        (lambda: gaussian(0, 3), "gaussian: sigma must be positive"),
        (lambda: difference_of_gaussians(2, 1, 3), "larger than sigma = 2; got 1"),
        (lambda: gabor(0, 0, 1, 3), "wavelength must be positive"),
        (lambda: gabor(0, 1, -1, 3), "gabor: sigma must be positive"),
        (lambda: bar(0, 0, 1, 3), "bar: width must be positive"),
        (lambda: bar(0, 1, np.inf, 3), "bar: length must be positive and finite"),
        (lambda: offsets(3, np.nan), "offsets: theta must be finite"),
        (lambda: bar(np.inf, 1, 1, 3), "theta must be finite"),
        (lambda: gabor(0, 4, 1, 3, np.nan), "phase must be finite"),
        (lambda: sharpen(np.nan), "sharpen: amount must be finite"),
        (lambda: sobel(2), r"sobel: axis must be 0 \(rows\) or 1"),
        (lambda: sum_shifted(np.eye(2), [(0.5, 0)]), "each shift must be a whole"),
        (lambda: sum_shifted(np.ones(3), []), "sum_shifted: h must be a matrix"),
        (
            lambda: orientation_histograms(np.ones((1, 8, 8)), 3),
            "divide the sides 8 × 8 into at least 2 × 2 cells; got 3",
        ),
        (
            lambda: orientation_histograms(np.ones((1, 8, 8)), 8),
            "at least 2 × 2 cells; got 8",
        ),
        (
            lambda: orientation_histograms(np.ones((8, 8)), 4),
            r"have the axes \(s, rows, columns\); got shape \(8, 8\)",
        ),
        (
            lambda: orientation_histograms(np.ones((1, 8, 8)), 4, eps=0.0),
            "eps must be positive",
        ),
        (
            lambda: orientation_histograms(np.full((1, 8, 8), np.nan), 4),
            "images must hold real numbers less than 1e150 in size; got NaN",
        ),
        (
            lambda: orientation_histograms(np.full((1, 8, 8), 1e200), 4),
            "images must hold real numbers less than 1e150",
        ),
        (
            lambda: orientation_histograms(np.full((1, 8, 8), 1j), 4),
            "images must hold real numbers",
        ),
    ],
)
def test_refuses(call, message, unchecked):
    with pytest.raises(ValueError, match=message):
        call()
