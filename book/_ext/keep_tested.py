"""A plugin of pytest beside nbval: a notebook that has been tested has its page.

Kernels draw all frames of the movable figures, nbval compares what is beside them, and
what it executed is kept for the build, which need not execute it once more:

    PYTHONPATH=book/_ext pytest -p keep_tested --nbval book/connectionism
"""

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from book_cache import keep, open_cache
from book_figures import strip_comments
from nbformat import NotebookNode
from nbval.plugin import IPyNbCell

FRAMES = '<div class="explore">'  # how a movable figure starts on a page
passed: dict[Path, dict[int, list[NotebookNode]]] = defaultdict(dict)


def pytest_configure(config: pytest.Config) -> None:
    """Let kernels draw all frames, and nbval compare what is beside them."""
    os.environ["DLCORE_EXPLORE"] = "static"
    if not hasattr(config, "workerinput"):  # once, before there are workers
        open_cache(config.rootpath / "_build")
    compare = IPyNbCell.compare_outputs

    def compare_without_frames(
        self: IPyNbCell, test: list[Any], ref: list[Any], *rest: Any
    ) -> Any:
        return compare(self, [_without_frames(out) for out in test], ref, *rest)

    IPyNbCell.compare_outputs = compare_without_frames


def _without_frames(output: NotebookNode) -> NotebookNode:
    data = output.get("data", {})
    if not data.get("text/html", "").startswith(FRAMES):
        return output
    rest = {kind: value for kind, value in data.items() if kind != "text/html"}
    return NotebookNode({**output, "data": rest})


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep a notebook as soon as all of its cells have passed."""
    report = yield
    if isinstance(item, IPyNbCell) and report.when == "call" and report.passed:
        outputs = passed[item.path]
        outputs[item.cell_num] = item.test_outputs
        if len(outputs) == len(_code(item.parent.nb)):
            notebook = strip_comments(nbformat.read(item.path, as_version=4))
            for number, cell in enumerate(_code(notebook)):
                cell.outputs = nbformat.from_dict(outputs[number])
            cache = open_cache(item.config.rootpath / "_build")
            keep(cache, item.path, notebook)
    return report
