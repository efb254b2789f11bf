"""Figures to move, on a page: a still, controls, and the sheet that they move over.

A notebook stores what ``dlcore.figures.explore`` said of a figure and a still of it; the sheet
with all frames is stored beside the notebook. Here both become the HTML that
``book/_static/explore.js`` brings to life, and files beside the page. Nothing is executed.
"""

import io
import json
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from book_sheets import Sheet, figures, folder, read
from nbformat import NotebookNode
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util import logging

from dlcore.figures.controls import track
from dlcore.figures.explore import DESCRIPTION, FRAME_SCALE

STILL = ".still.webp"
LENGTH = 1000  # of a track on which stops do not lie evenly

logger = logging.getLogger(__name__)


def alternative(description: dict[str, Any]) -> str:
    """Return the alternative text of the still; explore.js writes those of frames."""
    values = [
        f"{control['label']} = {control['texts'][control['at']]}"
        for control in description["controls"]
    ]
    return f"{description['about']} ({', '.join(values)})"


def stops(texts: list[str]) -> list[int]:
    """Return where on the track of a slider its numbers are; 0, 1, 2, … if evenly.

    >>> stops(["1", "10", "1000"]), stops(["−1", "0", "1"])
    ([0, 333, 1000], [0, 1, 2])
    """
    evenly, last = [*range(len(texts))], len(texts) - 1
    if last < 2:  # a switch, or nothing to move
        return evenly
    _, places = track([float(text.replace("−", "-")) for text in texts])
    if places == [round(k / last, 3) for k in evenly]:
        return evenly
    return [round(LENGTH * place) for place in places]


def control_html(control: dict[str, Any]) -> str:
    """Return a slider for numbers, a menu for names; explore.js makes switches of two."""
    texts, at = control["texts"], control["at"]
    if control["menu"]:
        options = "".join(
            f"<option value={i}{' selected' if i == at else ''}>{escape(t)}</option>"
            for i, t in enumerate(texts)
        )
        entry = f"<select data-size={len(texts)}>{options}</select>"
    else:
        places = stops(texts)
        entry = (
            f'<input type="range" min=0 max={places[-1]} value={places[at]} '
            f'data-stops="{places}" '
            f'data-size={len(texts)} data-texts="{escape(json.dumps(texts))}" '
            f'aria-valuetext="{escape(texts[at])}">'
            f"<output>{escape(texts[at])}</output>"
        )
    return f"<label><span>{escape(control['label'])}</span>{entry}</label>"


def html(description: dict[str, Any], sheet: Sheet, beside: str) -> str:
    """Return a figure to move; its still and sheet are in a folder beside the page."""
    name, (width, height) = description["name"], sheet.frame
    controls = "".join(map(control_html, description["controls"]))
    if description["play"]:
        controls += (
            f'<button type="button" data-ms="{description["play"]}">'
            "Play</button>"
        )
    about = {
        "sheet": f"{beside}/{name}.webp",
        "frame": sheet.frame,
        "places": sheet.places,
        "about": description["about"],
    }
    script = json.dumps(about).replace("<", "\\u003c")  # no text ends it
    return (
        f'<div class="explore" id="figure-{name}" data-name="{name}">'
        f'<div class="explore-window">'
        f'<img src="{beside}/{name}{STILL}" '
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
            beside = file.parent.relative_to(path.parent).as_posix()
            figure.data["text/html"] = html(
                figure.description, read(file), beside
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


def copy_pictures(app: Sphinx, error: Exception | None) -> None:
    """Put stills and sheets beside the pages, and take away those of other builds."""
    if error:
        return
    for docname in app.env.found_docs:
        notebook = Path(app.env.doc2path(docname))
        target = folder(Path(app.outdir) / f"{docname}.html")
        if notebook.suffix == ".ipynb":
            target.mkdir(parents=True, exist_ok=True)
            kept = {*copy_sheets(notebook, target)}
            stills = {file.with_suffix(STILL) for file in kept}
            if not all(is_newer(still, notebook) for still in stills):
                write_stills(notebook, target)
            for file in set(target.iterdir()) - kept - stills:
                file.unlink()


def is_newer(file: Path, than: Path) -> bool:
    """Tell whether a file is there and was made after another one."""
    return file.exists() and file.stat().st_mtime > than.stat().st_mtime


def copy_sheets(notebook: Path, target: Path) -> Iterator[Path]:
    """Copy sheets that have changed; yield where all of them are."""
    for sheet in folder(notebook).glob("*.webp"):
        copy = target / sheet.name
        if not is_newer(copy, sheet):
            shutil.copyfile(sheet, copy)
        yield copy


def write_stills(notebook: Path, target: Path) -> None:
    """Turn the stills of a notebook into files, a fifth smaller than in it."""
    for figure in figures(nbformat.read(notebook, as_version=4)):
        with Image.open(io.BytesIO(figure.still)) as picture:
            still = (target / figure.name).with_suffix(STILL)
            picture.convert("RGB").save(still, "webp", lossless=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", on_source_read)
    app.connect("build-finished", copy_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
