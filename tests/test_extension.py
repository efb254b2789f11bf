"""The Sphinx extensions of the book, alone and in a book of three pages."""

import base64
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from book_explore import STILL, control_html, html
from book_figures import describe, strip_comments
from book_light import drop_plain_spans
from book_sheets import Figure, read, write
from browser import CHROMIUM, launched
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image
from playwright.sync_api import expect
from pydata_sphinx_theme.pygments import get_pygments_stylesheet

from dlcore.figures.explore import DESCRIPTION, FRAMES, explore

EXTENSIONS = Path(__file__).parents[1] / "book" / "_ext"
STATIC = EXTENSIONS.parent / "_static"
KERNEL = {
    "kernelspec": {"name": "python3", "display_name": "Python 3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


# What the first comments of a cell say of its figure.


@pytest.mark.parametrize(
    ("source", "found", "code"),
    [
        ("x = 1", {}, "x = 1"),
        ("", {}, ""),
        ("# alt: A line.\nx = 1", {"alt": "A line."}, "x = 1"),
        (
            "# alt: A line.\n# figure: a\n# caption: A: b # c.\nx = 1",
            {"alt": "A line.", "figure": "a", "caption": "A: b # c."},
            "x = 1",
        ),
        (
            "# alt: A line\n#   that goes\n#   up.\nx",
            {"alt": "A line that goes up."},
            "x",
        ),
        ("# alt: A line.\n# evidence: e\nx", {"alt": "A line."}, "# evidence: e\nx"),
        ("# alt: A line.", {"alt": "A line."}, ""),
        ("# evidence: e\n# alt: Too late.", {}, "# evidence: e\n# alt: Too late."),
        ("x = 1\n# alt: Too late.", {}, "x = 1\n# alt: Too late."),
        ("# alternatively: x", {}, "# alternatively: x"),
    ],
)
def test_first_comments_describe_the_figure(source, found, code):
    assert describe(source) == (found, code)


def test_comments_become_the_metadata_of_the_page():
    text, plain = new_markdown_cell("# alt: A title"), new_code_cell("x = 1")
    figure = new_code_cell("# figure: a\n# caption: Up.\n# alt: A line.\nplot()")
    strip_comments(new_notebook(cells=[text, plain, figure]))
    assert text.source == "# alt: A title"
    assert plain.metadata == {"mystnb": {}}
    assert figure.source == "plot()"
    assert figure.metadata.mystnb == {
        "image": {"alt": "A line."},
        "figure": {"name": "a", "caption": "Up."},
    }


# A book of four pages.

CONF = """
extensions = ["myst_nb", "sphinx_proof", "book_figures", "book_ledger"]
exclude_patterns = ["_build"]
nb_execution_mode = "off"
numfig = True
numfig_secnum_depth = 2
prf_realtyp_to_countertyp = {"definition": "theorem"}
"""
INDEX = """# Book

```{toctree}
:numbered:
page
ledger
```

```{toctree}
appendix
```
"""
APPENDIX = """# Appendix

```{prf:lemma} Late
:label: late

$0 = 0$
```
"""
STATEMENTS = """# Page

```{prf:definition}
:label: square

$a a$
```

```{prf:theorem} Squares (1900)
:label: squares

$a^2 \\ge 0$, see {numref}`parabola` and {prf:ref}`square`.
```

```{prf:corollary}
:label: aside
:nonumber:

$4 \\ge 0$
```
"""
FIGURE = "# figure: parabola\n# caption: Squares.\n# alt: A curve.\nplot()"


def png() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (80, 40)).save(buffer, "png", dpi=(200, 200))
    return base64.b64encode(buffer.getvalue()).decode()


def write_page(folder: Path, *evidence: str) -> None:
    picture = new_output("display_data", {"image/png": png(), "text/plain": "<Figure>"})
    cells = [
        new_markdown_cell(STATEMENTS),
        *(new_code_cell(f"# evidence: {label}\nassert a") for label in evidence),
        new_code_cell(FIGURE, outputs=[picture]),
    ]
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), folder / "page.ipynb")


def build(folder: Path) -> tuple[BeautifulSoup, BeautifulSoup]:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "-q",
            folder,
            folder / "_build" / "html",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(EXTENSIONS), "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stderr
    files = [folder / "_build" / "html" / name for name in ("page.html", "ledger.html")]
    page, ledger = (BeautifulSoup(file.read_text(), "html.parser") for file in files)
    return page, ledger


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    (folder / "conf.py").write_text(CONF)
    (folder / "index.md").write_text(INDEX)
    (folder / "ledger.md").write_text("# Ledger\n\n```{ledger}\n```\n")
    (folder / "appendix.md").write_text(APPENDIX)
    write_page(folder, "squares", "squares")
    return folder


