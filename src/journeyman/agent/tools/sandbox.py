"""The kernel features that confine a command: Landlock for files, a filter of system calls, and
namespaces. They are irrevocable for this process and its children. Like `confined_process`, which
uses it, this module imports little.
"""

# The module `signal` wraps this one in enums, which would take a third of the start-up time.
import _signal as signal  # type: ignore[import-not-found]
import ctypes
import os
import struct
import sys

IS_LINUX = sys.platform.startswith("linux")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - no file is created there
TEMPORARY = "/tmp"  # noqa: S108 - the default location; a command gets a private one

_PARENT_DEATH_SIGNAL, _DUMPABLE, _DROP_CAPABILITY = 1, 4, 24
_CHILD_SUBREAPER, _NO_NEW_PRIVS = 36, 38
_KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 10)
"""What the superuser keeps: owners and modes of files, signals, users, low ports. With more, it
could read the environment of other programs, including keys."""
_CAPABILITIES = 64

_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_FILTER, _STEP_BYTES = 1, 8

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_BENEATH_A_PATH, _ASK_VERSION = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MOVE, _TRUNCATE = 1 << 13, 1 << 14
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_ALL_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
"""Every right on files in a version of Landlock; later versions add rights on devices, the network
and processes."""
_SCOPES = 0b11
"""Denies abstract sockets of, and signals to, outside processes."""
_WITH_SCOPES = 6

_NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x10000000 | 0x20000000
"""Namespaces of mounts, of shared memory and queues, of users, and of processes."""
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_HERE, _RECURSIVE, _CLONED, _BY_DESCRIPTOR = -100, 0x8000, 1 | 0o2000000, 4
_READ_ONLY, _PRIVATE = 1, 1 << 18
_NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 2, 4, 8
_IS_FOLDER = 0o040000
_OWN_PID_MAX = (6, 14)
"""Since this version of Linux, each namespace has its own highest process number."""

libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """The version of Landlock that is active in the kernel; 0 for none."""
    return max(0, int(libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))) if IS_LINUX else 0


def give_up_privileges() -> None:
    """Prevent programs from gaining more rights than this process has, and have the kernel end this
    process before the agent if memory runs out.
    """
    try:  # noqa: SIM105 - contextlib is slow to load
        write("/proc/self/oom_score_adj", "1000")
    except OSError:
        pass  # only a preference
    _checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "give up further privileges")


