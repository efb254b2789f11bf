"""The rules for pages: the book obeys them, and each of them can fail."""

from collections.abc import Callable
from pathlib import Path

import pytest
from book_pages import Book, Page, read, read_book
from book_sheets import Sheet, figures
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_rules import (
    NOTEBOOK_RULES,
    PAGE_RULES,
    Rule,
    asserts,
    is_listed,
    lists_only_pages,
)

from dlcore.figures.explore import DESCRIPTION
from tasks import install_line

ROOT = Path(__file__).parents[1]
BOOK = read_book(ROOT)
CASES = [
    pytest.param(page, rule, id=f"{page.path.removeprefix('book/')}-{rule.__name__}")
    for page in BOOK.pages.values()
    for rule in (NOTEBOOK_RULES if page.path.endswith(".ipynb") else PAGE_RULES)
]


@pytest.mark.parametrize(("page", "rule"), CASES)
def test_page_obeys(page: Page, rule: Rule):
    if breaches := list(rule(page, BOOK)):
        pytest.fail("\n".join(breaches), pytrace=False)


def test_table_of_contents_lists_only_pages_that_exist():
    if breaches := list(lists_only_pages(BOOK)):
        pytest.fail("\n".join(breaches), pytrace=False)


# From here on: a small notebook that obeys all rules, and changes that break one.

Change = Callable[[NotebookNode], None]

PATH, OTHER = "book/chapter/page.ipynb", "book/chapter/other.md"
TITLE = "# Squares\n\n*You will* square numbers.\n\n*You need* numbers."
THEOREM = """\
```{prf:theorem} Squares
:label: squares

$a^2 \\ge 0$ for all $a$.
```

:::{prf:proof}
Equal signs give plus.
:::
"""
DEFINITION = "```{prf:definition}\n:label: square\n\n$a \\cdot a$\n```\n"
CITED = "::::{prf:lemma}\n:label: known\n\nSee {cite:t}`who2000`.\n::::\n\n"
QUESTION = "\n:::{predict} How much?\n:label: much\n\n- 8: No.\n- 9: Yes.\n:::\n"
CHECK = "# evidence: squares\na = 3\nassert a**2 >= 0"
ALT = "# alt: A curve\n#   that opens upwards.\n"
FIGURE = f"# figure: parabola\n# caption: Squares.\n{ALT}plt.plot(x, x**2)"
PICTURE = {"image/png": "iVBO", "text/plain": "<Figure size 600x360>"}
ABOUT = {"name": "draw", "about": "A line.", "play": None}
ABOUT["controls"] = [{"label": "a", "texts": ["1", "2", "3"], "at": 0, "menu": False}]
MOVABLE = {"image/png": "iVBO", "text/plain": "explore(draw, a: 3 values)"}
MOVABLE[DESCRIPTION] = ABOUT
TEXT, MOVED, STATED, CHECKED, DRAWN, PRINTED, _, SET = range(8)  # of good()


def good() -> NotebookNode:
    cells = [
        new_markdown_cell(TITLE),
        new_code_cell(
            f"# install: {install_line()}\nexplore(draw, a=[1, 2, 3])",
            outputs=[output(MOVABLE)],
        ),
        new_markdown_cell(THEOREM + DEFINITION),
        new_code_cell(CHECK),
        new_code_cell(FIGURE, outputs=[output(PICTURE)]),
        new_code_cell("print(9)", outputs=[stream("stdout", "9\n")]),
        new_code_cell(""),
        new_code_cell("%config InlineBackend.figure_format = 'retina'"),
    ]
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "cost": {"seconds": 60, "megabytes": 300},
    }
    return execute(new_notebook(cells=cells, metadata=metadata))


def output(data: dict[str, str]) -> NotebookNode:
    return new_output("display_data", data)


def stream(name: str, text: str) -> NotebookNode:
    return new_output("stream", name=name, text=text)


def execute(notebook: NotebookNode) -> NotebookNode:
    filled = [c for c in notebook.cells if c.cell_type == "code" and c.source]
    for n, cell in enumerate(filled, 1):
        cell.execution_count = n
    return notebook


def edit(place: int, old: str, new: str) -> Change:
    def change(notebook: NotebookNode) -> None:
        cell = notebook.cells[place]
        assert old in cell.source, "the test itself is out of date"
        cell.source = cell.source.replace(old, new)

    return change


def show(place: int, *outputs: NotebookNode) -> Change:
    return lambda notebook: notebook.cells[place].outputs.extend(outputs)


def tag(name: str, *places: int) -> Change:
    def change(notebook: NotebookNode) -> None:
        for place in places:
            notebook.cells[place].metadata["tags"] = [name]

    return change


