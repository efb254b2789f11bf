r"""Normalisation: layers that set the scale of what passes through them.

Batch normalisation measures each feature over the examples of a batch, layer
normalisation each example over its features, and weight normalisation measures no
signal at all, only the weights.
"""

import numpy as np
from numpy import ndarray
from numpy.random import Generator
from numpy.typing import DTypeLike

from dlcore._check import check, check_whole
from dlcore.autograd import Array, Axes, Tensor, _record
from dlcore.modules import Linear, Module, Parameter


def standardize(x: Tensor, axis: Axes, eps: float = 1e-5) -> Tensor:
    r"""Subtract the mean over an axis, and divide by the standard deviation.

    .. math::
        \hat x &= \frac{x - \mu}{\sqrt{v + \varepsilon}}, \\
        \delta_x &= \frac{\delta - \overline{\delta} - \hat x\,
        \overline{\delta \hat x}}{\sqrt{v + \varepsilon}},

    where :math:`\delta` is the gradient by :math:`\hat x`, and a bar is the mean over the
    axis.

    Args:
        x: the numbers.
        axis: over which the mean :math:`\mu` and the variance :math:`v`, the mean of
            :math:`(x - \mu)^2`, are taken.
        eps: :math:`\varepsilon`, keeps the quotient finite where all numbers are equal.
    """
    _check_eps("standardize", eps)
    ok = x.ndim > 0 and x.size > 0
    check(ok, "standardize: x", "hold numbers along axes", f"shape {x.shape}")

    def mean(a: Array) -> Array:
        return a.mean(axis=axis, keepdims=True)

    centred = x.data - mean(x.data)
    v = mean(centred * centred)
    check(
        eps > 0 or bool((v > 0).all()),
        "standardize: x",
        "vary along the axis where eps is 0",
        "a variance of 0",
    )
    root = np.sqrt(v + eps, dtype=v.dtype)
    y = centred / root
    return _record(
        "standardize",
        y,
        (x, lambda g: (g - mean(g) - y * mean(g * y)) / root),
    )


class BatchNorm(Module):
    r"""Batch normalisation (Ioffe and Szegedy 2015), feature by feature.

    .. math::
        \hat x &= (x - \mu) / \sqrt{v + \varepsilon} \\
        y &= \gamma \hat x + \beta

    In training, :math:`\mu` and :math:`v` are those of the batch, and the running
    statistics move towards its mean and its *unbiased* variance,
    :math:`m \leftarrow (1 - \alpha)\, m + \alpha\, \mu`. In use they take the place of
    the batch.

    Args:
        features: number of features, the second axis of the input. Further axes, such as
            the places of a picture, count as examples.
        eps: :math:`\varepsilon`.
        momentum: :math:`\alpha`, the weight of the newest batch, in (0, 1].
        dtype: of parameters and statistics.

    Attributes:
        gamma: scales, 1 at first.
        beta: means, 0 at first.
        running_mean: 0 at first.
        running_var: 1 at first.
    """

    def __init__(
        self,
        features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        dtype: DTypeLike = np.float64,
    ) -> None:
        check_whole("BatchNorm: features", features, 1)
        _check_eps("BatchNorm", eps)
        check(
            0 < momentum <= 1, "BatchNorm: momentum", "lie in (0, 1]", momentum
        )
        self.eps, self.momentum = eps, momentum
        self.gamma = Parameter(np.ones(features, dtype))
        self.beta = Parameter(np.zeros(features, dtype))
        self.running_mean = np.zeros(features, dtype)
        self.running_var = np.ones(features, dtype)

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        features = self.gamma.size
        check(
            x.ndim >= 2 and x.shape[1] == features,
            "BatchNorm: x",
            f"have {features} features along its second axis",
            f"shape {x.shape}",
        )
        column = (features,) + (1,) * (x.ndim - 2)
        gamma, beta = (p.reshape(*column) for p in (self.gamma, self.beta))
        if self.training:
            others = (0, *range(2, x.ndim))
            self._follow(x.data, others)
            return gamma * standardize(x, others, self.eps) + beta
        centred = x - self.running_mean.reshape(column)
        root = np.sqrt(self.running_var + self.eps).reshape(column)
        return gamma * (centred / root) + beta

    def _follow(self, x: ndarray, axes: tuple[int, ...]) -> None:
        """Move the running statistics towards those of a batch."""
        many = x.size // x.shape[1]
        check(
            many > 1,
            "BatchNorm: a batch in training",
            "have at least two examples",
            many,
            "One example has no variance; call .train(False) to use the model.",
        )
        for running, batch in [
            (self.running_mean, x.mean(axis=axes)),
            (self.running_var, x.var(axis=axes, ddof=1)),
        ]:
            running *= 1 - self.momentum
            running += self.momentum * batch


class LayerNorm(Module):
    r"""Layer normalisation (Ba, Kiros and Hinton 2016), example by example.

    .. math:: y = \gamma\, \frac{x - \mu}{\sqrt{v + \varepsilon}} + \beta

    Mean :math:`\mu` and variance :math:`v` are those of the features of one example, the
    last axis; :math:`\gamma` and :math:`\beta` have an entry for each feature.

    Args:
        features: number of features.
        eps: :math:`\varepsilon`.
        dtype: of the parameters.
    """

    def __init__(
        self, features: int, eps: float = 1e-5, dtype: DTypeLike = np.float64
    ) -> None:
        check_whole("LayerNorm: features", features, 2)
        _check_eps("LayerNorm", eps)
        self.eps = eps
        self.gamma = Parameter(np.ones(features, dtype))
        self.beta = Parameter(np.zeros(features, dtype))

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        features = self.gamma.size
        check(
            x.ndim >= 1 and x.shape[-1] == features,
            "LayerNorm: x",
            f"have {features} features along its last axis",
            f"shape {x.shape}",
        )
        return self.gamma * standardize(x, -1, self.eps) + self.beta


class WeightNorm(Module):
    r"""The layer :math:`Wx + b` with lengths apart from directions (Salimans, Kingma 2016).

    .. math:: w_i = g_i\, \frac{v_i}{\lVert v_i \rVert}

    for each row :math:`w_i` of :math:`W`.

    Args:
        inputs: number of inputs.
        outputs: number of outputs.
        rng: source of the rows :math:`v_i`; :math:`g_i` starts as their lengths, so that
            the layer starts as a :class:`~dlcore.modules.Linear` does.
        dtype: of the parameters.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        rng: Generator,
        dtype: DTypeLike = np.float64,
    ) -> None:
        start = Linear(inputs, outputs, rng, dtype)
        self.V, self.b = Parameter(start.W.data), start.b
        self.g = Parameter(np.linalg.norm(self.V.data, axis=1, keepdims=True))

    @property
    def W(self) -> Tensor:
        """The weights."""
        length = (self.V * self.V).sum(axis=1, keepdims=True) ** 0.5
        check(
            bool((length.data > 0).all()),
            "WeightNorm: the rows of V",
            "not be zero",
            "a row without a direction",
        )
        return self.g * (self.V / length)

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        inputs = self.V.shape[1]
        check(
            x.ndim >= 2 and x.shape[-1] == inputs,
            "WeightNorm: x",
            f"have {inputs} columns",
            f"shape {x.shape}",
            "Rows are samples.",
        )
        return x @ self.W.T + self.b


def _check_eps(who: str, eps: float) -> None:
    ok = 0 <= eps < np.inf
    check(ok, f"{who}: eps", "be finite and not negative", eps)
