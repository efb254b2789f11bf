"""Figures. A plot function draws given numbers on an Axes and returns it; no more."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.patches import Circle, Polygon
from matplotlib_inline.backend_inline import set_matplotlib_formats
from numpy import ndarray

from dlcore.checks import check, check_whole

__all__ = [
    "INK",
    "MINUS",
    "PLUS",
    "SIDES",
    "SIGNED",
    "plot_arrow",
    "plot_boundary",
    "plot_descent",
    "plot_graph",
    "plot_grey",
    "plot_network",
    "plot_neuron",
    "plot_points",
    "plot_polygons",
    "plot_signed",
    "plot_simplex",
    "plot_timeline",
    "plot_volumes",
    "square",
    "use_book_style",
]

#: The colours of the labels +1 and −1.
PLUS, MINUS = "#0072B2", "#D55E00"
#: The colour of lines and texts.
INK = "0.1"
#: The two colours of the labels −1 and +1, as a colour map.
SIDES = ListedColormap([MINUS, PLUS])
#: The colour map of signed numbers: colours of the labels, white at zero.
SIGNED = LinearSegmentedColormap.from_list("signed", [MINUS, "white", PLUS])


def use_book_style() -> None:
    """Give all figures the look of the book, sharp on every screen.

    Example:
        >>> use_book_style()
        >>> plt.rcParams["image.cmap"], plt.rcParams["font.size"]
        ('Blues', 12.0)
    """
    plt.style.use("dlcore.figures.book")
    set_matplotlib_formats("retina")


def square(ax: Axes, limit: float, centre: tuple[float, float] = (0, 0)) -> Axes:
    """Show a square of half-width ``limit``, with equal units on both axes.

    Example:
        >>> from matplotlib.figure import Figure
        >>> square(Figure().add_subplot(), 2.0).viewLim.extents.tolist()
        [-2.0, -2.0, 2.0, 2.0]
    """
    x, y = centre
    ax.set(xlim=(x - limit, x + limit), ylim=(y - limit, y + limit), aspect="equal")
    return ax


def plot_points(
    X: Float[ndarray, "s 2"], y: Float[ndarray, "s"], ax: Axes, size: float = 45
) -> Axes:
    """Draw labelled points: discs for +1, squares for −1.

    Example:
        >>> from matplotlib.figure import Figure
        >>> X, y = np.eye(3)[:, :2], np.array([1.0, 1.0, -1.0])
        >>> ax = plot_points(X, y, Figure().add_subplot())
        >>> [len(points.get_offsets()) for points in ax.collections]
        [2, 1]
    """
    for label, colour, marker in [(1, PLUS, "o"), (-1, MINUS, "s")]:
        x1, x2 = X[y == label].T
        ax.scatter(x1, x2, size, colour, marker=marker, edgecolors="white", zorder=3)
    ax.set(xlabel="$x_1$", ylabel="$x_2$")
    return ax


def plot_boundary(
    w: Float[ndarray, "2"],
    b: float,
    ax: Axes,
    *,
    color: str = INK,
    shade: bool = False,
    margin: float | None = None,
    **style: Any,
) -> Axes:
    r"""Draw the decision boundary :math:`w^\top x + b = 0` of a linear classifier.

    Args:
        w: weights; where they are zero there is no line, and ``b`` decides.
        b: bias.
        ax: where to draw, with its limits set.
        color: of the line.
        shade: tint the side of each label in its colour.
        margin: also draw the parallels at this distance.
        **style: passed on to the line.

    Example:
        >>> from matplotlib.figure import Figure
        >>> w = np.array([1.0, 0.0])
        >>> ax = plot_boundary(w, -1.0, Figure().add_subplot(), margin=0.5)
        >>> [float(line.get_xy1()[0]) for line in ax.lines]
        [1.0, 1.5, 0.5]
    """
    length = np.linalg.norm(w)
    offsets = [0.0] if margin is None else [0.0, margin, -margin]
    for offset in offsets if length else []:
        along = np.array([-w[1], w[0]]) / length
        foot = w / length * (offset - b / length)
        look: dict[str, Any] = {"color": color, "zorder": 2} | style
        if offset:
            look |= {"linestyle": ":", "linewidth": 1.5}
        ax.axline(tuple(foot), tuple(foot + along), **look)
    if shade and (length or b):
        x1, x2 = np.array(ax.get_xlim()), np.array(ax.get_ylim())
        z = w[0] * x1 + w[1] * x2[:, None] + b  # flat: four corners say all
        levels = [-np.abs(z).max(), 0, np.abs(z).max()]
        look = {"colors": [MINUS, PLUS], "alpha": 0.12}
        ax.contourf(x1, x2, z, levels, **look)
    return ax


def plot_arrow(start: Float[ndarray, "2"], end: Float[ndarray, "2"], ax: Axes) -> Axes:
    """Draw an arrow from one point to another.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = plot_arrow(np.zeros(2), np.array([2.0, 1.0]), Figure().add_subplot())
        >>> [float(c) for c in ax.texts[0].xy]
        [2.0, 1.0]
    """
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 2, "mutation_scale": 16}
    ax.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=arrow, zorder=4)
    return ax


def plot_signed(image: Float[ndarray, "rows columns"], ax: Axes, limit: float) -> Axes:
    """Draw a matrix as a picture, in the colours of the labels, white at zero.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = plot_signed(np.eye(2), Figure().add_subplot(), limit=2.0)
        >>> [float(v) for v in ax.images[0].get_clim()]
        [-2.0, 2.0]
    """
    ax.imshow(image, cmap=SIGNED, vmin=-limit, vmax=limit)
    ax.set_axis_off()
    return ax


def plot_grey(image: Float[ndarray, "rows columns"], ax: Axes, title: str = "") -> Axes:
    """Draw a matrix as a framed grey picture, from −1, white, to +1, black.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = plot_grey(np.eye(2), Figure().add_subplot())
        >>> [float(v) for v in ax.images[0].get_clim()]
        [-1.0, 1.0]
    """
    ax.imshow(image, cmap="Greys", vmin=-1, vmax=1)
    ax.set(xticks=[], yticks=[], title=title)
    ax.spines[:].set_visible(True)
    return ax


def plot_neuron(
    inputs: Sequence[str], weights: Sequence[str], inside: str, output: str, ax: Axes
) -> Axes:
    """Draw a neuron: its inputs, a weight on each of their lines, its output.

    Args:
        inputs: what stands in front of the lines, from top to bottom.
        weights: what stands on them; as many.
        inside: what the unit computes.
        output: what stands behind it.
        ax: where to draw; the unit is a circle of radius 1 around zero.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = plot_neuron(["x"], ["w"], "wx", "y", Figure().add_subplot())
        >>> [text.get_text() for text in ax.texts if text.get_text()]
        ['x', 'w', 'wx', 'y']
    """
    heights = np.linspace(1.7, -1.7, len(inputs)) if len(inputs) > 1 else [0.0]
    for name, weight, height in zip(inputs, weights, heights, strict=True):
        start = np.array([-3.6, height])
        end = start / np.linalg.norm(start)
        plot_arrow(start, end, ax)
        ax.text(-3.75, height, name, ha="right", va="center")
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        x, y = 0.55 * start + 0.45 * end
        ax.text(x, y, weight, ha="center", va="center", bbox=box, zorder=5)
    ax.add_patch(Circle((0, 0), 1, facecolor="white", edgecolor=INK, lw=2))
    ax.text(0, 0, inside, ha="center", va="center")
    plot_arrow(np.array([1.0, 0.0]), np.array([2.4, 0.0]), ax)
    ax.text(2.5, 0, output, ha="left", va="center")
    ax.set(xlim=(-4.6, 3.2), ylim=(-2.2, 2.2), aspect="equal")
    ax.set_axis_off()
    return ax


def plot_network(sizes: Sequence[int], ax: Axes, names: Sequence[str] = ()) -> Axes:
    """Draw a network: layers of units from left to right, each joined to the next.

    Args:
        sizes: number of units in each layer, at most 12 of which are drawn.
        ax: where to draw.
        names: what stands below the layers.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = plot_network([2, 3, 1], Figure().add_subplot())
        >>> len(ax.patches), len(ax.lines)  # 2 + 3 + 1 units, 2 · 3 + 3 · 1 lines
        (6, 9)
    """
    heights = [np.arange(m) - (m - 1) / 2 for m in np.minimum(sizes, 12)]
    for k, (left, right) in enumerate(pairwise(heights)):
        for y0, y1 in product(left, right):
            ax.plot([3 * k, 3 * k + 3], [y0, y1], color="0.6", lw=0.8, zorder=1)
    for k, (units, size) in enumerate(zip(heights, sizes, strict=True)):
        for y in units:
            disc = Circle((3 * k, y), 0.33, facecolor="white", edgecolor=INK)
            ax.add_patch(disc)
        if size > len(units):
            ax.text(3 * k, units[-1] + 0.5, "⋮", ha="center", va="bottom")
    bottom = -max(len(units) for units in heights) / 2
    for k, name in enumerate(names):
        ax.text(3 * k, bottom - 0.3, name, ha="center", va="top")
    ax.set(
        xlim=(-1.3, 3 * len(sizes) - 1.7),
        ylim=(bottom - 1.4 * bool(names), 0.6 - bottom),
        aspect="equal",
    )
    ax.set_axis_off()
    return ax


def plot_graph(
    edges: Sequence[tuple[str, str]],
    positions: Mapping[str, tuple[float, float]],
    ax: Axes,
    *,
    labels: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    gradients: Mapping[str, str] | None = None,
) -> Axes:
    """Draw a compute graph: boxes joined by arrows, with what flows forward and back.

    Args:
        edges: pairs of names, from the source to what is made of it; arrows of a pair
            that comes several times are bent apart.
        positions: where each box stands; one unit holds about one box.
        ax: where to draw.
        labels: what stands in a box instead of its name.
        values: what stands above a box, in the colour of the forward pass.
        gradients: what stands below a box, in the colour of the backward pass.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax, places = Figure().add_subplot(), {"x": (0.0, 0.0), "y": (1.0, 0.0)}
        >>> ax = plot_graph([("x", "y")], places, ax, values={"y": "9"})
        >>> [text.get_text() for text in ax.texts if text.get_text()]
        ['x', 'y', '9']
    """
    labels, values, gradients = labels or {}, values or {}, gradients or {}
    ends = [name for edge in edges for name in edge]
    check(len(positions) > 0, "plot_graph: positions", "not be empty", "none")
    for name in (*ends, *labels, *values, *gradients):
        rule = f"be one of {list(positions)}"
        check(name in positions, "plot_graph: each name", rule, repr(name))
    boxes = {
        name: ax.text(
            x,
            y,
            labels.get(name, name),
            ha="center",
            va="center",
            bbox={"boxstyle": "round,pad=0.35", "fc": "white", "ec": INK},
            zorder=1,  # drawn first: arrows need to know how large it is
        )
        for name, (x, y) in positions.items()
    }
    for i, (source, target) in enumerate(edges):
        before = edges[:i].count((source, target))
        again = edges.count((source, target)) > 1
        bend = 0.3 * ((-1) ** before * (before // 2 + 1)) * again
        ax.annotate(
            "",
            xy=positions[target],
            xytext=positions[source],
            arrowprops={
                "arrowstyle": "-|>",
                "connectionstyle": f"arc3,rad={bend}",
                "color": "0.55",
                "patchA": boxes[source].get_bbox_patch(),
                "patchB": boxes[target].get_bbox_patch(),
                "shrinkA": 0,
                "shrinkB": 1,
            },
            zorder=2,
        )
    for texts, shift, colour in ((values, 13, "C0"), (gradients, -13, "C1")):
        for name, text in texts.items():
            ax.annotate(
                text,
                positions[name],
                xytext=(0, shift),
                textcoords="offset points",
                ha="center",
                va="bottom" if shift > 0 else "top",
                color=colour,
                fontsize="small",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
                zorder=3,
            )
    xs, ys = np.array(list(positions.values()), dtype=float).T
    ax.set(xlim=(xs.min() - 0.6, xs.max() + 0.6), ylim=(ys.min() - 0.7, ys.max() + 0.7))
    ax.set_axis_off()
    return ax


def plot_descent(
    value: Callable[[ndarray], ndarray],
    paths: Mapping[str, Float[ndarray, "_ 2"]],
    ax: Axes,
    *,
    xlim: tuple[float, float],
    ylim: tuple[float, float],
    levels: Sequence[float] | int = 18,
) -> Axes:
    """Draw the level lines of a function of the plane, and paths across them.

    Args:
        value: the function, of points along the last axis.
        paths: the points that each method visits, by its name; a dot marks each point,
            a ring the first.
        ax: where to draw.
        xlim: left and right border.
        ylim: lower and upper border.
        levels: heights of the lines, or how many.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax, paths = Figure().add_subplot(), {"GD": np.array([[1.0, 1], [0.5, 0.5]])}
        >>> bowl = lambda p: (p**2).sum(axis=-1)
        >>> ax = plot_descent(bowl, paths, ax, xlim=(-1, 1), ylim=(-1, 1))
        >>> ax.lines[0].get_xydata().tolist()
        [[1.0, 1.0], [0.5, 0.5]]
    """
    x, y = np.meshgrid(np.linspace(*xlim, 121), np.linspace(*ylim, 121))
    heights = value(np.stack([x, y], axis=-1))
    ax.contour(x, y, heights, levels=levels, colors="0.75", linewidths=0.7)
    for k, (name, path) in enumerate(paths.items()):
        ax.plot(*path.T, ".-", color=f"C{k}", lw=1.2, ms=4, label=name)
        ax.plot(*path[0], "o", color=INK, mfc="none", ms=8)
    ax.set(xlim=xlim, ylim=ylim)
    return ax


def plot_polygons(
    polygons: Sequence[Float[ndarray, "_ 2"]],
    values: Sequence[float] | Float[ndarray, "s"],
    ax: Axes,
    *,
    signed: bool = False,
) -> Axes:
    """Draw polygons, filled by their values, with borders.

    Args:
        polygons: the corners of each, in order.
        values: one for each, from 0, paper, to 1, ink; if ``signed``, from −1 to 1 in
            the colours of the labels.
        ax: where to draw; its limits stay as they are.
        signed: how to read the values.

    Example:
        >>> from matplotlib.figure import Figure
        >>> triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> ax = plot_polygons([triangle], [0.5], Figure().add_subplot())
        >>> ax.collections[0].get_array().tolist()
        [0.5]
    """
    patches = PolyCollection(
        [*polygons],
        array=np.asarray(values),
        cmap=SIGNED if signed else "Blues",
        clim=(-1, 1) if signed else (0, 1),
        edgecolors=INK,
        linewidths=0.6,
    )
    ax.add_collection(patches)
    return ax


def plot_simplex(
    P: Float[ndarray, "s 3"], names: Sequence[str], ax: Axes, **style: Any
) -> Axes:
    """Draw probabilities of three classes as points of a triangle, joined by a line.

    Args:
        P: rows of three numbers with sum 1; a row is the mean of the corners so
            weighted.
        names: of the corners: left, right, top.
        ax: where to draw.
        **style: passed on to the line.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax, P = Figure().add_subplot(), np.full((1, 3), 1 / 3)
        >>> ax = plot_simplex(P, ["a", "b", "c"], ax)
        >>> ax.lines[-1].get_xydata().round(3).tolist()  # the centre
        [[0.5, 0.289]]
    """
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    ax.plot(*corners[[0, 1, 2, 0]].T, color=INK, linewidth=1.5)
    places = [("right", "top"), ("left", "top"), ("center", "bottom")]
    for name, (x, y), (ha, va) in zip(names, corners, places, strict=True):
        ax.text(x, y, f" {name} ", ha=ha, va=va)
    ax.plot(*(P @ corners).T, **style)
    ax.set(aspect="equal", xlim=(-0.3, 1.4), ylim=(-0.15, 1.05))
    ax.set_axis_off()
    return ax


def plot_timeline(
    years: Sequence[int],
    texts: Sequence[str],
    colours: Sequence[str],
    ax: Axes,
    **style: Any,
) -> Axes:
    """Draw events on a vertical axis of years, earliest on top, texts beside it.

    Args:
        years: when they happened, in order.
        texts: what is written, in evenly spaced rows joined to the years by lines.
        colours: one for each event.
        ax: where to draw; its vertical limits and scale are the caller's.
        **style: passed on to the texts.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = Figure().add_subplot()
        >>> ax = plot_timeline([1943, 1958], ["unit", "perceptron"], ["C0", "C1"], ax)
        >>> [text.get_text() for text in ax.texts]
        ['unit', 'perceptron']
    """
    rows = 1 - (np.arange(len(years)) + 0.5) / len(years)
    for year, text, colour, row in zip(years, texts, colours, rows, strict=True):
        ax.plot(0, year, "o", color=colour, clip_on=False, zorder=3)
        ax.annotate(
            text,
            (0, year),
            xytext=(0.16, row),
            textcoords="axes fraction",
            va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "relpos": (0, 0.5)},
            **style,
        )
    ax.set(xlim=(0, 1), xticks=[])
    ax.spines["bottom"].set_visible(False)
    return ax


def plot_volumes(
    shapes: Sequence[Sequence[int]],
    ax: Axes,
    names: Sequence[str] = (),
    joins: Sequence[tuple[int, int]] = (),
) -> Axes:
    """Draw the feature maps of a network as boxes, from left to right.

    Args:
        shapes: channels, rows and columns of each, the thickness, height and depth of
            its box; or the number of units of a layer that is no picture.
        ax: where to draw; one unit is the side of a pixel.
        names: what stands below the boxes, above their shapes.
        joins: pairs of boxes, counted from zero, that an arrow over the others joins.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = plot_volumes([(1, 28, 28), (10,)], Figure().add_subplot())
        >>> [text.get_text() for text in ax.texts]
        ['1×28×28', '10']
    """
    sizes = {len(shape) for shape in shapes}
    rule = "be (channels, rows, columns) or (units,), and one at least"
    fine = bool(shapes) and sizes <= {1, 3}
    check(fine, "plot_volumes: shapes", rule, list(map(tuple, shapes)))
    for side in (side for shape in shapes for side in shape):
        check_whole("plot_volumes: a side", side, 1)
    n = len(shapes)
    rule = f"be none, or one for each of the {n} boxes"
    check(len(names) in (0, n), "plot_volumes: names", rule, list(names))
    known = all(0 <= i < n and 0 <= j < n and i != j for i, j in joins)
    rule = f"be pairs of different boxes, counted from 0 to {n - 1}"
    check(known, "plot_volumes: joins", rule, list(joins))
    boxes = [
        (0.6 * s[0], s[1], s[2]) if len(s) == 3 else (0.6, s[0] / 4, 0) for s in shapes
    ]
    tall = max(height + depth / 3 for _, height, depth in boxes)
    slots = [max(w + d / 3 + tall / 5, 0.78 * tall) for w, _, d in boxes]
    starts, tops = np.cumsum([0.0, *slots]), []
    for k, (wide, height, depth) in enumerate(boxes):
        x = starts[k] + (slots[k] - wide - depth / 3) / 2
        low, slant = -height / 2 - depth / 6, np.array([depth / 3, depth / 3])
        a, b = np.array([x, low]), np.array([x + wide, low + height])
        c, d = np.array([b[0], a[1]]), np.array([a[0], b[1]])
        for corners, shade in (
            ([a, c, b, d], 0.25),
            ([c, c + slant, b + slant, b], 0.5),
            ([d, b, b + slant, d + slant], 0.1),
        ):
            face = Polygon(corners, facecolor=PLUS, alpha=shade, zorder=2)
            edge = Polygon(corners, fill=False, edgecolor=INK, lw=0.7, zorder=3)
            ax.add_patch(face)
            ax.add_patch(edge)
        middle = starts[k] + slots[k] / 2
        tops.append((middle, low + height + depth / 3))
        label = "×".join(map(str, shapes[k]))
        text = f"{names[k]}\n{label}" if names else label
        ax.text(middle, -tall / 2 - 1, text, ha="center", va="top", fontsize="small")
    for i, j in joins:
        bend = -0.7 * tall / abs(tops[j][0] - tops[i][0])
        ax.annotate(
            "",
            xy=tops[j],
            xytext=tops[i],
            arrowprops={
                "arrowstyle": "->",
                "color": MINUS,
                "connectionstyle": f"arc3,rad={bend}",
            },
        )
    top = tall / 2 + (0.4 * tall if joins else 1)
    ax.set(xlim=(0, starts[-1]), ylim=(-0.8 * tall, top))
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax
