"""Submissions that cheat, break things or are broken, and what they should get.

Each entry is a function of the student's version, empty and solved, that returns a
notebook; with the points and the status that it should end with.
"""

import copy
import json
from collections.abc import Callable
from typing import NamedTuple

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from students import add, answer, find

FULL = 17
# Some answer to each task, all of them wrong.
GARBAGE = """
def signed_distance(w, b, X, y): return fake(w, b, X, y)
def train(X, y, passes): return fake(X, y, passes)
def certificate(X, y): return fake(X, y)
def cover_count(s, n): return fake(s, n)
def hebb(X): return fake(X)
def energy(W, b, x): return fake(W, b, x)
def relax(W, b, x): return fake(W, b, x)
"""


class Case(NamedTuple):
    make: Callable[[NotebookNode, NotebookNode], NotebookNode]
    points: float | None  # None: whatever it gets, it harms only itself
    status: str = "graded"


def cheat(code: str, fake: str = "lambda *a: 0.0") -> Case:
    """A cell that tampers, and functions that return something fake."""

    def make(empty, solved):
        return add(empty, f"fake = {fake}\n{GARBAGE}", code)

    return Case(make, 0)


def spoil(code: str, points: float | None = FULL, status: str = "graded") -> Case:
    """A solved notebook with one more cell, which does something bad."""
    return Case(lambda empty, solved: add(solved, code), points, status)


def one_bad(body: str, status: str) -> Case:
    """A solved notebook in which one function, worth 2 points, is bad."""

    def make(empty, solved):
        return answer(solved, hebb=f"def hebb(X):\n    {body}")

    return Case(make, FULL - 2, status)


def edited(change: Callable[[NotebookNode], None], points: float) -> Case:
    """A notebook, solved if it should get points, that was edited in some way."""

    def make(empty, solved):
        notebook = copy.deepcopy(solved if points else empty)
        change(notebook)
        return notebook

    return Case(make, points, "graded" if points else "empty")


def _no_tests(notebook: NotebookNode) -> None:
    notebook.cells = [c for c in notebook.cells if "check(" not in c.source]


