"""What the agent's commands may access. They write below the workspace and their own temporary
folder, read programs and the system but not the user's home, and have no secrets in their
environment. Where the kernel supports it (`why_unconfined`), Landlock confines file access, a
filter of system calls the network, and namespaces, where available, everything else.
`confined_process` applies them; `confinement.toml` lists what is accessible.
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
_PROGRAM_COMPANIONS = (
    *("lib", "lib64", "libexec", "include", "share", "pyvenv.cfg"),
    *("conda-meta", "condabin", "ssl/cert.pem"),
)
"""What programs need besides their own folder, relative to its parent."""
_FOLDERS_WITH_SECRETS = (".local", ".cargo", ".docker", ".config")
_COMPANIONS_WITHOUT_SECRETS = ("lib", "share/pipx", "share/uv")
"""The same for folders where `share` also holds keys of other programs."""


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
    lists = msgspec.convert(tomllib.loads(text), _Lists)
    etc = (f"/etc/{name}" for name in lists.etc)
    return msgspec.structs.replace(lists, system=(*lists.system, *etc))


class ConfinementPolicy(Struct, frozen=True, kw_only=True):
    """The paths below which a command may read, and those below which it may also write.
    `namespaces` isolates it in its own namespaces where available.
    """

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    namespaces: bool = True

    def options(self, *, network: bool) -> dict[str, Any]:
        """The policy as options of `confined_process`."""
        options = {**filter_options(network=network), "readable": self.readable}
        return {**options, "writable": self.writable, **({} if self.namespaces else {"clone": 0})}

    def exposing_folder(self, place: Path) -> str | None:
        """The folder that lets commands read a path, if there is one apart from the system's."""
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
    """Return why the kernel cannot confine a command, or an empty text if it can."""
    if not sys.platform.startswith("linux"):
        return "this system is not Linux"
    from journeyman.agent.tools.sandbox import landlock_version  # noqa: PLC0415 - ctypes

    if landlock_version():
        return ""
    return "this kernel has no Landlock (available since Linux 5.13, and can be disabled)"


OFFLINE = {"npm_config_fetch_retries": "0", "PIP_RETRIES": "0", "CARGO_NET_RETRY": "0"}
"""Without the network, retries only take time; npm waits for over a minute."""


def command_environment(
    inherited: Mapping[str, str], *, home: Path, own_home: Path, temporary: Path
) -> dict[str, str]:
    """Return the environment of a command, derived from that of the agent. `own_home` replaces the
    user's `home`.
    """
    passed = {name: inherited[name] for name in _lists().passed if name in inherited}
    return {
        "PATH": _SEARCH_PATH,
        "LANG": "C.UTF-8",
        **passed,
        **{name: str(folder) for name, folder in toolchains(inherited, home)},
        "HOME": str(own_home),
        "TMPDIR": str(temporary),
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        # Output before a time limit is useful, and must be in order.
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # Owners cannot be changed, so tar would fail for the superuser.
        **({"TAR_OPTIONS": "--no-same-owner"} if os.geteuid() == 0 else {}),
    }


def policy_for(
    writable: Iterable[Path], environment: Mapping[str, str], home: Path
) -> ConfinementPolicy:
    """Return what a command with this environment may access."""
    readable = [
        *(Path(path) for path in _lists().system),
        *(
            folder
            for prefix in (sys.prefix, sys.base_prefix)
            for folder in _interpreter_folders(prefix, home)
        ),
        Path(__file__).parent,  # the programs that the tools themselves start
        *(
            folder / part
            for variable, folder in toolchains(environment, home)
            for part in _lists().toolchains[variable].parts
        ),
        *(
            folder
            for entry in environment.get("PATH", "").split(":")
            for folder in _program_folders(Path(entry), home)
        ),
    ]
    return ConfinementPolicy(
        readable=tuple(dict.fromkeys(map(str, readable))),
        writable=tuple(dict.fromkeys((*_lists().devices, *map(str, writable)))),
    )


def toolchains(environment: Mapping[str, str], home: Path) -> list[tuple[str, Path]]:
    """The variables that name the folders of toolchains, with those folders that exist."""
    existing = []
    for variable, row in _lists().toolchains.items():
        folder = Path(environment.get(variable) or home / row.home)
        if folder.is_absolute() and folder.is_dir() and not _contains_home(folder, home):
            existing.append((variable, folder))
    return existing


def _interpreter_folders(prefix: str, home: Path) -> list[Path]:
    """The folders of the interpreter that runs the agent and its scripts."""
    folder = Path(prefix)
    return _program_folders(folder / "bin", home) if _contains_home(folder, home) else [folder]


def _program_folders(folder: Path, home: Path) -> list[Path]:
    """A folder on the search path, and what its programs need besides it."""
    if not folder.is_absolute() or _contains_home(folder, home):
        return []
    prefix = folder.parent
    if folder.name not in _PROGRAM_FOLDERS or _contains_home(prefix, home):
        return [folder]
    parts = (
        _COMPANIONS_WITHOUT_SECRETS if prefix.name in _FOLDERS_WITH_SECRETS else _PROGRAM_COMPANIONS
    )
    return [folder, *(prefix / part for part in parts if not _contains_home(prefix / part, home))]