@pytest.fixture(scope="module")
def pages(folder):
    return build(folder)


def rows(ledger):
    return [
        [cell.get_text(" ", strip=True) for cell in row.find_all("td")]
        for row in ledger.select("table.ledger tbody tr")
    ]


def test_ledger_lists_statements_with_number_title_page_and_evidence(pages):
    _, ledger = pages
    assert rows(ledger) == [
        ["Corollary", "", "1 Page", "–"],
        ["Definition 1.1", "", "1 Page", "–"],
        ["Theorem 1.2", "Squares (1900)", "1 Page", "cell 1 cell 2"],
        ["Lemma 1", "Late", "Appendix", "–"],  # no number: at the end
    ]


def test_links_lead_to_anchors_that_exist(pages):
    page, ledger = pages
    links = [a["href"] for a in ledger.select("table.ledger a")]
    links = [link for link in links if not link.startswith("appendix.html")]
    links += [f"page.html{a['href']}" for a in page.select("p.evidence a")]
    assert len(links) == 3 + 3 + 2 + 2  # statements, pages, cells; back
    assert len({link for link in links if "#evidence" in link}) == 2
    for link in links:
        name, _, anchor = link.partition("#")
        assert name == "page.html"
        assert not anchor or page.find(id=anchor), f"{link} leads nowhere"


def test_evidence_cell_says_what_it_is_evidence_for(pages):
    page, _ = pages
    lines = [line.get_text() for line in page.select(".cell p.evidence")]
    assert lines == ["Evidence for Theorem 1.2"] * 2


def test_folds_say_what_was_tried_and_keep_what_is_printed(folder, tmp_path):
    for name in ("conf.py", "index.md", "ledger.md", "appendix.md"):
        shutil.copy(folder / name, tmp_path)
    printed = new_output("stream", name="stdout", text="nine sets")
    cells = [
        new_markdown_cell(STATEMENTS.replace("{numref}`parabola` and ", "")),
        new_code_cell("# evidence: squares: 300 sets\n#   of numbers\nassert a == 1"),
        new_code_cell("# check: all signs\nassert a == 2"),
        new_code_cell("# evidence: square: by hand\nassert a == 3", outputs=[printed]),
        new_code_cell("# check: once more\nassert a == 4", outputs=[printed]),
        new_code_cell("a = 5"),
        new_code_cell("# check: apart\nassert a == 6"),
    ]
    notebook = new_notebook(cells=cells, metadata=KERNEL)
    nbformat.write(notebook, tmp_path / "page.ipynb")
    page, _ = build(tmp_path)
    folds = page.select("details.evidence")
    lines = [[p.get_text() for p in f.select("summary p")] for f in folds]
    assert lines == [
        ["Theorem 1.2: 300 sets of numbers", "all signs", "Definition 1.1: by hand"],
        ["once more"],
        ["apart"],
    ]
    code = [re.findall(r"== (\d)", fold.get_text()) for fold in folds]
    assert code == [["1", "2", "3"], ["4"], ["6"]]
    assert page.find(id="evidence-squares")
    assert page.find(id="evidence-square")
    outputs = page.select(".cell_output")
    assert [o.find_parent("details") for o in outputs] == [None, None]


def test_figure_has_number_caption_alt_and_css_size(pages):
    page, _ = pages
    figure = page.find("figure")
    assert figure["id"] == "parabola"
    assert figure.figcaption.get_text(" ", strip=True).startswith("Fig. 1.1 Squares.")
    assert figure.img["alt"] == "A curve."
    assert "width: 40px" in figure.img["style"]  # 80 dots of 1/200 inch
    assert "# alt" not in page.get_text()


def test_ledger_follows_when_a_page_changes(pages, folder):
    write_page(folder, "square")
    page, ledger = build(folder)
    assert [row[3] for row in rows(ledger)] == ["–", "cell 1", "–", "–"]
    assert page.find(id="evidence-square")
    assert not page.find(id="evidence-squares")


# A lighter book.


