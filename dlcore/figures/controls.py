"""Controls of figures to move: what a parameter can be, and how a reader sets it."""

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log10
from typing import Any, TypeAlias

__all__ = ["Control", "Value", "as_text", "track"]

#: What a parameter can be: a number or a name.
Value: TypeAlias = float | str

_CLEARLY = 1.25  # how much more even a logarithmic track must be
_LEAST = 0.1  # of an even distance: what lies closer cannot be told apart


def as_text(value: Value) -> str:
    """Return a value as readers see it.

    Example:
        >>> [as_text(v) for v in (-3, 0.5, 1e-7, "ReLU")]
        ['−3', '0.5', '1e−07', 'ReLU']
    """
    if isinstance(value, str):
        return value
    return f"{value:{'d' if isinstance(value, int) else 'g'}}".replace("-", "−")


def track(numbers: Sequence[float]) -> tuple[str, list[float]]:
    """Return how the track of a slider is spaced, and where on it the numbers are.

    It is "linear" or, where that is clearly more even, "log"; and "even", stop by stop,
    where both leave two numbers too close to each other, or where they go up and down.

    Args:
        numbers: where the slider stops, from its left end to its right end.

    Returns:
        The spacing, and the place of each number, from 0 to 1.

    Example:
        >>> track([0, 1, 4])
        ('linear', [0.0, 0.25, 1.0])
        >>> track([1, 10, 1000])
        ('log', [0.0, 0.333, 1.0])
        >>> track([0, 1e-6, 1e-3, 1])
        ('even', [0.0, 0.333, 0.667, 1.0])
    """
    evenly = _places(range(len(numbers)))
    linear = _places(numbers)
    log = _places([log10(x) for x in numbers]) if min(numbers) > 0 else []
    kind, places = "linear", linear
    if _evenness(log) > _CLEARLY * _evenness(linear):
        kind, places = "log", log
    if _evenness(places) < _LEAST:
        kind, places = "even", evenly
    return kind, [round(place, 3) for place in places]


def _places(numbers: Sequence[float]) -> list[float]:
    """Return where numbers are between the first, at 0, and the last, at 1."""
    first, length = numbers[0], numbers[-1] - numbers[0]
    return [(x - first) / length + 0.0 if length else 0.0 for x in numbers]


def _evenness(places: Sequence[float]) -> float:
    """Return the least distance of neighbours, 1 if all are equal."""
    gaps = [b - a for a, b in pairwise(places)]
    return min(gaps, default=0.0) * len(gaps)


class Control:
    """A parameter of a figure: what it can be, and its widget for a live kernel.

    Two values have a switch, names a menu, numbers a slider. With a kernel a slider goes
    on between the numbers that are listed, unless its track is even: there is no other
    track then on which a reader could tell them apart.

    Args:
        label: what the reader sees beside it.
        values: what is listed.
        first: where it starts.
        stops: let a slider stop at what is listed only.

    Example:
        >>> control = Control("step size", [0.1, 0.5, 1.0], 0.1)
        >>> control.is_menu, control.spacing, control.nearest(0.6)
        (False, 'linear', 0.5)
        >>> control.read(0.6), control.read(0.5000001)
        (0.6, 0.5)
    """

    def __init__(
        self, label: str, values: Sequence[Value], first: Value, stops: bool = False
    ) -> None:
        self.label, self.values, self.first = label, values, first
        self.is_menu = isinstance(values[0], str)
        self.is_switch = len(values) == 2 and not stops
        self.is_whole = all(isinstance(v, int) for v in values)
        self.spacing = "even" if self.is_menu or stops else track(self.numbers)[0]
        self.form = ".3g" if self.spacing == "log" else f".{self._decimals()}f"
        self.form = "d" if self.is_whole else self.form

    @property
    def numbers(self) -> list[float]:
        """The values that are numbers."""
        return [v for v in self.values if not isinstance(v, str)]

    def nearest(self, value: Value) -> Value:
        """Return the listed value that is nearest, on the track of the slider."""
        if isinstance(value, str):
            return value
        place = log10 if self.spacing == "log" else float
        return min(self.numbers, key=lambda x: abs(place(x) - place(value)))

    def read(self, value: Value) -> Value:
        """Return what a widget's value means: wholes are whole, listed values exact.

        A number that reads as a listed one does is that one.
        """
        if isinstance(value, str):
            return value
        if self.is_whole:
            return round(value)
        stop: Any = self.nearest(value)
        return stop if self._reads(value) == self._reads(stop) else value

    def _reads(self, number: float) -> str:
        return format(number, f"z{self.form}")

    def _decimals(self) -> int:
        """Return how many a slider shows: two or three digits, more if some are listed."""
        span = max(self.numbers, default=0) - min(self.numbers, default=0)
        least = max(2 - floor(log10(span)), 0) if span else 0
        return max(least, *(min(_digits(x), least + 2) for x in self.numbers), 0)

    def widget(self) -> Any:
        """Return the widget that sets the parameter in a live notebook."""
        import ipywidgets as widgets

        shared: dict[str, Any] = {
            "value": self.first,
            "description": self.label,
            "style": {"description_width": "initial"},
            "layout": {"width": "32em"},
        }
        if self.is_switch or self.is_menu or self.spacing == "even":
            shared["options"] = [(as_text(v), v) for v in self.values]
            if self.is_switch:
                shared["style"] |= {"button_width": "auto"}  # long names are seen whole
                shared["layout"] = {"width": "auto"}
                return widgets.ToggleButtons(**shared)
            kind = widgets.Dropdown if self.is_menu else widgets.SelectionSlider
            return kind(**shared)
        low, high = min(self.numbers), max(self.numbers)
        shared["readout_format"] = self.form
        if self.spacing == "log":
            low, high = log10(low) - 1e-9, log10(high) + 1e-9  # both ends are inside
            step = (high - low) / 500
            return widgets.FloatLogSlider(min=low, max=high, step=step, **shared)
        if self.is_whole:
            return widgets.IntSlider(min=low, max=high, **shared)
        step = 10.0 ** -self._decimals()
        return widgets.FloatSlider(min=low, max=high, step=step, **shared)


def _digits(x: float) -> int:
    """Count the digits behind the point of a number, as readers see it."""
    return len(as_text(x).partition(".")[2])