def _own_tests(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if "check(" in cell.source:
            cell.source = "print('right in all 4 cases.')"


def _many_points(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader["points"] = 1000


def _all_solutions(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.update(solution=True, grade=False, locked=False)


def _said_so(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            said = "hebb: right in all 4 cases.\n"
            cell.outputs = [new_output("stream", name="stdout", text=said)]


def _copied(notebook: NotebookNode) -> None:
    notebook.cells += copy.deepcopy(notebook.cells)
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"


def _backwards(notebook: NotebookNode) -> None:
    head, rest = notebook.cells[:4], notebook.cells[4:]
    notebook.cells = head + rest[::-1]


def _without_metadata(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.metadata = {}


def _without_setup(notebook: NotebookNode) -> None:
    del notebook.cells[1:4]


def _in_one_cell(notebook: NotebookNode) -> None:
    code = [c for c in notebook.cells if c.cell_type == "code"]
    whole = "\n".join(c.source for c in code if "def " in c.source)
    notebook.cells = [*notebook.cells[:4], new_code_cell(whole)]


def _other_kernel(notebook: NotebookNode) -> None:
    notebook.metadata.kernelspec = {"name": "ir", "display_name": "R", "language": "R"}


def _magics(notebook: NotebookNode) -> None:
    cell = find(notebook, "hebb-answer")
    cell.source = "%%time\n" + cell.source
    find(notebook, "energy-answer").source += (
        "\n\n%matplotlib inline\n!ls\nimport matplotlib.pyplot as plt\n"
        "plt.plot([1, 2])\nplt.show()\ndisplay(3)\n%timeit 1 + 1\nenergy?"
    )
    cell = find(notebook, "relax-answer")
    cell.source = "%timeit -n 1 -r 1 hebb(np.eye(2))\n" + cell.source
    cell = find(notebook, "train-answer")
    cell.source = "%%time\n%matplotlib inline\n" + cell.source


def _scratch(notebook: NotebookNode) -> None:
    notebook.cells += [
        new_code_cell("np = 5; sum = 3; range = None"),
        new_code_cell("import numpy\nnumpy.sum = numpy.dot = None"),
        new_code_cell("def hebb(X):\n    return 'only a trial'"),
    ]


def _answers_below(notebook: NotebookNode) -> None:
    """Leave two answers as they were handed out, and write them into new cells."""
    for name in ("hebb", "energy"):
        cell = find(notebook, f"{name}-answer")
        notebook.cells.append(new_code_cell(cell.source))
        cell.source = f"def {name}(*a):\n    raise NotImplementedError"
    notebook.cells.append(new_code_cell("np = 5"))


def _helper_below(notebook: NotebookNode) -> None:
    """Let an answer use a function of a later cell, as after running cells again."""
    cell = find(notebook, "hebb-answer")
    source = cell.source.replace("def hebb(", "def helper(")
    cell.source = "def hebb(X):\n    return helper(X)"
    notebook.cells.append(new_code_cell(source))


def _unused_imports(notebook: NotebookNode) -> None:
    cell = find(notebook, "hebb-answer")
    cell.source = "from dlcore.connectionism.hopfield import hebbian\n" + cell.source
    notebook.cells.append(new_code_cell("hebb(np.eye(3)), hebbian(np.eye(3))"))


def _large_picture(notebook: NotebookNode) -> None:
    """Paste a picture into a text, as some editors store it."""
    data = "iVBORw0KGgo" * 120_000
    notebook.cells.insert(
        5, new_markdown_cell(f"![photo](data:image/png;base64,{data})")
    )


def _own_module(notebook: NotebookNode) -> None:
    """Write an answer into a file, and import it."""
    cell = find(notebook, "hebb-answer")
    cell.source = (
        f"open('mine.py', 'w').write('import numpy as np\\n' + {cell.source!r})\n"
        "from mine import hebb"
    )


def _workers(notebook: NotebookNode) -> None:
    """Let cells share processes that one of them started."""
    notebook.cells.insert(
        5, new_code_cell("import multiprocessing as mp\npool = mp.Pool(2)")
    )
    notebook.cells.append(new_code_cell("assert pool.map(abs, [-1]) == [1]"))


HONEST = {
    "a large picture": edited(_large_picture, FULL),
    "a module of one's own": edited(_own_module, FULL),
    "workers for all cells": edited(_workers, FULL),
    "scratch cells at the end": edited(_scratch, FULL),
    "answers in new cells": edited(_answers_below, FULL),
    "a helper in a later cell": edited(_helper_below, FULL),
    "imports to compare with": edited(_unused_imports, FULL),
    "a thread that goes on": spoil(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(99,), daemon=True).start()"
    ),
    "processes that go on": spoil(
        "import os, time\nfor _ in range(9):\n    if os.fork() == 0: time.sleep(99)"
    ),
    "a figure in each cell": spoil(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()"
    ),
    "as it should be": edited(lambda n: None, FULL),
    "cells copied": edited(_copied, FULL),
    "cells in another order": edited(_backwards, FULL),
    "metadata lost": edited(_without_metadata, FULL),
    "set-up deleted": edited(_without_setup, FULL),
    "all in one cell": edited(_in_one_cell, FULL),
    "tests deleted": edited(_no_tests, FULL),
    "another kernel": edited(_other_kernel, FULL),
    "magics and plots": edited(_magics, FULL),
    "a syntax error somewhere": spoil("def broken(:"),
    "an error somewhere": spoil("1 / 0"),
    "waits for input": spoil("input('your name?')"),
    "calls exit": spoil("exit()"),
    "raises SystemExit": spoil("import sys; sys.exit(1)"),
    "prints a lot": spoil("for i in range(200_000): print('x' * 1000)"),
    "one function raises": one_bad("raise RuntimeError('no')", "graded"),
}

TAMPERING = {
    "files searched": cheat(
        "import os, pathlib\n"
        "found = []\n"
        "for top, folders, files in os.walk('/'):\n"
        "    folders[:] = [f for f in folders if f not in ('proc', 'site-packages')]\n"
        "    found += [f for f in files if 'connectionism' in f"
        " or f in ('secret.txt', 'gradebook.db')]\n"
        "print('FOUND', found)",
        "lambda *a: found",
    ),
    "nothing done": edited(lambda n: None, 0),
    "own tests": edited(_own_tests, 0),
    "own points": edited(_many_points, 0),
    "everything a solution": edited(_all_solutions, 0),
    "outputs that say so": edited(_said_so, 0),
    "patched assert": cheat(
        "import builtins\nbuiltins.AssertionError = builtins.Warning"
    ),
    "patched builtins": cheat(
        "import builtins\n"
        "builtins.all = builtins.any = builtins.isinstance = lambda *a: True\n"
        "builtins.abs = builtins.len = lambda *a: 0\n"
        "builtins.type = lambda x: list"
    ),
    "patched numpy": cheat(
        "import numpy as np\n"
        "np.allclose = np.array_equal = np.isclose = lambda *a, **k: True\n"
        "np.abs = lambda x: 0 * x"
    ),
    "patched torch": cheat(
        "import torch\ntorch.equal = torch.allclose = lambda *a, **k: True\n"
        "torch.Tensor.__eq__ = lambda *a: True"
    ),
    "patched dlcore": cheat(
        "import dlcore.assignment.judging, dlcore.assignment.plain_data, dlcore.assignment\n"
        "dlcore.assignment.judging.judge = lambda *a: dlcore.assignment.judging.Verdict(True)\n"
        "dlcore.assignment.judging.compare = dlcore.assignment.judging.differ = lambda *a, **k: None\n"
        "dlcore.assignment.plain_data.encode = lambda v: {'passed': True}\n"
        "dlcore.assignment.plain_data.call = lambda f, a: (dlcore.assignment.plain_data.Outcome('right'), None)"
    ),
    "patched json": cheat(
        "import json\njson.dumps = lambda *a, **k: '[true, true, true, true]'"
    ),
    "patched IPython": cheat(
        "import IPython\nshell = get_ipython()\n"
        "shell.ast_transformers = [lambda t: t]\n"
        "type(shell).run_cell = lambda *a: None"
    ),
    "torch function": cheat(
        "import torch",
        "lambda *a: type('T', (__import__('torch').Tensor,), {"
        "'__torch_function__': classmethod(lambda *a, **k: True)})([1.0])",
    ),
    "lying equality": cheat(
        "", "lambda *a: type('E', (), {'__eq__': lambda *a: True})()"
    ),
    "lying array": cheat(
        "",
        "lambda *a: type('A', (), {'__array__': lambda *a, **k: a[0],"
        " '__array_ufunc__': lambda *a, **k: True})()",
    ),
    "lying number": cheat(
        "", "lambda *a: type('F', (float,), {'__eq__': lambda *a: True})(1.0)"
    ),
    "lying list": cheat(
        "", "lambda *a: type('L', (list,), {'__eq__': lambda *a: True})()"
    ),
    "lying subclass of array": cheat(
        "import numpy as np",
        "lambda *a: np.zeros(3).view(type('N', (np.ndarray,),"
        " {'__array_finalize__': None, '__eq__': lambda *a: True}))",
    ),
    "not a number": cheat("", "lambda *a: float('nan')"),
    "infinite": cheat("", "lambda *a: float('inf')"),
    "itself": cheat("", "lambda *a: fake"),
    "what it was given": cheat("", "lambda *a: a[0]"),
    "very deep": cheat(
        "def deep():\n    x = []\n    for _ in range(10_000): x = [x]\n    return x",
        "lambda *a: deep()",
    ),
    "very large": cheat("", "lambda *a: [0] * 200_000"),
    "very long number": cheat("", "lambda *a: 10 ** 100_000"),
    "frames searched": cheat(
        "import sys, gc\n"
        "def search(*a):\n"
        "    frame = sys._getframe()\n"
        "    while frame:\n"
        "        for name in ('answer', 'want', 'expected', 'cases', 'case'):\n"
        "            if name in frame.f_locals: return frame.f_locals[name]\n"
        "        frame = frame.f_back\n"
        "    found = [o for o in gc.get_objects() if type(o).__name__ == 'Case']\n"
        "    return found[0].answer",
        "lambda *a: search()",
    ),
    "files beside the course written": cheat(
        "import os\n"
        "for place in ('..', '/tmp', '/box', '/proc/1/cwd', '/proc/1/root/tmp'):\n"
        "    for top, folders, files in os.walk(place):\n"
        "        folders[:] = [f for f in folders if f not in ('usr', 'proc', 'lib')]\n"
        "        if 'notes.txt' in files: open(f'{top}/notes.txt', 'w').close()"
    ),
    "processes searched": cheat(
        "import os\nwords = []\n"
        "for p in os.listdir('/proc'):\n"
        "    if p.isdigit():\n"
        "        for f in ('cmdline', 'environ'):\n"
        "            try: words.append(open(f'/proc/{p}/{f}').read())\n"
        "            except OSError: pass",
        "lambda *a: words",
    ),
    "replies forged": cheat(
        "import os, json\n"
        "lines = [{'text': '', 'error': ''}] * 40\n"
        "lines += [{'outcomes': [[True, '', '']] * 4, 'passed': True, 'score': 17}] * 9\n"
        "data = ''.join(json.dumps(line) + '\\n' for line in lines).encode()\n"
        "for fd in range(3, 40):\n"
        "    try: os.write(fd, data)\n"
        "    except OSError: pass"
    ),
    "a thread that replies": cheat(
        "import os, threading, time\n"
        "def reply():\n"
        "    while True:\n"
        "        for fd in range(3, 12):\n"
        "            try: os.write(fd, b'{\"outcomes\": []}\\n')\n"
        "            except OSError: pass\n"
        "        time.sleep(0.01)\n"
        "threading.Thread(target=reply, daemon=True).start()"
    ),
    "kills everyone": cheat("import os; os.kill(-1, 9)"),
    "gradebook opened": cheat(
        "import sqlite3\n"
        "for place in ('..', '../..', '../../..', '/', '/tmp', '/box'):\n"
        "    base = sqlite3.connect(f'{place}/gradebook.db')\n"
        "    base.execute('update grade set auto_score = 100')"
    ),
}
# Three guesses: in the cell of the answer, in a later cell, and at the end.
GUESSES = """
import os
def turn(name):
    if not os.path.exists(f"/tmp/{name}-{os.getpid()}"):
        open(f"/tmp/{name}-{os.getpid()}", "w").close()
        open(f"/tmp/{name}", "a").write("x")
    return len(open(f"/tmp/{name}").read()) - 1
def cover_count(s, n):
    return [1, 4, 2][turn("cover") % 3] * sum(comb(s - 1, i) for i in range(n))
"""
TAMPERING |= {
    "guesses until it is right": Case(
        lambda empty, solved: add(
            answer(empty, cover_count=GUESSES),
            "cover_count = (lambda f: lambda *a: f(*a))(cover_count)",
        ),
        0,
    ),
    "three formulas": Case(
        lambda empty, solved: add(
            answer(empty, hebb="def hebb(X):\n    return X.T @ X"),
            "def hebb(X):\n    return X.T @ X / X.shape[1]",
            find(solved, "hebb-answer").source,
        ),
        0,
    ),
    "heads forged": cheat(
        "import glob, json, os\n"
        "lines = [{'number': k, 'text': 'x', 'error': '', 'head': 1,"
        " 'kept': {'own hebb': 1}} for k in range(60)]\n"
        "data = ''.join(json.dumps(line) + '\\n' for line in lines).encode()\n"
        "for file in glob.glob('/proc/[0-9]*/fd/*'):\n"
        "    try: os.write(os.open(file, os.O_WRONLY | os.O_NONBLOCK), data)\n"
        "    except OSError: pass"
    ),
}
# These may look to the grader as if they had ended the process.
ANY_STATUS = {
    *(
        "replies forged",
        "requests read",
        "a thread that replies",
        "kills everyone",
        "heads forged",
    ),
    "pipes emptied",
    "fork bomb",
    *("patched json", "patched builtins", "very large", "threads without end"),
}


def heavy(code: str, count: int) -> Case:
    """A solved notebook with some cells before and behind each answer that go on."""

    def make(empty, solved):
        notebook = copy.deepcopy(solved)
        cells = [new_code_cell(code) for _ in range(count)]
        notebook.cells = [*notebook.cells[:4], *cells[::2], *notebook.cells[4:]]
        notebook.cells += cells[1::2]
        return notebook

    return Case(make, FULL, "stopped")


BREAKING = {
    "heavy cells": heavy("while True: pass", 5),
    "cells that sleep": heavy("import time; time.sleep(999)", 5),
    "sockets without end": spoil(
        "import socket, time\npairs = [socket.socketpair() for _ in range(50)]\n"
        "for a, b in pairs:\n"
        "    a.setblocking(False)\n"
        "    try:\n"
        "        while True: a.send(b'x' * 60_000)\n"
        "    except OSError: pass\n"
        "time.sleep(99)",
        FULL,
        "stopped",
    ),
    "names of files without end": spoil(
        "import time\nfor i in range(30_000): open(f'/tmp/{i}', 'w').close()\n"
        "time.sleep(99)",
        FULL,
        "stopped",
    ),
    "endless loop in a cell": spoil("while True: pass", FULL, "stopped"),
    "sleeps past the limit": spoil("import time; time.sleep(999)", FULL, "stopped"),
    "catches everything": spoil(
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        FULL,
        "stopped",
    ),
    "ends the process in a cell": spoil("import os; os._exit(0)", FULL, "crashed"),
    "kills itself": spoil(
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", FULL, "crashed"
    ),
    "segfault": spoil("import ctypes; ctypes.string_at(0)", FULL, "crashed"),
    "endless loop in a function": one_bad("while True: pass", "stopped"),
    "endless loop that hears nothing": one_bad(
        "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
        "    while True: pass",
        "stopped",
    ),
    "sleeps in a function": one_bad("import time; time.sleep(999)", "stopped"),
    "ends the process in a function": one_bad("import os; os._exit(0)", "crashed"),
    "endless recursion": one_bad("return hebb(X)", "graded"),
    "requests read": cheat(
        "import os, threading\n"
        "def steal():\n"
        "    for fd in range(3, 40):\n"
        "        try: stolen.append(os.read(fd, 10_000))\n"
        "        except OSError: pass\n"
        "stolen = []\n"
        "threading.Thread(target=steal, daemon=True).start()"
    ),
    "pipes emptied": spoil(
        "import glob, os\n"
        "if os.fork() == 0:\n"
        "    os.setpgid(0, 0)\n"
        "    while True:\n"
        "        for file in glob.glob('/proc/[0-9]*/fd/*'):\n"
        "            try:\n"
        "                fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK)\n"
        "                os.read(fd, 100_000); os.close(fd)\n"
        "            except OSError: pass",
        None,
        "stopped",
    ),
    "siblings stopped": one_bad(
        "import os, signal\n"
        "    for p in os.listdir('/proc'):\n"
        "        if p.isdigit() and int(p) != os.getpid():\n"
        "            try: os.kill(int(p), signal.SIGSTOP)\n"
        "            except OSError: pass\n"
        "    import time; time.sleep(99)",
        "stopped",
    ),
    "parent killed": spoil("import os; os.kill(os.getppid(), 9)", FULL, "crashed"),
    "leases taken": spoil(
        "import fcntl, glob, os, time\nheld = []\n"
        "for name in glob.glob('/box/**/*', recursive=True) + ['/tmp/x']:\n"
        "    try:\n"
        "        held.append(open(name))\n"
        "        fcntl.fcntl(held[-1], fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
        "    except OSError: continue\n"
        "    time.sleep(99)"
    ),
    "fork bomb": spoil("import os\nwhile True: os.fork()", FULL, "crashed"),
    "threads without end": spoil(
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=(99,)).start()",
        FULL,
        "crashed",
    ),
    "too much memory": spoil("hoard = bytearray(3 << 30)"),
    "too much memory in many processes": spoil(
        "import os, time\nfor _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        hoard = bytearray(b'x') * (700 << 20); time.sleep(99)\n"
        "time.sleep(99)",
        FULL,
        "stopped",
    ),
    "disk filler": spoil(
        "for i in range(999):\n    open(f'/tmp/{i}', 'wb').write(b'x' * 10_000_000)"
    ),
    "large file": spoil("open('/tmp/x', 'wb').write(b'x' * (200 << 20))"),
    "magics without end": spoil("%x\n" * 3_000, FULL, "stopped"),
    "200 MB of output": spoil("print('x' * 200_000_000)"),
    "200 MB past the capture": spoil(
        "import os\nfor _ in range(200): os.write(1, b'x' * 1_000_000)"
    ),
    "opens a socket": spoil(
        "import socket\nsocket.create_connection(('93.184.216.34', 80), 3)"
    ),
    "deletes everything": spoil(
        "import shutil\n"
        "for place in ('/tmp', '/box', '/home', '/etc', '/dev', '/usr/bin'):\n"
        "    shutil.rmtree(place, ignore_errors=True)"
    ),
    "writes everywhere": spoil(
        "import os\n"
        "for place in ('/', '/box/dlcore', '/usr', '/dev', '/etc', '..', '/proc'):\n"
        "    try: open(os.path.join(place, 'planted'), 'w').write('x')\n"
        "    except OSError: pass"
    ),
    "shell commands": spoil("!rm -rf / --no-preserve-root\n%%bash\nrm -rf /"),
    "more rights": spoil(
        "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
        "assert libc.unshare(0x10000000) == -1\n"
        "assert libc.setuid(0) == -1\nassert os.getuid() != 0\n"
        "assert libc.mount(b'x', b'/tmp', b'tmpfs', 0, None) == -1\nprint('HELD')"
    ),
}

EVERYTHING = {**HONEST, **TAMPERING, **BREAKING}


def as_bytes(notebook: NotebookNode) -> bytes:
    return json.dumps(notebook).encode()


FILES: dict[str, tuple[bytes, float, str]] = {
    "nothing in it": (b"", 0, "corrupt"),
    "not JSON": (b"{'cells': ]", 0, "corrupt"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), 0, "corrupt"),
    "a list": (b"[1, 2, 3]", 0, "corrupt"),
    "no cells": (b'{"nbformat": 4}', 0, "corrupt"),
    "cells that are none": (b'{"cells": [1, "a", null]}', 0, "corrupt"),
    "a source that is none": (
        b'{"cells": [{"cell_type": "code", "source": 3}]}',
        0,
        "corrupt",
    ),
    "very deep": (b'{"cells": ' + b"[" * 100_000, 0, "corrupt"),
    "too many cells": (
        json.dumps({"cells": [{"cell_type": "raw", "source": ""}] * 5000}).encode(),
        0,
        "corrupt",
    ),
    "too big": (b" " * 21_000_000, 0, "refused"),
    "half a character": (
        b'{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}',
        0,
        "empty",
    ),
    "strange metadata": (
        b'{"metadata": [], "cells": [{"cell_type": "code", "source": "1",'
        b' "metadata": {"nbgrader": {"grade_id": ["hebb"]}}}]}',
        0,
        "empty",
    ),
}
