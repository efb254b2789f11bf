"""MathJax without a network: copy what a page loads, 2 MB of the package's 24."""

import shutil
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx

NEEDED = ["tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions"]


def copy(app: Sphinx, error: Exception | None) -> None:
    """Take the needed files from the installed sphinx-mathjax-offline."""
    spec = find_spec("sphinx-mathjax-offline")
    if error or spec is None or spec.origin is None:
        return
    source = Path(spec.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for name in NEEDED:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        else:
            shutil.copy(source / name, target / name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("build-finished", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
