"""The box in which students' code runs: bubblewrap, limits, and a pipe.

In the box there are the system's libraries, Python with its packages, ``dlcore`` and the
runner; no network, no home, no course, no book. The only places to write to are a small
``/tmp`` and ``/dev/shm`` in memory. When the box is closed, everything in it ends and is
gone: the kernel refuses calls that would leave something behind, or get round the limits.
"""

import json
import os
import selectors
import shutil
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import dlcore
from classroom import calls
from classroom.groups import Group

PROGRAMS = ("bwrap", "prlimit", "setpriv")
RUNNER = Path(__file__).with_name("runner.py")
INSIDE = Path("/box")
LIBRARIES = ("lib", "lib64")  # the folders of a prefix that Python needs
WRITABLE = ("tmp", "dev/shm")
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
MAX_PARTS = 1_000_000  # numbers, texts and lists in it
CLOCK = 3  # seconds on the clock for each second of computing
CLOSING = 5  # seconds for what is in a box to end
TICK = 0.2  # seconds between two looks at time and memory
STALL = 1.0  # seconds without a look after which the clock stands still
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
        sockets: of all processes together.
        disk: bytes in ``/tmp``, in ``/dev/shm``, and of one file.
        names: of files in each of the two.
        patience: everything together, in all boxes and all runs, may take so many times
            ``seconds`` on the clock.
    """

    seconds: float = 20
    memory: int = 2 << 30
    processes: int = 64
    files: int = 128
    sockets: int = 64
    disk: int = 64 << 20
    names: int = 10_000
    patience: float = 15

    @property
    def budget(self) -> float:
        """The seconds on the clock that a submission has for everything."""
        return self.patience * self.seconds


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
        end: when it is closed at the latest, on the monotonic clock.
    """

    def __init__(
        self,
        limits: Limits,
        number: int = 0,
        boxed: bool = True,
        end: float | None = None,
    ) -> None:
        self.limits = limits
        self._end = time.monotonic() + limits.budget if end is None else end
        self._boxed = boxed
        self._started = False
        self._buffer = b""
        self._group = Group(limits.memory)
        with _refusal() as refused:
            self._process = subprocess.Popen(
                self._group.command(
                    command(limits, number, refused) if boxed else bare_command(limits)
                ),
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
        self._group.close()

    def send(self, request: dict[str, Any]) -> None:
        """Send a request to the runner."""
        data = json.dumps(request).encode() + b"\n"
        watch = self._watch()
        while data:
            if _ready(self._in, selectors.EVENT_WRITE):
                try:
                    data = data[os.write(self._in, data) :]
                except BrokenPipeError:
                    raise Crashed from None
            watch.look()

    def receive(self, patience: float = 1.0) -> dict[str, Any]:
        """Return the next reply of the runner, which may be anything.

        What has arrived is read before the clock is.

        Args:
            patience: wait so many times as long as the limits say.
        """
        watch = self._watch(patience)
        while b"\n" not in self._buffer:
            _ready(self._out, selectors.EVENT_READ)
            if not self._read():
                watch.look()
        line, _, self._buffer = self._buffer.partition(b"\n")
        self._started = True
        return _parse(line)

    def _read(self) -> bool:
        """Read what has arrived; tell whether there is a whole line."""
        with suppress(BlockingIOError):
            while b"\n" not in self._buffer:
                part = os.read(self._out, 1 << 16)
                self._buffer += part
                if not part or len(self._buffer) > MAX_LINE:
                    raise Crashed
        return b"\n" in self._buffer

    def _watch(self, patience: float = 1.0) -> "_Watch":
        inside = self._boxed and self._started
        pid = self._process.pid
        return _Watch(pid, self.limits, self._end, patience, inside)


def _ready(pipe: int, event: int) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, event)
        return bool(selector.select(TICK))


def _parse(line: bytes) -> dict[str, Any]:
    """Return a reply; it may be anything, and must not take much to read."""
    if sum(line.count(sign) for sign in (b",", b"[", b"{")) > MAX_PARTS:
        raise Crashed
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        raise Crashed from None
    if type(reply) is not dict:
        raise Crashed
    return reply


