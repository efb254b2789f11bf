r"""Reverse-mode automatic differentiation: arrays that remember how they were made.

A :class:`Tensor` holds an array. An operation on tensors computes its result, and keeps
for each tensor it came from a rule that carries a gradient back: from
:math:`\delta_y = \partial J / \partial y` to
:math:`\delta_x = (\partial y / \partial x)^\top \delta_y`. Calling
:meth:`Tensor.backward` on a scalar applies these rules from the last operation to the
first.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any, TypeAlias, Union

import numpy as np
from numpy import ndarray
from scipy.special import expit

from dlcore import activations
from dlcore._check import check
from dlcore.derivatives import check_gradient

Array: TypeAlias = ndarray | np.floating[Any]  # sums of NumPy are no arrays
Pull: TypeAlias = Callable[[Array], Array]
Operand: TypeAlias = Union["Tensor", ndarray, np.number[Any], float]
Axes: TypeAlias = int | tuple[int, ...] | None

_recording = True


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without remembering how, as one does when nothing is trained."""
    global _recording
    before, _recording = _recording, False
    try:
        yield
    finally:
        _recording = before


class Tensor:
    """An array, its gradient, and how it was made.

    Attributes:
        data: the numbers.
        grad: after :meth:`backward`, the gradient of that scalar; of the same shape
            and precision.
        op: the operation that made it; empty for what the user made.
        edges: for each tensor that it was made from, that tensor and the rule that
            carries a gradient back to it.
        needs_grad: whether gradients are wanted here, or further back.
    """

    __array_ufunc__ = None  # array + tensor is a tensor: NumPy leaves it to us

    def __init__(self, data: Any, needs_grad: bool = False) -> None:
        check(
            not isinstance(data, Tensor),
            "Tensor: data",
            "be numbers or an array",
            "a Tensor",
            "Use its .data.",
        )
        array = np.asarray(data)
        kind = array.dtype.kind
        check(kind in "fiub", "Tensor: data", "be real numbers", array.dtype)
        self.data: ndarray = array if kind == "f" else array.astype(float)
        self.grad: ndarray | None = None
        self.op = ""
        self.edges: list[tuple[Tensor, Pull]] = []
        self.needs_grad = needs_grad

    def __repr__(self) -> str:
        origin = f", op={self.op!r}" if self.op else ""
        return f"Tensor({self.data}{origin})"

    def __len__(self) -> int:
        return len(self.data)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.data.shape

    @property
    def size(self) -> int:
        """Number of numbers."""
        return self.data.size

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.data.ndim

    def item(self) -> float:
        """Return the only number."""
        return float(self.data.item())

    def backward(self) -> None:
        """Set the gradient of this scalar on every tensor that it was made from.

        What the user made adds it to the gradient that is there, in an array of its
        own; the results of operations overwrite theirs, and may share memory.
        """
        check(
            self.size == 1,
            "backward: the tensor",
            "be a scalar",
            f"shape {self.shape}" + (f" from {self.op}" if self.op else ""),
            "Take its .sum() or .mean() first.",
        )
        check(
            self.needs_grad,
            "backward: the tensor",
            "come from one that needs a gradient",
            self,
            "Make a Parameter, or Tensor(..., needs_grad=True), outside no_grad().",
        )
        if not np.isfinite(self.data).all():
            _refuse_non_finite(self)
        gradients: dict[int, ndarray] = {id(self): np.ones_like(self.data)}
        for tensor in reversed(history(self)):
            g = gradients.pop(id(tensor))
            if tensor.edges:
                tensor.grad = g
            elif tensor.grad is None:
                tensor.grad = g.copy()
            else:
                tensor.grad = np.asarray(tensor.grad + g)
            for source, pull in tensor.edges:
                part = _gather(pull(g), source.data)
                if id(source) in gradients:
                    part = np.asarray(gradients[id(source)] + part)
                gradients[id(source)] = part

    # Each operation: its value, and how a gradient g goes back to each operand.

    def __add__(self, other: Operand) -> "Tensor":
        a, b = _pair("add", self, other)
        return record(
            "add", a.data + b.data, (a, lambda g: g), (b, lambda g: g)
        )

    def __mul__(self, other: Operand) -> "Tensor":
        a, b = _pair("mul", self, other)
        return record(
            "mul",
            a.data * b.data,
            (a, lambda g: g * b.data),
            (b, lambda g: g * a.data),
        )

    def __truediv__(self, other: Operand) -> "Tensor":
        a, b = _pair("div", self, other)
        y = a.data / b.data
        return record(
            "div", y, (a, lambda g: g / b.data), (b, lambda g: -g * y / b.data)
        )

    def __pow__(self, k: float) -> "Tensor":
        check(
            isinstance(k, Real),
            "pow: the exponent",
            "be a number",
            type(k).__name__,
            "Write a ** b as (b * a.log()).exp().",
        )
        x, k = self.data, float(k)
        slope = (lambda: k * x ** (k - 1)) if k else (lambda: np.zeros_like(x))
        return record("pow", x**k, (self, lambda g: g * slope()))

    def __matmul__(self, other: Operand) -> "Tensor":
        a, b = self, _tensor(other, self)
        check(
            a.ndim >= 2 and b.ndim >= 2 and a.shape[-1] == b.shape[-2],
            "matmul: the operands",
            "have shapes (…, n, k) and (…, k, m)",
            f"{a.shape} and {b.shape}",
            "A vector is a matrix with one row or one column: .reshape(-1, 1).",
        )
        _fit("matmul", a.shape[:-2], b.shape[:-2])
        return record(
            "matmul",
            a.data @ b.data,
            (a, lambda g: g @ b.data.mT),
            (b, lambda g: (g.mT @ a.data).mT),
        )

    def exp(self) -> "Tensor":  # noqa: D102
        y = np.exp(self.data)
        return record("exp", y, (self, lambda g: g * y))

    def log(self) -> "Tensor":
        """Return the natural logarithm; the numbers must be positive."""
        x = self.data
        least = x.min(initial=np.inf)
        check(bool(least > 0), "log: the numbers", "be positive", least)
        return record("log", np.log(x), (self, lambda g: g / x))

    def abs(self) -> "Tensor":  # noqa: D102
        x = self.data
        return record("abs", np.abs(x), (self, lambda g: g * np.sign(x)))

    def tanh(self) -> "Tensor":  # noqa: D102
        y = np.tanh(self.data)
        return record("tanh", y, (self, lambda g: g * (1 - y * y)))

    def sigmoid(self) -> "Tensor":  # noqa: D102
        y = expit(self.data)
        return record("sigmoid", y, (self, lambda g: g * y * (1 - y)))

    def relu(self) -> "Tensor":  # noqa: D102
        y = np.maximum(self.data, 0)
        return record("relu", y, (self, lambda g: g * (y > 0)))

    def sum(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":  # noqa: D102
        x = self.data
        y = x.sum(axis=axis, keepdims=keepdims)
        return record(
            "sum", y, (self, lambda g: _spread(g, x.shape, axis, keepdims))
        )

    def mean(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":  # noqa: D102
        check(self.size > 0, "mean: the tensor", "not be empty", self.shape)
        total = self.sum(axis, keepdims)
        return total * (total.size / self.size)

    def max(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        """Return the largest; where several are, they share the gradient equally."""
        check(self.size > 0, "max: the tensor", "not be empty", self.shape)
        x = self.data
        y = x.max(axis=axis, keepdims=keepdims)

        def pull(g: Array) -> Array:
            largest = x == _spread(y, x.shape, axis, keepdims)
            share = largest / largest.sum(axis=axis, keepdims=True)
            return _spread(g, x.shape, axis, keepdims) * share

        return record("max", y, (self, pull))

    def reshape(self, *shape: int) -> "Tensor":  # noqa: D102
        x = self.data
        return record(
            "reshape", x.reshape(shape), (self, lambda g: g.reshape(x.shape))
        )

    @property
    def T(self) -> "Tensor":
        """The last two axes exchanged."""
        check(
            self.ndim >= 2,
            "T: the tensor",
            "have two axes",
            f"shape {self.shape}",
        )
        return record("T", self.data.mT, (self, lambda g: g.mT))

    def __getitem__(self, index: Any) -> "Tensor":
        x = self.data

        def pull(g: Array) -> Array:
            back = np.zeros_like(x)
            np.add.at(back, index, g)  # an entry taken twice gets both
            return back

        return record("getitem", x[index], (self, pull))

    def __neg__(self) -> "Tensor":
        return self * -1.0

    def __sub__(self, other: Operand) -> "Tensor":
        return self + -_tensor(other, self)

    def __radd__(self, other: Operand) -> "Tensor":
        return self + other

    def __rmul__(self, other: Operand) -> "Tensor":
        return self * other

    def __rsub__(self, other: Operand) -> "Tensor":
        return _tensor(other, self) + -self

    def __rtruediv__(self, other: Operand) -> "Tensor":
        return _tensor(other, self) / self

    def __rmatmul__(self, other: Operand) -> "Tensor":
        return _tensor(other, self) @ self


def history(tensor: Tensor) -> list[Tensor]:
    """Return all that a tensor was made from, and itself, each after its sources."""
    order: list[Tensor] = []
    seen: set[int] = set()
    todo = [(tensor, False)]
    while todo:
        node, ready = todo.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            todo.append((node, True))
            todo.extend((source, False) for source, _ in node.edges)
    return order


def graph(tensor: Tensor) -> tuple[dict[str, Tensor], list[tuple[str, str]]]:
    """Return the history of a tensor as a graph to draw.

    Returns:
        The tensors by names, sources first, and a pair of names for each edge.
    """
    tensors = {str(i): t for i, t in enumerate(history(tensor))}
    names = {id(t): name for name, t in tensors.items()}
    edges = [
        (names[id(source)], name)
        for name, t in tensors.items()
        for source, _ in t.edges
    ]
    return tensors, edges


def check_backward(
    f: Callable[..., Tensor], *arrays: Any, tolerance: float = 1e-6
) -> None:
    """Refuse gradients that differ from those by differences.

    Args:
        f: what to check; takes tensors and returns a scalar.
        arrays: where to check it, away from kinks.
        tolerance: of :func:`dlcore.derivatives.check_gradient`.
    """
    inputs = [
        Tensor(np.array(array, dtype=float), needs_grad=True)
        for array in arrays
    ]
    f(*inputs).backward()
    for i, tensor in enumerate(inputs):
        g = np.zeros(tensor.shape) if tensor.grad is None else tensor.grad

        def value(x: ndarray, i: int = i) -> float:
            points = [t.data for t in inputs]
            return f(*map(Tensor, [*points[:i], x, *points[i + 1 :]])).item()

        what = f"check_backward: the gradient by input {i}"
        check_gradient(value, g, tensor.data, tolerance, what)


def concat(tensors: Sequence[Tensor], axis: int = -1) -> Tensor:
    """Join tensors along an axis."""
    shapes = [t.shape for t in tensors]
    try:
        y = np.concatenate([t.data for t in tensors], axis=axis)
    except ValueError:
        rule = f"agree in all axes but {axis}"
        check(False, "concat: the shapes", rule, shapes)
    cuts = np.cumsum([shape[axis] for shape in shapes])[:-1]

    def part(i: int) -> Pull:
        return lambda g: np.split(g, cuts, axis=axis)[i]

    return record("concat", y, *((t, part(i)) for i, t in enumerate(tensors)))


def log_softmax(z: Tensor) -> Tensor:
    """Return the logarithms of the softmax over the last axis."""
    y = activations.log_softmax(z.data)

    def pull(g: Array) -> Array:
        return g - np.exp(y) * g.sum(axis=-1, keepdims=True)

    return record("log_softmax", y, (z, pull))


def softmax(z: Tensor) -> Tensor:
    """Return the softmax over the last axis."""
    return log_softmax(z).exp()


def cross_entropy(z: Tensor, y: ndarray) -> Tensor:
    """Return the mean cross-entropy of rows of scores for whole-number labels."""
    y = np.asarray(y)
    ok = z.ndim == 2 and y.shape == z.shape[:1] and y.dtype.kind in "iu"
    check(
        ok,
        "cross_entropy: z and y",
        "be scores (s, C) and one whole number per row",
        f"shapes {z.shape} and {y.shape} ({y.dtype})",
    )
    classes = z.shape[1]
    ok = bool(((y >= 0) & (y < classes)).all())
    check(ok, "cross_entropy: y", f"lie in 0 … {classes - 1}", np.unique(y))
    rows = np.arange(len(y))
    return -log_softmax(z)[rows, y].mean()


def record(op: str, data: Array, *edges: tuple[Tensor, Pull]) -> Tensor:
    """Make the result of an operation, and remember the way back where it is needed.

    Args:
        op: its name.
        data: its value.
        edges: for each operand, the tensor and the rule that carries a gradient back
            to it.
    """
    result = Tensor(data)
    result.op = op
    if _recording:
        result.edges = [edge for edge in edges if edge[0].needs_grad]
        result.needs_grad = bool(result.edges)
    return result


def _tensor(value: Operand, like: Tensor) -> Tensor:
    """Make a tensor; a plain number takes the precision of the other operand."""
    if isinstance(value, Tensor):
        return value
    plain = isinstance(value, Real)
    return Tensor(np.asarray(value, like.data.dtype) if plain else value)


def _pair(op: str, a: Tensor, b: Operand) -> tuple[Tensor, Tensor]:
    """Return both operands as tensors, whose shapes must fit."""
    b = _tensor(b, a)
    _fit(op, a.shape, b.shape)
    return a, b


def _fit(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Refuse shapes that do not broadcast."""
    ok = all(
        1 in (i, j) or i == j for i, j in zip(a[::-1], b[::-1], strict=False)
    )
    check(
        ok,
        f"{op}: the shapes",
        "be equal, or 1, in each axis from the last on",
        f"{a} and {b}",
    )


def _gather(g: Array, x: ndarray) -> ndarray:
    """Add up a gradient over the axes along which the operand ``x`` was repeated."""
    if g.shape != x.shape:
        g = g.sum(axis=tuple(range(g.ndim - x.ndim)))
        repeated = tuple(i for i, n in enumerate(x.shape) if n != g.shape[i])
        g = g.sum(axis=repeated, keepdims=True)
    return np.asarray(g, x.dtype)


def _spread(
    g: Array, shape: tuple[int, ...], axis: Axes, keepdims: bool
) -> ndarray:
    """Repeat the gradient of a reduction over the axes that it removed."""
    if axis is not None and not keepdims:
        g = np.expand_dims(g, axis)
    return np.broadcast_to(g, shape)


def _refuse_non_finite(scalar: Tensor) -> None:
    """Say which operation was the first to give a result that is no number."""
    made = history(scalar)
    first = next(t for t in made if not np.isfinite(t.data).all())
    origin = f"the result of {first.op}" if first.op else "a tensor of the user"
    check(
        False,
        "backward: the scalar",
        "be finite",
        scalar.item(),
        f"The first that is not is {origin}, of shape {first.shape}.",
    )
