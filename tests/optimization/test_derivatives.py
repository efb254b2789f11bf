"""Differences and dual numbers against torch, polynomials and our reverse mode."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from dlcore.optimization.autograd import Tensor, result_of
from dlcore.optimization.derivatives import (
    Dual,
    check_backward,
    check_gradient,
    finite_difference,
    jacobian,
)


def program(x, W, b):
    """Use every operation that dual numbers share with tensors."""
    h = (W @ x + b).tanh()
    g = (x[:2] * 3.0 - x[1:] / (x[:2] ** 2 + 1.0)).sigmoid()
    u = (1.0 - h).relu() + g.exp() - 2.0 / (g + 1.0)
    return (u * u + 1.0).log() + (-u).sum() + 0.5 * u


def torch_program(x, W, b):
    h = torch.tanh(W @ x + b)
    g = torch.sigmoid(x[:2] * 3 - x[1:] / (x[:2] ** 2 + 1))
    u = torch.relu(1 - h) + torch.exp(g) - 2 / (g + 1)
    return torch.log(u * u + 1) - u.sum() + 0.5 * u


@given(seeds)
def test_forward_mode_is_the_jacobian_of_torch(rng):
    x, W, b = rng.normal(size=3), rng.normal(size=(2, 3)), rng.normal(size=2)
    ours = jacobian(lambda x: program(x, W, b), x)
    W_, b_ = torch.tensor(W), torch.tensor(b)
    theirs = torch.autograd.functional.jacobian(
        lambda x: torch_program(x, W_, b_), torch.tensor(x)
    )
    assert ours.shape == (2, 3)
    assert np.allclose(ours, theirs.numpy(), rtol=1e-12, atol=1e-12)


@given(seeds)
def test_differences_agree_with_forward_mode(rng):
    x, W, b = rng.normal(size=3), rng.normal(size=(2, 3)), rng.normal(size=2)
    x = x + 1e-3 * np.sign(x)
    exact = jacobian(lambda x: program(x, W, b), x)
    close = finite_difference(lambda x: program(Dual(x), W, b).value, x)
    assert close.shape == exact.shape
    assert np.allclose(close, exact, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("seed", range(5))
def test_one_program_runs_forwards_and_backwards(seed):
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(4, 3)), rng.normal(size=(3, 2))

    def cost(W):
        z = X @ W
        return (z**2 * z.tanh() - z.relu() / (1 + z.exp())).sum()

    tensor = Tensor(W, requires_grad=True)
    cost(tensor).backward()
    assert jacobian(cost, W).shape == (3, 2)
    assert np.allclose(jacobian(cost, W), tensor.grad, rtol=1e-12, atol=1e-12)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=6), st.integers(-4, 4))
def test_polynomials_have_their_exact_slopes(coefficients, at):
    x = Dual(at, 1)
    y = Dual(0)
    for c in coefficients:  # Horner
        y = y * x + c
    p = np.poly1d(coefficients)
    assert y.value == p(at)
    assert y.slope == p.deriv()(at)
    power = sum((c * x**k for k, c in enumerate(coefficients[::-1])), start=Dual(0))
    assert power.slope == y.slope


@given(seeds)
def test_the_slope_is_linear_in_the_direction(rng):
    x, u, v = rng.normal(size=(3, 3))
    W, b = rng.normal(size=(2, 3)), rng.normal(size=2)

    def along(direction):
        return program(Dual(x, direction), W, b).slope

    assert np.allclose(along(2 * u - v), 2 * along(u) - along(v))


def test_slopes_by_hand():
    v = Dual(3.0, 1.0)
    assert (v * v).slope == 6
    assert (v**2).cos().slope == -np.sin(9.0) * 6
    assert (1 / v).slope == pytest.approx(-1 / 9)
    assert (v - 1).slope == (1 + v).slope == 1
    assert (1 - v).slope == (-v).slope == -1
    assert Dual(0.0, 1.0).sigmoid().slope == 0.25
    assert Dual(0.0, 1.0).relu().slope == 0
    assert Dual([0.0, -2.0], [1.0, 1.0]).__pow__(0).slope.tolist() == [0, 0]
    assert Dual([1.0, 2.0]).slope.tolist() == [0, 0]
    assert jacobian(lambda x: x[::-1], [1, 2]).tolist() == [[0, 1], [1, 0]]
    assert jacobian(lambda x: x.sum(), np.ones((2, 2))).tolist() == [[1, 1]] * 2
    assert jacobian(lambda x: x * x, 3).tolist() == 6
    assert repr(Dual(1, 2)) == "Dual(1.0, 2.0)"
    assert Dual(np.ones((2, 3))).shape == (2, 3)


def test_differences_by_hand():
    assert finite_difference(lambda x: x * x, 3, h=0.5) == 6
    assert finite_difference(lambda x: x**3, 3, h=0.5) == 27 + 0.25
    A = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 4.0]])
    assert finite_difference(lambda x: A @ x, [0, 0, 0], h=1).tolist() == (A.tolist())
    assert finite_difference(np.sum, np.zeros((2, 3, 1))).shape == (2, 3, 1)
    assert finite_difference(lambda x: x, 1e10) == pytest.approx(1)


@given(st.floats(0.5, 2), st.integers(1, 14))
def test_differences_divide_by_the_step_really_taken(x, digits):
    assert finite_difference(lambda x: 4 * x, x, h=10.0**-digits) == 4


@given(st.floats(-700, 30))
def test_the_logistic_function_keeps_its_digits(z):
    y = Dual(z, 1.0).sigmoid()
    assert y.value == pytest.approx(1 / (1 + np.exp(-z)), rel=1e-12)
    slope = np.exp(-z) / (1 + np.exp(-z)) ** 2 if z > -300 else np.exp(z)
    assert y.slope == pytest.approx(slope, rel=1e-12)
    assert y.log().value == pytest.approx(-np.logaddexp(0, -z), rel=1e-9)


@pytest.mark.usefixtures("unchecked")
def test_exponents_may_be_numbers_of_numpy():
    assert (Dual(3.0, 1.0) ** np.int64(2)).slope == 6
    assert (Dual(4.0, 1.0) ** np.float32(0.5)).slope == 0.25


def test_it_evaluates_twice_per_entry():
    calls = []
    finite_difference(lambda x: calls.append(1) or x.sum(), np.ones((3, 2)))
    assert len(calls) == 12


def test_accepts_a_right_gradient():
    x = np.array([[1.0, -2.0], [0.5, 1e3]])
    check_gradient(lambda x: (x**2).sum(), 2 * x, x)
    check_gradient(lambda x: x * x, 6.0, 3.0)


def test_check_backward_finds_a_wrong_rule(monkeypatch):
    x = np.array([[0.3, -0.4], [0.5, 2.0]])
    check_backward(lambda a, b: (a @ b).tanh().sum(), x, x)
    check_backward(lambda a: Tensor(1.0) + 0.0 * a.sum(), x)
    check_backward(lambda a, b: a.sum(), x, x)  # b is not used

    def wrong(self):
        y = np.tanh(self.data)
        return result_of("tanh", y, (self, lambda g: g * (1 - y)))

    monkeypatch.setattr(Tensor, "tanh", wrong)
    message = (
        r"check_backward: inputs\[1\].grad\[0, 1\] must be 0.855639; "
        r"got 1.37995"
    )
    with pytest.raises(ValueError, match=message):
        check_backward(lambda a, b: a.sum() + b[0, 1].tanh(), x, x)


REFUSALS = [
    (
        lambda: check_backward(lambda: Tensor(1.0)),
        "check_backward: arrays must not be empty",
    ),
    (
        lambda: check_backward(lambda a: a.item(), 1.0),
        "check_backward: f must return a Tensor; got float",
    ),
    (
        lambda: check_gradient(np.sum, [1.0, 2.0], [0.0, 0.0]),
        r"check_gradient: gradient\[1\] must be 1; got 2\.",
    ),
    (
        lambda: check_gradient(np.sum, [1.0, np.nan], [0.0, 0.0]),
        r"gradient\[1\] must be 1; got nan\.",
    ),
    (
        lambda: check_gradient(lambda x: x, 2.0, 0.0),
        r"check_gradient: gradient must be 1; got 2\.",
    ),
    (
        lambda: check_gradient(np.sum, [1.0], [0.0, 0.0]),
        r"gradient must have the shape \(2,\); got shape \(1,\)",
    ),
    (
        lambda: check_gradient(lambda x: x, [1.0, 1.0], [0.0, 0.0]),
        r"f must return one number; got shape \(2,\)",
    ),
    (
        lambda: check_gradient(lambda x: x * x, 2 + 4e-6, 1.0),
        r"gradient must be (1\.9{5}|2\.0{5})\d*; got 2\.000004\.",
    ),
    (
        lambda: check_gradient(lambda x: x * np.nan, 0.0, 1.0),
        r"check_gradient: f near x must be finite; got NaN",
    ),
    (
        lambda: check_gradient(np.sum, [1.0], [0.0], tolerance=np.nan),
        r"tolerance must lie in \[0, ∞\); got nan",
    ),
    (
        lambda: check_gradient(np.sum, [1.0], [0.0], tolerance=-1),
        r"tolerance must lie in \[0, ∞\); got -1",
    ),
    (
        lambda: finite_difference(np.sum, []),
        r"finite_difference: x must have at least one entry",
    ),
    (
        lambda: finite_difference(np.sum, [1.0, np.inf]),
        r"finite_difference: x must be finite",
    ),
    (
        lambda: finite_difference(np.sum, [1.0], h=0),
        r"h must be positive and finite; got 0",
    ),
    (
        lambda: finite_difference(np.sum, [1.0], h=np.nan),
        r"h must be positive and finite; got nan",
    ),
    (
        lambda: finite_difference(np.sum, [1.0], h=1e-17),
        r"h must change every entry of x; got 1e-17",
    ),
    (
        lambda: jacobian(lambda x: x.value, [1.0]),
        r"jacobian: f must return a Dual; got ndarray\. Compute with",
    ),
    (lambda: jacobian(lambda x: x, []), r"jacobian: x must have at least"),
    (
        lambda: Dual([1.0, 2.0], [1.0]),
        r"Dual: slope must have the shape \(2,\); got shape \(1,",
    ),
    (lambda: Dual(Dual(1.0)), r"be numbers or arrays; got a Dual"),
    (lambda: Dual(-1.0).log(), r"log must take positive numbers; got -1"),
    (lambda: 1 / Dual(0.0), r"the divisor must not be zero"),
    (lambda: Dual(0.0, 1.0) ** 0.5, r"x \*\* 0.5 must have a finite"),
    (lambda: Dual(-1.0, 1.0) ** 0.5, r"x \*\* 0.5 must have a finite"),
    (lambda: Dual(0.0, 1.0) ** -1, r"x \*\* -1 must have a finite"),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("base", [Dual(1.0), 2, np.ones(2)])
def test_refuses_an_exponent_that_varies(base):
    with pytest.raises(ValueError, match=r"be a number; got Dual\. Write a"):
        base ** Dual(1.0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("h", [[0.1, 0.1], "0.1", True, -0.1, np.inf])
def test_refuses_a_step_that_is_none(h):
    with pytest.raises(ValueError, match=r"h must be positive and finite; got"):
        finite_difference(np.sum, [1.0], h=h)