def comment(text: str, *places: int) -> Change:
    def change(notebook: NotebookNode) -> None:
        for place in places:
            notebook.cells[place].source = f"{text}\n{notebook.cells[place].source}"

    return change


def move(place: int, to: int) -> Change:
    def change(notebook: NotebookNode) -> None:
        notebook.cells.insert(to, notebook.cells.pop(place))
        execute(notebook)

    return change


def drop(place: int) -> Change:
    def change(notebook: NotebookNode) -> None:
        del notebook.cells[place]
        execute(notebook)

    return change


def both(*changes: Change) -> Change:
    def change(notebook: NotebookNode) -> None:
        for one in changes:
            one(notebook)

    return change


SHEETS: dict[str, Sheet] = {}  # those of the good notebook
for figure in figures(good()):
    SHEETS["draw"] = Sheet([9, 9], [[0, 0]] * 3, figure.code, figure.still_hash)


def breaches(notebook: NotebookNode, other: str = "# Other") -> dict[str, str]:
    """Return what the rules say of a notebook, in a book with one more page."""
    page = Page(PATH, notebook)
    second = Page(OTHER, new_notebook(cells=[new_markdown_cell(other)]))
    sheets = {PATH: {} if "test" in notebook.metadata else SHEETS}
    book = Book({PATH: page, OTHER: second}, ["book/chapter/page"], sheets)
    said = {rule.__name__: "\n".join(rule(page, book)) for rule in NOTEBOOK_RULES}
    return {name: sentences for name, sentences in said.items() if sentences}


def without_sheets(notebook: NotebookNode) -> None:
    notebook.metadata["test"] = "no sheets"


def rename_draw(notebook: NotebookNode) -> None:
    notebook.cells[MOVED].outputs[0].data[DESCRIPTION]["name"] = "other"


def change_still(notebook: NotebookNode) -> None:
    notebook.cells[MOVED].outputs[0].data["image/png"] = "AAAA"


def one_value_more(notebook: NotebookNode) -> None:
    about = notebook.cells[MOVED].outputs[0].data[DESCRIPTION]
    about["controls"][0]["texts"].append("4")


