import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dlcore.neurons import heaviside, sign

POTENTIALS = arrays(
    float, array_shapes(), elements=st.integers(-3, 3).map(float)
)


def test_by_hand():
    z = np.array([-2.5, -0.0, 0.0, 1e-300])
    assert sign(z).tolist() == [-1, 0, 0, 1]
    assert sign(z, at0=1.0).tolist() == [-1, 1, 1, 1]
    assert heaviside(z).tolist() == [0, 0, 0, 1]
    assert heaviside(z, at0=0.5).tolist() == [0, 0.5, 0.5, 1]


@given(z=POTENTIALS, at0=st.floats(0, 1))
def test_sign_is_heaviside_stretched(z, at0):
    np.testing.assert_array_equal(
        sign(z, 2 * at0 - 1), 2 * heaviside(z, at0) - 1
    )


@given(z=POTENTIALS, at0=st.sampled_from([0.0, 1.0]))
def test_both_codings_decide_alike(z, at0):
    np.testing.assert_array_equal(
        sign(z, 2 * at0 - 1) == 1, heaviside(z, at0) == 1
    )


@given(z=POTENTIALS, at0=st.floats(-1, 1))
def test_sign_is_odd_and_ignores_scale(z, at0):
    np.testing.assert_array_equal(sign(-z, -at0), -sign(z, at0))
    np.testing.assert_array_equal(sign(7.0 * z, at0), sign(z, at0))
