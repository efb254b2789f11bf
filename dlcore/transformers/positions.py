r"""Where a token stands, told to a layer that treats all places alike.

All of them turn circles: the pair of coordinates :math:`2k, 2k+1` has the frequency

.. math:: \omega_k = C^{-2k/d}, \qquad k = 0, \dots, d/2 - 1,

from one radian per place down to nearly one in :math:`C` places.
"""

from jaxtyping import Float, Int

from dlcore._torch import Tensor, torch
from dlcore.checks import check, check_whole

__all__ = ["BASE", "frequencies", "rotary", "shift", "sinusoidal"]

#: The constant :math:`C` of Vaswani et al. (2017).
BASE = 10_000.0


def frequencies(d: int, base: float = BASE) -> Float[Tensor, "k"]:
    r"""Return the frequencies of positional encodings, in double precision.

    They are :math:`\omega_0, \dots, \omega_{d/2-1}`.

    Args:
        d: width of a token, even.
        base: the constant :math:`C`, more than 1.

    Example:
        >>> frequencies(4, base=16.0).tolist()
        [1.0, 0.25]
    """
    check_whole("frequencies: d", d, 2)
    check(d % 2 == 0, "frequencies: d", "be even: sines go with cosines", d)
    check(base > 1, "frequencies: base", "be more than 1", base)
    return base ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)


def sinusoidal(t: Int[Tensor, "T"], d: int, base: float = BASE) -> Float[Tensor, "T d"]:
    r"""Return the sinusoidal encodings of positions (Vaswani et al. 2017).

    .. math:: p_{t,2k} = \sin \omega_k t, \qquad p_{t,2k+1} = \cos \omega_k t

    Args:
        t: places, whole numbers of any sign.
        d: width of an encoding, even.
        base: the constant :math:`C`.

    Example:
        >>> sinusoidal(torch.tensor([0, 1]), 2)  # sin t, cos t
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403]])
    """
    angles = _angles("sinusoidal", t, d, base)
    p = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    return p.to(torch.get_default_dtype())


def shift(by: int, d: int, base: float = BASE) -> Float[Tensor, "d d"]:
    r"""Return the matrix that moves every sinusoidal encoding by the same distance.

    It is :math:`R_\Delta` with :math:`p_{t+\Delta} = R_\Delta p_t` for all t.

    It has a block :math:`\begin{pmatrix} \cos & \sin \\ -\sin & \cos \end{pmatrix}` of the
    angle :math:`\omega_k \Delta` for each frequency: it is orthogonal.

    Args:
        by: the number of places :math:`\Delta`.
        d: width of an encoding, even.
        base: the constant :math:`C`.

    Example:
        >>> p = sinusoidal(torch.arange(6), 4)
        >>> torch.allclose(shift(3, 4) @ p[2], p[5], atol=1e-6)
        True
    """
    angles = frequencies(d, base) * by
    cos, sin = angles.cos(), angles.sin()
    blocks = torch.stack([cos, sin, -sin, cos], dim=-1).unflatten(-1, (2, 2))
    return torch.block_diag(*blocks).to(torch.get_default_dtype())


def rotary(
    X: Float[Tensor, "*batch T d"], t: Int[Tensor, "T"], base: float = BASE
) -> Float[Tensor, "*batch T d"]:
    r"""Rotate queries or keys by angles that grow with the position (Su et al. 2021).

    The pair :math:`2k, 2k+1` of a row at the place :math:`t` is turned by the angle
    :math:`\omega_k t`. The dot product of a query and a key then depends on their places
    only through the difference.

    Args:
        X: rows, of even width.
        t: the place of each row.
        base: the constant :math:`C`.

    Example:
        >>> rotary(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))  # cos 1, sin 1
        tensor([[0.5403, 0.8415]])
    """
    rule, got = f"have a row for each of the {len(t)} places", tuple(X.shape)
    check(got[-2:-1] == (len(t),), "rotary: X", rule, f"shape {got}")
    angles = _angles("rotary", t, X.shape[-1], base)
    cos, sin = angles.cos().to(X), angles.sin().to(X)
    x, y = X[..., 0::2], X[..., 1::2]
    turned = [cos * x - sin * y, sin * x + cos * y]
    return torch.stack(turned, dim=-1).flatten(-2)


def _angles(who: str, t: Tensor, d: int, base: float) -> Tensor:
    kind, got = t.dtype, f"{t.dtype} of shape {tuple(t.shape)}"
    whole = not (kind.is_floating_point or kind.is_complex or kind == torch.bool)
    check(t.ndim == 1 and whole, f"{who}: t", "be a list of whole numbers", got)
    return t[:, None] * frequencies(d, base)
