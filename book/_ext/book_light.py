"""A lighter book: pages and files without what no reader sees or loads.

Of the highlighted code, names, punctuation and blanks have the colour of their box in
both themes, and make up half of all markup. Of the files, source maps serve the makers of
the theme, translations its build, and fonts of the older format browsers that it no longer
supports.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PLAIN = re.compile(r'<span class="(?:n|p|w)">([^<]*)</span>')
UNUSED = ["**/*.map", "vendor/fontawesome/webfonts/*.ttf", "locales/**/*.?o"]
UNUSED += ["mathjax/**/all-packages.js"]


def drop_plain_spans(
    app: Sphinx, page: str, template: str, context: dict[str, Any], _: object
) -> None:
    """Leave the text of spans that change no colour."""
    if "body" in context:
        context["body"] = PLAIN.sub(r"\1", context["body"])


def drop_unused_files(app: Sphinx, error: Exception | None) -> None:
    """Remove files of the theme that no page loads."""
    for pattern in UNUSED:
        for file in (Path(app.outdir) / "_static").glob(pattern):
            file.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", drop_plain_spans)
    app.connect("build-finished", drop_unused_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
