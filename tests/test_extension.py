"""The Sphinx extensions of the book, alone and in a book of three pages."""

import base64
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from book_figures import describe, strip_comments
from book_light import drop_plain_spans
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image
from pydata_sphinx_theme.pygments import get_pygments_stylesheet

EXTENSIONS = Path(__file__).parents[1] / "book" / "_ext"
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
