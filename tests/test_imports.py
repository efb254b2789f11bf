"""The import table of CONTRIBUTING.md, enforced."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {
    path.stem: path
    for path in sorted((ROOT / "dlcore").glob("*.py"))
    if path.stem != "__init__"
}
HEADING = "## Who may import whom"


class Row(NamedTuple):
    """What a module may import: modules of dlcore, and packages."""

    modules: set[str]
    packages: set[str]


def read_table(text: str) -> dict[str, Row]:
    """Read the rows under the heading, up to the next heading."""
    section = text.partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| *`(\w+)` *\|([^|]*)\|([^|]*)\|", section, re.M)
    return {
        module: Row(*(set(re.findall(r"\w+", column)) for column in columns))
        for module, *columns in rows
    }


def read_imports(source: str) -> Row:
    """Find what a module imports, wherever in it the import stands."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(
                filter(None, ["dlcore" * bool(node.level), node.module])
            )
            names |= {f"{base}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names]
    return Row(
        {part[1] for part in parts if part[0] == "dlcore" and len(part) > 1},
        {part[0] for part in parts} - {"dlcore"} - sys.stdlib_module_names,
    )


@pytest.fixture(scope="module")
def table() -> dict[str, Row]:
    file = ROOT / "CONTRIBUTING.md"
    found = (
        read_table(file.read_text(encoding="utf-8")) if file.exists() else {}
    )
    assert found, f"CONTRIBUTING.md needs a table under the heading {HEADING!r}"
    return found


def test_table_has_a_row_for_each_module_and_no_other(table):
    missing, extra = (
        MODULES.keys() - table.keys(),
        table.keys() - MODULES.keys(),
    )
    assert not missing, f"CONTRIBUTING.md, {HEADING!r}: add a row for {missing}"
    assert not extra, f"CONTRIBUTING.md, {HEADING!r}: delete the row of {extra}"


def test_imports_point_upwards_in_the_table(table):
    above: set[str] = set()
    for module, row in table.items():
        below = row.modules - above
        assert not below, (
            f"CONTRIBUTING.md, {HEADING!r}: {module} may import only rows above its own. "
            f"Move its row below {below}, or let it do without."
        )
        above.add(module)


@pytest.mark.parametrize("module", MODULES)
def test_module_imports_only_what_its_row_allows(module, table):
    got = read_imports(MODULES[module].read_text())
    may = table.get(module, Row(set(), set()))
    more = (got.modules - may.modules) | (got.packages - may.packages)
    assert not more, (
        f"dlcore/{module}.py imports {more}. Do without, or if the architecture should "
        f"change, add it to the row of {module} in CONTRIBUTING.md, {HEADING!r}."
    )


@pytest.mark.parametrize("module", MODULES)
def test_module_opens_with_a_sentence_about_its_idea(module):
    doc = ast.get_docstring(ast.parse(MODULES[module].read_text())) or ""
    assert re.match(r"[A-Z].*\.(\n\n|$)", doc), (
        f"dlcore/{module}.py must open with a docstring whose first line is a sentence."
    )


def test_package_imports_nothing():
    source = (ROOT / "dlcore" / "__init__.py").read_text()
    assert read_imports(source) == Row(set(), set()), (
        "dlcore/__init__.py must import nothing, or NumPy chapters load torch. Delete its "
        "imports and import from the module itself."
    )


def test_numpy_modules_do_not_load_torch(table):
    numpy: list[str] = []
    for module, row in table.items():
        if "torch" not in row.packages and row.modules <= set(numpy):
            numpy.append(module)
    assert {"neurons", "perceptron", "data", "explore", "plots"} <= set(numpy)
    script = "import sys\n" + "".join(
        f"import dlcore.{m}\nif 'torch' in sys.modules: sys.exit('dlcore.{m}')\n"
        for m in numpy
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert done.returncode == 0, (
        "A module whose row in CONTRIBUTING.md does not name torch must not load it, but "
        f"this one does: {done.stderr}Find the import with: python -X importtime"
    )


# The two readers above, by hand.


def test_table_is_read_by_hand():
    text = (
        f"# Title\n\n| `no` | | |\n\n{HEADING}\n\nSome prose.\n\n"
        "| module | `dlcore` modules | packages |\n|---|---|---|\n| `_check` | | |\n"
        "| `vit` | `_check`, `attention` | torch, einops |\n\n## Next\n\n| `no` | | |\n"
    )
    assert read_table(text) == {
        "_check": Row(set(), set()),
        "vit": Row({"_check", "attention"}, {"torch", "einops"}),
    }


@pytest.mark.parametrize(
    ("source", "modules", "packages"),
    [
        ("import os.path, numpy.linalg as la", set(), {"numpy"}),
        ("from dlcore.data import xor", {"data"}, set()),
        ("import dlcore.data", {"data"}, set()),
        ("from dlcore import data, plots", {"data", "plots"}, set()),
        ("from . import data", {"data"}, set()),
        ("from .data import xor", {"data"}, set()),
        ("def f():\n    from torch.nn import Linear", set(), {"torch"}),
        ("if TYPE_CHECKING:\n    import torch", set(), {"torch"}),
    ],
)
def test_imports_are_found_by_hand(source, modules, packages):
    assert read_imports(source) == Row(modules, packages)
