"""Random things that several tests draw."""

import numpy as np
from hypothesis import strategies as st

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def signs(rng, *shape):
    return rng.choice([-1.0, 1.0], size=shape)
