"""The box: what is in it, what it holds back, and what the runner answers."""

import errno
import os
import subprocess
import sys
import time

import pytest
import torch

from classroom import box, calls, runner
from classroom.box import Box, Crashed, Limits, Stopped
from classroom.course import BOOK
from classroom.runner import plain_python
from classroom.running import Broken, Budget, Code, Task, mark_needed
from classroom.running import run as run_codes
from dlcore.assignment.plain_data import Outcome, encode

pytestmark = pytest.mark.usefixtures("boxes")
# Python itself may lie in /tmp, and be seen there.
PYTHON = [p.parts[2] for p in box.mounted() if p.is_relative_to("/tmp")]
IN_TMP = f"[n for n in os.listdir('/tmp') if n not in {PYTHON}]"


def run(cells, tasks, limits, **options):
    """Run numbered cells, and call functions in cases."""
    program = [Code(i, source, f"cell {i}") for i, source in cells]
    called = {name: Task(cases) for name, cases in tasks.items()}
    return run_codes(program, called, limits, **options)


def send(opened, source, seconds=20):
    """Let a box that was just opened run a cell."""
    opened.receive(patience=40)
    opened.send({"tasks": []})
    cell = {"cell": "cell 0", "source": source, "answers": []}
    opened.send({**cell, "seconds": seconds})


def ask(*cells, boxed=True):
    """Run cells in a box and return what each printed."""
    done = run(list(enumerate(cells)), {}, Limits(), boxed=boxed)
    assert not any(error for _, error in done.cells.values()), done.cells
    return [done.cells[i][0] for i in range(len(cells))]


@pytest.mark.parametrize("user", ["root", "teacher"])
def test_box_holds_for_root_and_for_others(user, monkeypatch):
    if user == "root" and os.geteuid() != 0:
        pytest.skip("We are not root.")
    if user == "teacher":
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    if why := box.why_not():
        pytest.skip(f"No such box here: {why}")
    (said,) = ask(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        f"print(os.getuid() != 0, libc.unshare(0x10000000), {IN_TMP})\n"
        "print(os.listdir('/sys') if os.path.exists('/sys') else 'no /sys')\n"
        "print(open('/proc/net/dev').read().count(':'))\n"
        "status = open('/proc/self/status').read()\n"
        "print('CapEff:\\t0000000000000000' in status)"
    )
    assert said.splitlines() == ["True -1 []", "no /sys", "1", "True"]


def test_keys_and_memory_of_no_process_are_refused():
    numbers = [calls.number(name) for name in calls.REFUSED]
    (said,) = ask(
        "import ctypes, mmap\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"for number in {numbers}:\n"
        "    libc.syscall(number, 0, 0, 0, 0, 0)\n"
        "    print(ctypes.get_errno())\n"
        "    ctypes.set_errno(0)\n"
        "try: mmap.mmap(-1, 9)\n"
        "except OSError as error: print(error.errno)\n"
        "print(len(open('/dev/zero', 'rb').read(9)))\n"
        "print(len(mmap.mmap(-1, 9, mmap.MAP_PRIVATE)))"
    )
    refused = [str(errno.EPERM)] * (len(numbers) + 1)
    assert said.split() == [*refused, "0", "9"]


def test_keys_of_the_teacher_are_not_in_the_box():
    """A shell that somebody logged in to has keys; make one, and a box in it."""
    key, control = calls.number("add_key"), calls.number("keyctl")
    asked = (
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        f"print(libc.syscall({control}, 10, -3, b'user', b'ticket', 0))"
    )
    code = (
        "import ctypes, sys\nfrom classroom.box import Limits\n"
        "from classroom.running import Code, run\nlibc = ctypes.CDLL(None)\n"
        f"if libc.syscall({control}, 1, None) <= 0: sys.exit(7)\n"
        f"if libc.syscall({key}, b'user', b'ticket', b'x', 1, -3) <= 0: sys.exit(7)\n"
        f"exec({asked!r})\n"
        f"print(run([Code(0, {asked!r}, '')], {{}}, Limits()).cells[0][0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=BOOK, capture_output=True, text=True
    )
    if done.returncode == 7:
        pytest.skip("No keys on this machine.")
    assert not done.returncode, done.stderr
    outside, inside = map(int, done.stdout.split())
    assert outside > 0
    assert inside == -1


