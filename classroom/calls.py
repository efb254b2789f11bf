"""The calls of the kernel that the box refuses: those that get round its limits.

Memory that belongs to no process is counted by nobody: files in memory, shared memory,
queues, sets of semaphores. Processors are shared out among sessions, so a box that makes
many would leave little to the others. And the keys of whoever logged in, such as tickets
for other machines, are kept by the kernel for all of that user's programs, those in a box
too.
"""

import errno
import platform
import struct
from collections.abc import Iterable

# For each machine: how the kernel names it, the number of mmap, and what is refused.
# add_key, request_key, keyctl, shmget, msgget, semget, memfd_create, memfd_secret, setsid
MACHINES = {
    "x86_64": (0xC000003E, 9, (248, 249, 250, 29, 68, 64, 319, 447, 112)),
    "aarch64": (0xC00000B7, 222, (217, 218, 219, 194, 186, 190, 279, 447, 157)),
}
LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
# Where a call has them; the flags are the fourth argument of mmap.
NUMBER, MACHINE, FLAGS = 0, 4, 40
SHARED = 0x21  # memory of no file, and of more than one process
OTHER_NUMBERS = 0x40000000  # the same calls of x86_64 under other numbers
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def why_not() -> str:
    """Return why no filter can be made on this machine; nothing if it can."""
    machine = platform.machine()
    return "" if machine in MACHINES else f"it does not know {machine}"


def refusal() -> bytes:
    """Return the filter as the kernel reads it."""
    name, mmap, refused = MACHINES[platform.machine()]
    return b"".join(
        [
            *(_do(LOAD, MACHINE), _do(EQUAL, name, 1, 0), _do(RETURN, REFUSE)),
            *(_do(LOAD, NUMBER), *_refuse_if(AT_LEAST, [OTHER_NUMBERS])),
            *_refuse_if(EQUAL, refused),
            *(_do(EQUAL, mmap, 0, 4), _do(LOAD, FLAGS), _do(AND, SHARED)),
            *(*_refuse_if(EQUAL, [SHARED]), _do(RETURN, ALLOW)),
        ]
    )


def _refuse_if(test: int, values: Iterable[int]) -> list[bytes]:
    return [
        step
        for value in values
        for step in (_do(test, value, 0, 1), _do(RETURN, REFUSE))
    ]


def _do(what: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """Return one step; a test skips so many steps after it."""
    return struct.pack("=HBBI", what, if_so, if_not, value)
