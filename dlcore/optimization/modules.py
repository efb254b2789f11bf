r"""Models made of parts: parameters, layers that hold them, and layers put together.

Layers stand one after another, or a shortcut goes past a part :math:`f`, and hands on
:math:`x` and :math:`f(x)` together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.random import Generator
from numpy.typing import DTypeLike

from dlcore.checks import check, check_between, check_one_of, check_sizes
from dlcore.feedforward.initialization import he, normal
from dlcore.optimization.autograd import Tensor, concat

__all__ = [
    "Dropout",
    "Linear",
    "Module",
    "Parameter",
    "Residual",
    "Sequential",
    "Skip",
    "affine",
]


class Parameter(Tensor):
    """A tensor that is trained: it requires a gradient.

    It holds a copy of the data, since training changes it in place.

    Args:
        data: the first numbers.

    Example:
        >>> p = Parameter([1.0, 2.0])
        >>> (p * p).sum().backward()
        >>> p.requires_grad, p.grad.tolist()
        (True, [2.0, 4.0])
    """

    def __init__(self, data: Any) -> None:
        super().__init__(data, requires_grad=True)
        self.data = self.data.copy()


class Module:
    """A part of a model: it holds parameters, and ``forward`` computes its outputs.

    Parameters and modules among its attributes, also in lists and dictionaries,
    belong to it. Arrays are what it keeps without training it, such as running
    statistics.

    Attributes:
        training: whether it is being trained; dropout and batch normalisation ask.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> model = Sequential(Linear(3, 2, rng), Tensor.relu, Linear(2, 1, rng))
        >>> model.size, list(model.named_parameters())
        (11, ['layers.0.W', 'layers.0.b', 'layers.2.W', 'layers.2.b'])
    """

    training = True

    def forward(self, x: Tensor) -> Tensor:
        """Compute the outputs."""
        raise NotImplementedError

    def __call__(self, x: Tensor) -> Tensor:
        """Compute the outputs."""
        return self.forward(x)

    def children(self) -> Iterator[tuple[str, Any]]:
        """Yield what the attributes hold, with its name; the parts of lists singly."""
        for name, value in vars(self).items():
            yield from _parts(name, value)

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Yield what it and its modules hold besides modules, with the whole name."""
        for name, child in self.children():
            if isinstance(child, Module):
                for inner, leaf in child.leaves():
                    yield f"{name}.{inner}", leaf
            else:
                yield name, child

    def named_parameters(self) -> dict[str, Parameter]:
        """Return the parameters by their names, such as ``layers.0.W``."""
        return {k: p for k, p in self.leaves() if isinstance(p, Parameter)}

    def parameters(self) -> list[Parameter]:
        """Return what training changes, each once."""
        unique = {id(p): p for p in self.named_parameters().values()}
        return list(unique.values())

    @property
    def size(self) -> int:
        """Number of trained numbers."""
        return sum(p.size for p in self.parameters())

    def train(self, training: bool = True) -> "Module":
        """Switch to training; return the module."""
        self.training = training
        for _, child in self.children():
            if isinstance(child, Module):
                child.train(training)
        return self

    def eval(self) -> "Module":
        """Switch to use; return the module."""
        return self.train(False)

    def arrays(self) -> dict[str, ndarray]:
        """Return all that it holds by its names: of parameters the data, and arrays."""
        return {
            name: leaf.data if isinstance(leaf, Parameter) else leaf
            for name, leaf in self.leaves()
            if isinstance(leaf, Parameter | ndarray)
        }

    def state_dict(self) -> dict[str, ndarray]:
        """Return a copy of all that it holds, parameters and arrays, by its names."""
        return {name: array.copy() for name, array in self.arrays().items()}

    def load_state_dict(self, state: Mapping[str, ndarray]) -> None:
        """Set parameters and arrays to those of :meth:`state_dict`."""
        ours = {k: array.shape for k, array in self.arrays().items()}
        theirs = {k: np.shape(array) for k, array in state.items()}
        must = f"have the arrays {ours}"
        check(ours == theirs, "load_state_dict: state", must, theirs)
        for name, array in self.arrays().items():
            array[...] = state[name]


class Linear(Module):
    r"""The fully connected layer :math:`Wx + b`, for the rows :math:`x` of its input.

    Equals ``torch.nn.Linear``, whose first weights are drawn otherwise.

    Args:
        inputs: number of inputs :math:`n`.
        outputs: number of outputs.
        rng: source of the weights, from :math:`\mathcal{N}(0, 2/n)`; biases are 0.
        dtype: of the parameters.

    Example:
        >>> layer = Linear(2, 1, np.random.default_rng(0))
        >>> layer.W.data[...] = [[2.0, 3.0]]
        >>> layer(Tensor([[1.0, 10.0]])).data.tolist()
        [[32.0]]
    """

    def __init__(
        self, inputs: int, outputs: int, rng: Generator, dtype: DTypeLike = np.float64
    ) -> None:
        check_sizes("Linear", inputs=inputs, outputs=outputs)
        ok = np.issubdtype(dtype, np.floating)
        check(ok, "Linear: dtype", "be a floating type", dtype)
        shape = outputs, inputs
        W = normal(shape, he(shape), rng)
        self.W = Parameter(W.astype(dtype))
        self.b = Parameter(np.zeros(outputs, dtype))

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        return affine("Linear", x, self.W, self.b)


