"""What the output of a notebook depends on: its cells, and the modules that they import.

Comments, docstrings, layout and what a module lists as public change nothing that runs, so
they do not count: code is compared as Python parses it.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "dlcore"


def parsed(source: str) -> ast.Module:
    """Parse Python, with IPython's magics, and drop docstrings and ``__all__``."""
    tree = ast.parse(TransformerManager().transform_cell(source))
    tree.body = [node for node in tree.body if not _is_all(node)]
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            del body[0]
    return tree


def _is_text(node: ast.stmt) -> bool:
    value = getattr(node, "value", None)
    return (
        isinstance(node, ast.Expr)
        and isinstance(value, ast.Constant)
        and isinstance(value.value, str)
    )


def _is_all(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
    return False


def imported(tree: ast.AST, root: Path = ROOT) -> Iterator[Path]:
    """Yield the files of the package that some code imports itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == PACKAGE:
                for end in range(1, len(parts) + 1):
                    place = root.joinpath(*parts[:end])
                    for file in (
                        place / "__init__.py",
                        place.with_suffix(".py"),
                    ):
                        if file.is_file():
                            yield file


@cache
def read_module(file: Path, root: Path) -> tuple[str, tuple[Path, ...]]:
    """Return a module's code without what does not count, and what it imports."""
    tree = parsed(file.read_text(encoding="utf-8"))
    return ast.dump(tree), tuple(imported(tree, root))


def modules(sources: Iterable[str], root: Path = ROOT) -> list[Path]:
    """Return the modules of the package that some code imports, directly or not."""
    todo = [file for s in sources for file in imported(parsed(s), root)]
    found: set[Path] = set()
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += read_module(file, root)[1]
    return sorted(found)


def code(notebook: NotebookNode) -> list[str]:
    """Return the sources of the code cells."""
    return [c.source for c in notebook.cells if c.cell_type == "code"]


def fingerprint(sources: list[str], root: Path = ROOT) -> str:
    """Hash some cells, the modules that they need with their tables, and the style."""
    parts = [ast.dump(parsed(source)) for source in sources]
    for file in modules(sources, root):
        parts += [file.relative_to(root).as_posix(), read_module(file, root)[0]]
        if (table := file.with_suffix(".csv")).exists():
            parts.append(table.read_text(encoding="utf-8"))
    styles = sorted((root / PACKAGE).rglob("*.mplstyle"))
    parts += [style.read_text(encoding="utf-8") for style in styles]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
