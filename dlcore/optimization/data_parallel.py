"""Training on several processes: each has its share of a batch, and they add up gradients.

The processes run on this machine and find each other through a file. The same code runs on
many machines, where the file is replaced by an address.
"""

import multiprocessing
import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from dlcore._torch import distributed, torch
from dlcore.checks import (
    check,
    check_columns,
    check_finite,
    check_positive,
    check_whole,
)

__all__ = ["mean_over_group", "run", "train_softmax"]


class _Failure(NamedTuple):
    """What a worker hands over instead of a result."""

    when: float
    error: Exception


def run(
    worker: Callable[..., Any],
    shares: Sequence[tuple[Any, ...]],
    timeout: float = 300.0,
) -> list[Any]:
    """Call ``worker(*share)`` for each share, in a group of processes.

    Args:
        worker: a function of an importable module; it may call :func:`mean_over_group`.
        shares: the arguments of each process.
        timeout: seconds after which a process gives up waiting for the others.

    Returns:
        What the workers returned, in the order of the shares.

    Example:
        >>> run(max, [(1, 2), (4, 3)])
        [2, 4]
    """
    check(len(shares) > 0, "run: shares", "not be empty", "none")
    check_positive("run: timeout", timeout)
    ok = getattr(worker, "__module__", "__main__") != "__main__"
    must = "live in a module that a new process can import"
    hint = "A function of a notebook does not; put it into a file."
    check(ok, "run: worker", must, getattr(worker, "__name__", worker), hint)
    spawn = multiprocessing.get_context("spawn")
    with (
        TemporaryDirectory() as folder,
        ProcessPoolExecutor(len(shares), mp_context=spawn) as pool,
    ):
        meeting = (Path(folder) / "meeting").as_uri()
        calls = [
            pool.submit(_join, rank, len(shares), meeting, timeout, worker, share)
            for rank, share in enumerate(shares)
        ]
        results = [call.result() for call in calls]
    failures = [
        (result.when, rank, result.error)
        for rank, result in enumerate(results)
        if isinstance(result, _Failure)
    ]
    if failures:
        # Who failed first is the cause; the others missed their partner.
        _, rank, error = min(failures)
        raise RuntimeError(f"run: worker {rank} failed: {error}") from error
    return results


def mean_over_group(
    tensors: Sequence[torch.Tensor], examples: int
) -> list[torch.Tensor]:
    r"""Average tensors over the group of processes, weighted by their examples.

    Every process gets :math:`\sum_k B_k a_k / \sum_k B_k`.

    Args:
        tensors: this process's means :math:`a_k` over its examples.
        examples: their number :math:`B_k`.

    Example:
        >>> shares = [([torch.tensor(1.0)], 1), ([torch.tensor(4.0)], 2)]
        >>> run(mean_over_group, shares)
        [[tensor(3.)], [tensor(3.)]]
    """
    check_whole("mean_over_group: examples", examples, 1)
    ok, hint = distributed.is_initialized(), "Call it in a worker of run."
    check(ok, "mean_over_group: the process", "belong to a group", "none", hint)
    total = torch.tensor(float(examples), dtype=torch.float64)
    distributed.all_reduce(total)  # adds up over the group
    means = [examples * tensor for tensor in tensors]
    for mean in means:
        distributed.all_reduce(mean)
        mean /= total
    return means


def train_softmax(
    W: Float[ndarray, "C n"],
    X: Float[ndarray, "s n"],
    y: Int[ndarray, "s"],
    lr: float,
    steps: int,
) -> Float[ndarray, "C n"]:
    """Train softmax regression on this process's share of the data, with the group.

    Every process holds all weights and some rows. In each step it computes the gradient
    of the mean cross-entropy of its rows; the group's mean of these is the gradient for
    all.

    Equals ``torch.optim.SGD`` on all rows in one process.

    Args:
        W: first weights, a row per class; the same on every process.
        X: this process's inputs, rows are examples.
        y: their classes, from 0 on.
        lr: step size.
        steps: how many to take.

    Example:
        >>> W, X, y = np.zeros((2, 1)), np.array([[1.0], [-1.0]]), np.array([0, 1])
        >>> shares = [(W, X[:1], y[:1], 1.0, 1), (W, X[1:], y[1:], 1.0, 1)]
        >>> [W.tolist() for W in run(train_softmax, shares)]
        [[[0.5], [-0.5]], [[0.5], [-0.5]]]
    """
    must, got = "be equally long and not empty", f"{len(X)} and {len(y)} rows"
    check(len(X) == len(y) > 0, "train_softmax: X and y", must, got)
    check_columns("train_softmax: X", X, W.shape[1])
    must, got = "have the same type of numbers", f"{W.dtype} and {X.dtype}"
    check(W.dtype == X.dtype, "train_softmax: W and X", must, got)
    check_finite("train_softmax: lr", lr)
    check_whole("train_softmax: steps", steps, 0)
    inside = bool(((y >= 0) & (y < len(W))).all())
    check(inside, "train_softmax: y", f"lie in 0 … {len(W) - 1}", np.unique(y))
    weights = torch.tensor(W, requires_grad=True)
    rows, labels = torch.tensor(X), torch.tensor(y)
    for _ in range(steps):
        cost = torch.nn.functional.cross_entropy(rows @ weights.T, labels)
        (own,) = torch.autograd.grad(cost, [weights])
        (gradient,) = mean_over_group([own], len(labels))
        with torch.no_grad():
            weights -= lr * gradient
    return weights.detach().numpy()


def _join(
    rank: int,
    size: int,
    meeting: str,
    timeout: float,
    worker: Callable[..., Any],
    share: tuple[Any, ...],
) -> Any:
    """Meet the others, work, part."""
    names = [name for _, name in socket.if_nameindex()]
    inside = next((name for name in names if name.startswith("lo")), None)
    if inside is not None:
        os.environ["GLOO_SOCKET_IFNAME"] = inside  # no network is needed
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo",
        init_method=meeting,
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=timeout),
    )
    try:
        return worker(*share)
    except Exception as error:
        return _Failure(time(), error)
    finally:
        distributed.destroy_process_group()
