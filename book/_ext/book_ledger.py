"""The ledger: every statement of the book, with its number, its page and its evidence.

A statement is a definition, theorem, lemma, proposition or corollary of sphinx-proof. A
code cell whose first line is ``# evidence: <label>`` is evidence for that statement: the
cell gets a line that links to the statement, and the ``{ledger}`` directive lists both.
"""

import re
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

STATEMENTS = {"definition", "theorem", "lemma", "proposition", "corollary"}
EVIDENCE = re.compile(r"# evidence: (\S+)")


class Evidence(NamedTuple):
    """A cell that checks a statement."""

    label: str
    docname: str
    anchor: str


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
            match = EVIDENCE.match(code.astext())
            if match:
                n = sum(e.label == match[1] for e in env.evidence)
                anchor = f"evidence-{match[1]}" + (f"-{n + 1}" if n else "")
                cell["ids"].append(anchor)
                cell["evidence"] = match[1]
                env.evidence.append(Evidence(match[1], env.docname, anchor))


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
        statement = statements.get(cell.get("evidence"))
        if statement:
            to = link(
                statement["docname"], statement["label"], name(env, statement)
            )
            line = nodes.paragraph(
                "", "Evidence for ", to, classes=["evidence"]
            )
            cell.insert(0, line)
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
    app.add_directive("ledger", LedgerDirective)
    app.connect("env-purge-doc", purge)
    app.connect("doctree-read", collect)
    app.connect("doctree-resolved", resolve)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
