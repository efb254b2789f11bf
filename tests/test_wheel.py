"""The wheel of dlcore, as a reader installs it beside a single notebook."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tasks

ROOT = Path(__file__).resolve().parents[1]
# PyTorch is as if it were not installed, and dlcore comes from the unpacked wheel.
BEFORE = """
import sys
class NoTorch:
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch)
sys.path.insert(0, {folder!r})
import dlcore
assert dlcore.__path__[0].startswith({folder!r}), dlcore.__path__
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built."""
    return tasks.build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory) -> Path:
    """A folder with what the wheel holds."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder)
    return folder


def without_torch(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script with the unpacked wheel and without PyTorch."""
    return subprocess.run(
        [sys.executable, "-c", BEFORE.format(folder=str(folder)) + script],
        capture_output=True,
        text=True,
        cwd=folder,
    )


def test_the_name_is_the_one_that_notebooks_give(wheel):
    assert wheel.name == tasks.wheel_name()
    assert tasks.install_line() == f'pip install "{wheel.name}[torch]"'
    name, version, *tags = wheel.stem.split("-")
    assert (name, tags) == ("executable_deep_learning", ["py3", "none", "any"])
    assert version.count(".") == 2


def test_it_holds_the_package_whole_and_nothing_else(unpacked):
    held = {p.relative_to(unpacked) for p in unpacked.rglob("*") if p.is_file()}
    sources = {
        path.relative_to(ROOT)
        for path in (ROOT / "dlcore").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    style = Path("dlcore/figures/book.mplstyle")
    assert {Path("dlcore/py.typed"), style} <= sources
    records = {
        Path("dlcore/data") / path.relative_to(ROOT)
        for path in ROOT.glob("runs/[!._]*/*")
    }
    assert Path("dlcore/data/runs/digits/card.json") in records
    about = {path for path in held if path.parts[0].endswith(".dist-info")}
    assert held - about == sources | records


def test_records_are_opened_from_the_wheel(unpacked):
    script = """
from dlcore.data.records import record
run = record("digits")
print(run.folder.relative_to(dlcore.__path__[0]), len(run.weights("cnn")))
"""
    done = without_torch(unpacked, script)
    assert done.stdout.split() == [str(Path("data/runs/digits")), "8"], done.stderr


def test_torch_is_an_extra(unpacked):
    (about,) = unpacked.glob("*.dist-info/METADATA")
    lines = about.read_text(encoding="utf-8").splitlines()
    torch = [line for line in lines if line.startswith("Requires-Dist: torch")]
    assert torch == ['Requires-Dist: torch>=2.5; extra == "torch"']
    assert "Name: executable-deep-learning" in lines
    assert "Provides-Extra: torch" in lines


def test_numpy_modules_compute_without_torch(unpacked):
    done = without_torch(
        unpacked,
        """
from dlcore import data
from dlcore.connectionism import perceptron
from dlcore.optimization.autograd import Tensor
from dlcore.figures.explore import explore
from dlcore.figures.plots import use_book_style
import numpy as np
use_book_style()  # reads the style file
X, y, _ = data.separable(20, 3, 0.2, np.random.default_rng(0))
found = perceptron.fit(X, y)
print((y * (X @ found.w[-1] + found.b[-1]) > 0).all())
""",
    )
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(
    "module",
    ["optimization.data_parallel", "recurrence.forecast", "transformers.attention"],
)
def test_the_other_modules_say_what_to_install(unpacked, module):
    done = without_torch(unpacked, f"import dlcore.{module}")
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: This part of dlcore computes with PyTorch, which is not "
        "installed here. Install it with: pip install torch"
    )


def test_only_modules_that_compute_with_torch_need_it(unpacked):
    done = without_torch(
        unpacked,
        """
import importlib, pkgutil
for found in pkgutil.walk_packages(dlcore.__path__, "dlcore."):
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        assert error.name == "torch", error
        print(found.name)
""",
    )
    assert done.returncode == 0, done.stderr
    uses = "from dlcore._torch import"
    direct = {
        path.stem
        for path in (ROOT / "dlcore").glob("*.py")
        if f"\n{uses}" in path.read_text(encoding="utf-8")
    }
    needing = set(done.stdout.split())
    assert direct <= needing
    assert not needing & {"explore", "plots", "data", "plain", "assignment"}