def affine(who: str, x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """Return :math:`Wx + b` for the rows of ``x``; refuse rows of another length.

    Args:
        who: what a refusal names.
        x: inputs, rows are samples.
        W: weights, a row per output.
        b: biases, one per output.

    Example:
        >>> W, b = Tensor([[2.0, 3.0]]), Tensor([1.0])
        >>> affine("layer", Tensor([[1.0, 10.0]]), W, b).data.tolist()
        [[33.0]]
    """
    ok, must = x.ndim >= 2 and x.shape[-1] == W.shape[1], f"have {W.shape[1]} columns"
    check(ok, f"{who}: x", must, f"shape {x.shape}", "Rows are samples.")
    return x @ W.T + b


class Sequential(Module):
    """Layers one after another.

    Any function of a tensor is a layer, such as ``Tensor.relu``.

    Equals ``torch.nn.Sequential``.

    Args:
        layers: from the inputs to the outputs.

    Example:
        >>> model = Sequential(lambda x: 2 * x, Tensor.relu)
        >>> model(np.array([-1.0, 3.0])).data.tolist()
        [0.0, 6.0]
    """

    def __init__(self, *layers: Callable[[Tensor], Tensor]) -> None:
        check(len(layers) > 0, "Sequential: layers", "not be empty", "none")
        self.layers = layers

    def __call__(self, x: Tensor | ndarray) -> Tensor:
        """Compute the outputs; arrays become tensors."""
        return self.forward(x if isinstance(x, Tensor) else Tensor(x))

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        for layer in self.layers:
            x = layer(x)
        return x


class Residual(Module):
    """A residual connection, :math:`x + s f(x)` (He, Zhang, Ren and Sun 2016).

    Args:
        f: the branch, which keeps the shape.
        scale: :math:`s`.

    Example:
        >>> Residual(lambda x: 10 * x)(Tensor([1.0, 2.0])).data.tolist()
        [11.0, 22.0]
    """

    def __init__(self, f: Callable[[Tensor], Tensor], scale: float = 1.0) -> None:
        check_between("Residual: scale", scale, -inf, inf, "()")
        self.f, self.scale = f, scale

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        return x + self.scale * _like("Residual", x, self.f(x))


class Skip(Module):
    """A shortcut that joins input and branch by concatenation, mean or maximum.

    Equals ``torch.cat`` of input and branch for ``"concat"``.
    Equals ``torch.maximum`` of them for ``"max"``.

    Args:
        f: the branch.
        combine: ``"concat"`` sets them side by side; ``"mean"`` and ``"max"`` go entry
            by entry, where equal entries share the gradient of the largest. For the sum
            there is :class:`Residual`.

    Example:
        >>> x, ways = Tensor([1.0, -1.0]), ("concat", "mean", "max")
        >>> [Skip(lambda x: 10 * x, way)(x).data.tolist() for way in ways]
        [[1.0, -1.0, 10.0, -10.0], [5.5, -5.5], [10.0, -1.0]]
    """

    def __init__(self, f: Callable[[Tensor], Tensor], combine: str) -> None:
        ways: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
            "concat": lambda x, y: concat([x, y]),
            "mean": lambda x, y: (x + _like("Skip", x, y)) * 0.5,
            "max": _largest,
        }
        check_one_of("Skip: combine", combine, ways)
        self.f, self.combine = f, ways[combine]

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        return self.combine(x, self.f(x))


def _largest(x: Tensor, y: Tensor) -> Tensor:
    pair = [t.reshape(1, *t.shape) for t in (x, _like("Skip", x, y))]
    return concat(pair, axis=0).max(axis=0)


def _like(who: str, x: Tensor, y: Tensor) -> Tensor:
    """Refuse a branch whose output would be repeated to fit, or has no way back."""
    got = f"{type(y).__name__} {np.shape(y)}"
    ok, must = isinstance(y, Tensor) and x.shape == y.shape, f"be a Tensor {x.shape}"
    check(ok, f"{who}: the branch", must, got, "It keeps the shape.")
    return y


class Dropout(Module):
    """While training, set each number to 0 with probability :math:`p`.

    The others are divided by :math:`1 - p`, so that the mean stays; in use, nothing
    happens.

    Args:
        p: probability of dropping, in [0, 1).
        rng: source of randomness.

    Example:
        >>> dropout, x = Dropout(0.5, np.random.default_rng(0)), Tensor(np.ones(100))
        >>> np.unique(dropout(x).data).tolist()
        [0.0, 2.0]
        >>> np.unique(dropout.eval()(x).data).tolist()
        [1.0]
    """

    def __init__(self, p: float, rng: Generator) -> None:
        check_between("Dropout: p", p, 0, 1, "[)")
        self.p, self.rng = p, rng

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        if not self.training or self.p == 0:
            return x
        kept = self.rng.random(x.shape, dtype=np.float32) >= self.p
        return x * (kept / (1 - self.p)).astype(x.data.dtype)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a value with its name, or what a list or dictionary holds, at any depth."""
    items: Iterable[tuple[Any, Any]]
    if isinstance(value, list | tuple):
        items = enumerate(value)
    elif isinstance(value, dict):
        items = value.items()
    else:
        yield name, value
        return
    for key, part in items:
        yield from _parts(f"{name}.{key}", part)
