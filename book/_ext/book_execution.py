"""Execute notebooks for the page: frames instead of widgets, one notebook per core.

MyST-NB takes outputs from its cache where it has them, and would fill it one notebook
after the other. Here the cache is filled in parallel before the pages are read. What was
executed with another dlcore is not reused, which neither Sphinx nor the cache would notice.
"""

import os
from pathlib import Path

import nbformat
from book_cache import fingerprint, keep, open_cache
from book_figures import strip_comments
from run_notebooks import NotebookError, execute_all
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError


def fill_cache(
    app: Sphinx,
    env: BuildEnvironment,
    added: set[str],
    changed: set[str],
    removed: set[str],
) -> list[str]:
    """Execute what the cache lacks; return the pages to read again besides."""
    cache = open_cache(Path(app.outdir).parent)
    pages = [d for d in env.found_docs if env.doc2path(d).endswith(".ipynb")]
    todo = {}
    for page in pages:
        path = Path(env.doc2path(page))
        notebook = strip_comments(nbformat.read(path, as_version=4))
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            todo[path] = notebook
    try:
        for path in execute_all(todo):
            keep(cache, path, todo[path])
    except NotebookError as error:
        raise ExtensionError(str(error)) from None
    stale = getattr(env, "dlcore_sha256", None) != fingerprint()
    env.dlcore_sha256 = fingerprint()  # type: ignore[attr-defined]
    return pages if stale else []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx; kernels inherit the environment."""
    os.environ["DLCORE_EXPLORE"] = "static"
    app.connect("env-get-outdated", fill_cache)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
