"""Put the instructor's cells, a student's answers and the results into one notebook.

It is the notebook that nbgrader's formgrader shows, and of which pages of feedback are made.
Its tests are those of the release, without hidden parts, its outputs are texts, and HTML,
links and pictures in answers are shown as they were written, not rendered. What is very long
is cut: it would keep nbgrader's converter busy for hours.
"""

import re
import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from classroom.assignment import is_test, role
from classroom.facts import STATUS
from classroom.reading import Cell, Submission

ACTIVE = re.compile(  # begins a tag, a link or an address
    r"<(?=[A-Za-z/!?])|\](?=[(:])|:(?=//)|\bwww(?=\.)"
)
BREAK = "\N{WORD JOINER}"  # cannot be seen
WIDTH = 84  # characters of a line that fit the page
MAX_CELL = 20_000  # characters that are shown of a cell
MAX_SHOWN = 200_000  # and of all cells together
CUT = "\n[cut here]"
CHECKS = "check = Checks(...)  # the cases are left out here"


def build(
    release: NotebookNode,
    submission: Submission,
    cells: Mapping[int, tuple[str, str]],
    results: Mapping[str, tuple[bool, str]],
    title: str = "",
) -> NotebookNode:
    """Build the notebook that shows how a submission was graded.

    Args:
        release: the student's version as it was handed out.
        submission: what came back.
        cells: what the cells printed and how they failed, by their place.
        results: whether a task was passed, and a sentence about it.
        title: a text to begin with.
    """
    parts = {role(cell, "grade_id"): cell for cell in release.cells}
    parts.pop(None, None)
    submission = replace(submission, cells=tuple(_cut(submission.cells)))
    answers = changed(release, submission)
    nodes = [_status(title)] if title else []
    for place, cell in enumerate(submission.cells):
        part = parts.get(cell.grade_id)
        if part is not None and part.cell_type == cell.kind:
            del parts[cell.grade_id]
            node = _fill(part, answers.get(cell.grade_id, cell.source))
        elif cell.kind == "code":
            node = new_code_cell(cell.source)
        else:
            node = new_markdown_cell(harmless(cell.source))
        if node.cell_type == "code":
            node.outputs = _outputs(*cells.get(place, ("", "")))
        nodes.append(node)
    nodes += [_fill(part, answers.get(name, "")) for name, part in parts.items()]
    for node in nodes:
        if is_test(node):
            node.outputs = _outcome(*results[role(node, "grade_id")])
    notebook = nbformat.from_dict(release)
    notebook.cells = nodes
    return notebook


def changed(release: NotebookNode, submission: Submission) -> dict[str, str]:
    """Return the answers of a student that are not as they were handed out.

    Where a written answer is not in its cell, all text of the student's own stands for it:
    it may be in a new cell, in a locked one, or have lost its id.
    """
    handed_out = {
        role(cell, "grade_id"): cell.source
        for cell in release.cells
        if role(cell, "solution")
    }
    answers: dict[str, str] = {}
    for cell in submission.cells:
        before = handed_out.get(cell.grade_id)
        if before is not None and cell.source.strip() not in ("", before.strip()):
            answers.setdefault(cell.grade_id, cell.source)
    own = _own_text(release, submission, handed_out)
    written = [
        role(cell, "grade_id")
        for cell in release.cells
        if role(cell, "solution") and role(cell, "grade")
    ]
    return {**dict.fromkeys(written if own else [], own), **answers}


def _own_text(
    release: NotebookNode, submission: Submission, answers: Container[str]
) -> str:
    """Return all text that was neither handed out nor is in the cell of an answer."""
    handed_out = {"", *(cell.source.strip() for cell in release.cells)}
    return "\n\n".join(
        cell.source
        for cell in submission.cells
        if cell.kind != "code"
        and cell.source.strip() not in handed_out
        and cell.grade_id not in answers
    )


def harmless(text: str) -> str:
    """Return a text in which no HTML and no link is active in the reader's browser.

    A character that cannot be seen does it, and leaves the text as it is read.
    """
    return ACTIVE.sub(rf"\g<0>{BREAK}", text)


def _status(title: str) -> NotebookNode:
    """Return the cell that tells the status; a page of feedback does without it."""
    return new_markdown_cell(harmless(title), metadata={"tags": [STATUS]})


def _cut(cells: Iterable[Cell]) -> Iterator[Cell]:
    """Yield cells with as much of their sources as is shown."""
    room = MAX_SHOWN
    for cell in cells:
        kept = cell.source[: min(room, MAX_CELL)]
        room -= len(kept)
        yield cell._replace(source=kept + CUT * (kept != cell.source))


def _fill(part: NotebookNode, source: str) -> NotebookNode:
    """Return a cell of the release, with the student's source if it is an answer."""
    node = nbformat.from_dict(part)
    if role(part, "solution"):
        code = part.cell_type == "code"
        node.source = source if code else harmless(source)
    elif "Checks(" in node.source and node.cell_type == "code":
        node.source = CHECKS
    return node


def _outputs(text: str, error: str) -> list[NotebookNode]:
    outputs = []
    if text:
        outputs.append(new_output("stream", name="stdout", text=text))
    if error:
        outputs.append(_error(error))
    return outputs


def _outcome(passed: bool, said: str) -> list[NotebookNode]:
    text = "\n".join(textwrap.fill(line, WIDTH) for line in said.splitlines())
    if passed:
        return [new_output("stream", name="stdout", text=text + "\n")]
    return [_error(text)]


def _error(said: str) -> NotebookNode:
    lines = said.rstrip().splitlines() or [""]
    name, _, value = lines[-1].partition(": ")
    return new_output("error", ename=name, evalue=value, traceback=lines)
