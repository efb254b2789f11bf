"""The page of feedback that a student reads: one file, without scripts, that loads nothing."""

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from classroom import typeset
from classroom.facts import (
    AGAIN,
    EMPTY,
    MARKED,
    RIGHT,
    STATUS,
    UNSEEN,
    WAITS,
    WRONG,
    Facts,
    Task,
)

STYLE = Path(__file__).with_name("page.css")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

VERDICTS = {
    RIGHT: ("✓", "Right"),
    WRONG: ("✗", "Wrong"),
    EMPTY: ("–", "No answer"),
    UNSEEN: ("–", "Not graded"),
    MARKED: ("✎", "Marked"),
    WAITS: ("…", "Waits"),
    AGAIN: ("…", "Waits again"),
}
SAID = {
    WAITS: "This answer waits for its mark.",
    AGAIN: "This answer has changed since it was marked, and waits for another look.",
}

SIMPLY = "It takes too much to typeset this notebook. It is shown as it was written."

# What a status means to the student.
MEANING = {
    "stopped": "A part of your notebook took too much time or memory and was stopped. "
    "The rest was graded without it.",
    "crashed": "A part of your notebook ended Python. The rest was graded without it.",
    "empty": "Nothing was changed in this notebook. If it was the wrong file, hand in the "
    "right one.",
    "corrupt": "The file that you handed in cannot be read as a notebook, so there was "
    "nothing to grade. Please hand it in again.",
    "refused": "What you handed in could not be taken, so there was nothing to grade. "
    "Please hand in one ordinary notebook.",
}


def page(facts: Facts, digest: str = "", simple: bool = False) -> str:
    """Return the page.

    Args:
        facts: what it is made of.
        digest: is noted in the page; by it one can tell whether the page is up to date.
        simple: show texts and code as they are, which is quick whatever they hold.
    """
    shown = _notebook(facts, simple) if facts.notebook else ""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            f'<meta name="digest" content="{escape(digest)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(facts.student)} – {escape(facts.title)}</title>",
            f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>",
            "</head>",
            "<body>",
            *_head(facts),
            "<main>",
            *_results(facts),
            shown,
            "</main>",
            "</body>",
            "</html>\n",
        ]
    )


def _head(facts: Facts) -> Iterator[str]:
    yield "<header>"
    yield '<p class="kind">Feedback</p>'
    yield f"<h1>{typeset.line(facts.title)}</h1>"
    yield f'<p class="who">{escape(facts.student)}</p>'
    times = [("handed in", facts.came), ("graded", facts.graded)]
    said = [f"{what} {escape(when)}" for what, when in times if when]
    yield f'<p class="when">{" · ".join(said)}</p>'
    yield "</header>"


def _results(facts: Facts) -> Iterator[str]:
    """Yield the status, the total and the table of tasks."""
    yield '<section aria-labelledby="results">'
    yield '<h2 id="results">Results</h2>'
    if facts.status in MEANING:
        note = escape(facts.note[:1].upper() + facts.note[1:])
        said = f"{MEANING[facts.status]} <span>{note}</span>"
        yield f'<p class="status"><strong>{facts.status.capitalize()}</strong> {said}</p>'
    yield from _total(facts.tasks)
    yield "<table>"
    yield '<thead><tr><th scope="col">Task</th><th scope="col">Result</th>'
    yield '<th scope="col">Points</th></tr></thead>'
    yield "<tbody>"
    linked = bool(facts.notebook)
    yield from (_row(task, linked) for task in facts.tasks)
    yield "</tbody>\n</table>\n</section>"


def _total(tasks: list[Task]) -> Iterator[str]:
    """Yield the points of what has a mark, and a sentence about what has none."""
    waits = [task for task in tasks if task.verdict == WAITS]
    points = sum(task.points for task in tasks)
    most = sum(task.most for task in tasks) - sum(task.most for task in waits)
    total = f"<strong>{points:g}</strong> of {most:g} points"
    yield f'<p class="total">{total}{" so far" * bool(waits)}</p>'
    share = min(points / most, 1) if most else 0
    yield f'<div class="bar"><div style="width:{share:.0%}"></div></div>'
    if waits:
        more = sum(task.most for task in waits)
        what = (
            "The written answer waits for its mark"
            if len(waits) == 1
            else f"{len(waits)} written answers wait for their marks"
        )
        yield f'<p class="waiting">{what}: up to {more:g} points more.</p>'


