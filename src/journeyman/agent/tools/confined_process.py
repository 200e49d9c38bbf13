"""The program that starts one confined command. Python reads it from standard input, without the
rest of the package. It limits resources and privileges; outside bubblewrap it also confines the
command, with namespaces and a file system of its own.
"""

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

_PARENT_DEATH_SIGNAL, _DROP_CAPABILITY, _NO_NEW_PRIVS = 1, 24, 38
_KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 10)
"""What the superuser keeps: owners and modes of files, signals, users, low ports."""
_CAPABILITIES, _CAPABILITY_VERSION = 64, 0x20080522
_OWN_PID_MAX, _RESERVED_PIDS = (6, 14), 300
"""Since this version of Linux, each process namespace has a highest process number of its own."""

_MOUNTS, _HOST_NAME, _QUEUES = 0x00020000, 0x04000000, 0x08000000
_USERS, _PROCESSES, _NETWORK = 0x10000000, 0x20000000, 0x40000000
_NO_SUID, _NO_DEVICES, _BIND, _PRIVATE, _DETACHED = 2, 4, 0x5000, 0x44000, 2
_MOUNT_SETATTR, _READ_ONLY, _HERE, _RECURSIVE = 442, 1, -100, 0x8000
_SET_INTERFACE, _IS_UP = 0x8914, 1
_CREATE_RULESET, _RESTRICT_SELF, _ABSTRACT_SOCKETS = 444, 446, 1
_KEYCTL, _NEW_SESSION_KEYRING = {"x86_64": 250, "aarch64": 219}, 1

_libc = ctypes.CDLL(None, use_errno=True)


def main(options: Mapping[str, Any]) -> None:
    """Run the command in the arguments and exit with its code. `options` are its `limits` by the
    kernel's names and, outside bubblewrap, its `folder`, whether it has the `network`, and all that
    is in its file system: `mounts` (source, path, whether writable) and `links`.
    """
    code = 125  # as of other programs that start a command
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        with suppress(OSError):
            # If memory runs out, the kernel ends this process before the agent.
            Path("/proc/self/oom_score_adj").write_text("1000")
        if "mounts" in options:
            code = _run_in_namespaces(options)
        else:
            _become_command(options["limits"])
    except OSError as error:
        os.write(2, f"The command was not run: {error.strerror}.\n".encode())
    finally:
        os._exit(code)  # a regular exit of Python is slow


