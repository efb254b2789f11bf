r"""Linear recurrences :math:`z_t = a_t z_{t-1} + b_t`, one after another and in parallel.

A step is a pair :math:`(a, b)`, the map :math:`z \mapsto az + b`. Two steps in a row are a
step again,

.. math:: (a_2, b_2) \circ (a_1, b_1) = (a_2 a_1,\; a_2 b_1 + b_2),

and this composition is associative: it does not matter which neighbours are joined first.
So a tree of joins takes the place of the loop.
"""

from typing import Any, TypeAlias

from jaxtyping import Complex, Float

from dlcore._torch import Tensor, torch
from dlcore.checks import check

__all__ = ["scan", "scan_doubling", "scan_loop"]

Steps: TypeAlias = Float[Tensor, "B T D"] | Complex[Tensor, "B T D"]


def scan_loop(a: Steps, b: Steps) -> Steps:
    r"""Solve a linear recurrence step by step, as the specification of :func:`scan`.

    .. math:: z_t = a_t z_{t-1} + b_t, \qquad z_0 = 0

    Example:
        >>> a, b = torch.full((1, 3, 1), 0.5), torch.ones(1, 3, 1)
        >>> scan_loop(a, b).flatten().tolist()
        [1.0, 1.5, 1.75]
    """
    a, b = _check_steps("scan_loop", a, b)
    z, all_z = torch.zeros_like(b[:, 0]), []
    for a_t, b_t in zip(a.unbind(1), b.unbind(1), strict=True):
        z = a_t * z + b_t
        all_z.append(z)
    return torch.stack(all_z, dim=1)


def scan_doubling(a: Steps, b: Steps) -> tuple[Steps, int]:
    r"""Solve a linear recurrence in parallel by doubling, and count the rounds.

    These are :math:`\lceil \log_2 T \rceil`.

    In each round every step is joined with the one that ends where it begins, and reaches
    twice as far back (Hillis and Steele 1986). A round is one operation on all steps at
    once; together they do :math:`T \log_2 T` joins.

    Example:
        >>> a, b = torch.full((1, 5, 1), 0.5), torch.ones(1, 5, 1)
        >>> z, rounds = scan_doubling(a, b)
        >>> z.flatten().tolist(), rounds
        ([1.0, 1.5, 1.75, 1.875, 1.9375], 3)
    """
    a, b = _check_steps("scan_doubling", a, b)
    reach, rounds = 1, 0
    while reach < b.shape[1]:
        joined = a[:, reach:] * b[:, :-reach] + b[:, reach:]
        b = torch.cat([b[:, :reach], joined], dim=1)
        a = torch.cat([a[:, :reach], a[:, reach:] * a[:, :-reach]], dim=1)
        reach, rounds = 2 * reach, rounds + 1
    return b, rounds


def scan(a: Steps, b: Steps) -> Steps:
    r"""Solve a linear recurrence for all times in parallel.

    All :math:`z_t` take about :math:`2T` joins in :math:`2 \log_2 T` rounds.

    Neighbours are joined, the recurrence of the half as many pairs is solved in the same
    way, and the steps between follow from it (Blelloch 1990). The gradient runs the
    recurrence backwards: with :math:`\delta_t = \partial J / \partial z_t` at first,

    .. math::
        g_t &= \delta_t + \bar a_{t+1}\, g_{t+1}, \\
        \partial J / \partial b_t &= g_t, \qquad
        \partial J / \partial a_t = g_t\, \bar z_{t-1} .

    Equals ``scipy.signal.lfilter`` if all factors are the same.

    Args:
        a: factors; real or complex.
        b: what is added.

    Example:
        >>> a, b = torch.full((1, 3, 1), 2.0), torch.ones(1, 3, 1)
        >>> scan(a, b).flatten().tolist()
        [1.0, 3.0, 7.0]
    """
    a, b = _check_steps("scan", a, b)
    z: Tensor = _Scan.apply(a, b)  # type: ignore[no-untyped-call]
    return z


class _Scan(torch.autograd.Function):
    """The parallel recurrence; its gradient is one again, and has a gradient itself."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        z = _solve(a, b)
        ctx.save_for_backward(a, z)
        return z

    @staticmethod
    def backward(ctx: Any, delta: Tensor) -> tuple[Tensor, Tensor]:
        a, z = ctx.saved_tensors
        none = torch.zeros_like(a[:, :1])
        later = torch.cat([a[:, 1:].conj(), none], dim=1)
        back: Tensor = _Scan.apply(later.flip(1), delta.flip(1))  # type: ignore[no-untyped-call]
        g = back.flip(1)
        before = torch.cat([none, z[:, :-1].conj()], dim=1)
        return g * before, g


def _solve(a: Tensor, b: Tensor) -> Tensor:
    if b.shape[1] == 1:
        return b
    pairs = b.shape[1] // 2 * 2
    first, second = slice(0, pairs, 2), slice(1, pairs, 2)
    z = torch.empty_like(b)
    z[:, 0] = b[:, 0]
    z[:, second] = _solve(
        a[:, second] * a[:, first], a[:, second] * b[:, first] + b[:, second]
    )
    between = slice(2, None, 2)
    known = z[:, 1 : b.shape[1] - 1 : 2]
    torch.addcmul(b[:, between], a[:, between], known, out=z[:, between])
    return z


def _check_steps(who: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Refuse steps that do not fit; return both in the type of their product."""
    ok = a.ndim == 3 and a.shape == b.shape and a.shape[1] > 0
    rule, got = "have the same axes (B, T, D), T > 0", [tuple(a.shape), tuple(b.shape)]
    check(ok, f"{who}: a and b", rule, got)
    dtype = torch.promote_types(a.dtype, b.dtype)
    return a.to(dtype), b.to(dtype)