class _Watch:
    """Looks now and then at what a box uses.

    While this process itself does not get to look, the clock stands still.

    Args:
        pid: the first process of the box.
        limits: what it may use.
        end: when it must have ended, on the monotonic clock.
        patience: wait so many times as long as the limits say.
        inside: look also at the files and sockets in the box, which has been built.
    """

    def __init__(
        self, pid: int, limits: Limits, end: float, patience: float, inside: bool
    ) -> None:
        self.pid = pid
        self.inside = inside
        self.limits = limits
        self.seconds = limits.seconds * patience
        self.last = time.monotonic()
        self.end = min(end, self.last + CLOCK * self.seconds)
        self.before: float | None = None

    def look(self) -> None:
        """Raise ``Stopped`` if the box has used too much since the first look."""
        now = time.monotonic()
        if now - self.last < TICK and now < self.end:
            return
        self.end += max(now - self.last - STALL, 0.0)
        self.last = now
        used, memory = _usage(self.pid, self.limits.memory)
        self.before = used if self.before is None else self.before
        if used - self.before > self.seconds:
            raise Stopped("took too long")
        if now > self.end:
            raise (Late if _busy(self.pid) else Stopped)("took too long")
        if memory > self.limits.memory:
            raise Stopped("took too much memory")
        if self.inside and _sockets(self.pid) > self.limits.sockets:
            raise Stopped("opened too many sockets")
        if self.inside and _names(self.pid) > self.limits.names:
            raise Stopped("made too many files")


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
        **{place: place for place in mounted()},
        Path(dlcore.__file__).parent: INSIDE / "dlcore",
        RUNNER: INSIDE / "runner.py",
    }
    links = _links()
    inside = [*places.values(), *links]
    folders = {parent for place in inside for parent in place.parents}
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
            for place, target in links.items()
            for part in ("--symlink", str(target), str(place))
        ),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--dev-bind", "/dev/null", "/dev/zero"),
        *(*small, "/dev/shm"),
    ]


def mounted() -> list[Path]:
    """Return the places that can be seen in a box: libraries, and a few programs."""
    python = Path(sys.executable).resolve()
    programs = [python, *(Path(shutil.which(p) or p) for p in PROGRAMS)]
    places = {
        *(place for place in _libraries() if not place.is_symlink()),
        *(program.resolve() for program in programs),
        *(p for p in [Path(sys.prefix) / "pyvenv.cfg"] if p.is_file()),
    }
    return sorted(p for p in places if places.isdisjoint(p.parents))


def _libraries() -> list[Path]:
    """Return the folders of libraries, of Python and of the system."""
    prefixes = {Path(p) for p in (sys.prefix, sys.base_prefix, "/usr", "/")}
    prefixes |= {prefix.resolve() for prefix in prefixes}
    places = [prefix / name for prefix in prefixes for name in LIBRARIES]
    places += [Path(place) for place in site.getsitepackages()]
    return [place for place in places if place.is_dir()]


def _links() -> dict[Path, Path]:
    """Return the links in the box by which programs and libraries are also found."""
    programs = [Path(shutil.which(p) or p) for p in (sys.executable, *PROGRAMS)]
    links = {p: p.resolve() for p in programs if p.is_symlink()}
    for place in _libraries():
        if place.is_symlink():
            links[place] = place.resolve()
    return links


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


def _usage(pid: int, most: int) -> tuple[float, int]:
    """Return the seconds of computing and the bytes that a family uses.

    Pages that several processes share count once, where it matters.

    Args:
        pid: the first process of the family.
        most: the bytes up to which a rough count will do.
    """
    seconds, family = 0.0, _family(pid)
    for process in family:
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system
            seconds += times.children_user + times.children_system
    memory = sum(_memory(process.pid) for process in family)
    if memory > most:
        memory = sum(_share(process.pid) for process in family)
    return seconds, memory


def _memory(pid: int) -> int:
    """Return the bytes that a process has in memory, or had and that were swapped out."""
    return _sizes(Path(f"/proc/{pid}/status"), ("VmRSS", "VmSwap"))


def _share(pid: int) -> int:
    """Return the same, with its part of pages that others have too."""
    share = _sizes(Path(f"/proc/{pid}/smaps_rollup"), ("Pss", "SwapPss"))
    return share or _memory(pid)


def _sizes(file: Path, names: Sequence[str]) -> int:
    with suppress(OSError, ValueError):
        lines = file.read_text().splitlines()
        sizes = dict(line.split(":", 1) for line in lines if ":" in line)
        return sum(1024 * int(sizes.get(n, "0").split()[0]) for n in names)
    return 0


def _sockets(pid: int) -> int:
    """Return how many sockets there are in a box."""
    for process in _family(pid)[:-1]:
        with suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{process.pid}/net/sockstat").read_text()
            return int(text.split()[2])
    return 0


def _names(pid: int) -> int:
    """Return how many files there are in the fuller of the places to write to."""
    for process in _family(pid)[:-1]:
        root = Path(f"/proc/{process.pid}/root")
        with suppress(OSError):
            found = [os.statvfs(root / place) for place in WRITABLE]
            return max(one.f_files - one.f_ffree for one in found)
    return 0
