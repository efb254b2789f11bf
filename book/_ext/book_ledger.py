"""The ledger: every statement of the book, with its number, its page and its evidence.

A statement is a definition, theorem, lemma, proposition or corollary of sphinx-proof. A
code cell that begins with

    # evidence: novikoff: 300 random sets; one update more than the bound would fail

is evidence for that statement, and the ``{ledger}`` directive lists both. One that begins
with ``# check: <what was tried>`` checks something else. A page folds the code of both to a
line, which says what was tried and links to the statement; what it prints stays in view, and
cells in a row that print nothing become one fold.
"""

import re
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

STATEMENTS = {"definition", "theorem", "lemma", "proposition", "corollary"}
# The first line of a cell: a label and what was tried, or only one of them. A long text goes
# on in lines that start with "#   ".
TEXT = r"(.*(?:\n#   .*)*)"
EVIDENCE = re.compile(rf"# evidence: ([\w-]+)(?:: {TEXT})?")
CHECK = re.compile(rf"# check: {TEXT}")


class Evidence(NamedTuple):
    """A cell that checks a statement."""

    label: str
    docname: str
    anchor: str


class Fold(nodes.General, nodes.Element):
    """Code that is folded to the lines of its summary."""


class Summary(nodes.General, nodes.Element):
    """What stands where code is folded."""


class LedgerNode(nodes.General, nodes.Element):
    """Where the table goes, once all numbers are known."""


class LedgerDirective(SphinxDirective):
    """``{ledger}``: the table of all statements."""

    def run(self) -> list[nodes.Node]:
        """Reserve the place; read this page again in every build."""
        self.env.note_reread()
        return [LedgerNode()]


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Remember the titles of statements, and give evidence cells an anchor."""
    env: Any = app.env
    for node in doctree.findall(nodes.Element):
        if node.get("realtype") in STATEMENTS:
            title = node["title"].strip().removeprefix("(").removesuffix(")")
            env.proof_list[node["label"]]["title"] = title
    for cell in doctree.findall(nodes.container):
        code = next(cell.findall(nodes.literal_block), None)
        if "cell" in cell["classes"] and code:
            if match := EVIDENCE.match(code.astext()):
                n = sum(e.label == match[1] for e in env.evidence)
                anchor = f"evidence-{match[1]}" + (f"-{n + 1}" if n else "")
                cell["ids"].append(anchor)
                cell["evidence"] = match[1]
                cell["tried"] = unwrapped(match[2] or "")
                env.evidence.append(Evidence(match[1], env.docname, anchor))
            elif match := CHECK.match(code.astext()):
                cell["tried"] = unwrapped(match[1])


def unwrapped(text: str) -> str:
    """Join the lines of a comment."""
    return re.sub(r"\n#\s+", " ", text).strip()


def purge(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Forget the evidence of a page that is read again."""
    known = getattr(env, "evidence", [])
    env.evidence = [e for e in known if e.docname != docname]  # type: ignore[attr-defined]


def section_number(
    env: BuildEnvironment, statement: dict[str, Any]
) -> tuple[int, ...]:
    """Return the number of a statement's page, such as (1, 2); none in the appendix."""
    return env.toc_secnumbers.get(statement["docname"], {}).get("", ())


def place(
    env: BuildEnvironment, statement: dict[str, Any]
) -> tuple[bool, tuple[int, ...]]:
    """Return what sorts statements: by number, pages without a number at the end."""
    return not section_number(env, statement), number(env, statement)


def number(env: BuildEnvironment, statement: dict[str, Any]) -> tuple[int, ...]:
    """Return a statement's number, such as (1, 1, 4); none with ``:nonumber:``."""
    numbers = env.toc_fignumbers.get(statement["docname"], {})
    return numbers.get(statement["countertype"], {}).get(statement["label"], ())


