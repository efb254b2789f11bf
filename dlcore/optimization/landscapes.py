r"""Landscapes: functions small enough to look at, and what gradient descent does on them.

What bounds its paths is measured: smoothness, the constant of Polyak and Łojasiewicz, and
the steps that it needs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_finite, check_positive, check_shape, check_whole
from dlcore.optimization.optimizers import Optimizer

__all__ = [
    "Gradient",
    "Landscape",
    "chain",
    "descend",
    "pl_constant",
    "plateau",
    "quadratic",
    "rosenbrock",
    "saddle",
    "smoothness",
    "steps_to_critical",
    "wavy",
]

#: The gradient of a function, as a function of a point.
Gradient = Callable[[ndarray], ndarray]

_NEAR = 1e-5  # how far to look for the change of a gradient
_ROUNDING = (
    1e-12  # so small a difference, relative to its terms, has four digits or fewer
)


@dataclass(frozen=True, eq=False)
class Landscape:
    r"""A function :math:`J` of points with :math:`n` coordinates, and its gradient.

    Attributes:
        name: what readers call it.
        n: number of coordinates.
        value: :math:`J`, of points along the last axis.
        gradient: :math:`\nabla J`, of the shape of the points.
        hessian: :math:`\nabla^2 J` of one point.
        lowest: the least value of :math:`J`; :math:`-\infty` where there is none.

    Example:
        >>> x = np.zeros(2)
        >>> float(rosenbrock(x)), rosenbrock.gradient(x).tolist()
        (1.0, [-2.0, 0.0])
    """

    name: str
    n: int
    value: Callable[[ndarray], ndarray]
    gradient: Gradient
    hessian: Callable[[ndarray], ndarray]
    lowest: float = 0.0

    def __call__(self, x: Float[ndarray, "*points n"]) -> Float[ndarray, "*points"]:
        """Return the values at points along the last axis."""
        x = np.asarray(x)
        must = f"have {self.n} coordinates, along the last axis"
        ok, got = x.shape[-1:] == (self.n,), f"shape {x.shape}"
        check(ok, f"{self.name}: points", must, got)
        return np.asarray(self.value(x))


def quadratic(curvatures: Float[ndarray, "n"]) -> Landscape:
    r"""Return :math:`J(x) = \tfrac12 \sum_i c_i x_i^2`, a bowl if all :math:`c_i > 0`.

    Args:
        curvatures: :math:`c_1, \dots, c_n`, the eigenvalues of the Hessian.

    Example:
        >>> bowl, x = quadratic(np.array([1.0, 10.0])), np.array([2.0, 1.0])
        >>> float(bowl(x)), bowl.gradient(x).tolist()
        (7.0, [2.0, 10.0])
    """
    c = _vector("quadratic: curvatures", curvatures)
    return Landscape(
        "quadratic",
        len(c),
        lambda x: (c * x**2).sum(axis=-1) / 2,
        lambda x: c * x,
        lambda _: np.diag(c),
        0.0 if (c >= 0).all() else -np.inf,
    )


def chain(n: int) -> Landscape:
    r"""Return Nesterov's worst quadratic: each gradient step moves one more coordinate.

    .. math::
        J(x) = \tfrac18 \Bigl(x_1^2 + \sum_{i<n} (x_i - x_{i+1})^2 + x_n^2\Bigr)
               - \tfrac14 x_1

    It is convex and 1-smooth, with minimiser :math:`x_i = 1 - i/(n+1)`.

    Args:
        n: number of coordinates.

    Example:
        >>> chain(3).gradient(np.zeros(3)).tolist()
        [-0.25, 0.0, 0.0]
    """
    check_whole("chain: n", n, 1)
    A = (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)) / 4
    first = np.eye(n)[0] / 4
    return Landscape(
        "chain",
        n,
        lambda x: ((x @ A) * x).sum(axis=-1) / 2 - x @ first,
        lambda x: x @ A - first,
        lambda _: A,
        -n / (8 * (n + 1)),
    )


def _rosenbrock_hessian(x: ndarray) -> ndarray:
    a, b = x
    return np.array([[2 - 400 * b + 1200 * a**2, -400 * a], [-400 * a, 200]])


def _rosenbrock_gradient(x: ndarray) -> ndarray:
    a, b = x[..., 0], x[..., 1]
    return np.stack([-2 * (1 - a) - 400 * a * (b - a**2), 200 * (b - a**2)], axis=-1)


#: Rosenbrock's banana, :math:`(1 - x_1)^2 + 100 (x_2 - x_1^2)^2`: a curved valley
#: with the minimum at (1, 1).
rosenbrock = Landscape(
    "banana",
    2,
    lambda x: (1 - x[..., 0]) ** 2 + 100 * (x[..., 1] - x[..., 0] ** 2) ** 2,
    _rosenbrock_gradient,
    _rosenbrock_hessian,
)

#: :math:`x_1^2 - x_2^2 + x_2^4 / 4`: a saddle point at the origin, between the minima
#: at :math:`x_2 = \pm\sqrt 2`.
saddle = Landscape(
    "saddle",
    2,
    lambda x: x[..., 0] ** 2 - x[..., 1] ** 2 + x[..., 1] ** 4 / 4,
    lambda x: np.stack([2 * x[..., 0], x[..., 1] ** 3 - 2 * x[..., 1]], axis=-1),
    lambda x: np.diag([2.0, 3 * x[1] ** 2 - 2]),
    -1.0,
)


def _plateau_gradient(x: ndarray) -> ndarray:
    q = (x**2).sum(axis=-1, keepdims=True)
    return 4 * x * q / (1 + q**2) ** 2


def _plateau_hessian(x: ndarray) -> ndarray:
    q = float(x @ x)
    slope = 4 * q / (1 + q**2) ** 2
    bend = 8 * (1 - 3 * q**2) / (1 + q**2) ** 3
    return slope * np.eye(2) + bend * np.outer(x, x)


#: :math:`1 - 1 / (1 + \lVert x \rVert^4)`: flat far from its minimum at the origin.
plateau = Landscape(
    "plateau",
    2,
    lambda x: 1 - 1 / (1 + (x**2).sum(axis=-1) ** 2),
    _plateau_gradient,
    _plateau_hessian,
)


#: :math:`x^2 + 3 \sin^2 x`: not convex, yet it fulfils the Polyak–Łojasiewicz
#: inequality.
wavy = Landscape(
    "wavy",
    1,
    lambda x: x[..., 0] ** 2 + 3 * np.sin(x[..., 0]) ** 2,
    lambda x: 2 * x + 3 * np.sin(2 * x),
    lambda x: np.array([[2 + 6 * np.cos(2 * x[0])]]),
)


def descend(
    gradient: Gradient,
    start: Float[ndarray, "n"],
    make: Callable[[list[ndarray]], Optimizer],
    steps: int,
) -> Float[ndarray, "_ n"]:
    """Return the points that an optimizer visits.

    Args:
        gradient: of the function, at one point.
        start: the first point.
        make: builds the optimizer of a list of arrays, as ``lambda p: GD(p, lr=0.1)``.
        steps: how many to take; fewer if a point is not finite any more, and the path
            then ends before it.

    Example:
        >>> from dlcore.optimization.optimizers import GD
        >>> path = descend(lambda x: x, np.array([8.0]), lambda p: GD(p, lr=0.5), 3)
        >>> path.ravel().tolist()
        [8.0, 4.0, 2.0, 1.0]
    """
    check_whole("descend: steps", steps, 0)
    x = _vector("descend: start", start).copy()
    optimizer = make([x])
    moves = any(p is x for p in optimizer.parameters)
    check(moves, "descend: make", "build the optimizer of its argument", "another")
    path = [x.copy()]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            optimizer.step([np.asarray(gradient(x), dtype=float)])
            if not np.isfinite(x).all():
                break
            path.append(x.copy())
    return np.array(path)


def smoothness(
    gradient: Gradient, x: Float[ndarray, "n"], rng: Generator, steps: int = 100
) -> float:
    r"""Return the largest curvature at a point, :math:`\lVert \nabla^2 J(x) \rVert`.

    Power iteration, which needs products with the Hessian only, and these are
    differences of gradients:

    .. math::
        Hv &\approx \frac{\nabla J(x + hv) - \nabla J(x - hv)}{2h} \\
        v  &\leftarrow Hv / \lVert Hv \rVert

    The result approaches the norm from below, up to rounding, and does not tell how
    near it has come: compare with twice the steps. Gradients are taken at the distance
    :math:`h = 10^{-5} \max(1, \max_i |x_i|)`, so the curvature must hardly change
    there.

    Args:
        gradient: :math:`\nabla J`, of one point.
        x: the point.
        rng: source of the first direction.
        steps: number of products.

    Example:
        >>> bowl, rng = quadratic(np.array([1.0, 10.0])), np.random.default_rng(0)
        >>> round(smoothness(bowl.gradient, np.zeros(2), rng), 3)
        10.0
    """
    x = _vector("smoothness: x", x)
    check_whole("smoothness: steps", steps, 1)
    h = _NEAR * max(1.0, float(np.abs(x).max()))
    v, norm = rng.normal(size=x.shape), 0.0
    v /= np.linalg.norm(v)
    for _ in range(steps):
        Hv = (_at(gradient, x + h * v) - _at(gradient, x - h * v)) / (2 * h)
        check_finite(f"smoothness: the gradient, {h:g} from x,", Hv)
        norm = float(np.linalg.norm(Hv))
        if norm == 0:
            break
        v = Hv / norm
    return norm


def pl_constant(
    values: Float[ndarray, "points"],
    gradients: Float[ndarray, "points n"],
    lowest: float,
) -> float:
    r"""Return the largest Polyak–Łojasiewicz constant :math:`\mu` at some points.

    .. math:: \mu = \min_x \frac{\lVert \nabla J(x) \rVert^2}{2\, (J(x) - J^\star)}

    Between the points the quotient may be smaller: this is an upper bound of
    :math:`\mu` for all points.

    Args:
        values: :math:`J` at the points.
        gradients: :math:`\nabla J` at the points.
        lowest: :math:`J^\star`. Points with this value, up to rounding, fulfil the
            inequality for every :math:`\mu`, and are left out.

    Example:
        >>> bowl, X = quadratic(np.array([1.0, 10.0])), 2 * np.eye(2)
        >>> pl_constant(bowl(X), bowl.gradient(X), lowest=0.0)  # the least curvature
        1.0
    """
    values = np.asarray(values, dtype=float)
    gradients = np.asarray(gradients, dtype=float)
    check_shape("pl_constant: gradients", gradients, None, None)
    check_shape("pl_constant: values", values, len(gradients))
    check_finite("pl_constant: input", values, gradients, lowest)
    gap, rounding = values - lowest, _ROUNDING * abs(lowest)
    above = gap > rounding
    ok = bool((gap >= -rounding).all() and above.any())
    must = f"lie nowhere below the lowest, {lowest}, and somewhere above"
    check(ok, "pl_constant: values", must, min(values, default="none"))
    squares = (gradients**2).sum(axis=1)
    return float((squares[above] / (2 * gap[above])).min())


def steps_to_critical(
    gradient: Gradient,
    start: Float[ndarray, "n"],
    lr: float,
    eps: float,
    most: int = 100_000,
) -> int:
    r"""Count the steps of gradient descent to a nearly critical point.

    That is a point with :math:`\lVert \nabla J(\theta_t) \rVert \le \varepsilon`.

    Args:
        gradient: :math:`\nabla J`, of one point.
        start: :math:`\theta_0`.
        lr: step size :math:`\eta`.
        eps: :math:`\varepsilon`.
        most: refuse to take more steps than this.

    Example:
        >>> steps_to_critical(lambda x: x, np.array([8.0]), lr=0.5, eps=1.0)
        3
    """
    x = _vector("steps_to_critical: start", start)
    check_positive("steps_to_critical: lr", lr)
    check_positive("steps_to_critical: eps", eps)
    check_whole("steps_to_critical: most", most, 0)
    for t in range(most + 1):
        g = _at(gradient, x)
        norm = float(np.linalg.norm(g))
        what, got = "steps_to_critical: the gradient", f"{norm} after {t} steps"
        check(norm < inf, what, "stay finite", got, "Take a smaller lr.")
        if norm <= eps:
            return t
        x = x - lr * g
    raise ValueError(
        f"steps_to_critical: the gradient must fall to {eps} in {most} steps; got {norm}. "
        "Take another lr, or allow more steps."
    )


def _vector(what: str, x: ndarray) -> ndarray:
    """Return one point, or what has a number per coordinate, as floats."""
    x = np.asarray(x, dtype=float)
    ok = x.ndim == 1 and x.size > 0
    check(ok, what, "be a vector, not empty", f"shape {x.shape}")
    check_finite(what, x)
    return x


def _at(gradient: Gradient, x: ndarray) -> ndarray:
    """Return the gradient at a point; refuse one of another shape."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        g = np.asarray(gradient(x), dtype=float)
    check_shape("gradient", g, *x.shape)
    return g
