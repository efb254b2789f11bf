"""A bar that shows how far long work has come, where somebody is looking."""

import os
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from IPython.core.getipython import get_ipython
from IPython.display import display
from ipywidgets import IntProgress

__all__ = ["progress"]

_Item = TypeVar("_Item")


def progress(items: Iterable[_Item], what: str) -> Iterator[_Item]:
    """Yield the items, and show a progress bar that goes away at the end.

    It needs to know how many there are, and is shown in a live notebook only: neither
    in scripts, nor where notebooks are executed to be stored or rendered
    (``DLCORE_EXPLORE``, see ``dlcore.figures.explore``).

    Example:
        >>> [n**2 for n in progress([1, 2, 3], "squares")]
        [1, 4, 9]
    """
    shell = get_ipython()
    shown = hasattr(shell, "kernel") and "DLCORE_EXPLORE" not in os.environ
    if not shown or not isinstance(items, Sized):
        yield from items
        return
    total = len(items)
    bar = IntProgress(max=total, description=what)
    widget = "application/vnd.jupyter.widget-view+json"
    view = {"model_id": bar.model_id, "version_major": 2, "version_minor": 0}
    display({widget: view}, raw=True)  # type: ignore[no-untyped-call]
    try:
        for done, item in enumerate(items, 1):
            yield item
            if 100 * done // total > 100 * (done - 1) // total:
                bar.value = done  # at most a hundred messages to the browser
    finally:
        bar.close()
