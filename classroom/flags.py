"""Look at a student's code for names that a task asks to do without.

The look is static and easily deceived. What it finds is a reason to talk, not a mark. It
follows the function of a task to the functions and names that it uses, so an import for
another purpose is no reason. Parsers can be made to take all memory: call this where
little can be used.
"""

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence

from classroom.runner import plain_python
from dlcore.checks import check

MAX_SOURCE = 200_000  # characters of code that is looked at
MAX_LINE = 10_000  # and of one line


def uses(
    sources: Sequence[str], names: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Return for each function those of its dotted names that its code uses.

    Args:
        sources: the cells.
        names: what each function should do without.
    """
    _check_size(sources)
    trees = list(_parsed(sources))
    known = dict(_imported(trees))
    defined = _defined(trees)
    return {
        function: _found(set(_used(function, defined, known)), unwanted)
        for function, unwanted in names.items()
    }


def _found(used: set[str], unwanted: Sequence[str]) -> list[str]:
    return [
        name
        for name in unwanted
        if any(f"{one}.".startswith(f"{name}.") for one in used)
    ]


def _check_size(sources: Sequence[str]) -> None:
    """Refuse what is too much to look at."""
    size = sum(map(len, sources))
    check(size <= MAX_SOURCE, "It", f"have ≤ {MAX_SOURCE:,} characters", size)
    lines = [line for source in sources for line in source.splitlines()]
    longest = max(map(len, lines), default=0)
    check(longest <= MAX_LINE, "A line", f"have ≤ {MAX_LINE:,}", longest)


def _parsed(sources: Sequence[str]) -> Iterator[ast.Module]:
    """Yield the trees of the cells that are Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source in sources:
            try:
                yield ast.parse(plain_python(source))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue


def _imported(trees: list[ast.Module]) -> Iterator[tuple[str, str]]:
    """Yield the names that imports bind, and what they stand for."""
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                yield alias.asname or whole, whole
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _defined(trees: list[ast.Module]) -> dict[str, list[ast.AST]]:
    """Return what the code defines, by name: functions, classes and values."""
    found: dict[str, list[ast.AST]] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


def _used(
    function: str, defined: dict[str, list[ast.AST]], known: dict[str, str]
) -> Iterator[str]:
    """Yield the full names, such as numpy.linalg.solve, that a function leads to."""
    names, seen = [function], {function}
    while names:
        name = names.pop()
        if name in known:
            yield known[name]
        for node in defined.get(name, []):
            yield from _dotted(node, known)
            inner = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            names += inner - seen
            seen |= inner


def _dotted(tree: ast.AST, known: dict[str, str]) -> Iterator[str]:
    """Yield the full names of attributes, such as numpy.linalg.solve."""
    for attribute in ast.walk(tree):
        node, parts = attribute, []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in known:
            yield ".".join([known[node.id], *reversed(parts)])
