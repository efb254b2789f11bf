"""Execute notebooks in place and store all that their pages show, one per core at a time.

    python book/_ext/run_notebooks.py book/connectionism/perceptron.ipynb

Stored are texts and pictures in the notebook, the frames of figures to move in sheets
beside it, and in its metadata what it costs to run: seconds of a processor and megabytes.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from threading import Thread

import nbformat
import psutil
from book_ledger import CHECK, EVIDENCE
from book_sheets import lighten, take_out
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from nbformat import NotebookNode

TIMEOUT = 300  # seconds per cell


class Meter(Thread):
    """Watch what a kernel takes: seconds of a processor, and bytes at the most."""

    def __init__(self, client: NotebookClient) -> None:
        super().__init__(daemon=True)
        self.client, self.seconds, self.bytes = client, 0.0, 0
        client.on_cell_start = self.on_cell_start

    def on_cell_start(self, **_: object) -> None:
        """Start with the first cell, when there is a kernel."""
        if not self.is_alive():
            self.start()

    def run(self) -> None:
        """Look twenty times a second, until the kernel ends."""
        kernel = psutil.Process(self.client.km.provisioner.pid)
        with suppress(psutil.Error):
            while True:
                self.seconds = sum(kernel.cpu_times()[:4])
                self.bytes = max(self.bytes, kernel.memory_info().rss)
                time.sleep(0.05)


class NotebookError(Exception):
    """A cell failed; the message names the notebook and what to do."""


def execute(path: Path, notebook: NotebookNode) -> float:
    """Execute a notebook in memory, store its frames, and return the seconds it took."""
    start = time.monotonic()
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    meter = Meter(client)
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise NotebookError(
            f"{os.path.relpath(path)}: a cell failed.\n{error}\nMend it in "
            f"JupyterLab (make lab), then run: make notebooks NB={os.path.relpath(path)}"
        ) from None
    megabytes = round(meter.bytes / 1e6)
    seconds = round(meter.seconds - take_out(path, notebook))
    lighten(notebook)
    fold_checks(notebook)
    notebook.metadata["cost"] = {"seconds": seconds, "megabytes": megabytes}
    return time.monotonic() - start


def fold_checks(notebook: NotebookNode) -> None:
    """Let JupyterLab fold what pages fold, to its first line."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            folded = EVIDENCE.match(cell.source) or CHECK.match(cell.source)
            if folded:
                cell.metadata["jupyter"] = {"source_hidden": True}
            else:
                cell.metadata.pop("jupyter", None)


def execute_all(
    notebooks: Mapping[Path, NotebookNode],
) -> Iterator[Path]:
    """Execute notebooks in parallel; yield each path when it is done."""
    # One thread per kernel: kernels that share cores and use all of them fight.
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {
            pool.submit(execute, path, nb): path
            for path, nb in notebooks.items()
        }
        try:
            for done, job in enumerate(as_completed(jobs), 1):
                path, seconds = jobs[job], job.result()
                name = os.path.relpath(path)
                count = f"{done} of {len(jobs)}"
                print(
                    f"executed {name} in {seconds:.0f} s ({count})", flush=True
                )
                yield path
        finally:
            pool.shutdown(cancel_futures=True)


def main(paths: list[str]) -> None:
    """Execute notebooks in place."""
    os.environ["DLCORE_EXPLORE"] = "frames"
    for path in paths:
        if not Path(path).is_file():
            sys.exit(f"There is no notebook {path}.")
    notebooks = {Path(p): nbformat.read(p, as_version=4) for p in paths}
    try:
        for path in execute_all(notebooks):
            nbformat.write(notebooks[path], path)
    except NotebookError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
