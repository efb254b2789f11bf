"""The box in which students' code runs: bubblewrap, limits, and a pipe.

In the box there is a read-only system, Python with its packages, ``dlcore`` and the
runner; no network, no home, no course, no book. The only places to write to are a small
``/tmp`` and ``/dev/shm`` in memory. When the box is closed, everything in it ends and is
gone: the kernel refuses calls that would leave something behind, or get round the limits.
"""

import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import dlcore
from classroom import calls

PROGRAMS = ("bwrap", "prlimit", "setpriv")
RUNNER = Path(__file__).with_name("runner.py")
INSIDE = Path("/box")
SYSTEM = [Path("/usr"), Path("/etc/alternatives"), Path("/etc/ld.so.conf.d")]
SYSTEM_LINKS = [Path("/bin"), Path("/lib"), Path("/lib64"), Path("/sbin")]
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "USER": "student",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "OMP_THREAD_LIMIT": "1",  # whatever a cell sets: no threads that a fork leaves behind
}
MAX_LINE = 10_000_000  # bytes of one reply
CLOCK = 3  # seconds on the clock for each second of computing
CLOSING = 5  # seconds for what is in a box to end
TICK = 0.2  # seconds between two looks at time and memory
NOBODY = "65534"
FIRST_USER = 1_000_000_000  # of the users as whom boxes of root run
BOXES = 64  # at a time in one process


@dataclass(frozen=True)
class Limits:
    """What the code of one submission may use.

    Attributes:
        seconds: of computing, for one cell or for all cases of one task. Three times as
            many may pass on the clock, so that a busy machine takes no marks away.
        memory: bytes, for one process and for all together.
        processes: at the same time, threads included.
        files: that one process has open.
        disk: bytes in ``/tmp``, in ``/dev/shm``, and of one file.
        patience: all cells and tasks together may take so many times ``seconds`` on the
            clock.
    """

    seconds: float = 20
    memory: int = 2 << 30
    processes: int = 64
    files: int = 256
    disk: int = 64 << 20
    patience: float = 15


class Stopped(Exception):
    """The code in the box used more than it may."""


class Late(Stopped):
    """The code in the box was still computing, but had not been let to for long."""


class Crashed(Exception):
    """The code in the box ended, or sent what is no reply."""


