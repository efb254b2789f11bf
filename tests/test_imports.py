"""Who may import whom: the contracts of pyproject.toml hold, and can be broken."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted((ROOT / "dlcore").rglob("*.py"))
}


def check_contracts(root):
    """Run import-linter on a copy of the package, or on the package itself."""
    return subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=root,
        env={"PYTHONPATH": str(root), "COLUMNS": "200", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
    )  # fmt: skip


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(
        ROOT / "dlcore",
        tmp_path / "dlcore",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_contracts_hold():
    done = check_contracts(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("feedforward/losses", "from dlcore.optimization import autograd", 1),
        ("connectionism/neurons", "import dlcore.transformers.gpt", 2),
        ("data/texts", "from dlcore.recurrence import vocabulary", 2),
        ("figures/plots", "def f():\n    import torch", 1),
        ("feedforward/pca", "from dlcore._torch import torch", 1),
    ],
)
def test_an_import_against_the_order_breaks_a_contract(copy, module, line, broken):
    file = copy / "dlcore" / f"{module}.py"
    file.write_text(f"{file.read_text()}\n{line}\n")
    done = check_contracts(copy)
    assert done.returncode == 1
    assert f"{broken} broken" in done.stdout
    assert module.replace("/", ".") in done.stdout


@pytest.mark.parametrize("module", MODULES)
def test_module_opens_with_a_sentence_about_its_idea(module):
    doc = ast.get_docstring(ast.parse(MODULES[module].read_text())) or ""
    assert re.match(r"[A-Z].*\.(\n\n|$)", doc), (
        f"{module} must open with a docstring whose first line is a sentence."
    )


def test_chapters_import_nothing_by_themselves():
    chapters = [f"dlcore.{p.name}" for p in (ROOT / "dlcore").iterdir()]
    for chapter in {*chapters} - {"dlcore.data", "dlcore.assignment"}:
        file = MODULES.get(f"{chapter}.__init__")
        if file:
            nodes = ast.walk(ast.parse(file.read_text()))
            found = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
            assert not found, f"{file} must import nothing: name the module itself."


def test_tests_lie_where_their_modules_do():
    """A test of a module of a chapter is in the folder of that name."""
    folders = {p.name for p in (ROOT / "dlcore").iterdir() if p.is_dir()}
    for folder in folders - {"__pycache__"}:
        names = {p.stem for p in (ROOT / "dlcore" / folder).glob("[!_]*")}
        tests = {p.stem for p in (ROOT / "tests" / folder).glob("test_*.py")}
        stray = {t for t in tests if t.removeprefix("test_") not in names}
        assert stray <= {"test_data", "test_assignment_checks"}, stray
