"""Read what strangers wrote, in a process with limits: a program beside the grader.

Parsers are easily made to take all memory and hours of time. So a notebook is taken apart,
and code is looked at, in a fresh process for each request, which may use little of either.
Requests and answers are lines of JSON; the bytes of a notebook follow their request:

    {"bytes": ...}                     {"cells": [[kind, source, id], ...], "flags": [...]}
    {"sources": [...], "names": ...}   {"uses": ...}
    any of them                        {"refused": "A sentence."}
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

MAX_CELLS = 2_000
MAX_SOURCE = 1_000_000  # characters of one cell
TOO_LONG = "# This cell is too long to be run."
MEMORY = 1 << 30
SECONDS = 5


def take_apart(notebook: Any) -> dict[str, Any]:
    """Return the cells of a notebook of format 4, and what is unusual about it."""
    check(
        type(notebook) is dict and type(notebook.get("cells")) is list,
        "A notebook must have cells.",
    )
    cells = notebook["cells"]
    few = len(cells) <= MAX_CELLS
    check(few, f"A notebook must have at most {MAX_CELLS:,} cells.")
    kept = [_cell(cell) for cell in cells]
    return {"cells": kept, "flags": list(_look(notebook, kept))}


def check(ok: bool, sentence: str) -> None:
    """Refuse with a sentence unless something holds."""
    if not ok:
        raise ValueError(sentence)


def _cell(cell: Any) -> tuple[str, str, str]:
    """Return the kind, the source and the id of a cell."""
    check(type(cell) is dict, "A cell must have a kind and a source.")
    kind, source = cell.get("cell_type"), cell.get("source")
    if type(source) is list and all(type(line) is str for line in source):
        source = "".join(source)
    ok = type(kind) is str and type(source) is str
    check(ok, "A cell must have a kind and a source.")
    if len(source) > MAX_SOURCE:
        source = TOO_LONG if kind == "code" else source[:MAX_SOURCE]
    role = cell.get("metadata")
    role = role.get("nbgrader") if type(role) is dict else None
    name = role.get("grade_id") if type(role) is dict else None
    return kind, _clean(source), name if type(name) is str else ""


def _clean(text: str) -> str:
    """Return a text without halves of characters."""
    return text.encode("utf-8", "replace").decode()


def _look(notebook: dict[str, Any], cells: list[tuple[str, str, str]]) -> Iterator[str]:
    """Yield what is unusual about a notebook that can be read."""
    ids = [name for _, _, name in cells if name]
    if len(set(ids)) < len(ids):
        yield "cells were copied, ids appear twice"
    if any(len(source) >= MAX_SOURCE for _, source, _ in cells):
        yield "a text is too long, and was cut"
    if any(source == TOO_LONG for _, source, _ in cells):
        yield "a code cell is too long to be run"
    kernel = notebook.get("metadata")
    for key in ("kernelspec", "language"):
        kernel = kernel.get(key) if type(kernel) is dict else None
    if type(kernel) is str and kernel.lower() != "python":
        yield f"the kernel's language is {_clean(kernel[:40])!r}"


def answer(request: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Do what a request asks for, or say why it cannot be done."""
    try:
        if "bytes" in request:
            return take_apart(json.loads(data))
        from classroom.flags import uses

        return {"uses": uses(request["sources"], request["names"])}
    except (ValueError, RecursionError) as error:
        return {"refused": str(error)[:200]}
    except MemoryError:
        return {"refused": "It takes too much memory to read."}


def answer_apart(request: dict[str, Any], data: bytes) -> bytes:
    """Answer in a process that may use little."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        with os.fdopen(theirs, "wb") as pipe:
            pipe.write(json.dumps(answer(request, data)).encode() + b"\n")
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        line = pipe.read()
    _, status = os.waitpid(child, 0)
    if status == 0:
        return line
    late = os.WIFSIGNALED(status) and (
        os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
    )
    what = "too long" if late else "too much memory"
    return json.dumps({"refused": f"It takes {what} to read."}).encode() + b"\n"


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        request = json.loads(line)
        data = requests.read(request.get("bytes", 0))
        answers.write(answer_apart(request, data))
        answers.flush()


if __name__ == "__main__":
    sys.path[0] = sys.argv.pop()
    main(sys.stdin.buffer, sys.stdout.buffer)
