import base64
import io
import json
import re
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from dlcore.figures import explore as module
from dlcore.figures.explore import DESCRIPTION, FRAMES, PALETTE, explore, in_few_colours

WIDGET = "application/vnd.jupyter.widget-view+json"


def shade(a=0, kind="up"):
    """A square as dark as a.

    Only the first paragraph describes the picture.
    """
    sign = {"up": 1, "down": -1}.get(kind, 1)
    return plt.figure(figsize=(0.4, 0.4), facecolor=str(0.5 + sign * a / 10))


def grey(picture):
    return round(picture.convert("L").getpixel((5, 5)) / 255, 1)


def open_uri(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1])))


@pytest.fixture
def show(monkeypatch):
    """Return what a notebook gets that is executed to be stored."""
    monkeypatch.setenv("DLCORE_EXPLORE", "frames")
    return lambda *args, **options: explore(*args, **options)._repr_mimebundle_()[0]


def open_png(png):
    return Image.open(io.BytesIO(base64.b64decode(png)))


def cut(frames):
    """Cut the frames out of their sheet, in the order of the choices."""
    sheet, (width, height) = open_png(frames["sheet"]), frames["frame"]
    return [sheet.crop((x, y, x + width, y + height)) for x, y in frames["places"]]


def undocumented(a):
    return plt.figure()


