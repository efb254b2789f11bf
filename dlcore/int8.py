"""Weights as whole numbers of eight bits, with a scale for each row."""

import numpy as np
from jaxtyping import Float, Float32, Int8
from numpy import ndarray

__all__ = ["from_int8", "to_int8"]


def to_int8(
    W: Float[ndarray, "..."],
) -> tuple[Int8[ndarray, "..."], Float32[ndarray, "rows"]]:
    r"""Round weights to whole numbers from −127 to 127.

    The row :math:`W_i` becomes :math:`\operatorname{round}(W_i / s_i)` with
    :math:`s_i = \max_j \lvert W_{ij} \rvert / 127`, so no weight moves by more than
    :math:`s_i / 2`. Rows are counted by the first axis; a vector is one row.

    Example:
        >>> whole, scales = to_int8(np.array([[1.0, -0.5], [0.0, 0.0]]))
        >>> whole.tolist()
        [[127, -64], [0, 0]]
    """
    rows = np.reshape(W, (len(W) if np.ndim(W) > 1 else 1, -1)).astype(float)
    scales = (np.abs(rows).max(axis=1) / 127).astype(np.float32)
    scales[scales < np.finfo(np.float32).tiny] = 1  # a row of zeros, or as good as that
    whole = np.round(rows / scales[:, None]).astype(np.int8)
    return whole.reshape(np.shape(W)), scales


def from_int8(
    whole: Int8[ndarray, "..."], scales: Float32[ndarray, "rows"]
) -> Float32[ndarray, "..."]:
    """Return the weights that whole numbers and scales stand for.

    Example:
        >>> from_int8(*to_int8(np.array([[127.0, -64.0], [0.0, 0.0]]))).tolist()
        [[127.0, -64.0], [0.0, 0.0]]
    """
    rows = whole.reshape(len(scales), -1) * scales[:, None]
    return rows.reshape(whole.shape).astype(np.float32)
