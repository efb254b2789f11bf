"""Run a student's cells, then call the functions they define. This runs in the box.

It stands alone: in the box there is only Python, its packages and ``dlcore``. It reads
requests from its standard input, one JSON per line, and answers on its standard output.
At first it says {"ready": true}; then there are two requests:

    {"cells": [...]}               run the sources; after each, {"text": ..., "error": ...}
    {"task": ..., "cases": [...]}  call a function in each case; then {"outcomes": [...]}

Hidden inputs arrive only after all cells have run, and what is printed while functions
are called goes nowhere, so that inputs cannot be carried out. Each task is called in a
process of its own: it may crash or hang, and the next one is still called.

Nothing here protects anything. Whoever writes to the pipe instead of this program only
changes the answers, and answers are all that is ever read from it.
"""

import ast
import builtins
import io
import json
import linecache
import math
import os
import re
import resource
import select
import signal
import sys
import time
import traceback
import types
from typing import Any

MAX_OUTPUT = 10_000  # characters kept of what a cell prints
MAX_ANSWER = 8_000_000  # bytes of the answers of a task
MAGIC = re.compile(r"^\s*[%!?]|[?]\s*$|=\s*[%!]", re.M)


class Cut(io.TextIOBase):
    """A stream that keeps the first characters and forgets the rest."""

    def __init__(self, room: int) -> None:
        self.parts: list[str] = []
        self.room = room
        self.cut = False

    def writable(self) -> bool:
        """Say that this stream can be written to."""
        return True

    def write(self, text: str) -> int:
        """Keep what there is room for."""
        kept = str(text)[: self.room]
        self.cut = self.cut or len(kept) < len(text)
        self.parts.append(kept)
        self.room -= len(kept)
        return len(text)

    def text(self) -> str:
        """Return what was kept."""
        return "".join(self.parts) + "\n[cut here]" * self.cut


class Shell:
    """What cells find behind ``get_ipython()``: magics run their code, or do nothing."""

    def __init__(self, space: dict[str, Any]) -> None:
        self.space = space

    def run_line_magic(self, name: str, line: str, *_: Any, **__: Any) -> None:
        """Run the statement of a magic that measures once; skip other magics."""
        if name in ("time", "prun"):
            exec(line, self.space)

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """Run the cell of a magic that measures or captures; skip other magics."""
        if name in ("time", "timeit", "capture", "prun"):
            exec(plain_python(cell), self.space)

    def system(self, *_: Any) -> None:
        """Skip a command of the shell."""

    getoutput = getsystem = system


def run_cell(number: int, source: str, space: dict[str, Any]) -> dict[str, str]:
    """Run one cell; return what it printed, and how it failed."""
    name = f"cell {number}"
    out, error = Cut(MAX_OUTPUT), ""
    sys.stdout = sys.stderr = out
    try:
        source = plain_python(source)
        lines = source.splitlines(True)
        linecache.cache[name] = (len(source), None, lines, name)
        tree = ast.parse(source, name)
        last = _last_expression(tree)
        exec(compile(tree, name, "exec"), space)
        value = eval(compile(last, name, "eval"), space)
        if value is not None:
            print(repr(value))
    except BaseException as problem:
        error = _tell(problem)
    return {"text": out.text(), "error": error}


def plain_python(source: str) -> str:
    """Return a cell with IPython's magics turned into calls."""
    if not MAGIC.search(source):
        return source
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        return str(TransformerManager().transform_cell(source))
    except Exception:  # whatever a strange cell does to it
        return source


def _last_expression(tree: ast.Module) -> ast.Expression:
    """Take the expression off the end of a cell, which Jupyter would show."""
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        return ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    return ast.Expression(ast.Constant(None, lineno=1, col_offset=0))


def _tell(problem: BaseException) -> str:
    """Return the traceback without the frames of this file."""
    frame = problem.__traceback__
    while frame and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    lines = traceback.format_exception(type(problem), problem, frame)
    return "".join(lines)[-MAX_OUTPUT:]


def call_task(
    name: str, cases: list[Any], space: dict[str, Any], seconds: float
) -> dict[str, Any]:
    """Call a function in a process of its own, and return what came of it."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        answer_cases(name, cases, space, theirs, seconds)
        os._exit(0)
    os.close(theirs)
    data = _read(ours, time.monotonic() + 3 * seconds)
    os.close(ours)
    late = data is None and _busy(child)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    try:
        return {"outcomes": json.loads(data or b"")}
    except ValueError:
        killed = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return {"stopped": True, "late": late} if killed else {"crashed": True}


def answer_cases(
    name: str,
    cases: list[Any],
    space: dict[str, Any],
    pipe: int,
    seconds: float,
) -> None:
    """Call the function in each case, and write the outcomes to the pipe."""
    from dlcore.plain import Outcome, call

    limit = math.ceil(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    sys.stdout = sys.stderr = Cut(0)
    outcomes = []
    for case in cases:
        try:
            outcomes.append(call(space[name], case)[0])
        except BaseException as problem:
            kind = (
                "NotImplementedError"
                if name not in space
                else type(problem).__name__
            )
            outcomes.append(Outcome(raised=kind, why=kind))
    data = json.dumps(outcomes).encode() + b"\n"
    while data:
        data = data[os.write(pipe, data) :]


def _read(pipe: int, deadline: float) -> bytes | None:
    """Read a line, or give up at the deadline or when it is too much.

    Processes that the function started may keep the pipe open, so its end may not come.
    """
    data = b""
    while len(data) <= MAX_ANSWER:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            return None
        part = os.read(pipe, 1 << 16)
        data += part
        if not part or part.endswith(b"\n"):
            return data
    return None


def _busy(child: int) -> bool:
    """Tell whether a process would go on if it could, and does not wait for anything."""
    with open(f"/proc/{child}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] in "RD"


def main() -> None:
    """Answer requests until there are no more."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    notebook = sys.modules["__main__"] = types.ModuleType("__main__")
    space: dict[str, Any] = vars(notebook)
    space["display"] = print
    shell = Shell(space)
    space["get_ipython"] = builtins.get_ipython = lambda: shell  # type: ignore[attr-defined]

    def reply(message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(replies, data) :]

    reply({"ready": True})
    for line in requests:
        request = json.loads(line)
        if "task" in request:
            seconds = request["seconds"]
            reply(call_task(request["task"], request["cases"], space, seconds))
        for number, source in request.get("cells", []):
            reply(run_cell(number, source, space))


if __name__ == "__main__":
    sys.path[0] = sys.argv.pop()
    main()
