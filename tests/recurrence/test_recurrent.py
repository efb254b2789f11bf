import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from torch.func import functional_call
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from twins import copy_layer, leaf, randomised

from dlcore.recurrence.recurrent import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    CoupledLSTM,
    PeepholeLSTM,
    Stacked,
    length_mask,
    reversed_within,
)

PAIRS = {RNN: nn.RNN, LSTM: nn.LSTM, GRU: nn.GRU}
KINDS = [RNN, LSTM, GRU, CoupledLSTM, PeepholeLSTM]
sizes = st.integers(1, 5)


@pytest.mark.parametrize("kind", PAIRS)
@given(seeds, sizes, st.integers(1, 8), sizes, sizes)
def test_values_and_gradients_are_those_of_torch(kind, rng, B, T, D, H):
    ours = randomised(kind(D, H).double(), rng)
    theirs = PAIRS[kind](D, H, batch_first=True).double()
    copy_layer(ours, theirs)
    x = leaf(rng, B, T, D)
    start = tuple(leaf(rng, B, H) for _ in range(ours.states))
    h, state = ours(x, state=start)
    given_state = [s[None] for s in start]
    y, end = theirs(x, tuple(given_state) if ours.states > 1 else given_state[0])
    torch.testing.assert_close(h, y)
    ends = end if ours.states > 1 else (end,)
    torch.testing.assert_close(state, tuple(e[0] for e in ends))

    delta = torch.tensor(rng.normal(size=h.shape))
    mine = torch.autograd.grad(h, [x, *start, ours.V, ours.U, ours.b], delta)
    weights = [theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_ih_l0]
    other = torch.autograd.grad(y, [x, *start, *weights], delta)
    torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("kind", PAIRS)