def _become_command(limits: Mapping[str, int]) -> NoReturn:
    """Replace this process by the command, within limits and without privileges."""
    if os.geteuid() == 0:
        _limit_process_numbers(limits["nproc"])
        # The superuser may write to /proc/sys without any capability.
        _make_read_only("/proc", _RECURSIVE)
        _drop_capabilities()
    _check("give up privileges", _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _close_abstract_sockets()
    if number := _KEYCTL.get(os.uname().machine):
        _libc.syscall(number, _NEW_SESSION_KEYRING, None)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, most in limits.items():
        kind = getattr(resource, f"RLIMIT_{name.upper()}")
        inherited = resource.getrlimit(kind)[1]
        if inherited == resource.RLIM_INFINITY or most < inherited:
            # At the lower limit on processor time, the kernel says why it ends a process.
            resource.setrlimit(kind, (most, most + (name == "cpu")))
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and therefore by its children
        signal.signal(ignored, signal.SIG_DFL)
    os.execve(sys.argv[1], sys.argv[1:], os.environ)  # noqa: S606 - running commands is its purpose


def _wait(child: int) -> int:
    """Wait for a child while reaping others; return its exit code by shell conventions."""
    ended = status = 0
    while ended != child:
        ended, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _run_in_namespaces(options: Mapping[str, Any]) -> int:
    """Run a command in new namespaces. All its processes end with the first of them."""
    _libc.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    user, group = os.geteuid(), os.getegid()
    network = 0 if options["network"] else _NETWORK
    users = _USERS if user else 0
    namespaces = _MOUNTS | _HOST_NAME | _QUEUES | _PROCESSES | network | users
    _check("create namespaces", _libc.unshare(namespaces))
    if users:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    first = os.fork()
    if first:
        return _wait(first)
    _libc.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if network:
        this_machine = struct.pack("=16sH14x", b"lo", _IS_UP)
        _libc.ioctl(_libc.socket(2, 2 | os.O_CLOEXEC, 0), _SET_INTERFACE, this_machine)
    _enter_root(options["mounts"], options["links"])
    os.chdir(options["folder"])
    child = os.fork()
    if child == 0:
        os.setsid()  # it must not signal the group of this process
        _become_command(options["limits"])
    return _wait(child)


def _enter_root(mounts: Sequence[tuple[str, str, bool]], links: Mapping[str, str]) -> None:
    """Change to a file system that has only these mounts and links, and processes."""
    _check("make mounts private", _libc.mount(None, b"/", None, _PRIVATE, None))
    _mount("tmpfs", "/tmp")  # noqa: S108 - any folder will do
    Path("/tmp/old").mkdir()  # noqa: S108
    _check("change the root", _libc.pivot_root(b"/tmp", b"/tmp/old"))
    for kind, path in (("proc", "/proc"), ("tmpfs", "/dev/shm")):  # noqa: S108
        Path(path).mkdir(parents=True)
        _mount(kind, path)
    for source, path, is_writable in mounts:
        old, place = Path(f"/old{source}"), Path(path)
        (place if old.is_dir() else place.parent).mkdir(parents=True, exist_ok=True)
        if not place.exists():
            place.touch()
        bound = _libc.mount(os.fsencode(old), os.fsencode(place), None, _BIND, None)
        _check(f"mount {path}", bound)
        if not is_writable:
            _make_read_only(path, _RECURSIVE)
    for path, target in links.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).symlink_to(target)
    _check("leave the old root", _libc.umount2(b"/old", _DETACHED))
    Path("/old").rmdir()
    _make_read_only("/", 0)


def _mount(kind: str, path: str) -> None:
    name, flags = kind.encode(), _NO_SUID | _NO_DEVICES
    _check(f"mount {path}", _libc.mount(name, path.encode(), name, flags, None))


def _make_read_only(path: str, flags: int) -> None:
    attributes = struct.pack("=QQQQ", _READ_ONLY, 0, 0, 0)
    call = (_MOUNT_SETATTR, _HERE, os.fsencode(path), flags, attributes)
    _check(f"make {path} read-only", _libc.syscall(*call, ctypes.c_size_t(len(attributes))))


def _limit_process_numbers(most: int) -> None:
    """Limit the processes of this namespace, because RLIMIT_NPROC does not hold the superuser. On
    an older kernel, this would change the whole machine.
    """
    if tuple(int(part) for part in os.uname().release.split(".")[:2]) >= _OWN_PID_MAX:
        _mount("proc", "/proc")  # the one of bubblewrap may be read-only
        Path("/proc/sys/kernel/pid_max").write_text(str(most + _RESERVED_PIDS))
        _libc.umount2(b"/proc", 0)


def _drop_capabilities() -> None:
    for capability in set(range(_CAPABILITIES)).difference(_KEPT_CAPABILITIES):
        _libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)  # fails for unused numbers
    kept = sum(1 << capability for capability in _KEPT_CAPABILITIES)
    effective_permitted_inherited = struct.pack("=6I", kept, kept, 0, 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    _check("drop capabilities", _libc.capset(header, effective_permitted_inherited))


def _close_abstract_sockets() -> None:
    """Have Landlock deny sockets of other programs that have no path. A network namespace does the
    same, but a command may share the network. Before Linux 6.12 this has no effect.
    """
    attributes = struct.pack("=QQQ", 0, 0, _ABSTRACT_SOCKETS)
    size = ctypes.c_size_t(len(attributes))
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, size, 0)
    if ruleset >= 0:
        _check("restrict sockets", _libc.syscall(_RESTRICT_SELF, ruleset, 0))
        os.close(ruleset)


def _check(what: str, answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"the kernel refused to {what} ({os.strerror(code)})")
    return answer