def confine(readable: tuple[str, ...], writable: tuple[str, ...], program: bytes) -> None:
    """Allow only these paths, drop all but a few capabilities of the superuser, and apply this
    filter of system calls, unless it is empty.
    """
    for capability in range(_CAPABILITIES):
        if capability not in _KEPT_CAPABILITIES:
            # This fails without the capability, and for unused numbers.
            libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)
    version = landlock_version()
    handled = _ALL_OF_ABI[max(1, min(version, 3))]
    ruleset = _create_ruleset(handled, _SCOPES) if version >= _WITH_SCOPES else -1
    if ruleset < 0:  # a kernel may report version 6 and lack its scopes
        ruleset = _create_ruleset(handled)
    _checked(ruleset, "create a Landlock ruleset")
    for paths, rights in ((readable, _READING), (writable, handled)):
        for path in paths:
            _allow(ruleset, path, rights)
    _syscall("confine the command", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    if program:
        buffer = ctypes.create_string_buffer(program, len(program))
        steps = struct.pack("@HP", len(program) // _STEP_BYTES, ctypes.addressof(buffer))
        number = _SECCOMP[os.uname().machine]
        _syscall("filter the calls of the command", number, _SET_FILTER, 0, steps)
    libc.prctl(_DUMPABLE, 0, 0, 0, 0)  # no other process may inspect this one


def _create_ruleset(handled: int, scopes: int = 0) -> int:
    attributes = struct.pack("=QQQ", handled, 0, scopes)[: 24 if scopes else 8]
    return int(libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing path needs no rule
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib is slow to load
            rights &= _ON_FILES
        rule = struct.pack("=Qi", rights, opened)
        _syscall(f"allow {path}", _ADD_RULE, ruleset, _BENEATH_A_PATH, rule, 0)
    finally:
        os.close(opened)


def isolate_from_parent() -> None:
    """Prevent this process from ending or inspecting its parent, although both are confined in the
    same way. This has no effect on kernels that do not support it.
    """
    # A ruleset that does not handle moves between folders denies them all.
    ruleset = _create_ruleset(_MOVE, _SCOPES)
    if ruleset >= 0:
        _allow(ruleset, "/", _MOVE)
        libc.syscall(_RESTRICT_SELF, ruleset, 0)
        os.close(ruleset)


def adopt_orphans() -> None:
    """Become the parent of descendants that lose theirs."""
    libc.prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)


def fork_into_namespaces(
    clone: int, folders: list[str], readable: tuple[str, ...], shared: int, tasks: int
) -> int:
    """Fork a child that sees only its own processes, and for which everything but these folders is
    read-only, including modes, owners and times of files. Its private temporary folder is at the
    default location and includes what is `readable` there. Return what `fork` returns, or -1 if the
    kernel does not support this. `shared` is the child's shared memory in bytes, `tasks` its
    highest process number.
    """
    mapped_in, mapped_out = os.pipe()
    ready_in, ready_out = os.pipe()
    child = int(libc.syscall(clone, _NEW_NAMESPACES | signal.SIGCHLD, 0, 0, 0, 0))
    if child == 0:
        try:
            libc.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
            os.close(mapped_out)
            if not os.read(mapped_in, 1):
                os._exit(1)
            _mount(folders, readable, shared, tasks)
            os.write(ready_out, b"y")
        except OSError:
            os._exit(1)
    elif child > 0 and _map_users(child):
        os.write(mapped_out, b"y")
    if child:
        os.close(mapped_out)
    os.close(ready_out)
    os.close(mapped_in)
    if child > 0 and not os.read(ready_in, 1):
        os.waitpid(child, 0)
        child = -1
    os.close(ready_in)
    return child


def _map_users(process: int) -> bool:
    """Map every user to itself, or without the right to do that only the current user."""
    for kind, own in (("gid", os.getegid()), ("uid", os.geteuid())):
        maps = [f"{own} {own} 1"]
        if os.geteuid() == 0:
            rows = [line.split() for line in read(f"/proc/self/{kind}_map").decode().splitlines()]
            maps.insert(0, "\n".join(f"{first} {first} {count}" for first, _, count in rows))
        for text in maps:
            try:
                if text is maps[-1] and kind == "gid":
                    write(f"/proc/{process}/setgroups", "deny")
                write(f"/proc/{process}/{kind}_map", text)
                break
            except OSError:
                continue
        else:
            return False
    return True


def _mount(folders: list[str], readable: tuple[str, ...], shared: int, tasks: int) -> None:
    here = os.getcwd()  # noqa: PTH109 - pathlib is slow to load
    trees = {path: _open_tree(path) for path in folders}
    own = os.environ.get("TMPDIR", "")
    temporary = _open_tree(own) if own and TEMPORARY not in folders else -1
    attributes = struct.pack("=QQQQ", _READ_ONLY, 0, _PRIVATE, 0)
    size, all_ = ctypes.c_size_t(len(attributes)), (_HERE, b"/", _RECURSIVE)
    _syscall("make mounts read-only", _MOUNT_SETATTR, *all_, attributes, size)
    if temporary >= 0:
        # Mount again what this hides and the command needs.
        below = (path for path in readable if path.startswith(f"{TEMPORARY}/"))
        trees = {path: _open_tree(path) for path in below if os.path.exists(path)} | trees  # noqa: PTH110
        _mount_tree(temporary, TEMPORARY)
    for path, tree in trees.items():
        if temporary >= 0 and path.startswith(f"{TEMPORARY}/"):
            _make_mount_point(path, is_folder=bool(os.fstat(tree).st_mode & _IS_FOLDER))
        _mount_tree(tree, path)
    plain = _NO_SUID | _NO_DEVICES
    _checked(libc.mount(b"proc", b"/proc", b"proc", plain | _NO_PROGRAMS, None), "mount /proc")
    if tuple(int(part) for part in os.uname().release.split(".")[:2]) >= _OWN_PID_MAX:
        # On an older kernel, this would change it for the whole machine.
        write("/proc/sys/kernel/pid_max", str(tasks))
    if os.path.isdir(SHARED_MEMORY):  # noqa: PTH112
        options, place = f"size={shared},mode=1777".encode(), SHARED_MEMORY.encode()
        _checked(libc.mount(b"tmpfs", place, b"tmpfs", plain, options), "mount shared memory")
    os.chdir(here)


def _open_tree(path: str) -> int:
    """Open a copy of what is mounted at a path and below; the copy is not mounted anywhere yet."""
    return _syscall(f"keep {path}", _OPEN_TREE, _HERE, os.fsencode(path), _CLONED | _RECURSIVE)


def _make_mount_point(path: str, *, is_folder: bool) -> None:
    os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    if not is_folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def _mount_tree(tree: int, path: str) -> None:
    to = (_HERE, os.fsencode(path), _BY_DESCRIPTOR)
    _syscall(f"mount {path}", _MOVE_MOUNT, tree, b"", *to)
    os.close(tree)


def _syscall(what: str, *call: object) -> int:
    return _checked(libc.syscall(*call), what)


def _checked(answer: int, what: str) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), f"The kernel refused to {what}")
    return answer


def read(path: str) -> bytes:
    """Return the contents of a small file, or nothing if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - pathlib is slow to load
            return file.read()
    except OSError:
        return b""


def write(path: str, text: str) -> None:
    """Write to a file of the kernel."""
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)
