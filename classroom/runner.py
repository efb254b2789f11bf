"""Run a student's cells, then call the functions they define. This runs in the box.

It stands alone: in the box there is only Python, its packages and ``dlcore``. It reads
requests from its standard input, one JSON per line, and answers on its standard output.
At first it says {"ready": true}. Then come the names of the functions, {"tasks": [...]},
and two kinds of requests:

    {"cell": ..., "source": ..., "answers": [...], "seconds": ...}
        run a cell, which holds the answers to some tasks: {"text": ..., "error": ...}
    {"task": ..., "state": 0, "cases": [...], "hidden": [...], "seconds": ...}
        call a function in each case, without some modules: {"outcomes": [...]}

Instead there may come {"stopped": true}, {"crashed": true}, or {"none": true} for a state
that is not there.

Four kinds of processes share the work. The *desk* talks to the outside and runs nothing
of the student's. The *head* runs the cells. Before each it makes a copy of itself, the
*spare*, which watches: if the cell takes too long, or ends the head, the spare is the new
head and goes on as if the cell had never been. After a cell that defines the function of
a task, one more copy is *kept*: there the function is called later, as it stood after its
cell, whatever other cells did since. The last state, for functions that need later cells,
is the head.

Hidden inputs arrive only after all cells have run, and what is printed while functions
are called goes nowhere, so that inputs cannot be carried out. Each task is called in a
process of its own: it may crash or hang, and the next one is still called.

Nothing here protects anything. Whoever writes to the pipe instead of this program only
changes the answers, and answers are all that is ever read from it.
"""

import ast
import builtins
import contextlib
import importlib.abc
import inspect
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
import warnings
from typing import Any

MAX_OUTPUT = 10_000  # characters kept of what a cell prints
MAX_ANSWER = 8_000_000  # bytes of the answers of a task
CLOCK = 3  # seconds on the clock for each second of computing
TICK = 0.05  # seconds between two looks at a process
HOPE = 2.0  # seconds to wait for a reply of a process that has ended
HEAD = "head"
STATES = (
    "own",
    "last",
)  # that are kept for a task, after its own cell and after others
BUSY, ENDED = "RD", "ZX"  # letters of what a process does
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
        if kept:
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
        """Run the statement of a magic that measures once, or a file; skip others."""
        if name in ("time", "prun"):
            exec(line, self.space)
        elif name == "run":
            with open(line.split()[0]) as file:
                exec(file.read(), self.space)

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """Run the cell of a magic that measures or captures, or write it to a file."""
        if name in ("time", "timeit", "capture", "prun"):
            exec(plain_python(cell), self.space)
        elif name in ("writefile", "file"):
            with open(line.split()[-1], "a" if "-a" in line else "w") as file:
                file.write(cell)

    def system(self, *_: Any) -> None:
        """Skip a command of the shell."""

    getoutput = getsystem = system


def run_cell(name: str, source: str, space: dict[str, Any]) -> dict[str, str]:
    """Run one cell; return what it printed, and how it failed."""
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


class NotAllowedHere(ImportError):
    """What is raised by the modules that a task asks to do without."""


class Refuse(importlib.abc.MetaPathFinder):
    """Refuses to import modules, and what is in them."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def find_spec(self, name: str, *_: Any) -> None:
        """Raise if the module is one of those."""
        if self.holds(name):
            raise NotAllowedHere(name)

    def holds(self, name: str) -> bool:
        """Tell whether a module is one of those."""
        return any(f"{name}.".startswith(f"{one}.") for one in self.names)


def hide(names: list[str]) -> None:
    """Let modules not be imported any more, and the functions of dlcore's only raise."""
    refuse = Refuse(names)
    sys.meta_path.insert(0, refuse)
    for name in [name for name in sys.modules if refuse.holds(name)]:
        module = sys.modules.pop(name)
        if name.startswith("dlcore."):
            with warnings.catch_warnings():  # of generators that are none any more
                warnings.simplefilter("ignore")
                for value in list(vars(module).values()):
                    _disarm(value, name)


def _disarm(value: Any, module: str) -> None:
    """Let a function of a module only raise, and so all functions of a class."""
    for wrapper in ("__func__", "fget", "__wrapped__"):
        value = getattr(value, wrapper, value)
    if getattr(value, "__module__", None) != module:
        return
    if isinstance(value, types.FunctionType):
        value.__code__ = value.__code__.replace(
            co_code=REFUSAL.co_code,
            co_consts=tuple(
                NotAllowedHere(module) if type(constant) is str else constant
                for constant in REFUSAL.co_consts
            ),
            co_names=(),
            co_stacksize=REFUSAL.co_stacksize,
            co_exceptiontable=b"",
            co_linetable=REFUSAL.co_linetable,
            co_flags=value.__code__.co_flags & ~GENERATOR,
        )
    elif isinstance(value, type):
        for part in list(vars(value).values()):
            _disarm(part, module)


def _refusal() -> None:
    raise "what is raised"  # type: ignore[misc]  # noqa: B016


