import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal, stats
from strategies import seeds
from twins import normal, source

from dlcore.recurrence.linear_recurrence import LRU, MinGRU, MinLSTM, diagonalize, ring
from dlcore.recurrence.recurrent import GRU

KINDS = {
    "MinGRU": lambda rng: MinGRU(3, 4, generator=source(rng)),
    "MinLSTM": lambda rng: MinLSTM(3, 4, generator=source(rng)),
    "LRU": lambda rng: LRU(3, 4, 2, generator=source(rng)),
}


def randomised(name, rng):
    layer = KINDS[name](rng).double()
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(normal(rng, *p.shape))
    return layer


kinds = pytest.mark.parametrize("name", KINDS)


@kinds
@given(seeds, st.integers(1, 20))
def test_steps_one_by_one_equal_all_times_at_once(name, rng, T):
    layer, x = randomised(name, rng), normal(rng, 2, T, 3)
    whole, (end,) = layer(x)
    state, outputs = None, []
    for t in range(T):
        y, state = layer.step(x[:, t], state)
        outputs.append(y)
    torch.testing.assert_close(torch.stack(outputs, dim=1), whole)
    torch.testing.assert_close(state[0], end)


@kinds
@given(seeds, st.integers(2, 20))
def test_reading_in_parts_is_reading_at_once(name, rng, T):
    layer, x = randomised(name, rng), normal(rng, 2, T, 3)
    k = int(rng.integers(1, T))
    whole, (end,) = layer(x)
    first, state = layer(x[:, :k])
    rest, (same,) = layer(x[:, k:], state=state)
    torch.testing.assert_close(torch.cat([first, rest], dim=1), whole)
    torch.testing.assert_close(same, end)


@kinds
@given(seeds)
def test_padding_is_never_looked_at(name, rng):
    layer = randomised(name, rng)
    x, lengths = torch.full((3, 7, 3), torch.nan).double(), [4, 7, 1]
    for row, T in zip(x, lengths, strict=True):
        row[:T] = normal(rng, T, 3)
    state = layer(normal(rng, 3, 2, 3))[1]
    y, (end,) = layer(x, torch.tensor(lengths), state)
    for i, T in enumerate(lengths):
        alone, (last,) = layer(x[i : i + 1, :T], state=(state[0][i : i + 1],))
        torch.testing.assert_close(y[i, :T], alone[0])
        torch.testing.assert_close(end[i], last[0])
        assert not y[i, T:].any()


@kinds
def test_gradients_are_difference_quotients(name):
    layer = randomised(name, np.random.default_rng(0))
    names = [key for key, _ in layer.named_parameters()]
    x = normal(np.random.default_rng(1), 2, 5, 3).requires_grad_()

    def output(x, *weights):
        replaced = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(layer, replaced, (x,))[0]

    assert torch.autograd.gradcheck(output, (x, *layer.parameters()))


@given(seeds)
def test_mingru_is_a_gru_that_does_not_see_its_state(rng):
    layer, gru = randomised("MinGRU", rng), GRU(3, 4).double()
    with torch.no_grad():
        for p in gru.parameters():
            p.zero_()
        gru.V[4:8], gru.b[4:8] = layer.V[:4], layer.b[:4]
        # torch applies tanh to the candidate: take it where tanh is the identity
        gru.V[8:], gru.b[8:] = 1e-5 * layer.V[4:], 1e-5 * layer.b[4:]
    x = normal(rng, 2, 6, 3)
    torch.testing.assert_close(1e5 * gru(x)[0], layer(x)[0], rtol=1e-6, atol=1e-7)


@given(seeds)
def test_mingru_and_minlstm_stay_between_state_and_candidate(rng):
    for name in ("MinGRU", "MinLSTM"):
        layer, x, h = (randomised(name, rng), normal(rng, 5, 3), normal(rng, 5, 4))
        new, _ = layer.step(x, (h,))
        candidate = x @ layer.V[-4:].T + layer.b[-4:]
        assert (new >= torch.minimum(h, candidate) - 1e-12).all()
        assert (new <= torch.maximum(h, candidate) + 1e-12).all()


@given(seeds)
def test_minlstm_divides_its_gates_by_their_sum(rng):
    layer, x, h = (randomised("MinLSTM", rng), normal(rng, 5, 3), normal(rng, 5, 4))
    f, i, candidate = (x @ layer.V.T + layer.b).chunk(3, dim=1)
    f, i = torch.sigmoid(f), torch.sigmoid(i)
    expected = f / (f + i) * h + i / (f + i) * candidate
    torch.testing.assert_close(layer.step(x, (h,))[0], expected)


def test_closed_gates_do_not_divide_by_zero():
    layer = MinLSTM(1, 1)
    with torch.no_grad():
        layer.V.zero_()
        layer.b.copy_(torch.tensor([-500.0, -500.0, 3.0]))
    h, _ = layer.step(torch.zeros(1, 1), (torch.ones(1, 1),))
    assert h.item() == pytest.approx(2)


@given(seeds)
def test_lru_is_a_linear_system_of_scipy(rng):
    layer, x = randomised("LRU", rng), normal(rng, 1, 30, 3)
    with torch.no_grad():
        values = layer.eigenvalues.numpy()
        B = torch.view_as_complex(layer.B).numpy()
        B = np.exp(layer.log_gamma.numpy())[:, None] * B
        C, D = torch.view_as_complex(layer.C).numpy(), layer.D.numpy()
        filtered = [
            signal.lfilter([1], [1, -v], x[0].numpy() @ row)
            for v, row in zip(values, B, strict=True)
        ]
        expected = (np.array(filtered).T @ C.T).real + x[0].numpy() @ D.T
        np.testing.assert_allclose(layer(x)[0][0], expected, atol=1e-9)


