"""The pages of the book, read apart into what the rules speak of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import yaml
from book_figures import describe
from book_ledger import EVIDENCE, STATEMENTS
from book_sheets import Sheet, folder
from book_sheets import read as read_sheet
from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from nbformat import NotebookNode

from dlcore.figures.live import LIVE

MARKDOWN = MarkdownIt().use(colon_fence_plugin)


class Directive(NamedTuple):
    """What stands in a text cell as ```{kind} title, :label: label, body."""

    place: int
    kind: str
    title: str
    label: str | None
    body: str

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


def directives(place: int, text: str) -> Iterator[Directive]:
    """Yield the directives of a text, outer ones before those inside them."""
    for token in MARKDOWN.parse(text):
        head = re.fullmatch(r"\{([\w:-]+)\}\s*(.*)", token.info.strip())
        if token.type in {"fence", "colon_fence"} and head:
            options, body = re.fullmatch(
                r"((?::[\w-]+:.*\n?)*)([\s\S]*)", token.content
            ).groups()
            label = re.search(r"^:label:[ \t]*(\S+)", options, re.M)
            yield Directive(place, *head.groups(), label and label[1], body)
            yield from directives(place, body)


def is_statement(d: Directive) -> bool:
    """Tell whether the ledger lists it."""
    return d.kind.startswith("prf:") and d.kind[4:] in STATEMENTS


def is_explore(data: NotebookNode) -> bool:
    """Tell whether an output is a figure that the reader can move."""
    return data.get("text/plain", "").startswith("explore(")


def is_live(data: NotebookNode) -> bool:
    """Tell whether an output is a figure that computes in the page."""
    return LIVE in data
