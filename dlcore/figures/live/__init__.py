"""Figures that compute: one call, alive in a kernel and in a page that has none.

``live("edge", draw, X=X, y=y)`` shows the front-end module ``edge.js`` over the data of
the call. In JupyterLab it is a widget, whose :attr:`Live.state` says in the kernel what
the reader has done. A page of the book runs the same module over the data that the cell
stored, without a kernel and without a network. A saved notebook keeps a still,
``draw(X=X, y=y)``.

A module is a file of this folder that exports ``render({ model, el })``, the interface of
anywidget. It may import its neighbours: ``import { dense } from "./tensors.js";``. Pages
are opened from folders too, where browsers import no files, so what a module needs is put
together here into one text.
"""

import base64
import inspect
import io
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy import ndarray
from PIL import Image

from dlcore.checks import check, check_one_of
from dlcore.figures.explore import FRAME_SCALE, in_few_colours
from dlcore.int8 import to_int8

__all__ = [
    "LIVE",
    "Live",
    "as_module",
    "as_script",
    "figures",
    "live",
    "quantised",
    "stored_weights",
    "stylesheet",
]

#: The MIME type of what a page needs to show a figure.
LIVE = "application/vnd.dlcore.live+json"

_FOLDER = Path(__file__).parent
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";', re.M)
_EXPORT = re.compile(r"^export (?=(?:const|function|class) (\w+))", re.M)
_FEW = 256  # numbers that are stored as text, to be read; more are stored as bytes


def live(figure: str, draw: Callable[..., Figure], **data: Any) -> "Live":
    """Show a figure that computes in the page.

    Args:
        figure: the front-end module that draws it.
        draw: makes the still from the same data. The first paragraph of its docstring
            describes the figure: it is the alternative text, so it is required.
        **data: what the module works on: numbers, texts, lists and dictionaries of them,
            and arrays.

    Example:
        >>> def points(X, y):
        ...     "Two points."
        ...     return plt.figure()
        >>> live("edge", points, X=np.eye(2), y=np.array([1.0, -1.0]))
        live('edge', points)
    """
    return Live(figure, draw, data)


class Live:
    """A figure that computes, as :func:`live` makes it; notebooks display it.

    Example:
        >>> def points(X, y):
        ...     "Two points."
        ...     return plt.figure()
        >>> shown = live("edge", points, X=np.eye(2), y=np.array([1.0, -1.0]))
        >>> shown.description()["about"], shown.state
        ('Two points.', {})
    """

    def __init__(
        self, figure: str, draw: Callable[..., Figure], data: dict[str, Any]
    ) -> None:
        check_one_of("live: figure", figure, figures())
        self.figure, self.draw, self.data = figure, draw, data
        self.name = getattr(draw, "__name__", "draw")
        self.about = (inspect.getdoc(draw) or "").split("\n\n")[0].replace("\n", " ")
        hint = "It becomes the alternative text."
        must = "have a docstring that describes the figure"
        check(bool(self.about), "live: draw", must, repr(self.name), hint)
        self._widget: Any = None

    def __repr__(self) -> str:
        return f"live({self.figure!r}, {self.name})"

    @property
    def state(self) -> dict[str, Any]:
        """What the reader has done with the figure; nothing before it is shown."""
        return dict(self._widget.state) if self._widget else {}

    def description(self) -> dict[str, Any]:
        """Say what a page needs: the module, the data, the alternative text."""
        stored = {name: _stored(value) for name, value in self.data.items()}
        names = {"figure": self.figure, "name": self.name, "about": self.about}
        return {**names, "data": stored}

    def widget(self) -> Any:
        """Return the figure for a live kernel: a widget that runs the module."""
        import anywidget
        import traitlets

        class Shown(anywidget.AnyWidget):
            _esm = as_module(self.figure)
            _css = stylesheet()
            data = traitlets.Dict().tag(sync=True)
            state = traitlets.Dict().tag(sync=True)
            about = traitlets.Unicode().tag(sync=True)

        stored = self.description()
        self._widget = Shown(data=stored["data"], about=self.about)
        return self._widget

    def _still(self) -> Image.Image:
        drawn = self.draw(**self.data)
        check(isinstance(drawn, Figure), "live: draw", "return a Figure", drawn)
        plt.close(drawn)
        buffer = io.BytesIO()
        drawn.savefig(buffer, format="png", dpi=FRAME_SCALE * drawn.dpi)
        (still,) = in_few_colours([Image.open(buffer).convert("RGB")])
        return still

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        still, png = self._still(), io.BytesIO()
        still.save(png, "png", optimize=True)
        bundle: dict[str, Any] = {
            "image/png": base64.b64encode(png.getvalue()).decode(),
            "text/plain": repr(self),
            LIVE: self.description(),
        }
        if os.environ.get("DLCORE_EXPLORE", "live") == "live":
            bundle = {**self.widget()._repr_mimebundle_()[0], **bundle}
        return bundle, {"image/png": {"width": round(still.width / FRAME_SCALE)}}


