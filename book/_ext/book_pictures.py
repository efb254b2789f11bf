"""``{picture} connectionism/hopfield#recall``: the still of a figure of another page.

It is a link to the figure itself, which can be moved.
"""

from html import escape
from pathlib import Path

import nbformat
from book_explore import alternative
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dlcore.figures.explore import DESCRIPTION


class PictureDirective(SphinxDirective):
    """Show the still of a figure to move, with its alternative text."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the picture that the notebook stores under the name."""
        page, _, name = self.arguments[0].partition("#")
        folder = Path(self.env.doc2path(self.env.docname)).parent
        path = folder / f"{page}.ipynb"
        self.env.note_dependency(str(path))
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                about = data.get(DESCRIPTION, {})
                if about.get("name") == name:
                    text = (
                        f'<a class="picture cell_output" '
                        f'href="{page}.html#figure-{name}">'
                        f'<img src="data:image/png;base64,{data["image/png"]}" '
                        f'alt="{escape(alternative(about))}"></a>'
                    )
                    return [nodes.raw("", text, format="html")]
        raise self.error(f"{page} has no figure to move {name!r}.")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("picture", PictureDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
