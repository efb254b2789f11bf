"""The rules for pages: the book obeys them, and each of them can fail."""

import tomllib
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
WAITING = tomllib.loads((ROOT / "tests/awaited.toml").read_text())
# The pages that are not yet held to a rule, by its name.
AWAITED = {
    rule: {
        Path("book", folder, f"{name}.ipynb").as_posix()
        for folder, names in folders.items()
        for name in names
    }
    for rule, folders in WAITING.items()
}
CASES = [
    pytest.param(page, rule, id=f"{page.path.removeprefix('book/')}-{rule.__name__}")
    for page in BOOK.pages.values()
    for rule in (NOTEBOOK_RULES if page.path.endswith(".ipynb") else PAGE_RULES)
]


def judge(page: Page, rule: Rule, book: Book, awaited: dict[str, set[str]]) -> str:
    """Return what a rule says of a page; of one that it waits for, if it obeys by now."""
    found, name = "\n".join(rule(page, book)), rule.__name__
    if page.path not in awaited.get(name, set()):
        return found
    if found:
        return ""
    return f"{page.path} obeys {name}: take it off the list, tests/awaited.toml."


@pytest.mark.parametrize(("page", "rule"), CASES)
def test_page_obeys(page: Page, rule: Rule):
    if said := judge(page, rule, BOOK, AWAITED):
        pytest.fail(said, pytrace=False)


def test_only_rules_and_pages_that_exist_are_awaited():
    assert AWAITED.keys() <= {rule.__name__ for rule in NOTEBOOK_RULES}
    assert set().union(*AWAITED.values()) <= BOOK.pages.keys()


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
ALGORITHM = """\
def square(a):
    total = 0
    for _ in range(a):
        total += a
    return total
"""
ASKS = """
:::{{predict}} Which is it?
:label: ask-{0}

- {0}: Yes, as one, two and three go on.
- 4: No.
:::
"""
END = """\
## Summary

Squares are not negative.

:::{predictions}
:::

## Exercises

:::{exercise} Roots
:label: ex-roots
:class: build

Write a program that finds roots.
:::

:::{dropdown} Hint
Halve.
:::

::::{solution} ex-roots
:class: dropdown

```python
def root(b):
    a = b
    while a * a > b:
        a = a / 2
    return a
```
::::
"""
# of good()
TEXT, MOVED, STATED, CHECKED, DRAWN, PRINTED, _, SET, SHOWN, ASKING = range(10)
ANSWERED, ENDING = -2, -1  # the last answer, the last text


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
        new_code_cell(ALGORITHM),
        new_markdown_cell("".join(ASKS.format(n) for n in (1, 2, 3))),
    ]
    for n in (1, 2, 3):
        answer = f"# answer: ask-{n}\nprint({n})"
        cells.append(new_code_cell(answer, outputs=[stream("stdout", f"{n}\n")]))
    cells.append(new_markdown_cell(END))
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


def ask(n: int) -> Change:
    """Ask one question more in the text, with a cell that answers it."""

    def change(notebook: NotebookNode) -> None:
        notebook.cells[ASKING].source += ASKS.format(n)
        cell = new_code_cell(f"# answer: ask-{n}\nprint({n})")
        cell.outputs.append(stream("stdout", f"{n}\n"))
        notebook.cells.insert(ASKING + 1, cell)
        execute(notebook)

    return change


def self_check(notebook: NotebookNode) -> None:
    """Ask one question more below the summary."""
    edit(ENDING, ":::{predictions}", f"{ASKS.format(8)}\n:::{{predictions}}")(notebook)
    cell = new_code_cell("# answer: ask-8\nprint(8)")
    cell.outputs.append(stream("stdout", "8\n"))
    notebook.cells.append(cell)
    execute(notebook)


