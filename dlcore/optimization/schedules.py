r"""Schedules: how the step size changes while one trains.

A schedule is a function of the number :math:`t = 0, 1, 2, \dots` of steps (or epochs) done,
and gives the factor by which the first step size is multiplied:
``optimizer.lr = lr * schedule(t)``.
"""

from collections.abc import Callable
from math import cos, pi
from typing import TypeAlias

from dlcore.checks import check, check_between, check_positive, check_whole

__all__ = [
    "Schedule",
    "constant",
    "cosine",
    "exponential",
    "inverse",
    "linear",
    "steps",
    "warmup",
]

Schedule: TypeAlias = Callable[[int], float]


def constant() -> Schedule:
    """Keep the step size."""
    return _from_zero(lambda t: 1.0)


def steps(every: int, factor: float) -> Schedule:
    r"""Multiply by ``factor`` after each ``every`` steps: :math:`f^{\lfloor t/k \rfloor}`."""
    check_whole("steps: every", every, 1)
    check_positive("steps: factor", factor)
    return _from_zero(lambda t: factor ** (t // every))


def exponential(factor: float) -> Schedule:
    r"""Multiply by ``factor`` in each step: :math:`f^t`."""
    check_positive("exponential: factor", factor)
    return steps(1, factor)


def inverse(power: float, scale: float = 1.0) -> Schedule:
    r"""Fall like a power of the time: :math:`(1 + t/c)^{-a}`.

    Robbins and Monro's conditions hold for powers :math:`a` in (1/2, 1].
    """
    check_positive("inverse: power", power)
    check_positive("inverse: scale", scale)
    return _from_zero(lambda t: (1 + t / scale) ** -power)


def linear(total: int, flat: float = 0.0) -> Schedule:
    r"""Stay at 1 for the share ``flat`` of the steps, then fall on a line to 0.

    .. math:: \min(1, (1 - t/T) / (1 - f)), \quad t \le T
    """
    check_whole("linear: total", total, 1)
    check_between("linear: flat", flat, 0, 1, "[)")
    return _from_zero(lambda t: min(1.0, (1 - min(t, total) / total) / (1 - flat)))


def cosine(total: int, last: float = 0.0) -> Schedule:
    r"""Fall from 1 to ``last`` like half a cosine, and stay there.

    .. math:: f_T + (1 - f_T) \tfrac12 (1 + \cos(\pi t / T)), \quad t \le T
    """
    check_whole("cosine: total", total, 1)
    check_between("cosine: last", last, 0, 1)
    return _from_zero(
        lambda t: last + (1 - last) * (1 + cos(pi * min(t, total) / total)) / 2
    )


def warmup(total: int, then: Schedule) -> Schedule:
    """Rise in equal steps to 1, which step ``total`` has; then start another schedule."""
    check_whole("warmup: total", total, 1)
    check(callable(then), "warmup: then", "be a schedule", then)
    return _from_zero(lambda t: (t + 1) / (total + 1) if t < total else then(t - total))


def _from_zero(factor: Schedule) -> Schedule:
    """Return a schedule that refuses a time before the first step."""

    def schedule(t: int) -> float:
        check(t >= 0, "schedule: t", "be 0 or more", t)
        return factor(t)

    return schedule