ASKED = both(
    lambda n: n.cells[STATED].update(source=n.cells[STATED].source + QUESTION),
    comment("# answer: much", PRINTED),
)
LAW = "def law(b):\n    assert b**2 >= 0\n"
IGNORING = "nbval ignores 2 of 5 code cells, more than 25%"
NO_ALT = "code cell 2 ('# figure: parabola') shows a picture. Write as its first line"
BREAKS: dict[str, list[tuple[Change, str]]] = {
    "has_unique_labels": [
        (
            edit(STATED, "label: square\n", "label: squares\n"),
            "label squares stands in",
        ),
        (edit(DRAWN, "# figure: parabola", "# figure: square"), "Rename one"),
    ],
    "names_no_machine": [
        (edit(STATED, "for all", "file:///work/x for all"), "text ('```{prf:theorem}"),
        (edit(PRINTED, "9", "'/home/me/9'"), "print('/home/me/9')"),
        (edit(PRINTED, "9", r"'C:\\Users\\me'"), "Users"),
        (
            show(PRINTED, stream("stdout", "in /tmp/9")),
            "code cell 3 ('print(9)') names",
        ),
        (show(PRINTED, output({"text/html": "<a href='/root/9'>"})), "/root/9"),
    ],
    "speaks_plainly": [
        (edit(STATED, "Equal", "TODO: equal"), "says 'TODO' in 'TODO: equal signs"),
        (edit(STATED, "Equal", "Delving deep, equal"), "Delving"),
        (edit(STATED, "Equal", "It is important\nto note: equal"), "leave it out"),
    ],
    "uses_the_kernel": [
        (lambda n: n.metadata.kernelspec.update(name="mine"), "has the kernel 'mine'"),
        (lambda n: n.metadata.pop("kernelspec"), "Choose Python 3"),
    ],
    "opens_with_aims": [
        (edit(TEXT, "# Squares", "## Squares"), "opens without '# Title'"),
        (edit(TEXT, "You will", "We"), "opens without 'You will'"),
        (edit(TEXT, "You need", "Bring"), "opens without 'You need'"),
        (move(TEXT, 1), "Write it into the first cell"),
        (move(STATED, 0), "opens without '# Title'"),
    ],
    "is_executed": [
        (lambda n: n.cells[PRINTED].update(execution_count=None), "count None, not 4"),
        (lambda n: n.cells[CHECKED].update(execution_count=7), f"notebooks NB={PATH}"),
    ],
    "stores_no_trouble": [
        (
            show(PRINTED, new_output("error", ename="KeyError")),
            "stores an error, KeyEr",
        ),
        (show(PRINTED, stream("stderr", "old\n")), "3 ('print(9)') stores a warning"),
    ],
    "supports_its_statements": [
        (both(edit(STATED, ":label: squares\n", ""), drop(CHECKED)), "has no label"),
        (drop(CHECKED), "begins with the line: # evidence: squares"),
        (move(CHECKED, STATED), "theorem 'squares' has no evidence"),
        (edit(STATED, "{prf:proof}", "{note}"), "theorem 'squares' is neither proved"),
        (edit(STATED, "Equal signs give plus.", ""), "nor cited"),
        (edit(STATED, ":::{prf:proof}", f"{CITED}:::{{prf:proof}}"), "nor cited"),
        (
            edit(STATED, "```{prf:def", f"{CITED}```{{prf:def"),
            "'known' has no evidence",
        ),
    ],
    "checks_in_evidence": [
        (
            edit(CHECKED, "assert", "b ="),
            "code cell 1 ('# evidence: squares') asserts not",
        ),
        (comment("# evidence: cubes\nassert a", PRINTED), "no statement has the label"),
        (
            comment("a = 1\n# evidence: squares", PRINTED),
            "in the first line, as # evid",
        ),
        (tag("raises-exception", CHECKED), "evidence that nbval does not check"),
        (tag("nbval-skip", CHECKED), "Remove its tag"),
    ],
    "answers_its_predictions": [
        (
            both(ASKED, edit(STATED, ":label: much\n", "")),
            "predict 'How much?' has no lab",
        ),
        (both(ASKED, move(PRINTED, STATED)), "line: # answer: much"),
        (
            both(ASKED, edit(PRINTED, "# answer: much\n", "")),
            "predict 'much' has no answer",
        ),
        (
            both(
                ASKED, comment("# answer: much", SET), show(SET, stream("stdout", "9"))
            ),
            "predict 'much' has 2 cells that answer it",
        ),
        (
            both(ASKED, edit(STATED, "{predict}", "{note}")),
            "no prediction of the page has",
        ),
        (comment("a = 1\n# answer: much", PRINTED), "in the first lines, as # answer"),
        (both(ASKED, lambda n: n.cells[PRINTED].outputs.clear()), "prints no answer"),
        (both(ASKED, tag("nbval-ignore-output", PRINTED)), "Remove its mark"),
    ],
    "ignores_few_outputs": [
        (tag("nbval-ignore-output", DRAWN, PRINTED), IGNORING),
        (tag("nbval-ignore", DRAWN, PRINTED), IGNORING),
        (tag("picture-varies", DRAWN, MOVED), IGNORING),
        (tag("nbval-skip", DRAWN, PRINTED), "code cell 3 ('print(9)')"),
        (comment("# NBVAL_IGNORE_OUTPUT", SET, PRINTED), IGNORING),
        (comment("# NBVAL_SKIP", SET, PRINTED), IGNORING),
        (comment("# PYTEST_VALIDATE_IGNORE_OUTPUT", SET, PRINTED), IGNORING),
    ],
    "describes_its_figures": [
        (edit(DRAWN, ALT, ""), NO_ALT),
        (edit(DRAWN, ALT, "# alt:\n"), NO_ALT),
        (edit(DRAWN, ALT, "# alt:  \n"), NO_ALT),
        (edit(DRAWN, "# caption: Squares.\n", ""), "write both"),
        (edit(DRAWN, "# figure", "x = 1\n# figure"), "above everything else"),
        (show(DRAWN, output(PICTURE)), "describes one figure and shows 2"),
        (lambda n: n.cells[DRAWN].outputs.clear(), "describes one figure and shows 0"),
        (
            show(PRINTED, output({"image/svg+xml": "<svg/>"})),
            "('print(9)') shows a pict",
        ),
    ],
    "has_short_cells": [
        (comment("x = 1\n\n" * 30, PRINTED), "code cell 3 ('x = 1') has 31 lines")
    ],
    "has_something_to_move": [
        (
            both(lambda n: n.cells[MOVED].outputs.clear(), without_sheets),
            "Add one with explore()",
        )
    ],
    "stores_its_frames": [
        (without_sheets, "draw draws: its frames are not stored"),
        (edit(MOVED, "3]", "4]"), "its code has changed since"),
        (change_still, "its still is not of its frames"),
        (one_value_more, "3 frames for 4 choices"),
        (rename_draw, "frames are stored that no draw draws"),
        (
            lambda n: n.cells[MOVED].outputs[0].data.pop(DESCRIPTION),
            "without a description",
        ),
    ],
    "stays_within_its_budget": [
        (lambda n: n.metadata.pop("cost"), "is not stored. Run: make notebooks"),
        (
            lambda n: n.metadata.cost.update(seconds=61),
            "takes 61 s of one core, more than 60",
        ),
        (
            both(
                comment("X, y, *_ = data.mnist()", PRINTED),
                lambda n: n.metadata.cost.update(seconds=121),
            ),
            "takes 121 s of one core, more than 120",
        ),
    ],
    "says_how_to_install": [
        (edit(MOVED, "[torch]", ""), "start the first code cell with: # inst"),
        (comment("# install: pip install x", PRINTED), "Remove it"),
    ],
}