@given(seeds, st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_stack_of_two_directions_with_lengths_is_that_of_torch(kind, rng, lengths):
    make = [
        (kind(3, 2).double(), kind(3, 2).double()),
        (kind(4, 2).double(), kind(4, 2).double()),
    ]
    theirs = PAIRS[kind](
        3, 2, num_layers=2, bidirectional=True, batch_first=True
    ).double()
    for number, pair in enumerate(make):
        for layer, end in zip(pair, ("", "_reverse"), strict=True):
            copy_layer(randomised(layer, rng), theirs, f"l{number}{end}")
    ours = Stacked([Bidirectional(*pair) for pair in make])
    x, many = leaf(rng, len(lengths), 6, 3), torch.tensor(lengths)
    packed = pack_padded_sequence(x, many, True, enforce_sorted=False)
    y, _ = pad_packed_sequence(theirs(packed)[0], True, total_length=6)
    torch.testing.assert_close(ours(x, many)[0], y)


@pytest.mark.parametrize("kind", KINDS)
@given(seeds, st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_padding_changes_nothing_and_gets_nothing(kind, rng, lengths):
    layer = Bidirectional(
        randomised(kind(3, 2).double(), rng), randomised(kind(3, 2).double(), rng)
    )
    x = leaf(rng, len(lengths), 6, 3)
    mask = length_mask(torch.tensor(lengths), 6)
    spoiled = x.detach().clone()
    spoiled[~mask] = float("nan")
    spoiled.requires_grad_()
    results = []
    for rows in (x, spoiled):
        h, state = layer(rows, torch.tensor(lengths))
        slopes = torch.autograd.grad(
            h.square().sum() + sum(s.sum() for s in state), [rows, *layer.parameters()]
        )
        results.append((h, state, slopes))
    torch.testing.assert_close(*results)
    h, state, (by_input, *_) = results[1]
    assert not h[~mask].any()
    assert not by_input[~mask].any()
    for row, n in enumerate(lengths):  # as if it were alone
        alone, end = layer(x[row : row + 1, :n])
        torch.testing.assert_close(alone[0], h[row, :n])
        torch.testing.assert_close([s[0] for s in end], [s[row] for s in state])


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_and_their_slopes_are_those_of_difference_quotients(kind):
    rng = np.random.default_rng(0)
    layer = randomised(kind(2, 2).double(), rng)
    x = leaf(rng, 2, 3, 2)
    start = [leaf(rng, 2, 2) for _ in range(layer.states)]
    names, weights = zip(*layer.named_parameters(), strict=True)

    def run(x, *rest):
        values = dict(zip(names, rest, strict=False))
        state = rest[len(names) :]
        how = {"lengths": torch.tensor([3, 2]), "state": state}
        h, end = functional_call(layer, values, (x,), how)
        return h, *end

    assert torch.autograd.gradcheck(run, (x, *weights, *start), fast_mode=True)
    assert torch.autograd.gradgradcheck(run, (x, *weights, *start), fast_mode=True)


@pytest.mark.parametrize("kind", KINDS)
@given(seeds, st.integers(1, 5))
def test_outputs_do_not_depend_on_the_future(kind, rng, t):
    layer = randomised(kind(3, 2).double(), rng)
    x = leaf(rng, 2, 6, 3).detach()
    before = layer(x)[0][:, :t]
    x[:, t:] = 7.0
    torch.testing.assert_close(layer(x)[0][:, :t], before)


@pytest.mark.parametrize("kind", KINDS)
@given(seeds, st.integers(1, 5))
def test_sequence_can_be_read_in_two_parts(kind, rng, t):
    layer = randomised(kind(3, 2).double(), rng)
    x = leaf(rng, 2, 6, 3)
    whole, end = layer(x)
    first, state = layer(x[:, :t])
    second, state = layer(x[:, t:], state=state)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    torch.testing.assert_close(state, end)


@given(seeds)
def test_reset_before_is_the_formula_of_cho(rng):
    layer = randomised(GRU(3, 2, reset="before").double(), rng)
    x, h = leaf(rng, 4, 1, 3), leaf(rng, 4, 2)
    V, U, b = (p.chunk(3) for p in (layer.V, layer.U, layer.b))
    z = [x[:, 0] @ v.T + c for v, c in zip(V, b, strict=True)]
    r = torch.sigmoid(z[0] + h @ U[0].T)
    u = torch.sigmoid(z[1] + h @ U[1].T)
    expected = u * h + (1 - u) * torch.tanh(z[2] + (r * h) @ U[2].T)
    torch.testing.assert_close(layer(x, state=(h,))[1][0], expected)
    assert layer.d is None


@given(seeds)
def test_coupled_cell_stays_between_old_and_candidate(rng):
    layer = randomised(CoupledLSTM(3, 2).double(), rng)
    x, h, c = leaf(rng, 4, 1, 3), leaf(rng, 4, 2), leaf(rng, 4, 2)
    _, (_, new) = layer(x, state=(h, c))
    z = x[:, 0] @ layer.V.T + layer.b + h @ layer.U.T
    f, candidate, _ = z.chunk(3, dim=1)
    candidate = torch.tanh(candidate)
    assert (new >= torch.minimum(c, candidate) - 1e-12).all()
    assert (new <= torch.maximum(c, candidate) + 1e-12).all()
    torch.testing.assert_close(
        new, torch.sigmoid(f) * c + (1 - torch.sigmoid(f)) * candidate
    )


@given(seeds)
def test_peepholes_that_are_closed_leave_an_lstm(rng):
    layer = randomised(PeepholeLSTM(3, 2).double(), rng)
    plain = LSTM(3, 2).double()
    plain.load_state_dict({k: v for k, v in layer.state_dict().items() if k != "p"})
    x = leaf(rng, 4, 5, 3)
    assert not torch.allclose(layer(x)[0], plain(x)[0])
    with torch.no_grad():
        layer.p.zero_()
    torch.testing.assert_close(layer(x)[0], plain(x)[0])


def test_peephole_of_the_output_sees_the_new_cell():
    layer = PeepholeLSTM(1, 1).double()
    with torch.no_grad():
        for p in layer.parameters():
            p.zero_()
        layer.b.copy_(torch.tensor([50.0, 50.0, 50.0, 0.0]))  # i, f, c̃, o
        layer.p[2] = 1.0
    zero = torch.zeros(1, 1, dtype=torch.float64)
    _, (h, c) = layer(zero[None], state=(zero, zero + 2))
    expected = torch.sigmoid(c) * torch.tanh(c)
    assert c.item() == pytest.approx(3)
    torch.testing.assert_close(h, expected)


def test_small_network_by_hand():
    layer = RNN(1, 1, phi=torch.relu)
    with torch.no_grad():
        layer.V[:], layer.U[:], layer.b[:] = 2.0, 0.5, 1.0
    h, (end,) = layer(torch.tensor([[[1.0], [0.0], [-3.0]]]))
    assert h.flatten().tolist() == [3.0, 2.5, 0.0]
    assert end.item() == 0.0


@pytest.mark.parametrize(
    ("kind", "low"), [(LSTM, 4), (CoupledLSTM, 0), (PeepholeLSTM, 4)]
)
def test_forget_gate_starts_open(kind, low):
    layer = kind(3, 4, forget_bias=2.5)
    opened = torch.zeros_like(layer.b)
    opened[low : low + 4] = 2.5
    assert torch.equal(layer.b, opened)


def test_first_weights_come_from_the_generator():
    def draw():
        return GRU(3, 16, generator=torch.Generator().manual_seed(1))

    one, two = draw(), draw()
    assert torch.equal(one.U, two.U)
    assert 0.24 < one.U.abs().max() <= 0.25


def test_turned_sequences_keep_their_padding():
    x = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 9.0]])[:, :, None]
    assert reversed_within(x, torch.tensor([3, 2])).squeeze(2).tolist() == [
        [3.0, 2.0, 1.0],
        [2.0, 1.0, 9.0],
    ]
    assert torch.equal(reversed_within(x), x.flip(1))