def forgets(a):
    """Draw, but return nothing."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"draw": undocumented, "a": [1]},
            "draw must have a docstring that describes the picture; got "
            "'undocumented'. It becomes the alternative text.$",
        ),
        ({}, r"parameters must each have at least one value; got \{\}. Write explore"),
        ({"a": []}, "parameters must each have at least one value"),
        (
            {"a": range(6), "kind": ["up"] * 7},
            "parameters must give at most 40 frames; got 6 × 7 = 42. Offer fewer values",
        ),
        ({"a": range(3), "max_frames": 2}, "at most 2 frames; got 3 = 3"),
        (
            {"a": [1], "b": [1], "play": True},
            "play must go with exactly one parameter of numbers",
        ),
        (
            {"kind": ["up"], "play": True},
            "play must go with exactly one parameter of numbers",
        ),
        *(
            ({"a": [1], **bad}, r"a name in start or labels must be one of .* got 'b'")
            for bad in ({"start": {"b": 1}}, {"labels": {"b": "x"}})
        ),
        (
            {"a": [1, 2], "start": {"a": 3}},
            r"start\['a'\] must be one of \[1, 2\]; got 3",
        ),
    ],
)
def test_refuses_what_it_cannot_show(arguments, message):
    arguments = {"draw": shade, **arguments}
    with pytest.raises(ValueError, match=f"^explore: .*{message}"):
        explore(arguments.pop("draw"), **arguments)


@pytest.mark.parametrize("mode", ["frames", "still"])
def test_what_is_stored_was_drawn(mode, monkeypatch):
    monkeypatch.setenv("DLCORE_EXPLORE", mode)
    with pytest.raises(ValueError, match="draw must return a Figure or an Axes; got N"):
        explore(forgets, a=[1])._repr_mimebundle_()


def test_mode_must_be_known(monkeypatch):
    monkeypatch.setenv("DLCORE_EXPLORE", "statik")
    with pytest.raises(ValueError, match=r"DLCORE_EXPLORE must .*; got 'statik'"):
        explore(shade, a=[1])._repr_mimebundle_()


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("kinds", [["up"], ["up", "down"]])
def test_frames_stand_in_the_order_in_which_the_page_counts_them(m, kinds, show):
    frames = show(shade, a=range(m), kind=kinds)[FRAMES]
    assert [grey(picture) for picture in cut(frames)] == [
        round(0.5 + (a if kind == "up" else -a) / 10, 1)
        for a in range(m)
        for kind in kinds
    ]


def test_equal_frames_are_stored_once(show):
    frames = show(shade, a=[0, 1, 2], kind=["up", "down"])[FRAMES]
    assert len({*map(tuple, frames["places"])}) == 5  # up and down agree at 0
    assert open_png(frames["sheet"]).size == (5 * 60, 60)


def test_a_sheet_has_rows_where_it_would_be_too_wide(show, monkeypatch):
    monkeypatch.setattr(module, "MAX_SIDE", 130)
    frames = show(shade, a=range(4))[FRAMES]
    assert frames["places"] == [(0, 0), (60, 0), (0, 60), (60, 60)]
    assert [*map(grey, cut(frames))] == [0.5, 0.6, 0.7, 0.8]


def test_frames_must_fit_a_sheet(show, monkeypatch):
    monkeypatch.setattr(module, "MAX_SIDE", 70)
    with pytest.raises(ValueError, match=r"must fit a sheet .* got 2 of 60 × 60"):
        show(shade, a=range(2))


def test_frames_must_have_one_size(show):
    def grows(a):
        """A square that grows."""
        return plt.figure(figsize=(a, a))

    with pytest.raises(ValueError, match=r"must give pictures of one size; got"):
        show(grows, a=[1, 2])


def test_description_says_what_controls_show():
    explorer = explore(
        shade, a=[0, 1, 2], kind=["up", "down"], start={"a": 2}, labels={"a": "dark"}
    )
    assert explorer.description() == {
        "name": "shade",
        "about": "A square as dark as a.",
        "controls": [
            {"label": "dark", "texts": ["0", "1", "2"], "at": 2, "menu": False},
            {"label": "kind", "texts": ["up", "down"], "at": 0, "menu": True},
        ],
        "play": None,
    }
    assert explore(shade, a=[0, 1], play=True).description()["play"] > 0


@pytest.mark.parametrize("mode", ["live", "frames", "still"])
def test_every_mode_describes_the_figure_alike(mode, monkeypatch):
    monkeypatch.setenv("DLCORE_EXPLORE", mode)
    explorer = explore(shade, a=[0, 1, 2])
    bundle, _ = explorer._repr_mimebundle_()
    assert bundle[DESCRIPTION] == explorer.description()
    assert json.loads(json.dumps(bundle[DESCRIPTION])) == bundle[DESCRIPTION]


def test_still_is_the_frame_of_the_start(show):
    bundle = show(shade, a=[0, 1, 2], start={"a": 2})
    still, last = open_png(bundle["image/png"]), cut(bundle[FRAMES])[2]
    assert still.convert("RGB") == last.convert("RGB")
    assert bundle[FRAMES]["seconds"] > 0


def test_saved_notebook_keeps_one_still(monkeypatch):
    monkeypatch.setenv("DLCORE_EXPLORE", "still")
    bundle, metadata = explore(shade, a=[0, 1, 2], start={"a": 2})._repr_mimebundle_()
    assert set(bundle) == {"image/png", "text/plain", DESCRIPTION}
    assert bundle["text/plain"] == "explore(shade, a: 3 values)"
    still = open_png(bundle["image/png"])
    assert (still.format, grey(still)) == ("PNG", 0.7)
    assert metadata == {"image/png": {"width": 40}}  # 0.4 inches of 100 CSS pixels


def test_live_kernel_gets_a_widget_and_a_still(monkeypatch):
    monkeypatch.delenv("DLCORE_EXPLORE", raising=False)
    bundle, _ = explore(shade, a=[0, 1])._repr_mimebundle_()
    assert set(bundle) == {WIDGET, "image/png", "text/plain", DESCRIPTION}
    assert bundle["text/plain"] == "explore(shade, a: 2 values)"


def picture(widget):
    (image,) = Picture(widget.children[0].value).images
    return grey(open_uri(image["src"])), image["alt"]


class Picture(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.images, self.said = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.images.append(dict(attrs))
        else:
            assert (tag, attrs) == ("p", [("role", "alert")])

    def handle_data(self, data):
        self.said.append(data)


def test_moving_a_live_control_redraws():
    widget = explore(
        shade, a=[0, 1, 2], kind=["up", "down"], start={"a": 1}, labels={"a": "dark"}
    ).widget()
    _, slider, switch = widget.children
    assert (slider.description, switch.description) == ("dark", "kind")
    assert picture(widget) == (0.6, "A square as dark as a. (dark = 1, kind = up)")
    slider.value = 2
    assert picture(widget) == (0.7, "A square as dark as a. (dark = 2, kind = up)")
    switch.value = "down"
    assert picture(widget) == (0.3, "A square as dark as a. (dark = 2, kind = down)")


def test_between_listed_numbers_a_live_figure_is_drawn_too():
    widget = explore(shade, a=[0.0, 1.0, 4.0], kind=["up"]).widget()
    widget.children[1].value = 2.57
    assert picture(widget) == (0.8, "A square as dark as a. (a = 2.57, kind = up)")


def only_listed(a, kind="up"):
    """A square that is drawn for some numbers only."""
    opened = plt.figure(figsize=(0.4, 0.4))
    if a not in (1, 2, 8) or (kind == "picky" and a != 2):
        raise KeyError(f"no <{a}>")
    opened.set_facecolor(str(a / 10))
    return opened


def said(widget):
    """Return what stands in the figure as text."""
    return Picture(widget.children[0].value).said


def test_a_drawing_that_raises_between_stops_goes_to_the_nearest_and_says_so():
    widget = explore(only_listed, a=[1, 2, 8], labels={"a": "dark"}).widget()
    slider = widget.children[1]
    slider.value = 6.0  # nearer to 8 on a logarithmic track
    assert slider.value == 8
    assert picture(widget) == (
        0.8,
        "A square that is drawn for some numbers only. (dark = 8)",
    )
    assert said(widget) == [
        "only_listed(a=6) raised KeyError: 'no <6>'",
        "This is dark = 8, the nearest that is listed.",
    ]
    slider.value = 2
    assert picture(widget)[0] == 0.2
    assert said(widget) == []
    assert plt.get_fignums() == []


def test_a_switch_brings_a_slider_back_to_what_is_listed():
    asked = []

    def draw(a, kind):
        """A square."""
        asked.append((a, kind))
        if kind == "down" and a != round(a):
            raise ValueError("whole")
        return shade(a, kind)

    widget = explore(draw, a=[0.0, 1.0, 4.0], kind=["up", "down"]).widget()
    _, slider, switch = widget.children
    slider.value = 1.3
    assert said(widget) == []
    switch.value = "down"
    assert (slider.value, switch.value) == (1, "down")
    assert picture(widget) == (0.4, "A square. (a = 1, kind = down)")
    assert said(widget)[1] == "This is a = 1, the nearest that is listed."
    assert asked[2:] == [(1.3, "down"), (1, "down")]  # drawn once on the way back


def test_a_drawing_that_raises_at_a_stop_says_so_in_the_figure(monkeypatch):
    monkeypatch.delenv("DLCORE_EXPLORE", raising=False)
    widget = explore(only_listed, a=[2, 1], kind=["up", "picky"]).widget()
    _, slider, switch = widget.children
    switch.value = "picky"
    slider.value = 1
    assert slider.value == 1
    assert "<img" not in widget.children[0].value
    assert said(widget) == ["only_listed(a=1, kind='picky') raised KeyError: 'no <1>'"]
    slider.value = 2
    assert picture(widget)[0] == 0.2
    assert plt.get_fignums() == []


@pytest.mark.parametrize("draw", [only_listed, forgets])
def test_a_figure_that_cannot_even_begin_says_so_and_can_be_moved(draw, monkeypatch):
    monkeypatch.delenv("DLCORE_EXPLORE", raising=False)
    bundle, _ = explore(draw, a=[3, 1, 2])._repr_mimebundle_()
    assert set(bundle) == {WIDGET, "text/plain"}
    assert re.match(rf"{draw.__name__}\(a=3\) raised \w+Error: ", bundle["text/plain"])
    widget = explore(draw, a=[3, 1, 2]).widget()
    assert said(widget) == [bundle["text/plain"]]
    if draw is only_listed:
        widget.children[1].value = 2
        assert picture(widget)[0] == 0.2
    else:
        assert "draw must return a Figure or an Axes; got None." in said(widget)[0]
    assert plt.get_fignums() == []


@pytest.mark.parametrize("mode", ["frames", "still"])
def test_a_drawing_that_raises_is_not_stored_and_leaves_nothing_open(mode, monkeypatch):
    monkeypatch.setenv("DLCORE_EXPLORE", mode)
    with pytest.raises(KeyError, match="no <3>"):
        explore(only_listed, a=[3, 1])._repr_mimebundle_()
    assert plt.get_fignums() == []


@pytest.mark.parametrize("slow", [True, False])
def test_slow_drawings_wait_until_a_slider_is_let_go(slow, monkeypatch):
    monkeypatch.setattr(module, "_SLOW", 0 if slow else 60)
    widget = explore(shade, a=[0, 1, 2], kind=["up", "down"]).widget()
    assert widget.children[1].continuous_update is not slow


def test_live_player_moves_the_slider_from_where_it_starts():
    widget = explore(shade, a=[0, 1, 2], start={"a": 1}, play=True).widget()
    player, slider = widget.children[1].children
    assert (player.value, slider.value) == (1, 1)
    player.value = player.max
    assert slider.value == 2
    assert picture(widget)[0] == 0.7
    slider.index = 0
    assert player.value == 0


def test_live_player_leaves_menus_alone():
    choices = {"kind": ["up", "down"], "a": [0, 1, 2]}
    _, menu, row = explore(shade, **choices, play=True).widget().children
    player, slider = row.children
    player.value = 1
    assert (menu.value, slider.value) == ("up", 1)


@pytest.mark.parametrize("mode", ["live", "frames", "still"])
def test_figures_are_closed(mode, monkeypatch):
    monkeypatch.setenv("DLCORE_EXPLORE", mode)
    before = plt.get_fignums()
    explore(shade, a=[0, 1])._repr_mimebundle_()
    assert plt.get_fignums() == before


def test_axes_stand_for_their_figure():
    def draw(a):
        """A plot."""
        return plt.subplots(figsize=(1, 1))[1]

    assert explore(draw, a=[1]).image({"a": 1}).size == (150, 150)
    assert plt.get_fignums() == []


def test_numpy_values_are_as_good_as_numbers():
    got = explore(shade, a=np.arange(3), start={"a": np.int64(1)})
    same = explore(shade, a=[0, 1, 2], start={"a": 1})
    assert got.description() == same.description()
    assert explore(shade, a=np.linspace(0, 1, 3)).values == {"a": [0.0, 0.5, 1.0]}


def test_numbers_read_well():
    def draw(a):
        """A square."""
        return shade()

    (control,) = explore(draw, a=[-1, 0.25, -1e-7, 10**6]).description()["controls"]
    assert control["texts"] == ["−1", "0.25", "−1e−07", "1000000"]


def test_frames_have_few_colours(show):
    def draw(a):
        """All colours."""
        fig = Figure(figsize=(2, 2))
        fig.add_axes((0, 0, 1, 1)).imshow(np.random.default_rng(0).random((50, 50, 3)))
        return fig

    frame = cut(show(draw, a=[1])[FRAMES])[0].convert("RGB")
    assert 2 < len(frame.getcolors(maxcolors=10**6)) <= PALETTE <= 256


def test_a_tint_is_the_same_in_every_frame(show):
    def draw(a):
        """A pale square that grows, and lines in many shades."""
        fig = Figure(figsize=(2, 2))
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, 1), ylim=(0, 1))
        ax.axis("off")
        ax.add_patch(Rectangle((0, 0), a, 0.8, color=(0.92, 0.95, 0.98)))
        for shade in range(20):
            grey = str(0.9 + shade * a / 400)
            ax.plot([0, 1], [1 - shade / 80] * 2, color=grey)
        return fig

    for frame in cut(show(draw, a=[0.2, 0.5, 0.9])[FRAMES]):
        colours = frame.convert("RGB").getcolors(10**6)
        common = {colour for count, colour in colours if count > 2000}
        assert {(255, 255, 255), (235, 242, 250)} <= common


def test_common_colours_stay_exactly_what_they_are():
    rng = np.random.default_rng(0)
    pixels = np.full((60, 80, 3), 255, dtype=np.uint8)  # paper
    pixels[:20] = rng.integers(235, 256, size=(20, 80, 3))  # and pale tints
    (image,) = in_few_colours([Image.fromarray(pixels)])
    seen = np.asarray(image.convert("RGB"))
    assert (seen[20:] == 255).all()
    assert np.abs(seen.astype(int) - pixels).max() < 12
    assert len(image.getcolors()) <= 256


def beside(what):
    """A curve with a text beside its axes, or in them."""
    fig, axes = plt.subplots(1, 2, figsize=(4, 2), layout="constrained")
    axes[0].plot([0, 1], [0, 2e5 if what == "wide numbers" else 1])
    axes[1].set_title("one\ntwo" if what == "two lines" else what)
    axes[1].set_ylabel("height" if what == "label" else "")
    far = 1.2 if what == "text outside" else 0.5
    axes[1].text(far, 0.5, what, transform=axes[1].transAxes)
    if what == "legend outside":
        axes[0].plot([0, 1], [1, 0], label="down")
        axes[0].legend(loc="upper left", bbox_to_anchor=(1, 1))
    if what == "over all":
        fig.suptitle("over all")
    if what == "no axis":
        axes[0].axis("off")
    return fig


def test_frames_share_a_layout_only_where_it_is_theirs():
    kinds = ["plain", "in the axes", "wide numbers", "two lines", "label"]
    kinds += ["text outside", "legend outside", "over all", "no axis"]
    together = explore(beside, what=kinds)
    for what in kinds:
        alone = explore(beside, what=[what]).image({"what": what})
        assert together.image({"what": what}) == alone, what
    assert len(together._layouts) == len(kinds) - 1
