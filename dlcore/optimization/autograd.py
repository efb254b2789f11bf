r"""Reverse-mode automatic differentiation: arrays that remember how they were made.

A :class:`Tensor` holds an array. An operation on tensors computes its result, and keeps
for each tensor it came from a rule that carries a gradient back: from
:math:`\delta_y = \partial J / \partial y` to
:math:`\delta_x = (\partial y / \partial x)^\top \delta_y`. Calling
:meth:`Tensor.backward` on a scalar applies these rules from the last operation to the
first.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, TypeAlias, Union

import numpy as np
from numpy import ndarray
from scipy.special import expit

from dlcore.checks import check, refusing
from dlcore.feedforward import activations

__all__ = [
    "Array",
    "Axes",
    "Operand",
    "Pull",
    "Tensor",
    "concat",
    "cross_entropy",
    "log_softmax",
    "no_grad",
    "recorded",
    "result_of",
    "softmax",
    "topological_order",
]

#: What a gradient is: an array, or a number of NumPy, as its sums are.
Array: TypeAlias = ndarray | np.floating[Any]
#: A rule that carries the gradient of a result back to an operand.
Pull: TypeAlias = Callable[[Array], Array]
#: What an operation takes: a tensor, an array or a number.
Operand: TypeAlias = Union["Tensor", ndarray, np.number[Any], float]
#: Axes to reduce: one, several, or all of them (``None``).
Axes: TypeAlias = int | tuple[int, ...] | None

_recording = True


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without recording operations, inside a ``with`` block.

    Nothing computed there can be differentiated, and less memory is needed.

    Example:
        >>> x = Tensor(2.0, requires_grad=True)
        >>> with no_grad():
        ...     y = x * x
        >>> y.requires_grad
        False
    """
    global _recording
    before, _recording = _recording, False
    try:
        yield
    finally:
        _recording = before


