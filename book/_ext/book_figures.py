"""Figures described in the first lines of their cell, as comments.

    # figure: perceptron-margin
    # caption: The margin is the distance of the closest point.
    # alt: Two clouds of points, a line between them, and the shortest segment to it.

become the cross-reference label, the numbered caption and the alternative text of the
picture that the cell shows. A description may go on in lines that start with "#   ".

The first code cell starts with the command that installs what a notebook needs when it is
opened alone, ``# install: pip install ...``. A page of the book does not show it.
"""

import re
from pathlib import Path

import nbformat
from docutils import nodes
from nbformat import NotebookNode
from PIL import Image
from sphinx.application import Sphinx

INSTALL = re.compile(r"# install: .*\n?")
COMMENT = re.compile(r"# (figure|caption|alt): (.*(?:\n#   .*)*)\n?")


def describe(source: str) -> tuple[dict[str, str], str]:
    """Split a cell into what its first comments say of the figure, and its code."""
    found = {}
    source = (
        INSTALL.sub("", source, count=1) if INSTALL.match(source) else source
    )
    while match := COMMENT.match(source):
        found[match[1]] = re.sub(r"\n#\s+", " ", match[2])
        source = source[match.end() :]
    return found, source


def strip_comments(notebook: NotebookNode) -> NotebookNode:
    """Turn the comments into the cell metadata that MyST-NB knows, in place."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found, cell.source = describe(cell.source)
            options = cell.metadata.setdefault("mystnb", {})
            if "alt" in found:
                options["image"] = {"alt": found["alt"]}
            if "figure" in found:
                options["figure"] = {
                    "name": found["figure"],
                    "caption": found.get("caption", ""),
                }
    return notebook


def on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Strip the comments of every notebook before MyST-NB sees it."""
    if app.env.doc2path(docname).endswith(".ipynb"):
        notebook = nbformat.reads(source[0], as_version=4)
        source[0] = nbformat.writes(strip_comments(notebook))


def size_in_css_pixels(app: Sphinx, doctree: nodes.document) -> None:
    """Show a picture drawn at 200 dots per inch at 100: sharp, not large."""
    for image in doctree.findall(nodes.image):
        path = Path(app.srcdir) / image["uri"]
        if "jupyter_execute" in path.parts and path.suffix == ".png":
            with Image.open(path) as picture:
                dpi = picture.info.get("dpi", (100,))[0]
                image["width"] = f"{round(picture.width * 100 / dpi)}px"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", on_source_read)
    app.connect("doctree-read", size_in_css_pixels)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
