from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import seeds

from dlcore.optimization.autograd import Tensor, cross_entropy
from dlcore.optimization.modules import Linear, Parameter, Sequential
from dlcore.optimization.optimizers import GD, Adam
from dlcore.optimization.schedules import linear
from dlcore.optimization.training import EarlyStopping, batches, minimise, train


@given(rng=seeds, s=st.integers(1, 50), batch=st.integers(1, 60))
def test_every_row_has_its_turn_once_in_an_epoch(rng, s, batch):
    pieces = list(batches(s, batch, rng))
    assert_array_equal(np.sort(np.concatenate(pieces)), np.arange(s))
    assert [len(p) for p in pieces[:-1]] == [batch] * (len(pieces) - 1)
    assert 1 <= len(pieces[-1]) <= batch


def test_a_batch_of_all_rows_keeps_their_order():
    for batch in [None, 4, 9]:
        (rows,) = batches(4, batch, np.random.default_rng(0))
        assert_array_equal(rows, [0, 1, 2, 3])


def test_by_hand():
    """The mean of two numbers, by gradient descent on half the squared distance."""
    p, x = Parameter([0.0]), np.array([[2.0], [4.0]])
    costs = train(
        lambda rows: ((p - rows) ** 2).mean() * 0.5,
        [x],
        GD([p], lr=0.5),
        epochs=2,
        rng=np.random.default_rng(0),
    )
    assert_array_equal(p.data, [2.25])  # 0, 1.5, 2.25
    assert_array_equal(costs, [5, 0.5 * (0.25 + 6.25) / 2])


def test_the_cost_of_an_epoch_weighs_batches_by_their_rows():
    p, x = Parameter([1.0]), np.arange(5.0)[:, None]
    costs = train(
        lambda rows: (p * rows).mean(),
        [x],
        GD([p], lr=1e-12),
        epochs=3,
        rng=np.random.default_rng(0),
        batch=2,
    )
    assert_allclose(costs, [2, 2, 2], rtol=1e-9)


def both(rng, dtype):
    ours = Sequential(Linear(4, 8, rng), Tensor.tanh, Linear(8, 3, rng))
    theirs = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    ).to(dtype)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        q.data[...] = torch.tensor(p.data)
    return ours, theirs


@pytest.mark.parametrize("who", ["ours", "torch"])
def test_the_same_loop_trains_a_model_of_torch(who):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), rng.integers(0, 3, 20)
    ours, theirs = both(rng, torch.float64)
    mine = train(
        lambda X, y: cross_entropy(ours(Tensor(X)), y),
        [X, y],
        Adam(ours.parameters(), lr=0.01),
        epochs=5,
        rng=np.random.default_rng(1),
        batch=6,
    )
    optimizer = Adam if who == "ours" else torch.optim.Adam
    want = train(
        lambda X, y: torch.nn.functional.cross_entropy(theirs(X), y),
        [torch.tensor(X), torch.tensor(y)],
        optimizer(theirs.parameters(), lr=0.01),
        epochs=5,
        rng=np.random.default_rng(1),
        batch=6,
    )
    assert_allclose(mine, want, rtol=1e-9)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_allclose(p.data, q.detach(), rtol=1e-8, atol=1e-10)


def test_training_stops_where_asked():
    p, seen = Parameter([1.0]), []
    costs = train(
        lambda rows: (p * rows).sum(),
        [np.ones(3)],
        GD([p], lr=0.1),
        epochs=9,
        rng=np.random.default_rng(0),
        after_epoch=lambda done: seen.append(done) or done == 4,
    )
    assert seen == [1, 2, 3, 4]
    assert len(costs) == 4


def by_hand(cost, draws, optimizer, lr, schedule, clip_at):
    """The same as minimise with torch's own parts."""
    costs = []
    for t, batch in enumerate(draws):
        for group in optimizer.param_groups:
            group["lr"] = lr * schedule(t)
        optimizer.zero_grad()
        value = cost(*batch)
        value.backward()
        (weights,) = [group["params"] for group in optimizer.param_groups]
        norm = torch.nn.utils.get_total_norm(p.grad for p in weights)
        for p in weights:
            p.grad *= min(1, clip_at / norm)
        optimizer.step()
        costs.append(value.item())
    return costs


def test_schedule_and_clipping_are_those_of_torch():
    rng, schedule = np.random.default_rng(0), linear(20)
    _, model = both(rng, torch.float64)
    twin = deepcopy(model)
    draws = [
        (torch.tensor(5 * rng.normal(size=(6, 4))), torch.tensor(rng.integers(0, 3, 6)))
        for _ in range(20)
    ]

    def cost_of(net):
        return lambda X, y: torch.nn.functional.cross_entropy(net(X), y)

    want = by_hand(
        cost_of(twin), draws, torch.optim.SGD(twin.parameters()), 0.3, schedule, 0.5
    )
    optimizer = GD(model.parameters(), 0.3)
    got = minimise(cost_of(model), optimizer, draws, schedule=schedule, clip_at=0.5)
    assert_allclose(got, want, rtol=1e-9)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert_allclose(p.detach(), q.detach(), rtol=1e-8, atol=1e-10)
    assert optimizer.lr == 0.3