class Tensor:
    """An array with its gradient and a record of the operation that made it.

    Equals ``torch.Tensor`` in the values and gradients of its operations.

    Attributes:
        data: the numbers.
        grad: after :meth:`backward`, the gradient of that scalar; of the same shape
            and precision.
        op: the operation that made it; empty for a leaf, which the user made.
        edges: for each tensor that it was made from, that tensor and the rule that
            carries a gradient back to it.
        requires_grad: whether gradients are wanted here, or further back.

    Example:
        >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [2.0, 4.0, 6.0]
    """

    __array_ufunc__ = None  # array + tensor is a tensor: NumPy leaves it to us
    shape = property(lambda self: self.data.shape, doc="Shape of the array.")
    size = property(lambda self: self.data.size, doc="Number of numbers.")
    ndim = property(lambda self: self.data.ndim, doc="Number of axes.")
    __hash__ = object.__hash__  # equal numbers do not make tensors the same

    def __init__(self, data: Any, requires_grad: bool = False) -> None:
        ok, must = not isinstance(data, Tensor), "be numbers or an array"
        check(ok, "Tensor: data", must, "a Tensor", "Use its .data.")
        array = np.asarray(data)
        kind = array.dtype.kind
        check(kind in "fiub", "Tensor: data", "be real numbers", array.dtype)
        self.data: ndarray = array if kind == "f" else array.astype(float)
        self.grad: ndarray | None = None
        self.op = ""
        self.edges: list[tuple[Tensor, Pull]] = []
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        origin = f", op={self.op!r}" if self.op else ""
        return f"Tensor({self.data}{origin})"

    def __len__(self) -> int:
        return len(self.data)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __eq__(self, other: object) -> Any:
        must = "be between arrays"
        check(False, "a comparison", must, "a Tensor", "Compare its .data.")

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def item(self) -> float:
        """Return the only number."""
        got = f"shape {self.shape}"
        check(self.size == 1, "item: the tensor", "hold one number", got)
        return float(self.data.item())

    def backward(self) -> None:
        """Set the gradient of this scalar on every tensor that it was made from.

        Leaves add it to the gradient that is there, in an array of their own; the
        results of operations overwrite theirs, and may share memory.
        """
        got = f"shape {self.shape}" + f" from {self.op}" * bool(self.op)
        hint = "Take its .sum() or .mean() first."
        check(self.size == 1, "backward: the tensor", "be a scalar", got, hint)
        must = "come from one that needs a gradient"
        hint = (
            "Make a Parameter, or Tensor(..., requires_grad=True), outside no_grad()."
        )
        check(self.requires_grad, "backward: the tensor", must, self, hint)
        made = topological_order(self)
        if not np.isfinite(self.data).all():
            bad = next(t for t in made if not np.isfinite(t.data).all())
            hint = (
                f"Look at the {bad.op or 'leaf'} of shape {bad.shape}, and at its data."
            )
            check(False, "backward: the scalar", "be finite", self.item(), hint)
        gradients: dict[int, ndarray] = {id(self): np.ones_like(self.data)}
        for tensor in reversed(made):
            g = gradients.pop(id(tensor))
            if not tensor.edges:
                before = 0 if tensor.grad is None else tensor.grad
                g = np.asarray(before + g)
            tensor.grad = g
            for source, pull in tensor.edges:
                part = _unbroadcast(pull(g), source.data)
                if id(source) in gradients:
                    part = np.asarray(gradients[id(source)] + part)
                gradients[id(source)] = part

    # Each operation: its value, and how a gradient g goes back to each operand.

    def __add__(self, other: Operand) -> "Tensor":
        A, B, a, b = _operands("add", self, other)
        return result_of("add", a + b, (A, lambda g: g), (B, lambda g: g))

    def __mul__(self, other: Operand) -> "Tensor":
        A, B, a, b = _operands("mul", self, other)
        return result_of("mul", a * b, (A, lambda g: g * b), (B, lambda g: g * a))

    def __truediv__(self, other: Operand) -> "Tensor":
        A, B, a, b = _operands("div", self, other)
        y = a / b
        return result_of("div", y, (A, lambda g: g / b), (B, lambda g: -g * y / b))

    def __pow__(self, k: float) -> "Tensor":
        ok, got = isinstance(k, Real), type(k).__name__
        hint = "Write a ** b as (b * a.log()).exp()."
        check(ok, "pow: the exponent", "be a number", got, hint)
        x, k = self.data, float(k)
        slope = (lambda: k * x ** (k - 1)) if k else (lambda: np.zeros_like(x))
        return result_of("pow", x**k, (self, lambda g: g * slope()))

    def __matmul__(self, other: Operand) -> "Tensor":
        A, B, a, b = _operands("matmul", self, other, last=2)
        # (g.mT @ a).mT is a.mT @ g, stored as the transpose of a weight is
        back = (A, lambda g: g @ b.mT), (B, lambda g: (g.mT @ a).mT)
        return result_of("matmul", a @ b, *back)

    def exp(self) -> "Tensor":
        """Return the exponential function of each number."""
        y = np.exp(self.data)
        return result_of("exp", y, (self, lambda g: g * y))

    def log(self) -> "Tensor":
        """Return the natural logarithm; the numbers must be positive."""
        x = self.data
        least = x.min(initial=np.inf)
        check(bool(least > 0), "log: the numbers", "be positive", least)
        return result_of("log", np.log(x), (self, lambda g: g / x))

    def abs(self) -> "Tensor":
        """Return the absolute values; the slope at zero is taken for zero."""
        x = self.data
        return result_of("abs", np.abs(x), (self, lambda g: g * np.sign(x)))

    def tanh(self) -> "Tensor":
        """Return the hyperbolic tangent of each number."""
        y = np.tanh(self.data)
        return result_of("tanh", y, (self, lambda g: g * (1 - y * y)))

    def sigmoid(self) -> "Tensor":
        """Return the logistic function of each number."""
        y = expit(self.data)
        return result_of("sigmoid", y, (self, lambda g: g * y * (1 - y)))

    def relu(self) -> "Tensor":
        """Return the positive part; the slope at zero is taken for zero."""
        y = np.maximum(self.data, 0)

        def pull(g: Array) -> Array:
            finite = np.isfinite(g.sum())  # then a product, which is faster
            return g * (y > 0) if finite else np.where(y > 0, g, 0)

        return result_of("relu", y, (self, pull))

    def sum(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        """Return the sum over some axes, or over all."""
        x, (y, value) = self.data, _reduced("sum", self.data, axis, keepdims)

        def pull(g: Array) -> Array:
            return np.broadcast_to(g.reshape(y.shape), x.shape)

        return result_of("sum", value, (self, pull))

    def mean(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        """Return the mean over some axes, or over all."""
        check(self.size > 0, "mean: the tensor", "not be empty", self.shape)
        total = self.sum(axis, keepdims)
        return total * (total.size / self.size)

    def max(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        """Return the largest; where several are, they share the gradient equally."""
        check(self.size > 0, "max: the tensor", "not be empty", self.shape)
        x, (y, value) = self.data, _reduced("max", self.data, axis, keepdims)

        def pull(g: Array) -> Array:
            share = (x == y) / (x == y).sum(axis=axis, keepdims=True)
            return g.reshape(y.shape) * share

        return result_of("max", value, (self, pull))

    def reshape(self, *shape: Any) -> "Tensor":
        """Return the same numbers in another shape."""
        x = self.data
        with refusing("reshape: the shape", f"fit {x.size} numbers", shape):
            y = x.reshape(*shape)
        return result_of("reshape", y, (self, lambda g: g.reshape(x.shape)))

    @property
    def T(self) -> "Tensor":
        """The last two axes exchanged."""
        got = f"shape {self.shape}"
        check(self.ndim >= 2, "T: the tensor", "have two axes", got)
        return result_of("T", self.data.mT, (self, lambda g: g.mT))

    def __getitem__(self, index: Any) -> "Tensor":
        x = self.data
        with refusing("getitem: the index", f"fit shape {x.shape}", index):
            y = x[index]

        def pull(g: Array) -> Array:
            back = np.zeros_like(x)
            np.add.at(back, index, g)  # an entry taken twice gets both
            return back

        return result_of("getitem", y, (self, pull))

    def __neg__(self) -> "Tensor":
        return self * -1.0

    def __sub__(self, other: Operand) -> "Tensor":
        return self + -_tensor(other, self)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Operand) -> "Tensor":
        return _tensor(other, self) + -self

    def __rtruediv__(self, other: Operand) -> "Tensor":
        return _tensor(other, self) / self

    def __rmatmul__(self, other: Operand) -> "Tensor":
        return _tensor(other, self) @ self


def topological_order(tensor: Tensor) -> list[Tensor]:
    """Return all tensors that a tensor was made from, each after its own sources.

    The tensor itself comes last; backpropagation goes through the list in reverse.

    Example:
        >>> x = Tensor(3.0, requires_grad=True)
        >>> [t.op or "leaf" for t in topological_order(x * x + x)]
        ['leaf', 'mul', 'add']
    """
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


def recorded(tensor: Tensor) -> tuple[dict[str, Tensor], list[tuple[str, str]]]:
    """Return the computational graph of a tensor, as names and edges to draw.

    Returns:
        The tensors by names, sources first, and a pair of names for each edge.

    Example:
        >>> x = Tensor(3.0, requires_grad=True)
        >>> recorded(x * x)[1]
        [('0', '1'), ('0', '1')]
    """
    tensors = {str(i): t for i, t in enumerate(topological_order(tensor))}
    names = {id(t): name for name, t in tensors.items()}
    edges = [
        (names[id(source)], name)
        for name, t in tensors.items()
        for source, _ in t.edges
    ]
    return tensors, edges


def concat(tensors: Iterable[Operand], axis: int = -1) -> Tensor:
    """Join tensors along an axis that exists.

    Equals ``torch.cat``.

    Example:
        >>> concat([Tensor([1.0, 2.0]), Tensor([3.0])]).data.tolist()
        [1.0, 2.0, 3.0]
    """
    parts = [_tensor(t) for t in tensors]
    shapes = [t.shape for t in parts]
    must = f"have an axis {axis} and agree in all others"
    with refusing("concat: the shapes", must, shapes):
        y = np.concatenate([t.data for t in parts], axis=axis)
        cuts = np.cumsum([shape[axis] for shape in shapes])[:-1]

    def part(i: int) -> Pull:
        return lambda g: np.split(g, cuts, axis=axis)[i]

    return result_of("concat", y, *((t, part(i)) for i, t in enumerate(parts)))


def log_softmax(z: Operand) -> Tensor:
    """Return the logarithm of the softmax over the last axis.

    Equals ``torch.log_softmax`` over the last axis.

    Example:
        >>> log_softmax(np.log([1.0, 3.0])).exp().data.round(3).tolist()
        [0.25, 0.75]
    """
    z = _tensor(z)
    y = activations.log_softmax(z.data)

    def pull(g: Array) -> Array:
        return g - np.exp(y) * g.sum(axis=-1, keepdims=True)

    return result_of("log_softmax", y, (z, pull))


def softmax(z: Operand) -> Tensor:
    """Return the softmax over the last axis: positive numbers with sum 1.

    Equals ``torch.softmax`` over the last axis.

    Example:
        >>> softmax(np.log([1.0, 3.0])).data.round(3).tolist()
        [0.25, 0.75]
    """
    return log_softmax(z).exp()


def cross_entropy(z: Tensor, y: ndarray) -> Tensor:
    """Return the mean cross-entropy of rows of logits for whole-number labels.

    Equals ``torch.nn.functional.cross_entropy``.

    Args:
        z: logits, a row per example.
        y: the class of each row, from 0 on.

    Example:
        >>> z = Tensor(np.log([[1.0, 3.0]]))  # probabilities 1/4 and 3/4
        >>> round(cross_entropy(z, np.array([0])).item(), 3)  # log 4
        1.386
    """
    y = np.asarray(y)
    ok = z.ndim == 2 and y.shape == z.shape[:1] and y.dtype.kind in "iu"
    must = "be scores (s, C) and one whole number per row"
    got = f"shapes {z.shape} and {y.shape} ({y.dtype})"
    check(ok, "cross_entropy: z and y", must, got)
    classes = z.shape[1]
    ok = bool(((y >= 0) & (y < classes)).all())
    check(ok, "cross_entropy: y", f"lie in 0 … {classes - 1}", np.unique(y))
    rows = np.arange(len(y))
    return -log_softmax(z)[rows, y].mean()


def result_of(op: str, data: Array, *edges: tuple[Tensor, Pull]) -> Tensor:
    """Make the result of an operation, and record the way back where it is needed.

    Args:
        op: its name.
        data: its value.
        edges: for each operand, the tensor and the rule that carries a gradient back
            to it.

    Example:
        >>> x = Tensor(3.0, requires_grad=True)
        >>> y = result_of("x^2", x.data**2, (x, lambda g: g * 2 * x.data))
        >>> y.backward()
        >>> x.grad.item()
        6.0
    """
    result = Tensor(data)
    result.op = op
    if _recording:
        result.edges = [edge for edge in edges if edge[0].requires_grad]
        result.requires_grad = bool(result.edges)
    return result


def _tensor(value: Operand, like: Tensor | None = None) -> Tensor:
    """Make a tensor; arrays of floats keep their precision, the rest is like another."""
    if isinstance(value, Tensor):
        return value
    array = Tensor(value).data
    if like is not None and (array is not value or array.ndim == 0):
        array = array.astype(like.data.dtype)
    return Tensor(array)


def _operands(
    op: str, A: Tensor, other: Operand, last: int = 0
) -> tuple[Tensor, Tensor, ndarray, ndarray]:
    """Return both operands and their arrays; shapes, but for the last axes, must fit."""
    B = _tensor(other, A)
    a, b = A.data, B.data
    if a.shape == b.shape and not last:
        return A, B, a, b
    got = f"{A.shape} and {B.shape}"
    if last:
        ok = min(a.ndim, b.ndim) >= 2 and a.shape[-1] == b.shape[-2]
        must = "have shapes (…, n, k) and (…, k, m)"
        hint = "A vector is a matrix with one row or one column: .reshape(-1, 1)."
        check(ok, f"{op}: the operands", must, got, hint)
    axes = zip(a.shape[::-1][last:], b.shape[::-1][last:], strict=False)
    ok = all(m == n or 1 in (m, n) for m, n in axes)
    must = "be equal, or 1, in each axis from the last on"
    check(ok, f"{op}: the shapes", must, got)
    return A, B, a, b


def _reduced(op: str, x: ndarray, axis: Axes, keepdims: bool) -> list[Array]:
    """Return the reduction of an array with all axes kept, and as it was asked for."""
    with refusing(f"{op}: axis", f"be among {x.ndim} axes", axis):
        y = getattr(x, op)(axis=axis, keepdims=True)
    return [y, y if keepdims else y.squeeze(axis)]


def _unbroadcast(g: Array, x: ndarray) -> ndarray:
    """Add up a gradient over the axes along which the operand ``x`` was repeated."""
    if g.shape != x.shape:
        g = g.sum(axis=tuple(range(g.ndim - x.ndim)))
        repeated = tuple(i for i, n in enumerate(x.shape) if n != g.shape[i])
        g = g.sum(axis=repeated, keepdims=True)
    return np.asarray(g, x.dtype)
