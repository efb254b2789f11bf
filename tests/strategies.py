"""Random things that several tests draw."""

import numpy as np
from hypothesis import strategies as st

SEED = st.integers(0, 2**16)
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def signs(rng, *shape):
    return rng.choice([-1.0, 1.0], size=shape)


def lattice(s, n, seed):
    """Draw points with small whole coordinates: ties and dependencies are common."""
    return np.random.default_rng(seed).integers(-2, 3, (s, n)).astype(float)
