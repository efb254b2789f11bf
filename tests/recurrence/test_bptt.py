import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch import nn

from dlcore.recurrence.bptt import (
    NONLINEARITIES,
    bptt,
    jacobians,
    lyapunov,
    norms,
    orthogonal,
    products,
    states,
)

sizes = st.integers(1, 5)
bends = st.sampled_from([*NONLINEARITIES])


def drawn(rng, B, T, D, H):
    def normal(*shape):
        return torch.tensor(rng.normal(size=shape), requires_grad=True)

    U, V, b = normal(H, H), normal(H, D), normal(H)
    return U, V, b, normal(B, T, D), normal(B, H)


@given(seeds, sizes, sizes, sizes, sizes, bends)
def test_gradients_are_those_of_autograd(rng, B, T, D, H, name):
    bend = NONLINEARITIES[name]
    U, V, b, x, start = drawn(rng, B, T, D, H)
    h = states(U, V, b, x, bend, start)
    g = torch.tensor(rng.normal(size=(B, T, H)))
    theirs = torch.autograd.grad(h[:, 1:], [U, V, b, x, start], g)
    ours = bptt(U, V, x, h, g, bend)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other)


@given(seeds, sizes, sizes, sizes, sizes)
def test_states_are_those_of_torch(rng, B, T, D, H):
    U, V, b, x, start = (p.detach() for p in drawn(rng, B, T, D, H))
    theirs = nn.RNN(D, H, batch_first=True).double()
    with torch.no_grad():
        theirs.weight_hh_l0.copy_(U)
        theirs.weight_ih_l0.copy_(V)
        theirs.bias_ih_l0.copy_(b)
        theirs.bias_hh_l0.zero_()
        y, _ = theirs(x, start[None])
    h = states(U, V, b, x, start=start)
    torch.testing.assert_close(h[:, 1:], y)
    assert torch.equal(h[:, 0], start)
    assert not states(U, V, b, x)[:, 0].any()


@given(seeds, sizes, st.integers(1, 7), st.integers(1, 8))
def test_truncation_is_a_detached_state(rng, H, T, block):
    U, V, b, x, start = drawn(rng, 2, T, 3, H)
    g = torch.tensor(rng.normal(size=(2, T, H)))
    parts, state = [], start
    for piece in x.split(block, dim=1):
        h = states(U, V, b, piece, start=state)[:, 1:]
        parts.append(h)
        state = h[:, -1].detach()
    theirs = torch.autograd.grad(torch.cat(parts, 1), [U, V, b, x], g)
    h = states(U, V, b, x, start=start)
    for mine, other in zip(bptt(U, V, x, h, g, block=block)[:4], theirs, strict=True):
        torch.testing.assert_close(mine, other)


@given(seeds, sizes, sizes, sizes, bends)
def test_products_are_derivatives_of_the_last_state(rng, B, T, H, name):
    bend = NONLINEARITIES[name]
    U, V, b, x, start = (p.detach() for p in drawn(rng, B, T, 2, H))
    h = states(U, V, b, x, bend, start)
    P = products(jacobians(U, h, bend))
    assert P.shape == (B, T + 1, H, H)
    for k in range(T + 1):
        for i in range(B):
            rest = x[i : i + 1, T - k :]

            def last(state, rest=rest):
                if not rest.shape[1]:
                    return state
                return states(U, V, b, rest, bend, state[None])[0, -1]

            exact = torch.autograd.functional.jacobian(last, h[i, T - k])
            torch.testing.assert_close(P[i, k], exact)


@given(seeds, sizes, sizes, bends)
def test_norms_stay_below_the_bound(rng, T, H, name):
    bend = NONLINEARITIES[name]
    U, V, b, x, start = (p.detach() for p in drawn(rng, 2, T, 2, H))
    A = jacobians(U, states(U, V, b, x, bend, start), bend)
    factor = bend.steepest * torch.linalg.matrix_norm(U, 2)
    bound = factor ** torch.arange(T + 1)
    assert (norms(products(A)) <= bound * (1 + 1e-9)).all()


@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_exponents_add_up_to_the_determinant(rng, T, H):
    A = torch.tensor(rng.normal(size=(T, H, H)))
    total = torch.linalg.slogdet(A).logabsdet.mean()
    torch.testing.assert_close(lyapunov(A).sum(), total)


def test_exponents_of_a_diagonal_matrix():
    A = torch.diag(torch.tensor([2.0, 0.5], dtype=torch.float64))
    expected = torch.tensor([math.log(2), -math.log(2)], dtype=torch.float64)
    torch.testing.assert_close(lyapunov(A.expand(400, 2, 2)), expected)


@given(st.integers(1, 8), st.integers(0, 99))
def test_orthogonal_matrices_keep_lengths(H, seed):
    Q = orthogonal(H, torch.Generator().manual_seed(seed))
    eye = torch.eye(H, dtype=torch.float64)
    torch.testing.assert_close(Q @ Q.T, eye)


def test_two_steps_by_hand():
    # h_1 = 2·1 + 1 = 3, h_2 = 2·3 + 1 = 7; dh_2/du = h_1 + u h_0 = 5
    one = torch.ones(1, 1, dtype=torch.float64)
    x, zero = torch.ones(1, 2, 1, dtype=torch.float64), 0 * one[0]
    bend = NONLINEARITIES["identity"]
    h = states(2 * one, one, zero, x, bend, start=one)
    assert h.flatten().tolist() == [1, 3, 7]
    g = torch.tensor([[[0.0], [1.0]]], dtype=torch.float64)
    found = bptt(2 * one, one, x, h, g, bend)
    assert found.U.item() == 5
    assert found.V.item() == found.b.item() == 3
    assert found.x.flatten().tolist() == [2, 1]
    assert found.start.item() == 4
    assert bptt(2 * one, one, x, h, g, bend, block=1).U.item() == 3


@pytest.mark.usefixtures("unchecked")
def test_refusals_say_what_fits():
    x, h = torch.zeros(2, 3, 4), torch.zeros(2, 4, 5)
    U, V = torch.zeros(5, 5), torch.zeros(5, 4)
    with pytest.raises(
        ValueError, match=r"U must have the shape \(4, 4\); got shape \(4, 5\)"
    ):
        states(torch.zeros(4, 5), V, U[0], x)
    with pytest.raises(ValueError, match=r"x must have the axes \(B, T, 4\)"):
        states(U, V, U[0], x[:, :0])
    with pytest.raises(
        ValueError, match=r"b must have the shape \(5,\); got shape \(1,"
    ):
        states(U, V, U[0, :1], x)
    with pytest.raises(ValueError, match=r"start must have the shape \(2, 5\)"):
        states(U, V, U[0], x, start=U[:1])
    with pytest.raises(ValueError, match=r"norms: P must have the shape"):
        norms(h)
    with pytest.raises(ValueError, match=r"The states begin with h_0"):
        bptt(U, V, x, h[:, 1:], h[:, 1:])
    with pytest.raises(ValueError, match="block must be a whole number"):
        bptt(U, V, x, h, h[:, 1:], block=0)
    with pytest.raises(ValueError, match="h must be states"):
        jacobians(U, h[:, :1])
    with pytest.raises(ValueError, match="products: A must have the shape"):
        products(h)
    with pytest.raises(ValueError, match="A must have the axes"):
        lyapunov(h[:0])
