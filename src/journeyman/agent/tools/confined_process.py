"""The program that runs one command of the agent: it confines the command, monitors its resources,
and leaves none of its processes behind. It is started for every command, without the rest of the
package, so it imports little. Its arguments are the command; its `LaunchOptions` arrive on standard
input. When that is closed, the command is ended.
"""

import _signal as signal  # type: ignore[import-not-found]
import marshal
import os
import resource
import select
import sys
import time

from journeyman.agent.tools import sandbox

NOT_CONFINED = 125
NOT_STARTED = 127

_END_S = 4.0
"""How long ending the processes of a command may take."""
_BACKSTOP = 2
"""The kernel's own limits on memory and time are this many times the monitored ones, because the
kernel does not report when they are reached."""
_TASKS, _FEWEST_TASKS = 4, 1_000
"""The same for processes, where the kernel also counts threads."""
_SHARED_PART = 4
"""The memory limit divided by this number is the limit on shared memory."""
_OWN_NICENESS = -15
"""The niceness of this process, where permitted: the monitor must not wait for the command."""
_CHECK_S, _CHECK_SHARE = 0.1, 20
"""How often to check the used resources; less often where a check takes long."""
_UNLIMITED = 2**62


class LaunchOptions:
    """The paths that the command may read, and those that it may also write; without any, it is not
    confined. `filters` are the system call filters with and without namespaces, `clone` is the
    number of the call that creates namespaces, and `report` a pipe for words that report what
    happened.
    """

    def __init__(
        self,
        *,
        report: int,
        limits: dict[str, int],
        readable: tuple[str, ...] = (),
        writable: tuple[str, ...] = (),
        filters: tuple[bytes, bytes] = (b"", b""),
        clone: int = 0,
    ) -> None:
        self.report, self.limits, self.readable, self.writable = report, limits, readable, writable
        self.filters, self.clone = filters, clone
        self.confined = bool(readable or writable)
        self.niceness = os.getpriority(os.PRIO_PROCESS, 0)
        own = (path for path in writable if path != sandbox.SHARED_MEMORY)
        self.folders = [path for path in own if os.path.isdir(path)]  # noqa: PTH112

    def notify(self, word: str) -> None:
        """Write a word to the pipe."""
        os.write(self.report, f"{word}\n".encode())


def run() -> None:
    """Run the command in the arguments, and exit with its code."""
    code = NOT_CONFINED
    try:
        with open(0, "rb", closefd=False) as file:
            options = LaunchOptions(**marshal.load(file))  # noqa: S302 - it comes from the agent
        code = _run(options, sys.argv[1:])
    finally:
        # Nothing is left to clean up, and a regular exit of Python is slow.
        os._exit(code)


def _run(options: LaunchOptions, command: list[str]) -> int:
    """Run a command to completion, in namespaces where available, and return its exit code."""
    os.set_inheritable(options.report, False)  # noqa: FBT003
    try:  # noqa: SIM105 - contextlib is slow to load
        os.setpriority(os.PRIO_PROCESS, 0, min(_OWN_NICENESS, options.niceness))
    except OSError:
        pass  # only the superuser may
    if sandbox.IS_LINUX:
        sandbox.adopt_orphans()
        if options.confined and options.clone:
            shared = options.limits.get("memory", 2**32) // _SHARED_PART
            tasks = max(options.limits.get("processes", 0) * _TASKS, _FEWEST_TASKS)
            child = sandbox.fork_into_namespaces(
                options.clone, options.folders, options.readable, shared, tasks
            )
            if child == 0:
                options.notify("namespaces")
                options.writable += (sandbox.TEMPORARY,)  # a private one by now
                return _supervise(options, command, has_namespaces=True)
            if child > 0:
                return _exit_code(os.waitpid(child, 0)[1])
    return _supervise(options, command, has_namespaces=False)


def _supervise(options: LaunchOptions, command: list[str], *, has_namespaces: bool) -> int:
    """Run the command as a child of this process, which is confined in the same way, and return its
    exit code.
    """
    parent, program = os.getppid(), options.filters[not has_namespaces]
    try:
        if sandbox.IS_LINUX:
            sandbox.give_up_privileges()
        if options.confined:
            sandbox.confine(options.readable, options.writable, program)
    except OSError as error:
        os.write(2, f"The command was not run: {error.strerror}.\n".encode())
        return NOT_CONFINED
    child = os.fork()
    if child == 0:
        os.close(options.report)
        if options.confined:
            sandbox.isolate_from_parent()
        _become(options, command)
    status = _wait(child, options)
    if status is None:
        _kill(-child)
        _kill(child)
        status = os.waitpid(child, 0)[1]
    if not has_namespaces:
        # Without confinement, a signal to all processes would reach the whole machine.
        can_signal_all = options.confined and parent > 1 and not _kill(parent, 0)
        _end_others(child, signals_all=can_signal_all)
    # Otherwise the kernel ends the rest with this process, the first of its namespace.
    return _exit_code(status)


