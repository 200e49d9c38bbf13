"""The program that runs one command of the agent: it confines the command with Landlock and a
filter of system calls, waits for it, and leaves none of its processes behind. It is started by its
path for every command, without the rest of the package, so it imports little; what the command may
touch, `confinement` decides.

    python -I -S confined_run.py [f:FILTER] [r:PATH | w:PATH]… -- PROGRAM ARGUMENT…

The filter is in hexadecimal digits. Without a path the command is not confined. Standard input is
no input: when it is closed, the command is ended.
"""

# The module `signal` wraps this one in enums, which would take a third of the time of a start.
import _signal as signal  # type: ignore[import-not-found]
import ctypes
import os
import resource
import select
import struct
import sys
import time

NOT_CONFINED = 125
NOT_STARTED = 127
LARGEST_FILE = 2**30

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVS, _CHILD_SUBREAPER, _DROP_CAPABILITY = 38, 36, 24
_SET_SECCOMP, _BY_FILTER = 22, 2
_STEP_BYTES = 8
_END_S = 4.0
"""How long it may take to end what a command started."""
_LOOK_MS = 20
_BENEATH_A_PATH = 1
_ASK_VERSION = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_ALL_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
"""Every right on files that a version of Landlock knows; later ones add rights on devices, the
network and processes."""
_TRUNCATE = 1 << 14
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_SCOPES = 0b11
"""No abstract sockets of, and no signals to, processes outside."""
_SIGNALS = 0b10
_WITH_SCOPES = 6
_KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 10)
"""What is left to the superuser: owners and modes of files, signals, users, low ports. With more
the environment of other programs could be read, keys in it too."""
_CAPABILITIES = 64


def landlock_version() -> int:
    """The version of Landlock that the kernel has on; 0 for none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def confine(paths: list[str]) -> None:
    """Allow this process and its children these paths and nothing else, for good."""
    libc, version = _libc(), landlock_version()
    handled = _ALL_OF_ABI[max(1, min(version, 3))]
    ruleset = -1
    # A kernel may claim version 6 and not know its scopes.
    plain, scoped = struct.pack("=Q", handled), struct.pack("=QQQ", handled, 0, _SCOPES)
    for asked in (scoped, plain) if version >= _WITH_SCOPES else (plain,):
        ruleset = libc.syscall(_CREATE_RULESET, asked, ctypes.c_size_t(len(asked)), 0)
        if ruleset >= 0:
            break
    _checked(ruleset, "create a Landlock ruleset")
    for path in paths:
        _allow(libc, ruleset, path[2:], _READING if path.startswith("r:") else handled)
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0), "confine the command")
    os.close(ruleset)


def filter_calls(program: bytes) -> None:
    """Have the kernel ask this filter before every system call, for good."""
    steps = ctypes.create_string_buffer(program, len(program))
    given = struct.pack("@HP", len(program) // _STEP_BYTES, ctypes.addressof(steps))
    done = _libc().prctl(_SET_SECCOMP, ctypes.c_ulong(_BY_FILTER), given, 0, 0)
    _checked(done, "filter the calls of the command")


def keep_signals_inside() -> bool:
    """Hold this process's signals to itself and its children; whether that is certain. Then a
    signal to everybody ends all that a command started, and nothing else.
    """
    parent = os.getppid()
    if landlock_version() < _WITH_SCOPES or parent <= 1 or not _reaches(parent):
        return False
    libc = _libc()
    asked = struct.pack("=QQQ", 0, 0, _SIGNALS)
    ruleset = libc.syscall(_CREATE_RULESET, asked, ctypes.c_size_t(len(asked)), 0)
    if ruleset < 0:
        return False
    done = libc.syscall(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    # Seen, not believed: the parent has to be out of reach now.
    return done == 0 and os.getppid() == parent and not _reaches(parent)


def _reaches(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _drop_capabilities() -> None:
    libc = _libc()
    for capability in range(_CAPABILITIES):
        if capability not in _KEPT_CAPABILITIES:
            # It fails for those that have none to drop, and for numbers that mean none.
            libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no rule
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib takes long to load
            rights &= _ON_FILES
        rule = struct.pack("=Qi", rights, opened)
        done = libc.syscall(_ADD_RULE, ruleset, _BENEATH_A_PATH, rule, 0)
        _checked(done, f"allow {path}")
    finally:
        os.close(opened)


def _checked(answer: int, what: str) -> None:
    if answer < 0:
        raise OSError(ctypes.get_errno(), f"The kernel refused to {what}")


def _become(options: list[str], command: list[str]) -> None:
    """Turn this process into the command. Returns never."""
    paths = [option for option in options if not option.startswith("f:")]
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # Python ignores these, and a program it starts would do so too.
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        if most == resource.RLIM_INFINITY or most > LARGEST_FILE:
            resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
        if sys.platform.startswith("linux"):
            _prefer_when_memory_runs_out()
            _give_up_privileges()
        if paths:
            _drop_capabilities()
            confine(paths)
            for option in options:
                if option.startswith("f:"):
                    filter_calls(bytes.fromhex(option[2:]))
    except OSError as error:
        os.write(2, f"The command was not run: {error.strerror}.\n".encode())
        os._exit(NOT_CONFINED)
    try:
        os.execve(command[0], command, os.environ)  # noqa: S606 - running it is what this is for
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(NOT_STARTED)


def _give_up_privileges() -> None:
    _checked(_libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "give up further privileges")


def _prefer_when_memory_runs_out() -> None:
    """Let the kernel end the command before it ends the agent."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
            score.write("1000")
    except OSError:
        pass  # only a preference


def _wait(child: int) -> None:
    """Wait until the command has ended or is no longer wanted."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    try:  # noqa: SIM105 - contextlib takes long to load
        poll.register(os.pidfd_open(child), select.POLLIN)
    except (AttributeError, OSError):
        pass  # a system without: its end is seen a little later
    while not poll.poll(_LOOK_MS):
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return
        # Left unattended, orphans that have ended would use up the numbers for processes.
        for orphan in _children():
            if orphan != child:
                _take_leave(orphan)


def _take_leave(process: int) -> None:
    try:
        os.waitpid(process, os.WNOHANG)
    except ChildProcessError:
        return


def _end(child: int, *, signals_inside: bool) -> int:
    """End the command and all it started; the exit code as a shell gives it."""
    _kill(-child)
    _kill(child)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # What left the group comes here when its parent ends, because this process adopts orphans.
    deadline = time.monotonic() + _END_S
    while _reap() and time.monotonic() < deadline:
        if signals_inside:
            _kill(-1)  # at once, so that none can fork faster than it is found
        for orphan in _children():
            _kill(orphan)
        time.sleep(0.0002)
    return code if code >= 0 else 128 - code


def _reap() -> bool:
    """Take leave of the children that have ended; whether there are others."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        return  # it is gone


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as listed:  # noqa: PTH123
            return [int(pid) for pid in listed.read().split()]
    except OSError:
        return []  # a system that does not tell


def main(arguments: list[str]) -> int:
    """Run the command of these arguments to its end; its exit code."""
    at = arguments.index("--")
    signals_inside = False
    if sys.platform.startswith("linux"):
        _libc().prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
        if at:  # what is not confined may send signals to others
            _give_up_privileges()
            signals_inside = keep_signals_inside()
    child = os.fork()
    if child == 0:
        _become(arguments[:at], arguments[at + 1 :])
    _wait(child)
    return _end(child, signals_inside=signals_inside)


if __name__ == "__main__":
    # Nothing is left to tidy up, and an orderly end of Python takes its time.
    os._exit(main(sys.argv[1:]))
