"""Execute notebooks, one per core at a time.

From the command line, execute them in place and keep their outputs, with a still where a
figure can be moved:

    python book/_ext/run_notebooks.py book/connectionism/perceptron.ipynb
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from nbformat import NotebookNode

TIMEOUT = 300  # seconds per cell


class NotebookError(Exception):
    """A cell failed; the message names the notebook and what to do."""


def execute(path: Path, notebook: NotebookNode) -> float:
    """Execute a notebook in memory and return the seconds it took."""
    start = time.monotonic()
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise NotebookError(
            f"{os.path.relpath(path)}: a cell failed.\n{error}\nMend it in "
            f"JupyterLab (make lab), then run: make notebooks NB={os.path.relpath(path)}"
        ) from None
    return time.monotonic() - start


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
    os.environ["DLCORE_EXPLORE"] = "still"
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
