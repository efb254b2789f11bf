import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from dlcore.figures.plots import (
    MINUS,
    PLUS,
    plot_boundary,
    plot_descent,
    plot_graph,
    plot_grey,
    plot_network,
    plot_neuron,
    plot_points,
    plot_polygons,
    plot_signed,
    plot_simplex,
    plot_timeline,
    plot_volumes,
    square,
)

# Colours as seen without one kind of cone (Machado, Oliveira and Fernandes 2009, severity 1).
COLOUR_VISION = {
    "full": np.eye(3),
    "no red cones": [
        [0.152, 1.053, -0.205],
        [0.115, 0.786, 0.099],
        [-0.004, -0.048, 1.052],
    ],
    "no green cones": [
        [0.367, 0.861, -0.228],
        [0.280, 0.673, 0.047],
        [-0.012, 0.043, 0.969],
    ],
    "no blue cones": [
        [1.256, -0.077, -0.179],
        [-0.078, 0.931, 0.148],
        [0.005, 0.691, 0.304],
    ],
}


@pytest.fixture
def ax():
    with plt.style.context("dlcore.figures.book"):
        fig, ax = plt.subplots()
        yield square(ax, 2)
        plt.close(fig)


@pytest.mark.parametrize("vision", COLOUR_VISION)
def test_every_reader_tells_the_colours_apart(vision):
    with plt.style.context("dlcore.figures.book"):
        cycle = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    seen = np.array([to_rgb(c) for c in cycle]) @ np.transpose(COLOUR_VISION[vision])
    for a, b in itertools.combinations(seen, 2):
        assert np.linalg.norm(a - b) > 0.12


def test_labels_differ_in_shape_as_well_as_in_colour(ax):
    plot_points(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([1.0, -1.0]), ax)
    plus, minus = ax.collections
    assert not np.array_equal(plus.get_facecolor(), minus.get_facecolor())
    assert len(plus.get_paths()[0].vertices) != len(minus.get_paths()[0].vertices)


@given(angle=st.floats(0, 6.28), length=st.floats(0.1, 10), b=st.floats(-5, 5))
def test_the_line_drawn_is_where_the_unit_is_zero(angle, length, b):
    w = length * np.array([np.cos(angle), np.sin(angle)])
    fig, ax = plt.subplots()
    (line,) = plot_boundary(w, b, square(ax, 2)).lines
    for point in (line.get_xy1(), line.get_xy2()):
        assert w @ np.array(point) + b == pytest.approx(0, abs=1e-9 * (1 + length))
    plt.close(fig)


def test_parallels_stand_at_the_margin(ax):
    _, upper, lower = plot_boundary(np.array([0.0, 2.0]), -2.0, ax, margin=0.5).lines
    assert (upper.get_xy1()[1], lower.get_xy1()[1]) == (1.5, 0.5)


def test_each_side_is_tinted_in_the_colour_of_its_label(ax):
    plot_boundary(np.array([1.0, 0.0]), 0.0, ax, shade=True)
    (tint,) = ax.collections
    minus, plus = tint.get_paths()
    assert minus.vertices[:, 0].max() == 0 == plus.vertices[:, 0].min()
    colours = [to_hex(colour) for colour in tint.get_facecolor()]
    assert colours == [MINUS.lower(), PLUS.lower()]


def test_zero_weights_draw_no_line(ax):
    assert not plot_boundary(np.zeros(2), 1.0, ax).lines


def test_zero_is_paper(ax):
    (image,) = plot_signed(np.zeros((2, 2)), ax, 1.0).images
    assert np.allclose(image.cmap(image.norm(0.0))[:3], 1, atol=0.01)


def test_a_neuron_has_a_weight_on_every_line(ax):
    plot_neuron(["a", "b", "c"], ["1", "2", "3"], "f", "y", ax)
    place = {t.get_text(): t.get_position() for t in ax.texts if t.get_text()}
    assert place.keys() == set("abc123fy")
    assert place["a"][1] > place["b"][1] > place["c"][1]
    for name, weight in zip("abc", "123", strict=True):
        (x, y), (v, u) = place[name], place[weight]
        assert x < v < -1  # between the input and the circle
        assert abs(u) <= abs(y)


def test_a_neuron_refuses_a_missing_weight(ax):
    with pytest.raises(ValueError, match="shorter"):
        plot_neuron(["a", "b"], ["1"], "f", "y", ax)


def test_events_stand_at_their_years_and_texts_in_rows(ax):
    ax.set_ylim(2000, 1900)
    plot_timeline([1910, 1911, 1990], ["a", "b", "c"], ["C0", "C1", "C2"], ax)
    assert [line.get_ydata()[0] for line in ax.lines] == [1910, 1911, 1990]
    assert [text.xy[1] for text in ax.texts] == [1910, 1911, 1990]
    rows = [text.xyann[1] for text in ax.texts]
    np.testing.assert_allclose(np.diff(rows), -1 / 3)


