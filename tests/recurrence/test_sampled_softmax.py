"""Tests of dlcore.recurrence.sampled_softmax."""

from itertools import product
from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from dlcore.recurrence.sampled_softmax import (
    AliasSampler,
    anchored_loss,
    importance_loss,
    importance_weights,
    nce_loss,
    negative_sampling_loss,
)


def scores(rng, *shape):
    return torch.tensor(rng.normal(size=shape))


def simplex(rng, C):
    return torch.tensor(rng.dirichlet(np.ones(C)) + 1e-3)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=50))
def test_cells_give_the_probabilities(weights):
    weights = torch.tensor(weights, dtype=torch.float64)
    noise = AliasSampler(weights)
    assert torch.allclose(noise.probabilities(), weights / weights.sum())
    assert torch.allclose(noise.log_q.exp(), weights / weights.sum())


def test_noise_by_hand():
    noise = AliasSampler(torch.tensor([16.0, 81.0]), power=0.75)
    assert torch.allclose(noise.log_q.exp(), torch.tensor([8, 27]).double() / 35)
    flat = AliasSampler(torch.tensor([1.0, 9.0, 5.0]), power=0)
    assert torch.allclose(flat.log_q.exp(), torch.full((3,), 1 / 3).double())
    drawn = noise.draw(5000, 2, generator=torch.Generator().manual_seed(0))
    assert drawn.shape == (5000, 2)
    assert abs(drawn.double().mean().item() - 27 / 35) < 0.02


@given(seeds)
def test_each_class_once_gives_cross_entropy(rng):
    C, B = int(rng.integers(1, 8)), 4
    o, y = scores(rng, B, C).requires_grad_(), torch.arange(B) % C
    log_q = torch.full((1, C), -log(C), dtype=torch.float64)
    ours = importance_loss(o[torch.arange(B), y], o, log_q)
    theirs = cross_entropy(o, y, reduction="none")
    assert torch.allclose(ours, theirs)
    for one, other in zip(
        torch.autograd.grad(ours.sum(), o, retain_graph=True),
        torch.autograd.grad(theirs.sum(), o),
        strict=True,
    ):
        assert torch.allclose(one, other)


@given(seeds)
def test_gradient_of_the_importance_loss_is_the_weighted_mean(rng):
    o_y, o = scores(rng, 3).requires_grad_(), scores(rng, 3, 5).requires_grad_()
    log_q = scores(rng, 1, 5)
    importance_loss(o_y, o, log_q).sum().backward()
    assert torch.allclose(o.grad, importance_weights(o.detach(), log_q))
    assert torch.allclose(o_y.grad, -torch.ones(3).double())


@given(seeds, st.integers(1, 4))
def test_estimate_of_the_normaliser_is_unbiased(rng, k):
    """All C**k draws, each with its probability."""
    C = 3
    o, q = scores(rng, C), simplex(rng, C)
    q = q / q.sum()
    mean = 0.0
    for draw in product(range(C), repeat=k):
        rows = list(draw)
        loss = importance_loss(
            torch.zeros(1).double(), o[None, rows], q.log()[None, rows]
        )
        mean += q[rows].prod() * loss.exp()[0]
    assert torch.isclose(mean, o.exp().sum())


@given(seeds, st.integers(1, 4))
def test_anchored_normaliser_is_unbiased_and_at_least_its_anchor(rng, k):
    C, y = 3, 1
    o, q = scores(rng, C), simplex(rng, C)
    q = q / q.sum()
    rows = torch.tensor([*product(range(C), repeat=k)])
    loss = anchored_loss(o[y].expand(len(rows)), o[rows], q.log()[rows], rows == y)
    assert (loss >= 0).all()
    Z = (q[rows].prod(dim=1) * (loss + o[y]).exp()).sum()
    assert torch.isclose(Z, o.exp().sum())
    only = torch.full((1, k), y)
    sure = anchored_loss(o[y][None], o[only], q.log()[only], only == y)
    assert sure.item() == 0


@given(seeds)
def test_parity_with_binary_cross_entropy(rng):
    o_y, o = scores(rng, 4), scores(rng, 4, 6)
    both = torch.cat([o_y[:, None], o], dim=1).requires_grad_()
    labels = torch.zeros(4, 7).double()
    labels[:, 0] = 1
    theirs = binary_cross_entropy_with_logits(both, labels, reduction="none").sum(1)
    ours = negative_sampling_loss(both[:, 0], both[:, 1:])
    assert torch.allclose(ours, theirs)
    one, other = (
        torch.autograd.grad(loss.sum(), both, retain_graph=True)[0]
        for loss in (ours, theirs)
    )
    assert torch.allclose(one, other)


@given(seeds, st.integers(1, 3))
def test_expected_gradients_vanish_at_their_optima(rng, k):
    """A class from p and k from q: all cases, each with its probability."""
    C = 3
    p, q = simplex(rng, C), simplex(rng, C)
    p, q = p / p.sum(), q / q.sum()
    rows = torch.tensor([*product(range(C), repeat=k + 1)])
    y, drawn = rows[:, 0], rows[:, 1:]
    chance = p[y] * q[drawn].prod(dim=1)
    assert torch.isclose(chance.sum(), torch.ones(()).double())
    log_q = q.log()
    o = p.log().requires_grad_()
    nce = nce_loss(o[y], log_q[y], o[drawn], log_q[drawn])
    (grad,) = torch.autograd.grad((chance * nce).sum(), o)
    assert torch.allclose(grad, torch.zeros(C).double(), atol=1e-12)
    o = (p / (k * q)).log().requires_grad_()
    ns = negative_sampling_loss(o[y], o[drawn])
    (grad,) = torch.autograd.grad((chance * ns).sum(), o)
    assert torch.allclose(grad, torch.zeros(C).double(), atol=1e-12)


def test_losses_by_hand():
    zero, row = torch.zeros(1), torch.zeros(1, 2)
    half = torch.log(torch.tensor(2.0))
    assert torch.allclose(negative_sampling_loss(zero, row), 3 * half)
    # 4 equal classes, 2 draws, p = q = 1/4: odds of data 1 to 2
    log_q = torch.full((1, 2), -log(4))
    loss = nce_loss(torch.tensor([-log(4)]), torch.tensor([-log(4)]), log_q, log_q)
    assert torch.allclose(loss, torch.tensor([log(3) + 2 * log(1.5)]))


@pytest.mark.usefixtures("unchecked")
def test_refusals():
    with pytest.raises(ValueError, match="at least one class"):
        AliasSampler(torch.zeros(0))
    with pytest.raises(ValueError, match="never pushed down"):
        AliasSampler(torch.tensor([1.0, 0.0]))
    with pytest.raises(ValueError, match="finite"):
        AliasSampler(torch.tensor([1.0, torch.inf]))
    with pytest.raises(ValueError, match="whole number"):
        AliasSampler(torch.ones(2)).draw(-1)
    with pytest.raises(ValueError, match="at least one draw"):
        importance_weights(torch.zeros(2, 0), torch.zeros(2, 0))
    with pytest.raises(ValueError, match=r"o must have the shape \(3, …\)"):
        negative_sampling_loss(torch.zeros(3), torch.zeros(2, 4))
