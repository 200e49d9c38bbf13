"""The program that runs one command of the agent: it confines the command, watches over what it
uses, and leaves none of its processes behind. It is started for every command, without the rest of
the package, so it imports little. Its arguments are the command; its `Options` come on standard
input. When that is closed, the command is ended.
"""

import _signal as signal  # type: ignore[import-not-found]
import fcntl
import marshal
import os
import resource
import select
import struct
import sys
import time

from journeyman.agent.tools import sandbox

NOT_CONFINED = 125
NOT_STARTED = 127

_RECEIVE_NOTICE, _SEND_ANSWER, _NOTICE_BYTES = 0xC0502100, 0xC0182101, 80
_ACCESS_DENIED = 13
_END_S = 4.0
"""How long it may take to end what a command started."""
_BACKSTOP = 2
"""The kernel's own limit on a process's memory and time is so many times the one that is watched,
because it says nothing when it is reached."""
_TASKS, _FEWEST_TASKS = 4, 1_000
"""And so is that on processes, which counts threads too."""
_SHARED_PART = 4
"""Shared memory gets this part of the limit on memory: one in four."""
_FIRST = -15
"""The niceness of this process, where it may have it: who counts must not wait for the counted."""
_LOOK_S, _LOOK_SHARE = 0.1, 20
"""How often to look at what is used; seldomer where looking takes long."""
_UNLIMITED = 2**62


class Options:
    """What the command may read, and also write; without a path it is not confined. `filters` of
    system calls are for where there are namespaces and where there are none, `clone` is the number
    of the call that makes them, `told` a pipe on which is told, word by word, what happened.
    """

    def __init__(
        self,
        *,
        told: int,
        limits: dict[str, int],
        readable: tuple[str, ...] = (),
        writable: tuple[str, ...] = (),
        filters: tuple[bytes, bytes] = (b"", b""),
        clone: int = 0,
    ) -> None:
        self.told, self.limits, self.readable, self.writable = told, limits, readable, writable
        self.filters, self.clone = filters, clone
        self.confined = bool(readable or writable)
        self.niceness = os.getpriority(os.PRIO_PROCESS, 0)
        own = (path for path in writable if path != sandbox.SHARED_MEMORY)
        self.folders = [path for path in own if os.path.isdir(path)]  # noqa: PTH112

    def tell(self, word: str) -> None:
        """Say a word on the pipe."""
        os.write(self.told, f"{word}\n".encode())


def run() -> None:
    """Run the command of the arguments, and end as it did."""
    code = NOT_CONFINED
    try:
        with open(0, "rb", closefd=False) as given:
            options = Options(**marshal.load(given))  # noqa: S302 - it comes from the agent
        code = _run(options, sys.argv[1:])
    finally:
        # Nothing is left to tidy up, and an orderly end of Python takes its time.
        os._exit(code)


def _run(options: Options, command: list[str]) -> int:
    """Run a command to its end, in namespaces where they can be had; its exit code."""
    os.set_inheritable(options.told, False)  # noqa: FBT003
    try:  # noqa: SIM105 - contextlib takes long to load
        os.setpriority(os.PRIO_PROCESS, 0, min(_FIRST, options.niceness))
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
                options.tell("namespaces")
                options.writable += (sandbox.TEMPORARY,)  # its own by now
                return _supervise(options, command, alone=False)
            if child > 0:
                return _exit_code(os.waitpid(child, 0)[1])
    return _supervise(options, command, alone=True)


def _supervise(options: Options, command: list[str], *, alone: bool) -> int:
    """Run the command below this process, which is confined in the same way; its exit code. `alone`
    says that there are no namespaces.
    """
    parent, listener, program = os.getppid(), -1, options.filters[alone]
    try:
        if sandbox.IS_LINUX:
            sandbox.give_up_privileges()
        if options.confined:
            listener = sandbox.confine(options.readable, options.writable, program)
    except OSError as error:
        os.write(2, f"The command was not run: {error.strerror}.\n".encode())
        return NOT_CONFINED
    if program and listener < 0:
        options.tell("network")  # it may be asked for: nobody would tell
    watch = _Watch(options)
    child = os.fork()
    if child == 0:
        os.close(options.told)
        if listener >= 0:
            os.close(listener)
        if options.confined:
            sandbox.stand_apart()
        _become(options, command)
    status = _wait(child, listener, watch, options)
    if status is None:
        _kill(-child)
        _kill(child)
        status = os.waitpid(child, 0)[1]
    if alone:
        # Without confinement, a signal to everybody would reach everybody.
        is_held = options.confined and parent > 1 and not _kill(parent, 0)
        _end_others(child, signals_inside=is_held)
    # Else the kernel ends all the others with this process, the first of its namespace.
    return _exit_code(status)


def _become(options: Options, command: list[str]) -> None:
    """Turn this process into the command. Returns never."""
    os.setsid()
    os.setpriority(os.PRIO_PROCESS, 0, options.niceness)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # Python ignores these, and a program it starts would do so too.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The kernel counts all threads of the user, which are no more than those of the machine.
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
        os.execve(command[0], command, os.environ)  # noqa: S606 - running it is what this is for
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(NOT_STARTED)


