"""The filter for the system calls of the agent's commands, as a program that the kernel runs before
each of them (seccomp). It closes what Landlock leaves open: sockets with a path, through which
programs outside could be told to do things. `confined_run` puts it in place.
"""

import errno
import platform
import struct
import sys

from msgspec import Struct


class Machine(Struct, frozen=True):
    """A kind of processor: its mark in what the filter is given, and its numbers of calls."""

    mark: int
    socket: int
    socketpair: int


MACHINES = {
    "x86_64": Machine(mark=0xC000003E, socket=41, socketpair=53),
    "aarch64": Machine(mark=0xC00000B7, socket=198, socketpair=199),
}

_IO_URING_SETUP = 425
_OTHER_NUMBERS = 0x40000000
"""From here on x86_64 has the numbers of x32, its other way to make calls."""
_UNIX, _STREAM, _SEQPACKET, _KIND = 1, 1, 5, 0xF

# Where the filter finds things, and what it can do: load, compare, mask, return.
_NUMBER, _MARK, _FIRST, _SECOND = 0, 4, 16, 24
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def filter_program(machine: Machine) -> bytes:
    """The filter for a machine. Sockets with a path, and pairs that could be turned to one, are
    denied; io_uring, which makes calls past the filter, is not there; calls in the way of another
    machine (32-bit programs) end the process.
    """
    rows = (
        (_LOAD, "", "", _MARK),
        (_EQUAL, "", "kill", machine.mark),
        (_LOAD, "", "", _NUMBER),
        (_AT_LEAST, "kill", "", _OTHER_NUMBERS),
        (_EQUAL, "missing", "", _IO_URING_SETUP),
        (_EQUAL, "pair", "", machine.socketpair),
        (_EQUAL, "", "allow", machine.socket),
        (_LOAD, "", "", _FIRST),
        (_EQUAL, "deny", "allow", _UNIX),
        # A pair of datagram sockets can be connected anew, to any path.
        "pair",
        (_LOAD, "", "", _SECOND),
        (_AND, "", "", _KIND),
        (_EQUAL, "allow", "", _STREAM),
        (_EQUAL, "allow", "", _SEQPACKET),
        "deny",
        (_RETURN, "", "", _FAIL | errno.EACCES),
        "allow",
        (_RETURN, "", "", _ALLOW),
        "missing",
        (_RETURN, "", "", _FAIL | errno.ENOSYS),
        "kill",
        (_RETURN, "", "", _KILL),
    )
    steps: list[tuple[int, str, str, int]] = []
    labels: dict[str, int] = {}
    for row in rows:
        if isinstance(row, str):
            labels[row] = len(steps)
        else:
            steps.append(row)
    program = b""
    for at, (code, yes, no, value) in enumerate(steps):
        jumps = (labels[label] - at - 1 if label else 0 for label in (yes, no))
        program += struct.pack("=HBBI", code, *jumps, value)
    return program


def filter_here() -> bytes:
    """The filter for this machine; nothing where there is none."""
    machine = MACHINES.get(platform.machine())
    if machine is None or not sys.platform.startswith("linux") or sys.maxsize < 2**32:
        return b""
    return filter_program(machine)