def test_spans_without_a_colour_are_dropped_and_texts_kept():
    code = '<span class="n">x</span> <span class="o">=</span> <span class="p">(</span>'
    context = {"body": f'<pre>{code}<span class="name">y</span></pre>'}
    drop_plain_spans(None, "page", "page.html", context, None)
    assert context["body"] == (
        '<pre>x <span class="o">=</span> (<span class="name">y</span></pre>'
    )
    drop_plain_spans(None, "search", "search.html", {}, None)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_spans_that_are_dropped_have_the_colour_of_their_box(theme):
    styles = [f"a11y-high-contrast-{name}" for name in ("light", "dark")]
    css = get_pygments_stylesheet(*styles)  # the theme's default
    start = f'html[data-theme="{theme}"] .highlight'
    (box,) = re.findall(rf"^{re.escape(start)} {{.* color: (#\w+) }}", css, re.M)
    for name in "npw":
        assert f"{start} .{name} {{ color: {box} }}" in css


# Figures to move: tracks and switches, in the HTML and for a reader.


@pytest.mark.parametrize(
    ("texts", "stops"),
    [
        (["1", "10", "1000"], [0, 333, 1000]),
        (["−2", "0", "6"], [0, 250, 1000]),
        (["0.4", "0.1", "0.05"], [0, 667, 1000]),
        (["0", "1e−06", "0.001"], [0, 1, 2]),  # too far apart for any track
        (["2", "4", "8", "16"], [0, 1, 2, 3]),
        (["100", "800"], [0, 1]),
        (["7"], [0]),
    ],
)
def test_track_is_spaced_as_the_numbers_are(texts, stops):
    for at in range(len(texts)):
        about = {"label": "a", "texts": texts, "at": at, "menu": False}
        slider = BeautifulSoup(control_html(about), "html.parser").input
        assert slider["data-stops"] == str(stops)
        assert (slider["max"], slider["value"]) == (str(stops[-1]), str(stops[at]))


LONG = ["no two in line with the origin", "two in line with the origin"]


def spaced(p, kind, n):
    """A square as dark as p says."""
    grey = 0.04 * p + 0.4 * (kind == LONG[1]) + 0.2 * (n == 800)
    return plt.figure(figsize=(3, 1), facecolor=str(grey))


def playing(n):
    """A square that grows darker."""
    return plt.figure(figsize=(3, 1), facecolor=str(1 - n / 10))


def missing(n):
    """A square that nobody drew."""
    return playing(n)


def twice(n, kind):
    """A square that is drawn twice."""
    return playing(n + (kind == "up"))


def named(kind):
    """A square of some kind."""
    return playing(ord(kind) - ord("a"))


def movable(folder, explorer):
    """Return the HTML of a figure; its sheet and still are put into a folder."""
    bundle, _ = explorer._repr_mimebundle_()
    figure = Figure(bundle[DESCRIPTION], bundle, [])
    file = folder / f"{figure.name}.webp"
    write(file, figure, bundle[FRAMES])
    file.with_suffix(STILL).write_bytes(figure.still)
    return html(figure.description, read(file), ".")


@pytest.fixture(scope="module")
def moving(tmp_path_factory):
    """A page with five figures; the sheet of one is lost."""
    folder = tmp_path_factory.mktemp("moving")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DLCORE_EXPLORE", "frames")
        figures = [
            explore(spaced, p=[1, 2, 3, 9], kind=LONG, n=[100, 800]),
            explore(playing, n=[0, 1, 5], play=True),
            explore(missing, n=[0, 1, 2]),
            explore(named, kind=["a", "b", "c"]),
            explore(twice, n=[0, 1], kind=["up", "down"], play=True),
        ]
        body = "".join(movable(folder, figure) for figure in figures)
    (folder / "missing.webp").unlink()
    scripts = "".join(
        f"<script defer src={(STATIC / name).as_uri()}></script>"
        for name in ("address.js", "explore.js")
    )
    style = f'<link rel="stylesheet" href="{(STATIC / "book.css").as_uri()}">'
    colours = "".join(
        f"--pst-color-{name}: {colour};"
        for name, colour in {
            "background": "#fff",
            "border": "#ccc",
            "primary": "#0a7d91",
            "surface": "#eee",
            "text-base": "#111",
            "text-muted": "#555",
        }.items()
    )
    (folder / "page.html").write_text(
        f'<!doctype html><html lang="en" style="{colours}"><title>Page</title>'
        '<meta name="viewport" content="width=device-width">'
        f"{style}{scripts}<main><h1>Page</h1>{body}</main>"
    )
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture
def visit(browser, moving):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    complaints = []

    def open_page(address=""):
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(error.message))
        page.goto(moving.as_uri() + address)
        return page

    yield open_page
    context.close()
    assert complaints == []


