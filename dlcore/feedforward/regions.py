r"""The pieces into which ReLU units cut space.

The hidden layers of a network are :math:`x \leftarrow \max(0, Wx + b)`, its last is linear,
:math:`y = Wx + b`, as ``layered(pairs, relu)`` builds them. A hidden unit is *active* where
its weighted sum is positive. Where no unit changes between active and silent, the network
is affine.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, islice
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from numpy.random import Generator

from dlcore.checks import check, check_data, check_finite, check_whole
from dlcore.feedforward.activations import identity, relu
from dlcore.feedforward.network import Dense, Network, layered

__all__ = [
    "MAX_CELLS",
    "ROUND",
    "Cell",
    "cells",
    "check_relu",
    "count_regions",
    "folding_bound",
    "folding_network",
    "patterns",
    "zaslavsky",
]

_Plane: TypeAlias = tuple[Fraction, ...]  # weights and bias, first weight 1

_THIN = 1e-10  # a cell thinner than this part of the box is no cell
#: A sum up to this part of its terms is taken for rounding.
ROUND = 1e-13
#: The most cells that :func:`cells` lists.
MAX_CELLS = 50_000
_MAX_VERTICES = 100_000


def zaslavsky(m: int, n: int) -> int:
    r"""Count the regions of ``m`` hyperplanes in general position in ``n`` dimensions.

    Zaslavsky (1975) counted for all arrangements; this case is Steiner's and Schläfli's.

    .. math:: R(m, n) = \sum_{i=0}^{n} \binom{m}{i}

    Args:
        m: number of hyperplanes.
        n: dimension.

    Example:
        >>> zaslavsky(3, 2)  # three lines in the plane
        7
    """
    check_whole("zaslavsky: m", m, 0)
    check_whole("zaslavsky: n", n, 0)
    return sum(comb(m, i) for i in range(n + 1))


def count_regions(W: Float[ndarray, "m n"], b: Float[ndarray, "m"]) -> int:
    r"""Count the regions of the hyperplanes :math:`w_i^\top x + b_i = 0`, exactly.

    Hyperplane ``k`` adds as many regions as the earlier ones cut *it* into:

    .. math:: r(H_1, \dots, H_m) = 1 + \sum_{k=1}^m r(H_1 \cap H_k, \dots, H_{k-1} \cap H_k)

    The numbers are taken as they stand, as fractions, so nothing is rounded. Rows with
    zero weights cut nothing, and equal hyperplanes count once.

    Args:
        W: normals :math:`w_i` as rows.
        b: offsets :math:`b_i`.

    Example:
        >>> W = np.array([[1.0, 0], [1, 0], [0, 1]])  # two parallels, one across
        >>> count_regions(W, np.array([0.0, 1, 0]))
        6
    """
    layer = Dense(np.asarray(W, float), np.asarray(b, float))
    numbers = np.column_stack([layer.W, layer.b])
    rows = [[Fraction(a) for a in row] for row in numbers]
    return _count(_planes(rows))


def patterns(network: Network, X: Float[ndarray, "s n"]) -> Bool[ndarray, "s hidden"]:
    r"""Return for each point which hidden units are active, layer after layer.

    .. math:: \kappa^{(l)}_i(x) = \mathbb{1}[w_i^\top x^{(l-1)} + b_i > 0]

    Args:
        network: with ReLU units.
        X: points as rows.

    Example:
        >>> hidden = np.array([[1.0], [-1.0]]), np.zeros(2)
        >>> net = layered([hidden, (np.ones((1, 2)), np.zeros(1))], relu)
        >>> patterns(net, np.array([[-2.0], [3.0]])).tolist()
        [[False, True], [True, False]]
    """
    check_relu("patterns", network)
    X = np.asarray(X, dtype=float)
    check_data("patterns", X)
    *hidden, _ = network.forward(X)[0]
    none = np.empty((len(X), 0), dtype=bool)
    return np.hstack([none, *(Z > 0 for _, _, Z in hidden)])


class Cell(NamedTuple):
    """A convex polygon on which a ReLU network is affine: no unit changes there.

    Attributes:
        corners: of the polygon, in order.
        pattern: which hidden units are active.
        slope: matrix of the affine map.
        offset: its constant.

    Example:
        >>> hidden, out = (np.eye(2), np.zeros(2)), (np.ones((1, 2)), np.zeros(1))
        >>> net = layered([hidden, out], relu)
        >>> [c.slope.tolist() for c in cells(net, (-1, 1, -1, 1)) if c.pattern.all()]
        [[[1.0, 1.0]]]
    """

    corners: Float[ndarray, "k 2"]
    pattern: Bool[ndarray, "hidden"]
    slope: Float[ndarray, "out 2"]
    offset: Float[ndarray, "out"]


def cells(network: Network, box: tuple[float, float, float, float]) -> list[Cell]:
    r"""Cut a box of the plane into the cells of a network with two inputs.

    On a cell the next layer's sums are affine, so each of its units cuts the cell along
    a straight line, or not at all. Layer after layer, every cell is cut by every unit.

    Args:
        network: with ReLU units and two inputs.
        box: left, right, bottom and top.

    Returns:
        The cells, each with its corners in order, its pattern, and the affine map
        ``slope @ x + offset`` that the network computes there.

    Example:
        >>> hidden, out = (np.eye(2), np.zeros(2)), (np.ones((1, 2)), np.zeros(1))
        >>> net = layered([hidden, out], relu)
        >>> sorted(c.pattern.tolist() for c in cells(net, (-1, 1, -1, 1)))  # quadrants
        [[False, False], [False, True], [True, False], [True, True]]
    """
    check_relu("cells", network)
    *hidden, last = network.layers
    inputs = network.layers[0].inputs
    check(inputs == 2, "cells: network", "take two inputs", inputs)
    check(np.shape(box) == (4,), "cells: box", "be four numbers", box)
    check_finite("cells: box", np.array(box))
    left, right, bottom, top = box
    ok = left < right and bottom < top
    check(ok, "cells: box", "be left < right, bottom < top", box)
    corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
    thin = _THIN * max(right - left, top - bottom)
    found = [Cell(np.array(corners, float), np.zeros(0, bool), np.eye(2), np.zeros(2))]
    for layer in hidden:
        pieces = (p for cell in found for p in _cut(cell, layer.W, layer.b, thin))
        found = list(islice(pieces, MAX_CELLS + 1))
        ok, must = len(found) <= MAX_CELLS, f"have at most {MAX_CELLS:,} cells"
        check(ok, "cells: the network", must, "more", "Take a smaller box.")
    W, b = last.W, last.b
    return [c._replace(slope=W @ c.slope, offset=W @ c.offset + b) for c in found]


def folding_bound(m: int, n: int, L: int) -> int:
    r"""Count the linear pieces that a folding network is sure to have.

    With ``L`` hidden layers of ``m`` units (Montúfar et al. 2014):

    .. math:: \lfloor m/n \rfloor^{n(L-1)} \sum_{i=0}^{n} \binom{m}{i}

    Args:
        m: units in each hidden layer, at least ``n``.
        n: inputs.
        L: hidden layers.

    Example:
        >>> folding_bound(2, 1, 1), folding_bound(2, 1, 3)  # each fold doubles them
        (3, 12)
    """
    check_whole("folding_bound: n", n, 1)
    check_whole("folding_bound: m", m, n)
    check_whole("folding_bound: L", L, 1)
    return (m // n) ** (n * (L - 1)) * zaslavsky(m, n)


def folding_network(m: int, n: int, L: int, rng: Generator) -> Network:
    r"""Build a network with at least ``folding_bound(m, n, L)`` linear pieces.

    Each of the first ``L - 1`` layers folds the unit cube ``p = m // n`` times along
    every coordinate, by the zigzag

    .. math:: g(t) = p \max(0, t) + 2p \sum_{k=1}^{p-1} (-1)^k \max(0, t - k/p)

    and the last one cuts the folded cube by ``m`` hyperplanes in general position, such
    that at every point at least one unit is active if ``m > n``.

    Args:
        m: units in each hidden layer, at least ``n``; ``m - p * n`` of them stay idle.
        n: inputs.
        L: hidden layers.
        rng: draws the hyperplanes of the last layer and the output's weights.

    Example:
        >>> from dlcore.feedforward.piecewise import breakpoints
        >>> net = folding_network(2, 1, 3, np.random.default_rng(0))
        >>> len(breakpoints(net, np.zeros(1), np.ones(1))[0]) - 1  # pieces
        12
    """
    folding_bound(m, n, L)  # refuses what it refuses
    must = f"have at most {_MAX_VERTICES:,} subsets of n hyperplanes"
    ok = comb(m, n) <= _MAX_VERTICES
    check(ok, "folding_network: m and n", must, f"{m} and {n}")
    p = m // n
    idle = m - p * n
    rise = np.kron(np.eye(n), np.ones((p, 1)))  # p units per coordinate
    start = -np.tile(np.arange(p) / p, n)  # the k-th bends at k / p
    bend = 2.0 * p * (-1.0) ** np.arange(p)
    bend[0] = p
    fold = np.hstack([np.kron(np.eye(n), bend), np.zeros((n, idle))])
    pairs, read = [], np.eye(n)
    for _ in range(L - 1):
        W = np.vstack([rise @ read, np.zeros((idle, read.shape[1]))])
        pairs.append((W, np.append(start, np.zeros(idle))))
        read = fold
    W, b = _last_cuts(m, n, rng)
    pairs.append((W @ read, b))
    pairs.append((rng.uniform(0.5, 1.5, size=(1, m)), np.zeros(1)))
    return layered(pairs, relu)


def check_relu(who: str, network: Network) -> None:
    """Refuse networks that are not made of ReLU units and a linear last layer.

    Args:
        who: the caller, named in the message.
        network: the network.

    Example:
        >>> check_relu("me", Network([Dense(np.eye(2), np.zeros(2), relu)]))
        Traceback (most recent call last):
            ...
        ValueError: me: network must have dense layers of ReLU ...
    """
    kinds = [(type(layer), layer.phi) for layer in network.layers]
    ok = kinds == [*[(Dense, relu)] * (len(kinds) - 1), (Dense, identity)]
    got = [(kind.__name__, getattr(phi, "name", phi)) for kind, phi in kinds]
    must = "have dense layers of ReLU units, and a linear last one"
    check(ok, f"{who}: network", must, got, "Build it with layered(pairs, relu).")


def _planes(rows: list[list[Fraction]]) -> list[_Plane]:
    """Scale the first weight to 1; drop rows without weights, and repetitions."""
    found: dict[_Plane, None] = {}
    for *w, b in rows:
        first = next((a for a in w if a), None)
        if first is not None:
            found[tuple(a / first for a in [*w, b])] = None
    return list(found)


def _count(planes: list[_Plane]) -> int:
    return 1 + sum(_count(_restrict(planes[:k], H)) for k, H in enumerate(planes))


def _restrict(planes: list[_Plane], H: _Plane) -> list[_Plane]:
    """Intersect hyperplanes with ``H``, by solving it for its first coordinate."""
    j = H.index(1)
    return _planes(
        [
            [a - P[j] * h for i, (a, h) in enumerate(zip(P, H, strict=True)) if i != j]
            for P in planes
        ]
    )


def _cut(
    cell: Cell, W: Float[ndarray, "m n"], b: Float[ndarray, "m"], thin: float
) -> Iterator[Cell]:
    """Cut a cell by the units of a layer, and apply the layer to its pieces."""
    Z, d = W @ cell.slope, W @ cell.offset + b
    length = np.linalg.norm(Z, axis=1)
    reach = np.abs(cell.slope) @ np.abs(cell.corners).max(axis=0)
    scale = np.abs(W) @ (reach + np.abs(cell.offset)) + np.abs(b)
    size = np.ptp(cell.corners, axis=0).max()
    moves = length * size > ROUND * scale  # else constant on the cell
    unit = np.where(moves, length, 1.0)[:, None]
    lines = np.column_stack([np.where(moves[:, None], Z, 0.0), d]) / unit
    pieces = [cell.corners]
    for line in lines[_crossed(cell.corners, lines, thin)]:
        pieces = [half for piece in pieces for half in _halves(piece, line, thin)]
    for corners in pieces:
        distance = corners @ lines[:, :2].T + lines[:, 2]
        active = np.where(moves, distance.max(axis=0) > thin, d > ROUND * scale)
        yield Cell(
            corners, np.append(cell.pattern, active), Z * active[:, None], d * active
        )


def _crossed(
    corners: Float[ndarray, "k 2"], lines: Float[ndarray, "m 3"], thin: float
) -> Bool[ndarray, "m"]:
    """Mark the lines that have corners on both sides."""
    distance = corners @ lines[:, :2].T + lines[:, 2]
    return (distance.max(axis=0) > thin) & (distance.min(axis=0) < -thin)


def _halves(
    corners: Float[ndarray, "k 2"], line: Float[ndarray, "3"], thin: float
) -> list[Float[ndarray, "_ 2"]]:
    """Cut a convex polygon along a line, if the line crosses it."""
    if not _crossed(corners, line[None], thin)[0]:
        return [corners]
    distance = corners @ line[:2] + line[2]
    return [_side(corners, side * distance, thin) for side in (1, -1)]


def _side(
    corners: Float[ndarray, "k 2"], distance: Float[ndarray, "k"], thin: float
) -> Float[ndarray, "_ 2"]:
    """Keep the part of a polygon in which the distance is not negative."""
    distance = np.where(np.abs(distance) <= thin, 0.0, distance)
    kept = []
    for i in range(len(corners)):
        u, v = distance[i - 1], distance[i]
        if u * v < 0:  # the edge that ends in this corner crosses the line
            x, y = corners[i - 1], corners[i]
            kept.append(x + u / (u - v) * (y - x))
        if v >= 0:
            kept.append(corners[i])
    return np.array(kept)


def _last_cuts(
    m: int, n: int, rng: Generator
) -> tuple[Float[ndarray, "m n"], Float[ndarray, "m"]]:
    """Draw hyperplanes whose vertices all lie in the unit cube.

    Every region of hyperplanes in general position has a vertex, so all meet the cube.
    If ``m > n``, turn ``n + 1`` of them such that a positive combination of their sums
    is a positive constant: then one of these units is always active.
    """
    W, b = rng.normal(size=(m, n)), rng.normal(size=m)
    subsets = [list(chosen) for chosen in combinations(range(m), n)]
    vertices = [np.linalg.solve(W[i], -b[i]) for i in subsets]
    scale = 0.4 / np.abs(vertices).max()  # x = 1/2 + scale * vertex
    if m > n:
        some = slice(0, n + 1)
        multipliers = np.linalg.svd(W[some].T)[2][-1]
        turn = np.sign(multipliers) * np.sign(multipliers @ b[some])
        W[some], b[some] = turn[:, None] * W[some], turn * b[some]
    return W, scale * b - W @ np.full(n, 0.5)
