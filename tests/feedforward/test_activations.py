import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose
from scipy import special

from dlcore.feedforward.activations import (
    CATALOGUE,
    log_softmax,
    logsumexp,
    relu,
    sigmoid,
    softmax,
    tanh,
)

THEIRS = {
    "identity": lambda z: 1 * z,
    "step": lambda z: torch.heaviside(z.detach(), torch.zeros(1).double()) + 0 * z,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "ReLU": F.relu,
    "leaky ReLU": F.leaky_relu,
    "ELU": F.elu,
    "softplus": lambda z: F.softplus(z, threshold=500),
    "GELU": F.gelu,
    "SiLU": F.silu,
}
REALS = arrays(
    float, array_shapes(), elements=st.floats(-50, 50, allow_subnormal=False)
)
SCORES = arrays(float, array_shapes(min_dims=1), elements=st.floats(-1000, 1000))
KINKS = np.array([-1000.0, -30.0, -1.0, -0.0, 0.0, 1e-300, 1.0, 30.0, 1000.0])


@pytest.mark.parametrize("name", CATALOGUE)
@given(drawn=REALS)
def test_value_and_derivative_equal_torch(name, drawn):
    for z in (drawn, KINKS):
        leaf = torch.tensor(z, requires_grad=True)
        value = THEIRS[name](leaf)
        value.sum().backward()
        phi = CATALOGUE[name]
        assert_allclose(phi(z), value.detach(), rtol=1e-12, atol=1e-15)
        assert_allclose(phi.derivative(z), leaf.grad, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("name", CATALOGUE)
@given(z=REALS)
def test_derivative_is_the_slope(name, z):
    phi, h = CATALOGUE[name], 1e-5
    z = np.where(np.abs(z) < 1e-3, 1.0, z)  # away from the kink
    slope = (phi(z + h) - phi(z - h)) / (2 * h)
    assert_allclose(phi.derivative(z), slope, atol=1e-5)


@pytest.mark.parametrize("name", CATALOGUE)
def test_range_is_the_range(name):
    phi = CATALOGUE[name]
    low, high = phi.range
    values = phi(np.linspace(-100, 100, 200_001))
    assert low - 1e-15 <= values.min()
    assert values.max() <= high
    for bound, reached in [(low, values.min()), (high, values.max())]:
        assert abs(reached) >= 1 if np.isinf(bound) else abs(reached - bound) < 1e-6


@pytest.mark.parametrize("name", CATALOGUE)
def test_extreme_inputs_stay_finite(name):
    phi, z = CATALOGUE[name], np.array([-1e150, -1000.0, 1000.0, 1e150])
    assert np.isfinite(phi(z)).all()
    assert np.isfinite(phi.derivative(z)).all()


def test_by_hand():
    zero = np.zeros(1)
    assert sigmoid.derivative(zero) == [0.25]
    assert tanh.derivative(zero) == [1]
    assert relu.derivative(zero) == [0]
    assert_allclose(
        softmax(np.array([3.0, 0.0, 1.0])), [0.8438, 0.0420, 0.1142], atol=5e-5
    )
    assert_allclose(logsumexp(np.zeros((1, 4))), [[np.log(4)]])


@given(z=SCORES, T=st.floats(0.05, 50))
def test_softmax_equals_scipy_and_torch(z, T):
    theirs = torch.softmax(torch.tensor(z / T), -1)
    assert_allclose(softmax(z, T), theirs, rtol=1e-9, atol=1e-300)
    assert_allclose(
        log_softmax(z, T), special.log_softmax(z / T, -1), rtol=1e-9, atol=1e-9
    )
    assert_allclose(
        logsumexp(z), special.logsumexp(z, -1, keepdims=True), rtol=1e-12, atol=1e-12
    )


@given(z=SCORES, shift=st.floats(-1000, 1000), T=st.floats(0.05, 50))
def test_softmax_gives_probabilities_and_ignores_shifts(z, shift, T):
    p = softmax(z, T)
    assert (p >= 0).all()
    assert_allclose(p.sum(axis=-1), 1)
    assert_allclose(p, softmax(z + shift, T), atol=1e-9)


@given(z=st.floats(-700, 700))
def test_two_classes_are_a_logistic_unit(z):
    p = softmax(np.array([0.0, z]))[1]
    assert_allclose(p, sigmoid(np.array([z]))[0], rtol=1e-12)


@pytest.mark.usefixtures("unchecked")
def test_refusals():
    with pytest.raises(ValueError, match="softmax: T must be positive; got 0"):
        softmax(np.zeros(3), T=0)
    with pytest.raises(
        ValueError, match="softmax: z must have scores in its last axis"
    ):
        softmax(np.zeros((2, 0)))
    with pytest.raises(
        ValueError, match="softmax: z must have scores in its last axis"
    ):
        log_softmax(np.float64(1))
    with pytest.raises(ValueError, match="logsumexp: z must have scores"):
        logsumexp(np.zeros((2, 0)))
