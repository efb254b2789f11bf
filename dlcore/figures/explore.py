"""Figures the reader can move: one call, live in a kernel and alive in the book.

``explore(draw, angle=[0, 30, 60])`` shows ``draw(angle=0)`` with a slider. Where the
slider works depends on the environment variable ``DLCORE_EXPLORE``:

- unset: the kernel redraws the figure through ipywidgets, also for numbers between those
  that are listed, and a drawing that raises says so in its place;
- ``frames``: every frame is drawn in advance, into one sheet (``make notebooks`` sets
  this and keeps the sheet beside the notebook, for the pages of the book);
- ``still``: only the first picture is drawn (the tests of the notebooks set this).

In all of them the output has the first picture, so that a saved notebook shows
something wherever it is opened, and a description of the figure and its controls.
"""

import base64
import inspect
import io
import itertools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from textwrap import shorten
from typing import Any, TypeAlias

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy import ndarray
from PIL import Image

from dlcore.checks import check, check_one_of
from dlcore.figures.controls import Control, Value, as_text

__all__ = [
    "DESCRIPTION",
    "FRAMES",
    "FRAME_SCALE",
    "MAX_SIDE",
    "PALETTE",
    "Draw",
    "Explorer",
    "explore",
    "in_few_colours",
]

#: What draws a figure for one choice of its parameters.
Draw: TypeAlias = Callable[..., Figure | Axes]

#: Pixels per CSS pixel: sharp on most screens, yet small.
FRAME_SCALE = 1.5
#: Colours per figure; drawings look the same and weigh a third.
PALETTE = 256
_APART = 6  # what colours that are kept differ by, of 255, in some channel
_PLAY_MS = 800  # time per frame of an animation
_SLOW = 0.15  # seconds; what takes longer to draw is drawn when a slider is let go
#: Longest side, in pixels, of a WebP picture, to which a sheet is turned.
MAX_SIDE = 16_383

#: The MIME type of the description of a figure.
DESCRIPTION = "application/vnd.dlcore.explore+json"
#: The MIME type of all pictures of a figure.
FRAMES = "application/vnd.dlcore.frames+json"


def explore(
    draw: Draw,
    *,
    start: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    play: bool = False,
    max_frames: int = 40,
    **values: Iterable[Any],
) -> "Explorer":
    """Show a figure with a control, slider, switch or menu, for each parameter.

    The figure is ``draw(**choice)``; there is one control per keyword of ``values``. With
    a kernel, sliders stop anywhere between their ends; where ``draw`` raises between two
    listed numbers, they go to the nearest one.

    Args:
        draw: makes the figure for one choice and returns it (or its axes). The first
            paragraph of its docstring describes the picture: it is the alternative
            text, so it is required.
        start: the choice shown first; by default the first of each value.
        labels: what the reader sees beside a control instead of its keyword.
        play: add a button that runs through the only parameter of numbers.
        max_frames: how many frames the page may carry.
        **values: what each parameter can be. Numbers, also those of NumPy, get a
            slider, names a menu, and two of either a switch.

    Example:
        >>> def draw(angle):
        ...     "A line at an angle."
        ...     return plt.figure()
        >>> explore(draw, angle=[0, 30, 60])
        explore(draw, angle: 3 values)
    """
    return Explorer(draw, values, start or {}, labels or {}, play, max_frames)