REFUSAL = _refusal.__code__
GENERATOR = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Notebook:
    """A process that has what some cells made: the head, or one that was kept.

    Args:
        tasks: the names of the functions.
        channels: where requests come from, to the head and to each that is kept.
        replies: where all of them reply.
    """

    def __init__(
        self, tasks: list[str], channels: dict[str, int], replies: int
    ) -> None:
        self.tasks = tasks
        self.channels = channels
        self.replies = replies
        self.kept: dict[str, int] = {}  # processes, by their channels
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        self.space: dict[str, Any] = vars(module)
        self.space["display"] = print
        sys.path.insert(0, "")  # as in a notebook: modules beside it are found
        shell = Shell(self.space)
        self.space["get_ipython"] = builtins.get_ipython = lambda: shell  # type: ignore[attr-defined]

    def serve(self, channel: str) -> None:
        """Do what is asked until nobody asks any more."""
        while line := _read_line(self.channels[channel]):
            request = json.loads(line)
            if "task" in request:
                self.reply(request, call_task(request, self.space))
            else:
                self.run(request)
        os._exit(0)

    def reply(self, request: dict[str, Any], message: dict[str, Any]) -> None:
        """Answer a request."""
        write_line(self.replies, {**message, "number": request["number"]})

    def run(self, request: dict[str, Any]) -> None:
        """Run a cell here, while a copy of this process stands by to take its place."""
        ours, theirs = os.pipe()
        head, spare = os.getpid(), _fork()
        if spare == 0:
            os.setpgid(0, 0)
            os.close(theirs)
            end = watch(head, ours, request["seconds"])
            os.close(ours)
            self.reply(request, {**end, **self._processes()})
            return
        os.close(ours)
        before = {task: self.space.get(task) for task in self.tasks}
        said = run_cell(request["cell"], request["source"], self.space)
        if os.getpid() != head:
            os._exit(0)
        _calm()
        if not _can_fork():
            os._exit(1)
        old = [
            process
            for task in self.tasks
            if self.space.get(task) is not before[task]
            for process in self._keep(task, task in request["answers"])
        ]
        os.write(theirs, b"\n")
        os.close(theirs)
        os.waitpid(spare, 0)
        self.reply(request, {**said, **self._processes()})
        for process in old:
            _kill(process)

    def _processes(self) -> dict[str, Any]:
        return {"head": os.getpid(), "kept": self.kept}

    def _keep(self, task: str, own: bool) -> list[int]:
        """Keep this state for a task; return the processes that it replaces.

        The state after its own cell replaces what all others left.
        """
        own_channel, last_channel = (f"{state} {task}" for state in STATES)
        names = [last_channel, own_channel] if own else [last_channel]
        old = [self.kept.pop(name) for name in names if name in self.kept]
        channel = own_channel if own else last_channel
        copy = _fork()
        if copy == 0:
            os.setpgid(0, 0)
            self.serve(channel)
        self.kept[channel] = copy
        return old


