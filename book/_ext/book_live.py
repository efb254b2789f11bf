"""Live figures, on a page: the data of the call, and the script that computes with it.

A notebook stores what ``dlcore.figures.live`` said of a figure, and a still of it. Here the
two become HTML that ``book/_static/live.js`` brings to life. ``{live} page#name`` shows a
figure of another page once more.
"""

import json
import os
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dlcore.figures.live import LIVE, as_script, figures, stylesheet

HOLDER = "(window.liveFigures ??= {})"


def stored(
    notebook: NotebookNode,
) -> Iterator[tuple[dict[str, Any], NotebookNode]]:
    """Yield what is said of the live figures, and all that their outputs show."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if LIVE in (data := output.get("data", {})):
                yield data[LIVE], data


def html(description: dict[str, Any], still: str, static: str) -> str:
    """Return a live figure: its still, its data, its script.

    Args:
        description: what the notebook stores of it.
        still: a PNG, in base64.
        static: the way from the page to the static files.
    """
    name, figure = description["name"], description["figure"]
    data = json.dumps(description).replace("<", "\\u003c")  # no text ends it
    return (
        f'<div class="live-figure" data-live="{name}"><div class="live-here">'
        f'<img src="data:image/png;base64,{still}" '
        f'alt="{escape(description["about"])}"></div>'
        f'<script type="application/json">{data}</script>'
        f'<script defer src="{static}/live/{figure}.js"></script></div>'
    )


def way_to_static(docname: str) -> str:
    """Return the way from a page to the static files."""
    return os.path.relpath("_static", Path(docname).parent).replace(os.sep, "/")


def on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Change what MyST-NB reads of a notebook."""
    if app.env.doc2path(docname).endswith(".ipynb"):
        notebook = nbformat.reads(source[0], as_version=4)
        for description, data in stored(notebook):
            del data[LIVE]  # MyST-NB has no use for it
            still = data["image/png"]
            data["text/html"] = html(description, still, way_to_static(docname))
        source[0] = nbformat.writes(notebook)


class LiveDirective(SphinxDirective):
    """``{live} connectionism/perceptron#boundary``: a figure of another page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Show the figure that the notebook stores under the name."""
        page, _, name = self.arguments[0].partition("#")
        path = (
            Path(self.env.doc2path(self.env.docname)).parent / f"{page}.ipynb"
        )
        self.env.note_dependency(str(path))
        for description, data in stored(nbformat.read(path, as_version=4)):
            if description["name"] == name:
                static = way_to_static(self.env.docname)
                text = html(description, data["image/png"], static)
                return [nodes.raw("", text, format="html")]
        raise self.error(f"{page} has no live figure {name!r}.")


def write_scripts(app: Sphinx, error: Exception | None) -> None:
    """Put the scripts of all figures beside the pages."""
    folder = Path(app.outdir) / "_static" / "live"
    if error is None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in figures():
            text = as_script(name, HOLDER)
            (folder / f"{name}.js").write_text(text, encoding="utf-8")
        (folder / "live.css").write_text(stylesheet(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("live", LiveDirective)
    app.add_css_file("live/live.css")
    app.connect("source-read", on_source_read)
    app.connect("build-finished", write_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