def test_processes_are_counted_for_each_box_by_itself():
    many = "import os, time\nfor _ in range(40):\n    if os.fork() == 0: time.sleep(99)"
    with Box(Limits()) as one, Box(Limits()) as other:
        for opened in (one, other):
            send(opened, many)
            assert opened.receive() == {"text": "", "error": ""}


def test_threads_that_a_cell_asked_for_stop_no_task():
    cell = (
        "import torch\ntorch.set_num_threads(2)\n"
        "def total():\n    return torch.ones(500, 500).exp().sum() > 0\n"
        "total()"
    )
    done = run([(0, cell)], {"total": [encode(())]}, Limits(seconds=5))
    assert not done.stopped


def test_memory_that_was_swapped_out_counts(monkeypatch, tmp_path):
    status = "Name:\tx\nVmRSS:\t 2 kB\nVmSwap:\t 3 kB\nThreads:\t1\n"
    (tmp_path / "status").write_text(status)
    monkeypatch.setattr(box, "Path", lambda _: tmp_path / "status")
    assert box._memory(7) == 5 * 1024


def test_only_the_system_python_and_dlcore_are_in_the_box():
    (said,) = ask(
        "import os\n"
        "print(sorted(os.listdir('/box')))\n"
        "print(any(os.path.exists(p) for p in ('/box/classroom', '/home', '/var')))\n"
        "print(sorted(os.environ))"
    )
    files, others, environment = said.splitlines()
    assert files == "['dlcore', 'runner.py']"
    assert others == "False"
    assert "SECRET" not in environment
    assert len(environment) < 200


def test_nothing_is_left_from_one_box_to_the_next():
    writing = "open('/tmp/note', 'w').write('x') and None"
    looking = f"import os\nprint({IN_TMP})"
    assert ask(writing, looking)[1] == "['note']\n"
    assert ask(looking) == ["[]\n"]


def test_cells_share_names_and_show_their_last_value():
    assert ask("x = 2", "x + 1", "None", "print(x)\nx = 5", "x;") == [
        *("", "3\n", "", "2\n", "5\n")
    ]


def test_tasks_do_not_touch_each_other():
    cells = ["n = 0\ndef count():\n    global n\n    n += 1\n    return n"]
    done = run(list(enumerate(cells)), {"count": [encode(())] * 2, "len": []}, Limits())
    assert done.tasks == {"count": [Outcome(1), Outcome(2)], "len": []}
    twice = run(
        [(0, cells[0]), (1, "again = count")],
        {"count": [encode(())], "again": [encode(())]},
        Limits(),
    )
    assert twice.tasks == {"count": [Outcome(1)], "again": [Outcome(1)]}


def test_tensors_cross_the_box():
    cells = [(0, "def double(x):\n    return 2 * x")]
    one = torch.ones(2, requires_grad=True)
    done = run(cells, {"double": [encode((one,))]}, Limits())
    assert done.tasks["double"] == [Outcome(encode(2 * one))]


def test_cells_that_run_again_after_a_task_say_nothing():
    cells = [
        "import os, time\nstarted = time.monotonic()\nprint(started)",
        "def end():\n    os.kill(-1, 9)\ndef start():\n    return started",
    ]
    tasks = {"end": [encode(())], "start": [encode(())]}
    done = run(list(enumerate(cells)), tasks, Limits())
    assert done.crashed == ["end"]
    assert float(done.cells[0][0]) < done.tasks["start"][0].value


