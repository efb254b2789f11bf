r"""Hand-made kernels and features of pictures: edges, blobs, bars and stripes.

Kernels are meant for cross-correlation, as layers compute it: what a kernel looks like
is what it answers to. Their sides are odd, and the middle entry is the origin. Angles
are in radians and turn a horizontal line counter-clockwise, as one sees it; rows count
downwards.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Shaped
from numpy import ndarray

from dlcore.checks import check, check_finite, check_positive, check_whole

__all__ = [
    "bar",
    "blur",
    "difference_of_gaussians",
    "gabor",
    "gaussian",
    "grating",
    "offsets",
    "orientation_histograms",
    "sharpen",
    "sobel",
    "sum_shifted",
]


def offsets(
    size: int, theta: float = 0.0
) -> tuple[Float[ndarray, "k k"], Float[ndarray, "k k"]]:
    r"""Return the coordinates of pixels along and across a line through the middle.

    .. math:: u = x \cos\theta + y \sin\theta, \quad v = -x \sin\theta + y \cos\theta

    with :math:`x` to the right and :math:`y` upwards.

    Args:
        size: the odd side :math:`k`.
        theta: angle of the line.

    Example:
        >>> u, v = offsets(3)
        >>> u[0].tolist(), v[:, 0].tolist()
        ([-1.0, 0.0, 1.0], [1.0, 0.0, -1.0])
    """
    _check_odd("offsets: size", size)
    check_finite("offsets: theta", theta)
    x = np.arange(size) - size // 2.0
    y = -x[:, None]
    u = x * np.cos(theta) + y * np.sin(theta)
    v = -x * np.sin(theta) + y * np.cos(theta)
    return u, v


def blur(size: int) -> Float[ndarray, "k k"]:
    """Return the kernel that averages over a square (box blur).

    Equals ``scipy.ndimage.uniform_filter`` when cross-correlated with a picture.

    Args:
        size: the odd side.

    Example:
        >>> round(float((blur(3) * np.arange(9).reshape(3, 3)).sum()), 3)
        4.0
    """
    _check_odd("blur: size", size)
    return np.full((size, size), 1 / size**2)


def gaussian(sigma: float, size: int) -> Float[ndarray, "k k"]:
    r"""Return the Gaussian kernel :math:`e^{-(x^2 + y^2) / 2\sigma^2}` over its sum.

    Equals ``scipy.ndimage.gaussian_filter`` of an impulse.

    Args:
        sigma: width :math:`\sigma`, in pixels.
        size: the odd side.

    Example:
        >>> gaussian(1.0, 3).round(3).tolist()
        [[0.075, 0.124, 0.075], [0.124, 0.204, 0.124], [0.075, 0.124, 0.075]]
    """
    check_positive("gaussian: sigma", sigma)
    bell = _bell(sigma, size)
    return bell / bell.sum()


def difference_of_gaussians(
    sigma: float, wide: float, size: int
) -> Float[ndarray, "k k"]:
    r"""Return a centre-surround kernel: a narrow Gaussian minus a wide one.

    Its sum is zero, up to rounding: :math:`g_\sigma - g_{\text{wide}}`.

    Args:
        sigma: width of the centre.
        wide: width of the surround, larger than ``sigma``.
        size: the odd side.

    Example:
        >>> h = difference_of_gaussians(1.0, 2.0, 9)
        >>> bool(h[4, 4] > 0 > h[4, 0]), abs(round(float(h.sum()), 6))
        (True, 0.0)
    """
    rule = f"be larger than sigma = {sigma}"
    check(wide > sigma, "difference_of_gaussians: wide", rule, wide)
    return gaussian(sigma, size) - gaussian(wide, size)


def sharpen(amount: float = 1.0) -> Float[ndarray, "3 3"]:
    r"""Return a sharpening kernel: it adds what a pixel exceeds its four neighbours by.

    .. math:: x + a \sum_{i=1}^{4} (x - x_i)

    Equals ``scipy.ndimage.laplace`` times :math:`-a`, plus the picture, when
    cross-correlated.

    Args:
        amount: :math:`a`.

    Example:
        >>> sharpen().tolist()
        [[0.0, -1.0, 0.0], [-1.0, 5.0, -1.0], [0.0, -1.0, 0.0]]
    """
    check_finite("sharpen: amount", amount)
    cross = np.array([[0.0, -1, 0], [-1, 4, -1], [0, -1, 0]])
    kernel = amount * cross
    kernel[1, 1] += 1
    return kernel


def sobel(axis: int) -> Float[ndarray, "3 3"]:
    """Return Sobel's edge kernel: a difference along an axis, smoothed along the other.

    Equals ``scipy.ndimage.sobel`` when cross-correlated with a picture.

    Args:
        axis: 0 answers to horizontal edges with more below, 1 to vertical ones with
            more on the right.

    Example:
        >>> sobel(1).tolist()
        [[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]
    """
    check(axis in (0, 1), "sobel: axis", "be 0 (rows) or 1 (columns)", axis)
    across = np.outer([1.0, 2, 1], [-1.0, 0, 1])
    return across if axis == 1 else across.T


def gabor(
    theta: float, wavelength: float, sigma: float, size: int, phase: float = 0.0
) -> Float[ndarray, "k k"]:
    r"""Return a Gabor filter, which answers to stripes of one direction.

    It is a wave under a bell.

    .. math::
        e^{-(u^2 + v^2) / 2\sigma^2}
        \cos\left(\frac{2\pi v}{\lambda} + \phi\right)

    Args:
        theta: direction of the stripes.
        wavelength: :math:`\lambda`, from one stripe to the next, in pixels.
        sigma: width of the bell.
        size: the odd side.
        phase: :math:`\phi`; 0 has a bright stripe in the middle, ±π/2 an edge.

    Example:
        >>> gabor(0.0, 4.0, 1.0, 5)[:, 2].round(3).tolist()
        [-0.135, 0.0, 1.0, 0.0, -0.135]
    """
    check_positive("gabor: sigma", sigma)
    return _bell(sigma, size) * grating(theta, wavelength, size, phase)


def grating(
    theta: float, wavelength: float, size: int, phase: float = 0.0
) -> Float[ndarray, "k k"]:
    r"""Return a picture of endless stripes, :math:`\cos(2\pi v / \lambda + \phi)`.

    Args:
        theta: direction of the stripes.
        wavelength: :math:`\lambda`.
        size: the odd side.
        phase: :math:`\phi`.

    Example:
        >>> grating(0.0, 2.0, 3).round(3).tolist()
        [[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]
    """
    check_positive("grating: wavelength", wavelength)
    check_finite("grating: phase", phase)
    _, v = offsets(size, theta)
    return np.cos(2 * np.pi * v / wavelength + phase)


def bar(theta: float, width: float, length: float, size: int) -> Float[ndarray, "k k"]:
    """Return a picture of a bar through the middle, 1 on 0, soft within a pixel.

    Args:
        theta: direction of the bar.
        width: across.
        length: along.
        size: the odd side.

    Example:
        >>> bar(0.0, 1.0, 3.0, 5)[1:3].tolist()
        [[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0, 0.0]]
    """
    check_positive("bar: width", width)
    check_positive("bar: length", length)
    u, v = offsets(size, theta)
    inside = [
        np.clip((extent + 1) / 2 - np.abs(w), 0, min(1, extent))
        for w, extent in ((u, length), (v, width))
    ]
    return inside[0] * inside[1]


def sum_shifted(
    h: Float[ndarray, "rows columns"], shifts: Sequence[tuple[int, int]]
) -> Float[ndarray, "rows columns"]:
    r"""Return the sum of shifted copies of a kernel; what leaves the frame is lost.

    .. math:: \sum_i h[\cdot - a_i, \cdot - b_i]

    It is the convolution of ``h`` with a picture that is 1 at each shift.

    Equals ``scipy.signal.convolve2d`` of ``h`` and a picture of ones at the shifts, cut
    to the frame.

    Args:
        h: a kernel.
        shifts: whole numbers of rows down and columns to the right.

    Example:
        >>> sum_shifted(np.array([[1.0, 2.0, 0.0]]), [(0, 0), (0, 1)]).tolist()
        [[1.0, 3.0, 2.0]]
    """
    check(np.ndim(h) == 2, "sum_shifted: h", "be a matrix", f"{np.ndim(h)} axes")
    total = np.zeros(h.shape)
    for a, b in shifts:
        check_whole("sum_shifted: each shift", abs(a), 0)
        check_whole("sum_shifted: each shift", abs(b), 0)
        rows, columns = _overlap(a, h.shape[0]), _overlap(b, h.shape[1])
        total[rows[0], columns[0]] += h[rows[1], columns[1]]
    return total


def orientation_histograms(
    images: Shaped[ndarray, "s rows columns"],
    cell: int,
    bins: int = 9,
    eps: float = 1e-3,
) -> Float[ndarray, "s features"]:
    r"""Describe pictures by histograms of the directions of their edges (HOG).

    The gradient of a pixel is half the difference of its neighbours to the right and
    left, below and above. Each cell counts directions, without their sign: a pixel
    gives its gradient's length to the two bins around its direction, in shares. Each
    block of :math:`2 \times 2` cells is divided by :math:`\sqrt{\lVert h \rVert^2 +
    \varepsilon^2}`.

    Args:
        images: pictures whose sides are multiples of ``cell``.
        cell: side of a cell in pixels.
        bins: number of directions; bin 0 is a gradient along the rows, and directions
            turn from right to down.
        eps: :math:`\varepsilon`, below which contrast counts as none.

    Example:
        >>> ramp = np.tile(np.arange(4.0), (1, 4, 1))
        >>> orientation_histograms(ramp, cell=2, bins=2).round(3).tolist()
        [[0.5, 0.0, 0.5, 0.0, 0.5, 0.0, 0.5, 0.0]]
    """
    _check_cells(images, cell)
    check_whole("orientation_histograms: bins", bins, 1)
    check_positive("orientation_histograms: eps", eps)
    s, rows, columns = images.shape
    framed = np.pad(images.astype(float), ((0, 0), (1, 1), (1, 1)), mode="edge")
    down = (framed[:, 2:, 1:-1] - framed[:, :-2, 1:-1]) / 2
    right = (framed[:, 1:-1, 2:] - framed[:, 1:-1, :-2]) / 2
    length = np.hypot(down, right)
    place = np.arctan2(down, right) / np.pi % 1 * bins
    low = np.floor(place)
    share = place - low
    votes = np.zeros((s, rows, columns, bins))
    for at, weight in ((low, 1 - share), (low + 1, share)):
        index = (at.astype(int) % bins)[..., None]
        old = np.take_along_axis(votes, index, -1)
        np.put_along_axis(votes, index, old + (length * weight)[..., None], -1)
    cells = votes.reshape(s, rows // cell, cell, columns // cell, cell, bins)
    return _in_blocks(cells.sum(axis=(2, 4)), eps)


def _bell(sigma: float, size: int) -> Float[ndarray, "k k"]:
    """Return the bell of height 1; all directions see the same one."""
    u, v = offsets(size)
    with np.errstate(over="ignore"):  # a bell without width is 1 in the middle
        return np.exp(-((u / sigma) ** 2 + (v / sigma) ** 2) / 2)


def _in_blocks(
    cells: Float[ndarray, "s m n bins"], eps: float
) -> Float[ndarray, "s features"]:
    """Normalise each block of 2 × 2 cells; blocks overlap."""
    corners = [
        cells[:, i : i + cells.shape[1] - 1, j : j + cells.shape[2] - 1]
        for i in (0, 1)
        for j in (0, 1)
    ]
    blocks = np.concatenate(corners, axis=-1)
    size = np.sqrt((blocks**2).sum(axis=-1, keepdims=True) + eps**2)
    return (blocks / size).reshape(len(cells), -1)


def _overlap(shift: int, side: int) -> tuple[slice, slice]:
    """Return where a shifted axis lands and where it comes from."""
    kept = max(side - abs(shift), 0)
    to, start = max(shift, 0), max(-shift, 0)
    return slice(to, to + kept), slice(start, start + kept)


def _check_cells(images: ndarray, cell: int) -> None:
    who = "orientation_histograms"
    check_whole(f"{who}: cell", cell, 1)
    ok = np.ndim(images) == 3 and np.size(images) > 0
    rule = "have the axes (s, rows, columns)"
    check(ok, f"{who}: images", rule, f"shape {np.shape(images)}")
    ok = np.isrealobj(images) and bool(np.abs(images * 1.0).max() < 1e150)
    rule = "hold real numbers less than 1e150 in size"
    check(ok, f"{who}: images", rule, "NaN, a larger or a complex one")
    rows, columns = images.shape[1:]
    ok = rows % cell == columns % cell == 0 and min(rows, columns) >= 2 * cell
    rule = f"divide the sides {rows} × {columns} into at least 2 × 2 cells"
    check(ok, f"{who}: cell", rule, cell)


def _check_odd(what: str, size: int) -> None:
    ok = hasattr(size, "__index__") and size >= 1 and size % 2 == 1
    check(ok, what, "be an odd whole number", repr(size))
