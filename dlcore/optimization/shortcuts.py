r"""Shortcuts: what a part of a model is given goes past it, too.

A part computes :math:`f(x)`. A shortcut hands on :math:`x` and :math:`f(x)` together.
"""

from collections.abc import Callable
from math import isfinite
from numbers import Real

from dlcore.checks import check
from dlcore.optimization.autograd import Tensor, concat
from dlcore.optimization.modules import Module


class Residual(Module):
    r"""The sum :math:`x + s f(x)` (He, Zhang, Ren and Sun 2016).

    Args:
        f: the branch, which keeps the shape.
        scale: :math:`s`.
    """

    def __init__(self, f: Callable[[Tensor], Tensor], scale: float = 1.0) -> None:
        check(
            isinstance(scale, Real) and bool(isfinite(scale)),
            "Residual: scale",
            "be a finite number",
            repr(scale),
        )
        self.f, self.scale = f, scale

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        change = self.f(x)
        _check_same("Residual", x, change)
        return x + self.scale * change


def _mean(x: Tensor, y: Tensor) -> Tensor:
    _check_same("Skip", x, y)
    return (x + y) * 0.5


def _largest(x: Tensor, y: Tensor) -> Tensor:
    _check_same("Skip", x, y)
    pair = concat([t.reshape(1, *t.shape) for t in (x, y)], axis=0)
    return pair.max(axis=0)


class Skip(Module):
    """What came, and what the branch made of it, combined.

    Args:
        f: the branch.
        combine: ``"concat"`` sets them side by side; ``"mean"`` and ``"max"`` go entry by
            entry, where equal entries share the gradient of the largest. For the sum
            there is :class:`Residual`.
    """

    def __init__(self, f: Callable[[Tensor], Tensor], combine: str) -> None:
        ways: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
            "concat": lambda x, y: concat([x, y]),
            "mean": _mean,
            "max": _largest,
        }
        check(
            isinstance(combine, str) and combine in ways,
            "Skip: combine",
            f"be one of {sorted(ways)}",
            combine,
            "For the sum there is Residual.",
        )
        self.f, self.combine = f, ways[combine]

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        return self.combine(x, self.f(x))


def _check_same(who: str, x: Tensor, y: Tensor) -> None:
    """Refuse a branch whose output would be repeated to fit, or has no way back."""
    check(
        isinstance(y, Tensor),
        f"{who}: the branch",
        "return a Tensor",
        type(y).__name__,
    )
    check(
        x.shape == y.shape,
        f"{who}: the branch",
        f"keep the shape {x.shape}",
        f"{y.shape}",
    )
