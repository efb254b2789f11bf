r"""What one hidden layer can represent: constructions with a proof, and their error.

A *shallow* network with ``m`` units is :math:`f(x) = \sum_i a_i\, \varphi(w_i \cdot x +
b_i) + c`. Nothing is trained here. Weights come from a formula (:func:`staircase`,
:func:`power`), from a lottery (:func:`barron_sample`), or, for given units, from a linear
program (:func:`uniform_fit`).
"""

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator
from scipy.optimize import linprog
from scipy.special import gammaln
from scipy.stats import binom

from dlcore.checks import (
    check,
    check_between,
    check_finite,
    check_matrix,
    check_shape,
    check_whole,
)
from dlcore.feedforward.activations import Function, sigmoid, step, tanh
from dlcore.feedforward.network import Network, layered

__all__ = [
    "DEPENDENT",
    "Parts",
    "barron_constant",
    "barron_sample",
    "bernstein",
    "combine",
    "parts",
    "power",
    "shallow",
    "sigmoid_to_tanh",
    "staircase",
    "sup_distance",
    "uniform_fit",
]

#: The part of the largest singular value that counts as zero.
DEPENDENT = 1e-10
_FAR = 1e9  # where a sigmoidal function has nearly reached its limits


def _values(what: str, f: Function, x: ndarray) -> ndarray:
    """Return ``f(x)``, one finite number per point, also of a constant function."""
    y = np.asarray(f(x), dtype=float)
    ok, must = y.shape in ((), x.shape), f"have one value per point ({len(x)})"
    check(ok, f"{what}: f(x)", must, f"shape {y.shape}")
    check_finite(f"{what}: f(x)", y)
    return np.broadcast_to(y, x.shape)


def shallow(
    W: Float[ndarray, "m n"],
    b: Float[ndarray, "m"],
    a: Float[ndarray, "m"],
    c: float,
    phi: Function,
) -> Network:
    r"""Build a network with one hidden layer and one output.

    .. math:: f(x) = \sum_{i=1}^{m} a_i\, \varphi(w_i \cdot x + b_i) + c

    Equals ``torch.nn.Sequential`` of a linear layer, the activation and a linear layer.

    Args:
        W: weights of the units, one unit per row.
        b: their biases.
        a: weights of the output.
        c: bias of the output.
        phi: activation function, applied to all weighted sums at once.

    Example:
        >>> from dlcore.feedforward.activations import relu
        >>> net = shallow(np.array([[1.0], [-1.0]]), np.zeros(2), np.ones(2), 0.0, relu)
        >>> net(np.array([[-2.0], [3.0]])).tolist()  # |x|
        [[2.0], [3.0]]
    """
    return layered([(W, b), (a[None], np.array([c], dtype=float))], phi)


class Parts(NamedTuple):
    """The weights, biases and activation of a network built by :func:`shallow`.

    Attributes:
        W: weights of the units, one unit per row.
        b: their biases.
        a: weights of the output.
        c: bias of the output.
        phi: activation.

    Example:
        >>> whole = Parts(np.ones((1, 1)), np.zeros(1), np.array([2.0]), 3.0, np.tanh)
        >>> shallow(*whole)(np.zeros((1, 1))).tolist()  # 2 tanh(0) + 3
        [[3.0]]
    """

    W: Float[ndarray, "m n"]
    b: Float[ndarray, "m"]
    a: Float[ndarray, "m"]
    c: float
    phi: Function


def parts(network: Network) -> Parts:
    """Return the weights, biases and activation of a network with one hidden layer.

    The network must have one output.

    Example:
        >>> net = shallow(np.array([[1.0], [-1.0]]), np.zeros(2), np.ones(2), 0.5, tanh)
        >>> parts(net).a.tolist(), parts(net).c
        ([1.0, 1.0], 0.5)
    """
    sizes = [layer.outputs for layer in network.layers]
    must = "have one hidden layer and one output"
    check(sizes[1:] == [1], "parts: network", must, f"layers of {sizes} units")
    hidden, out = network.layers
    return Parts(hidden.W, hidden.b, out.W[0], float(out.b[0]), hidden.phi)


