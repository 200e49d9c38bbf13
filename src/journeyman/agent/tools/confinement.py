"""What commands of the agent may touch: they write below the workspace and their own temporary
folder, and read programs and the system, but not the user's home, and have no secrets in their
environment. The kernel holds them to it where it can (`why_unconfined`): Landlock the files, a
filter of system calls the network, and namespaces, where they can be had, everything else that is
not theirs; `confined_run` applies them. `confinement.toml` names what is in reach.
"""

import errno
import os
import platform
import struct
import sys
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

_SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
_PROGRAM_FOLDERS = ("bin", "sbin", "shims")
_BESIDE_PROGRAMS = (
    *("lib", "lib64", "libexec", "include", "share", "pyvenv.cfg"),
    *("conda-meta", "condabin", "ssl/cert.pem"),
)
"""What programs bring along, in the folder that holds theirs."""
_KEEPING_SECRETS = (".local", ".cargo", ".docker", ".config")
_BESIDE_SECRETS = ("lib", "share/pipx", "share/uv")
"""What programs bring along in folders where `share` holds keys of other programs too."""


class _Toolchain(Struct, frozen=True):
    parts: tuple[str, ...]
    home: str = ""


class _Lists(Struct, frozen=True, forbid_unknown_fields=True):
    system: tuple[str, ...]
    etc: tuple[str, ...]
    devices: tuple[str, ...]
    passed: tuple[str, ...]
    toolchains: dict[str, _Toolchain]


@cache
def _lists() -> _Lists:
    text = files(__package__).joinpath("confinement.toml").read_text(encoding="utf-8")
    found = msgspec.convert(tomllib.loads(text), _Lists)
    etc = (f"/etc/{name}" for name in found.etc)
    return msgspec.structs.replace(found, system=(*found.system, *etc))


class Policy(Struct, frozen=True, kw_only=True):
    """Paths that a command may read below, and those it may also write below. `namespaces` says
    that it gets some of its own where they can be had.
    """

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    namespaces: bool = True

    def options(self, *, network: bool) -> dict[str, Any]:
        """The policy as options of `confined_run`."""
        given = {**filter_options(network=network), "readable": self.readable}
        return {**given, "writable": self.writable, **({} if self.namespaces else {"clone": 0})}

    def opens(self, place: Path) -> str | None:
        """The folder that lets commands read a place, if there is one besides the system's."""
        place = place.expanduser().resolve()
        system = [Path(path).resolve() for path in _lists().system]
        folders = {path: Path(path).resolve() for path in (*self.writable, *self.readable)}
        for path, folder in folders.items():
            is_own = path in self.writable or not any(map(folder.is_relative_to, system))
            if is_own and place.is_relative_to(folder):
                return path
        return None


@cache
def why_unconfined() -> str:
    """Why the kernel cannot confine a command; nothing if it can."""
    if not sys.platform.startswith("linux"):
        return "this system is not Linux"
    from journeyman.agent.tools.sandbox import landlock_version  # noqa: PLC0415 - ctypes

    if landlock_version():
        return ""
    return "this kernel has no Landlock (it came with Linux 5.13, and can be switched off)"


OFFLINE = {"npm_config_fetch_retries": "0", "PIP_RETRIES": "0", "CARGO_NET_RETRY": "0"}
"""Without the network, trying again only takes time; npm waits for over a minute."""


def command_environment(
    given: Mapping[str, str], *, home: Path, own_home: Path, temporary: Path
) -> dict[str, str]:
    """The environment of a command, from that of the agent. `home` is the user's, which the
    command does not get; `own_home` the one it gets.
    """
    passed = {name: given[name] for name in _lists().passed if name in given}
    return {
        "PATH": _SEARCH_PATH,
        "LANG": "C.UTF-8",
        **passed,
        **{name: str(folder) for name, folder in toolchains(given, home)},
        "HOME": str(own_home),
        "TMPDIR": str(temporary),
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        # What was printed before a time limit is worth having, and in the order it was printed.
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # Where owners cannot be changed, tar would fail for the superuser.
        **({"TAR_OPTIONS": "--no-same-owner"} if os.geteuid() == 0 else {}),
    }


