"""Make pages in processes of their own, whose memory and time are limited.

A page holds what a student wrote, and no parser is sure to be quick with everything. A
page that takes too much is made once more, with texts and code as they are.
"""

import json
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from classroom.facts import Facts

BOOK = Path(__file__).resolve().parents[1]


class Limits(NamedTuple):
    """What one page may use."""

    seconds: int = 20  # of computing
    memory: int = 1 << 30
    size: int = 20_000_000  # characters of the page


class Printer:
    """One process that makes pages; if it ends, another takes its place.

    Args:
        limits: what one page may use.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._process: subprocess.Popen[str] | None = None

    def print(self, facts: Facts, digest: str) -> tuple[str, bool]:
        """Return a page, and whether it had to be a simple one."""
        try:
            return self._ask(facts, digest, simple=False), False
        except ValueError:
            return self._ask(facts, digest, simple=True), True

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, facts: Facts, digest: str, simple: bool) -> str:
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            job = [asdict(facts), digest, simple]
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            reply = json.loads(process.stdout.readline() or "[]")
        except OSError:
            reply = []
        if not reply:
            self.close()
            raise ValueError("The page took too much time or memory.")
        page, why = reply
        if why:
            raise ValueError(why)
        return str(page)

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "classroom.printer", *map(str, self._limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=BOOK,
            encoding="utf-8",
        )


def main() -> None:
    """Answer each line, a job, with one: a page, or why there is none."""
    limits = Limits(*map(int, sys.argv[1:]))
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        _allow(limits.seconds)
        print(json.dumps(_answer(line, limits.size)), flush=True)


def _answer(line: str, size: int) -> tuple[str, str]:
    from classroom.page import page

    try:
        facts, digest, simple = json.loads(line)
        made = page(Facts.load(facts), digest, simple)
        if len(made) > size:
            raise ValueError(f"The page has {len(made):,} characters.")
    except Exception as error:
        return "", f"{type(error).__name__}: {error}"[:500]
    return made, ""


def _allow(seconds: int) -> None:
    """Let this process compute for so many seconds more; then it ends."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
