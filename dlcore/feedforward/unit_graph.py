r"""Feedforward networks in general: units on a graph without cycles.

Units have names. Edges ``{(i, j): w}`` say that unit ``j`` hears unit ``i`` with weight
``w``. Who hears nobody is an input.
"""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from dlcore.checks import check
from dlcore.feedforward.activations import Activation

__all__ = ["depths", "evaluate", "layout"]


def depths(edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    r"""Return the layer of each unit: the length of the longest path that ends there.

    It is 0 for inputs, and :math:`1 + \max_{i \to j} \mathrm{depth}(i)` for other units
    :math:`j`. Units come in an order in which nobody hears a later one.

    Args:
        edges: pairs ``(i, j)``, where unit ``j`` hears unit ``i``.

    Example:
        >>> depths([("x", "h"), ("h", "y"), ("x", "y")])
        {'x': 0, 'h': 1, 'y': 2}
    """
    heard = _heard(edges)
    depth: dict[str, int] = {}
    for j in _order(heard):
        depth[j] = max((1 + depth[i] for i in heard.get(j, [])), default=0)
    return depth


def layout(edges: Iterable[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Return where to draw each unit: its depth, and its place among those as deep.

    Args:
        edges: pairs ``(i, j)``, where unit ``j`` hears unit ``i``.

    Example:
        >>> layout([("a", "y"), ("b", "y")])
        {'a': (0.0, 0.5), 'b': (0.0, -0.5), 'y': (1.0, 0.0)}
    """
    columns: dict[int, list[str]] = {}
    for unit, depth in depths(edges).items():
        columns.setdefault(depth, []).append(unit)
    return {
        unit: (float(depth), (len(units) - 1) / 2 - k)
        for depth, units in columns.items()
        for k, unit in enumerate(units)
    }


def evaluate(
    weights: Mapping[tuple[str, str], float],
    biases: Mapping[str, float],
    phi: Mapping[str, Activation],
    inputs: Mapping[str, Float[ndarray, "s"]],
) -> dict[str, Float[ndarray, "s"]]:
    r"""Compute all units of a graph, :math:`x_j = \varphi_j(\sum_i w_{ij} x_i + b_j)`.

    The sum is over the units :math:`i` that unit :math:`j` hears.

    Args:
        weights: one for each edge.
        biases: one for each unit that is not an input.
        phi: activation of each unit that is not an input.
        inputs: values of each input, one per sample.

    Example:
        >>> from dlcore.feedforward.activations import relu
        >>> x = {"x": np.array([1.0, -3.0])}
        >>> evaluate({("x", "y"): 2.0}, {"y": 1.0}, {"y": relu}, x)["y"].tolist()
        [3.0, 0.0]
    """
    heard = _heard(weights)
    order = _order(heard)
    first = [j for j in order if j not in heard]
    _named("evaluate: inputs", inputs, first)
    _named("evaluate: biases", biases, heard)
    _named("evaluate: phi", phi, heard)
    x = {j: np.asarray(inputs[j], dtype=float) for j in first}
    shapes = {j: x[j].shape for j in first}
    equal = len(set(shapes.values())) == 1
    check(equal, "evaluate: inputs", "be equally long", f"shapes {shapes}")
    for j in (j for j in order if j in heard):
        z = biases[j] + sum(weights[i, j] * x[i] for i in heard[j])
        x[j] = phi[j](np.asarray(z))
    return x


def _named(what: str, given: Iterable[str], units: Iterable[str]) -> None:
    """Refuse a missing name, and a name that is not asked for."""
    names = [*given]
    ok, rule = set(names) == set(units), "have an entry for each of"
    check(ok, what, f"{rule} {[*units]} and no other", names)


def _heard(edges: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Collect whom each unit hears."""
    heard: dict[str, list[str]] = {}
    for i, j in edges:
        heard.setdefault(j, []).append(i)
    check(bool(heard), "graph: edges", "not be empty", "none")
    return heard


def _order(heard: Mapping[str, list[str]]) -> list[str]:
    """Sort the units so that nobody hears a later one."""
    try:
        return list(TopologicalSorter(heard).static_order())
    except CycleError as error:
        circle = " → ".join(map(str, error.args[1]))
        raise ValueError(f"graph: edges must not form a cycle; got {circle}.") from None
