r"""Normalisation: layers that set the scale of what passes through them.

Batch normalisation measures each feature over the examples of a batch, layer
normalisation each example over its features, and weight normalisation measures no
signal at all, only the weights.
"""

import numpy as np
from numpy import ndarray
from numpy.typing import DTypeLike

from dlcore.checks import check, check_between, check_whole
from dlcore.optimization.autograd import Array, Axes, Tensor, result_of
from dlcore.optimization.modules import Linear, Module, Parameter, affine

__all__ = ["BatchNorm", "LayerNorm", "WeightNorm", "standardize"]


def standardize(x: Tensor, axis: Axes, eps: float = 1e-5) -> Tensor:
    r"""Subtract the mean over an axis, and divide by the standard deviation.

    .. math::
        \hat x &= \frac{x - \mu}{\sqrt{v + \varepsilon}}, \\
        \delta_x &= \frac{\delta - \overline{\delta} - \hat x\,
        \overline{\delta \hat x}}{\sqrt{v + \varepsilon}},

    where :math:`\delta` is the gradient by :math:`\hat x`, and a bar is the mean over
    the axis.

    Args:
        x: the numbers.
        axis: over which the mean :math:`\mu` and the variance :math:`v`, the mean of
            :math:`(x - \mu)^2`, are taken.
        eps: :math:`\varepsilon`, keeps the quotient finite where all numbers are equal.

    Example:
        >>> standardize(Tensor([1.0, 3.0, 3.0, 1.0]), axis=-1, eps=0.0).data.tolist()
        [-1.0, 1.0, 1.0, -1.0]
    """
    _check_eps("standardize", eps)
    _check_tensor("standardize", x)
    ok = x.ndim > 0 and x.size > 0
    check(ok, "standardize: x", "hold numbers along axes", f"shape {x.shape}")
    axes = axis if isinstance(axis, tuple) else (axis,)
    ok = axes == (None,) or all(a in range(-x.ndim, x.ndim) for a in axes)
    check(ok, "standardize: axis", f"be one of {x.ndim} axes", axis)

    def mean(a: Array) -> Array:
        return a.mean(axis=axis, keepdims=True)

    with np.errstate(over="ignore", invalid="ignore"):
        centred = x.data - mean(x.data)
        v = mean(centred * centred)
    ok = bool(np.isfinite(v).all())
    check(ok, "standardize: x", "have a finite variance", "NaN or ∞")
    if eps == 0:
        rounding = 4 * np.finfo(v.dtype).eps * np.abs(x.data).max(axis=axis)
        ok = bool((v > 0).all() and (np.ptp(x.data, axis) > rounding).all())
        must = "vary along the axis where eps is 0"
        check(ok, "standardize: x", must, "equal numbers, up to rounding")
    root = np.sqrt(v + eps, dtype=v.dtype)
    y = centred / root
    back = (x, lambda g: (g - mean(g) - y * mean(g * y)) / root)
    return result_of("standardize", y, back)