def test_functions_may_start_processes_and_leave_them():
    cell = (
        "import getpass, multiprocessing, pickle\n"
        "user = getpass.getuser()\n"
        "class Square:\n    def __call__(self, x): return x * x\n"
        "same = pickle.loads(pickle.dumps(Square()))\n"
        "def squares():\n"
        "    return multiprocessing.Pool(2).map(Square(), [1, 2])"
    )
    done = run([(0, cell)], {"squares": [encode(())]}, Limits(seconds=5))
    assert done.cells == {0: ("", "")}
    assert done.tasks["squares"] == [Outcome([1, 4])]


def test_missing_function_is_not_written_yet():
    done = run([], {"nothing": [encode((1,))]}, Limits())
    assert done.tasks["nothing"][0].raised == "NotImplementedError"


def test_traceback_shows_the_student_only():
    done = run([(7, "def f():\n    return 1 / 0\nf()")], {}, Limits())
    _, error = done.cells[7]
    assert error.startswith(
        'Traceback (most recent call last):\n  File "cell 7", line 3'
    )
    assert "return 1 / 0" in error
    assert "runner" not in error


def test_last_cell_that_is_stopped_is_left_out():
    cells = ["def one():\n    return 1", "while True: pass"]
    done = run(list(enumerate(cells)), {"one": [encode(())]}, Limits(seconds=1))
    assert done.stopped == ["cell 1"]
    assert done.tasks["one"] == [Outcome(1)]
    assert "was stopped" in done.cells[1][1]


@pytest.mark.parametrize(
    "line", [b"", b"[1]", b"{", b'"x"', b"[" * 100_000, b"\xff\xfe", b"1" * 10_000]
)
def test_strange_replies_count_as_a_crash(line):
    cell = (
        "import glob, os\n"
        f"line = {line[:1]!r} * {len(line)}\n"
        "for file in glob.glob('/proc/[0-9]*/fd/*'):\n"
        "    try: os.write(os.open(file, os.O_WRONLY | os.O_NONBLOCK), line + b'\\n')\n"
        "    except OSError: pass"
    )
    with Box(Limits()) as opened:
        send(opened, cell)
        try:
            reply = opened.receive()
        except Crashed:
            reply = {"crashed": True}
    assert reply == {"crashed": True}


def test_too_long_and_too_much_are_stopped():
    with Box(Limits(seconds=0.5)) as opened:
        send(opened, "while True: pass")
        with pytest.raises(Stopped, match="took too long"):
            opened.receive()


def test_box_that_cannot_start_is_broken_not_crashed():
    with pytest.raises(Broken):
        run([], {}, Limits(memory=1 << 20))


def test_without_a_box_limits_hold():
    said = ask("import resource\nresource.getrlimit(resource.RLIMIT_AS)", boxed=False)
    assert said == [f"({2 << 30}, {2 << 30})\n"]


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("x = 1 % 2", "x = 1 % 2"),
        ("%time x", "get_ipython().run_line_magic('time', 'x')\n"),
        ("!ls", "get_ipython().system('ls')\n"),
        ("def broken(:\n!ls", "def broken(:\n!ls"),
    ],
)
def test_magics_become_python(source, python):
    assert plain_python(source).strip() == python.strip()


def test_all_cells_together_have_a_limit():
    cells = ["import time; time.sleep(0.8)"] * 20
    limits = Limits(seconds=1, patience=3)
    done = run(list(enumerate(cells)), {"f": [encode(())]}, limits)
    assert done.seconds < 10
    assert done.tasks["f"] == "It was not reached."
    assert done.stopped


def test_all_outputs_together_have_a_limit():
    done = run([(i, "print('x' * 9_000)") for i in range(40)], {}, Limits())
    assert sum(len(text) for text, _ in done.cells.values()) == 200_000


