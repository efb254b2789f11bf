"""Data space and weight space, in Chromium, against dlcore's version space."""

import json
import re
from urllib.parse import unquote

import numpy as np
import pytest
from playwright.sync_api import expect

from dlcore import data
from dlcore.connectionism import perceptron
from dlcore.figures.live import as_script


@pytest.fixture(scope="module")
def call(blank):
    """Call a function of the module in a page."""
    blank.add_script_tag(content=as_script("versions"))

    def run(code, X, y):
        rows = np.column_stack([X, y]).tolist()
        points = [dict(zip(("x", "y", "label"), row, strict=True)) for row in rows]
        return blank.evaluate(f"(points) => versions.{code}", points)

    return run


def some_points(seed):
    """Separable through the origin, or any; whole numbers, so that ties happen."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        X, y, _ = data.separable(int(rng.integers(1, 15)), 2, 0.05, rng, spread=1.0)
        return X * rng.uniform(0.3, 3, size=(len(X), 1)), y
    X = rng.integers(-2, 3, size=(int(rng.integers(1, 5)), 2)).astype(float)
    return X, rng.choice([-1.0, 1.0], size=len(X))


@pytest.mark.parametrize("seed", range(60))
def test_the_arc_is_that_of_dlcore(call, seed):
    X, y = some_points(seed)
    found, arc = call("versionArc(points)", X, y), perceptron.version_arc(X, y)
    assert (found is None) == (arc is None)
    if arc is not None:
        low, high = arc
        assert np.isclose(found["high"] - found["low"], high - low, atol=1e-9)
        turns = (found["low"] - low) / (2 * np.pi)  # an angle may be a turn off
        assert np.isclose(turns, round(turns), atol=1e-9)
        edges = np.column_stack([np.cos([low, high]), np.sin([low, high])])
        assert np.allclose((edges * X[found["ends"]]).sum(axis=1), 0, atol=1e-9)


def test_sets_of_both_kinds_were_compared():
    empty = [perceptron.version_arc(*some_points(seed)) is None for seed in range(60)]
    assert 10 < sum(empty) < 25


@pytest.mark.parametrize("seed", range(60))
def test_what_leaves_nothing_is_a_few_examples(call, seed):
    X, y = some_points(seed)
    if perceptron.version_arc(X, y) is None:
        few = call("conflict(points)", X, y)
        assert 1 <= len(few) <= 3
        assert perceptron.version_arc(X[few], y[few]) is None
        for i in few:  # none of them is superfluous
            rest = [k for k in few if k != i]
            assert not rest or perceptron.version_arc(X[rest], y[rest]) is not None


@pytest.mark.parametrize("seed", range(12))
def test_mistakes_are_those_of_the_unit(call, seed):
    X, y = some_points(seed)
    for angle in [0.3, 2.0, -1.2]:
        w = np.array([np.cos(angle), np.sin(angle)])
        wrong = np.flatnonzero(perceptron.predict(w, 0.0, X) != y)
        assert call(f"mistakes(points, {angle})", X, y) == wrong.tolist()


def test_an_example_on_the_edge_is_wrong(call):
    assert call("mistakes(points, 0)", [[0.0, 1.0], [1.0, 1.0]], [1, 1]) == [0]


def test_without_examples_every_direction_is_allowed(call):
    found = call("versionArc([])", [[0.0, 0.0]], [1])
    assert found["high"] - found["low"] == pytest.approx(2 * np.pi)


X, Y, _ = data.separable(6, 2, 0.3, np.random.default_rng(3), spread=1.0)


@pytest.fixture(params=["desktop", "phone"])
def figure(show, request):
    size = {"desktop": (1300, 900), "phone": (390, 844)}[request.param]
    return show("versions", size, request.param == "phone", X=X, y=Y, shown=4)


def shown(figure):
    """Return the arc that the figure says, in radians."""
    here = figure.locator(".live")
    return [float(here.get_attribute(f"data-{end}")) for end in ("low", "high")]


def kept(figure):
    """Return the points and labels that the address keeps."""
    figure.wait_for_url("**#still=*")
    figure.wait_for_timeout(400)
    rows = np.array(json.loads(unquote(figure.url.split("=", 1)[1]))["points"])
    return rows[:, :2], rows[:, 2]


def drag(figure, element, by):
    box = element.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    figure.mouse.move(x, y)
    figure.mouse.down()
    figure.mouse.move(x + by[0], y + by[1], steps=5)
    figure.mouse.up()


def test_it_starts_with_the_arc_of_the_first_examples(figure):
    assert shown(figure) == pytest.approx(perceptron.version_arc(X[:4], Y[:4]))
    for s in (5, 6):
        figure.get_by_role("button", name=f"Example {s} of 6").click()
        assert shown(figure) == pytest.approx(perceptron.version_arc(X[:s], Y[:s]))
    expect(figure.get_by_role("button", name="No more")).to_be_disabled()
    figure.get_by_role("button", name="Our examples").click()
    assert shown(figure) == pytest.approx(perceptron.version_arc(X[:4], Y[:4]))
    wide = figure.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert wide, "the figure is wider than the page"


def test_an_example_that_is_moved_moves_its_cut(figure):
    cut, before = figure.locator(".live-cut").first, shown(figure)
    place = cut.get_attribute("d")
    drag(figure, figure.locator(".live-point").first, (25, 10))
    expect(cut).not_to_have_attribute("d", place)
    expect(cut).to_have_class(re.compile("held"))
    arc = perceptron.version_arc(*kept(figure))
    assert shown(figure) == pytest.approx(arc, abs=3e-3)
    assert shown(figure) != pytest.approx(before, abs=3e-3)


def test_examples_are_added_until_nothing_is_left(figure):
    here, points = figure.locator(".live"), figure.locator(".live-point")
    points.nth(0).focus()
    points.nth(0).press("Delete")
    expect(points).to_have_count(3)
    figure.get_by_role("button", name="orange").click()
    ground = figure.locator(".live-ground").first
    for x, y in [(0.1, 0.3), (0.9, 0.3), (0.5, 0.9)]:  # one label, round the origin
        box = ground.bounding_box()
        ground.click(position={"x": x * box["width"], "y": y * box["height"]})
    expect(points).to_have_count(6)
    assert perceptron.version_arc(*kept(figure)) is None
    expect(here).to_have_attribute("data-low", "")
    expect(figure.locator(".live-status")).to_contain_text("No direction is left")
    expect(figure.get_by_role("status")).to_contain_text("No direction is left")
    figure.get_by_role("button", name="Clear").click()
    expect(figure.locator(".live-status")).to_contain_text("Every direction is allowed")


def test_the_weight_is_turned_by_pointer_key_and_number(figure):
    here, turn = figure.locator(".live"), figure.locator(".live-turn")
    typed = figure.locator("[type=number]")
    low, high = perceptron.version_arc(X[:4], Y[:4])
    middle = np.degrees((low + high) / 2) % 360
    typed.fill(f"{middle:.1f}")
    expect(here).to_have_attribute("data-wrong", "0")
    typed.fill(f"{(middle + 180) % 360:.1f}")
    expect(here).to_have_attribute("data-wrong", "4")
    typed.fill("40")
    turn.press("ArrowLeft")
    turn.press("Shift+ArrowDown")
    expect(turn).to_have_attribute("aria-valuenow", "40.9")
    drag(figure, turn, (-60, 0))
    angle = float(turn.get_attribute("aria-valuenow"))
    assert 45 < angle < 120
    w = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    wrong = int((perceptron.predict(w, 0.0, X[:4]) != Y[:4]).sum())
    expect(here).to_have_attribute("data-wrong", str(wrong))
    figure.wait_for_timeout(400)
    figure.reload()
    expect(turn).to_have_attribute("aria-valuenow", re.compile(str(angle)))
    assert shown(figure) == pytest.approx(
        perceptron.version_arc(X[:4], Y[:4]), abs=3e-3
    )
