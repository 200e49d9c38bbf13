"""Imports the sessions that hosts report: a moment after the last report, in child processes, so
that the resident process stays quick and no log can harm it.
"""

import logging
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from journeyman.hosts.client import PROGRAM
from journeyman.records.errors import JourneymanError, StoreUnavailable, UnknownSession

log = logging.getLogger("journeyman.hosts")

QUIET_S = 0.7
"""How long a log must be left alone before it is imported."""

_LONGEST_DELAY_S = 4.0
"""A log that keeps growing is imported after this time."""

_LIMIT_S = 600.0

_LEARN_QUIET_S = 10.0
_LONGEST_LEARN_DELAY_S = 120.0
"""The same for learning, which waits for the last of several imports."""

_NICENESS = 10
_MAX_WAITING = 1_000


class ImportQueue:
    """Imports reported logs, then learns from them if `learns`. `on_learned` is called after new
    experience was stored. `program` is the command line of this program.
    """

    def __init__(
        self,
        home: Path,
        database: str,
        *,
        learns: bool = True,
        on_learned: Callable[[], None] = lambda: None,
        quiet_s: float = QUIET_S,
        learn_quiet_s: float = _LEARN_QUIET_S,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self._arguments = [*program, "--home", str(home)]
        self._environ = {**os.environ, "JOURNEYMAN_DATABASE": database}
        self._learns = learns
        self._on_learned = on_learned
        self._quiet_s = quiet_s
        self._learn_quiet_s = learn_quiet_s
        self._changed = threading.Condition()
        self._reported: dict[str, tuple[float, float]] = {}
        """The first and the last report of each log that is waiting."""
        self._after: list[Callable[[], None]] = []
        self._learn_at: float | None = None
        self._learn_latest = 0.0
        self._learning: threading.Thread | None = None
        self._stopping = False
        self._children: set[subprocess.Popen[bytes]] = set()
        self._thread = threading.Thread(target=self._run, name="hosts-import", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def report(self, path: str) -> None:
        """Note that a log has changed. Return at once."""
        now = time.monotonic()
        with self._changed:
            if len(self._reported) < _MAX_WAITING:
                first = self._reported.get(path, (now, now))[0]
                self._reported[path] = first, now
                self._changed.notify()

    def after_import(self, work: Callable[[], None]) -> None:
        """Try some work now, and after each import until the session it is about is stored."""
        if not _is_done(work):
            with self._changed:
                self._after = [*self._after, work][-_MAX_WAITING:]

    def _finish_waiting(self) -> None:
        """Do the work that waits for sessions, as far as they are stored by now."""
        with self._changed:
            works, self._after = self._after, []
        left = [work for work in works if not _is_done(work)]
        with self._changed:
            self._after = [*left, *self._after]

    def learn_after(self, quiet_s: float) -> None:
        """Learn from sessions that were stored otherwise, so long after the last such call."""
        now = time.monotonic()
        with self._changed:
            if self._learn_at is None:
                self._learn_latest = now + _LONGEST_LEARN_DELAY_S
            self._learn_at = min(now + quiet_s, self._learn_latest)
            self._changed.notify()

    def stop(self, timeout_s: float = 3.0) -> None:
        """Stop after the import in progress, or end it if it takes longer. What is waiting is
        imported by a process that outlives this one.
        """
        with self._changed:
            self._stopping = True
            waiting = list(self._reported)
            self._reported.clear()
            self._changed.notify()
        if waiting:
            _start_detached([*self._arguments, *_import_words(*waiting)], self._environ)
        threads = [one for one in (self._thread, self._learning) if one and one.is_alive()]
        ends = time.monotonic() + timeout_s
        for thread in threads:
            thread.join(max(ends - time.monotonic(), 0.0))
        for child in tuple(self._children):
            child.terminate()
        for thread in threads:
            thread.join(timeout_s)

    @property
    def waiting(self) -> int:
        return len(self._reported)

    def _run(self) -> None:
        while (path := self._next()) is not None:
            if not path:
                # Beside imports, which must not wait for it.
                self._learning = threading.Thread(
                    target=self._learn, name="hosts-learn", daemon=True
                )
                self._learning.start()
                continue
            try:
                self._call(*_import_words(path))
                self._finish_waiting()
                if self._learns:
                    self.learn_after(self._learn_quiet_s)
            except Exception:
                log.exception("importing %s failed", path)

    def _learn(self) -> None:
        try:
            self._call("learn", "--workers", "1", "--json", niceness=_NICENESS)
            if not self._stopping:
                self._on_learned()
        except Exception:
            log.exception("learning failed")
        finally:
            with self._changed:
                self._learning = None
                self._changed.notify()

    def _next(self) -> str | None:
        """Wait for the next log to import; "" means to learn, None to stop."""
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                due = {
                    path: min(last + self._quiet_s, first + _LONGEST_DELAY_S)
                    for path, (first, last) in self._reported.items()
                }
                path = min(due, key=due.__getitem__, default=None)
                if path is not None and due[path] <= now:
                    del self._reported[path]
                    return path
                learn_at = None if self._learning else self._learn_at
                if learn_at is not None and learn_at <= now:
                    self._learn_at = None
                    return ""
                moments = [*due.values(), *filter(None, [learn_at])]
                self._changed.wait(min(moments) - now if moments else None)
        return None

    def _call(self, *arguments: str, niceness: int = 0) -> None:
        """Run a command of the program in a child process. With `niceness` it gives way to people's
        own work.
        """
        child = subprocess.Popen(  # noqa: S603 - this program
            [*self._arguments, *arguments],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,  # Ctrl-C in a terminal is for the server only
        )
        self._children.add(child)
        if niceness:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, child.pid, niceness)
        try:
            _, errors = child.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            _, errors = child.communicate()
        finally:
            self._children.discard(child)
        if child.returncode and not self._stopping:
            message = errors.decode("utf-8", "replace").strip()[-500:]
            log.warning("`journeyman %s` failed: %s", " ".join(arguments), message)


def import_detached(home: Path, path: str, environ: Mapping[str, str]) -> None:
    """Start an import that outlives this process."""
    _start_detached([*PROGRAM, "--home", str(home), *_import_words(path)], environ)


def _start_detached(command: Sequence[str], environ: Mapping[str, str]) -> None:
    process = subprocess.Popen(  # noqa: S603 - this program
        command,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.returncode = 0  # no one waits for it


def _import_words(*paths: str) -> list[str]:
    """Return the words of a command that imports logs, which may begin with a hyphen."""
    return ["import", "--json", "--", *(one for path in paths for one in _with_subagents(path))]


def _with_subagents(path: str) -> list[str]:
    """Return a log and, for Claude Code, the folder of its subagents' logs."""
    folder = Path(path).with_suffix("")
    return [path, str(folder)] if path.endswith(".jsonl") and folder.is_dir() else [path]


def _is_done(work: Callable[[], None]) -> bool:
    try:
        work()
    except (UnknownSession, StoreUnavailable):
        return False
    except JourneymanError as error:
        log.warning("%s", error)
    return True