def combine(
    nets: Sequence[Network], factors: Float[ndarray, "k"], c: float = 0.0
) -> Network:
    r"""Write the sum :math:`\sum_j \alpha_j f_j(x) + c` of networks as one network.

    Its units are those of all :math:`f_j`, side by side.

    Args:
        nets: shallow networks :math:`f_j` with the same activation.
        factors: the numbers :math:`\alpha_j`.
        c: a constant.

    Example:
        >>> net = shallow(np.array([[1.0], [-1.0]]), np.zeros(2), np.ones(2), 0.5, tanh)
        >>> both = combine([net, net], np.array([2.0, 3.0]), c=1.0)
        >>> both(np.zeros((1, 1))).tolist()  # 2 · 0.5 + 3 · 0.5 + 1
        [[3.5]]
    """
    must = f"be one number for each network ({len(nets)})"
    check(len(nets) == len(factors) > 0, "combine: factors", must, len(factors))
    W, b, a, biases, phi = zip(*map(parts, nets), strict=True)
    check(len({*map(id, phi)}) == 1, "combine: nets", "have the same activation", phi)
    inputs = {one.shape[1] for one in W}
    check(len(inputs) == 1, "combine: nets", "have the same number of inputs", inputs)
    return shallow(
        np.concatenate(W),
        np.concatenate(b),
        np.concatenate([alpha * one for alpha, one in zip(factors, a, strict=True)]),
        float(factors @ np.array(biases) + c),
        phi[0],
    )


def sup_distance(
    f: Function,
    g: Function,
    lipschitz: float,
    low: float = 0.0,
    high: float = 1.0,
    points: int = 1001,
) -> tuple[float, float]:
    r"""Bound the uniform distance of two functions on an interval from both sides.

    On a grid of spacing :math:`2\delta` no point is farther than :math:`\delta` from the
    grid, so

    .. math:: \max_{\text{grid}} |f - g| \le \lVert f - g \rVert
              \le \max_{\text{grid}} |f - g| + \Lambda \delta .

    Args:
        f: a function of arrays.
        g: another.
        lipschitz: a constant :math:`\Lambda` for the difference :math:`f - g`.
        low: left end of the interval.
        high: right end.
        points: size of the grid.

    Returns:
        A lower and an upper bound.

    Example:
        >>> sup_distance(np.square, lambda x: x, lipschitz=1.0, points=5)  # truly 1/4
        (0.25, 0.375)
    """
    check_whole("sup_distance: points", points, 2)
    check(low < high, "sup_distance: low", f"be less than high ({high})", low)
    check_between("sup_distance: lipschitz", lipschitz, 0, np.inf, "[)")
    x = np.linspace(low, high, points)
    delta = (high - low) / (points - 1) / 2
    seen = np.abs(_values("sup_distance", f, x) - _values("sup_distance", g, x))
    return float(seen.max()), float(seen.max() + lipschitz * delta)


def bernstein(f: Function, k: int, x: Float[ndarray, "s"]) -> Float[ndarray, "s"]:
    r"""Return the Bernstein polynomial of degree ``k`` at points of :math:`[0, 1]`.

    .. math:: B_k f(x) = \sum_{j=0}^{k} \binom{k}{j} x^j (1 - x)^{k-j} f(j/k)

    It is the mean of :math:`f(S/k)` for the number ``S`` of heads in ``k`` tosses of a
    coin with probability ``x``.

    Equals ``scipy.interpolate.BPoly`` with the coefficients :math:`f(j/k)`.

    Args:
        f: a function of arrays.
        k: degree.
        x: points between 0 and 1.

    Example:
        >>> bernstein(np.square, 2, np.array([0.5])).round(3).tolist()  # x² + x(1-x)/k
        [0.375]
    """
    check_whole("bernstein: k", k, 1)
    check_shape("bernstein: x", np.asarray(x), None)
    check(bool(((x >= 0) & (x <= 1)).all()), "bernstein: x", "lie between 0 and 1", x)
    j = np.arange(k + 1)
    return binom.pmf(j, k, x[:, None]) @ _values("bernstein", f, j / k)


