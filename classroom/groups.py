"""Control groups: the kernel counts all memory of a box, also that of no process.

A group is made inside our own, where the kernel and the rights of the user allow it: for
root mostly, for others where a part of the tree was handed to them alone, as
``systemd-run --user --scope -p Delegate=yes`` does. Elsewhere there is none, and the box
has only its other limits.
"""

import itertools
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

TREE = Path("/sys/fs/cgroup")
OURS = Path("/proc/self/cgroup")
ENTER = ["sh", "-c", 'echo $$ > "$0" && exec "$@"']  # a group, then a command
# The files of a group, and what is written to them; not every kernel has the second.
FIRST_VERSION = {"memory.limit_in_bytes": "{}", "memory.memsw.limit_in_bytes": "{}"}
SECOND_VERSION = {"memory.max": "{}", "memory.swap.max": "0"}
TRIES = 50  # to remove a group
_numbers = itertools.count()
_one_at_a_time = threading.Lock()


class Group:
    """A group of processes that share a limit of memory.

    Args:
        memory: bytes that they may use together.
    """

    def __init__(self, memory: int) -> None:
        self._place = _make(memory)

    def command(self, command: list[str]) -> list[str]:
        """Return a command that runs another in the group, if there is one."""
        if self._place is None:
            return command
        return [*ENTER, str(self._place / "cgroup.procs"), *command]

    def close(self) -> None:
        """Remove the group; its processes have ended, or are about to."""
        if self._place is not None:
            for _ in range(TRIES):
                with suppress(OSError):
                    self._place.rmdir()
                    break
                time.sleep(0.02)


def prepare() -> None:
    """Step out of our own group, before other programs are started in it."""
    with suppress(OSError), _one_at_a_time:
        _parent()


def _make(memory: int) -> Path | None:
    """Make a group; return where it is, or nothing if there can be none."""
    try:
        with _one_at_a_time:
            parent, settings = _parent()
            _sweep(parent)
        place = parent / f"box-{os.getpid()}-{next(_numbers)}"
        place.mkdir()
    except OSError:
        return None
    try:
        (limit, value), (swap, more) = settings.items()
        (place / limit).write_text(value.format(memory))
        if (place / swap).exists():
            (place / swap).write_text(more.format(memory))
    except OSError:
        place.rmdir()
        return None
    return place


def _parent() -> tuple[Path, dict[str, str]]:
    """Return the group in which boxes get theirs, and the limits that those have."""
    for line in OURS.read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if "memory" in kinds.split(","):
            return TREE / "memory" / path.lstrip("/"), FIRST_VERSION
        if not kinds:
            return _cleared(TREE / path.lstrip("/")), SECOND_VERSION
    raise FileNotFoundError("There is no group that counts memory.")


def _sweep(parent: Path) -> None:
    """Remove the groups of graders that have ended."""
    for place in [*parent.glob("box-*"), *parent.glob("grader-*")]:
        if not Path(f"/proc/{place.name.split('-')[1]}").exists():
            with suppress(OSError):
                place.rmdir()


def _cleared(ours: Path) -> Path:
    """Return our group, cleared so that it can have others with limits.

    Such a group has no processes of its own, so this process steps into one of the others.
    It must have been alone.
    """
    own = f"grader-{os.getpid()}"
    if ours.name == own:
        return ours.parent
    if "memory" not in (ours / "cgroup.controllers").read_text().split():
        raise FileNotFoundError("Our group does not count memory.")
    if (ours / "cgroup.procs").read_text().split() != [str(os.getpid())]:
        raise PermissionError("Our group is also that of others.")
    (ours / own).mkdir()
    (ours / own / "cgroup.procs").write_text(str(os.getpid()))
    (ours / "cgroup.subtree_control").write_text("+memory")
    return ours