def _wait(child: int, listener: int, watch: "_Watch", options: Options) -> int | None:
    """Wait until the command has ended, and return its status; None when it has to be ended,
    because it is no longer wanted or uses too much. What happens is told.
    """
    poll = select.poll()
    poll.register(0, select.POLLIN)
    if listener >= 0:
        poll.register(listener, select.POLLIN)
    wait_s, is_network_told = _LOOK_S, False
    try:
        poll.register(os.pidfd_open(child), select.POLLIN)
    except (AttributeError, OSError):
        wait_s = 0.02  # a system without: its end is seen a little later
    while True:
        left = min(watch.next - time.monotonic(), wait_s)
        ready = dict(poll.poll(max(1, int(left * 1000))))
        if listener in ready:
            _deny(listener)
            if not is_network_told:
                options.tell("network")
                is_network_told = True
        if 0 in ready:
            return None
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() < watch.next:
            continue
        # Left unattended, orphans that have ended would use up the numbers for processes.
        for orphan in _children():
            if orphan != child:
                _reap(orphan)
        if passed := watch.look():
            options.tell(passed)
            return None


def _deny(listener: int) -> None:
    """Say no to a process that asks for the network."""
    notice = bytearray(_NOTICE_BYTES)
    try:
        fcntl.ioctl(listener, _RECEIVE_NOTICE, notice)
        answer = bytes(notice[:8]) + struct.pack("=qiI", 0, -_ACCESS_DENIED, 0)
        fcntl.ioctl(listener, _SEND_ANSWER, answer)
    except OSError:
        return  # who asked is gone


def _exit_code(status: int) -> int:
    """The exit code as a shell gives it."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_others(child: int, *, signals_inside: bool) -> None:
    """End all that the command started, once it has ended itself."""
    _kill(-child)
    # What left the group comes here when its parent ends, because this process adopts orphans.
    deadline = time.monotonic() + _END_S
    while _reap(-1) and time.monotonic() < deadline:
        if signals_inside:
            _kill(-1)  # at once, so that none can fork faster than it is found
        for orphan in _children():
            _kill(orphan)
        time.sleep(0.0002)


def _reap(process: int) -> bool:
    """Take leave of a child that has ended, or of all (-1); whether others are left."""
    try:
        while os.waitpid(process, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _kill(process: int, number: int = signal.SIGKILL) -> bool:
    """Send a signal; whether there was somebody to reach."""
    try:
        os.kill(process, number)
    except OSError:
        return False
    return True


def _children() -> list[int]:
    return [int(pid) for pid in sandbox.read(f"/proc/self/task/{os.getpid()}/children").split()]


class _Watch:
    """Watches what the processes below this one use, against the limits."""

    def __init__(self, options: Options) -> None:
        self._limits, self._folders = options.limits, options.folders
        self._began = time.time()
        self._free = [_free_bytes(folder) for folder in self._folders]
        self.next = time.monotonic() + _LOOK_S

    def look(self) -> str:
        """The limit that is passed; nothing if none."""
        began = time.process_time()
        passed = self._passed()
        took = time.process_time() - began
        self.next = time.monotonic() + max(_LOOK_S, took * _LOOK_SHARE)
        return passed

    def _passed(self) -> str:
        most, cpu, memory, written = (
            self._limits.get(name, _UNLIMITED) for name in ("processes", "cpu", "memory", "written")
        )
        try:
            names = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
        except OSError:
            names = []  # a system that does not tell
        # The first of a namespace has no others beside it, and need not look whose they are.
        if os.getpid() == 1 and len(names) > most:
            return "processes"
        used = _descendants(names)
        if len(used) > most:
            return "processes"
        gone = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = sum(ticks for _, ticks, _ in used) / os.sysconf("SC_CLK_TCK")
        if seconds + gone.ru_utime + gone.ru_stime > cpu:
            return "cpu"
        resident = sum(pages for _, _, pages in used) * resource.getpagesize()
        # What processes share is counted once only where it matters: that takes longer.
        if resident > memory and memory < 1024 * sum(
            _number(process, "smaps_rollup", b"\nPss:") for process, _, _ in used
        ):
            return "memory"
        for folder, free in zip(self._folders, self._free, strict=True):
            # Somebody filled the disk; whether it was this command is looked at only then.
            if free - _free_bytes(folder) > written and self._written(used) > written:
                return "written"
        return ""

    def _written(self, used: list[tuple[int, int, int]]) -> int:
        in_files = sum(_size_since(folder, self._began) for folder in self._folders)
        # What was deleted and is still open takes up room too.
        by_processes = sum(_number(process, "io", b"\nwrite_bytes:") for process, _, _ in used)
        return max(in_files, by_processes)


def _descendants(names: list[str]) -> list[tuple[int, int, int]]:
    """Those processes that are below this one: number, ticks of processor time with those of the
    children that it has taken leave of, and pages in memory.
    """
    found: list[tuple[int, int, int, int]] = []
    for name in names:
        if text := sandbox.read(f"/proc/{name}/stat"):
            fields = text.rpartition(b")")[2].split()
            ticks = sum(map(int, fields[11:15]))
            found.append((int(fields[1]), int(name), ticks, int(fields[21])))
    parents = {os.getpid()}
    below: list[tuple[int, int, int]] = []
    while inner := [one for one in found if one[0] in parents]:
        below += [one[1:] for one in inner]
        parents = {one[1] for one in inner}
    return below


def _number(process: int, file: str, name: bytes) -> int:
    """What a file of the kernel's says of a process after this name."""
    rest = sandbox.read(f"/proc/{process}/{file}").partition(name)[2].split()
    return int(rest[0]) if rest else 0


def _free_bytes(folder: str) -> int:
    about = os.statvfs(folder)
    return about.f_bfree * about.f_frsize


def _size_since(folder: str, when: float) -> int:
    """What the files take up on disk that were changed since then."""
    total = 0
    for inner, _, names in os.walk(folder):
        for name in names:
            try:
                about = os.lstat(f"{inner}/{name}")
            except OSError:
                continue
            if about.st_ctime >= when:
                total += about.st_blocks * 512
    return total
