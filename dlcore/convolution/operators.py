r"""Linear operators on sequences: shifts, convolutions, the Fourier transform.

A list of :math:`n` numbers is a sequence on the places :math:`0, \dots, n-1`. Where its
neighbours lie, outside on zeros or around the corner, is what the modes differ in:

======== ============== ==========================================================
mode     places         what lies outside
======== ============== ==========================================================
full     :math:`n+m-1`  zeros; every place that the kernel of length ``m`` reaches
same     :math:`n`      zeros; the middle of *full*
valid    :math:`n-m+1`  nothing; only places where the kernel fits
circular :math:`n`      the other end of the list
======== ============== ==========================================================
"""

from collections.abc import Callable
from operator import index

import numpy as np
from jaxtyping import Complex, Float, Num
from numpy import ndarray

from dlcore.checks import (
    check,
    check_columns,
    check_finite,
    check_matrix,
    check_one_of,
    check_positive,
    check_sizes,
    check_whole,
    refusing,
)

__all__ = [
    "MODES",
    "circulant",
    "convolve",
    "correlate",
    "dft_matrix",
    "equivariant_projection",
    "fft_convolve",
    "gaussian_kernel",
    "integral_operator",
    "matrix_of",
    "midpoints",
    "output_size",
    "shift",
    "toeplitz",
]

#: Where the neighbours of a place lie, as in the table above.
MODES = ("full", "same", "valid", "circular")


def _as_list(what: str, x: ndarray) -> ndarray:
    """Refuse what is no list; small whole numbers get room for their sums."""
    ok, got = np.ndim(x) == 1 and np.size(x) > 0, f"shape {np.shape(x)}"
    check(ok, what, "be a list of numbers, not empty", got)
    x = np.asarray(x)
    small = x.dtype.kind in "biu" and x.dtype.itemsize < 8
    return x.astype(np.int64) if small else x


def output_size(n: int, m: int, mode: str = "full") -> int:
    """Return the length of a convolution of ``n`` numbers with a kernel of ``m``.

    Example:
        >>> [output_size(5, 3, mode) for mode in MODES]
        [7, 5, 3, 5]
    """
    check_sizes("output_size", n=n, m=m)
    check_one_of("output_size: mode", mode, MODES)
    ok, rule = mode != "valid" or m <= n, f"fit into the {n} places"
    check(ok, "output_size: a valid kernel", rule, f"length {m}")
    return {"full": n + m - 1, "valid": n - m + 1}.get(mode, n)


def shift(x: Num[ndarray, "n"], k: int) -> Num[ndarray, "n"]:
    r"""Shift a sequence circularly, :math:`(S_k x)[t] = x[t - k]`.

    What leaves at one end enters at the other.

    Example:
        >>> shift(np.array([1, 2, 3, 4]), 1).tolist()
        [4, 1, 2, 3]
    """
    _as_list("shift: x", x)
    with refusing("shift: k", "be a whole number", repr(k)):
        k = index(k)
    return np.roll(x, k)


def convolve(
    x: Num[ndarray, "n"], h: Num[ndarray, "m"], mode: str = "full"
) -> Num[ndarray, "_"]:
    r"""Return the convolution :math:`(x * h)[t] = \sum_k h[k]\, x[t - k]`.

    Whole numbers give whole numbers. The mode *same* starts at the place
    :math:`\lfloor (m-1)/2 \rfloor` of *full*, as in SciPy.

    Equals ``numpy.convolve`` in *full* and *valid*. Equals ``scipy.signal.convolve`` in
    *same*.

    Example:
        >>> convolve(np.array([1, 2, 3]), np.array([1, 10])).tolist()
        [1, 12, 23, 30]
    """
    x = _as_list("convolve: x", x)
    h = _as_list("convolve: h", h)
    n, m = len(x), len(h)
    size = output_size(n, m, mode)
    if mode == "circular":
        return sum(h[k] * shift(x, k) for k in range(m))
    y = np.zeros(n + m - 1, np.result_type(x, h))
    for k in range(m):
        y[k : k + n] += h[k] * x
    start = (n + m - 1 - size) // 2
    return y[start : start + size]