reads = pytest.mark.skipif(
    CHROMIUM is None, reason="No Chromium on this machine: figures were not moved."
)


def control(page, label, name="spaced"):
    return page.locator(f"[data-name={name}]").get_by_role(
        "slider", name=label, exact=True
    )


def shows(page, values, grey=None, name="spaced"):
    """Expect what a picture says of itself, and its colour."""
    canvas = page.locator(f"[data-name={name}] canvas")
    expect(canvas).to_have_attribute("aria-label", re.compile(re.escape(values)))
    if grey is not None:
        seen = Image.open(io.BytesIO(canvas.screenshot())).convert("L")
        assert seen.getpixel((5, 5)) / 255 == pytest.approx(grey, abs=0.02)


def near(slider, share):
    """Click on the track of a slider, a share of its way along."""
    box = slider.bounding_box()
    thumb = 16
    x = thumb / 2 + share * (box["width"] - thumb)
    slider.click(position={"x": x, "y": box["height"] / 2})


@reads
def test_keys_go_from_stop_to_stop_of_a_spaced_track(visit):
    page = visit()
    slider = control(page, "p")
    heard = []
    for key in ["Home", *["ArrowRight"] * 3, "ArrowLeft", "PageUp", "PageDown", "Home"]:
        slider.press(key)
        heard.append((slider.get_attribute("aria-valuetext"), slider.input_value()))
    stops = [("1", "0"), ("2", "315"), ("3", "500"), ("9", "1000")]
    assert heard == [stops[k] for k in (0, 1, 2, 3, 2, 3, 2, 0)]
    slider.press("End")
    shows(page, f"(p = 9, kind = {LONG[0]}, n = 100)", 0.36)
    expect(slider.locator("xpath=following-sibling::output")).to_have_text("9")


@reads
def test_a_hand_moves_to_the_nearest_stop_of_the_track(visit):
    page = visit()
    slider = control(page, "p")
    for share, stop in [(0.37, "2"), (0.45, "3"), (0.7, "3"), (0.8, "9"), (0.1, "1")]:
        near(slider, share)
        shows(page, f"(p = {stop}, ")
    near(slider, 0.33)
    slider.press("ArrowRight")  # after a hand, a key moves on
    shows(page, "(p = 3, ")


@reads
def test_two_positions_are_a_switch_for_the_pointer(visit):
    page = visit()
    figure = page.locator("[data-name=spaced]")
    expect(figure.locator("select")).to_have_count(0)
    expect(figure.locator(".explore-switch")).to_have_count(2)
    for text in [*LONG, "100", "800"]:
        expect(
            figure.locator(".explore-switch > span", has_text=text).last
        ).to_be_visible()
    for label, at, values, grey in [
        ("kind", 0.9, f"(p = 1, kind = {LONG[1]}, n = 100)", 0.44),
        ("n", 0.6, f"(p = 1, kind = {LONG[1]}, n = 800)", 0.64),
        ("kind", 0.4, f"(p = 1, kind = {LONG[0]}, n = 800)", 0.24),
        ("kind", 0.1, f"(p = 1, kind = {LONG[0]}, n = 800)", 0.24),
    ]:
        switch = control(page, label)
        box = switch.bounding_box()
        switch.click(position={"x": at * box["width"], "y": box["height"] / 2})
        shows(page, values, grey)


PAPER = "rgba(0, 0, 0, 0)"


@reads
def test_switch_shows_by_its_ink_which_position_it_is_at(visit):
    page = visit()
    faces = (
        page.locator("[data-name=spaced] .explore-switch").last.locator("span").all()
    )
    ink = [
        lambda f=f: f.evaluate("f => getComputedStyle(f).backgroundColor")
        for f in faces
    ]
    assert [face() == PAPER for face in ink] == [False, True]
    control(page, "n").press("ArrowRight")
    assert [face() == PAPER for face in ink] == [True, False]