def quantised(W: ndarray) -> dict[str, Any]:
    """Store weights as whole numbers from −127 to 127, with a scale for each first index.

    A page gets a quarter of the bytes, and numbers within half a scale of the weights.

    Example:
        >>> stored = quantised(np.array([[1.0, -0.5], [0.0, 0.0]]))
        >>> np.frombuffer(base64.b64decode(stored["i8"]), np.int8).tolist()
        [127, -64, 0, 0]
    """
    whole, scales = to_int8(np.asarray(W))
    few = len(scales) <= 16  # to be read; a row of text for each would weigh too much
    return {
        "shape": [*whole.shape],
        "i8": base64.b64encode(whole.tobytes()).decode(),
        "scales": [float(f"{s:.7g}") for s in scales] if few else _floats(scales),
    }


def stored_weights(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Store the weights of a network, as its ``state_dict()`` names them, for a page.

    Matrices and kernels are :func:`quantised`; vectors are few and stay floats.

    Example:
        >>> stored = stored_weights({"weight": np.eye(2), "bias": np.zeros(2)})
        >>> [*stored["weight"]], [*stored["bias"]]
        (['shape', 'i8', 'scales'], ['shape', 'f32'])
    """
    arrays = {name: _array(value) for name, value in parameters.items()}
    return {
        name: quantised(array) if array.ndim > 1 else _floats(array)
        for name, array in arrays.items()
    }


def _array(value: Any) -> ndarray:
    return np.asarray(value.detach() if hasattr(value, "detach") else value)


def _floats(array: ndarray) -> dict[str, Any]:
    numbers = base64.b64encode(array.astype("<f4").tobytes()).decode()
    return {"shape": [*array.shape], "f32": numbers}


def _stored(value: Any) -> Any:
    """Turn arrays, also inside of lists and dictionaries, into what JSON holds."""
    if isinstance(value, dict):
        return {key: _stored(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_stored(part) for part in value]
    array = _array(value)
    if array.ndim == 0 or array.size <= _FEW or array.dtype.kind not in "fiub":
        return array.tolist()
    if array.dtype == np.uint8:
        data = base64.b64encode(array.tobytes()).decode()
        return {"shape": [*array.shape], "u8": data}
    return _floats(array)


def figures() -> list[str]:
    """List the modules that draw a figure.

    Example:
        >>> "edge" in figures()
        True
    """
    files = sorted(_FOLDER.glob("*.js"))
    return [f.stem for f in files if "export function render(" in _source(f.stem)]


def _source(name: str) -> str:
    return (_FOLDER / f"{name}.js").read_text(encoding="utf-8")


def _parts(name: str) -> list[str]:
    """List what a module imports, directly or not, and itself last."""
    found: list[str] = []
    for _, part in _IMPORT.findall(_source(name)):
        found += [p for p in _parts(part) if p not in found]
    return [*found, name]


def _put_together(name: str) -> str:
    """Return one text in which each module is an object of what it exports."""
    texts = []
    for part in _parts(name):
        source = _IMPORT.sub(r"const \1 = $\2;", _source(part))
        exports = ", ".join(_EXPORT.findall(source))
        body = _EXPORT.sub("", source)
        texts.append(
            f"const ${part} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();"
        )
    return "\n".join(texts)


def as_module(name: str) -> str:
    """Return a module, with what it imports, as one module of the anywidget kind.

    Example:
        >>> as_module("edge").splitlines()[-1]
        'export default { render: $edge.render };'
    """
    return f"{_put_together(name)}\nexport default {{ render: ${name}.render }};\n"


def as_script(name: str, holder: str = "globalThis") -> str:
    """Return a module, with what it imports, as a script that a page from a folder loads.

    Args:
        name: of the module.
        holder: the object that gets what the module exports, under its name.

    Example:
        >>> as_script("edge").splitlines()[-2]
        'globalThis.edge = $edge;'
    """
    return f"(() => {{\n{_put_together(name)}\n{holder}.{name} = ${name};\n}})();\n"


def stylesheet() -> str:
    """Return the look of live figures, the same in JupyterLab and in the book.

    Example:
        >>> ".live" in stylesheet()
        True
    """
    return (_FOLDER / "live.css").read_text(encoding="utf-8")
