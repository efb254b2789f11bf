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

#: The factor of the first step size, as a function of the number of steps done.
Schedule: TypeAlias = Callable[[int], float]


def constant() -> Schedule:
    """Keep the step size constant: the factor is always 1.

    Example:
        >>> [constant()(t) for t in (0, 10, 1000)]
        [1.0, 1.0, 1.0]
    """
    return lambda t: 1.0


def steps(every: int, factor: float) -> Schedule:
    r"""Multiply the step size by ``factor`` once in ``every`` steps.

    After :math:`t` steps the factor is :math:`f^{\lfloor t/k \rfloor}`.

    Equals ``torch.optim.lr_scheduler.StepLR``.

    Args:
        every: :math:`k`, steps between two changes.
        factor: :math:`f`.

    Example:
        >>> [steps(every=2, factor=0.5)(t) for t in range(6)]
        [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    """
    check_whole("steps: every", every, 1)
    check_positive("steps: factor", factor)
    return lambda t: factor ** (t // every)


def exponential(factor: float) -> Schedule:
    """Multiply the step size by ``factor`` in each step: :math:`f^t`.

    Equals ``torch.optim.lr_scheduler.ExponentialLR``.

    Args:
        factor: :math:`f`.

    Example:
        >>> [exponential(0.5)(t) for t in range(4)]
        [1.0, 0.5, 0.25, 0.125]
    """
    check_positive("exponential: factor", factor)
    return steps(1, factor)


def inverse(power: float, scale: float = 1.0) -> Schedule:
    """Decay the step size like a power of the time: :math:`(1 + t/c)^{-a}`.

    Robbins and Monro's conditions hold for powers :math:`a` in (1/2, 1].

    Args:
        power: :math:`a`.
        scale: :math:`c`, the time after which the fall begins to show.

    Example:
        >>> [inverse(power=0.5, scale=2.0)(t) for t in (0, 6, 30)]
        [1.0, 0.5, 0.25]
    """
    check_positive("inverse: power", power)
    check_positive("inverse: scale", scale)
    return lambda t: (1 + t / scale) ** -power


def linear(total: int, flat: float = 0.0) -> Schedule:
    r"""Keep the step size for the share ``flat`` of the steps, then fall linearly to 0.

    The factor is

    .. math:: \min(1, (1 - t/T) / (1 - f)), \quad t \le T

    Equals ``torch.optim.lr_scheduler.LinearLR`` from 1 to 0, where ``flat`` is 0.

    Args:
        total: number of steps :math:`T`; from there on the factor is 0.
        flat: share :math:`f` of the steps before the fall, in [0, 1).

    Example:
        >>> [linear(total=8, flat=0.5)(t) for t in range(0, 10, 2)]
        [1.0, 1.0, 1.0, 0.5, 0.0]
    """
    check_whole("linear: total", total, 1)
    check_between("linear: flat", flat, 0, 1, "[)")
    return lambda t: min(1.0, (1 - min(t, total) / total) / (1 - flat))


def cosine(total: int, last: float = 0.0) -> Schedule:
    r"""Decay the step size from 1 to ``last`` like half a cosine, and stay there.

    The factor is

    .. math:: f_T + (1 - f_T) \tfrac12 (1 + \cos(\pi t / T)), \quad t \le T

    Equals ``torch.optim.lr_scheduler.CosineAnnealingLR`` in the first :math:`T` steps.

    Args:
        total: number of steps :math:`T`.
        last: :math:`f_T`, the factor at the end, in [0, 1].

    Example:
        >>> [round(cosine(total=4)(t), 3) for t in range(6)]
        [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    check_whole("cosine: total", total, 1)
    check_between("cosine: last", last, 0, 1)
    return lambda t: last + (1 - last) * (1 + cos(pi * min(t, total) / total)) / 2


def warmup(total: int, then: Schedule) -> Schedule:
    """Warm up: rise in equal steps to 1, then follow another schedule.

    Step ``total`` is the first with the factor 1.

    Args:
        total: number of steps below 1.
        then: the schedule that follows; its time starts at 0.

    Example:
        >>> [warmup(total=3, then=exponential(0.5))(t) for t in range(6)]
        [0.25, 0.5, 0.75, 1.0, 0.5, 0.25]
    """
    check_whole("warmup: total", total, 1)
    check(callable(then), "warmup: then", "be a schedule", then)
    return lambda t: (t + 1) / (total + 1) if t < total else then(t - total)