@reads
def test_switch_is_moved_by_keys_and_says_where_it_is(visit):
    page = visit()
    switch = control(page, "kind")
    switch.focus()
    for key, at in [
        ("Space", 1), ("Enter", 0), ("ArrowRight", 1), ("ArrowRight", 1),
        ("ArrowLeft", 0), ("End", 1), ("Home", 0),
    ]:  # fmt: skip
        page.keyboard.press(key)
        expect(switch).to_have_attribute("aria-valuetext", LONG[at])
        shows(page, f"kind = {LONG[at]}, ")
    box = page.locator(".explore-switch").first
    assert box.evaluate("b => getComputedStyle(b).outlineStyle") == "solid"
    page.keyboard.press("Tab")
    expect(control(page, "n")).to_be_focused()


@reads
def test_label_of_a_switch_is_no_button(visit):
    page = visit()
    control(page, "n").press("Space")
    page.locator(
        "[data-name=spaced] label > span:first-child", has_text="n"
    ).last.click()
    shows(page, "n = 800)")


@reads
def test_switches_fit_a_phone_and_are_accessible(visit):
    page = visit()
    for switch in page.locator(".explore-switch").all():
        left, right = (face.bounding_box() for face in switch.locator("> span").all())
        assert 0 <= left["x"] < right["x"] + right["width"] <= 390
        assert left["width"] == pytest.approx(
            right["width"], abs=1
        )  # each has its half
    found = Axe().run(page, ".explore").response["violations"]
    assert [f"{fault['id']}: {fault['nodes'][0]['html']}" for fault in found] == []


@reads
def test_address_remembers_tracks_and_switches(visit):
    page = visit()
    control(page, "p").press("End")
    control(page, "p").press("ArrowLeft")
    control(page, "kind").press("Space")
    page.wait_for_url(re.compile("spaced=.*two"))
    again = visit(page.url[page.url.index("#") :])
    shows(again, f"(p = 3, kind = {LONG[1]}, n = 100)")
    expect(control(again, "p")).to_have_value("500")
    control(again, "p").press("ArrowRight")
    shows(again, "(p = 9, ")


@reads
def test_picture_is_dragged_along_the_track_and_leaves_switches_alone(visit):
    page = visit()
    control(page, "n").press("Space")  # moved last, but no slider
    box = page.locator("[data-name=spaced] .explore-window").bounding_box()
    x, y = box["x"] + 10, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 0.8 * 0.36 * box["width"], y, steps=4)
    shows(page, f"(p = 2, kind = {LONG[0]}, n = 800)")
    page.mouse.move(x + 0.8 * 0.44 * box["width"], y, steps=4)
    page.mouse.up()
    shows(page, f"(p = 3, kind = {LONG[0]}, n = 800)")


@reads
def test_playing_takes_stop_after_stop(visit):
    page = visit()
    control(page, "n", "playing").focus()
    expect(page.locator("[data-name=playing]")).to_have_attribute("data-ready", "")
    page.clock.install()
    button = page.locator("[data-name=playing]").get_by_role("button", name="Play")
    button.click()
    for n in (1, 5):
        page.clock.run_for(800)
        shows(page, f"(n = {n})", 1 - n / 10, "playing")
    expect(button).to_have_text("Play")


@reads
def test_what_plays_stays_a_slider_beside_a_switch(visit):
    page = visit()
    slider, switch = control(page, "n", "twice"), control(page, "kind", "twice")
    expect(page.locator("[data-name=twice] .explore-switch input")).to_have_count(1)
    switch.press("Space")
    slider.press("ArrowRight")
    shows(page, "(n = 1, kind = down)", 0.9, "twice")
    page.locator("[data-name=twice]").get_by_role("button", name="Play").click()
    expect(slider).to_have_value("0")
    shows(page, "(n = 0, kind = down)", 1, "twice")


@reads
def test_three_names_stay_a_menu(visit):
    page = visit()
    menu = page.locator("[data-name=named]").get_by_role("combobox", name="kind")
    menu.select_option("c")
    shows(page, "(kind = c)", 0.8, "named")
    page.wait_for_url(re.compile("#named="))
    shows(visit(page.url[page.url.index("#") :]), "(kind = c)", 0.8, "named")


@reads
def test_figure_says_that_its_pictures_are_missing(visit):
    page = visit()
    control(page, "n", "missing").press("End")
    figure = page.locator("[data-name=missing]")
    expect(figure.get_by_role("alert")).to_have_text(
        "The pictures of this figure cannot be loaded, so it stays as it is."
    )
    expect(figure.locator("img")).to_be_visible()
    expect(page.locator("[data-name=spaced]").get_by_role("alert")).to_have_count(0)
