"""Sheets: all frames of a figure to move in one picture, stored beside its notebook.

The frames of ``edge`` in ``book/connectionism/perceptron.ipynb`` are kept in
``book/connectionism/frames/perceptron/edge.webp``. A sheet carries, as metadata of the
picture, where each frame is, the fingerprint of the code it was drawn from, and that of
the still in the notebook, which was drawn with it.
"""

import base64
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from book_code import fingerprint
from nbformat import NotebookNode
from PIL import Image

from dlcore.figures.explore import DESCRIPTION, FRAMES, in_few_colours

EFFORT = 4  # of the encoder; more takes thirty times as long and gains 3 %


class Figure(NamedTuple):
    """A figure to move, as a notebook stores it."""

    description: dict[str, Any]
    data: NotebookNode  # all that the output shows
    sources: list[str]  # of the code cells up to its own

    @property
    def code(self) -> str:
        """The fingerprint of what it is drawn by."""
        return fingerprint(self.sources)

    @property
    def still(self) -> bytes:
        """The first picture, as PNG."""
        return base64.b64decode(self.data["image/png"])

    @property
    def name(self) -> str:
        """The name of the function that draws it."""
        return self.description["name"]

    @property
    def still_hash(self) -> str:
        """The fingerprint of the still."""
        return hashlib.sha256(self.still).hexdigest()

    def file(self, notebook: Path) -> Path:
        """Return where its sheet is."""
        return folder(notebook) / f"{self.name}.webp"


class Sheet(NamedTuple):
    """What a sheet knows of itself."""

    frame: list[int]
    places: list[list[int]]
    code: str
    still: str


def folder(notebook: Path) -> Path:
    """Return where the sheets of a notebook are."""
    return notebook.parent / "frames" / notebook.stem


def figures(notebook: NotebookNode) -> Iterator[Figure]:
    """Yield the figures to move, in their order."""
    sources = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            sources.append(cell.source)
            for output in cell.outputs:
                data = output.get("data", {})
                if DESCRIPTION in data:
                    yield Figure(data[DESCRIPTION], data, [*sources])


def write(file: Path, figure: Figure, frames: dict[str, Any]) -> None:
    """Turn the frames that ``explore`` gave into a sheet."""
    picture = Image.open(io.BytesIO(base64.b64decode(frames["sheet"])))
    about = {
        "frame": frames["frame"],
        "places": frames["places"],
        "code": figure.code,
        "still": figure.still_hash,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".part")
    picture.convert("RGB").save(
        unfinished,
        "webp",
        lossless=True,
        method=EFFORT,
        xmp=json.dumps(about).encode(),
    )
    unfinished.replace(file)


def read(file: Path) -> Sheet:
    """Return what a sheet knows of itself."""
    with Image.open(file) as picture:
        about = json.loads(picture.info["xmp"])
    return Sheet(**about)


def take_out(path: Path, notebook: NotebookNode) -> float:
    """Move all frames out of a notebook that was just executed, into its sheets.

    Returns:
        The seconds that it took to draw them, stills not counted.
    """
    seconds, kept = 0.0, set()
    for figure in figures(notebook):
        frames = figure.data.pop(FRAMES)
        file = figure.file(path)
        if file in kept:
            raise ValueError(
                f"{path}: two figures to move are drawn by functions of the name "
                f"{figure.name}. Rename one."
            )
        kept.add(file)
        write(file, figure, frames)
        seconds += frames["seconds"]
    for file in set(folder(path).glob("*.webp")) - kept:
        file.unlink()
    return seconds


def lighten(notebook: NotebookNode) -> None:
    """Store the other pictures in few colours too: a third of the weight, same looks."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data and DESCRIPTION not in data:
                png = io.BytesIO(base64.b64decode(data["image/png"]))
                picture, light = Image.open(png), io.BytesIO()
                dpi = picture.info.get("dpi", (100, 100))
                (few,) = in_few_colours([picture.convert("RGB")])
                few.save(light, "png", optimize=True, dpi=dpi)
                data["image/png"] = base64.b64encode(light.getvalue()).decode()
