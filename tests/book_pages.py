"""The pages of the book, read apart into what the rules speak of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import yaml
from book_figures import describe
from book_ledger import CHECK, EVIDENCE, STATEMENTS
from book_predict import ANSWER
from book_sheets import Sheet, folder
from book_sheets import read as read_sheet
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode

from dlcore.figures.live import LIVE

MARKDOWN = MarkdownIt().use(colon_fence_plugin).use(dollarmath_plugin)
# Tags of cells whose code is not in view.
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
# Directives that fold what they hold; those with one of these classes do so as well.
FOLDS = {"dropdown", "toggle"}
NO_PROSE = {"code", "code-block", "code-cell", "math"}


class Directive(NamedTuple):
    """What stands in a text cell as ```{kind} title, :option: value, body."""

    place: int
    kind: str
    title: str
    options: dict[str, str]
    body: str

    @property
    def label(self) -> str | None:
        """What others refer to it by."""
        return self.options.get("label")

    @property
    def classes(self) -> set[str]:
        """The words of its option ``:class:``."""
        return {*self.options.get("class", "").split()}

    @property
    def folds(self) -> bool:
        """Tell whether the page shows no more of it than its title."""
        return bool(FOLDS & {self.kind, *self.classes})

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.kind.removeprefix('prf:')} {self.label or self.title or self.body.strip()[:40]!r}"


class Code(NamedTuple):
    """A code cell: its place among all cells, its name in messages, what it says."""

    place: int
    name: str
    cell: NotebookNode
    about: dict[str, str]  # the figure it shows
    source: str  # without the comments about the figure
    evidence: str | None  # the label of the statement it checks

    def marks(self) -> str:
        """Return where nbval looks for instructions."""
        tags = "\n".join(self.cell.metadata.get("tags", []))
        return f"{tags}\n{self.cell.source}".replace("_", "-")

    def in_view(self) -> bool:
        """Tell whether the page shows the code: no tag hides it, nothing folds it."""
        tags = {*self.cell.metadata.get("tags", [])}
        answers = bool(ANSWER.match(self.source)) and "hide-output" not in tags
        source = ANSWER.sub(r"\1", self.source)
        checks = EVIDENCE.match(source) or CHECK.match(source)
        return not (tags & HIDDEN or answers or checks)

    def pictures(self) -> list[NotebookNode]:
        """Return the outputs that show one."""
        outputs = [output.get("data", {}) for output in self.cell.outputs]
        return [data for data in outputs if any(m.startswith("image/") for m in data)]


class Page:
    """A notebook, or a Markdown file as a notebook of one text cell."""

    def __init__(self, path: str, notebook: NotebookNode) -> None:
        self.path, self.notebook = path, notebook
        self.cells, self.metadata = notebook.cells, notebook.metadata
        self.again = f"Run: make notebooks NB={path}"
        self.names: list[str] = []  # what messages call a cell
        self.directives: list[Directive] = []
        self.code: list[Code] = []  # without empty cells
        number = 0
        for place, cell in enumerate(self.cells):
            first = cell.source.strip().split("\n")[0]
            kind = f"code cell {number}" if cell.cell_type == "code" else "text"
            self.names.append(f"{path}, {kind} ({first!r})")
            if cell.cell_type == "markdown":
                self.directives += directives(place, cell.source)
            elif cell.cell_type == "code":
                number += 1
                if first:
                    about, source = describe(cell.source)
                    match = EVIDENCE.match(source)
                    label = match and match[1]
                    name = self.names[-1]
                    self.code.append(Code(place, name, cell, about, source, label))
        self.claims = [
            d for d in self.directives if is_statement(d) and d.kind != "prf:definition"
        ]


@dataclass
class Book:
    """The pages by path, what the table of contents lists, and the stored frames."""

    pages: dict[str, Page]
    toc: list[str] = field(default_factory=list)
    sheets: dict[str, dict[str, Sheet]] = field(default_factory=dict)


def read_book(root: Path) -> Book:
    """Read all pages but those of assignments."""
    pages, sheets = {}, {}
    for file in sorted((root / "book").rglob("*.*")):
        path = file.relative_to(root)
        hidden = any(p.startswith((".", "_")) or p == "assignments" for p in path.parts)
        if path.suffix in {".ipynb", ".md", ".rst"} and not hidden:
            pages[path.as_posix()] = Page(path.as_posix(), read(file))
            sheets[path.as_posix()] = {
                sheet.stem: read_sheet(sheet) for sheet in folder(file).glob("*.webp")
            }
    toc = entries(yaml.safe_load((root / "_toc.yml").read_text()))
    return Book(pages, list(toc), sheets)


def read(file: Path) -> NotebookNode:
    """Read a page, or say which file is no notebook."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".ipynb":
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    try:
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, Warning) as error:
        raise ValueError(
            f"{file} is not a valid notebook. Save it again in JupyterLab (make lab), or "
            f"restore it: git checkout -- {file}\n{error}"
        ) from None
    return notebook


def entries(toc: Any) -> Iterator[str]:
    """Yield the pages that a table of contents lists, without their suffix."""
    for key, value in toc.items() if isinstance(toc, dict) else enumerate(toc):
        if key in ("root", "file"):
            yield re.sub(r"\.(md|rst|ipynb)$", "", value)
        elif isinstance(value, dict | list):
            yield from entries(value)


def directive(place: int, token: Token) -> Directive | None:
    """Return the directive that a token of Markdown is, if it is one."""
    head = re.fullmatch(r"\{([\w:-]+)\}\s*(.*)", token.info.strip())
    if token.type not in {"fence", "colon_fence"} or not head:
        return None
    options, body = re.fullmatch(
        r"((?::[\w-]+:.*\n?)*)([\s\S]*)", token.content
    ).groups()
    found = re.findall(r"^:([\w-]+):[ \t]*(.*?)[ \t]*$", options, re.M)
    return Directive(place, *head.groups(), dict(found), body)


def directives(place: int, text: str) -> Iterator[Directive]:
    """Yield the directives of a text, outer ones before those inside them."""
    for token in MARKDOWN.parse(text):
        if d := directive(place, token):
            yield d
            yield from directives(place, d.body)


def words(text: str) -> Iterator[str]:
    """Yield the words of a text in the open: no formulas, no code, nothing folded.

    Of a prediction, the words on its choices wait for a guess.
    """
    for token in MARKDOWN.parse(text):
        d = directive(0, token)
        if d and d.kind == "predict":
            choices = re.findall(r"^- (.*?):\s", d.body, re.M)
            yield from words("\n\n".join([d.title, *choices]))
        elif d and not d.folds and d.kind not in NO_PROSE:
            yield from words(f"{d.title}\n\n{d.body}")
        elif token.type == "inline":
            parts = [p for p in token.children or [] if "math" not in p.type]
            said = "".join(p.content or " " for p in parts)
            said = re.sub(r"\{[\w:-]+\}", "", said)  # the names of roles
            yield from (w for w in said.split() if any(map(str.isalnum, w)))


def is_statement(d: Directive) -> bool:
    """Tell whether the ledger lists it."""
    return d.kind.startswith("prf:") and d.kind[4:] in STATEMENTS


def is_explore(data: NotebookNode) -> bool:
    """Tell whether an output is a figure that the reader can move."""
    return data.get("text/plain", "").startswith("explore(")


def is_live(data: NotebookNode) -> bool:
    """Tell whether an output is a figure that computes in the page."""
    return LIVE in data
