import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from dlcore.optimization import data_parallel


def softmax_regression(W, X, y, lr, steps):
    """Train on all rows in this process, with PyTorch's optimizer."""
    W, X, y = torch.tensor(W, requires_grad=True), torch.tensor(X), y.copy()
    optimizer = torch.optim.SGD([W], lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        scores = X @ W.T
        torch.nn.functional.cross_entropy(scores, torch.tensor(y)).backward()
        optimizer.step()
    return W.detach().numpy()


def test_unequal_shares_train_as_one_large_batch():
    rng = np.random.default_rng(0)
    W, X = rng.normal(size=(3, 4)), rng.normal(size=(12, 4))
    y = rng.integers(0, 3, size=12)
    cut = [slice(0, 9), slice(9, 12)]
    shares = [(W, X[rows], y[rows], 0.5, 4) for rows in cut]
    first, second = data_parallel.run(data_parallel.train_softmax, shares)
    assert_allclose(first, softmax_regression(W, X, y, 0.5, 4), rtol=1e-12)
    assert_allclose(first, second, rtol=0)


def test_one_process_is_a_group_and_its_errors_are_raised_here():
    W, y = np.zeros((2, 3)), np.array([0, 1])
    with pytest.raises(RuntimeError, match=r"run: worker 0 failed: .*3 columns"):
        data_parallel.run(
            data_parallel.train_softmax, [(W, np.zeros((2, 5)), y, 1.0, 1)]
        )


def test_the_error_of_the_worker_that_failed_is_raised():
    W, X, y = np.zeros((2, 3)), np.zeros((4, 3)), np.array([0, 1, 0, 1])
    shares = [(W, X, y, 1.0, 3), (W, X, y + 1, 1.0, 3)]
    with pytest.raises(RuntimeError, match=r"run: worker 1 failed: .* 0 … 1"):
        data_parallel.run(data_parallel.train_softmax, shares)


def inside(x):
    return x


inside.__module__ = "__main__"
W, X, y = np.zeros((2, 3)), np.zeros((2, 3)), np.array([0, 1])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: data_parallel.run(abs, []), "run: shares must not be empty"),
        (
            lambda: data_parallel.run(abs, [(1,)], timeout=0),
            "run: timeout must be positive",
        ),
        (lambda: data_parallel.run(inside, [(1,)]), "module that a new process can"),
        (
            lambda: data_parallel.mean_over_group([], 0),
            "examples must be a whole number",
        ),
        (
            lambda: data_parallel.mean_over_group([], 1),
            "process must belong to a group",
        ),
        (
            lambda: data_parallel.train_softmax(W, X[:0], y[:0], 1.0, 1),
            "equally long and not empty; got 0",
        ),
        (
            lambda: data_parallel.train_softmax(W, X.astype(np.float32), y, 1.0, 1),
            "got float64 and float32",
        ),
        (
            lambda: data_parallel.train_softmax(W, X, y, np.inf, 1),
            "train_softmax: lr must be finite",
        ),
        (
            lambda: data_parallel.train_softmax(W, X, y, 1.0, -1),
            "steps must be a whole number from 0",
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