def policy_for(writable: Iterable[Path], environment: Mapping[str, str], home: Path) -> Policy:
    """What a command may touch that has this environment."""
    readable = [
        *(Path(path) for path in _lists().system),
        *(folder for prefix in (sys.prefix, sys.base_prefix) for folder in _own(prefix, home)),
        Path(__file__).parent,  # the programs that the tools themselves start
        *(
            folder / part
            for variable, folder in toolchains(environment, home)
            for part in _lists().toolchains[variable].parts
        ),
        *(
            folder
            for entry in environment.get("PATH", "").split(":")
            for folder in _beside(Path(entry), home)
        ),
    ]
    return Policy(
        readable=tuple(dict.fromkeys(map(str, readable))),
        writable=tuple(dict.fromkeys((*_lists().devices, *map(str, writable)))),
    )


def toolchains(environment: Mapping[str, str], home: Path) -> list[tuple[str, Path]]:
    """The variables of programs with folders of their own, and the folders that are there."""
    found = []
    for variable, row in _lists().toolchains.items():
        folder = Path(environment.get(variable) or home / row.home)
        if folder.is_absolute() and folder.is_dir() and not _is_wide(folder, home):
            found.append((variable, folder))
    return found


def _own(prefix: str, home: Path) -> list[Path]:
    """The folder of the interpreter that runs the agent, which runs the agent's code too."""
    folder = Path(prefix)
    return _beside(folder / "bin", home) if _is_wide(folder, home) else [folder]


def _beside(folder: Path, home: Path) -> list[Path]:
    """A folder on the search path, with what its programs bring along."""
    if not folder.is_absolute() or _is_wide(folder, home):
        return []
    prefix = folder.parent
    if folder.name not in _PROGRAM_FOLDERS or _is_wide(prefix, home):
        return [folder]
    parts = _BESIDE_SECRETS if prefix.name in _KEEPING_SECRETS else _BESIDE_PROGRAMS
    return [folder, *(prefix / part for part in parts if not _is_wide(prefix / part, home))]


def _is_wide(folder: Path, home: Path) -> bool:
    """Whether a folder holds the home, or is the root, links and dots followed."""
    folder = folder.resolve()
    return folder == Path(folder.anchor) or folder in (home, *home.parents)


class Machine(Struct, frozen=True):
    """A kind of processor: its mark in what the filter is given, and its numbers of calls."""

    mark: int
    calls: dict[str, int]


_CALLS = {
    "": "clone 56 220, socket 41 198, socketpair 53 199",
    # io_uring makes calls past the filter; of clone3 the filter cannot see what it asks for, and
    # who gets this answer takes clone.
    "missing": """
        io_uring_setup 425 425, clone3 435 435, add_key 248 217, request_key 249 218,
        keyctl 250 219""",
    "forbidden": """
        mount 165 40, umount2 166 39, pivot_root 155 41, unshare 272 97, setns 308 268,
        open_tree 428 428, move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432,
        fspick 433 433, mount_setattr 442 442, open_tree_attr 467 467, bpf 321 280,
        userfaultfd 323 282, perf_event_open 298 241""",
}
"""What no command may do, by the answer that it gets: the numbers of the calls on x86_64 and on
aarch64, which lacks some."""
_CALLS_WITHOUT_NAMESPACES = {
    "forbidden": "chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54",
    "unsupported": """
        setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, setxattrat 463 463, removexattr 197 14,
        lremovexattr 198 15, fremovexattr 199 16, removexattrat 466 466""",
    "second": "chmod 90 -, fchmod 91 52",
    "third": "fchmodat 268 53, fchmodat2 452 452",
}
"""What else is taken away where files outside the workspace are not on read-only mounts; of modes,
which are the second or third argument, only some."""


