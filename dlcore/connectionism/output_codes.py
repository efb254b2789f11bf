r"""Several units, several classes: a code says which units fire for which class.

A *code* is a matrix of ±1 with one row per class, its *codeword*, and one column per
unit. Unit ``j`` is to fire, with a score :math:`z_j > 0`, for the classes with +1 in
column ``j``; a unit with the score zero does not fire. Classes are numbered from 0.
"""

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from dlcore.checks import check, check_columns, check_finite, check_matrix, check_whole
from dlcore.connectionism.neurons import MAX_BITS, all_inputs, sign
from dlcore.connectionism.perceptron import separate

__all__ = [
    "NO_CLASS",
    "binary_code",
    "decode",
    "encode",
    "one_hot",
    "read",
    "separable_bits",
]

#: What :func:`read` answers where no codeword fits.
NO_CLASS = -1


def binary_code(m: int) -> Float[ndarray, "classes m"]:
    """Return all :math:`2^m` codewords of ``m`` units, counting upwards from all −1.

    Example:
        >>> binary_code(2).tolist()
        [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    """
    check_whole("binary_code: m", m, 1)
    check(m <= MAX_BITS, "binary_code: m", f"be at most {MAX_BITS}", m)
    return 2 * all_inputs(m) - 1


def one_hot(m: int) -> Float[ndarray, "m m"]:
    """Return the code with one unit per class: +1 on the diagonal, −1 elsewhere.

    Example:
        >>> one_hot(3).tolist()
        [[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    check_whole("one_hot: m", m, 1)
    return 2 * np.eye(m) - 1


def encode(
    classes: Int[ndarray, "s"], code: Float[ndarray, "classes m"]
) -> Float[ndarray, "s m"]:
    """Return the label ±1 of every unit: the codeword of each point's class.

    Equals ``sklearn.preprocessing.LabelBinarizer`` with ``neg_label=-1`` for the code
    :func:`one_hot`.

    Args:
        classes: the class of each point.
        code: codewords as rows.

    Example:
        >>> encode(np.array([2, 0]), one_hot(3)).tolist()
        [[-1.0, -1.0, 1.0], [1.0, -1.0, -1.0]]
    """
    _check_code("encode", code)
    what, got = "encode: classes", f"{classes.dtype} of shape {classes.shape}"
    ok = classes.ndim == 1 and classes.dtype.kind in "iu"
    check(ok, what, "be a row of whole numbers", got)
    wrong = np.unique(classes[(classes < 0) | (classes >= len(code))])
    check(len(wrong) == 0, what, f"lie between 0 and {len(code) - 1}", wrong)
    return code[classes]


def separable_bits(
    X: Float[ndarray, "s n"],
    classes: Int[ndarray, "s"],
    code: Float[ndarray, "classes m"],
) -> Bool[ndarray, "m"]:
    """Tell for each unit of a code whether some weights and bias give it its labels.

    Args:
        X: points as rows.
        classes: the class of each point.
        code: codewords as rows.

    Example:
        >>> code = np.column_stack([binary_code(2), [-1.0, 1, 1, -1]])  # and XOR
        >>> separable_bits(all_inputs(2), np.arange(4), code).tolist()
        [True, True, False]
    """
    return np.array([separate(X, y) is not None for y in encode(classes, code).T])


def read(
    Z: Float[ndarray, "s m"], code: Float[ndarray, "classes m"]
) -> Int[ndarray, "s"]:
    """Return the class whose codeword is exactly the set of units that fire, if any.

    Args:
        Z: the scores of the units, one row per point.
        code: the code.

    Returns:
        The classes, and ``NO_CLASS`` where the units that fire make no codeword.

    Example:
        >>> read(np.array([[0.3, -2.0], [1.0, 2.0]]), one_hot(2)).tolist()
        [0, -1]
    """
    _check_scores("read", Z, code)
    fits = (sign(Z, at0=-1.0)[:, None] == code).all(axis=2)
    return np.where(fits.any(axis=1), fits.argmax(axis=1), NO_CLASS)


def decode(
    Z: Float[ndarray, "s m"], code: Float[ndarray, "classes m"]
) -> Int[ndarray, "s"]:
    r"""Return the class whose codeword agrees best with the scores.

    .. math:: \operatorname{argmax}_c \; k_c \cdot z

    Where :func:`read` has an answer and no score is zero, it is this one. For a one-hot
    code it is the unit with the largest score. The first of equals wins.

    Args:
        Z: the scores :math:`z` of the units, one row per point.
        code: the code; :math:`k_c` is the codeword of class ``c``.

    Example:
        >>> decode(np.array([[0.3, -2.0], [1.0, 2.0]]), one_hot(2)).tolist()
        [0, 1]
    """
    _check_scores("decode", Z, code)
    return (Z @ code.T).argmax(axis=1)


def _check_code(who: str, code: Float[ndarray, "classes m"]) -> None:
    check_matrix(f"{who}: code", code, "have one row per class and one column per unit")
    ok, hint = bool(np.isin(code, [-1, 1]).all()), "For bits, pass 2 * code - 1."
    check(ok, f"{who}: code", "hold −1 and +1", np.unique(code), hint)
    words, classes = len(np.unique(code, axis=0)), len(code)
    must, got = "give each class its own word", f"{words} words for {classes} classes"
    check(words == classes, f"{who}: code", must, got)


def _check_scores(
    who: str, Z: Float[ndarray, "s m"], code: Float[ndarray, "classes m"]
) -> None:
    _check_code(who, code)
    check_columns(f"{who}: Z", Z, code.shape[1], hint="One score per unit.")
    check_finite(f"{who}: Z", Z)
