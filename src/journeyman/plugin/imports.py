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

import msgspec

from journeyman.plugin.client import PROGRAM
from journeyman.records.errors import JourneymanError, StoreUnavailable, UnknownSession

log = logging.getLogger("journeyman.plugin")

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
_JOURNAL = "imports.jsonl"


class ImportQueue:
    """Imports reported logs, then learns from them if `learns`. `on_learned` is called after new
    experience was stored. `program` is the command line of this program. What is reported is in a
    file of the home until nothing waits, so that a process that was killed loses none.
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
        self._journal = home / _JOURNAL
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
        """Begin with what an earlier process left behind."""
        now = time.monotonic()
        with suppress(OSError):
            for line in self._journal.read_bytes().splitlines():
                with suppress(msgspec.DecodeError):  # empty, or cut short
                    self._reported[msgspec.json.decode(line, type=str)] = now, now
        self._thread.start()

    def report(self, path: str) -> None:
        """Note that a log has changed; it is on the disk when this returns. Raise StoreUnavailable
        if it cannot be; it is imported all the same.
        """
        now = time.monotonic()
        with self._changed:
            is_new = path not in self._reported
            self._reported[path] = self._reported.get(path, (now, now))[0], now
            self._changed.notify()
            if is_new:
                self._write(path)

    def _write(self, path: str) -> None:
        try:
            with self._journal.open("ab") as journal:
                journal.write(b"\n" + msgspec.json.encode(path))
                journal.flush()
                os.fsync(journal.fileno())
        except OSError as error:
            raise StoreUnavailable(f"{self._journal} cannot be written: {error}.") from error

    def _forget(self) -> None:
        """Empty the journal if all that is in it was imported."""
        with self._changed, suppress(OSError):
            if not self._reported and not self._stopping:
                os.truncate(self._journal, 0)

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

    def _learn_later(self) -> None:
        """Learn a while after the last import."""
        now = time.monotonic()
        with self._changed:
            if self._learn_at is None:
                self._learn_latest = now + _LONGEST_LEARN_DELAY_S
            self._learn_at = min(now + self._learn_quiet_s, self._learn_latest)
            self._changed.notify()

    def stop(self, timeout_s: float = 3.0) -> None:
        """Stop after the import in progress, or end it if it takes longer. What is waiting is left
        to the next process.
        """
        with self._changed:
            self._stopping = True
            self._changed.notify()
        threads = [one for one in (self._thread, self._learning) if one and one.is_alive()]
        ends = time.monotonic() + timeout_s
        for thread in threads:
            thread.join(max(ends - time.monotonic(), 0.0))
        for child in tuple(self._children):
            child.terminate()
        for thread in threads:
            thread.join(timeout_s)

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
                self._forget()
                self._finish_waiting()
                if self._learns:
                    self._learn_later()
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
    process = subprocess.Popen(  # noqa: S603 - this program
        [*PROGRAM, "--home", str(home), *_import_words(path)],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.returncode = 0  # no one waits for it


def _import_words(path: str) -> list[str]:
    """Return the words of a command that imports a log, which may begin with a hyphen, and for
    Claude Code the folder of its subagents' logs.
    """
    folder = Path(path).with_suffix("")
    has_more = path.endswith(".jsonl") and folder.is_dir()
    return ["import", "--json", "--", path, *([str(folder)] if has_more else [])]


def _is_done(work: Callable[[], None]) -> bool:
    try:
        work()
    except (UnknownSession, StoreUnavailable):
        return False
    except JourneymanError as error:
        log.warning("%s", error)
    return True