def _become(options: LaunchOptions, command: list[str]) -> None:
    """Replace this process by the command. Never returns."""
    os.setsid()
    os.setpriority(os.PRIO_PROCESS, 0, options.niceness)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # Python ignores these signals, and its child processes would inherit that.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The kernel counts all threads of the user, at most as many as the machine has.
    tasks = int((sandbox.read("/proc/loadavg").split() or [b"/10000"] * 4)[3].split(b"/")[1])
    for kind, name, times, others in (
        (resource.RLIMIT_FSIZE, "file", 1, 0),
        (resource.RLIMIT_DATA, "memory", _BACKSTOP, 0),
        (resource.RLIMIT_CPU, "cpu", _BACKSTOP, 0),
        (resource.RLIMIT_NPROC, "processes", _TASKS, tasks),
    ):
        if name in options.limits:
            value, (_, most) = others + options.limits[name] * times, resource.getrlimit(kind)
            value = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.setrlimit(kind, (value, value))
    try:
        os.execve(command[0], command, os.environ)  # noqa: S606 - running commands is its purpose
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(NOT_STARTED)


def _wait(child: int, options: LaunchOptions) -> int | None:
    """Wait for the command and return its status, or None if it must be ended because it was
    cancelled or exceeded a limit, which is reported.
    """
    poll = select.poll()
    poll.register(0, select.POLLIN)
    wait_s, next_check = _CHECK_S, time.monotonic() + _CHECK_S
    try:
        poll.register(os.pidfd_open(child), select.POLLIN)
    except (AttributeError, OSError):
        wait_s = 0.02  # unsupported here: the end is noticed a little later
    while True:
        left = min(next_check - time.monotonic(), wait_s)
        ready = dict(poll.poll(max(1, int(left * 1000))))
        if 0 in ready:
            return None
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() < next_check:
            continue
        # Unless they are reaped, ended orphans would use up the process numbers.
        for orphan in _children():
            if orphan != child:
                _reap(orphan)
        started = time.process_time()
        if exceeded := _exceeded_limit(options.limits):
            options.notify(exceeded)
            return None
        took = time.process_time() - started
        next_check = time.monotonic() + max(_CHECK_S, took * _CHECK_SHARE)


def _exit_code(status: int) -> int:
    """The exit code by shell conventions."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_others(child: int, *, signals_all: bool) -> None:
    """End all processes that the command started, after it has ended."""
    _kill(-child)
    # Processes outside the group become children of this one, which adopts orphans.
    deadline = time.monotonic() + _END_S
    while _reap(-1) and time.monotonic() < deadline:
        if signals_all:
            _kill(-1)  # all at once, so that none can fork faster than it is found
        for orphan in _children():
            _kill(orphan)
        time.sleep(0.0002)


def _reap(process: int) -> bool:
    """Reap an ended child, or all of them (-1); return whether others are left."""
    try:
        while os.waitpid(process, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _kill(process: int, number: int = signal.SIGKILL) -> bool:
    """Send a signal; return whether it reached a process."""
    try:
        os.kill(process, number)
    except OSError:
        return False
    return True


def _children() -> list[int]:
    return [int(pid) for pid in sandbox.read(f"/proc/self/task/{os.getpid()}/children").split()]


def _exceeded_limit(limits: dict[str, int]) -> str:
    """Return the name of the limit that the descendants of this process exceed, if any."""
    most, cpu, memory = (limits.get(name, _UNLIMITED) for name in ("processes", "cpu", "memory"))
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        names = []  # not available on this system
    # The first process of a namespace sees only its descendants.
    if os.getpid() == 1 and len(names) > most:
        return "processes"
    processes = _descendants(names)
    if len(processes) > most:
        return "processes"
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = sum(ticks for _, ticks, _ in processes) / os.sysconf("SC_CLK_TCK")
    if seconds + ended.ru_utime + ended.ru_stime > cpu:
        return "cpu"
    resident = sum(pages for _, _, pages in processes) * resource.getpagesize()
    # Counting shared memory only once is slower, so it is done only where it matters.
    if resident > memory and memory < 1024 * sum(
        _shared_kb(process) for process, _, _ in processes
    ):
        return "memory"
    return ""


def _descendants(names: list[str]) -> list[tuple[int, int, int]]:
    """The processes that descend from this one: number, ticks of processor time including reaped
    children, and pages in memory.
    """
    rows: list[tuple[int, int, int, int]] = []
    for name in names:
        if text := sandbox.read(f"/proc/{name}/stat"):
            fields = text.rpartition(b")")[2].split()
            ticks = sum(map(int, fields[11:15]))
            rows.append((int(fields[1]), int(name), ticks, int(fields[21])))
    parents = {os.getpid()}
    descendants: list[tuple[int, int, int]] = []
    while children := [row for row in rows if row[0] in parents]:
        descendants += [row[1:] for row in children]
        parents = {row[1] for row in children}
    return descendants


def _shared_kb(process: int) -> int:
    """The memory of a process, of which shared memory counts in proportion."""
    rest = sandbox.read(f"/proc/{process}/smaps_rollup").partition(b"\nPss:")[2].split()
    return int(rest[0]) if rest else 0
