"""Threshold functions, with their value at zero said aloud."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray


def sign(
    z: Float[ndarray, "*shape"], at0: float = 0.0
) -> Float[ndarray, "*shape"]:
    """Return +1 where ``z`` is positive, −1 where it is negative, ``at0`` at zero."""
    return np.where(z == 0, at0, np.sign(z))


def heaviside(
    z: Float[ndarray, "*shape"], at0: float = 0.0
) -> Float[ndarray, "*shape"]:
    """Return 1 where ``z`` is positive, 0 where it is negative, ``at0`` at zero."""
    return np.heaviside(z, at0)
