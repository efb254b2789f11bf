r"""The perceptron: a threshold unit that learns from its mistakes.

Points are the rows of ``X``, labels ``y`` are ±1. A unit with weights ``w`` and bias ``b``
answers :math:`\operatorname{sgn}(w \cdot x + b)`; without a bias, ``b = 0``.

Multiplying each point by its label, :math:`z_i = y_i (x_i, 1)`, turns both classes into
one: ``w`` separates the data if and only if :math:`w \cdot z_i > 0` for all ``i``. The
linear programs and the learning algorithm below are written in these *signed points*.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.random import Generator
from scipy.optimize import linprog, nnls

from dlcore.checks import check, check_data
from dlcore.connectionism.neurons import sign

__all__ = [
    "History",
    "averaged",
    "certificate",
    "closest_point",
    "errors",
    "fit",
    "hesse",
    "margin",
    "max_margin",
    "novikoff_bound",
    "pocket",
    "predict",
    "separate",
    "signed_distance",
    "signed_points",
    "version_arc",
]

_BLOCK = 64  # points looked at together when searching the next mistake
_MAX_NUMBERS = 20_000_000  # coordinates of pairs that max_margin holds


def predict(
    w: Float[ndarray, "n"], b: float, X: Float[ndarray, "s n"], at0: float = 0.0
) -> Float[ndarray, "s"]:
    r"""Classify points by :math:`\operatorname{sgn}(Xw + b)`, ``at0`` on the boundary.

    Args:
        w: weights.
        b: bias.
        X: points as rows.
        at0: the answer where the score is zero.

    Example:
        >>> predict(np.array([1.0, 1]), -1.5, np.array([[1.0, 1], [0, 1]])).tolist()
        [1.0, -1.0]
    """
    return sign(X @ w + b, at0)


def hesse(w: Float[ndarray, "n"], b: float) -> tuple[Float[ndarray, "n"], float]:
    r"""Return the boundary :math:`w \cdot x + b = 0` in Hesse normal form.

    Args:
        w: weights.
        b: bias.

    Returns:
        The unit normal :math:`n = w / \|w\|` and the signed distance
        :math:`d = -b / \|w\|` of the boundary from the origin: :math:`n \cdot x = d`.

    Example:
        >>> n, d = hesse(np.array([3.0, 4.0]), -10.0)
        >>> n.tolist(), d
        ([0.6, 0.8], 2.0)
    """
    length = _length("hesse", w)
    return w / length, -b / length


def signed_distance(
    w: Float[ndarray, "n"], b: float, X: Float[ndarray, "s n"], y: Float[ndarray, "s"]
) -> Float[ndarray, "s"]:
    r"""Return :math:`y (w \cdot x + b) / \|w\|`: positive if classified right.

    Args:
        w: weights.
        b: bias.
        X: points as rows.
        y: labels ±1.

    Example:
        >>> X, y = np.array([[6.0, 3], [0, 0]]), np.array([1.0, -1])
        >>> signed_distance(np.array([3.0, 4.0]), -10.0, X, y).tolist()
        [4.0, 2.0]
    """
    _check_data(X, y)
    return y * (X @ w + b) / _length("signed_distance", w)


def margin(
    w: Float[ndarray, "n"], b: float, X: Float[ndarray, "s n"], y: Float[ndarray, "s"]
) -> float:
    """Return the smallest signed distance: positive if all are classified right.

    Args:
        w: weights.
        b: bias.
        X: points as rows.
        y: labels ±1.

    Example:
        >>> X, y = np.array([[6.0, 3], [0, 0]]), np.array([1.0, -1])
        >>> margin(np.array([3.0, 4.0]), -10.0, X, y)
        2.0
    """
    return float(signed_distance(w, b, X, y).min())


@dataclass(frozen=True, eq=False)
class History:
    r"""All weights that the perceptron algorithm went through.

    Attributes:
        w: the weights :math:`w_t` after ``t`` updates; row 0 is the start.
        b: the bias after ``t`` updates.
        mistakes: the point that caused each update.
        seen: how many points had been looked at when each update happened, counting the
            one that caused it.
        looked: how many points were looked at in all.
        converged: whether a whole pass brought no mistake.
        cycle: how many passes it takes to come back to the same weights at the start of
            a pass, if that happened; the algorithm would then go round for ever.

    Example:
        >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1])
        >>> h = fit(X, y, bias=False)  # one update: w = 0, then 1
        >>> h.w.tolist(), h.updates, h.looked, h.converged
        ([[0.0], [1.0]], 1, 4, True)
    """

    w: Float[ndarray, "t1 n"]
    b: Float[ndarray, "t1"]
    mistakes: Int[ndarray, "t"]
    seen: Int[ndarray, "t"]
    looked: int
    converged: bool
    cycle: int | None

    @property
    def updates(self) -> int:
        """Number of updates."""
        return len(self.mistakes)


def fit(
    X: Float[ndarray, "s n"],
    y: Float[ndarray, "s"],
    *,
    bias: bool = True,
    order: Sequence[int] | Int[ndarray, "s"] | None = None,
    rng: Generator | None = None,
    max_updates: int = 100_000,
) -> History:
    r"""Learn by the perceptron algorithm (Rosenblatt 1962), starting from zero weights.

    Go through the points again and again; at a mistake, :math:`y (w \cdot x + b) \le 0`,

    .. math:: w \leftarrow w + y x, \qquad b \leftarrow b + y.

    Stop after a pass without a mistake, when the weights at the start of a pass repeat,
    or after ``max_updates``.

    Equals ``sklearn.linear_model.Perceptron`` with ``shuffle=False`` and ``tol=None``,
    after as many passes.

    Args:
        X: points.
        y: labels ±1.
        bias: learn a bias; otherwise it stays zero.
        order: in which order a pass visits the points; by default as they come.
        rng: shuffle the points before every pass (then repeats prove nothing).
        max_updates: when to give up.

    Example:
        >>> X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
        >>> y = np.array([-1.0, 1, 1, -1])  # XOR
        >>> fit(X, y).converged, fit(X, y).cycle  # the same weights come back
        (False, 1)
    """
    Z = signed_points(X, y, bias)
    check(order is None or rng is None, "fit: order", "not come with rng", "both")
    check(max_updates >= 1, "fit: max_updates", "be at least 1", max_updates)
    visit = np.arange(len(Z)) if order is None else np.asarray(order)
    ok = np.array_equal(np.sort(visit), np.arange(len(Z)))
    check(ok, "fit: order", f"hold each of the {len(Z)} points once", visit)
    ordered, w = Z[visit], np.zeros(Z.shape[1])
    looked, converged, cycle = 0, False, None
    mistakes: list[int] = []
    seen: list[int] = []
    starts: dict[bytes, int] = {}  # weights at the start of a pass, and its number
    while not converged and len(mistakes) < max_updates:
        if rng is not None:
            visit = rng.permutation(len(Z))
            ordered = Z[visit]
        elif (start := w.tobytes()) in starts:
            cycle = len(starts) - starts[start]
            break
        else:
            starts[start] = len(starts)
        i = _next_mistake(ordered, w, 0)
        converged = i == len(Z)
        while i < len(Z):
            w = w + ordered[i]
            mistakes.append(visit[i])
            seen.append(looked + i + 1)
            if len(mistakes) == max_updates:
                break
            i = _next_mistake(ordered, w, i + 1)
        looked += min(i + 1, len(Z))
    W = np.vstack([np.zeros_like(w), Z[mistakes]])
    W.cumsum(axis=0, out=W)  # each update adds its point
    return History(
        w=W[:, :-1] if bias else W,
        b=W[:, -1] if bias else np.zeros(len(W)),
        mistakes=np.array(mistakes, dtype=int),
        seen=np.array(seen, dtype=int),
        looked=looked,
        converged=converged,
        cycle=cycle,
    )


def _next_mistake(Z: Float[ndarray, "s n"], w: Float[ndarray, "n"], start: int) -> int:
    """Return the first point from ``start`` on that is a mistake, or else their number.

    Mistakes get rare: a block of points is tested at once.
    """
    for i in range(start, len(Z), _BLOCK):
        wrong = Z[i : i + _BLOCK] @ w <= 0
        first = int(wrong.argmax())
        if wrong[first]:
            return i + first
    return len(Z)


def pocket(
    history: History, X: Float[ndarray, "s n"], y: Float[ndarray, "s"]
) -> tuple[Float[ndarray, "n"], float]:
    """Return the weights of the history that make the fewest mistakes (Gallant 1990).

    Args:
        history: what :func:`fit` went through.
        X: points as rows.
        y: labels ±1.

    Example:
        >>> X, y = np.array([[1.0], [2], [-1]]), np.array([1.0, -1, -1])
        >>> h = fit(X, y, bias=False, max_updates=2)
        >>> h.w.tolist(), pocket(h, X, y)[0].tolist()
        ([[0.0], [1.0], [-1.0]], [1.0])
    """
    best = int(errors(history, X, y).argmin())
    return history.w[best], float(history.b[best])


def averaged(history: History) -> tuple[Float[ndarray, "n"], float]:
    """Return the mean of the weights over all points looked at, and of the bias.

    The averaged perceptron of Freund and Schapire (1999).

    Args:
        history: what :func:`fit` went through.

    Example:
        >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1])
        >>> h = fit(X, y, bias=False)  # one update: w = 0, then 1
        >>> w, b = averaged(h)  # w was 0 for one point and 1 for three
        >>> w.tolist(), b
        ([0.75], 0.0)
    """
    used = np.diff(history.seen, prepend=0, append=history.looked)
    weight = used / used.sum()
    return weight @ history.w, float(weight @ history.b)


def errors(
    history: History, X: Float[ndarray, "s n"], y: Float[ndarray, "s"]
) -> Float[ndarray, "t1"]:
    """Return the fraction of points classified wrongly after each update.

    Args:
        history: what :func:`fit` went through.
        X: points as rows.
        y: labels ±1.

    Example:
        >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1])
        >>> h = fit(X, y, bias=False)  # one update: w = 0, then 1
        >>> errors(h, X, y).tolist()
        [1.0, 0.0]
    """
    _check_data(X, y)
    wrong = np.zeros(len(history.b))
    # Not all points at once: they may be many.
    for i in range(0, len(X), _BLOCK):
        answers = sign(X[i : i + _BLOCK] @ history.w.T + history.b)
        wrong += (answers != y[i : i + _BLOCK, None]).sum(axis=0)
    return wrong / len(X)


def novikoff_bound(
    X: Float[ndarray, "s n"],
    y: Float[ndarray, "s"],
    w: Float[ndarray, "n"],
    b: float | None = None,
) -> float:
    r"""Return :math:`R^2/\gamma^2`, a bound on the number of updates of :func:`fit`.

    Args:
        X: points; the longest has the length :math:`R`.
        y: labels ±1.
        w: weights that separate the data; :math:`\gamma` is their margin.
        b: their bias, if the algorithm learns one. Both :math:`R` and :math:`\gamma` are
            then measured on the points :math:`(x, 1)`, where the algorithm lives.

    Example:
        >>> X, y = np.array([[2.0, 0], [0, 1]]), np.ones(2)
        >>> round(novikoff_bound(X, y, np.array([1.0, 1.0])), 3)  # 4 / (1/2)
        8.0
        >>> fit(X, y, bias=False).updates
        2
    """
    Z = signed_points(X, y, bias=b is not None)
    v = w if b is None else np.append(w, b)
    gamma = float((Z @ v).min()) / _length("novikoff_bound", v)
    check(gamma > 0, "novikoff_bound: w", "separate the data", f"margin {gamma:.3g}")
    return float((Z**2).sum(axis=1).max()) / gamma**2


def separate(
    X: Float[ndarray, "s n"], y: Float[ndarray, "s"], bias: bool = True
) -> tuple[Float[ndarray, "n"], float] | None:
    r"""Find weights and a bias that separate the data, by linear programming.

    They satisfy :math:`w \cdot z_i \ge 1` for all signed points, up to scale.

    Args:
        X: points as rows.
        y: labels ±1.
        bias: allow a bias; otherwise it is zero.

    Returns:
        ``(w, b)``, or None if the data are not separable; then :func:`certificate` has
        the reason.

    Example:
        >>> X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
        >>> y = np.array([-1.0, 1, 1, -1])  # XOR
        >>> separate(X, y) is None
        True
        >>> predict(*separate(X[:3], y[:3]), X[:3]).tolist()
        [-1.0, 1.0, 1.0]
    """
    Z, shift, scale = _framed(X, y, bias)
    v = _feasible(
        "separate",
        np.zeros(Z.shape[1]),
        A_ub=-Z,
        b_ub=-np.ones(len(Z)),
        bounds=(None, None),
    )
    if v is None or (Z @ v).min() <= 0:
        return None
    w, b = (v[:-1], float(v[-1])) if bias else (v, 0.0)
    return w / scale, b - float(w @ shift) / scale


def certificate(
    X: Float[ndarray, "s n"], y: Float[ndarray, "s"], bias: bool = True
) -> Float[ndarray, "s"] | None:
    r"""Find a proof that no weights separate the data, by linear programming.

    Args:
        X: points as rows.
        y: labels ±1.
        bias: whether a bias is allowed.

    Returns:
        Multipliers :math:`\lambda \ge 0` that sum to 1 with :math:`\sum_i \lambda_i z_i
        = 0`, or None if the data are separable. Weights with all :math:`w \cdot z_i > 0`
        would give :math:`0 = w \cdot \sum_i \lambda_i z_i > 0`.

    Example:
        >>> X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
        >>> y = np.array([-1.0, 1, 1, -1])  # XOR
        >>> certificate(X, y).round(3).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    if separate(X, y, bias) is not None:
        return None
    Z, _, _ = _framed(X, y, bias)
    lam = _feasible(
        "certificate",
        np.zeros(len(Z)),
        A_eq=np.vstack([Z.T, np.ones(len(Z))]),
        b_eq=np.append(np.zeros(Z.shape[1]), 1.0),
    )
    check(lam is not None, "certificate: linprog", "decide", "neither")
    return lam