def test_of_the_system_only_libraries_are_in_the_box():
    (said,) = ask(
        "import os\n"
        "print(sorted(os.listdir('/')), sorted(os.listdir('/usr')))\n"
        "print(len(os.listdir('/usr/bin')), os.path.exists('/usr/local/share'))\n"
    )
    top, programs = said.splitlines()
    assert "'etc'" not in top
    assert "'share'" not in top
    number, shared = programs.split()
    assert int(number) <= 1 + len(box.PROGRAMS)
    assert shared == "False"


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ("import socket\nx = [socket.socketpair() for _ in range(50)]", "sockets"),
        ("for i in range(12_000): open(f'/tmp/{i}', 'w').close()", "files"),
        ("for i in range(12_000): open(f'/dev/shm/{i}', 'w').close()", "files"),
    ],
)  # fmt: skip
def test_what_belongs_to_no_process_is_counted(cell, what):
    waits = f"{cell}\nimport time; time.sleep(99)"
    done = run([(0, "x = 1"), (1, waits), (2, "print(x)")], {}, Limits())
    assert done.stopped == ["cell 1"]
    assert f"too many {what}" in done.cells[1][1]
    assert done.cells[2][0] == "1\n"


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_NETLINK"])
def test_sockets_reach_no_other_machine_and_hold_little(family):
    (said,) = ask(
        "import socket\nours, theirs = socket.socketpair()\n"
        "tries = [\n"
        f"    lambda: socket.socket(socket.{family}, socket.SOCK_DGRAM),\n"
        "    lambda: ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22),\n"
        "    lambda: ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22),\n"
        "]\n"
        "for one in tries:\n"
        "    try: one(); print('done')\n"
        "    except OSError as error: print(error.errno)"
    )
    assert said.split() == [str(errno.EPERM)] * 3


def test_what_has_arrived_is_read_before_the_clock(monkeypatch):
    """This process may be held up, by another thread, until the time is over."""
    real, slept = box._usage, []

    def held_up(*arguments):
        if not slept:
            slept.append(time.sleep(4))
        return real(*arguments)

    with Box(Limits(seconds=1)) as opened:
        send(opened, "import time; time.sleep(1)\nprint('in time')", 1)
        monkeypatch.setattr(box, "_usage", held_up)
        assert opened.receive()["text"] == "in time\n"
    assert slept


def test_time_in_which_nobody_looks_does_not_count(monkeypatch):
    watch = box._Watch(os.getpid(), Limits(seconds=1), 1e9, 1.0, False)
    now = [watch.last]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    now[0] += 100
    watch.look()
    for _ in range(2):
        now[0] += 0.9
        watch.look()
    now[0] += 0.9
    with pytest.raises(Stopped):
        watch.look()


def test_pages_that_are_shared_count_once():
    """Five hundred megabytes, in the head and in what is kept for eight tasks."""
    names = [f"f{i}" for i in range(8)]
    cells = ["data = bytearray(b'x') * (500 << 20)"]
    cells += [f"def {name}():\n    return len(data)" for name in names]
    tasks = {name: [encode(())] for name in names}
    done = run(list(enumerate(cells)), tasks, Limits())
    assert {one.value for [one] in done.tasks.values()} == {500 << 20}
    assert not done.stopped


def test_answers_are_called_as_they_stood_after_their_cell():
    program = [
        Code(0, "k = 2\ndef f():\n    return k", "one", ("f",)),
        Code(1, "k = 3\ndef f():\n    return 'a trial'", "two"),
        Code(2, "k = 4\ndef g():\n    return h()", "three"),
        Code(3, "def h():\n    return k", "four"),
    ]
    seen: dict[str, list[object]] = {"f": [], "g": []}

    def never(name):
        return lambda outcomes: bool(seen[name].append(outcomes[0].value))

    tasks = {name: Task([encode(())], (), never(name)) for name in seen}
    run_codes(program, tasks, Limits())
    assert seen == {"f": [2, "a trial", "a trial"], "g": [None, 4]}