def name(env: BuildEnvironment, statement: dict[str, Any]) -> str:
    """Return a statement's type and number, such as "Theorem 1.1.4"."""
    numbers = ".".join(map(str, number(env, statement)))
    return f"{statement['realtype'].title()} {numbers}".rstrip()


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write the links, now that all numbers are known."""
    env: Any = app.env
    statements = getattr(env, "proof_list", {})

    def link(page: str, anchor: str, text: str) -> nodes.Node:
        return make_refnode(
            app.builder, docname, page, anchor, nodes.Text(text)
        )

    for cell in list(doctree.findall(nodes.container)):
        if "tried" in cell:
            statement = statements.get(cell.get("evidence"))
            to = statement and link(
                statement["docname"], statement["label"], name(env, statement)
            )
            fold(cell, to)
    join_folds(doctree)
    for ledger in list(doctree.findall(LedgerNode)):
        rows = []
        for s in sorted(statements.values(), key=lambda s: place(env, s)):
            if s["realtype"] in STATEMENTS:
                section = section_number(env, s)
                page = (
                    ".".join(map(str, section)),
                    env.titles[s["docname"]].astext(),
                )
                evidence = [e for e in env.evidence if e.label == s["label"]]
                cells = [
                    [link(s["docname"], s["label"], name(env, s))],
                    [nodes.Text(s["title"])],
                    [link(s["docname"], "", " ".join(page).lstrip())],
                    [nodes.Text("–")],
                ]
                if evidence:
                    cells[-1] = []
                    for i, e in enumerate(evidence, 1):
                        cells[-1] += [
                            link(e.docname, e.anchor, f"cell {i}"),
                            nodes.Text(" "),
                        ]
                rows.append(cells)
        ledger.replace_self(
            table("ledger", ["Statement", "Title", "Page", "Evidence"], rows)
        )


def fold(cell: nodes.container, statement: nodes.Node | None) -> None:
    """Fold the code of a cell to a line: which statement it checks, and what was tried."""
    tried = cell["tried"]
    line = nodes.paragraph("", "", classes=["evidence"])
    line += [statement] if statement else []
    if tried:
        line += nodes.Text(f": {tried}" if statement else tried)
    elif statement:
        line.insert(0, nodes.Text("Evidence for "))
    code, *outputs = cell.children
    cell.children = []
    cell += [Fold("", Summary("", line), code), *outputs]
    cell["joins"] = not outputs


def join_folds(doctree: nodes.document) -> None:
    """Let folded cells in a row, all but the last without output, share one fold."""
    for cell in list(doctree.findall(nodes.container)):
        before = cell.parent and cell.previous_sibling()
        if "joins" in cell and getattr(before, "attributes", {}).get("joins"):
            (above,) = before.findall(Fold)
            (below,) = cell.findall(Fold)
            above_summary, *above_code = above.children
            summary, *code = below.children
            below.children = []
            summary.children = [*above_summary.children, *summary.children]
            below += [summary, *above_code, *code]
            cell["ids"] = before["ids"] + cell["ids"]
            before.parent.remove(before)


def open_fold(self: Any, node: Fold) -> None:
    """Write the start of a fold."""
    self.body.append('<details class="evidence">')


def close_fold(self: Any, node: Fold) -> None:
    """Write the end of a fold."""
    self.body.append("</details>")


def open_summary(self: Any, node: Summary) -> None:
    """Write the start of a summary."""
    self.body.append("<summary>")


def close_summary(self: Any, node: Summary) -> None:
    """Write the end of a summary."""
    self.body.append("</summary>")


def table(name: str, head: list[str], rows: list[Any]) -> nodes.table:
    """Wrap lists of inline nodes in the elements of a docutils table."""

    def row(cells: list[Any]) -> nodes.row:
        return nodes.row(
            "", *(nodes.entry("", nodes.paragraph("", "", *c)) for c in cells)
        )

    group = nodes.tgroup("", cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    group += nodes.thead("", row([[nodes.Text(title)] for title in head]))
    group += nodes.tbody("", *(row(cells) for cells in rows))
    return nodes.table("", group, classes=[name])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(LedgerNode)
    app.add_node(Fold, html=(open_fold, close_fold))
    app.add_node(Summary, html=(open_summary, close_summary))
    app.add_directive("ledger", LedgerDirective)
    app.connect("env-purge-doc", purge)
    app.connect("doctree-read", collect)
    app.connect("doctree-resolved", resolve)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
