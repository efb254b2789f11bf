import numpy as np
import pytest
import torch
from draws import seeds
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from dlcore.optim import GD, Adam


@pytest.mark.parametrize(
    ("ours", "theirs"), [(GD, torch.optim.SGD), (Adam, torch.optim.Adam)]
)
@given(rng=seeds, steps=st.integers(1, 20), lr=st.floats(1e-5, 1.0))
def test_equals_torch(ours, theirs, rng, steps, lr):
    shapes = [(3, 2), (3,)]
    mine = [rng.normal(size=shape) for shape in shapes]
    want = [torch.nn.Parameter(torch.tensor(p)) for p in mine]
    ours, theirs = ours(mine, lr), theirs(want, lr)
    for _ in range(steps):
        gradients = [rng.normal(size=shape) for shape in shapes]
        for p, g in zip(want, gradients, strict=True):
            p.grad = torch.tensor(g)
        ours.step(gradients)
        theirs.step()
    for p, q in zip(mine, want, strict=True):
        assert_allclose(p, q.detach(), rtol=1e-9, atol=1e-12)


@given(scale=st.floats(1e-3, 1e3), sign=st.sampled_from([-1, 1]))
def test_first_step_of_adam_has_length_lr_whatever_the_gradient(scale, sign):
    p = np.zeros(1)
    Adam([p], lr=0.1).step([np.array([sign * scale])])
    assert_allclose(p, [-0.1 * sign], rtol=1e-4)


@pytest.mark.usefixtures("unchecked")
def test_refusals():
    p = np.zeros(1)
    with pytest.raises(
        ValueError, match=r"Adam: betas must lie in \[0, 1\); got \(0.9, 1.0\)"
    ):
        Adam([p], betas=(0.9, 1.0))
    for lr in (0, np.inf, np.nan):
        with pytest.raises(
            ValueError, match=f"GD: lr must be positive and finite; got {lr}"
        ):
            GD([p], lr=lr)
    for eps in (0, -1e-8, np.inf, np.nan):
        with pytest.raises(
            ValueError, match="Adam: eps must be positive and finite; got"
        ):
            Adam([p], eps=eps)
    with pytest.raises(ValueError, match="GD: parameters must not be empty"):
        GD([], lr=1)
    with pytest.raises(
        ValueError,
        match=r"GD: gradients must have the shapes \[\(1,\)\]; got \[\]",
    ):
        GD([p], lr=1).step([])
