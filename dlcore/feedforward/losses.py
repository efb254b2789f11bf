r"""Losses: how bad an output is for a target, one number per example.

A loss :math:`\ell` belongs to one example; the cost is their mean, ``loss(o, y).mean()``.
Losses for classes take scores (logits), not probabilities: so nothing overflows, and the
gradient with respect to the scores is :math:`p - y`. The Poisson loss for counts takes the
logarithm :math:`o` of the rate: so the rate is positive, and the gradient is
:math:`e^o - y`. Scores above 709 are refused there, as :math:`e^o` would overflow.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from dlcore.checks import check, check_shape
from dlcore.connectionism.neurons import sigmoid
from dlcore.feedforward.activations import log_softmax, softmax

__all__ = [
    "Loss",
    "absolute",
    "binary_cross_entropy",
    "cross_entropy",
    "huber",
    "one_hot",
    "poisson",
    "squared",
]


@dataclass(frozen=True, eq=False)
class Loss:
    r"""A loss :math:`\ell(o, y)` of outputs and targets, and its gradient by ``o``.

    Attributes:
        name: what readers call it.
        value: losses of the rows of ``o``.
        slope: gradient of each row's loss by that row.
        targets: checks the targets and gives them the shape of the outputs.

    Example:
        >>> o, y = np.array([[3.0], [0.0]]), np.array([[1.0], [1.0]])
        >>> squared(o, y).tolist(), squared.gradient(o, y).tolist()
        ([2.0, 0.5], [[2.0], [-1.0]])
        >>> cross_entropy(np.log([[1.0, 3]]), np.array([1])).round(3).tolist()  # -log ¾
        [0.288]
    """

    name: str
    value: Callable[[ndarray, ndarray], ndarray]
    slope: Callable[[ndarray, ndarray], ndarray]
    targets: Callable[[ndarray, ndarray], ndarray]

    def __call__(
        self, o: Float[ndarray, "s *outputs"], y: ndarray
    ) -> Float[ndarray, "s"]:
        """Return the loss of each row of outputs ``o`` for its target."""
        losses = self.value(o, self._targets(o, y))
        return losses.reshape(len(losses), -1).sum(axis=1)

    def gradient(
        self, o: Float[ndarray, "s *outputs"], y: ndarray
    ) -> Float[ndarray, "s *outputs"]:
        r"""Return :math:`\partial \ell / \partial o` of each row."""
        return self.slope(o, self._targets(o, y))

    def _targets(self, o: ndarray, y: ndarray) -> ndarray:
        """Refuse whole numbers, whose squares may not fit their type, and no rows."""
        kind, shape = np.asarray(o).dtype, np.shape(o)
        ok, got = kind.kind == "f" and len(shape) > 0, f"{kind} of shape {shape}"
        must, hint = "be floats, a row per example", "Pass o[None] for one example."
        check(ok and np.size(o) > 0, f"{self.name} loss: o", must, got, hint)
        return self.targets(o, y)


def one_hot(y: Int[ndarray, "s"], classes: int) -> Float[ndarray, "s classes"]:
    """Return one-hot vectors: a row per example, 1 at its class and 0 elsewhere.

    Args:
        y: classes, numbered from 0.
        classes: how many there are.

    Example:
        >>> one_hot(np.array([2, 0]), 3).tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    ok, got = y.dtype.kind in "iu" and y.ndim == 1, f"{y.dtype} of shape {y.shape}"
    check(ok, "one_hot: y", "be whole numbers, one per example", got)
    ok = bool(((y >= 0) & (y < classes)).all())
    check(ok, "one_hot: y", f"lie in 0 … {classes - 1}", np.unique(y))
    return np.eye(classes)[y]


def _same_shape(o: ndarray, y: ndarray) -> ndarray:
    check_shape("loss: y", y, *o.shape, hint="A column (s, 1) is no vector (s,).")
    return y


def _bits(o: ndarray, y: ndarray) -> ndarray:
    y = _same_shape(o, y)
    ok = bool(((y >= 0) & (y <= 1)).all())
    hint = "(y + 1) / 2 turns labels ±1 into 0 and 1."
    check(ok, "binary_cross_entropy: y", "lie in [0, 1]", np.unique(y), hint)
    return y


def _distributions(o: ndarray, y: ndarray) -> ndarray:
    check_shape("cross_entropy: o", o, None, None)
    if y.ndim == 1:
        check_shape("cross_entropy: y", y, len(o))
        y = one_hot(y, o.shape[1])
    y = _same_shape(o, y)
    ok = bool((y >= 0).all()) and np.allclose(y.sum(axis=1), 1)
    check(ok, "cross_entropy: y", "have rows of probabilities with sum 1", y)
    return y


def _counts(o: ndarray, y: ndarray) -> ndarray:
    y = _same_shape(o, y)
    whole = (y >= 0) & np.isfinite(y) & (y == np.floor(y))
    check(bool(whole.all()), "poisson: y", "be counts 0, 1, 2, …", y[~whole])
    check(not (o > 709).any(), "poisson: o", "be logs of rates, at most 709", o.max())
    return y


#: The squared loss :math:`\frac12 (o - y)^2`, summed over outputs. Equals
#: ``torch.nn.functional.mse_loss`` up to the factor 1/2.
squared = Loss(
    "squared", lambda o, y: (o - y) ** 2 / 2, lambda o, y: o - y, _same_shape
)
#: The absolute loss :math:`|o - y|`, summed over outputs. Equals
#: ``torch.nn.functional.l1_loss``.
absolute = Loss(
    "absolute", lambda o, y: np.abs(o - y), lambda o, y: np.sign(o - y), _same_shape
)
#: Huber's loss, :math:`\frac12 r^2` for residuals :math:`|r| \le 1`, and beyond
#: :math:`|r| - \frac12`. Equals ``torch.nn.functional.huber_loss``.
huber = Loss(
    "Huber",
    lambda o, y: np.where(np.abs(o - y) <= 1, (o - y) ** 2 / 2, np.abs(o - y) - 0.5),
    lambda o, y: np.clip(o - y, -1.0, 1.0),
    _same_shape,
)
#: The loss :math:`-y \log p - (1 - y) \log(1 - p)` of logits :math:`o`, with
#: :math:`p = \sigma(o)`. Equals ``torch.nn.functional.binary_cross_entropy_with_logits``.
binary_cross_entropy = Loss(
    "binary cross-entropy",
    lambda o, y: np.maximum(o, 0) - o * y + np.log1p(np.exp(-np.abs(o))),
    lambda o, y: sigmoid(o) - y,
    _bits,
)
#: The loss :math:`-\log p_y` of logits :math:`o`, with
#: :math:`p = \operatorname{softmax}(o)`. Targets are classes or rows of
#: probabilities. Equals ``torch.nn.functional.cross_entropy``.
cross_entropy = Loss(
    "cross-entropy",
    lambda o, y: -y * log_softmax(o),
    lambda o, y: softmax(o) - y,
    _distributions,
)
#: The loss :math:`e^o - o y` of counts :math:`y` with the rate :math:`e^o`, without
#: :math:`\log y!`, which no output changes. Equals
#: ``torch.nn.functional.poisson_nll_loss``.
poisson = Loss(
    "Poisson", lambda o, y: np.exp(o) - o * y, lambda o, y: np.exp(o) - y, _counts
)
