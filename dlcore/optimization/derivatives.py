r"""Derivatives without a graph: by differences, and forwards by dual numbers.

Differences also judge gradients that were computed in another way.

A derivative of a map :math:`f` has the shape of its outputs, followed by the shape of its
inputs: for vectors it is the Jacobian :math:`\mathrm{D}f(x)` with a row per output.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any, TypeAlias, Union

import numpy as np
from numpy import ndarray
from scipy.special import expit

from dlcore.checks import (
    check,
    check_between,
    check_finite,
    check_positive,
    check_shape,
)
from dlcore.optimization.autograd import Tensor

__all__ = [
    "Dual",
    "Operand",
    "check_backward",
    "check_gradient",
    "finite_difference",
    "jacobian",
]

#: What an operation takes: a dual number, an array or a number.
Operand: TypeAlias = Union["Dual", ndarray, float]


def finite_difference(
    f: Callable[[ndarray], Any], x: Any, h: float | None = None
) -> ndarray:
    r"""Return the derivative of ``f`` at ``x`` by central differences.

    .. math:: \frac{\partial f}{\partial x_j} \approx
        \frac{f(x + h e_j) - f(x - h e_j)}{2h}

    It costs two evaluations of ``f`` for each entry of ``x``. As :math:`x \pm h` are
    rounded, what divides is the distance of the two numbers that ``f`` was given.

    Args:
        f: takes an array of the shape of ``x``, returns a number or an array.
        x: where; of any shape, whole numbers become floats.
        h: half the distance of the two evaluations. By default the cube root of the
            machine precision, times the size of the entry where that is above 1.

    Example:
        >>> finite_difference(lambda x: x[0] * x[1], [2.0, 5.0]).round(6).tolist()
        [5.0, 2.0]
    """
    x = _point("finite_difference", x)
    if h is None:
        steps = np.cbrt(np.finfo(float).eps) * np.maximum(1, np.abs(x))
    else:
        check_positive("finite_difference: h", _number(h))
        steps = np.full(x.shape, float(h))
    ok = bool(((x + steps > x) & (x - steps < x)).all())
    check(ok, "finite_difference: h", "change every entry of x", h)
    columns = []
    for j in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[j] = steps[j]
        up, down = x + e, x - e
        difference = np.asarray(f(up)) - np.asarray(f(down))
        columns.append(np.asarray(difference / (up[j] - down[j])))
    return _stacked(columns, x.shape)


class Dual:
    r"""A dual number :math:`v + \dot v \varepsilon`, with :math:`\varepsilon^2 = 0`.

    A program that runs on it computes its value, and at the same time the derivative of
    the value along the direction that the slopes of its inputs name. The operations
    have the names that :class:`dlcore.optimization.autograd.Tensor` has, so one program
    runs on both.

    Attributes:
        value: an array :math:`v`.
        slope: its derivative :math:`\dot v`, of the same shape; zero for constants.

    Example:
        >>> x = Dual(3.0, slope=1.0)
        >>> y = x * x + 2 * x
        >>> y.value.item(), y.slope.item()  # the derivative is 2x + 2
        (15.0, 8.0)
    """

    __array_ufunc__ = None  # array + dual is a dual: NumPy leaves it to us

    def __init__(self, value: Any, slope: Any = 0.0) -> None:
        ok = not (isinstance(value, Dual) or isinstance(slope, Dual))
        check(ok, "Dual: value and slope", "be numbers or arrays", "a Dual")
        self.value = np.asarray(value, dtype=float)
        self.slope = np.asarray(slope, dtype=float)
        if self.slope.ndim == 0:
            self.slope = np.full(self.value.shape, float(self.slope))
        check_shape("Dual: slope", self.slope, *self.value.shape)

    def __repr__(self) -> str:
        return f"Dual({self.value}, {self.slope})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return self.value.shape

    # Each operation: its value, and how the slopes of the operands go on.

    def __add__(self, other: Operand) -> "Dual":
        a, b = self, _dual(other)
        return Dual(a.value + b.value, a.slope + b.slope)

    def __mul__(self, other: Operand) -> "Dual":
        a, b = self, _dual(other)
        return Dual(a.value * b.value, a.slope * b.value + a.value * b.slope)

    def __truediv__(self, other: Operand) -> "Dual":
        a, b = self, _dual(other)
        check(bool(b.value.all()), "Dual: the divisor", "not be zero", b.value)
        y = a.value / b.value
        return Dual(y, (a.slope - y * b.slope) / b.value)

    def __matmul__(self, other: Operand) -> "Dual":
        a, b = self, _dual(other)
        return Dual(a.value @ b.value, a.slope @ b.value + a.value @ b.slope)

    def __pow__(self, k: float) -> "Dual":
        ok = isinstance(_number(k), Real)
        hint = "Write a ** b as (b * a.log()).exp()."
        check(ok, "Dual: the exponent", "be a number", type(k).__name__, hint)
        x = self.value
        with np.errstate(all="ignore"):  # what is not finite is refused
            y, dy = x**k, k * x ** (k - 1) if k else 0 * x
        ok = bool(np.isfinite([y, dy]).all())
        check(ok, f"Dual: x ** {k}", "have a finite value and slope", f"x = {x}")
        return Dual(y, dy * self.slope)

    def __rpow__(self, base: Operand) -> "Dual":
        return _dual(base) ** self  # type: ignore[operator]  # refused there

    def exp(self) -> "Dual":
        """Return the exponential function of each number."""
        y = np.exp(self.value)
        return Dual(y, y * self.slope)

    def log(self) -> "Dual":
        """Return the natural logarithm; the numbers must be positive."""
        x = self.value
        check(bool((x > 0).all()), "Dual: log", "take positive numbers", x)
        return Dual(np.log(x), self.slope / x)

    def cos(self) -> "Dual":
        """Return the cosine of each number."""
        return Dual(np.cos(self.value), -np.sin(self.value) * self.slope)

    def tanh(self) -> "Dual":
        """Return the hyperbolic tangent of each number."""
        y = np.tanh(self.value)
        return Dual(y, (1 - y * y) * self.slope)

    def sigmoid(self) -> "Dual":
        """Return the logistic function of each number."""
        y = expit(self.value)
        return Dual(y, y * expit(-self.value) * self.slope)

    def relu(self) -> "Dual":
        """Return the positive part; the slope at zero is taken for zero."""
        on = self.value > 0
        return Dual(on * self.value, on * self.slope)

    def sum(self) -> "Dual":
        """Return the sum of all numbers."""
        return Dual(self.value.sum(), self.slope.sum())

    def __getitem__(self, index: Any) -> "Dual":
        return Dual(self.value[index], self.slope[index])

    def __neg__(self) -> "Dual":
        return self * -1.0

    def __sub__(self, other: Operand) -> "Dual":
        return self + -_dual(other)

    def __radd__(self, other: Operand) -> "Dual":
        return self + other

    def __rmul__(self, other: Operand) -> "Dual":
        return self * other

    def __rsub__(self, other: Operand) -> "Dual":
        return _dual(other) - self

    def __rtruediv__(self, other: Operand) -> "Dual":
        return _dual(other) / self

    def __rmatmul__(self, other: Operand) -> "Dual":
        return _dual(other) @ self


def jacobian(f: Callable[[Dual], Dual], x: Any) -> ndarray:
    r"""Return the derivative of ``f`` at ``x`` by forward mode.

    One pass for each entry of ``x``: with the slope :math:`e_j` at the inputs, the
    slopes of the outputs are column :math:`j` of :math:`\mathrm{D}f(x)`.

    Equals ``torch.autograd.functional.jacobian``.

    Args:
        f: a program of operations that :class:`Dual` has.
        x: where; of any shape, whole numbers become floats.

    Example:
        >>> jacobian(lambda x: x * x, [1.0, 3.0]).tolist()
        [[2.0, 0.0], [0.0, 6.0]]
    """
    x = _point("jacobian", x)
    columns = []
    for j in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[j] = 1.0
        y = f(Dual(x, e))
        ok, hint = isinstance(y, Dual), "Compute with its operations, such as x.tanh()."
        check(ok, "jacobian: f", "return a Dual", type(y).__name__, hint)
        columns.append(y.slope)
    return _stacked(columns, x.shape)


def check_gradient(
    f: Callable[[ndarray], Any],
    gradient: Any,
    x: Any,
    tolerance: float = 1e-6,
    what: str = "check_gradient: gradient",
) -> None:
    """Refuse a gradient that differs from the one by finite differences.

    Args:
        f: takes an array of the shape of ``x``, returns a number.
        gradient: what is claimed at ``x``; of its shape.
        x: where.
        tolerance: largest difference, relative to the largest entry of the gradient or
            to 1. Entries below the tolerance are not told from zero.
        what: what a refusal names.

    Example:
        >>> check_gradient(lambda x: (x**2).sum(), [2.0, 4.0], x=[1.0, 2.0])
        >>> check_gradient(lambda x: (x**2).sum(), [2.0, 3.0], x=[1.0, 2.0])
        Traceback (most recent call last):
        ValueError: check_gradient: gradient[1] must be 4; got 3.
    """
    x, gradient = np.asarray(x, dtype=float), np.asarray(gradient, dtype=float)
    check_shape(what, gradient, *x.shape)
    check_between("check_gradient: tolerance", _number(tolerance), 0, np.inf, "[)")
    wanted = finite_difference(f, x)
    ok, rule = wanted.shape == x.shape, "return one number"
    check(ok, "check_gradient: f", rule, f"shape {np.shape(f(x))}")
    check_finite("check_gradient: f near x", wanted)
    error = np.abs(gradient - wanted)
    error = np.where(np.isfinite(error), error, np.inf)
    worst = np.unravel_index(error.argmax(), x.shape)
    must, got = f"{wanted[worst]:.6g}", f"{gradient[worst]:.6g}"
    if must == got:
        must, got = f"{wanted[worst]:.12g}", f"{gradient[worst]:.12g}"
    ok = bool(error[worst] <= tolerance * max(1.0, np.abs(wanted).max()))
    check(ok, f"{what}{list(map(int, worst)) or ''}", f"be {must}", got)


def check_backward(
    f: Callable[..., Tensor], *arrays: Any, tolerance: float = 1e-6
) -> None:
    """Refuse gradients by backpropagation that differ from finite differences.

    The gradients are those of :mod:`dlcore.optimization.autograd`.

    Args:
        f: what to check; takes tensors and returns a scalar.
        arrays: where to check it, away from kinks.
        tolerance: of :func:`check_gradient`.

    Example:
        >>> from dlcore.optimization.autograd import result_of
        >>> square = lambda x: result_of("square", x.data**2, (x, lambda g: g * x.data))
        >>> check_backward(lambda x: square(x).sum(), [3.0])  # a factor 2 is missing
        Traceback (most recent call last):
        ValueError: check_backward: inputs[0].grad[0] must be 6; got 3.
    """
    check(len(arrays) > 0, "check_backward: arrays", "not be empty", "none")
    points = [np.array(array, dtype=float) for array in arrays]
    inputs = [Tensor(x, requires_grad=True) for x in points]
    y = f(*inputs)
    ok, must = isinstance(y, Tensor), "return a Tensor"
    check(ok, "check_backward: f", must, type(y).__name__)
    y.backward()
    for i, tensor in enumerate(inputs):
        g = np.zeros(tensor.shape) if tensor.grad is None else tensor.grad

        def value(x: ndarray, i: int = i) -> float:
            return f(*map(Tensor, [*points[:i], x, *points[i + 1 :]])).item()

        what = f"check_backward: inputs[{i}].grad"
        check_gradient(value, g, points[i], tolerance, what)


def _number(value: Any) -> Any:
    """Return what it is; a truth value in words, since it counts as 0 or 1 otherwise."""
    return str(value) if isinstance(value, bool) else value


def _dual(value: Operand) -> Dual:
    """Make a dual number; a plain one is a constant."""
    return value if isinstance(value, Dual) else Dual(value)


def _point(who: str, x: Any) -> ndarray:
    """Return a place to differentiate at: finite floats, at least one."""
    x = np.asarray(x, dtype=float)
    check(x.size > 0, f"{who}: x", "have at least one entry", f"{x.shape}")
    check_finite(f"{who}: x", x)
    return x


def _stacked(columns: list[ndarray], shape: tuple[int, ...]) -> ndarray:
    """Join the columns of a derivative, and give it the shapes of outputs and inputs."""
    outputs = columns[0].shape
    return np.stack(columns, axis=-1).reshape(outputs + shape)