def test_a_picture_goes_from_paper_to_ink_in_a_frame(ax):
    (image,) = plot_grey(np.array([[-1.0, 1.0]]), ax, "one").get_images()
    assert image.to_rgba(np.array([-1.0, 1.0]))[:, :3].tolist() == [[1] * 3, [0] * 3]
    assert all(spine.get_visible() for spine in ax.spines.values())
    assert ax.get_title(loc="left") == "one"


@pytest.mark.parametrize(("b", "tints"), [(1.0, 1), (-1.0, 1), (0.0, 0)])
def test_without_weights_the_bias_tints_the_plane_and_there_is_no_line(ax, b, tints):
    plot_boundary(np.zeros(2), b, ax, shade=True)
    assert not ax.lines
    assert len(ax.collections) == tints
    for tint in ax.collections:
        minus, plus = (len(path.vertices) > 0 for path in tint.get_paths())
        assert (minus, plus) == (b < 0, b > 0)


def test_network_has_its_units_and_connections(ax):
    plot_network([2, 3, 20], ax, ["in", "hidden", "out"])
    assert len(ax.patches) == 2 + 3 + 12
    assert len(ax.lines) == 2 * 3 + 3 * 12
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["⋮", "in", "hidden", "out"]


def test_a_graph_has_boxes_arrows_values_above_and_gradients_below(ax):
    edges = [("x", "z"), ("w", "z")]
    places = {"x": (0.0, 1.0), "w": (0.0, -1.0), "z": (2.0, 0.0)}
    plot_graph(
        edges, places, ax, labels={"z": "wx"}, values={"x": "3"}, gradients={"x": "5"}
    )
    texts = {t.get_text(): t for t in ax.texts if t.get_text()}
    assert set(texts) == {"x", "w", "wx", "3", "5"}
    for name, shown in [("x", "x"), ("w", "w"), ("z", "wx")]:
        assert texts[shown].get_position() == places[name]
        assert texts[shown].get_bbox_patch() is not None
    arrows = [t for t in ax.texts if t.get_text() == ""]
    assert [(a.xyann, a.xy) for a in arrows] == [
        (places[i], places[j]) for i, j in edges
    ]
    assert texts["3"].xy == texts["5"].xy == places["x"]
    assert texts["3"].xyann[1] > 0 > texts["5"].xyann[1]
    assert texts["3"].get_color() != texts["5"].get_color()
    left, right = ax.get_xlim()
    assert left < 0 < 2 < right


def test_arrows_between_the_same_boxes_are_bent_apart(ax):
    places = {"x": (0.0, 0.0), "y": (2.0, 0.0), "z": (4.0, 0.0)}
    plot_graph([("x", "y")] * 3 + [("y", "z")], places, ax)
    arrows = [t.arrow_patch for t in ax.texts if t.get_text() == ""]
    bends = [arrow.get_connectionstyle().rad for arrow in arrows]
    assert len(set(bends[:3])) == 3
    assert bends[3] == 0


def test_arrows_of_a_graph_end_outside_the_boxes_at_the_first_drawing():
    fig = Figure(figsize=(5, 2))
    canvas, ax = FigureCanvasAgg(fig), fig.add_subplot()
    places = {"a": (0.0, 0.0), "b": (2.0, 1.0)}
    labels = {"a": "a long label", "b": "another one"}
    plot_graph([("a", "b")], places, ax, labels=labels)
    (arrow,) = (t.arrow_patch for t in ax.texts if t.get_text() == "")
    find, drawn = arrow._get_path_in_displaycoord, []
    arrow._get_path_in_displaycoord = lambda: drawn.append(find()) or drawn[-1]
    canvas.draw()
    (shaft, head), _ = drawn[0]
    boxes = {t.get_text(): t.get_bbox_patch() for t in ax.texts}
    for path, label in [(shaft, "a long label"), (head, "another one")]:
        box = boxes[label].get_window_extent(canvas.get_renderer())
        inside = box.padded(-1.5)  # an arrow may touch what it starts from
        assert not any(inside.contains(*point) for point in path.vertices)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"edges": [("a", "b")]}, r"each name must be one of \['a'\]; got 'b'"),
        ({"values": {"q": "1"}}, r"each name must be one of \['a'\]; got 'q'"),
        ({"gradients": {"q": "1"}}, r"must be one of \['a'\]; got 'q'"),
        ({"labels": {"q": "1"}}, r"must be one of \['a'\]; got 'q'"),
        ({"positions": {}}, r"plot_graph: positions must not be empty"),
    ],
)
def test_a_graph_refuses_names_without_a_place(ax, wrong, message):
    arguments = {"edges": [], "positions": {"a": (0.0, 0.0)}, "ax": ax} | wrong
    with pytest.raises(ValueError, match=message):
        plot_graph(**arguments)


