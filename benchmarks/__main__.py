"""Measure ``dlcore`` beside PyTorch: the same work, in turn, in one process and thread.

Each pair is warmed up and then run alternately, ours and theirs, so that both meet the
same machine, and CPU time is taken, so that other programs disturb little. The table
shows medians and their ratio; below 1, ours is faster. PyTorch has no scan of its own; the
scan stands beside a loop.
"""

from collections.abc import Callable
from itertools import pairwise
from statistics import median
from time import process_time

import numpy as np
import torch

from dlcore.convolution.batchnorm import BatchNorm2d
from dlcore.convolution.conv import conv2d
from dlcore.optimization import optimizers
from dlcore.optimization.autograd import Tensor, cross_entropy
from dlcore.optimization.modules import Linear, Sequential
from dlcore.recurrence.recurrent import GRU, LSTM, RNN, Recurrent
from dlcore.recurrence.scan import scan, scan_loop
from dlcore.transformers.attention import MultiHeadAttention, attend

ROUNDS, WARM_UP = 200, 20
FEW, FEW_WARM_UP = 30, 3  # where a round takes long
WIDTHS = [784, 256, 128, 10]

Work = Callable[[], object]


def in_turn(ours: Work, theirs: Work, rounds: int, warm_up: int) -> tuple[float, float]:
    """Return the median milliseconds of CPU time of both, run alternately."""
    times: tuple[list[float], list[float]] = [], []
    for turn in range(warm_up + rounds):
        for work, spent in zip((ours, theirs), times, strict=True):
            start = process_time()
            work()
            if turn >= warm_up:
                spent.append(1e3 * (process_time() - start))
    return median(times[0]), median(times[1])


def models(rng: np.random.Generator) -> tuple[Sequential, torch.nn.Sequential]:
    """Return the same network in both libraries, in single precision."""
    ours, theirs = [], []
    for n, m in pairwise(WIDTHS):
        ours += [Linear(n, m, rng, np.float32), Tensor.relu]
        theirs += [torch.nn.Linear(n, m), torch.nn.ReLU()]
    model, twin = Sequential(*ours[:-1]), torch.nn.Sequential(*theirs[:-1])
    with torch.no_grad():
        for p, q in zip(model.parameters(), twin.parameters(), strict=True):
            q.copy_(torch.tensor(p.data))
    return model, twin


def network(batch: int, train: bool) -> tuple[Work, Work]:
    """Return a step of training, or the gradient alone, for both libraries."""
    rng = np.random.default_rng(0)
    X = rng.random((batch, WIDTHS[0]), dtype=np.float32)
    y = rng.integers(0, WIDTHS[-1], batch)
    X_torch, y_torch = torch.tensor(X), torch.tensor(y)
    model, twin = models(rng)
    mine = optimizers.Adam(model.parameters(), lr=1e-3)
    other = torch.optim.Adam(twin.parameters(), lr=1e-3)

    def ours() -> None:
        mine.zero_grad()
        cross_entropy(model(Tensor(X)), y).backward()
        if train:
            mine.step()

    def theirs() -> None:
        other.zero_grad()
        torch.nn.functional.cross_entropy(twin(X_torch), y_torch).backward()
        if train:
            other.step()

    return ours, theirs


def steps(name: str, on_torch: bool) -> tuple[Work, Work]:
    """Return the step of an optimizer, on arrays or on the parameters of PyTorch."""
    rng = np.random.default_rng(0)
    pairs = [models(rng) for _ in range(2)]
    model, (_, twin) = pairs[0][on_torch], pairs[1]
    ours = list(model.parameters())
    theirs = list(twin.parameters())
    for p, q in zip(ours, theirs, strict=True):
        g = rng.normal(size=tuple(p.shape)).astype(np.float32)
        p.grad = torch.tensor(g) if on_torch else g
        q.grad = torch.tensor(g)
    if name == "Adam":
        other = torch.optim.Adam(theirs, lr=1e-3)
    else:
        other = torch.optim.SGD(theirs, lr=1e-3, momentum=0.9)
    return getattr(optimizers, name)(ours, lr=1e-3).step, other.step