def test_a_cost_may_draw_its_own_batches():
    p, q, numbers = Parameter([1.0]), Parameter([1.0]), np.arange(1.0, 7.0)
    handed = minimise(lambda x: (p - x) ** 2, GD([p], 0.1), ([x] for x in numbers))
    source = iter(numbers)
    drawn = minimise(lambda: (q - next(source)) ** 2, GD([q], 0.1), 6)
    assert_array_equal(handed, drawn)
    assert_array_equal(p.data, q.data)


def test_minimise_stops_after_the_step_that_is_told():
    p, seen = Parameter([1.0]), []
    costs = minimise(
        lambda: p * p, GD([p], 0.25), 9, after_step=lambda t: seen.append(t) or t == 3
    )
    assert seen == [1, 2, 3]
    assert_array_equal(costs, [1, 0.25, 0.0625])


def test_early_stopping_keeps_a_copy_of_a_module_of_torch():
    model = torch.nn.Linear(1, 1)
    stopper = EarlyStopping(model, lambda: 1.0, patience=1)
    stopper(1)
    before = deepcopy(model.state_dict())
    with torch.no_grad():
        model.weight.add_(1)
    stopper.restore()
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


@given(scores=st.lists(st.integers(0, 5), min_size=1), patience=st.integers(1, 4))
def test_early_stopping_ends_after_its_patience_at_the_best_state(scores, patience):
    """Against the rule in words: the first lowest score with so many epochs after it."""
    model = Linear(1, 1, np.random.default_rng(0))
    epoch = 0

    def cost(x):
        return (model(Tensor(x)) * 0).sum()

    def score():
        nonlocal epoch
        epoch += 1
        model.b.data[:] = epoch  # so that states can be told apart
        return scores[epoch - 1]

    stopper = EarlyStopping(model, score, patience)
    train(
        cost,
        [np.ones((2, 1))],
        GD(model.parameters(), lr=1),
        len(scores),
        np.random.default_rng(0),
        after_epoch=stopper,
    )
    for end in range(1, len(scores) + 1):
        best = int(np.argmin(scores[:end])) + 1
        if end - best >= patience:
            break
    assert len(stopper.scores) == end
    assert stopper.best_epoch == best
    stopper.restore()
    assert model.b.data == best


def test_early_stopping_counts_on_in_a_second_run():
    model = Linear(1, 1, np.random.default_rng(0))
    scores = iter([5.0, 4.0, 3.0, 6.0, 7.0])
    stopper = EarlyStopping(model, lambda: next(scores), 2)
    assert [stopper(done) for done in (1, 2, 3)] == [False] * 3
    assert [stopper(done) for done in (1, 2)] == [False, True]
    assert stopper.best_epoch == 3


@pytest.mark.usefixtures("unchecked")
def test_early_stopping_refuses():
    model = Linear(1, 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="patience must be a whole number from 1"):
        EarlyStopping(model, lambda: 0.0, 0)
    stopper = EarlyStopping(model, lambda: np.nan, 1)
    with pytest.raises(ValueError, match="score must be a number; got nan"):
        stopper(1)
    with pytest.raises(ValueError, match="have seen an epoch before restore"):
        stopper.restore()


p, rng = Parameter([1.0]), np.random.default_rng(0)
theirs = torch.optim.SGD([torch.ones(1, requires_grad=True)])


def cost(rows):
    return (p * rows).sum()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: train(cost, [np.ones(3)], GD([p], lr=1), 0, rng),
            "train: epochs must be a whole",
        ),
        (
            lambda: train(cost, [np.ones(3), np.ones(2)], GD([p], lr=1), 1, rng),
            r"train: arrays must be equally long; got \[3, 2\]",
        ),
        (lambda: train(cost, [], GD([p], lr=1), 1, rng), r"be equally long; got \[\]"),
        (
            lambda: train(cost, [np.ones(3)], GD([p], lr=1), 1, rng, batch=0),
            "batches: batch must be a whole",
        ),
        (lambda: batches(0, None, rng), "batches: s must be a whole"),
        (
            lambda: train(cost, [np.full(3, np.nan)], GD([p], lr=1), 1, rng),
            "minimise: the cost must stay finite; got nan in step 1",
        ),
        (
            lambda: minimise(cost, GD([p], lr=1), 0),
            "minimise: draws must be a whole number",
        ),
        (
            lambda: minimise(cost, theirs, 1, clip_at=1.0),
            "be one of dlcore to clip or follow",
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
