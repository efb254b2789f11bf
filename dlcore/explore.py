"""Figures the reader can move: one call, live in a kernel and alive in the book.

``explore(draw, angle=[0, 30, 60])`` shows ``draw(angle=0)`` with a slider. Where the
slider works depends on the environment variable ``DLCORE_EXPLORE``:

- unset: the kernel redraws the figure through ipywidgets;
- ``static``: every frame is drawn in advance and HTML controls flip through them (the
  book sets this while it is built; ``book/_static/explore.js`` moves the frames);
- ``still``: only the first picture is kept (``make notebooks`` sets this, so that a
  saved notebook shows something wherever it is opened).
"""

import base64
import inspect
import io
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import Any, TypeAlias

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy import ndarray
from PIL import Image

from dlcore._check import check

Value: TypeAlias = float | str
Draw: TypeAlias = Callable[..., Figure | Axes]

FRAME_SCALE = 1.5  # pixels per CSS pixel: sharp on most screens, yet small
PALETTE = 256  # colours per figure; drawings look the same and weigh a third
APART = 6  # what colours that are kept differ by, of 255, in some channel
PLAY_MS = 800  # time per frame of an animation


def explore(
    draw: Draw,
    *,
    start: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    play: bool = False,
    max_frames: int = 40,
    **values: Iterable[Any],
) -> "Explorer":
    """Show ``draw(**choice)`` with one control per keyword of ``values``.

    Args:
        draw: makes the figure for one choice and returns it (or its axes). The first
            paragraph of its docstring describes the picture: it is the alternative
            text, so it is required.
        start: the choice shown first; by default the first of each value.
        labels: what the reader sees beside a control instead of its keyword.
        play: add a button that runs through the only parameter of numbers.
        max_frames: how many frames the page may carry.
        **values: what each parameter can be. Numbers, also those of NumPy, get a slider,
            names a menu.
    """
    return Explorer(draw, values, start or {}, labels or {}, play, max_frames)


class Explorer:
    """What :func:`explore` returns; notebooks display it."""

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
        self.values = {
            name: [_plain(v) for v in vs] for name, vs in values.items()
        }
        self.labels = {name: labels.get(name, name) for name in self.values}
        self.describe = (
            (inspect.getdoc(draw) or "").split("\n\n")[0].replace("\n", " ")
        )
        self._check(start, labels, max_frames)
        self.first = {
            n: _plain(start.get(n, vs[0])) for n, vs in self.values.items()
        }

    def _check(
        self,
        start: Mapping[str, Any],
        labels: Mapping[str, str],
        max_frames: int,
    ) -> None:
        sizes = [len(vs) for vs in self.values.values()]
        check(
            bool(self.describe),
            "explore: draw",
            "have a docstring that describes the picture",
            repr(getattr(self.draw, "__name__", self.draw)),
            "It becomes the alternative text.",
        )
        check(
            bool(sizes) and min(sizes) > 0,
            "explore: parameters",
            "each have at least one value",
            self.values,
            "Write explore(draw, angle=[0, 30, 60]).",
        )
        check(
            math.prod(sizes) <= max_frames,
            "explore: parameters",
            f"give at most {max_frames} frames",
            f"{' × '.join(map(str, sizes))} = {math.prod(sizes)}",
            "Offer fewer values, or raise max_frames and mind the page's weight.",
        )
        check(
            not self.play
            or [*map(self._is_menu, self.values)].count(False) == 1,
            "explore: play",
            "go with exactly one parameter of numbers",
            self.values,
        )
        for name in [*start, *labels]:
            check(
                name in self.values,
                "explore: start and labels",
                f"name one of {list(self.values)}",
                repr(name),
            )
        for name, value in start.items():
            check(
                value in self.values[name],
                f"explore: start[{name!r}]",
                f"be one of {self.values[name]}",
                repr(value),
            )

    def __repr__(self) -> str:
        shape = ", ".join(
            f"{n}: {len(vs)} values" for n, vs in self.values.items()
        )
        return f"explore({getattr(self.draw, '__name__', 'draw')}, {shape})"

    def _is_menu(self, name: str) -> bool:
        return isinstance(self.values[name][0], str)

    def alt(self, choice: Mapping[str, Value]) -> str:
        """Return the alternative text of one frame: the description and the values."""
        at = ", ".join(
            f"{self.labels[n]} = {_text(v)}" for n, v in choice.items()
        )
        return f"{self.describe} ({at})"

    def image(self, choice: Mapping[str, Value]) -> Image.Image:
        """Draw one frame."""
        drawn = self.draw(**choice)
        fig = drawn.get_figure(root=True) if isinstance(drawn, Axes) else drawn
        if not isinstance(fig, Figure):
            raise ValueError(
                f"explore: draw must return a Figure or an Axes; got {fig}."
            )
        plt.close(fig)
        canvas: Any = FigureCanvasAgg(fig)
        fig.set_dpi(FRAME_SCALE * fig.dpi)
        margins = _what_stands_beside(fig)
        if margins in self._layouts:
            fig.set_layout_engine("none")
            for ax, place in zip(fig.axes, self._layouts[margins], strict=True):
                ax.set_position(place, which="original")
        canvas.draw()  # once; savefig draws twice and packs what is unpacked here
        self._layouts[margins] = [
            ax.get_position(original=True) for ax in fig.axes
        ]
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")

    def html(self) -> str:
        """Return the figure for a page without a kernel: all frames and controls."""
        choices = [
            dict(zip(self.values, vs, strict=True))
            for vs in itertools.product(*self.values.values())
        ]
        images = _in_few_colours([self.image(choice) for choice in choices])
        frames = [
            {"src": _data_uri(image), "alt": self.alt(choice)}
            for image, choice in zip(images, choices, strict=True)
        ]
        first = choices.index(self.first)
        controls = "".join(self._control(name) for name in self.values)
        if self.play:
            controls += (
                f'<button type="button" data-ms="{PLAY_MS}">Play</button>'
            )
        data = json.dumps(frames).replace(
            "<", "\\u003c"
        )  # no text ends the script
        return (
            f'<div class="explore">{_img(images[first], frames[first]["alt"])}'
            f'<div class="explore-controls">{controls}</div>'
            f'<script type="application/json">{data}</script></div>'
        )

    def _control(self, name: str) -> str:
        texts = [_text(v) for v in self.values[name]]
        at = self.values[name].index(self.first[name])
        if self._is_menu(name):
            options = "".join(
                f"<option value={i}{' selected' if i == at else ''}>{escape(t)}</option>"
                for i, t in enumerate(texts)
            )
            control = f"<select data-size={len(texts)}>{options}</select>"
        else:
            control = (
                f'<input type="range" min=0 max={len(texts) - 1} value={at} '
                f'data-size={len(texts)} data-texts="{escape(json.dumps(texts))}" '
                f'aria-valuetext="{escape(texts[at])}">'
                f"<output>{escape(texts[at])}</output>"
            )
        return (
            f"<label><span>{escape(self.labels[name])}</span>{control}</label>"
        )

    def widget(self) -> Any:
        """Return the figure for a live kernel: ipywidgets that redraw it."""
        import ipywidgets as widgets

        def control(name: str) -> Any:
            kind = (
                widgets.Dropdown
                if self._is_menu(name)
                else widgets.SelectionSlider
            )
            return kind(
                options=[(_text(v), v) for v in self.values[name]],
                value=self.first[name],
                description=self.labels[name],
                style={"description_width": "initial"},
                layout={"width": "32em"},
            )

        controls = {name: control(name) for name in self.values}
        view = widgets.HTML()

        def show(_: object = None) -> None:
            choice = {name: c.value for name, c in controls.items()}
            view.value = _img(self.image(choice), self.alt(choice))

        for c in controls.values():
            c.observe(show, "value")
        show()
        rows = list(controls.values())
        if self.play:
            at = [*map(self._is_menu, self.values)].index(False)
            slider = rows[at]
            last = len(slider.options) - 1
            player = widgets.Play(
                value=slider.index, max=last, interval=PLAY_MS
            )
            widgets.link((player, "value"), (slider, "index"))
            rows[at] = widgets.HBox([player, slider])
        return widgets.VBox([view, *rows])

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        mode = os.environ.get("DLCORE_EXPLORE", "live")
        check(
            mode in ("live", "static", "still"),
            "explore: DLCORE_EXPLORE",
            "be live, static or still",
            repr(mode),
        )
        if mode == "static":
            return {"text/plain": repr(self), "text/html": self.html()}, {}
        (still,) = _in_few_colours([self.image(self.first)])
        bundle = {"image/png": _base64(still, "png"), "text/plain": repr(self)}
        if mode == "live":
            bundle = {**self.widget()._repr_mimebundle_(), **bundle}
        return bundle, {"image/png": {"width": _css_width(still)}}