def max_margin(
    X: Float[ndarray, "s n"], y: Float[ndarray, "s"], bias: bool = True
) -> tuple[Float[ndarray, "n"], float]:
    r"""Return the separating weights, of length 1, with the largest margin.

    With a bias they point along the shortest segment between the convex hulls of the two
    classes, which is the point closest to zero in the hull of all differences
    :math:`x_i - x_j` of a positive and a negative point; without, in the hull of the
    signed points.

    Equals ``sklearn.svm.SVC`` with a linear kernel and a large ``C``, its weights
    scaled to length 1.

    Args:
        X: points as rows.
        y: labels ±1.
        bias: allow a bias; otherwise it is zero.

    Example:
        >>> X, y = np.array([[0.0, 0], [0, 1], [2, 0]]), np.array([-1.0, -1, 1])
        >>> w, b = max_margin(X, y)
        >>> abs(w).round(3).tolist(), round(b, 3)  # halfway between x = 0 and x = 2
        ([1.0, 0.0], -1.0)
    """
    Z = signed_points(X, y, bias=False)
    if bias:
        plus, minus = Z[y > 0], -Z[y < 0]
        got = f"{len(plus)} positive and {len(minus)} negative"
        check(0 < len(plus) < len(y), "max_margin: y", "have both labels", got)
        size, most = len(plus) * len(minus) * X.shape[1], f"at most {_MAX_NUMBERS:,}"
        what, hint = "max_margin: coordinates of all pairs", "Use an SVM solver."
        check(size <= _MAX_NUMBERS, what, f"number {most}", f"{size:,}", hint)
        Z = (plus[:, None] - minus[None]).reshape(-1, X.shape[1])
    Z = Z / (np.abs(Z).max() or 1.0)  # nnls has absolute tolerances
    closest = closest_point(Z)
    length, scale = np.linalg.norm(closest), np.linalg.norm(Z, axis=1).max()
    ok = bool(length > 1e-6 * scale and (Z @ closest).min() > 0)
    must = "be linearly separable, with a margin above 1e-6 of their size"
    check(ok, "max_margin: data", must, f"{length:.1e}", "See certificate().")
    w = closest / length
    b = -((plus @ w).min() + (minus @ w).max()) / 2 if bias else 0.0
    return w, float(b)


