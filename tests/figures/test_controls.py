from itertools import pairwise

import ipywidgets as widgets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcore.figures.controls import Control, as_text, track


def control(values, first=None, **options):
    return Control("a", values, values[0] if first is None else first, **options)


# How a track is spaced.


@pytest.mark.parametrize(
    ("numbers", "spacing", "places"),
    [
        ([0, 1, 4], "linear", [0, 0.25, 1]),
        ([4, 1, 0], "linear", [0, 0.75, 1]),
        ([-3, -1, 1], "linear", [0, 0.5, 1]),
        ([1, 10, 1000], "log", [0, 0.333, 1]),
        ([0.4, 0.1, 0.05], "log", [0, 0.667, 1]),
        ([10, 11, 12], "linear", [0, 0.5, 1]),  # both are even: it is not clearly so
        ([0, 1e-6, 1e-3, 1], "even", [0, 0.333, 0.667, 1]),
        ([1, 3, 2], "even", [0, 0.5, 1]),
        ([5], "even", [0]),
        ([5, 5, 5], "even", [0, 0.5, 1]),
    ],
)
def test_track_is_spaced_as_the_numbers_are(numbers, spacing, places):
    assert track(numbers) == (spacing, places)
    assert "-0.0" not in str(track(numbers))


@given(
    st.lists(
        st.floats(-1e6, 1e6) | st.integers(-99, 99), min_size=2, max_size=9, unique=True
    )
)
def test_stops_of_a_track_can_be_told_apart(numbers):
    _, places = track(numbers)
    assert (places[0], places[-1]) == (0, 1)
    assert all(b - a >= 0.09 / (len(numbers) - 1) for a, b in pairwise(places))


@given(st.lists(st.integers(-20, 20), min_size=3, max_size=9, unique=True).map(sorted))
def test_numbers_on_a_logarithmic_track_may_be_turned_around(exponents):
    numbers = [2.0**e for e in exponents]
    spacing, places = track(numbers)
    backwards, mirrored = track(numbers[::-1])
    assert spacing == backwards
    assert mirrored == pytest.approx([1 - place for place in places[::-1]], abs=2e-3)


# Which widget it is.


@pytest.mark.parametrize(
    ("values", "options", "kind"),
    [
        ([0.0, 0.5, 2.0], {}, widgets.FloatSlider),
        ([0, 1, 2], {}, widgets.IntSlider),
        ([1, 10, 100], {}, widgets.FloatLogSlider),
        ([0, 1e-6, 1e-3], {}, widgets.SelectionSlider),
        ([0, 1, 2], {"stops": True}, widgets.SelectionSlider),
        ([5], {}, widgets.SelectionSlider),
        (["x", "y", "z"], {}, widgets.Dropdown),
        (["x", "y"], {}, widgets.ToggleButtons),
        ([100, 800], {}, widgets.ToggleButtons),
        ([0, 1], {"stops": True}, widgets.SelectionSlider),  # that plays
        (["x"], {}, widgets.Dropdown),
    ],
)
def test_every_kind_of_values_has_its_widget(values, options, kind):
    for first in values:
        widget = control(values, first, **options).widget()
        assert type(widget) is kind
        assert (widget.value, widget.description) == (first, "a")


def test_a_switch_names_both_values_and_shows_them_whole():
    widget = control([-0.5, 800]).widget()
    assert [text for text, _ in widget.options] == ["−0.5", "800"]
    assert widget.style.button_width == "auto"
    widget.value = 800
    assert widget.index == 1


# What its value means.


def reach(control, value):
    """Set the widget; return what the drawing gets."""
    widget = control.widget()
    widget.value = value
    return control.read(widget.value)


def test_numbers_between_those_that_are_listed_can_be_reached():
    linear, log = control([0.0, 0.5, 2.0]), control([0.01, 0.1, 10.0])
    assert reach(linear, 1.37) == 1.37
    assert reach(log, 0.37) == 0.37
    assert reach(linear, 99) == 2  # and none beyond the ends
    assert reach(log, 0.001) == 0.01


def test_steps_are_fine_enough_to_be_continuous():
    for values in (
        [0.0, 0.5, 2.0],
        [-1.0, 0.3, 5.0],
        [0.001, 0.03, 0.1],
        [1e4, 2e4, 9e4],
    ):
        widget = control(values).widget()
        assert widget.step <= (widget.max - widget.min) / 100


@given(
    st.lists(st.integers(-5000, 5000), min_size=3, max_size=8, unique=True),
    st.integers(-3, 3),
)
def test_listed_numbers_can_be_reached_exactly(numbers, exponent):
    values = [n * 10.0**exponent for n in sorted(numbers)]
    for value in values:
        assert reach(control(values), value) == value


@pytest.mark.parametrize(
    ("values", "near", "stop"),
    [
        ([-1.0, 0.0, 1.0], -2e-17, 0.0),  # a slider adds up its steps
        ([0.1, 0.5, 1.0], 0.1 + 0.2 + 0.2, 0.5),
        ([0.1, 1.0, 10.0], 10 ** (1 / 1e7), 1.0),
        ([1, 2.5, 9], 1.0000001, 1),
    ],
)
def test_what_reads_as_a_listed_number_is_that_number(values, near, stop):
    got = control(values).read(near)
    assert (got, type(got), str(got)) == (stop, type(stop), str(stop))


@given(st.floats(1, 1000))
def test_whole_numbers_stay_whole(value):
    for values in [1, 500, 1000], [1, 30, 1000]:
        got = control(values).read(value)
        assert type(got) is int
        assert abs(got - value) <= 0.5


def test_ends_of_a_logarithmic_slider_are_inside():
    for values in [0.3, 1.0, 30.0], [3, 30, 700], [125, 500, 2000]:
        for end in (values[0], values[-1]):
            assert reach(control(values), end) == end


def test_nearest_is_measured_on_the_track():
    assert control([0.0, 1.0, 4.0]).nearest(2.4) == 1
    assert control([1, 10, 100]).nearest(40) == 100
    assert control([0, 1e-6, 1.0]).nearest(0.4) == 1e-6
    assert control(["x", "y"]).nearest("y") == "y"


def test_readout_shows_listed_numbers_whole():
    for values in [0.0, 0.125, 1.0], [0.25, 16.5, 64.0], [0.0, 0.9, 0.999]:
        form = control(values).widget().readout_format
        assert [float(format(v, form)) for v in values] == values


def test_texts_are_as_readers_write_them():
    assert [as_text(v) for v in (-3, 0.25, -1e-7, 10**6, 1e6, "π/4")] == [
        "−3", "0.25", "−1e−07", "1000000", "1e+06", "π/4",
    ]  # fmt: skip
