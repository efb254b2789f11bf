r"""Gradients from a sample: how often, how noisy, and what the noise leaves behind.

The gradient of the cost is the mean of the examples' gradients :math:`g_1, \dots, g_s`. The
mean of :math:`B` of them estimates it. A variance of vectors is the expected squared
distance from their mean, one number.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import check, check_finite, check_matrix, check_sizes, check_whole

__all__ = ["batch_variance", "noise_floor", "second_moments", "updates_per_epoch"]


def updates_per_epoch(s: int, batch: int, drop_last: bool = False) -> int:
    r"""Count the steps of one pass over the data, :math:`\lceil s/B \rceil`.

    Equals ``torch.utils.data.DataLoader`` in the number of its batches.

    Args:
        s: number of examples.
        batch: examples per step :math:`B`.
        drop_last: leave out a last batch that is shorter: :math:`\lfloor s/B \rfloor`.

    Example:
        >>> updates_per_epoch(10, 3), updates_per_epoch(10, 3, drop_last=True)
        (4, 3)
    """
    check_sizes("updates_per_epoch", s=s, batch=batch)
    return s // batch if drop_last else -(-s // batch)


def batch_variance(
    G: Float[ndarray, "s p"], batch: int, replace: bool = False
) -> float:
    r"""Return the variance of the mean gradient of a random mini-batch.

    For a batch of :math:`B` out of :math:`s` examples it is

    .. math::
        \frac{\sigma^2}{B} \cdot \frac{s - B}{s - 1}, \qquad
        \sigma^2 = \frac1s \sum_i \lVert g_i - \bar g \rVert^2

    Args:
        G: the gradients of the examples, as rows.
        batch: how many are drawn, :math:`B`.
        replace: let an example be drawn again; the second factor is then 1.

    Example:
        >>> G = np.array([[1.0], [3.0]])
        >>> batch_variance(G, 1), batch_variance(G, 2)
        (1.0, 0.0)
        >>> batch_variance(G, 2, replace=True)
        0.5
    """
    check_matrix("batch_variance: G", G, "have gradients as rows")
    check_finite("batch_variance: G", G)
    check_whole("batch_variance: batch", batch, 1)
    s = len(G)
    must = f"be at most {s}, the number of examples, without replacement"
    check(replace or batch <= s, "batch_variance: batch", must, batch)
    sigma2 = float(((G - G.mean(axis=0)) ** 2).sum() / s)
    left = 1.0 if replace else (s - batch) / max(s - 1, 1)
    return sigma2 / batch * left


def second_moments(
    curvatures: Float[ndarray, "n"],
    start: Float[ndarray, "n"],
    variances: Float[ndarray, "n"],
    lrs: Sequence[float] | Float[ndarray, "T"],
) -> Float[ndarray, "T1 n"]:
    r"""Return the mean squares of noisy gradient descent on a quadratic, exactly.

    On :math:`J(\theta) = \tfrac12 \sum_i c_i \theta_i^2`, with noise of mean 0 and
    variance :math:`v_i` added to each entry of each gradient,

    .. math::
        \mathbb{E}[\theta_{t+1,i}^2] =
        (1 - \eta_t c_i)^2\, \mathbb{E}[\theta_{t,i}^2] + \eta_t^2 v_i .

    Args:
        curvatures: :math:`c_i`.
        start: :math:`\theta_0`.
        variances: :math:`v_i`.
        lrs: the step sizes :math:`\eta_0, \eta_1, \dots`, one for each step.

    Returns:
        Row ``t`` holds the means of :math:`\theta_{t,i}^2`.

    Example:
        >>> c, start, v = np.array([1.0]), np.array([2.0]), np.array([1.0])
        >>> second_moments(c, start, v, [0.5, 0.5]).ravel().tolist()
        [4.0, 1.25, 0.5625]
    """
    _check_bowl("second_moments", curvatures, start, variances)
    rates = np.asarray(lrs, dtype=float)
    ok = rates.ndim == 1 and bool((np.isfinite(rates) & (rates >= 0)).all())
    must = "be a list of step sizes, finite and not negative"
    check(ok, "second_moments: lrs", must, lrs)
    c, v = np.asarray(curvatures), np.asarray(variances)
    check(bool((v >= 0).all()), "second_moments: variances", "not be negative", v)
    moments = [np.asarray(start, dtype=float) ** 2]
    for eta in rates:
        moments.append((1 - eta * c) ** 2 * moments[-1] + eta**2 * v)
    return np.array(moments)


def noise_floor(
    curvatures: Float[ndarray, "n"], variances: Float[ndarray, "n"], lr: float
) -> float:
    r"""Return the expected excess cost at which a constant step size levels off.

    .. math:: \sum_i \frac{\eta\, v_i}{2 (2 - \eta c_i)}

    Args:
        curvatures: :math:`c_i > 0` of the bowl.
        variances: :math:`v_i` of the noise on each entry of the gradient.
        lr: step size :math:`\eta`, below :math:`2/c_i` for all :math:`i`.

    Example:
        >>> c, v = np.array([1.0]), np.array([1.0])
        >>> [round(noise_floor(c, v, lr), 3) for lr in (1.0, 0.5, 0.1)]
        [0.5, 0.167, 0.026]
    """
    _check_bowl("noise_floor", curvatures, variances)
    c, v = np.asarray(curvatures), np.asarray(variances)
    check_finite("noise_floor: lr", lr)
    check(bool((c > 0).all()), "noise_floor: curvatures", "be positive", c)
    check(bool((v >= 0).all()), "noise_floor: variances", "not be negative", v)
    ok, hint = lr > 0 and bool((lr * c < 2).all()), "From there on the steps diverge."
    must = (
        f"lie between 0 and {2 / c.max():g}, twice the inverse of the largest curvature"
    )
    check(ok, "noise_floor: lr", must, lr, hint)
    return float((lr * v / (2 * (2 - lr * c))).sum())


def _check_bowl(who: str, *arrays: Float[ndarray, "n"]) -> None:
    """Refuse what is not one number for each coordinate."""
    shapes = [np.shape(array) for array in arrays]
    ok = len(shapes[0]) == 1 and shapes[0] != (0,) and len({*shapes}) == 1
    check(ok, f"{who}: arrays", "be equally long lists", f"shapes {shapes}")
    check_finite(f"{who}: arrays", *arrays)
