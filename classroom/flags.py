"""Look at a student's code for names that a task asks to do without.

The look is static and easily deceived. What it finds is a reason to talk, not a mark.
"""

import ast
import warnings
from collections.abc import Iterable, Iterator

MAX_SOURCE = 200_000  # characters of code that is looked at


def uses(sources: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return those of the dotted names that the code imports or uses."""
    trees = list(_parsed(sources))
    known = dict(_imported(trees))
    found = {
        *known.values(),
        *(dotted for tree in trees for dotted in _dotted(tree, known)),
    }
    return [
        name
        for name in names
        if any(f"{one}.".startswith(f"{name}.") for one in found)
    ]


def _parsed(sources: Iterable[str]) -> Iterator[ast.Module]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source in sources:
            try:
                yield ast.parse(source)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue


def _imported(trees: list[ast.Module]) -> Iterator[tuple[str, str]]:
    """Yield the names that imports bind, and what they stand for."""
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                yield alias.asname or whole, whole
                yield f"import {alias.name}", alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(tree: ast.Module, known: dict[str, str]) -> Iterator[str]:
    """Yield the full names of attributes, such as numpy.linalg.solve."""
    attributes = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    inner = {node.value for node in attributes}
    for attribute in attributes:
        if attribute in inner:
            continue
        node: ast.expr = attribute
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in known:
            yield ".".join([known[node.id], *reversed(parts)])
