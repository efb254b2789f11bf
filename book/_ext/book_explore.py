"""Figures to move, on a page: a still, controls, and the sheet that they move over.

A notebook stores what ``dlcore.explore`` said of a figure and a still of it; the sheet
with all frames is stored beside the notebook. Here both become the HTML that
``book/_static/explore.js`` brings to life. Nothing is executed.
"""

import json
import shutil
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from book_sheets import Sheet, figures, folder, read
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.util import logging

from dlcore.explore import DESCRIPTION, FRAME_SCALE

logger = logging.getLogger(__name__)


def alternative(description: dict[str, Any]) -> str:
    """Return the alternative text of the still; explore.js writes those of frames."""
    values = [
        f"{control['label']} = {control['texts'][control['at']]}"
        for control in description["controls"]
    ]
    return f"{description['about']} ({', '.join(values)})"


def control_html(control: dict[str, Any]) -> str:
    """Return a slider for numbers, a menu for names."""
    texts, at = control["texts"], control["at"]
    if control["menu"]:
        options = "".join(
            f"<option value={i}{' selected' if i == at else ''}>{escape(t)}</option>"
            for i, t in enumerate(texts)
        )
        entry = f"<select data-size={len(texts)}>{options}</select>"
    else:
        entry = (
            f'<input type="range" min=0 max={len(texts) - 1} value={at} '
            f'data-size={len(texts)} data-texts="{escape(json.dumps(texts))}" '
            f'aria-valuetext="{escape(texts[at])}">'
            f"<output>{escape(texts[at])}</output>"
        )
    return f"<label><span>{escape(control['label'])}</span>{entry}</label>"


def html(
    description: dict[str, Any], still: str, sheet: Sheet, url: str
) -> str:
    """Return a figure to move."""
    width, height = sheet.frame
    controls = "".join(map(control_html, description["controls"]))
    if description["play"]:
        controls += (
            f'<button type="button" data-ms="{description["play"]}">'
            "Play</button>"
        )
    about = {
        "sheet": url,
        "frame": sheet.frame,
        "places": sheet.places,
        "about": description["about"],
    }
    script = json.dumps(about).replace("<", "\\u003c")  # no text ends it
    return (
        f'<div class="explore"><div class="explore-window">'
        f'<img src="data:image/png;base64,{"".join(still.split())}" '
        f"width={round(width / FRAME_SCALE)} height={round(height / FRAME_SCALE)} "
        f'alt="{escape(alternative(description))}"></div>'
        f'<div class="explore-controls">{controls}</div>'
        f'<script type="application/json">{script}</script></div>'
    )


def make_movable(notebook: NotebookNode, path: Path) -> list[str]:
    """Give outputs of ``explore`` their HTML, in place; return what is missing."""
    missing = []
    for figure in figures(notebook):
        del figure.data[DESCRIPTION]  # MyST-NB has no use for it
        file = figure.file(path)
        if file.is_file():
            url = file.relative_to(path.parent).as_posix()
            figure.data["text/html"] = html(
                figure.description, figure.still, read(file), url
            )
        else:
            missing.append(figure.name)
    return missing


def on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Change what MyST-NB reads of a notebook; say where frames are missing."""
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".ipynb":
        notebook = nbformat.reads(source[0], as_version=4)
        for name in make_movable(notebook, path):
            logger.warning(
                "the frames of %s are not stored. Run: make notebooks NB=%s",
                name,
                path.relative_to(app.srcdir).as_posix(),
                location=docname,
            )
        for sheet in folder(path).glob("*.webp"):
            app.env.note_dependency(sheet)
        source[0] = nbformat.writes(notebook)


def copy_sheets(app: Sphinx, error: Exception | None) -> None:
    """Put the sheets beside the pages, and take away those of other builds."""
    if error:
        return
    for docname in app.env.found_docs:
        source = folder(Path(app.env.doc2path(docname)))
        target = folder(Path(app.outdir) / f"{docname}.html")
        kept = set()
        for sheet in source.glob("*.webp"):
            copy = target / sheet.name
            kept.add(copy)
            target.mkdir(parents=True, exist_ok=True)
            if (
                not copy.exists()
                or copy.stat().st_mtime != sheet.stat().st_mtime
            ):
                shutil.copy2(sheet, copy)
        for file in set(target.glob("*")) - kept:
            file.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", on_source_read)
    app.connect("build-finished", copy_sheets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