def _rows(table: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Each call of a table: its answer, and its name and numbers."""
    return [(answer, one.split()) for answer, rows in table.items() for one in rows.split(",")]


def _machine(mark: int, column: int) -> Machine:
    rows = [row for _, row in _rows(_CALLS) + _rows(_CALLS_WITHOUT_NAMESPACES)]
    return Machine(mark, {row[0]: int(row[column]) for row in rows if row[column] != "-"})


MACHINES = {"x86_64": _machine(0xC000003E, 1), "aarch64": _machine(0xC00000B7, 2)}

_OTHER_NUMBERS = 0x40000000
"""From here on x86_64 has the numbers of x32, its other way to make calls."""
_INET, _NETLINK, _INET6 = 2, 16, 10
_STREAM, _SEQPACKET, _KIND = 1, 5, 0xF
_NEW_NAMESPACES = 0x7E020000
_SET_ID_BITS = 0o6000

# Where the filter finds things, and what it can do: load, compare, mask, return.
_NUMBER, _MARK, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _FAIL, _NOTIFY, _KILL = 0x7FFF0000, 0x00050000, 0x7FC00000, 0x80000000

Row = tuple[int, str, str, int] | str


def filter_program(machine: Machine, *, network: bool, namespaces: bool) -> bytes:
    """The filter for a machine. Without the network, who asks for it gets a no, and the process
    that holds the filter's listener is told; with it, sockets are for the internet only. Pairs of
    sockets that cannot be turned to a path are always there. Calls in the way of another machine
    (32-bit programs) end the process.
    """
    calls = machine.calls
    denied = _rows(_CALLS) + ([] if namespaces else _rows(_CALLS_WITHOUT_NAMESPACES))
    internet = "allow" if network else "notify"
    rows: list[Row] = [
        (_LOAD, "", "", _MARK),
        (_EQUAL, "", "kill", machine.mark),
        (_LOAD, "", "", _NUMBER),
        (_AT_LEAST, "kill", "", _OTHER_NUMBERS),
        *(
            (_EQUAL, answer, "", calls[name])
            for answer, (name, *_) in denied
            if answer and name in calls
        ),
        (_EQUAL, "clone", "", calls["clone"]),
        (_EQUAL, "pair", "", calls["socketpair"]),
        (_EQUAL, "", "allow", calls["socket"]),
        (_LOAD, "", "", _FIRST),
        (_EQUAL, internet, "", _INET),
        (_EQUAL, internet, "", _INET6),
        (_EQUAL, "allow" if network else "deny", "deny", _NETLINK),
        # A pair of datagram sockets can be connected anew, to any path.
        "pair",
        (_LOAD, "", "", _SECOND),
        (_AND, "", "", _KIND),
        (_EQUAL, "allow", "", _STREAM),
        (_EQUAL, "allow", "deny", _SEQPACKET),
        "clone",
        (_LOAD, "", "", _FIRST),
        (_ANY_BIT, "forbidden", "allow", _NEW_NAMESPACES),
        "second",
        (_LOAD, "", "", _SECOND),
        (_ANY_BIT, "forbidden", "allow", _SET_ID_BITS),
        "third",
        (_LOAD, "", "", _THIRD),
        (_ANY_BIT, "forbidden", "allow", _SET_ID_BITS),
        "deny",
        (_RETURN, "", "", _FAIL | errno.EACCES),
        "forbidden",
        (_RETURN, "", "", _FAIL | errno.EPERM),
        "unsupported",
        (_RETURN, "", "", _FAIL | errno.EOPNOTSUPP),
        "missing",
        (_RETURN, "", "", _FAIL | errno.ENOSYS),
        "notify",
        (_RETURN, "", "", _NOTIFY),
        "allow",
        (_RETURN, "", "", _ALLOW),
        "kill",
        (_RETURN, "", "", _KILL),
    ]
    return _assembled(rows)


def _assembled(rows: list[Row]) -> bytes:
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


@cache
def filter_options(*, network: bool) -> dict[str, Any]:
    """The filters for this machine as options of `confined_run`; none where there is none."""
    machine = MACHINES.get(platform.machine())
    if machine is None or not sys.platform.startswith("linux") or sys.maxsize < 2**32:
        return {}
    filters = [filter_program(machine, network=network, namespaces=one) for one in (True, False)]
    return {"filters": tuple(filters), "clone": machine.calls["clone"]}
