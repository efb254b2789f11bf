import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch.optim import lr_scheduler

from dlcore.optimization import schedules


def torchs(make, count):
    """Return the step sizes of a scheduler of torch, starting from 1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = make(optimizer)
    factors = []
    for _ in range(count):
        factors.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return factors


@given(every=st.integers(1, 5), factor=st.floats(0.1, 1))
def test_steps_equal_torch(every, factor):
    ours = [schedules.steps(every, factor)(t) for t in range(20)]
    theirs = torchs(lambda o: lr_scheduler.StepLR(o, every, factor), 20)
    assert_allclose(ours, theirs)


@given(factor=st.floats(0.1, 1))
def test_exponential_equals_torch(factor):
    ours = [schedules.exponential(factor)(t) for t in range(20)]
    theirs = torchs(lambda o: lr_scheduler.ExponentialLR(o, factor), 20)
    assert_allclose(ours, theirs)


@given(total=st.integers(1, 20))
def test_linear_equals_torch(total):
    ours = [schedules.linear(total)(t) for t in range(total + 3)]
    theirs = torchs(lambda o: lr_scheduler.LinearLR(o, 1, 0, total), total + 3)
    assert_allclose(ours, theirs, atol=1e-9)
    half = schedules.linear(2 * total, flat=0.5)
    assert {half(t) for t in range(total + 1)} == {1.0}
    assert_allclose([half(total + t) for t in range(total + 3)], ours)


@given(total=st.integers(1, 20), last=st.floats(0, 1))
def test_cosine_equals_torch(total, last):
    schedule = schedules.cosine(total, last)
    ours = [schedule(t) for t in range(total + 1)]
    theirs = torchs(
        lambda o: lr_scheduler.CosineAnnealingLR(o, total, eta_min=last), total + 1
    )
    assert_allclose(ours, theirs, atol=1e-9)
    assert schedule(total + 7) == schedule(total)


@given(total=st.integers(1, 9))
def test_warmup_rises_in_equal_steps_then_hands_over(total):
    schedule = schedules.warmup(total, schedules.exponential(0.5))
    rise = [schedule(t) for t in range(total + 1)]
    assert_allclose(np.diff(rise), 1 / (total + 1))
    assert_allclose([schedule(total), schedule(total + 2)], [1, 0.25])


def test_inverse_by_hand():
    schedule = schedules.inverse(0.5, scale=2)
    assert_allclose([schedule(0), schedule(6)], [1, 0.5])
    assert schedules.constant()(123) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: schedules.steps(0, 0.5), "steps: every must be a whole"),
        (lambda: schedules.steps(1, 0), "steps: factor must be positive"),
        (lambda: schedules.inverse(0), "inverse: power must be positive"),
        (lambda: schedules.inverse(1, 0), "inverse: scale must be positive"),
        (lambda: schedules.linear(0), "linear: total must be a whole"),
        (lambda: schedules.linear(3, 1.0), r"linear: flat must lie in \[0, 1\)"),
        (lambda: schedules.cosine(0), "cosine: total must be a whole"),
        (lambda: schedules.cosine(3, 2), r"cosine: last must lie in \[0, 1\]"),
        (lambda: schedules.warmup(0, abs), "warmup: total must be a whole"),
        (lambda: schedules.warmup(2, 0.5), "warmup: then must be a schedule"),
        (lambda: schedules.exponential(-1), "exponential: factor must be pos"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