def _calm() -> None:
    """Take back what a cell may have set that would disturb the next."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0)


class Desk:
    """The process that talks to the outside; it runs nothing of the student's.

    Args:
        tasks: the names of the functions.
        outside: files that are not for students.
    """

    def __init__(self, tasks: list[str], outside: list[int]) -> None:
        names = [HEAD, *(f"{state} {task}" for task in tasks for state in STATES)]
        pipes = {name: os.pipe() for name in names}
        self.ways = {name: pipe[1] for name, pipe in pipes.items()}
        self.replies, replies = os.pipe()
        self.number = 0
        self.processes = {HEAD: os.fork()}
        channels = {name: pipe[0] for name, pipe in pipes.items()}
        if self.processes[HEAD] == 0:
            os.setpgid(0, 0)
            for file in [*self.ways.values(), self.replies, *outside]:
                os.close(file)
            Notebook(tasks, channels, replies).serve(HEAD)
        for file in [*channels.values(), replies]:
            os.close(file)
        for way in self.ways.values():
            os.set_blocking(way, False)

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a cell."""
        reply = self._ask(HEAD, request)
        if "head" in reply:
            self.processes = {**reply.pop("kept"), HEAD: reply.pop("head")}
        return reply

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call a function in one of the states that there are."""
        kept = [f"{state} {request['task']}" for state in STATES]
        there = [*(name for name in kept if name in self.processes), HEAD]
        if request["state"] >= len(there):
            return {"none": True}
        return self._ask(there[request["state"]], request)

    def _ask(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """Hand a request to a process, and wait for its reply, or for the end of hope.

        If it ends, its spare may still reply.
        """
        self.number += 1
        data = _line({**request, "number": self.number})
        way, heard, hope = self.ways[name], b"", HOPE
        while hope > 0:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
            read, write, _ = select.select(
                [self.replies], [way] if data else [], [], TICK
            )
            if write:
                data = data[os.write(way, data) :]
            if read:
                part = os.read(self.replies, 1 << 20)
                heard += part
                hope = hope if part else 0
            *lines, heard = heard.split(b"\n")
            for line in lines:
                reply: dict[str, Any] = json.loads(line)
                if reply.pop("number") == self.number:
                    return reply
            if not read and _state(self.processes[name]) in ENDED:
                hope -= TICK
        return {"crashed": True}


def call_task(request: dict[str, Any], space: dict[str, Any]) -> dict[str, Any]:
    """Call a function in a process of its own, and return what came of it."""
    ours, theirs = os.pipe()
    child = _fork()
    if child == 0:
        os.close(ours)
        os.setpgid(0, 0)
        limit(request["seconds"])
        answer_cases(request, space, theirs)
        os._exit(0)
    os.close(theirs)
    data, end = await_line(child, ours, request["seconds"])
    os.close(ours)
    if data:
        _end(child)
    try:
        return {"outcomes": json.loads(data)} if data else end
    except ValueError:
        return {"crashed": True}


def answer_cases(request: dict[str, Any], space: dict[str, Any], pipe: int) -> None:
    """Call the function in each case, and write the outcomes to the pipe."""
    from dlcore.assignment.plain_data import Outcome, call

    name, outcomes = request["task"], []
    hide(request["hidden"])
    sys.stdout = sys.stderr = Cut(0)
    for case in request["cases"]:
        try:
            outcomes.append(call(space[name], case)[0])
        except BaseException as problem:
            kind = (
                "NotImplementedError" if name not in space else type(problem).__name__
            )
            outcomes.append(Outcome(raised=kind, why=kind))
    write_line(pipe, outcomes)


def limit(seconds: float) -> None:
    """Let this process compute for so long; then a signal ends it."""
    most = math.ceil(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))


def watch(head: int, pipe: int, seconds: float) -> dict[str, Any]:
    """Watch a cell; end with it, or return how it ended, or was ended, before its time."""
    begin, deadline = _computed(head), time.monotonic() + CLOCK * seconds
    while True:
        if select.select([pipe], [], [], TICK)[0]:
            if os.read(pipe, 1):
                os._exit(0)
            time.sleep(TICK)  # the cell has closed it
        state = _state(head)
        if state in ENDED:
            end = {"crashed": True}
        elif _computed(head) - begin > seconds:
            end = {"stopped": True}
        elif time.monotonic() > deadline:
            end = {"stopped": True, "late": state in BUSY}
        else:
            continue
        _end_group(head)
        return end


def await_line(child: int, pipe: int, seconds: float) -> tuple[bytes, dict[str, Any]]:
    """Return the line that a process writes, or how it ended, or was ended, before.

    Processes that it started may keep the pipe open, so that its end may not come.
    """
    data, deadline = b"", time.monotonic() + CLOCK * seconds
    while time.monotonic() < deadline and len(data) <= MAX_ANSWER:
        if select.select([pipe], [], [], TICK)[0]:
            part = os.read(pipe, 1 << 16)
            data += part
            if part.endswith(b"\n"):
                return data, {}
            if part:
                continue
            time.sleep(TICK / 10)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_group(child)
            by_clock = os.WIFSIGNALED(status) and (
                os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
            )
            return b"", {"stopped": True} if by_clock else {"crashed": True}
    late = _state(child) in BUSY
    _end(child)
    return b"", {"stopped": True, "late": late}


def _end(child: int) -> None:
    """End a process and what it started."""
    _kill(child)
    os.waitpid(child, 0)
    _end_group(child)


def _kill(process: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(process, signal.SIGKILL)


def _end_group(leader: int) -> None:
    """End a process and what it started, and wait until the kernel has done so."""
    with contextlib.suppress(OSError):
        for _ in range(100):
            os.killpg(leader, signal.SIGKILL)
            time.sleep(TICK / 10)


def _fork() -> int:
    """Make a copy of this process; its threads, if it has any, are not in the copy.

    There may be no room as long as processes end that a cell has started.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(40):
            try:
                return os.fork()
            except BlockingIOError:
                time.sleep(TICK)
        return os.fork()


def _can_fork() -> bool:
    """Tell whether there is room for one more process."""
    try:
        child = _fork()
    except OSError:
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


def _facts(process: int) -> list[str]:
    """Return what the kernel says about a process, from its state on."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return ["X", *["0"] * 20]


def _state(process: int) -> str:
    """Return the letter that says what a process does."""
    return _facts(process)[0]


def _computed(process: int) -> float:
    """Return for how many seconds a process has computed."""
    ticks = map(int, _facts(process)[11:13])
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def _read_line(pipe: int) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(pipe, 1 << 16)
        if not part:
            return b""
        data += part
    return data


def _line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def write_line(pipe: int, message: Any) -> None:
    """Write a message as a line of JSON."""
    data = _line(message)
    while data:
        data = data[os.write(pipe, data) :]


def main() -> None:
    """Answer requests until there are no more."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    write_line(replies, {"ready": True})
    tasks = json.loads(requests.readline())["tasks"]
    desk = Desk(tasks, [requests.fileno(), replies])
    for line in requests:
        request = json.loads(line)
        do = desk.call if "task" in request else desk.run
        write_line(replies, do(request))


if __name__ == "__main__":
    sys.path[0] = sys.argv.pop()
    main()