def closest_point(Z: Float[ndarray, "s n"]) -> Float[ndarray, "n"]:
    r"""Return the point closest to zero in the convex hull of the points.

    Non-negative least squares looks for multipliers with :math:`\sum_i \lambda_i z_i = 0`
    and :math:`\sum_i \lambda_i = 1`; what it leaves of the first sum, divided by the
    second, is the closest point. Points should have a size of about 1, for the solver has
    absolute tolerances. It is 10 to 30 times as fast as a linear program.

    Args:
        Z: points :math:`z_i` as rows.

    Example:
        >>> closest_point(np.array([[1.0, 0], [0, 1]])).round(3).tolist()
        [0.5, 0.5]
    """
    A = np.vstack([Z.T, np.ones(len(Z))])
    target = np.append(np.zeros(Z.shape[1]), 1.0)
    lam = nnls(A, target, maxiter=100 * len(Z))[0]
    return Z.T @ lam / lam.sum()


def version_arc(
    X: Float[ndarray, "s 2"], y: Float[ndarray, "s"]
) -> tuple[float, float] | None:
    r"""Return the angles of all weights in the plane that separate without a bias.

    Each point allows the half circle around its signed point; what they all allow is an
    arc. The angles satisfy ``low < high <= low + pi``; None if nothing is left, or no
    more than rounding errors. A point at zero allows nothing.

    Args:
        X: points as rows.
        y: labels ±1.

    Example:
        >>> arc = version_arc(np.array([[1.0, 1], [-1, 1]]), np.ones(2))
        >>> np.degrees(arc).round(3).tolist()
        [45.0, 135.0]
    """
    Z = signed_points(X, y, bias=False)
    angle = np.arctan2(Z[:, 1], Z[:, 0])
    # Relative to the first point, between −π and π.
    turn = (angle - angle[0] + np.pi) % (2 * np.pi) - np.pi
    low, high = turn.max() - np.pi / 2, turn.min() + np.pi / 2
    found = Z.any(axis=1).all() and high - low > 1e-12
    return (float(angle[0] + low), float(angle[0] + high)) if found else None


