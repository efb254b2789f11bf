r"""Landscapes: functions small enough to look at, on which optimizers can be watched."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import check, check_finite, check_whole
from dlcore.optimization.optimizers import Optimizer


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
    """

    name: str
    n: int
    value: Callable[[ndarray], ndarray]
    gradient: Callable[[ndarray], ndarray]
    hessian: Callable[[ndarray], ndarray]
    lowest: float = 0.0

    def __call__(self, x: Float[ndarray, "*points n"]) -> Float[ndarray, "*points"]:
        """Return the values at points along the last axis."""
        x = np.asarray(x)
        check(
            x.shape[-1:] == (self.n,),
            f"{self.name}: points",
            f"have {self.n} coordinates, along the last axis",
            f"shape {x.shape}",
        )
        return np.asarray(self.value(x))


def quadratic(curvatures: Float[ndarray, "n"]) -> Landscape:
    r"""Return :math:`J(x) = \tfrac12 \sum_i c_i x_i^2`, a bowl if all :math:`c_i > 0`."""
    c = np.asarray(curvatures, dtype=float)
    check(
        c.ndim == 1 and c.size > 0,
        "quadratic: curvatures",
        "be a list of at least one number",
        f"shape {c.shape}",
    )
    check_finite("quadratic: curvatures", c)
    return Landscape(
        "quadratic",
        len(c),
        lambda x: (c * x**2).sum(axis=-1) / 2,
        lambda x: c * x,
        lambda _: np.diag(c),
        0.0 if (c >= 0).all() else -np.inf,
    )


def chain(n: int) -> Landscape:
    r"""Return Nesterov's hard quadratic, on which one step moves one more coordinate.

    .. math::
        J(x) = \tfrac18 \Bigl(x_1^2 + \sum_{i<n} (x_i - x_{i+1})^2 + x_n^2\Bigr)
               - \tfrac14 x_1

    It is convex and 1-smooth, with minimiser :math:`x_i = 1 - i/(n+1)`.
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


rosenbrock = Landscape(
    "banana",
    2,
    lambda x: (1 - x[..., 0]) ** 2 + 100 * (x[..., 1] - x[..., 0] ** 2) ** 2,
    _rosenbrock_gradient,
    _rosenbrock_hessian,
)

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


plateau = Landscape(
    "plateau",
    2,
    lambda x: 1 - 1 / (1 + (x**2).sum(axis=-1) ** 2),
    _plateau_gradient,
    _plateau_hessian,
)


wavy = Landscape(
    "wavy",
    1,
    lambda x: x[..., 0] ** 2 + 3 * np.sin(x[..., 0]) ** 2,
    lambda x: 2 * x + 3 * np.sin(2 * x),
    lambda x: np.array([[2 + 6 * np.cos(2 * x[0])]]),
)


def descend(
    gradient: Callable[[ndarray], ndarray],
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
    """
    check_whole("descend: steps", steps, 0)
    x = np.array(start, dtype=float)
    check(x.ndim == 1, "descend: start", "be a vector", f"shape {x.shape}")
    check_finite("descend: start", x)
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
