"""What pages cost to run: a line on each page, and ``{costs}``, a table for a chapter.

``make notebooks`` measures it, and stores it in the metadata of the notebook.
"""

from pathlib import Path
from typing import Any

import nbformat
from book_ledger import table
from docutils import nodes
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

HEAD = ["To run", "on one core", "memory, at most"]


def spoken(cost: dict[str, int]) -> tuple[str, str]:
    """Return seconds and memory as a reader says them, rounded up."""
    gigabytes = -(-cost["megabytes"] // 100) / 10
    return f"{max(cost['seconds'], 1)} s", f"{gigabytes} GB"


def say_cost(notebook: NotebookNode) -> None:
    """Write the cost below the aims of a page, in place."""
    if cost := notebook.metadata.get("cost"):
        seconds, memory = spoken(cost)
        notebook.cells[0].source += (
            "\n\n{.cost}\n"
            f"To run this page takes {seconds} on one core and up to {memory} of memory."
        )


def on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Add the line to every notebook."""
    if app.env.doc2path(docname).endswith(".ipynb"):
        notebook = nbformat.reads(source[0], as_version=4)
        say_cost(notebook)
        source[0] = nbformat.writes(notebook)


def cost_of(path: Path) -> dict[str, int] | None:
    """Return what a page costs to run, if it is a notebook that was executed."""
    if path.suffix != ".ipynb":
        return None
    return nbformat.read(path, as_version=4).metadata.get("cost")


class CostsNode(nodes.General, nodes.Element):
    """Where the table goes, once all pages are read."""


class CostsDirective(SphinxDirective):
    """``{costs}``: what the pages below this one cost to run."""

    def run(self) -> list[nodes.Node]:
        """Reserve the place; read this page again in every build."""
        self.env.note_reread()
        return [CostsNode()]


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write the tables, now that all costs are known."""
    env: BuildEnvironment = app.env
    for place in list(doctree.findall(CostsNode)):
        rows: list[Any] = []
        for page in env.toctree_includes.get(docname, []):
            if cost := cost_of(Path(env.doc2path(page))):
                title = nodes.Text(env.titles[page].astext())
                link = make_refnode(app.builder, docname, page, "", title)
                rows.append([[link], *([nodes.Text(t)] for t in spoken(cost))])
        place.replace_self(table("costs", HEAD, rows))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(CostsNode)
    app.add_directive("costs", CostsDirective)
    app.connect("source-read", on_source_read)
    app.connect("doctree-resolved", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
