"""The calls of the kernel that the box refuses: those that get round its limits.

Memory that belongs to no process is counted by nobody: files in memory, shared memory,
queues, sets of semaphores, the buffers of sockets. Of sockets only those within one
machine are made, with buffers of the ordinary size. Calls that do other calls' work out
of sight, or reach into other processes, are refused too. Processors are shared out among sessions, so a box that makes
many would leave little to the others. A lease on a file that a box can read would hold up
everybody else who opens it. And the keys of whoever logged in, such as tickets
for other machines, are kept by the kernel for all of that user's programs, those in a box
too.
"""

import errno
import platform
import socket
import struct
from collections.abc import Iterable, Sequence

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # as the kernel names them
# The numbers of calls, on each of the machines.
REFUSED = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "io_setup": (206, 0),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "msgget": (68, 186),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setsid": (112, 157),
    "shmget": (29, 194),
    "userfaultfd": (323, 282),
}
LIMITED = {
    "fcntl": (72, 25),
    "mmap": (9, 222),
    "setsockopt": (54, 208),
    "socket": (41, 198),
    "socketpair": (53, 199),
}
LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
# Where a call has them: its number, the machine, and its arguments.
NUMBER, MACHINE = 0, 4
FIRST, SECOND, THIRD, FOURTH = 16, 24, 32, 40
LEASE = 1024  # holds up all others that open a file
SHARED = 0x21  # memory of no file, and of more than one process
OTHER_NUMBERS = 0x40000000  # the same calls of x86_64 under other numbers
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def why_not() -> str:
    """Return why no filter can be made on this machine; nothing if it can."""
    machine = platform.machine()
    return "" if machine in MACHINES else f"it does not know {machine}"


def number(name: str) -> int:
    """Return the number of a call on this machine."""
    return {**REFUSED, **LIMITED}[name][[*MACHINES].index(platform.machine())]


def refusal() -> bytes:
    """Return the filter as the kernel reads it."""
    local = _load(FIRST) + _unless(socket.AF_UNIX)
    larger = _refuse_if(EQUAL, [socket.SO_SNDBUF, socket.SO_RCVBUF])
    shared = [_do(AND, SHARED), *_refuse_if(EQUAL, [SHARED])]
    steps = [
        *_load(MACHINE),
        *_unless(MACHINES[platform.machine()]),
        *_load(NUMBER),
        *_refuse_if(AT_LEAST, [OTHER_NUMBERS]),
        *_refuse_if(EQUAL, map(number, REFUSED)),
        *_within("fcntl", _load(SECOND) + _refuse_if(EQUAL, [LEASE])),
        *_within("mmap", _load(FOURTH) + shared),
        *_within("setsockopt", _load(THIRD) + larger),
        *_within("socket", local),
        *_within("socketpair", local),
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


def _within(call: str, steps: Sequence[bytes]) -> list[bytes]:
    """Return steps that are taken for one call only; its number is loaded before."""
    test = _do(EQUAL, number(call), 0, len(steps) + 1)
    return [test, *steps, _do(RETURN, ALLOW)]


def _do(what: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """Return one step; a test skips so many steps after it."""
    return struct.pack("=HBBI", what, if_so, if_not, value)