def sigmoid_to_tanh(net: Network) -> Network:
    r"""Turn a network of logistic units into the same function of as many tanh units.

    .. math:: \sigma(z) = \tfrac12 + \tfrac12 \tanh(\tfrac12 z)

    Example:
        >>> net = shallow(np.array([[2.0]]), np.zeros(1), np.array([6.0]), 0.0, sigmoid)
        >>> same = parts(sigmoid_to_tanh(net))
        >>> same.W.tolist(), same.a.tolist(), same.c  # 6 σ(2x) = 3 + 3 tanh(x)
        ([[1.0]], [3.0], 3.0)
    """
    W, b, a, c, phi = parts(net)
    must = "be dlcore.feedforward.activations.sigmoid"
    check(phi is sigmoid, "sigmoid_to_tanh: the activation", must, phi)
    return shallow(W / 2, b / 2, a / 2, c + float(a.sum()) / 2, tanh)


def staircase(
    f: Function, m: int, steepness: float, phi: Function = sigmoid
) -> Network:
    r"""Build ``m`` units that approximate a function on :math:`[0, 1]` by steps.

    .. math:: g(x) = f(0) + \sum_{i=1}^{m} \bigl( f(\tfrac{i}{m}) - f(\tfrac{i-1}{m})
              \bigr)\, \varphi\bigl( \lambda (x - t_i) \bigr), \quad
              t_i = \frac{i - \frac12}{m}

    Args:
        f: a function of arrays.
        m: number of units.
        steepness: :math:`\lambda`.
        phi: an activation that tends to 0 on the left and to 1 on the right.

    Example:
        >>> net = staircase(np.square, 2, 1.0, step)
        >>> net(np.array([[0.0], [0.5], [1.0]])).ravel().tolist()
        [0.0, 0.25, 1.0]
    """
    check_whole("staircase: m", m, 1)
    check(steepness > 0, "staircase: steepness", "be positive", steepness)
    ends = phi(np.array([-_FAR, _FAR]))
    ok, hint = np.allclose(ends, [0, 1], rtol=0, atol=0.01), "See sigmoid_to_tanh."
    check(ok, "staircase: phi", "go from 0 on the left to 1 on the right", ends, hint)
    heights = _values("staircase", f, np.arange(m + 1) / m)
    t = (np.arange(1, m + 1) - 0.5) / m
    W = np.full((m, 1), float(steepness))
    return shallow(W, -steepness * t, np.diff(heights), float(heights[0]), phi)


def power(k: int, h: float, phi: Function, b: float, derivative: float) -> Network:
    r"""Build ``k`` units on the line that approximate :math:`x^k`.

    .. math:: D_h(x) = \frac{1}{h^k \varphi^{(k)}(b)} \sum_{j=0}^{k} (-1)^{k-j}
              \binom{k}{j}\, \varphi(j h x + b)

    The term with :math:`j = 0` is the output's bias.

    Args:
        k: the power.
        h: step of the difference; the smaller, the closer, until rounding takes over.
        phi: activation.
        b: where its ``k``-th derivative is taken.
        derivative: :math:`\varphi^{(k)}(b)`, which must not be zero.

    Example:
        >>> power(2, 1e-4, np.exp, 0.0, 1.0)(np.array([[3.0]])).round(2).tolist()
        [[9.0]]
    """
    check_whole("power: k", k, 1)
    check(k <= 1000, "power: k", "be at most 1000", k, "Its weights are no floats.")
    check(h > 0, "power: h", "be positive", h)
    check(derivative != 0, "power: derivative", "not be zero", 0, "Choose another b.")
    j = np.arange(k + 1)
    binomials = np.array([float(comb(k, i)) for i in j])
    with np.errstate(over="ignore", divide="ignore"):  # Dense refuses ∞
        a = (-1.0) ** (k - j) * binomials / (np.float64(h) ** k * derivative)
    c = a[0] * phi(np.array([float(b)]))[0]
    return shallow(h * j[1:, None], np.full(k, float(b)), a[1:], float(c), phi)


