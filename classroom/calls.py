"""The calls of the kernel that the box refuses: those that get round its limits.

Memory that belongs to no process is counted by nobody: files in memory, shared memory,
queues, sets of semaphores, the buffers of sockets. Of sockets only those within one
machine are made, with buffers of the ordinary size. Calls that do other calls' work out
of sight are refused too. Processors are shared out among sessions, so a box that makes
many would leave little to the others. And the keys of whoever logged in, such as tickets
for other machines, are kept by the kernel for all of that user's programs, those in a box
too.
"""

import errno
import platform
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Machine(NamedTuple):
    """How the kernel names a kind of machine, and its numbers of calls."""

    name: int
    mmap: int
    sockets: tuple[int, int]  # socket, socketpair
    setsockopt: int
    # add_key, request_key, keyctl, shmget, msgget, semget, memfd_create, memfd_secret,
    # setsid; io_uring_setup, userfaultfd, perf_event_open, bpf
    refused: tuple[int, ...]


MACHINES = {
    "x86_64": Machine(
        *(0xC000003E, 9, (41, 53), 54),
        (248, 249, 250, 29, 68, 64, 319, 447, 112, 425, 323, 298, 321),
    ),
    "aarch64": Machine(
        *(0xC00000B7, 222, (198, 199), 208),
        (217, 218, 219, 194, 186, 190, 279, 447, 157, 425, 282, 241, 280),
    ),
}
LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
# Where a call has them: its number, the machine, and its arguments.
NUMBER, MACHINE = 0, 4
FIRST, SECOND, THIRD, FOURTH = 16, 24, 32, 40
SHARED = 0x21  # memory of no file, and of more than one process
OTHER_NUMBERS = 0x40000000  # the same calls of x86_64 under other numbers
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def why_not() -> str:
    """Return why no filter can be made on this machine; nothing if it can."""
    machine = platform.machine()
    return "" if machine in MACHINES else f"it does not know {machine}"


def refusal() -> bytes:
    """Return the filter as the kernel reads it."""
    machine = MACHINES[platform.machine()]
    local = _load(FIRST) + _unless(socket.AF_UNIX)
    larger = [socket.SO_SNDBUF, socket.SO_RCVBUF]
    steps = [
        *_load(MACHINE),
        *_unless(machine.name),
        *_load(NUMBER),
        *_refuse_if(AT_LEAST, [OTHER_NUMBERS]),
        *_refuse_if(EQUAL, machine.refused),
        *(s for call in machine.sockets for s in _within(call, local)),
        *_within(machine.setsockopt, _load(THIRD) + _refuse_if(EQUAL, larger)),
        *_within(
            machine.mmap,
            [*_load(FOURTH), _do(AND, SHARED), *_refuse_if(EQUAL, [SHARED])],
        ),
        _do(RETURN, ALLOW),
    ]
    return b"".join(steps)


def _load(what: int) -> list[bytes]:
    return [_do(LOAD, what)]


def _unless(value: int) -> list[bytes]:
    return [_do(EQUAL, value, 1, 0), _do(RETURN, REFUSE)]


def _refuse_if(test: int, values: Iterable[int]) -> list[bytes]:
    return [
        step
        for value in values
        for step in (_do(test, value, 0, 1), _do(RETURN, REFUSE))
    ]


def _within(call: int, steps: Sequence[bytes]) -> list[bytes]:
    """Return steps that are taken for one call only; its number is loaded before."""
    return [_do(EQUAL, call, 0, len(steps) + 1), *steps, _do(RETURN, ALLOW)]


def _do(what: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """Return one step; a test skips so many steps after it."""
    return struct.pack("=HBBI", what, if_so, if_not, value)