class BatchNorm(Module):
    r"""Batch normalisation (Ioffe and Szegedy 2015), feature by feature.

    .. math::
        \hat x &= (x - \mu) / \sqrt{v + \varepsilon} \\
        y &= \gamma \hat x + \beta

    In training, :math:`\mu` and :math:`v` are those of the batch, and the running
    statistics move towards its mean and its *unbiased* variance,
    :math:`m \leftarrow (1 - \alpha)\, m + \alpha\, \mu`. In use they take the place of
    the batch.

    Equals ``torch.nn.BatchNorm1d``. Equals ``torch.nn.BatchNorm2d``.

    Args:
        features: number of features, the second axis of the input. Further axes, such
            as the places of a picture, count as examples.
        eps: :math:`\varepsilon`.
        momentum: :math:`\alpha`, the weight of the newest batch, in (0, 1].
        dtype: of parameters and statistics.

    Attributes:
        gamma: scales, 1 at first.
        beta: means, 0 at first.
        running_mean: 0 at first.
        running_var: 1 at first.

    Example:
        >>> layer = BatchNorm(1)
        >>> layer(Tensor([[1.0], [3.0]])).data.round(3).tolist()
        [[-1.0], [1.0]]
        >>> layer.running_mean.round(3).tolist()
        [0.2]
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
        check_between("BatchNorm: momentum", momentum, 0, 1, "(]")
        ok = np.issubdtype(dtype, np.floating)
        check(ok, "BatchNorm: dtype", "be a floating type", dtype)
        self.eps, self.momentum = eps, momentum
        self.gamma = Parameter(np.ones(features, dtype))
        self.beta = Parameter(np.zeros(features, dtype))
        self.running_mean = np.zeros(features, dtype)
        self.running_var = np.ones(features, dtype)

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        _check_tensor("BatchNorm", x)
        features = self.gamma.size
        ok = x.shape[1:2] == (features,)
        must = f"have {features} features along its second axis"
        check(ok, "BatchNorm: x", must, f"shape {x.shape}")
        column = (features,) + (1,) * (x.ndim - 2)
        gamma, beta = (p.reshape(*column) for p in (self.gamma, self.beta))
        if self.training:
            others = (0, *range(2, x.ndim))
            many = x.size // features
            what, must = "BatchNorm: a batch in training", "have at least two examples"
            hint = "One example has no variance; call .eval() to use the model."
            check(many > 1, what, must, many, hint)
            x_hat = standardize(x, others, self.eps)
            self._follow(x.data, others)
            return gamma * x_hat + beta
        centred = x - self.running_mean.reshape(column)
        root = np.sqrt(self.running_var + self.eps).reshape(column)
        return gamma * (centred / root) + beta

    def _follow(self, x: ndarray, axes: tuple[int, ...]) -> None:
        """Move the running statistics towards those of a batch."""
        for running, batch in [
            (self.running_mean, x.mean(axis=axes)),
            (self.running_var, x.var(axis=axes, ddof=1)),
        ]:
            running *= 1 - self.momentum
            running += self.momentum * batch


class LayerNorm(Module):
    r"""Layer normalisation (Ba, Kiros and Hinton 2016), example by example.

    .. math:: y = \gamma\, \frac{x - \mu}{\sqrt{v + \varepsilon}} + \beta

    Mean :math:`\mu` and variance :math:`v` are those of the features of one example,
    the last axis; :math:`\gamma` and :math:`\beta` have an entry for each feature.

    Equals ``torch.nn.LayerNorm``.

    Args:
        features: number of features.
        eps: :math:`\varepsilon`.
        dtype: of the parameters.

    Example:
        >>> x = Tensor([[1.0, 3.0], [10.0, 30.0]])
        >>> LayerNorm(2)(x).data.round(3).tolist()
        [[-1.0, 1.0], [-1.0, 1.0]]
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
        _check_tensor("LayerNorm", x)
        features = self.gamma.size
        ok = x.shape[-1:] == (features,)
        must = f"have {features} features along its last axis"
        check(ok, "LayerNorm: x", must, f"shape {x.shape}")
        return self.gamma * standardize(x, -1, self.eps) + self.beta


class WeightNorm(Module):
    r"""A linear layer whose weights have lengths apart from directions.

    For each row :math:`w_i` of the weights :math:`W` (Salimans and Kingma 2016)

    .. math:: w_i = g_i\, \frac{v_i}{\lVert v_i \rVert}

    Equals ``torch.nn.utils.parametrizations.weight_norm`` of a linear layer.

    Args:
        layer: what it starts as; its weights become the rows :math:`v_i`, and their
            lengths are the first :math:`g_i`.

    Example:
        >>> layer = Linear(2, 1, np.random.default_rng(0))
        >>> layer.W.data[...] = [[3.0, 4.0]]
        >>> WeightNorm(layer).g.data.tolist()
        [[5.0]]
    """

    def __init__(self, layer: Linear) -> None:
        self.V, self.b = layer.W, layer.b
        self.g = Parameter(np.linalg.norm(self.V.data, axis=1, keepdims=True))

    @property
    def W(self) -> Tensor:
        """The weights."""
        largest = np.abs(self.V.data).max(axis=1, keepdims=True)
        ok = bool(((largest > 0) & (largest < np.inf)).all())
        got = "a row without a direction"
        check(ok, "WeightNorm: the rows of V", "be finite and not zero", got)
        V = self.V / largest  # the same directions; squares stay finite
        length = (V * V).sum(axis=1, keepdims=True) ** 0.5
        return self.g * (V / length)

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        _check_tensor("WeightNorm", x)
        return affine("WeightNorm", x, self.W, self.b)


def _check_eps(who: str, eps: float) -> None:
    check_between(f"{who}: eps", eps, 0, np.inf, "[)")


def _check_tensor(who: str, x: Tensor) -> None:
    ok = isinstance(x, Tensor)
    check(ok, f"{who}: x", "be a Tensor", type(x).__name__)