class Explorer:
    """A figure with controls, as :func:`explore` makes it; notebooks display it.

    Example:
        >>> def draw(angle):
        ...     "A line at an angle."
        ...     return plt.figure()
        >>> explore(draw, angle=[0, 30]).alt({"angle": 30})
        'A line at an angle. (angle = 30)'
    """

    def __init__(
        self,
        draw: Draw,
        values: Mapping[str, Iterable[Any]],
        start: Mapping[str, Any],
        labels: Mapping[str, str],
        play: bool,
        max_frames: int,
    ) -> None:
        self.draw, self.play = draw, play
        self._layouts: dict[object, list[Bbox]] = {}
        self.values = {name: [_plain(v) for v in vs] for name, vs in values.items()}
        self.labels = {name: labels.get(name, name) for name in self.values}
        self.describe = (inspect.getdoc(draw) or "").split("\n\n")[0].replace("\n", " ")
        self._check(start, labels, max_frames)
        self.first = {n: _plain(start.get(n, vs[0])) for n, vs in self.values.items()}

    def _check(
        self, start: Mapping[str, Any], labels: Mapping[str, str], max_frames: int
    ) -> None:
        sizes = [len(vs) for vs in self.values.values()]
        must = "have a docstring that describes the picture"
        hint = "It becomes the alternative text."
        check(bool(self.describe), "explore: draw", must, repr(self._name), hint)
        ok, hint = min(sizes, default=0) > 0, "Write explore(draw, angle=[0, 30, 60])."
        must = "each have at least one value"
        check(ok, "explore: parameters", must, self.values, hint)
        total, product = math.prod(sizes), " × ".join(map(str, sizes))
        ok, must = total <= max_frames, f"give at most {max_frames} frames"
        hint = "Offer fewer values, or raise max_frames and mind the page's weight."
        check(ok, "explore: parameters", must, f"{product} = {total}", hint)
        ok = not self.play or len(self._numbers()) == 1
        must = "go with exactly one parameter of numbers"
        check(ok, "explore: play", must, self.values)
        for name in [*start, *labels]:
            check_one_of("explore: a name in start or labels", name, self.values)
        for name, value in start.items():
            ok, must = value in self.values[name], f"be one of {self.values[name]}"
            check(ok, f"explore: start[{name!r}]", must, repr(value))

    def __repr__(self) -> str:
        shape = ", ".join(f"{n}: {len(vs)} values" for n, vs in self.values.items())
        return f"explore({self._name}, {shape})"

    @property
    def _name(self) -> str:
        return getattr(self.draw, "__name__", "draw")

    def _is_menu(self, name: str) -> bool:
        return isinstance(self.values[name][0], str)

    def _numbers(self) -> list[str]:
        """Return the parameters that are numbers."""
        return [name for name in self.values if not self._is_menu(name)]

    def alt(self, choice: Mapping[str, Value]) -> str:
        """Return the alternative text of one frame: the description and the values."""
        return f"{self.describe} ({self._values(choice)})"

    def _values(self, choice: Mapping[str, Value]) -> str:
        """Return values with their labels, as readers see them."""
        return ", ".join(f"{self.labels[n]} = {as_text(v)}" for n, v in choice.items())

    def image(self, choice: Mapping[str, Value]) -> Image.Image:
        """Draw one frame; nothing stays open, also if the drawing fails."""
        before = {*plt.get_fignums()}
        try:
            fig: Any = self.draw(**choice)
            fig = fig.get_figure(root=True) if isinstance(fig, Axes) else fig
            ok, must = isinstance(fig, Figure), "return a Figure or an Axes"
            check(ok, "explore: draw", must, fig)
            plt.close(fig)
        finally:
            for number in {*plt.get_fignums()} - before:
                plt.close(number)
        canvas: Any = FigureCanvasAgg(fig)
        fig.set_dpi(FRAME_SCALE * fig.dpi)
        margins = _what_stands_beside(fig)
        if margins in self._layouts:
            fig.set_layout_engine("none")
            for ax, place in zip(fig.axes, self._layouts[margins], strict=True):
                ax.set_position(place, which="original")
        canvas.draw()  # once; savefig draws twice and packs what is unpacked here
        self._layouts[margins] = [ax.get_position(original=True) for ax in fig.axes]
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")

    def choices(self) -> list[dict[str, Value]]:
        """Return all choices; the last control moves fastest."""
        return [
            dict(zip(self.values, vs, strict=True))
            for vs in itertools.product(*self.values.values())
        ]

    def description(self) -> dict[str, Any]:
        """Say what a page needs for its controls and alternative texts."""
        return {
            "name": self._name,
            "about": self.describe,
            "controls": [
                {
                    "label": self.labels[name],
                    "texts": [as_text(v) for v in values],
                    "at": values.index(self.first[name]),
                    "menu": self._is_menu(name),
                }
                for name, values in self.values.items()
            ],
            "play": _PLAY_MS if self.play else None,
        }

    def widget(self) -> Any:
        """Return the figure for a live kernel: ipywidgets that redraw it."""
        import ipywidgets as widgets

        controls = {
            name: Control(
                self.labels[name],
                values,
                self.first[name],
                stops=self.play and not self._is_menu(name),
            )
            for name, values in self.values.items()
        }
        handles = {name: control.widget() for name, control in controls.items()}
        view = widgets.HTML()
        going_back = False

        def show(_: object = None) -> None:
            nonlocal going_back
            if going_back:  # one handle after the other: shown when all are there
                return
            choice = {name: c.read(handles[name].value) for name, c in controls.items()}
            stops = {name: c.nearest(choice[name]) for name, c in controls.items()}
            shown, drawn = self._frame(choice)
            if not drawn and stops != choice:
                going_back = True
                for name, stop in stops.items():
                    handles[name].value = stop
                going_back = False
                moved = {name: v for name, v in stops.items() if v != choice[name]}
                told = f"This is {self._values(moved)}, the nearest that is listed."
                shown = self._frame(stops)[0] + shown + _paragraph(told)
            view.value = shown

        began = time.perf_counter()
        show()
        slow = time.perf_counter() - began > _SLOW
        for handle in handles.values():
            if slow and hasattr(handle, "continuous_update"):
                handle.continuous_update = False
            handle.observe(show, "value")
        rows = dict(handles)
        if self.play:
            (name,) = self._numbers()
            slider = handles[name]
            last = len(slider.options) - 1
            player = widgets.Play(value=slider.index, max=last, interval=_PLAY_MS)
            widgets.link((player, "value"), (slider, "index"))
            rows[name] = widgets.HBox([player, slider])
        return widgets.VBox([view, *rows.values()])

    def _frame(self, choice: Mapping[str, Value]) -> tuple[str, bool]:
        """Return one frame as HTML, or what its drawing raised; and which it is."""
        try:
            return _img(self.image(choice), self.alt(choice)), True
        except Exception as error:  # whatever it is, the reader is told
            return _paragraph(self._complaint(choice, error)), False

    def _complaint(self, choice: Mapping[str, Value], error: Exception) -> str:
        """Say which call of the drawing failed, and why, in one line."""
        call = ", ".join(f"{name}={value!r}" for name, value in choice.items())
        why = shorten(f"{type(error).__name__}: {error}", 300)
        return f"{self._name}({call}) raised {why}"

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        mode = os.environ.get("DLCORE_EXPLORE", "live")
        check_one_of("explore: DLCORE_EXPLORE", mode, ("live", "frames", "still"))
        began = time.process_time()
        choices = self.choices() if mode == "frames" else [self.first]
        try:
            images = in_few_colours([self.image(choice) for choice in choices])
        except Exception as error:
            if mode != "live":
                raise
            said = self._complaint(self.first, error)
            return {**self.widget()._repr_mimebundle_(), "text/plain": said}, {}
        still = images[choices.index(self.first)]
        bundle: dict[str, Any] = {
            "image/png": _base64(still, effort=9),
            "text/plain": repr(self),
            DESCRIPTION: self.description(),
        }
        if mode == "frames":
            sheet, places = _sheet(images)
            beyond_still = 1 - 1 / len(images)
            bundle[FRAMES] = {
                "sheet": _base64(sheet),
                "frame": images[0].size,
                "places": places,
                "seconds": beyond_still * (time.process_time() - began),
            }
        if mode == "live":
            bundle = {**self.widget()._repr_mimebundle_(), **bundle}
        return bundle, {"image/png": {"width": _css_width(still)}}


