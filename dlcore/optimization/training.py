"""Training: a step for each batch, and what to watch on the way."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_sizes, check_whole
from dlcore.feedforward.losses import Loss
from dlcore.feedforward.network import Network
from dlcore.optimization.optimizers import Optimizer, clip

__all__ = ["EarlyStopping", "Scalar", "Stateful", "batches", "fit", "minimise", "train"]

_HINT = "Take a smaller lr, or look at the scale of the data and of the first weights."


@runtime_checkable
class Scalar(Protocol):
    """What a cost must return: a number with a backward pass.

    Scalars of ``dlcore.optimization.autograd`` and of PyTorch are such numbers.

    Example:
        >>> from dlcore.optimization.autograd import Tensor
        >>> [isinstance(x, Scalar) for x in (Tensor(3.0), torch.tensor(3.0), 3.0)]
        [True, True, False]
    """

    def backward(self) -> Any:
        """Set the gradients of the parameters, or return them where those are arrays."""

    def item(self) -> float:
        """Return the number."""


def minimise(
    cost: Callable[..., Scalar],
    optimizer: Any,
    draws: int | Iterable[Sequence[Any]],
    *,
    schedule: Callable[[int], float] | None = None,
    clip_at: float | None = None,
    after_step: Callable[[int], bool | None] | None = None,
) -> Float[ndarray, "_"]:
    """Minimise a cost: take one step of an optimizer for each batch.

    A live notebook shows the progress.

    Args:
        cost: the cost of a batch, ``cost(*batch)``.
        optimizer: of the parameters that the cost depends on, or one of PyTorch.
        draws: the batches; or a number of steps, for a cost that draws its own batch.
        schedule: the factor of the learning rate after so many steps, such as those of
            ``dlcore.optimization.schedules``. At the end the rate is what it was.
        clip_at: the norm to which longer gradients are shortened.
        after_step: called with the number of steps taken; the last one is where it
            returns ``True``.

    Returns:
        The cost of each batch, before its step.

    Example:
        >>> from dlcore.optimization.modules import Parameter
        >>> from dlcore.optimization.optimizers import GD
        >>> x = Parameter([8.0])
        >>> minimise(lambda: (x * x).sum(), GD([x], lr=0.25), 3).tolist()
        [64.0, 16.0, 4.0]
    """
    from dlcore.figures.progress import progress  # which loads a notebook's widgets

    if not isinstance(draws, Iterable):
        check_whole("minimise: draws", draws, 1)
        draws = [()] * draws
    own = isinstance(optimizer, Optimizer) or (schedule is None and clip_at is None)
    rule = "be one of dlcore to clip or follow a schedule"
    check(own, "minimise: optimizer", rule, type(optimizer))
    lr, costs = getattr(optimizer, "lr", 0.0), []
    for t, batch in enumerate(progress(draws, "training")):
        if schedule is not None:
            optimizer.lr = lr * schedule(t)
        optimizer.zero_grad()
        value = cost(*batch)
        costs.append(value.item())
        ok, got = bool(np.isfinite(costs[t])), f"{costs[t]} in step {t + 1}"
        check(ok, "minimise: the cost", "stay finite", got, _HINT)
        gradients = value.backward()
        if clip_at is not None:
            clip(optimizer.parameters, clip_at)
        optimizer.step(gradients)
        if after_step is not None and after_step(t + 1):
            break
    if schedule is not None:
        optimizer.lr = lr
    return np.array(costs)


def batches(s: int, batch: int | None, rng: Generator) -> Iterator[Int[ndarray, "_"]]:
    """Return the rows of each batch of one epoch: all rows, shuffled, cut into pieces.

    Args:
        s: number of examples.
        batch: examples per piece, the last may be shorter. Without it, and where it is
            ``s`` or more: all rows at once and in order.
        rng: source of the order.

    Example:
        >>> rows = [*batches(5, 2, np.random.default_rng(0))]
        >>> [len(r) for r in rows], sorted(np.concatenate(rows).tolist())
        ([2, 2, 1], [0, 1, 2, 3, 4])
    """
    size = s if batch is None else batch
    check_sizes("batches", s=s, batch=size)
    order = rng.permutation(s) if size < s else np.arange(s)
    return (order[start : start + size] for start in range(0, s, size))


def train(
    cost: Callable[..., Scalar],
    arrays: Sequence[Any],
    optimizer: Any,
    epochs: int,
    rng: Generator,
    batch: int | None = None,
    after_epoch: Callable[[int], bool | None] | None = None,
    *,
    schedule: Callable[[int], float] | None = None,
    clip_at: float | None = None,
) -> Float[ndarray, "_"]:
    """Minimise the mean cost of a data set, epoch by epoch.

    Args:
        cost: the mean cost of some rows, ``cost(*(array[rows] for array in arrays))``.
        arrays: the data, such as inputs and targets, equally long.
        optimizer: as in :func:`minimise`.
        epochs: how often to go through the data.
        rng: source of the order.
        batch: examples per step; without it, all of them.
        after_epoch: called with the number of epochs done; training stops where it
            returns ``True``.
        schedule: as in :func:`minimise`; it counts steps, not epochs.
        clip_at: as in :func:`minimise`.

    Returns:
        The mean cost of each epoch, as seen on the way.

    Example:
        >>> from dlcore.optimization.modules import Parameter
        >>> from dlcore.optimization.optimizers import GD
        >>> x, rng = Parameter([0.0]), np.random.default_rng(0)
        >>> cost = lambda y: ((x - y) ** 2).mean()
        >>> train(cost, [np.array([1.0, 3.0])], GD([x], lr=0.5), 2, rng).tolist()
        [5.0, 1.0]
    """
    check_whole("train: epochs", epochs, 1)
    lengths = [len(array) for array in arrays]
    check(len({*lengths}) == 1, "train: arrays", "be equally long", lengths)
    passes = _Passes(arrays, epochs, rng, batch)

    def after_step(t: int) -> bool | None:
        epoch, rest = divmod(t, len(passes) // epochs)
        return after_epoch is not None and rest == 0 and after_epoch(epoch)

    costs = minimise(
        cost,
        optimizer,
        passes,
        schedule=schedule,
        clip_at=clip_at,
        after_step=after_step,
    )
    weighted = costs * passes.sizes
    return weighted.reshape(-1, len(passes) // epochs).sum(axis=1) / lengths[0]


class _Passes:
    """The batches of all epochs; ``sizes`` tells how many rows those so far had."""

    def __init__(
        self, arrays: Sequence[Any], epochs: int, rng: Generator, batch: int | None
    ) -> None:
        self.arrays, self.epochs, self.rng, self.batch = arrays, epochs, rng, batch
        self.sizes: list[int] = []

    def __len__(self) -> int:
        s = len(self.arrays[0])
        return self.epochs * -(-s // (self.batch or s))

    def __iter__(self) -> Iterator[list[Any]]:
        for _ in range(self.epochs):
            for rows in batches(len(self.arrays[0]), self.batch, self.rng):
                self.sizes.append(len(rows))
                yield [array[rows] for array in self.arrays]


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
) -> Float[ndarray, "_"]:
    """Train a network of :mod:`dlcore.feedforward.network`, with gradients by hand.

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

    Example:
        >>> from dlcore.feedforward import losses, network
        >>> from dlcore.optimization.optimizers import GD
        >>> line = Network([network.Dense(np.zeros((1, 1)), np.zeros(1))])
        >>> X, rng = np.array([[1.0], [-1.0]]), np.random.default_rng(0)
        >>> gd = GD(line.parameters(), lr=0.5)
        >>> fit(line, X, 2 * X, losses.squared, gd, 3, rng).tolist()
        [2.0, 0.5, 0.125]
    """
    check(len(X) == len(y) > 0, "fit: y", f"have {len(X)} targets", len(y))
    ok = [*map(id, optimizer.parameters)] == [*map(id, network.parameters())]
    must, got = "hold the parameters of this network", "other arrays"
    check(ok, "fit: optimizer", must, got, "Build it with network.parameters().")

    def cost(X: ndarray, y: ndarray) -> Scalar:
        X = X if corrupt is None else corrupt(X)
        return _Known(*network.gradient(X, y, loss))

    return train(cost, [X, y], optimizer, epochs, rng, batch)


class _Known(NamedTuple):
    """A cost whose gradient has been computed with it."""

    cost: float
    gradients: list[ndarray]

    def item(self) -> float:
        return self.cost

    def backward(self) -> list[ndarray]:
        return self.gradients


@runtime_checkable
class Stateful(Protocol):
    """What can be saved and restored: a module of ours, or of PyTorch.

    Example:
        >>> [isinstance(x, Stateful) for x in (torch.nn.Linear(1, 1), np.zeros(1))]
        [True, False]
    """

    def state_dict(self) -> Any:
        """Return all that training changes."""

    def load_state_dict(self, state: Any) -> Any:
        """Set it back."""


class EarlyStopping:
    """Stop when a score has not fallen for some epochs, and keep the best state.

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

    Example:
        >>> scores, model = iter([3.0, 1.0, 2.0, 2.0]), torch.nn.Linear(1, 1)
        >>> stop = EarlyStopping(model, lambda: next(scores), patience=2)
        >>> [stop(epoch) for epoch in (1, 2, 3, 4)], stop.best_epoch
        ([False, False, False, True], 2)
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
            self._best = deepcopy(self.model.state_dict())
        self.scores.append(score)
        return len(self.scores) - self.best_epoch >= self.patience

    def restore(self) -> None:
        """Set the model back to the best state seen."""
        rule = "have seen an epoch before restore()"
        check(self._best is not None, "EarlyStopping: model", rule, "none")
        self.model.load_state_dict(self._best)