def test_cells_that_no_answer_needs_cost_no_answer():
    sleeps = [
        Code(i, "import time; time.sleep(99)", f"cell {i}", (), False) for i in range(9)
    ]
    answer = Code(9, "def f():\n    return 1", "cell 9", ("f",))
    limits = Limits(seconds=0.5, patience=12)
    done = run_codes([*sleeps, answer], {"f": Task([encode(())])}, limits)
    assert done.tasks["f"] == [Outcome(1)]
    assert done.stopped
    assert done.skipped


def test_all_runs_together_have_one_budget():
    sleeps = [Code(i, "import time; time.sleep(99)", f"{i}") for i in range(9)]
    budget = Budget(2)
    for _ in range(2):
        done = run_codes(sleeps, {"f": Task([])}, Limits(seconds=1), budget)
        assert done.tasks["f"] == "It was not reached."
    assert budget.left <= 0
    assert not done.cells


HIDDEN = """
import dlcore.connectionism.hopfield, functools, importlib
from dlcore.connectionism.hopfield import hebbian
name = 'dl' 'core.connectionism.hop' 'field'
def imported(X): return importlib.import_module(name).hebbian(X)
def by_hand(X): return __import__(name, fromlist=['hebbian']).hebbian(X)
def attribute(X): return dlcore.connectionism.hopfield.hebbian(X)
def copied(X, f=hebbian): return f(X)
bound = functools.partial(hebbian)
def gathered(X):
    import gc
    fs = [o for o in gc.get_objects() if getattr(o, '__name__', '') == 'hebbian']
    return fs[0](X)
def own(X): return X.T @ X
"""


def test_modules_that_a_task_does_without_are_hidden():
    argument = encode((torch.ones(2, 2).numpy(),))
    names = ["imported", "by_hand", "attribute", "copied", "bound", "gathered"]
    tasks = {
        name: Task([argument], ["dlcore.connectionism.hopfield"]) for name in names
    }
    tasks["own"] = Task([argument], ["dlcore.connectionism.hopfield"])
    program = [Code(0, HIDDEN, "hidden")]
    done = run_codes(program, tasks, Limits())
    assert done.cells[0] == ("", "")
    for name in names:
        assert done.tasks[name][0].raised == "NotAllowedHere", name
    assert done.tasks["own"][0].value is not None
    shown = {name: Task([argument]) for name in names}
    allowed = run_codes(program, shown, Limits())
    assert {one.raised for [one] in allowed.tasks.values()} == {""}


def test_functions_of_any_kind_are_disarmed():
    space = {"__name__": "dlcore.made_up"}
    exec(
        "import functools\n"
        "def plain(a, *b, c=1, **d): return 1\n"
        "def closed():\n    x = 1\n    def inner(): return x\n    return inner\n"
        "def steps(): yield 1\n"
        "async def later(): return 1\n"
        "@functools.cache\ndef kept(): return 1\n"
        "class Kind:\n"
        "    def method(self): return 1\n"
        "    @staticmethod\n    def static(): return 1\n"
        "    @classmethod\n    def of_class(cls): return 1\n"
        "    @property\n    def value(self): return 1\n"
        "one, inner = Kind(), closed()\n",
        space,
    )
    for value in list(space.values()):
        runner._disarm(value, "dlcore.made_up")
    one = space["one"]
    calls_ = [space[n] for n in ("plain", "inner", "steps", "later", "kept")]
    calls_ += [one.method, one.static, one.of_class, lambda: one.value]
    for call in calls_:
        with pytest.raises(runner.NotAllowedHere):
            call(*[0] * (call is space["plain"]))