def _plain(value: Any) -> Value:
    """NumPy scalars become Python numbers."""
    return value.item() if hasattr(value, "item") else value


def _what_stands_beside(fig: Figure) -> object:
    """Return what the layout of a figure depends on: texts beside its axes.

    To lay out a figure takes as long as to draw it, and most frames differ inside their
    axes only: those with the same texts around them share one layout.
    """
    if fig.get_suptitle() or any(ax.name == "3d" for ax in fig.axes):
        return fig  # more depends on its layout: it is shared with no other
    return tuple(
        (
            ax.axison,
            ax.get_xlabel(),
            ax.get_ylabel(),
            *(_lines(ax.get_title(at)) for at in ("left", "center", "right")),
            *(label.get_text() for label in ax.get_xticklabels(which="both")),
            *(label.get_text() for label in ax.get_yticklabels(which="both")),
            *_outside(ax),
        )
        for ax in fig.axes
    )


def _lines(text: str) -> int:
    return len(text.splitlines())


def _outside(ax: Axes) -> Iterator[tuple[object, ...]]:
    """Find the texts that start outside of the axes, with their places."""
    legend = ax.get_legend()
    if legend and legend.get_bbox_to_anchor() is not ax.bbox:
        yield tuple(text.get_text() for text in legend.get_texts())
    for text in ax.texts:
        place = text.get_transform().transform(text.get_unitless_position())
        x, y = ax.transAxes.inverted().transform(place)
        if not (0 <= x <= 1 and 0 <= y <= 1):
            yield text.get_text(), round(x, 2), round(y, 2)