def signed_points(
    X: Float[ndarray, "s n"], y: Float[ndarray, "s"], bias: bool
) -> Float[ndarray, "s m"]:
    r"""Multiply points by their labels: :math:`z_i = y_i (x_i, 1)`, or :math:`y_i x_i`.

    Args:
        X: points as rows.
        y: labels ±1.
        bias: append the constant 1, whose weight is the bias.

    Example:
        >>> signed_points(np.array([[2.0], [3]]), np.array([1.0, -1]), True).tolist()
        [[2.0, 1.0], [-3.0, -1.0]]
    """
    _check_data(X, y)
    Z = np.ones((len(X), X.shape[1] + bias))
    Z[:, : X.shape[1]] = X
    Z *= y[:, None]
    return Z


def _check_data(X: Float[ndarray, "s n"], y: Float[ndarray, "s"]) -> None:
    check_data("perceptron", X, y)
    ok, hint = bool(np.isin(y, [-1, 1]).all()), "For labels 0 and 1, pass 2 * y - 1."
    check(ok, "perceptron: y", "be coded as −1 and +1", np.unique(y), hint)


def _framed(
    X: Float[ndarray, "s n"], y: Float[ndarray, "s"], bias: bool
) -> tuple[Float[ndarray, "s m"], Float[ndarray, "n"], float]:
    """Return the signed points of ``(X - shift) / scale``, of size 1, and both.

    Solvers have absolute tolerances; separability and certificates do not change, for
    a bias undoes the shift.
    """
    _check_data(X, y)
    shift = X.mean(axis=0) if bias else np.zeros(X.shape[1])
    scale = float(np.abs(X - shift).max()) or 1.0
    return signed_points((X - shift) / scale, y, bias), shift, scale


def _feasible(
    who: str, objective: Float[ndarray, "m"], **program: Any
) -> Float[ndarray, "m"] | None:
    """Return a solution of the linear program; None if it has none.

    The simplex method is faster, but loses its way in some programs of a hundred and
    more dimensions; interior points do not.
    """
    for method in ("highs", "highs-ipm"):
        found = linprog(objective, method=method, **program)
        if found.status in (0, 2):
            return found.x if found.success else None
    raise ValueError(f"{who}: linprog must decide; got {found.message}")


def _length(who: str, w: Float[ndarray, "n"]) -> float:
    length = float(np.linalg.norm(w))
    check(length > 0, f"{who}: w", "not be zero", w, "A zero vector has no direction.")
    return length