@given(seeds, st.floats(-50, 50))
def test_eigenvalues_never_leave_the_circle(rng, scale):
    layer = randomised("LRU", rng)
    with torch.no_grad():
        layer.nu.mul_(abs(scale) * 0.5).clamp_(-30, 30)
        layer.phi.mul_(scale)
    assert (layer.eigenvalues.abs() < 1).all()


def test_first_eigenvalues_are_uniform_on_the_ring():
    draw = torch.Generator().manual_seed(0)
    for low, high, phase in [(0, 1, 6), (0.4, 0.9, 6.28), (0.9, 0.999, 0.3)]:
        r, angle = ring(4000, low, high, phase, draw)
        share = (r**2 - low**2) / (high**2 - low**2)
        assert stats.kstest(share, "uniform").pvalue > 0.01
        assert stats.kstest(angle / phase, "uniform").pvalue > 0.01
    # a radius that is uniform itself is found out
    wrong = 0.4 + 0.5 * torch.rand(4000, generator=draw).double()
    share = (wrong**2 - 0.4**2) / (0.9**2 - 0.4**2)
    assert stats.kstest(share, "uniform").pvalue < 1e-6


def test_a_new_layer_starts_on_the_ring_and_is_normalised():
    draw = torch.Generator().manual_seed(0)
    layer = LRU(2, 500, 1, r_min=0.5, r_max=0.9, phase=1.0, generator=draw)
    values = layer.eigenvalues
    assert 0.5 <= values.abs().min() < 0.51
    assert 0.89 < values.abs().max() <= 0.9
    assert 0 <= values.angle().min() < values.angle().max() <= 1
    gamma = layer.log_gamma.exp()
    torch.testing.assert_close(gamma**2 + values.abs() ** 2, torch.ones(500))


def test_small_unit_by_hand():
    layer = LRU(1, 1, 1).double()
    with torch.no_grad():
        layer.nu.copy_(torch.tensor([np.log(np.log(2))]))  # |λ| = 1/2
        layer.phi.fill_(np.pi / 2)
        layer.log_gamma.zero_()
        layer.B.copy_(torch.tensor([1.0, 0.0]))
        layer.C.copy_(torch.tensor([1.0, 0.0]))
        layer.D.fill_(3)
    y, (z,) = layer(torch.tensor([[[4.0], [0], [0], [0]]]).double())
    expected = torch.tensor([16.0, 0, -1, 0]).double()  # 4, 2i, −1, −i/2
    torch.testing.assert_close(y.flatten(), expected)
    assert z.item() == pytest.approx(-0.5j)


@given(seeds, st.integers(1, 6))
def test_both_bases_have_the_same_outputs(rng, N):
    A, B, C = normal(rng, N, N), normal(rng, N, 2), normal(rng, 3, N)
    values, B_new, C_new = diagonalize(A, B, C)
    for t in range(5):
        theirs = C @ torch.linalg.matrix_power(A, t) @ B
        ours = C_new * values**t @ B_new
        assert ours.imag.abs().max() < 1e-6 * (1 + theirs.abs().max())
        torch.testing.assert_close(ours.real, theirs, rtol=1e-5, atol=1e-6)


X = torch.zeros(2, 5, 3)
M = torch.eye(2)
JORDAN = torch.tensor([[1.0, 1], [0, 1]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: MinGRU(3, 4)(X[:, :, :2]), "MinGRU: x must have the axes (B, T, 3) with at least one time; got shape (2, 5, 2)"),
        (lambda: LRU(3, 4, 2)(X[:, :0]), "LRU: x must have the axes (B, T, 3) with at least one time; got shape (2, 0, 3)"),
        (lambda: MinLSTM(3, 4).step(X), "MinLSTM: x must"),
        (lambda: MinGRU(3, 4)(X, state=(X[:, 0],)), "MinGRU: state must have parts of the shapes [(2, 4)]; got [(2, 3)]"),
        (lambda: MinGRU(3, 4)(X, torch.tensor([5, 6])), "MinGRU: lengths must lie between 1 and 5; got [5, 6]"),
        (lambda: MinGRU(0, 4), "MinGRU: inputs must be a whole number from 1 on; got 0"),
        (lambda: LRU(3, 4, 0), "LRU: outputs must"),
        (lambda: LRU(3, 4, 2, r_min=0.9, r_max=0.5), "ring: radii must have 0 ≤ r_min ≤ r_max ≤ 1, and not both be 0 or 1; got 0.9 and 0.5"),
        (lambda: ring(3, 1, 1), "got 1 and 1"),
        (lambda: ring(3, 0, 0), "got 0 and 0"),
        (lambda: ring(0, 0, 1), "ring: count must"),
        (lambda: diagonalize(JORDAN, M, M), "diagonalize: A must have eigenvectors of a condition number below 3e+03; got"),
        (lambda: diagonalize(M, M, torch.eye(3)), "diagonalize: C must have the shape (…, 2); got shape (3, 3)"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unchecked")
def test_refuses_with_a_sentence(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()
