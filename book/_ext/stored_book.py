"""A plugin of pytest beside nbval: what a notebook stores is what it shows today.

nbval compares texts. This plugin has kernels draw the first picture of figures to move,
compares all pictures with those that are stored, and leaves out notebooks that have not
changed since they passed on this machine, unless ``--all-notebooks`` is given:

    PYTHONPATH=book/_ext pytest -p stored_book --nbval book/connectionism
"""

import base64
import hashlib
import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import nbformat
import nbval.kernel
import numpy as np
import pytest
from book_code import ROOT, code, fingerprint
from nbval.plugin import IPyNbCell
from PIL import Image

BLOCK = 16  # pixels a side; a move by less than a pixel hardly changes its mean
LEVELS = 12  # by which the mean of a block may differ, of 255
SHARE = 0.01  # of the blocks that may differ by more
EDGE = 4  # pixels by which sizes may differ, where labels have other widths
# The tag of a cell whose picture shows what is rounded.
VARIES = "picture-varies"
STARTS = 3  # of a kernel, before its notebook fails

passed: Counter[Path] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that leaves nothing out."""
    parser.addoption(
        "--all-notebooks",
        action="store_true",
        help="execute also notebooks that have not changed since they passed here",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draw stills, compare pictures, and leave out what has not changed."""
    os.environ["DLCORE_EXPLORE"] = "still"
    compare = IPyNbCell.compare_outputs

    def compare_all(self: IPyNbCell, test: Any, ref: Any, *rest: Any) -> bool:
        if not compare(self, test, ref, *rest):
            return False
        if VARIES not in self.cell.metadata.get("tags", []):
            self.comparison_traceback = changed_pictures(ref, test)
        return not self.comparison_traceback

    IPyNbCell.compare_outputs = compare_all
    nbval.kernel.start_new_kernel = start_again(nbval.kernel.start_new_kernel)
    is_worker = hasattr(config, "workerinput")
    if not is_worker and not config.getoption("--all-notebooks"):
        leave_out_unchanged(config)


def start_again(start: Callable[..., Any]) -> Callable[..., Any]:
    """Give a kernel that dies at its start, for want of a port, another chance."""

    def start_patiently(*args: Any, **options: Any) -> Any:
        for _ in range(STARTS - 1):
            try:
                return start(*args, **options)
            except RuntimeError as error:
                print(f"A kernel is started again: {error}")
        return start(*args, **options)

    return start_patiently


def leave_out_unchanged(config: pytest.Config) -> None:
    """Take notebooks that passed as they are from what is to be tested, and say so."""
    changed = [arg for arg in config.args if not has_passed(Path(arg))]
    if count := len(config.args) - len(changed):
        what = "1 notebook has" if count == 1 else f"{count} notebooks have"
        said = (
            f"{what} not changed since passing here. For all: make test ALL=1"
        )
        if not changed:
            pytest.exit(said, returncode=0)
        print(said)
    config.args = changed


def has_passed(path: Path) -> bool:
    """Tell whether a notebook passed here with these outputs, modules and versions."""
    return path.suffix == ".ipynb" and stamp(path).exists()


def stamp(path: Path, root: Path = ROOT) -> Path:
    """Return the file that says that a notebook has passed as it is now."""
    cells = code(nbformat.read(path, as_version=4))
    versions = [file.read_bytes() for file in sorted(root.glob("*.txt"))]
    parts = [path.read_bytes(), *versions, sys.version.encode()]
    parts.append(fingerprint(cells, root).encode())
    name = hashlib.sha256(b"\0".join(parts)).hexdigest()
    return root / "_build" / "passed" / name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Stamp a notebook when the last of its cells has passed."""
    report = yield
    if isinstance(item, IPyNbCell) and report.when == "call" and report.passed:
        passed[item.path] += 1
        if passed[item.path] == len(code(item.parent.nb)):
            mark = stamp(item.path)
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
    return report


def pictures(outputs: list[Any]) -> list[Image.Image]:
    """Return the pictures that a cell shows."""
    shown = [output.get("data", {}).get("image/png") for output in outputs]
    return [
        Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
        for png in shown
        if png
    ]


def changed_pictures(stored: list[Any], fresh: list[Any]) -> list[str]:
    """Return a sentence for each picture that is not the stored one."""
    found = []
    for old, new in zip(pictures(stored), pictures(fresh), strict=True):
        share = difference(old, new)
        if share > SHARE:
            found.append(
                f"The picture is not the one that is stored: {share:.0%} of it differ."
            )
    return found


def difference(old: Image.Image, new: Image.Image) -> float:
    """Return the share of blocks that differ, 1 for pictures of other sizes."""
    if np.abs(np.subtract(old.size, new.size)).max() > EDGE:
        return 1.0
    width, height = np.minimum(old.size, new.size)
    size = (max(width // BLOCK, 1), max(height // BLOCK, 1))
    box = (0, 0, width, height)
    means = [
        np.asarray(picture.resize(size, Image.Resampling.BOX, box), dtype=int)
        for picture in (old, new)
    ]
    return float((np.abs(means[0] - means[1]).max(axis=2) > LEVELS).mean())
