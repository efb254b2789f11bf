"""A bar that shows how far long work has come, where somebody is looking."""

import os
from collections.abc import Iterator, Sequence
from typing import TypeVar

from IPython.core.getipython import get_ipython
from IPython.display import display
from ipywidgets import IntProgress

Item = TypeVar("Item")


def progress(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Yield the items, with a bar that goes away at the end.

    It is shown in a live notebook only: neither in scripts, nor where notebooks are
    executed to be stored or rendered (``DLCORE_EXPLORE``, see ``dlcore.figures.explore``).
    """
    shell = get_ipython()
    if "DLCORE_EXPLORE" in os.environ or not hasattr(shell, "kernel"):
        yield from items
        return
    bar = IntProgress(max=len(items), description=what)
    widget = "application/vnd.jupyter.widget-view+json"
    view = {"model_id": bar.model_id, "version_major": 2, "version_minor": 0}
    display({widget: view}, raw=True)  # type: ignore[no-untyped-call]
    try:
        for done, item in enumerate(items, 1):
            yield item
            if 100 * done // len(items) > 100 * (done - 1) // len(items):
                bar.value = done  # at most a hundred messages to the browser
    finally:
        bar.close()