def correlate(
    h: Num[ndarray, "m"], x: Num[ndarray, "n"], mode: str = "valid"
) -> Num[ndarray, "_"]:
    r"""Return the cross-correlation :math:`(h \star x)[t] = \sum_k h[k]\, x[t + k]`.

    Unlike a convolution it does not turn ``h`` around.

    The places are :math:`t = -(m-1), \dots, n-1` in *full*, :math:`0, \dots, n-m` in
    *valid*, :math:`0, \dots, n-1` in *circular*. The mode *same* starts at
    :math:`-\lfloor (m-1)/2 \rfloor`, as the layers of PyTorch do.

    Equals ``torch.nn.functional.conv1d`` in *valid*, and in *same* with zeros around.
    Equals ``scipy.signal.correlate`` of ``x`` and ``h`` in *full*.

    Example:
        >>> correlate(np.array([1, 10]), np.array([1, 2, 3])).tolist()
        [21, 32]
    """
    x = _as_list("correlate: x", x)
    h = _as_list("correlate: h", h)
    n, m = len(x), len(h)
    size = output_size(n, m, mode)
    if mode == "circular":
        return sum(h[k] * shift(x, -k) for k in range(m))
    y = np.zeros(n + m - 1, np.result_type(x, h))
    for k in range(m):
        y[m - 1 - k : m - 1 - k + n] += h[k] * x
    start = {"full": 0, "same": m // 2, "valid": m - 1}[mode]
    return y[start : start + size]


def toeplitz(h: Num[ndarray, "m"], n: int) -> Num[ndarray, "{n}+m-1 {n}"]:
    r"""Return the matrix of a convolution, :math:`T_{tk} = h[t-k]`, for ``n`` numbers.

    That is, :math:`Tx = x * h`.

    Equals ``scipy.linalg.toeplitz`` of ``h`` and :math:`h[0]`, both followed by zeros.

    Example:
        >>> toeplitz(np.array([1, 2]), 3).tolist()
        [[1, 0, 0], [2, 1, 0], [0, 2, 1], [0, 0, 2]]
    """
    h = _as_list("toeplitz: h", h)
    check_whole("toeplitz: n", n, 1)
    m = len(h)
    T = np.zeros((n + m - 1, n), h.dtype)
    for k in range(n):
        T[k : k + m, k] = h
    return T


def circulant(h: Num[ndarray, "n"]) -> Num[ndarray, "n n"]:
    r"""Return the matrix :math:`C_{tk} = h[(t - k) \bmod n]` of a circular convolution.

    Equals ``scipy.linalg.circulant``.

    Example:
        >>> circulant(np.array([1, 2, 3])).tolist()
        [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    """
    h = _as_list("circulant: h", h)
    t = np.arange(len(h))
    return h[(t[:, None] - t) % len(h)]


def matrix_of(f: Callable[[ndarray], ndarray], n: int) -> Num[ndarray, "p {n}"]:
    """Return the matrix of a linear map, whose columns are the impulse responses.

    A map that is not linear has no matrix. One with a bias is always refused; others
    are found by comparing the map with its matrix on a few lists of several sizes and
    signs.

    Example:
        >>> matrix_of(np.cumsum, 3).tolist()
        [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    check_whole("matrix_of: n", n, 1)
    origin = np.array(f(np.zeros(n)))
    _as_list("matrix_of: f(0)", origin)
    most = f"a largest entry of {np.abs(origin).max()}"
    hint = "Subtract the bias: lambda x: f(x) - f(np.zeros(n))."
    check(not origin.any(), "matrix_of: f", "map zeros to zeros", most, hint)
    A = np.stack([np.array(f(impulse)) for impulse in np.eye(n)], axis=1)
    k = np.arange(n)
    for size in (1.0, -1.0, 1e-3, -1e-3, 1e3, -1e3):
        x = size * np.cos(1 + k**2 % 7 + np.sqrt(2) * k)
        off = np.abs(f(x.copy()) - A @ x).max()
        limit = 1e-9 * abs(size) * np.abs(A).sum(axis=1).max()
        got = f"a map that is off by {off:.2g}"
        check(bool(off <= limit), "matrix_of: f", "be linear", got)
    return A


def equivariant_projection(A: Num[ndarray, "n n"]) -> Num[ndarray, "n n"]:
    r"""Return the circulant matrix closest to ``A``.

    .. math:: \frac1n \sum_k S_{-k} A S_k

    Example:
        >>> equivariant_projection(np.array([[1.0, 2.0], [4.0, 3.0]])).tolist()
        [[2.0, 3.0], [3.0, 2.0]]
    """
    check_matrix("equivariant_projection: A", A, "be a square matrix")
    check_columns("equivariant_projection: A", A, len(A), "be a square matrix")
    n, A = len(A), np.asarray(A, np.result_type(A, float))
    moved = (np.roll(A, (-k, -k), axis=(0, 1)) for k in range(n))
    return sum(moved, np.zeros_like(A)) / n


def dft_matrix(n: int) -> Complex[ndarray, "{n} {n}"]:
    r"""Return the matrix of the discrete Fourier transform.

    .. math:: F_{ut} = e^{-2\pi \mathrm{i} ut/n}, \quad \hat x = Fx

    Equals ``numpy.fft.fft`` when multiplied by a sequence.

    Example:
        >>> np.abs(dft_matrix(4) @ np.ones(4)).round(6).tolist()  # only frequency 0
        [4.0, 0.0, 0.0, 0.0]
    """
    check_whole("dft_matrix: n", n, 1)
    t = np.arange(n)
    return np.exp(-2j * np.pi * (np.outer(t, t) % n) / n)


def fft_convolve(x: Num[ndarray, "n"], h: Num[ndarray, "m"]) -> Num[ndarray, "n+m-1"]:
    r"""Convolve through the Fourier transform, :math:`\widehat{x * h} = \hat x \hat h`.

    The mode is *full*.

    Zeros fill both lists up to a power of two, so that nothing comes around the corner.
    The rounding error at each place is that of the largest numbers, also where small
    ones are.

    Equals ``scipy.signal.fftconvolve``. Equals ``numpy.convolve``.

    Example:
        >>> fft_convolve(np.array([1, 2, 3]), np.array([1, 10])).round(6).tolist()
        [1.0, 12.0, 23.0, 30.0]
    """
    x = _as_list("fft_convolve: x", x)
    h = _as_list("fft_convolve: h", h)
    check_finite("fft_convolve: x and h", x, h)
    size = output_size(len(x), len(h))
    N = 2 ** (size - 1).bit_length()
    y = np.fft.ifft(np.fft.fft(x, N) * np.fft.fft(h, N))[:size]
    return y if np.iscomplexobj(x) or np.iscomplexobj(h) else y.real


def midpoints(a: float, b: float, n: int) -> Float[ndarray, "{n}"]:
    """Return the midpoints of ``n`` equal pieces of the interval from ``a`` to ``b``.

    Example:
        >>> midpoints(0.0, 1.0, 4).tolist()
        [0.125, 0.375, 0.625, 0.875]
    """
    ok = bool(np.isfinite(b - a) and a < b)
    check(ok, "midpoints: a and b", "be finite, a below b", (a, b))
    check_whole("midpoints: n", n, 1)
    return a + (np.arange(n) + 0.5) * (b - a) / n


def integral_operator(
    kernel: Callable[[ndarray, ndarray], ndarray],
    u: Float[ndarray, "p"],
    t: Float[ndarray, "n"],
) -> Num[ndarray, "p n"]:
    r"""Return the matrix of the integral operator :math:`\int K(u, t) f(t)\, dt`.

    Its entries are :math:`K(u_i, t_j)\, \Delta t`.

    Applied to the values :math:`f(t_j)` it is the midpoint rule on the pieces around
    the :math:`t_j`, which must be equally spaced: see :func:`midpoints`.

    Example:
        >>> t = midpoints(0.0, 1.0, 4)
        >>> K = integral_operator(lambda u, t: u * t, np.array([1.0, 2.0]), t)
        >>> (K @ np.ones(4)).round(6).tolist()  # the integral of ut is u/2
        [0.5, 1.0]
    """
    u = _as_list("integral_operator: u", u)
    t = _as_list("integral_operator: t", t)
    check_finite("integral_operator: u and t", u, t)
    steps = np.diff(t)
    ok = len(t) > 1 and steps[0] > 0 and np.allclose(steps, steps[0], 1e-6, 0)
    rule = "have at least two points, increasing and equally spaced"
    check(
        ok, "integral_operator: t", rule, f"{len(t)} points", "Take midpoints(a, b, n)."
    )
    K = kernel(u[:, None], t[None, :])
    check_finite("integral_operator: values of the kernel", K)
    return np.broadcast_to(K, (len(u), len(t))) * (t[-1] - t[0]) / (len(t) - 1)


def gaussian_kernel(width: float, radius: int | None = None) -> Float[ndarray, "_"]:
    r"""Return the Gaussian kernel :math:`e^{-k^2 / (2\sigma^2)}` over its sum.

    Equals ``scipy.signal.windows.gaussian`` divided by its sum.

    Args:
        width: the standard deviation :math:`\sigma`, in places.
        radius: the places are :math:`k = -r, \dots, r`; by default :math:`r \ge
            4\sigma`.

    Example:
        >>> gaussian_kernel(1.0, radius=1).round(3).tolist()
        [0.274, 0.452, 0.274]
    """
    check_positive("gaussian_kernel: width", width)
    r = int(np.ceil(4 * width)) if radius is None else radius
    check_whole("gaussian_kernel: radius", r, 0)
    k = np.arange(-r, r + 1)
    with np.errstate(over="ignore"):  # far out in a narrow kernel
        h = np.exp(-((k / width) ** 2) / 2)
    return h / h.sum()