def _contains_home(folder: Path, home: Path) -> bool:
    """Whether a folder is the root or contains the home, once resolved."""
    folder = folder.resolve()
    return folder == Path(folder.anchor) or folder in (home, *home.parents)


class Architecture(Struct, frozen=True):
    """A processor architecture: its id in the filter's input, and its system call numbers."""

    audit_id: int
    calls: dict[str, int]


_CALLS = {
    "": "clone 56 220, socket 41 198, socketpair 53 199",
    # io_uring bypasses the filter. The filter cannot see the arguments of clone3; programs that get
    # this answer use clone instead.
    "missing": """
        io_uring_setup 425 425, clone3 435 435, add_key 248 217, request_key 249 218,
        keyctl 250 219""",
    "forbidden": """
        mount 165 40, umount2 166 39, pivot_root 155 41, unshare 272 97, setns 308 268,
        open_tree 428 428, move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432,
        fspick 433 433, mount_setattr 442 442, open_tree_attr 467 467, bpf 321 280,
        userfaultfd 323 282, perf_event_open 298 241""",
}
"""System calls that no command may make, by the answer: their numbers on x86_64 and on aarch64,
which lacks some."""
_CALLS_WITHOUT_NAMESPACES = {
    "forbidden": "chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54",
    "unsupported": """
        setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, setxattrat 463 463, removexattr 197 14,
        lremovexattr 198 15, fremovexattr 199 16, removexattrat 466 466""",
    "second": "chmod 90 -, fchmod 91 52",
    "third": "fchmodat 268 53, fchmodat2 452 452",
}
"""Calls that are also denied where files outside the workspace are not on read-only mounts. Of
modes, the second or third argument, only some are denied."""


def _rows(table: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Each call in a table: its answer, and its name and numbers."""
    return [(answer, row.split()) for answer, rows in table.items() for row in rows.split(",")]


def _architecture(audit_id: int, column: int) -> Architecture:
    rows = [row for _, row in _rows(_CALLS) + _rows(_CALLS_WITHOUT_NAMESPACES)]
    return Architecture(audit_id, {row[0]: int(row[column]) for row in rows if row[column] != "-"})


ARCHITECTURES = {
    "x86_64": _architecture(0xC000003E, 1),
    "aarch64": _architecture(0xC00000B7, 2),
}

_FIRST_X32_NUMBER = 0x40000000
"""From here on, x86_64 has the call numbers of its x32 interface."""
_INET, _NETLINK, _INET6 = 2, 16, 10
_STREAM, _SEQPACKET, _KIND = 1, 5, 0xF
_NEW_NAMESPACES = 0x7E020000
_SET_ID_BITS = 0o6000

# Offsets in the filter's input, and its instructions: load, compare, mask, return.
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000

Instruction = tuple[int, str, str, int] | str
"""An instruction with the labels to jump to if it holds or not, and its value; or a label."""


def filter_program(architecture: Architecture, *, network: bool, namespaces: bool) -> bytes:
    """Return the filter for an architecture. Without the network, internet sockets are denied; with
    it, only internet sockets are allowed. Socket pairs that cannot be connected to a path are
    always allowed. Calls in the format of another architecture (32-bit programs) end the process.
    """
    calls = architecture.calls
    denied = _rows(_CALLS) + ([] if namespaces else _rows(_CALLS_WITHOUT_NAMESPACES))
    internet = "allow" if network else "deny"
    instructions: list[Instruction] = [
        (_LOAD, "", "", _ARCHITECTURE),
        (_EQUAL, "", "kill", architecture.audit_id),
        (_LOAD, "", "", _NUMBER),
        (_AT_LEAST, "kill", "", _FIRST_X32_NUMBER),
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
        (_EQUAL, internet, "deny", _NETLINK),
        # A pair of datagram sockets can be reconnected, to any path.
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
        "allow",
        (_RETURN, "", "", _ALLOW),
        "kill",
        (_RETURN, "", "", _KILL),
    ]
    return _assemble(instructions)


def _assemble(instructions: list[Instruction]) -> bytes:
    steps: list[tuple[int, str, str, int]] = []
    labels: dict[str, int] = {}
    for instruction in instructions:
        if isinstance(instruction, str):
            labels[instruction] = len(steps)
        else:
            steps.append(instruction)
    program = b""
    for at, (code, yes, no, value) in enumerate(steps):
        jumps = (labels[label] - at - 1 if label else 0 for label in (yes, no))
        program += struct.pack("=HBBI", code, *jumps, value)
    return program


@cache
def filter_options(*, network: bool) -> dict[str, Any]:
    """The filters for this machine as options of `confined_process`; empty if unsupported."""
    architecture = ARCHITECTURES.get(platform.machine())
    if architecture is None or not sys.platform.startswith("linux") or sys.maxsize < 2**32:
        return {}
    filters = [
        filter_program(architecture, network=network, namespaces=namespaces)
        for namespaces in (True, False)
    ]
    return {"filters": tuple(filters), "clone": architecture.calls["clone"]}
