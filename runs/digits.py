"""A small convolutional network that reads digits, from all of MNIST.

It learns from digits that are shifted by up to three pixels, so that it can read those that
a reader draws.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dlcore import data
from dlcore.convolution.cnn import classifier
from dlcore.optimization.optimizers import AdamW
from dlcore.optimization.schedules import cosine, warmup
from dlcore.optimization.training import minimise

SEEDS = [0, 1, 2]
MODELS = {"cnn": {"channels": [8, 24], "kernel": 5, "hidden": [96]}}
KEPT = ["cnn"]
DATA = ["mnist"]
BATCH, STEPS, RATE, DECAY, EVERY = 64, 10_000, 0.002, 0.05, 500
CHOSEN = "Nothing: the settings were fixed before the first run."


@cache
def digits() -> dict[str, tuple[ndarray, ndarray]]:
    """Return 50,000 digits to learn from, 10,000 to look at, and those of the test."""
    X, y, X_test, y_test = data.mnist()
    parts = data.split(60_000, [50_000, 10_000], np.random.default_rng(0))
    train, valid = ((X[rows], y[rows]) for rows in parts)
    return {"train": train, "valid": valid, "test": (X_test, y_test)}


def build(model: str, seed: int) -> nn.Module:
    """Return the network with its first weights."""
    source = torch.Generator().manual_seed(seed)
    return classifier((1, 28, 28), [8, 24], [96], 10, generator=source)


def pictures(X: ndarray) -> Tensor:
    """Return pixels from 0, paper, to 1, ink."""
    return torch.tensor(X).float().view(-1, 1, 28, 28) / 255


def train(
    net: nn.Module, model: str, seed: int, after_step: Callable[[int], bool | None]
) -> ndarray:
    """Learn from shifted digits drawn at random."""
    X, y = digits()["train"]
    rng = np.random.default_rng(seed)

    def cost() -> Tensor:
        chosen = rng.integers(len(X), size=BATCH)
        moved = data.shifted(X[chosen], 3, rng)
        return cross_entropy(net(pictures(moved)), torch.tensor(y[chosen]))

    rate = warmup(STEPS // 10, cosine(STEPS - STEPS // 10, 0.01))
    optimizer = AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    return minimise(cost, optimizer, STEPS, schedule=rate, after_step=after_step)


@torch.no_grad()
def errors(net: nn.Module, part: str) -> float:
    """Return the share of wrong answers, in percent."""
    X, y = digits()[part]
    answers = torch.cat([net(part).argmax(1) for part in pictures(X).split(500)])
    return 100 * float((answers.numpy() != y).mean())


def watch(net: nn.Module) -> dict[str, float]:
    """Return the errors on the digits that were kept back."""
    return {"valid": errors(net, "valid")}


def evaluate(net: nn.Module) -> dict[str, float]:
    """Return the errors on those, and on the test."""
    return {part: errors(net, part) for part in ("valid", "test")}