def uniform_fit(
    H: Float[ndarray, "s m"], y: Float[ndarray, "s"]
) -> tuple[Float[ndarray, "m"], float]:
    r"""Return the best coefficients in the uniform distance, and that distance.

    .. math:: \min_{a, t}\; t \quad \text{such that} \quad
              -t \le y_i - (Ha)_i \le t

    Columns and ``y`` are scaled to the maximum 1 first. Then the columns are replaced by
    an orthonormal basis of their span, because units resemble each other; directions with
    singular values below ``DEPENDENT`` times the largest are dropped.

    Args:
        H: one row per point, one column per unit.
        y: the values to approximate.

    Returns:
        The coefficients :math:`a` and the largest error :math:`t`.

    Example:
        >>> a, t = uniform_fit(np.ones((3, 1)), np.array([0.0, 1.0, 4.0]))
        >>> a.round(3).tolist(), round(t, 3)  # the best constant
        ([2.0], 2.0)
    """
    check_matrix("uniform_fit: H", H, "have one row per point")
    check_shape("uniform_fit: y", y, len(H))
    check_finite("uniform_fit: H and y", H, y)
    scale, height = np.abs(H).max(axis=0), np.abs(y).max()
    scale, height = np.where(scale > 0, scale, 1), height if height > 0 else 1.0
    U, size, Vt = np.linalg.svd(H / scale, full_matrices=False)
    kept = size > DEPENDENT * size[0]
    U, ones = U[:, kept], np.ones((len(H), 1))
    answer = linprog(
        np.append(np.zeros(U.shape[1]), 1.0),
        A_ub=np.block([[-U, -ones], [U, -ones]]),
        b_ub=np.concatenate([-y, y]) / height,
        bounds=(None, None),
    )
    check(answer.success, "uniform_fit: linprog", "find a solution", answer.message)
    u = height * answer.x[:-1]
    a = Vt[kept].T @ (u / size[kept]) / scale
    return a, float(np.abs(y - U @ u).max())


def barron_constant(n: int) -> float:
    r"""Return Barron's constant of the bell :math:`f(x) = e^{-\lVert x \rVert^2 / 2}`.

    Its Fourier transform is the density of :math:`\mathcal{N}(0, I)`, hence

    .. math:: C_f = \int \lVert u \rVert\, |\hat f(u)|\, du = \mathbb{E} \lVert u \rVert
              = \sqrt2\; \frac{\Gamma(\frac{n+1}{2})}{\Gamma(\frac n2)} .

    Equals ``scipy.stats.chi.mean``.

    Args:
        n: dimension.

    Example:
        >>> round(barron_constant(1) ** 2 * np.pi, 3)
        2.0
    """
    check_whole("barron_constant: n", n, 1)
    return float(np.sqrt(2) * np.exp(gammaln((n + 1) / 2) - gammaln(n / 2)))


def barron_sample(
    n: int, m: int, r: float, rng: Generator, centre: Float[ndarray, "n"] | None = None
) -> Network:
    r"""Draw ``m`` step units that on average sum to a bell on the ball of radius ``r``.

    The bell :math:`f(x) = e^{-\lVert x - p \rVert^2 / 2}` around the centre :math:`p` has
    :math:`\hat f(u)` with the phase :math:`-u \cdot p`. Directions :math:`v` are uniform,
    lengths :math:`\rho` have the density proportional to :math:`\rho^n e^{-\rho^2/2}`,
    places :math:`t` are uniform on :math:`[-r, r]`, and

    .. math:: f(x) = f(0) - \mathbb{E}\bigl[ 2 r C_f \sin(\rho t - \rho\, v \cdot p)
              \operatorname{sgn}(t)\, \mathbb{1}[ \operatorname{sgn}(t) (v \cdot x - t) > 0 ]
              \bigr] .

    Args:
        n: dimension.
        m: number of units.
        r: radius of the ball, around zero.
        rng: source of randomness.
        centre: :math:`p`; zero, if it is left out.

    Example:
        >>> net = barron_sample(2, 10, 1.0, np.random.default_rng(0))
        >>> net(np.zeros((1, 2))).tolist()  # exact in the middle
        [[1.0]]
    """
    check_whole("barron_sample: m", m, 1)
    check(r > 0, "barron_sample: r", "be positive", r)
    C = barron_constant(n)
    p = np.zeros(n) if centre is None else centre
    check_shape("barron_sample: centre", p, n)
    v = rng.normal(size=(m, n))
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    rho = np.sqrt(rng.chisquare(n + 1, m))
    t = rng.uniform(-r, r, m)
    a = -2 * r * C * np.sin(rho * (t - v @ p)) * np.sign(t) / m
    c = float(np.exp(-(p @ p) / 2))
    return shallow(np.sign(t)[:, None] * v, -np.abs(t), a, c, step)
