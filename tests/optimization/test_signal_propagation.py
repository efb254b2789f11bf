"""Signals up and down; autograd of PyTorch and SciPy's expectations are the judges."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy import stats
from strategies import seeds

from dlcore.feedforward.activations import CATALOGUE, identity, relu, sigmoid, tanh
from dlcore.feedforward.network import Dense, Network, mlp
from dlcore.optimization.signal_propagation import gains, gaussian_mean, signal

TORCH = {"ReLU": torch.relu, "tanh": torch.tanh, "logistic": torch.sigmoid}


@pytest.mark.parametrize("phi", [relu, tanh, sigmoid])
@given(rng=seeds, sizes=st.lists(st.integers(1, 5), min_size=2, max_size=5))
def test_both_signals_are_those_of_torch(phi, rng, sizes):
    net = mlp(sizes, phi, rng)
    X, P = rng.normal(size=(3, sizes[0])), rng.normal(size=(3, sizes[-1]))
    x = torch.tensor(X, requires_grad=True)
    states = [x]
    for k, layer in enumerate(net.layers):
        z = states[-1] @ torch.tensor(layer.W).T + torch.tensor(layer.b)
        last = k == len(net.layers) - 1
        states.append(z if last else TORCH[phi.name](z))
        states[-1].retain_grad()
    (states[-1] * torch.tensor(P)).sum().backward()
    up, down = signal(net, X, P)
    want = [(state.detach() ** 2).mean().item() for state in states]
    assert np.allclose(up, want)
    assert np.allclose(down, [(s.grad**2).mean().item() for s in states])


@given(seeds, st.floats(0.1, 10))
def test_the_way_down_is_linear_and_the_way_up_of_relus_scales(rng, c):
    net = mlp([3, 4, 2], relu, rng)
    X, P = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    up, down = signal(net, X, P)
    assert np.allclose(signal(net, X, c * P).backward, c**2 * down)
    assert np.allclose(signal(net, c * X, P).forward, c**2 * up)


def test_a_chain_by_hand():
    one = np.zeros(1)
    net = Network([Dense(np.array([[2.0]]), one, relu), Dense(np.array([[-3.0]]), one)])
    up, down = signal(net, np.array([[5.0]]), np.array([[1.0]]))
    assert up.tolist() == [25, 100, 900]
    assert down.tolist() == [36, 9, 1]


@pytest.mark.parametrize("name", sorted(CATALOGUE))
@pytest.mark.parametrize("variance", [0.3, 1.0, 5.0])
def test_gains_are_expectations_of_scipy(name, variance):
    phi, z = CATALOGUE[name], stats.norm(scale=variance**0.5)
    ends = [(-np.inf, 0), (0, np.inf)]
    want = [
        sum(
            z.expect(lambda t, f=f: float(f(np.array([t]))[0]) ** 2, lb=a, ub=b)
            for a, b in ends
        )
        for f in (phi, phi.derivative)
    ]
    up, down = gains(phi, variance)
    assert up * variance == pytest.approx(want[0], rel=1e-6)
    assert down == pytest.approx(want[1], rel=1e-6)


def test_gains_by_hand():
    assert gains(identity, 3.0) == pytest.approx((1, 1))
    assert gains(relu, 3.0) == pytest.approx((0.5, 0.5))
    assert gains(CATALOGUE["leaky ReLU"]) == pytest.approx([0.50005] * 2)
    assert gaussian_mean(lambda z: z**4, 2.0) == pytest.approx(12)
    assert gaussian_mean(lambda z: z**3, 2.0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("variance", [1e4, 1e8, 1e10, 1e30, 1e300])
def test_gains_where_the_slope_is_a_narrow_peak(variance):
    """∫σ′² = 1/6 and ∫tanh′² = 4/3 meet a density that is constant there."""
    density = (2 * np.pi * variance) ** -0.5
    assert gains(sigmoid, variance)[1] == pytest.approx(density / 6, rel=1e-3)
    assert gains(tanh, variance)[1] == pytest.approx(density * 4 / 3, rel=1e-3)
    assert gains(relu, variance) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("variance", [1e-300, 1e-6, 1.0, 100.0])
def test_the_mean_of_an_exponential_and_of_a_jump(variance):
    mean = gaussian_mean(np.exp, variance)
    assert mean == pytest.approx(np.exp(variance / 2))
    sd = variance**0.5
    tail = gaussian_mean(lambda z: (z > 3 * sd).astype(float), variance)
    assert tail == pytest.approx(stats.norm.sf(3), rel=1e-6)


@pytest.mark.usefixtures("unchecked")
def test_whole_numbers_are_squared_as_floats():
    X, P = np.full((1, 3), 10**5), np.full((1, 2), 4 * 10**9)
    up, down = signal(NET, X, P)
    assert (up[0], down[-1]) == (1e10, 1.6e19)
    both = (signal(NET, [[1, 2, 3]], [[1, 2]]), signal(NET, [[1.0, 2, 3]], [[1.0, 2]]))
    assert np.array_equal(*both)


@given(st.floats(1e-3, 100))
def test_tanh_loses_more_the_larger_the_sums(variance):
    assert gains(tanh, variance) > gains(tanh, 1.5 * variance)


NET = mlp([3, 2], relu, default_rng(0))
REFUSALS = [
    (
        lambda: signal(NET, np.ones((4, 3)), np.ones((4, 3))),
        r"signal: P must have the shape \(4, 2\); .*\(4, 3\)",
    ),
    (lambda: signal(NET, np.ones((4, 2)), np.ones((4, 2))), r"have 3 columns"),
    (
        lambda: signal(NET, np.full((4, 3), np.nan), np.ones((4, 2))),
        r"X and P must be finite",
    ),
    (lambda: signal(NET, np.ones((0, 3)), np.ones((0, 2))), r"X must have"),
    (lambda: gains(relu, 0.0), r"variance must be positive.*; got 0.0"),
    (lambda: gaussian_mean(np.exp, np.nan), r"variance must .*; got nan"),
    (
        lambda: gaussian_mean(lambda z: np.where(z > 1, np.inf, 0), 1.0),
        r"gaussian_mean: f must have a finite mean; got inf",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