def _row(task: Task, linked: bool) -> str:
    sign, word = VERDICTS[task.verdict]
    name = typeset.line(task.title or task.name)
    if linked:
        name = f'<a href="#{_anchor(task)}">{name}</a>'
    given = "" if task.verdict == WAITS else f"{task.points:g} "
    return (
        f'<tr class="{task.verdict}"><th scope="row">{name}</th>'
        f'<td class="verdict"><span class="sign">{sign}</span> {word}</td>'
        f"<td>{given}of {task.most:g}</td></tr>"
    )


def _anchor(task: Task) -> str:
    return f"task-{escape(task.name)}"


def _notebook(facts: Facts, simple: bool) -> str:
    """Return the cells, and below each task its result."""
    tasks = {task.name: task for task in facts.tasks}
    parts = [
        '<section aria-labelledby="notebook">',
        '<h2 id="notebook">Your notebook</h2>',
        f"<p>{SIMPLY}</p>" * simple,
    ]
    for cell in json.loads(facts.notebook)["cells"]:
        role = cell["metadata"].get("nbgrader", {})
        if STATUS in cell["metadata"].get("tags", []):
            continue
        if not role.get("grade") or role.get("solution"):
            parts += _cell(cell, role, facts.title, simple)
        if role.get("grade") and role["grade_id"] in tasks:
            parts.append(_result(tasks[role["grade_id"]]))
    return "\n".join([*parts, "</section>"])


def _cell(
    cell: dict[str, Any], role: dict[str, Any], title: str, simple: bool
) -> Iterator[str]:
    """Yield a cell, with what it printed."""
    source = "".join(cell["source"])
    ours = bool(role.get("locked"))
    kind = "ours" if ours else "yours"
    if cell["cell_type"] == "code":
        shown = typeset.plain(source) if simple else typeset.code(source)
        yield f'<div class="code {kind}">{shown}</div>' if source else ""
        yield from map(_output, cell["outputs"])
    elif ours:
        source = source.removeprefix(f"# {title}\n")
        yield f'<div class="ours">{_text(source, True, 1, simple)}</div>'
    elif source:
        yield f'<div class="text yours">{_text(source, False, 3, simple)}</div>'


def _text(source: str, links: bool, lower: int, simple: bool) -> str:
    if simple:
        return typeset.plain(source)
    return typeset.text(source, links, lower)


def _output(output: dict[str, Any]) -> str:
    """Return what a cell printed, or how it failed."""
    failed = output["output_type"] == "error"
    text = "\n".join(output["traceback"]) if failed else "".join(output["text"])
    kind = "failed" if failed else "printed"
    return f'<div class="output {kind}">{typeset.plain(text.rstrip())}</div>'


def _result(task: Task) -> str:
    """Return the box below a task."""
    sign, word = VERDICTS[task.verdict]
    given = f"{task.points:g} of {task.most:g} points"
    if task.verdict == WAITS:
        given = f"worth {task.most:g} points"
    words = task.said or SAID.get(task.verdict, "")
    said = [_sentence(line) for line in words.splitlines() if line.strip()]
    comment = ""
    if task.comment:
        words = escape(typeset.clean(task.comment))
        comment = f'<p class="comment"><b>Comment</b> {words}</p>'
    return (
        f'<section class="result {task.verdict}" id="{_anchor(task)}">'
        f'<h4><span class="sign">{sign}</span> <span>{word}</span>'
        f' <span class="points">{given}</span></h4>'
        f"{''.join(said)}{comment}</section>"
    )


def _sentence(line: str) -> str:
    words = escape(typeset.clean(line))
    if line.startswith("Hint: "):
        hint = words.removeprefix("Hint: ")
        return f'<p class="hint"><b>Hint</b> {hint}</p>'
    return f"<p>{words}</p>"
