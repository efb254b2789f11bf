r"""Constants of gradient descent, measured: smoothness, the PL constant, steps needed."""

from collections.abc import Callable
from math import inf

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_finite, check_whole

Gradient = Callable[[ndarray], ndarray]

NEAR = 1e-5  # how far to look for the change of a gradient
ROUNDING = (
    1e-12  # a difference so small, relative to its terms, has four digits or fewer
)


def smoothness(
    gradient: Gradient, x: Float[ndarray, "n"], rng: Generator, steps: int = 100
) -> float:
    r"""Return the largest curvature at a point, :math:`\lVert \nabla^2 J(x) \rVert`.

    Power iteration, which needs products with the Hessian only, and these are differences
    of gradients:

    .. math::
        Hv &\approx \frac{\nabla J(x + hv) - \nabla J(x - hv)}{2h} \\
        v  &\leftarrow Hv / \lVert Hv \rVert

    The result approaches the norm from below, up to rounding, and does not tell how near it
    has come: compare with twice the steps. Gradients are taken at the distance
    :math:`h = 10^{-5} \max(1, \max_i |x_i|)`, so the curvature must hardly change there.

    Args:
        gradient: :math:`\nabla J`, of one point.
        x: the point.
        rng: source of the first direction.
        steps: number of products.
    """
    x = _point("smoothness: x", x)
    check_whole("smoothness: steps", steps, 1)
    h = NEAR * max(1.0, float(np.abs(x).max()))
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
    r"""Return the largest :math:`\mu` of the Polyak–Łojasiewicz inequality at some points.

    .. math:: \mu = \min_x \frac{\lVert \nabla J(x) \rVert^2}{2\, (J(x) - J^\star)}

    Between the points the quotient may be smaller: this is an upper bound of :math:`\mu`
    for all points.

    Args:
        values: :math:`J` at the points.
        gradients: :math:`\nabla J` at the points.
        lowest: :math:`J^\star`. Points with this value, up to rounding, fulfil the
            inequality for every :math:`\mu`, and are left out.
    """
    values = np.asarray(values, dtype=float)
    gradients = np.asarray(gradients, dtype=float)
    check(
        gradients.ndim == 2 and values.shape == gradients.shape[:1],
        "pl_constant: values and gradients",
        "have the shapes (points,) and (points, n)",
        f"{values.shape} and {gradients.shape}",
    )
    check_finite("pl_constant: input", values, gradients, lowest)
    gap, rounding = values - lowest, ROUNDING * abs(lowest)
    above = gap > rounding
    check(
        bool((gap >= -rounding).all() and above.any()),
        "pl_constant: values",
        f"lie nowhere below the lowest, {lowest}, and somewhere above",
        f"{values.min() if values.size else 'none'}",
    )
    squares = (gradients**2).sum(axis=1)
    return float((squares[above] / (2 * gap[above])).min())


def steps_to_critical(
    gradient: Gradient,
    start: Float[ndarray, "n"],
    lr: float,
    eps: float,
    most: int = 100_000,
) -> int:
    r"""Count the steps until :math:`\lVert \nabla J(\theta_t) \rVert \le \varepsilon`.

    Args:
        gradient: :math:`\nabla J`, of one point.
        start: :math:`\theta_0`.
        lr: step size :math:`\eta`.
        eps: :math:`\varepsilon`.
        most: refuse to take more steps than this.
    """
    x = _point("steps_to_critical: start", start)
    check(
        bool(0 < lr < inf),
        "steps_to_critical: lr",
        "be positive and finite",
        lr,
    )
    check(
        bool(0 < eps < inf),
        "steps_to_critical: eps",
        "be positive and finite",
        eps,
    )
    check_whole("steps_to_critical: most", most, 0)
    for t in range(most + 1):
        g = _at(gradient, x)
        norm = float(np.linalg.norm(g))
        check(
            norm < inf,
            "steps_to_critical: the gradient",
            "stay finite",
            f"{norm} after {t} steps",
            "Take a smaller lr.",
        )
        if norm <= eps:
            return t
        x = x - lr * g
    raise ValueError(
        f"steps_to_critical: the gradient must fall to {eps} in {most} steps; got {norm}. "
        "Take another lr, or allow more steps."
    )


def _point(what: str, x: ndarray) -> ndarray:
    """Return one point as floating-point numbers."""
    x = np.asarray(x, dtype=float)
    check(x.ndim == 1 and x.size > 0, what, "be a vector", f"shape {x.shape}")
    check_finite(what, x)
    return x


def _at(gradient: Gradient, x: ndarray) -> ndarray:
    """Return the gradient at a point; refuse one of another shape."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        g = np.asarray(gradient(x), dtype=float)
    check(g.shape == x.shape, "gradient", f"have shape {x.shape}", g.shape)
    return g
