"""Training: the data in batches, a step for each, and what to watch on the way."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_whole
from dlcore.feedforward.losses import Loss
from dlcore.feedforward.network import Network
from dlcore.optimization.optimizers import Optimizer


@runtime_checkable
class Scalar(Protocol):
    """What a cost returns: a scalar of ``dlcore.optimization.autograd``, or of PyTorch."""

    def backward(self) -> None:
        """Set the gradients of the parameters."""

    def item(self) -> float:
        """Return the number."""


@runtime_checkable
class Stepper(Protocol):
    """What takes the steps: an optimizer of ``dlcore.optimization.optimizers``, or of PyTorch."""

    def zero_grad(self) -> None:
        """Forget the gradients of the parameters."""

    def step(self) -> None:
        """Change the parameters by their gradients."""


def batches(
    s: int, batch: int | None, rng: Generator
) -> Iterator[Int[ndarray, "_"]]:
    """Return the rows of each batch of one epoch: all rows, shuffled, cut into pieces.

    Args:
        s: number of examples.
        batch: examples per piece, the last may be shorter. Without it, and where it is
            ``s`` or more: all rows at once and in order.
        rng: source of the order.
    """
    check_whole("batches: s", s, 1)
    size = s if batch is None else batch
    check_whole("batches: batch", size, 1)
    order = rng.permutation(s) if size < s else np.arange(s)
    return (order[start : start + size] for start in range(0, s, size))


def fit(
    network: Network,
    X: Float[ndarray, "s n"],
    y: ndarray,
    loss: Loss,
    optimizer: Optimizer,
    epochs: int,
    rng: Generator,
    batch: int | None = None,
    corrupt: Callable[[ndarray], ndarray] | None = None,
) -> Float[ndarray, "epochs"]:
    """Train a network: shuffle, cut into batches, take a step for each of them.

    Args:
        network: what to train; changed in place.
        X: inputs, rows are samples.
        y: targets, as the loss wants them.
        loss: what to make small.
        optimizer: of this network's parameters.
        epochs: how often to go through the data.
        rng: source of the order.
        batch: samples per step; without it, all of them.
        corrupt: changes the inputs of each batch before they are used, for example by
            noise.

    Returns:
        The mean loss of each epoch, as seen on the way.
    """
    check_whole("fit: epochs", epochs, 1)
    check(len(X) == len(y) > 0, "fit: y", f"have {len(X)} targets", len(y))
    check(
        [*map(id, optimizer.parameters)] == [*map(id, network.parameters)],
        "fit: optimizer",
        "hold the parameters of this network",
        "other arrays",
        "Build it with network.parameters.",
    )
    costs = np.zeros(epochs)
    for epoch in range(epochs):
        for rows in batches(len(X), batch, rng):
            inputs = X[rows] if corrupt is None else corrupt(X[rows])
            cost, gradients = network.gradient(inputs, y[rows], loss)
            check_cost("fit", cost, epoch)
            optimizer.step(gradients)
            costs[epoch] += cost * len(rows) / len(X)
    return costs


def train(
    cost: Callable[..., Scalar],
    arrays: Sequence[Any],
    optimizer: Stepper,
    epochs: int,
    rng: Generator,
    batch: int | None = None,
    after_epoch: Callable[[int], bool | None] | None = None,
) -> Float[ndarray, "_"]:
    """Train what an optimizer holds; show progress in a live notebook.

    Args:
        cost: the mean cost of some rows, ``cost(*(array[rows] for array in arrays))``.
        arrays: the data, such as inputs and targets, equally long.
        optimizer: of the parameters that the cost depends on, or one of PyTorch.
        epochs: how often to go through the data.
        rng: source of the order.
        batch: examples per step; without it, all of them.
        after_epoch: called with the number of epochs done; training stops where it
            returns ``True``.

    Returns:
        The mean cost of each epoch, as seen on the way.
    """
    from dlcore.figures.progress import (
        progress,  # which loads a notebook's widgets
    )

    check_whole("train: epochs", epochs, 1)
    lengths = [len(array) for array in arrays]
    check(len({*lengths}) == 1, "train: arrays", "be equally long", lengths)
    costs: list[float] = []
    for epoch in progress(range(epochs), "training"):
        total = 0.0
        for rows in batches(lengths[0], batch, rng):
            optimizer.zero_grad()
            value = cost(*(array[rows] for array in arrays))
            number = value.item()
            check_cost("train", number, epoch)
            value.backward()
            optimizer.step()
            total += number * len(rows)
        costs.append(total / lengths[0])
        if after_epoch is not None and after_epoch(epoch + 1):
            break
    return np.array(costs)


@runtime_checkable
class Stateful(Protocol):
    """What can be saved and set back: a module of ``dlcore.optimization.modules``."""

    def state(self) -> Any:
        """Return a copy of all that training changes."""

    def load(self, state: Any) -> None:
        """Set it back to a copy."""


class EarlyStopping:
    """Stop when a score has not fallen for a while, and keep the best state.

    Hand it to :func:`train` as ``after_epoch``, and call :meth:`restore` at the end.

    Args:
        model: what is trained.
        score: computes what should fall, such as the cost on a validation set. It
            switches dropout off itself.
        patience: how many epochs in a row may pass without a new lowest score.

    Attributes:
        scores: after each epoch so far.
        best_epoch: how many epochs were done at the lowest score, the first of equals;
            if training is continued in a second run, the epochs count on.
    """

    def __init__(
        self, model: Stateful, score: Callable[[], float], patience: int
    ) -> None:
        check_whole("EarlyStopping: patience", patience, 1)
        self.model, self.score, self.patience = model, score, patience
        self.scores: list[float] = []
        self.best_epoch = 0
        self._best: Any = None

    def __call__(self, _: int) -> bool:
        """Look at the score; tell whether to stop."""
        score = float(self.score())
        check(score == score, "EarlyStopping: score", "be a number", score)
        if not self.scores or score < min(self.scores):
            self.best_epoch = len(self.scores) + 1
            self._best = self.model.state()
        self.scores.append(score)
        return len(self.scores) - self.best_epoch >= self.patience

    def restore(self) -> None:
        """Set the model back to the best state seen."""
        rule = "have seen an epoch before restore()"
        check(self._best is not None, "EarlyStopping: model", rule, "none")
        self.model.load(self._best)


def check_cost(who: str, cost: float, epoch: int) -> None:
    """Refuse a cost that is no number any more."""
    check(
        bool(np.isfinite(cost)),
        f"{who}: the cost",
        "stay finite",
        f"{cost} in epoch {epoch + 1}",
        "Take a smaller lr, or look at the scale of the data and of the first weights.",
    )
