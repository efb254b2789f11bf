"""What pages cost to run: a line on each page, and ``{costs}``, a table for a chapter.

``make notebooks`` measures it, and stores it in the metadata of the notebook.
"""

from typing import Any

import nbformat
from book_ledger import table
from docutils import nodes
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode


def spoken(cost: dict[str, int]) -> tuple[str, str]:
    """Return seconds and memory as a reader says them, rounded up."""
    gigabytes = -(-cost["megabytes"] // 100) / 10
    return f"{max(cost['seconds'], 1)} s", f"{gigabytes} GB"


def say_cost(notebook: NotebookNode) -> dict[str, int] | None:
    """Write the cost below the aims of a page, in place, and return it."""
    cost = notebook.metadata.get("cost")
    if cost:
        seconds, memory = spoken(cost)
        notebook.cells[0].source += (
            "\n\n{.cost}\n"
            f"To run this page takes {seconds} on one core and up to {memory} of memory."
        )
    return cost


def on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Add the line to every notebook, and remember the cost for the tables."""
    if app.env.doc2path(docname).endswith(".ipynb"):
        notebook = nbformat.reads(source[0], as_version=4)
        app.env.metadata[docname]["cost"] = say_cost(notebook)
        source[0] = nbformat.writes(notebook)


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
            cost = env.metadata[page].get("cost")
            if cost:
                title = nodes.Text(env.titles[page].astext())
                link = make_refnode(app.builder, docname, page, "", title)
                rows.append([[link], *([nodes.Text(t)] for t in spoken(cost))])
        place.replace_self(table(["To run", "takes", "and up to"], rows))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(CostsNode)
    app.add_directive("costs", CostsDirective)
    app.connect("source-read", on_source_read)
    app.connect("doctree-resolved", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
