"""The reference of the package: a page per folder, made of docstrings and of the book.

What a module lists in ``__all__`` is public. ``.. api:: dlcore.<folder>`` writes the
documentation of these names, module by module. To each of them belong the page that
teaches it and those that use it, which are found in the code of the notebooks.
"""

import ast
import inspect
import pkgutil
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import yaml
from book_code import PACKAGE, ROOT, code, parsed
from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

OPTIONS = {"class": "   :members:", "data": "   :no-value:", "function": ""}


def modules(package: str) -> list[ModuleType]:
    """Return the modules of a folder that have public names, or the module itself."""
    found = import_module(package)
    inner = [
        import_module(f"{package}.{info.name}")
        for info in pkgutil.iter_modules(getattr(found, "__path__", []))
        if not info.name.startswith("_")
    ]
    return [m for m in inner or [found] if getattr(m, "__all__", None)]


@cache
def own(module: ModuleType) -> list[str]:
    """Return the public names of a module that are made there, in the order of its file."""
    places: dict[str, tuple[int, int]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                places.setdefault(name, (node.lineno, node.col_offset))
            case ast.Name(id=name, ctx=ast.Store()):
                places.setdefault(name, (node.lineno, node.col_offset))
    return sorted(set(module.__all__) & places.keys(), key=places.__getitem__)


def kind(thing: object) -> str:
    """Return what something is, by the name of autodoc's directive for it."""
    if inspect.isclass(thing) and thing.__module__.startswith(f"{PACKAGE}."):
        return "class"
    return "function" if inspect.isroutine(thing) else "data"


@cache
def pages(toc: Path = ROOT / "_toc.yml") -> list[str]:
    """Return the notebooks of the book in the order of reading, as Sphinx names them."""
    tree = yaml.safe_load(toc.read_text(encoding="utf-8"))

    def listed(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from [node["file"]] if "file" in node else []
            for value in node.values():
                yield from listed(value)
        elif isinstance(node, list):
            for value in node:
                yield from listed(value)

    return [p for p in listed(tree) if (ROOT / f"{p}.ipynb").is_file()]


def mentioned(sources: list[str]) -> set[str]:
    """Return what some code takes from the package, each by the name of its home."""
    found: set[str] = set()
    names: dict[str, str] = {}  # what stands for what was imported
    todo = [node for source in sources for node in ast.walk(parsed(source))]
    for node in todo:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(
            f"{PACKAGE}."
        ):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                names[alias.asname or alias.name] = whole
                found.add(whole)
    for node in todo:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=part) if (
                name in names
            ):
                found.add(f"{names[name]}.{part}")
    return {home(name) for name in found}


@cache
def home(name: str) -> str:
    """Return where something is defined that may have been imported from elsewhere."""
    place, _, last = name.rpartition(".")
    try:
        thing = getattr(import_module(place), last)
    except (ImportError, AttributeError):
        return name
    if inspect.isfunction(thing) or inspect.isclass(thing):
        return f"{thing.__module__}.{thing.__qualname__}"
    return name


@cache
def users() -> dict[str, list[str]]:
    """Return, for each name of the package, the pages that use it, in their order."""
    found: dict[str, list[str]] = {}
    for page in pages():
        notebook = nbformat.read(ROOT / f"{page}.ipynb", as_version=4)
        for name in mentioned(code(notebook)):
            found.setdefault(name, []).append(page)
    return found


def used(module: ModuleType, name: str) -> list[str]:
    """Return the pages that use a name of a module, in their order."""
    return users().get(f"{module.__name__}.{name}", [])


@cache
def at_home(module: ModuleType) -> str | None:
    """Return the page of its chapter that uses most of a module's names, if any does.

    Of equals, the first.
    """
    chapter = module.__name__.split(".")[1]
    inside = [p for p in pages() if p.split("/")[1] == chapter]
    count = Counter(page for name in own(module) for page in used(module, name))
    best = max(inside, key=count.__getitem__, default=None)
    return best if count[best] else None


def taught(module: ModuleType, name: str) -> str | None:
    """Return the page that teaches a name: where its module is at home, if used there.

    Other names are taught where their chapter first uses them.
    """
    best = at_home(module)
    here = [
        p
        for p in used(module, name)
        if p.split("/")[1] == module.__name__.split(".")[1]
    ]
    return best if best in here or not here else here[0]


def where(module: ModuleType, name: str) -> str:
    """Return the links to the pages of a name, as reStructuredText."""
    page = taught(module, name)
    others = [p for p in used(module, name) if p != page]
    parts = [f"taught in {link(page)}"] if page else []
    if others:
        parts.append("used in " + ", ".join(map(link, others)))
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def link(page: str) -> str:
    """Return the link to a page, which has its title."""
    return f":doc:`/{page}`"


class ApiDirective(SphinxDirective):
    """``.. api:: dlcore.<folder>``: its public names, and what they are."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write reStructuredText, and read it."""
        self.env.note_reread()
        lines: list[str] = []
        for module in modules(self.arguments[0]):
            lines += self.section(module)
        section = nodes.section(document=self.state.document)
        text = StringList(lines, self.arguments[0])
        nested_parse_with_titles(self.state, text, section)
        return section.children

    def section(self, module: ModuleType) -> list[str]:
        """Return the lines of a module: heading, what it is about, its names."""
        title, doc = (
            module.__name__.split(".")[-1],
            inspect.getdoc(module) or "",
        )
        lines = [
            title,
            "-" * len(title),
            "",
            f".. py:module:: {module.__name__}",
            "",
        ]
        lines += [*doc.splitlines(), ""]
        for name in own(module):
            what = kind(getattr(module, name))
            lines += [
                f".. auto{what}:: {module.__name__}.{name}",
                OPTIONS[what],
                "",
            ]
        return lines


class FoldersDirective(SphinxDirective):
    """``.. api-folders:: <name> …``: a table of the folders, with their modules."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Write reStructuredText, and read it."""
        self.env.note_reread()
        lines = [".. list-table::", "   :header-rows: 1", ""]
        rows = [("folder", "what it holds", "modules")]
        for folder in self.arguments[0].split():
            name = f"{PACKAGE}.{folder}"
            doc = (inspect.getdoc(import_module(name)) or "").partition("\n")[0]
            inner = [
                f":py:mod:`{m.__name__.split('.')[-1]} <{m.__name__}>`"
                for m in modules(name)
            ]
            rows.append((f":doc:`{folder}`", doc, ", ".join(inner)))
        for first, *others in rows:
            lines += [
                f"   * - {first}",
                *(f"     - {other}" for other in others),
            ]
        return self.parse_text_to_nodes("\n".join(lines))


def add_pages(
    app: Sphinx,
    what: str,
    name: str,
    thing: object,
    options: object,
    lines: list[str],
) -> None:
    """Add to a docstring the pages that teach and use the name."""
    place, _, last = name.rpartition(".")
    if what in ("function", "class", "data") and (
        text := where(import_module(place), last)
    ):
        lines += ["", ".. rst-class:: api-pages", "", text + ".", ""]


def keep_colons(
    app: Sphinx,
    what: str,
    name: str,
    thing: object,
    options: object,
    lines: list[str],
) -> None:
    """Hide the first line of what is no function from napoleon.

    It takes the words before a colon there for a type.
    """
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment


def skip(
    app: Sphinx,
    what: str,
    name: str,
    thing: object,
    skipped: bool,
    options: object,
) -> bool | None:
    """Leave out the fields of named tuples: the class describes them."""
    doc = getattr(thing, "__doc__", None) or ""
    return True if doc.startswith("Alias for field number") else None


def join_fields(
    app: Sphinx, domain: str, kind: str, content: addnodes.desc_content
) -> None:
    """Describe once what is both argument and attribute; leave quotes in types alone."""
    content["support_smartquotes"] = False
    for fields in content.findall(nodes.field_list):
        names = {field[0].astext() for field in fields}
        for field in [*fields]:
            what, _, name = field[0].astext().partition(" ")
            if f"ivar {name}" in names and what == "type":
                field[0].replace_self(nodes.field_name("", f"vartype {name}"))
            twice = f"ivar {name}" in names and what == "param"
            if twice or (what == "rtype" and field[1].astext() == "None"):
                fields.remove(field)


def tidy(app: Sphinx, doctree: nodes.document) -> None:
    """Set dashes, and take the links from types that are not the package's own.

    A tensor of PyTorch has the same name as one of ``dlcore.optimization.autograd``.
    """
    for thing in doctree.findall(addnodes.desc):
        for ref in [*thing.findall(addnodes.pending_xref)]:
            if ref["reftype"] == "class" and "." not in ref["reftarget"]:
                ref.replace_self(ref.children)
        for text in [*thing.findall(nodes.Text)]:
            if text == " -- ":
                text.parent.replace(text, nodes.Text(" – "))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what Sphinx calls."""
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.napoleon")
    app.add_directive("api", ApiDirective)
    app.add_directive("api-folders", FoldersDirective)
    app.connect("autodoc-process-docstring", keep_colons, priority=100)
    app.connect("autodoc-process-docstring", add_pages)
    app.connect("autodoc-skip-member", skip)
    app.connect("object-description-transform", join_fields, priority=900)
    app.connect("doctree-read", tidy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