def test_good_notebook_breaks_no_rule():
    assert breaches(good()) == {}


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        pytest.param(name, *case, id=f"{name}-{i}")
        for name, cases in BREAKS.items()
        for i, case in enumerate(cases)
    ],
)
def test_change_breaks_just_this_rule(name: str, change: Change, words: str):
    notebook = good()
    change(notebook)
    found = breaches(notebook)
    assert list(found) == [name]
    assert words in found[name]


def test_every_rule_is_shown_to_fail():
    elsewhere = {"is_listed", "states_nothing"}  # the two tests below
    rules = {rule.__name__ for rule in [*NOTEBOOK_RULES, *PAGE_RULES]}
    assert rules == elsewhere | set(BREAKS)


def test_contents_and_pages_must_agree():
    page = Page(PATH, good())
    book = Book({PATH: page}, ["book/chapter/gone"])
    assert [*is_listed(page, book), *lists_only_pages(book)] == [
        f"{PATH} is not in the contents. Add to _toc.yml: - file: book/chapter/page",
        "_toc.yml lists book/chapter/gone, which does not exist. Write it or delete the "
        "line.",
    ]


def test_page_without_code_may_define_but_not_claim():
    def said(text: str) -> list[str]:
        page = Page(OTHER, new_notebook(cells=[new_markdown_cell(text)]))
        book = Book({OTHER: page}, ["book/chapter/other"])
        return [sentence for rule in PAGE_RULES for sentence in rule(page, book)]

    assert said(DEFINITION) == []
    assert said(THEOREM) == [
        f"{OTHER}, theorem 'squares': only a notebook can give evidence. Move it to one."
    ]


def test_label_may_not_be_used_on_another_page_either():
    found = breaches(good(), other=DEFINITION)
    assert list(found) == ["has_unique_labels"]
    assert f"square stands in {PATH}, {OTHER}" in found["has_unique_labels"]


@pytest.mark.parametrize(
    "change",
    [
        edit(STATED, ":::{prf:proof}", ":::{admonition} Proof\n:class: dropdown"),
        edit(STATED, ":::{prf:proof}", ":::{dropdown} Proof of the theorem"),
        edit(STATED, ":::{prf:proof}\nEqual", "````{toggle}\n```{prf:proof}\nEqual"),
        edit(STATED, "for all $a$", "for all $a$ {cite:p}`who2000`"),
        both(edit(CHECKED, "# ev", f"{ALT}# ev"), show(CHECKED, output(PICTURE))),
        edit(TEXT, "# Squares", "(sec-squares)=\n# Squares"),
        edit(STATED, "Equal", "See https://x.org/home/tmp and ~/work. Equal"),
        edit(STATED, "Equal", "```python\n{prf:theorem}\n```\n\nEqual"),
        ASKED,
        both(ASKED, comment("# check: nine", PRINTED)),
        tag("nbval-ignore-output", PRINTED),
        tag("hide-input", DRAWN, PRINTED),
        comment("x = 1\n\n" * 29, PRINTED),
        both(
            comment("from dlcore.transformers.gpt import GPT", PRINTED),
            lambda n: n.metadata.cost.update(seconds=120),
        ),
    ],
)
def test_rules_leave_room(change: Change):
    notebook = good()
    change(notebook)
    assert breaches(notebook) == {}


@pytest.mark.parametrize(
    "source",
    [
        "assert a > 0",
        "%time a = 1\nfor b in a:\n    assert b, 'positive'",
        "np.testing.assert_allclose(a, 1)",
        "assert_close(a, 1)",
        "with torch.no_grad():\n    assert all(x > 0 for x in a)",
        f"{LAW}law(2)",
    ],
)
def test_assertion_on_a_variable_counts(source: str):
    assert asserts(source)


@pytest.mark.parametrize(
    "source",
    [
        "a = 1",
        "assert True",
        "assert 1 > 0",
        "assert len('ab') == 2",
        "assert (a > 0, 'positive')",
        "np.testing.assert_allclose(1, 1)",
        "np.allclose(a, 1)",
        "# assert a > 0",
        LAW,
    ],
)
def test_assertion_that_cannot_fail_does_not_count(source: str):
    assert not asserts(source)


def test_broken_file_is_named_with_its_remedy(tmp_path: Path):
    file = tmp_path / "page.ipynb"
    file.write_text("{<<<<<<< HEAD")
    with pytest.raises(
        ValueError, match=r"page.ipynb is not a valid notebook.*git check"
    ):
        read(file)
