r"""Cross-validation: every example is predicted by a model that did not see it."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_finite, check_whole

__all__ = ["cross_validate", "kfold", "leave_one_out"]


def kfold(
    s: int, k: int, rng: Generator
) -> list[tuple[Int[ndarray, "_"], Int[ndarray, "_"]]]:
    """Split the rows 0 … s − 1 at random into ``k`` folds of nearly equal size.

    Args:
        s: number of examples.
        k: number of folds; ``s`` of them leave one out at a time.
        rng: source of randomness.

    Returns:
        For each fold, the rows to fit and the rows held out.

    Example:
        >>> folds = kfold(10, 3, np.random.default_rng(0))
        >>> [len(held_out) for _, held_out in folds]
        [4, 3, 3]
    """
    check_whole("kfold: s", s, 2)
    check_whole("kfold: k", k, 2)
    check(k <= s, "kfold: k", f"be at most {s}, the number of examples", k)
    folds = np.array_split(rng.permutation(s), k)
    return [
        (np.concatenate(folds[:i] + folds[i + 1 :]), held_out)
        for i, held_out in enumerate(folds)
    ]


def cross_validate(
    fit: Callable[[ndarray, ndarray], Callable[[ndarray], ndarray]],
    loss: Callable[[ndarray, ndarray], ndarray],
    X: Float[ndarray, "s n"],
    y: ndarray,
    k: int,
    rng: Generator,
) -> Float[ndarray, "s"]:
    """Return the loss of each example under a model that was fitted without it.

    Equals ``sklearn.model_selection.cross_val_score`` with one fold per example,
    except that scores there are minus the loss.

    Args:
        fit: takes inputs and targets, and returns a predictor of inputs.
        loss: of predictions for targets, one per example.
        X: inputs, rows are examples.
        y: targets, one for each row.
        k: number of folds.
        rng: source of the folds.

    Example:
        >>> y, rng = np.array([1.0, 2.0, 6.0]), np.random.default_rng(0)
        >>> mean = lambda X, y: lambda new: np.full(len(new), y.mean())
        >>> error = lambda prediction, y: abs(prediction - y)
        >>> cross_validate(mean, error, y[:, None], y, 3, rng).tolist()
        [3.0, 1.5, 4.5]
    """
    check(len(X) == len(y), "cross_validate: y", f"have {len(X)} targets", len(y))
    losses = np.zeros(len(X))
    for rows, held_out in kfold(len(X), k, rng):
        predictor = fit(X[rows], y[rows])
        found = np.asarray(loss(predictor(X[held_out]), y[held_out]))
        ok = found.shape == held_out.shape
        must = f"return one number for each of {len(held_out)} examples"
        check(ok, "cross_validate: loss", must, f"shape {found.shape}")
        losses[held_out] = found
    return losses


def leave_one_out(
    S: Float[ndarray, "s s"], y: Float[ndarray, "s"]
) -> Float[ndarray, "s"]:
    r"""Return the errors of predicting each target from all others, by one fit.

    For fits whose predictions are :math:`\hat y = Sy`, and which stay when an example
    is added that they predict without error, as least squares with or without a
    quadratic penalty (for others, such as the nearest neighbour, it is not true):

    .. math:: y_i - \hat y_{(-i)} = \frac{y_i - \hat y_i}{1 - S_{ii}}

    Args:
        S: the matrix of the fit to all examples.
        y: the targets.

    Example:
        >>> S = np.full((3, 3), 1 / 3)  # predicts the mean, here 3
        >>> leave_one_out(S, np.array([1.0, 2.0, 6.0])).round(3).tolist()
        [-3.0, -1.5, 4.5]
    """
    ok = y.ndim == 1 and S.shape == (y.size, y.size) and y.size > 0
    must = "be a square matrix, with a row for each target"
    check(ok, "leave_one_out: S", must, f"shapes {S.shape} and {y.shape}")
    check_finite("leave_one_out: S and y", S, y)
    own = np.diag(S)
    ok, must = bool((1 - own > 1e-9).all()), "have a diagonal clearly below 1"
    hint = "A fit that follows one point exactly says nothing about it."
    check(ok, "leave_one_out: S", must, f"1 − {1 - own.max():.1g}", hint)
    return (y - S @ y) / (1 - own)