def in_few_colours(images: list[Image.Image]) -> list[Image.Image]:
    """Reduce frames to their commonest colours, the same ones in all frames.

    With one palette, tints do not flicker.

    Example:
        >>> red = Image.new("RGB", (4, 4), (255, 0, 0))
        >>> almost = Image.new("RGB", (2, 2), (253, 0, 0))
        >>> in_few_colours([red, almost])[1].convert("RGB").getpixel((0, 0))
        (255, 0, 0)
    """
    # Frame by frame: all their pixels at once would need much memory.
    parts = [np.unique(_packed(i), return_counts=True) for i in images]
    colours, at = np.unique(
        np.concatenate([colours for colours, _ in parts]), return_inverse=True
    )
    counts = np.bincount(at, np.concatenate([counts for _, counts in parts]))
    levels = _unpacked(colours)
    kept: list[int] = []
    for at in np.argsort(-counts, kind="stable")[: 50 * PALETTE]:
        differences = np.abs(levels[kept] - levels[at]).max(axis=1)
        if len(kept) < PALETTE and (differences >= _APART).all():
            kept.append(int(at))
    table = np.zeros(1 << 24, dtype=np.uint8)  # of the nearest colour that is kept
    for part in np.array_split(np.arange(len(colours)), len(colours) // 4096 + 1):
        distances = levels[part, None] - levels[None, kept]
        table[colours[part]] = (distances**2).sum(axis=2).argmin(axis=1)
    return [_with_palette(table[_packed(image)], levels[kept]) for image in images]


def _packed(image: Image.Image) -> ndarray:
    """Return the colours of the pixels as one number each."""
    red, green, blue = np.moveaxis(np.asarray(image, dtype=np.int32), -1, 0)
    return (red << 16) | (green << 8) | blue


def _unpacked(colours: ndarray) -> ndarray:
    """Return red, green and blue of packed colours, as columns."""
    return np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1)


def _with_palette(indices: ndarray, levels: ndarray) -> Image.Image:
    image = Image.fromarray(indices, mode="P")
    image.putpalette(levels.astype(np.uint8).tobytes())
    return image


def _sheet(images: list[Image.Image]) -> tuple[Image.Image, list[tuple[int, int]]]:
    """Put pictures side by side, equal ones once; return the corner of each of them.

    Side by side, and not one below the other, what they share is close to each other in
    the file, where an encoder finds it.
    """
    width, height = images[0].size
    sizes, must = {image.size for image in images}, "give pictures of one size"
    check(len(sizes) == 1, "explore: draw", must, sorted(sizes), "Set figsize.")
    pictures = {image.tobytes(): image for image in images}
    rows = math.ceil(len(pictures) / (MAX_SIDE // width))
    columns = math.ceil(len(pictures) / rows)
    must = f"fit a sheet of {MAX_SIDE:,} × {MAX_SIDE:,} pixels"
    ok, got = rows * height <= MAX_SIDE, f"{len(pictures)} of {width} × {height}"
    check(ok, "explore: frames", must, got, "Offer fewer values.")
    corners = {
        key: (k % columns * width, k // columns * height)
        for k, key in enumerate(pictures)
    }
    sheet = Image.new("P", (columns * width, rows * height))
    sheet.putpalette(images[0].getpalette() or b"")
    for key, corner in corners.items():
        sheet.paste(pictures[key], corner)
    return sheet, [corners[image.tobytes()] for image in images]


def _css_width(image: Image.Image) -> int:
    return round(image.width / FRAME_SCALE)


def _base64(image: Image.Image, effort: int = 1) -> str:
    """Write a picture as PNG, quickly or, with an effort of 9, small."""
    buffer = io.BytesIO()
    image.save(buffer, "png", compress_level=effort)
    return base64.b64encode(buffer.getvalue()).decode()


def _img(image: Image.Image, alt: str) -> str:
    source = f"data:image/png;base64,{_base64(image)}"
    return f'<img src="{source}" width={_css_width(image)} alt="{escape(alt)}">'


def _paragraph(text: str) -> str:
    return f'<p role="alert">{escape(text)}</p>'