class Box:
    """A runner in a box; use it in a ``with`` statement.

    Args:
        limits: what it may use.
        number: a small number that no other box has at the same time.
        boxed: build a box; otherwise the code only gets the limits, and can see and
            change what the teacher can.
    """

    def __init__(self, limits: Limits, number: int = 0, boxed: bool = True):
        self.limits = limits
        self._end = time.monotonic() + limits.patience * limits.seconds
        self._boxed = boxed
        self._buffer = b""
        with _refusal() as refused:
            self._process = subprocess.Popen(
                command(limits, number, refused)
                if boxed
                else bare_command(limits),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=ENVIRONMENT,
                cwd="/",
                bufsize=0,
                start_new_session=True,
                pass_fds=[refused] if boxed else [],
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)

    def __enter__(self) -> "Box":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything in the box, and wait until it has ended."""
        for process in _family(self._process.pid)[:-1]:
            with suppress(psutil.Error):
                process.kill()
        try:  # bubblewrap ends when the last process in the box has
            self._process.wait(CLOSING if self._boxed else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            pipe.close()

    def send(self, request: dict[str, Any]) -> None:
        """Send a request to the runner."""
        data = json.dumps(request).encode() + b"\n"
        watch = _Watch(self._process.pid, self.limits, self._end)
        while data:
            if self._ready(self._in, selectors.EVENT_WRITE):
                try:
                    data = data[os.write(self._in, data) :]
                except BrokenPipeError:
                    raise Crashed from None
            watch.look()

    def receive(self, patience: float = 1.0) -> dict[str, Any]:
        """Return the next reply of the runner, which may be anything.

        Args:
            patience: wait so many times as long as the limits say.
        """
        watch = _Watch(self._process.pid, self.limits, self._end, patience)
        while b"\n" not in self._buffer:
            if self._ready(self._out, selectors.EVENT_READ):
                part = os.read(self._out, 1 << 16)
                self._buffer += part
                if not part or len(self._buffer) > MAX_LINE:
                    raise Crashed
            watch.look()
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            raise Crashed from None
        if type(reply) is not dict:
            raise Crashed
        return reply

    def _ready(self, pipe: int, event: int) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, event)
            return bool(selector.select(TICK))


class _Watch:
    """Looks now and then at the time and memory that a box uses."""

    def __init__(
        self, pid: int, limits: Limits, end: float, patience: float = 1.0
    ) -> None:
        self.pid = pid
        self.memory = limits.memory
        self.seconds = limits.seconds * patience
        self.last = time.monotonic()
        self.end = min(end, self.last + CLOCK * self.seconds)
        self.before: float | None = None

    def look(self) -> None:
        """Raise ``Stopped`` if the box has used too much since the first look."""
        now = time.monotonic()
        if now - self.last < TICK:
            return
        self.last = now
        used, memory = _usage(self.pid)
        self.before = used if self.before is None else self.before
        if used - self.before > self.seconds:
            raise Stopped("took too long")
        if now > self.end:
            raise (Late if _busy(self.pid) else Stopped)("took too long")
        if memory > self.memory:
            raise Stopped("took too much memory")


def why_not() -> str:
    """Return why no box can be built on this machine; nothing if it can."""
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    if missing:
        return f"{' and '.join(missing)} cannot be found"
    if unknown := calls.why_not():
        return unknown
    with _refusal() as refused:
        shell = command(Limits(), 0, refused)[: -len(_runner(INSIDE))]
        tried = subprocess.run(
            [*shell, sys.executable, "-I", "-c", ""],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            pass_fds=[refused],
        )
    return tried.stderr.strip() or "it fails" if tried.returncode else ""


def command(limits: Limits, number: int, refused: int) -> list[str]:
    """Return the command that starts a runner in a box.

    A user who is not root gets a user namespace. Root must not: outside of it the code
    would still be root's, and limits and file modes would not hold. It gives up its
    rights and becomes a user whom nobody else is, before it enters the namespace. There,
    and only there, processes are counted for each box by itself.

    Args:
        limits: what the runner may use.
        number: a small number that no other box has at the same time.
        refused: a file with the calls that are refused.
    """
    root = os.geteuid() == 0
    user = str(FIRST_USER + BOXES * os.getpid() + number % BOXES)
    rights = [f"CAP_{right}" for right in ("SETUID", "SETGID", "SETPCAP")]
    become = ["--reuid", user, "--regid", user, "--clear-groups"]
    give_up = ["--inh-caps=-all", "--bounding-set=-all"]
    nobody = ["--uid", NOBODY, "--gid", NOBODY]
    alone = ["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
    alone += ["--seccomp", str(refused)]
    return [
        *_prlimit(limits),
        *("bwrap", "--die-with-parent", "--new-session"),
        *(f"--unshare-{space}" for space in ("pid", "net", "ipc", "uts")),
        *("--unshare-cgroup-try", "--hostname", "box"),
        *("--cap-drop", "ALL"),
        *([] if root else [*alone, *nobody]),
        *(part for r in rights if root for part in ("--cap-add", r)),
        *_mounts(limits),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"),
        *(["setpriv", *become, *give_up] if root else []),
        *(["bwrap", *alone, "--dev-bind", "/", "/"] if root else []),
        *("prlimit", f"--nproc={limits.processes}"),
        *_runner(INSIDE),
    ]


def bare_command(limits: Limits) -> list[str]:
    """Return the command that starts a runner without a box."""
    here = Path(dlcore.__file__).parents[1]
    return [*_prlimit(limits), *_runner(here, RUNNER)]


@contextmanager
def _refusal() -> Iterator[int]:
    """Open a file with the calls that are refused."""
    with tempfile.TemporaryFile() as file:
        file.write(b"" if calls.why_not() else calls.refusal())
        file.seek(0)
        yield file.fileno()


def _prlimit(limits: Limits) -> list[str]:
    bounds = {"as": limits.memory, "fsize": limits.disk, "core": 0}
    bounds["nofile"] = limits.files
    return ["prlimit", *(f"--{name}={value}" for name, value in bounds.items())]


def _runner(packages: Path, file: Path = INSIDE / "runner.py") -> list[str]:
    return [sys.executable, "-I", "-B", str(file), str(packages)]


def _mounts(limits: Limits) -> list[str]:
    """Return what is in the box: all of it can only be read, but for two places.

    Memory that processes share comes from ``/dev/shm``, which has a limit, and not from
    ``/dev/zero``, which has none.
    """
    places = {
        **{place: place for place in SYSTEM if place.is_dir()},
        **{place: place for place in _python()},
        Path(dlcore.__file__).parent: INSIDE / "dlcore",
        RUNNER: INSIDE / "runner.py",
    }
    links = [p for p in SYSTEM_LINKS if p.is_symlink()]
    folders = {parent for place in places.values() for parent in place.parents}
    small = ["--size", str(limits.disk), "--perms", "1777", "--tmpfs"]
    return [
        *(*small, "/tmp"),
        *(part for f in sorted(folders) for part in ("--dir", str(f))),
        *(
            part
            for source, place in places.items()
            for part in ("--ro-bind", str(source), str(place))
        ),
        *(
            part
            for p in links
            for part in ("--symlink", os.readlink(p), str(p))
        ),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--dev-bind", "/dev/null", "/dev/zero"),
        *(*small, "/dev/shm"),
    ]


def _python() -> list[Path]:
    """Return the folders that Python and its packages are in."""
    prefixes = {Path(sys.prefix), Path(sys.base_prefix)}
    prefixes |= {prefix.resolve() for prefix in prefixes}
    return sorted(p for p in prefixes if not p.is_relative_to("/usr"))


def _family(pid: int) -> list[psutil.Process]:
    """Return a process and everything that it started, the youngest first."""
    try:
        parent = psutil.Process(pid)
        return [*reversed(parent.children(recursive=True)), parent]
    except psutil.NoSuchProcess:
        return []


def _busy(pid: int) -> bool:
    """Tell whether a process, or one that it started, would go on if it could."""
    going = (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    for process in _family(pid):
        with suppress(psutil.Error):
            if process.status() in going:
                return True
    return False


def _usage(pid: int) -> tuple[float, int]:
    """Return the seconds of computing and the bytes that a family uses."""
    seconds, memory = 0.0, 0
    for process in _family(pid):
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system
            seconds += times.children_user + times.children_system
            memory += _memory(process.pid)
    return seconds, memory


def _memory(pid: int) -> int:
    """Return the bytes that a process has in memory, or had and that were swapped out."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in lines)
        names = ("VmRSS", "VmSwap")
        return sum(1024 * int(sizes.get(n, "0").split()[0]) for n in names)
    return 0