def solve(source: str) -> Change:
    """Add a folded cell at the end."""

    def change(notebook: NotebookNode) -> None:
        notebook.cells.append(new_code_cell(source, metadata={"tags": ["hide-input"]}))
        execute(notebook)

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
MANY = "word " * 5000
NOTE = f":::{{note}}\n{MANY}\n:::\n\n"
PROGRAM = END.split("```python\n")[1].split("```")[0]
COUNT = ":::{predictions}\n:::\n"
HINT = ":::{dropdown} Hint\nHalve.\n:::\n"
SOLVED = END[END.index("::::{solution}") :]
SIMPLE = """
:::{exercise} More
:label: ex-more

How many?
:::

:::{dropdown} Hint
Count.
:::

:::{solution} ex-more
:class: dropdown

All.
:::

"""
LEFT = "left.plot(x)\nplot_points(X, y, square(right, 1))\n"
SECONDS = """\
def seconds(f):
    begin = process_time()
    f()
    return process_time() - begin


"""
LAW = "def law(b):\n    assert b**2 >= 0\n"
IGNORING = "nbval ignores 3 of 9 code cells, more than 25%"
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
        (tag("nbval-ignore-output", DRAWN, PRINTED, SHOWN), IGNORING),
        (tag("nbval-ignore", DRAWN, PRINTED, SHOWN), IGNORING),
        (tag("picture-varies", DRAWN, MOVED, SHOWN), IGNORING),
        (tag("nbval-skip", DRAWN, PRINTED, SHOWN), "code cell 3 ('print(9)')"),
        (comment("# NBVAL_IGNORE_OUTPUT", SET, PRINTED, SHOWN), IGNORING),
        (comment("# NBVAL_SKIP", SET, PRINTED, SHOWN), IGNORING),
        (comment("# PYTEST_VALIDATE_IGNORE_OUTPUT", SET, PRINTED, SHOWN), IGNORING),
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
    "asks_predictions": [
        (
            both(edit(ASKING, ASKS.format(3), ""), drop(ANSWERED)),
            "asks for 2 predictions, not 3 to 6",
        ),
        (
            both(edit(ASKING, ASKS.format(3), ""), drop(ANSWERED), self_check),
            "asks for 2 predictions",
        ),
        (both(ask(4), ask(5), ask(6), ask(7)), "asks for 7 predictions"),
        (edit(ENDING, ":::{predictions}\n:::\n", ""), "write one :::{predictions}"),
        (edit(ENDING, "## Exercises", COUNT), "write one :::{predictions}"),
        (
            both(edit(ENDING, COUNT, ""), edit(TEXT, "You need", f"{COUNT}You need")),
            "below the last question",
        ),
    ],
    "hints_before_solutions": [
        (edit(ENDING, HINT, ""), "the exercise ex-roots has no hint"),
        (edit(ENDING, "Halve.\n", ""), "what to try first: :::{dropdown} Hint"),
        (edit(ENDING, "{dropdown} Hint", "{note} Hint"), "has no hint"),
        (edit(ENDING, "{dropdown} Hint", "{dropdown} Answer"), "has no hint"),
        (
            both(edit(ENDING, HINT, ""), edit(ENDING, ":::{exe", f"{HINT}:::{{exe")),
            "has no hint",
        ),
        (
            edit(ENDING, HINT, ":::{exercise} Two\n:label: two\n\n?\n:::\n" + HINT),
            "ex-roots has no hint",
        ),
        (edit(ENDING, HINT + "\n" + SOLVED, SOLVED + "\n" + HINT), "has no hint"),
    ],
    "builds_something": [
        (edit(ENDING, ":class: build\n", ""), "write below its label: :class: build"),
        (edit(ENDING, "    return a\n", ""), "ex-roots has no program of 5 lines"),
        (edit(ENDING, "    return a\n", "\n"), "has no program of 5 lines"),
        (edit(ENDING, "```python", "```text"), "has no program of 5 lines"),
        (edit(ENDING, SOLVED, ""), "has no program of 5 lines"),
        (
            both(edit(ENDING, PROGRAM, ""), solve("# solution: ex-roots\na = 1")),
            "has no program of 5 lines",
        ),
        (
            both(
                edit(ENDING, PROGRAM, ""),
                solve(f"# solution: ex-roots\n{PROGRAM}"),
                move(-1, ASKING),
            ),
            "as a folded cell with the first line # solution: ex-roots",
        ),
        (solve(f"# solution: ex-cubes\n{PROGRAM}"), "no exercise has the label ex-cub"),
        (
            both(solve(f"# solution: ex-roots\n{PROGRAM}"), tag("remove-output", -1)),
            "shows a solution before it is asked for",
        ),
    ],
    "shows_code_to_read": [
        (comment("assert a\nb = 1\n" * 8, PRINTED), "less than 50%"),
        (comment("assert (\n    a\n)\n" * 3, PRINTED), "less than 50%"),
        (comment("\n# A remark.\nassert a\n" * 8, PRINTED), "less than 50%"),
        (comment("import a\nfrom b import (\n    c,\n    d,\n)\n" * 2, SHOWN), "less"),
        (
            comment("fig, (left, right) = plt.subplots(1, 2)\n" + LEFT * 7, SHOWN),
            "less",
        ),
        (comment("for side in axes.flat:\n    side.plot(x)\n" * 5, SHOWN), "less"),
        (comment("for a, b in zip(x, axes):\n    b.plot(a)\n" * 5, SHOWN), "less"),
        (comment("for a in b:\n    if a:\n        assert a\n" * 3, SHOWN), "less"),
        (comment("with no_grad():\n    assert_close(a, b)\n" * 4, SHOWN), "less"),
        (
            comment(
                "def draw(ax):\n    'Dots.'\n    ax.plot(x)\n    return ax\n" * 2, SHOWN
            ),
            "tag cells that draw or import hide-input",
        ),
        (tag("hide-input", MOVED, PRINTED, SET, SHOWN), "of which 0 are there"),
        (tag("hide-input", MOVED, DRAWN, PRINTED, SET, SHOWN), "shows 0 lines"),
        (
            both(
                comment("# check: all is well", PRINTED, SET, SHOWN),
                tag("hide-input", MOVED),
            ),
            "of which 0 are there",
        ),
    ],
    "is_short": [
        (edit(STATED, "Equal", MANY), "words in the open, more than 5000. Leave out"),
        (edit(STATED, "```{prf:d", f"{NOTE}```{{prf:d"), "fold long proofs"),
        (edit(ASKING, "- 4:", f"- {MANY}:"), "words in the open"),
    ],
    "asserts_no_time": [
        (comment("assert perf_counter() < 9", PRINTED), "'assert perf_counter() < 9'"),
        (comment("a = time.perf_counter()\nassert a", PRINTED), "what can be counted"),
        (
            comment("a, b = 1, process_time()\nc = 2 * b\nassert c < 1", PRINTED),
            "c < 1",
        ),
        (comment("a = {}\na[1] = monotonic()\nassert a[1] < 1", PRINTED), "a[1] < 1"),
        (comment("a = []\na.append(time.time())\nassert max(a)", PRINTED), "max(a)"),
        (comment(f"{SECONDS}assert seconds(f) < 1", PRINTED), "seconds(f) < 1"),
        (
            comment(f"{SECONDS}assert_close(seconds(f), 1)", PRINTED),
            "asserts what a cl",
        ),
        (comment("a = %timeit -o f()\nassert a.best < 1", PRINTED), "a.best < 1"),
        (comment("for a in [time.time_ns()]:\n    assert a", PRINTED), "assert a"),
        (
            both(comment("a = perf_counter()", PRINTED), comment("assert a > 0", SET)),
            "code cell 5 ('assert a > 0') asserts what a clock said",
        ),
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


def test_page_that_is_awaited_may_break_the_rule_until_it_obeys():
    page = Page(PATH, good())
    book, awaited = Book({PATH: page}), {"is_listed": {PATH}}
    assert "is not in the contents" in judge(page, is_listed, book, {})
    assert judge(page, is_listed, book, awaited) == ""
    book.toc.append("book/chapter/page")
    assert judge(page, is_listed, book, {}) == ""
    assert judge(page, is_listed, book, awaited) == (
        f"{PATH} obeys is_listed: take it off the list, tests/awaited.toml."
    )


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
        both(ask(4), ask(5), ask(6)),
        both(ask(4), ask(5), ask(6), self_check),
        edit(ENDING, ":::{dropdown} Hint", ":::{admonition} Hint\n:class: dropdown"),
        both(
            edit(ENDING, ":::{exercise}", "::::{exercise}"),
            edit(ENDING, "roots.\n:::\n\n" + HINT, f"roots.\n{HINT}::::\n"),
        ),
        edit(ENDING, ":::{exercise}", f"{SIMPLE}\n:::{{exercise}}"),
        both(edit(ENDING, PROGRAM, ""), solve(f"# solution: ex-roots\n{PROGRAM}")),
        both(
            edit(ENDING, PROGRAM, ""),
            solve(f"# check: roots of squares\n# solution: ex-roots\n{PROGRAM}"),
            tag("x", -1),
        ),
        comment("assert a\n" * 3, PRINTED),
        comment("\n# A remark.\n" * 20, PRINTED),
        comment("for a in b:\n    c = a\n" * 5, PRINTED),
        comment(
            "for ax, a in zip(axes, b):\n    c = f(a)\n    ax.plot(c)\n" * 5, SHOWN
        ),
        both(comment("assert a\n" * 20, PRINTED), tag("remove-cell", PRINTED)),
        comment("# check: all of them\n" + "assert a\n" * 20, PRINTED),
        both(ASKED, edit(PRINTED, "print", "assert a\n" * 20 + "print")),
        edit(STATED, "Equal", "$x$ " * 5000 + "equal"),
        edit(STATED, "Equal", "$$\n" + "x y z\n" * 2000 + "$$ (eq-x)\n\nEqual"),
        edit(STATED, "Equal", f"```python\n{MANY}\n```\n\nEqual"),
        edit(STATED, ":::{prf:proof}", f":::{{dropdown}} Proof\n{MANY}\n"),
        edit(STATED, ":::{prf:proof}", f":::{{prf:proof}}\n:class: dropdown\n\n{MANY}"),
        edit(ASKING, "4: No.", f"4: {MANY}"),
        edit(ENDING, "Halve.", MANY),
        comment(f"# check: n\n{SECONDS}print(seconds(f))\nassert n == 3", PRINTED),
        comment("a, b = process_time(), f()\nassert b < 9", PRINTED),
        comment("def f():\n    return 1, process_time()\n\n\nassert f()[0]", PRINTED),
        both(comment("a = time.time()", PRINTED), comment("a = 1\nassert a", SET)),
        comment("assert time.sleep(0) is None", PRINTED),
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