def _plain(value: Any) -> Value:
    """NumPy scalars become Python numbers."""
    return value.item() if hasattr(value, "item") else value


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    return f"{value:{'d' if isinstance(value, int) else 'g'}}".replace("-", "−")


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


def _in_few_colours(images: list[Image.Image]) -> list[Image.Image]:
    """Keep the commonest colours of all frames, so that tints do not flicker."""
    frames = [_packed(image) for image in images]
    colours, counts = np.unique(np.concatenate(frames), return_counts=True)
    levels = _unpacked(colours)
    kept: list[int] = []
    for at in np.argsort(-counts, kind="stable")[: 50 * PALETTE]:
        differences = np.abs(levels[kept] - levels[at]).max(axis=1)
        if len(kept) < PALETTE and (differences >= APART).all():
            kept.append(int(at))
    table = np.zeros(
        1 << 24, dtype=np.uint8
    )  # of the nearest colour that is kept
    for part in np.array_split(
        np.arange(len(colours)), len(colours) // 4096 + 1
    ):
        distances = levels[part, None] - levels[None, kept]
        table[colours[part]] = (distances**2).sum(axis=2).argmin(axis=1)
    return [
        _with_palette(table[frame].reshape(image.size[::-1]), levels[kept])
        for frame, image in zip(frames, images, strict=True)
    ]


def _packed(image: Image.Image) -> ndarray:
    """Return the colours of the pixels as one number each."""
    red, green, blue = np.asarray(image, dtype=np.int32).reshape(-1, 3).T
    return (red << 16) | (green << 8) | blue


def _unpacked(colours: ndarray) -> ndarray:
    """Return red, green and blue of packed colours, as columns."""
    return np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1)


def _with_palette(indices: ndarray, levels: ndarray) -> Image.Image:
    image = Image.fromarray(indices, mode="P")
    image.putpalette(levels.astype(np.uint8).tobytes())
    return image


def _css_width(image: Image.Image) -> int:
    return round(image.width / FRAME_SCALE)


def _base64(image: Image.Image, format: str) -> str:
    buffer = io.BytesIO()
    if format == "webp":
        image.convert("RGB").save(buffer, format, lossless=True, method=4)
    else:
        image.save(buffer, format, optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def _data_uri(image: Image.Image) -> str:
    return f"data:image/webp;base64,{_base64(image, 'webp')}"


def _img(image: Image.Image, alt: str) -> str:
    return f'<img src="{_data_uri(image)}" width={_css_width(image)} alt="{escape(alt)}">'