@pytest.mark.parametrize(
    "cells",
    [
        [
            "from concurrent.futures import ThreadPoolExecutor\n"
            "pool = ThreadPoolExecutor(2)\nprint(*pool.map(abs, [-1, -2]))",
            "print(*pool.map(abs, [-1, -2]))",
        ],
        [
            "import multiprocessing\npool = multiprocessing.Pool(2)\nprint(1, 2)",
            "print(*pool.map(abs, [-1, -2]))",
        ],
        [
            "import joblib\nwork = [joblib.delayed(abs)(x) for x in (-1, -2)]\n"
            "print(*joblib.Parallel(n_jobs=2)(work))",
            "print(*joblib.Parallel(n_jobs=2)(work))",
        ],
        [
            "import threading\ndone = []\n"
            "thread = threading.Thread(target=lambda: done.extend([1, 2]))\n"
            "thread.start()\nprint(1, 2)",
            "thread.join()\nprint(*done)",
        ],
        [
            "import subprocess, sys\n"
            "process = subprocess.Popen([sys.executable, '-c', 'exit(2)'])\n"
            "print(1, 2)",
            "print(1, process.wait())",
        ],
        ["open('own.py', 'w').write('x = 2');\nprint(1, 2)", "import own\nprint(1, own.x)"],
        ["%%writefile own.py\nx = 2", "%run own.py\nprint(1, x)"],
    ],
    ids=["threads", "pool", "joblib", "thread", "process", "module", "magics"],
)  # fmt: skip
def test_what_a_cell_starts_lives_on(cells):
    assert ask(*cells)[-1] == "1 2\n"


@pytest.mark.parametrize(
    "cell",
    [
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "import signal; signal.signal(signal.SIGALRM, signal.SIG_DFL);"
        " signal.setitimer(signal.ITIMER_REAL, 0.01)",
        "import os; os.kill(os.getppid(), 9)",
        "import os; os.closerange(3, 100)",
        "import os\nwhile True: os.fork()",
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=(9,)).start()",
        "import warnings, threading, time; warnings.simplefilter('error');"
        " threading.Thread(target=time.sleep, args=(1,)).start()",
    ],
    ids=["children", "alarm", "parent", "files", "forks", "threads", "warnings"],
)
def test_a_cell_costs_only_itself(cell):
    cells = ["x = 1", cell, "x += 1", "def f():\n    return x"]
    done = run(list(enumerate(cells)), {"f": [encode(())]}, Limits(seconds=5))
    assert done.tasks["f"] == [Outcome(2)], done


def test_bytes_that_drip_do_not_stop_the_clock():
    """A stranger who writes to the pipe now and then must not hold the grader."""
    drip = [sys.executable, "-c", "while True:\n import time; time.sleep(0.05); print(end=' ', flush=True)"]  # fmt: skip
    with Box(Limits(seconds=0.5)) as opened:
        opened.receive()
        with subprocess.Popen(drip, stdout=subprocess.PIPE) as other:
            os.set_blocking(other.stdout.fileno(), False)
            opened._out = other.stdout.fileno()
            with pytest.raises(Stopped):
                opened.receive()
            other.kill()


def test_short_cells_have_a_budget_too():
    cells = [Code(i, "import time; time.sleep(0.1)", f"{i}") for i in range(99)]
    done = run_codes(cells, {"f": Task([])}, Limits(seconds=1), Budget(2))
    assert done.tasks["f"] == "It was not reached."


def test_files_cannot_be_leased():
    (said,) = ask(
        "import fcntl\nfile = open('/tmp/x', 'w')\n"
        "try: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
        "except OSError as error: print(error.errno)"
    )
    assert said == f"{errno.EPERM}\n"


def test_cells_are_needed_if_they_lead_to_a_task():
    sources = ["", "import numpy as np", "def help(x): return np.abs(x)", "y = 3"]
    sources += ["def f(x): return help(x)", "z = plot(y)", "print(f(2))"]
    program = [Code(i, source, f"{i}") for i, source in enumerate(sources)]
    marked = mark_needed(program, ["f"])
    assert [c.place for c in marked if not c.needed] == [3, 5]