X, LENGTHS = torch.zeros(2, 5, 3), torch.tensor([5, 0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LSTM(3, 4)(X[:, :, :2]), "LSTM: x must have the axes (B, T, 3) with at least one time; got shape (2, 5, 2)"),
        (lambda: GRU(3, 4)(X[:, :0]), "with at least one time; got shape (2, 0, 3)"),
        (lambda: RNN(3, 4)(X[0]), "got shape (5, 3)"),
        (lambda: RNN(3, 4)(X, LENGTHS), "RNN: lengths must lie between 1 and 5; got [5, 0]"),
        (lambda: RNN(3, 4)(X, LENGTHS + 6), "lie between 1 and 5; got [11, 6]"),
        (lambda: RNN(3, 4)(X, torch.tensor([5.0, 2.5])), "RNN: lengths must be whole numbers; got torch.float32"),
        (lambda: RNN(3, 4)(X, torch.tensor([True, True])), "RNN: lengths must be whole numbers; got torch.bool"),
        (lambda: RNN(3, 4)(X, torch.tensor([[5], [2]])), "RNN: lengths must have the shape (…,); got shape (2, 1)"),
        (lambda: RNN(3, 4)(X, torch.tensor([5])), "RNN: lengths must be as many as the sequences, 2; got 1"),
        (lambda: reversed_within(X, torch.tensor([5])), "reversed_within: lengths must be as many as the sequences, 2; got 1"),
        (lambda: LSTM(3, 4)(X, state=(X[:, 0],)), "LSTM: state must have parts of the shapes [(2, 4), (2, 4)]; got [(2, 3)]"),
        (lambda: RNN(0, 4), "RNN: inputs must be a whole number from 1 on; got 0"),
        (lambda: GRU(3, 0), "GRU: hidden must"),
        (lambda: GRU(3, 4, reset="never"), "GRU: reset must be one of ['after', 'before']; got 'never'"),
        (lambda: Stacked([]), "Stacked: layers must not be empty"),
        (lambda: reversed_within(X, LENGTHS), "reversed_within: lengths must lie between 1 and 5"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unchecked")
def test_refuses_with_a_sentence(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()