@pytest.mark.parametrize("signed", [False, True])
def test_polygons_are_filled_from_paper_to_their_colours(signed):
    _, ax = plt.subplots()
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    values = [-1.0, 0.0, 1.0] if signed else [0.0, 0.5, 1.0]
    plot_polygons([triangle, triangle + 1, triangle + 2], values, ax, signed=signed)
    (drawn,) = ax.collections
    drawn.update_scalarmappable()
    colours = drawn.get_facecolor()[:, :3]
    assert len(drawn.get_paths()) == 3
    paper = colours[1 if signed else 0]
    assert paper.min() > 0.95
    assert colours[2].mean() < 0.5
    plt.close()


def test_a_point_of_the_simplex_has_its_probabilities_as_distances(ax):
    P = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.25, 0.25]])
    plot_simplex(P, ["a", "b", "c"], ax)
    *corners, inside = ax.lines[-1].get_xydata()
    assert [text.get_position() for text in ax.texts] == [*map(tuple, corners)]
    assert [text.get_text().strip() for text in ax.texts] == ["a", "b", "c"]
    for c, p in enumerate(P[-1]):  # the distance from the side opposite of a corner
        start, end = (corners[k] for k in range(3) if k != c)
        across = np.array([start[1] - end[1], end[0] - start[0]])
        height = abs(across @ (corners[c] - start))
        assert abs(across @ (inside - start)) == pytest.approx(p * height)


def test_paths_are_drawn_over_level_lines_point_by_point(ax):
    paths = {"a": np.array([[0.0, 0.5], [0.5, 0.5]]), "b": np.ones((3, 2))}
    plot_descent(
        lambda x: (x**2).sum(axis=-1),
        paths,
        ax,
        xlim=(-1, 2),
        ylim=(-2, 1),
        levels=[1.0],
    )
    assert (ax.get_xlim(), ax.get_ylim()) == ((-1, 2), (-2, 1))
    a, ring, b, _ = ax.lines
    np.testing.assert_array_equal(a.get_xydata(), paths["a"])
    np.testing.assert_array_equal(b.get_xydata(), paths["b"])
    np.testing.assert_array_equal(ring.get_xydata(), paths["a"][:1])
    assert [a.get_label(), b.get_label()] == ["a", "b"]
    assert a.get_color() != b.get_color()
    (circle,) = ax.collections[0].get_paths()
    np.testing.assert_allclose(np.linalg.norm(circle.vertices, axis=1), 1, atol=0.01)


def test_volumes_have_faces_labels_and_joins(ax):
    shapes = [(1, 8, 6), (4, 4, 3), (10,)]
    plot_volumes(shapes, ax, ["picture", "maps", "units"], [(0, 1)])
    faces = [np.ptp(p.get_xy(), axis=0) for p in ax.patches if p.get_fill()]
    assert len(faces) == 3 * len(shapes)
    wide, tall = zip(*faces[::3], strict=True)  # those in front
    assert wide[1] == pytest.approx(4 * wide[0])
    assert tall[:2] == pytest.approx((8, 4))
    texts = [text.get_text() for text in ax.texts if text.get_text()]
    assert texts == ["picture\n1×8×6", "maps\n4×4×3", "units\n10"]
    assert sum(bool(text.arrow_patch) for text in ax.texts[3:]) == 1
    right = [max(p.get_xy()[:, 0]) for p in ax.patches[2:]]
    assert max(right) < ax.get_xlim()[1]


def test_volumes_refuse_a_matrix(ax):
    with pytest.raises(ValueError, match=r"plot_volumes: shapes must be"):
        plot_volumes([(1, 8, 6), (4, 4)], ax)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"shapes": [(1, 8, 6), (0, 4, 4)]}, "a side must be a whole number"),
        ({"shapes": [(-3,)]}, "a side must be a whole number from 1"),
        ({"names": ["a"]}, "names must be none, or one for each of the 2"),
        ({"names": list("abc")}, "names must be none, or one for each of the 2"),
        ({"joins": [(0, 2)]}, "joins must be pairs of different boxes"),
        ({"joins": [(0, -1)]}, "joins must be pairs of different boxes"),
        ({"joins": [(1, 1)]}, "joins must be pairs of different boxes"),
    ],
)
def test_volumes_refuse_what_cannot_be_drawn(ax, how, words):
    shapes = [(1, 8, 6), (4,)]
    with pytest.raises(ValueError, match=f"plot_volumes: {words}"):
        plot_volumes(**{"shapes": shapes, "ax": ax, **how})