def convolution(inputs: int, outputs: int, k: int) -> tuple[Work, Work]:
    """Return a convolutional layer on 64 pictures of 28 × 28, forward and backward.

    The first layer of a network, with one channel, needs no gradient by its pictures.
    """
    torch.manual_seed(0)
    x = torch.randn(64, inputs, 28, 28, requires_grad=inputs > 1)
    W = torch.randn(outputs, inputs, k, k, requires_grad=True)
    b = torch.zeros(outputs, requires_grad=True)
    delta = torch.randn(64, outputs, 28, 28)
    leaves = [t for t in (x, W, b) if t.requires_grad]

    def work(layer: Callable[..., torch.Tensor]) -> Work:
        def step() -> None:
            y = layer(x, W, b, padding=k // 2)
            torch.autograd.grad(y, leaves, delta)

        return step

    return work(conv2d), work(torch.nn.functional.conv2d)


def normalization(channels: int) -> tuple[Work, Work]:
    """Return batch normalisation of 64 pictures of 28 × 28, forward and backward."""
    torch.manual_seed(0)
    x = torch.randn(64, channels, 28, 28, requires_grad=True)
    delta = torch.randn(64, channels, 28, 28)

    def work(layer: torch.nn.Module) -> Work:
        def step() -> None:
            torch.autograd.grad(layer(x), [x, *layer.parameters()], delta)

        return step

    return work(BatchNorm2d(channels)), work(torch.nn.BatchNorm2d(channels))


def recurrence(
    kind: type[Recurrent], other: type[torch.nn.Module], times: int
) -> tuple[Work, Work]:
    """Return a layer of 128 units along 64 sequences, forward and backward."""
    torch.manual_seed(0)
    x = torch.randn(64, times, 128, requires_grad=True)
    delta = torch.randn(64, times, 128)

    def work(layer: torch.nn.Module) -> Work:
        def step() -> None:
            torch.autograd.grad(layer(x)[0], [x, *layer.parameters()], delta)

        return step

    return work(kind(128, 128)), work(other(128, 128, batch_first=True))


def linear_recurrence(times: int, units: int) -> tuple[Work, Work]:
    """Return the parallel scan, and beside it the loop, forward and backward."""
    torch.manual_seed(0)
    a = torch.rand(1, times, units, requires_grad=True)
    b = torch.randn(1, times, units, requires_grad=True)
    delta = torch.randn(1, times, units)

    def work(recurrence: Callable[..., torch.Tensor]) -> Work:
        def step() -> None:
            torch.autograd.grad(recurrence(a, b), [a, b], delta)

        return step

    return work(scan), work(scan_loop)


def attention(times: int) -> tuple[Work, Work]:
    """Return the formula on 8 sequences with 4 heads of 64, forward and backward."""
    torch.manual_seed(0)
    QKV = [torch.randn(8, 4, times, 64, requires_grad=True) for _ in "QKV"]
    delta = torch.randn(8, 4, times, 64)

    def ours() -> None:
        torch.autograd.grad(attend(*QKV)[0], QKV, delta)

    def theirs() -> None:
        Y = torch.nn.functional.scaled_dot_product_attention(*QKV)
        torch.autograd.grad(Y, QKV, delta)

    return ours, theirs


def multi_head(times: int, width: int) -> tuple[Work, Work]:
    """Return the layer with 8 heads on 8 sequences, forward and backward.

    Both return the weights of all heads.
    """
    torch.manual_seed(0)
    x = torch.randn(8, times, width, requires_grad=True)
    delta = torch.randn(8, times, width)
    mine = MultiHeadAttention(width, 8)
    other = torch.nn.MultiheadAttention(width, 8, batch_first=True)

    def ours() -> None:
        torch.autograd.grad(mine(x, x)[0], [x, *mine.parameters()], delta)

    def theirs() -> None:
        Y = other(x, x, x, average_attn_weights=False)[0]
        torch.autograd.grad(Y, [x, *other.parameters()], delta)

    return ours, theirs


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    work = {
        "training step, batch 128": network(128, train=True),
        "gradient, batch 128": network(128, train=False),
        "gradient, batch 1": network(1, train=False),
        "Adam on arrays": steps("Adam", on_torch=False),
        "Adam on torch": steps("Adam", on_torch=True),
        "Momentum on arrays": steps("Momentum", on_torch=False),
        "Momentum on torch": steps("Momentum", on_torch=True),
    }
    slow = {
        "convolution 16 → 32, k = 3": convolution(16, 32, 3),
        "convolution 16 → 32, k = 7": convolution(16, 32, 7),
        "convolution 1 → 16, k = 5": convolution(1, 16, 5),
        "batch normalisation, 32": normalization(32),
        "Elman, T = 50": recurrence(RNN, torch.nn.RNN, 50),
        "LSTM, T = 50": recurrence(LSTM, torch.nn.LSTM, 50),
        "LSTM, T = 200": recurrence(LSTM, torch.nn.LSTM, 200),
        "GRU, T = 50": recurrence(GRU, torch.nn.GRU, 50),
        "GRU, T = 200": recurrence(GRU, torch.nn.GRU, 200),
        "scan beside a loop, T = 4096": linear_recurrence(4096, 64),
        "attention, T = 256": attention(256),
        "attention, T = 1024": attention(1024),
        "multi-head attention, T = 256": multi_head(256, 256),
    }
    print("| work | ours, ms | PyTorch, ms | ratio |")
    print("| --- | --- | --- | --- |")
    for name, (ours, theirs) in (work | slow).items():
        few = name in slow
        rounds, warm_up = (FEW, FEW_WARM_UP) if few else (ROUNDS, WARM_UP)
        mine, other = in_turn(ours, theirs, rounds, warm_up)
        print(f"| {name} | {mine:.2f} | {other:.2f} | {mine / other:.2f} |")


if __name__ == "__main__":
    main()
