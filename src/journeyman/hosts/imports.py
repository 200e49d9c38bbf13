"""Imports the sessions that hosts report: a moment after the last report, in child processes, so
that the resident process stays quick and no log can harm it.
"""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from journeyman.records.errors import JourneymanError, UnknownSession

log = logging.getLogger("journeyman.hosts")

QUIET_S = 0.7
"""How long a log must be left alone before it is imported."""

_LONGEST_DELAY_S = 4.0
"""A log that keeps growing is imported after this time."""

_IMPORT_LIMIT_S = 600.0
_LEARN_QUIET_S = 10.0

_NICENESS = 10
_MAX_WAITING = 1_000


class ImportQueue:
    """Imports reported logs, then learns from them if `learns`. `on_learned` is called after new
    experience was stored.
    """

    def __init__(
        self,
        home: Path,
        database: str,
        *,
        learns: bool = True,
        on_learned: Callable[[], None] = lambda: None,
    ) -> None:
        self._arguments = [sys.executable, "-m", "journeyman", "--home", str(home)]
        self._environ = {**os.environ, "JOURNEYMAN_DATABASE": database}
        self._learns = learns
        self._on_learned = on_learned
        self._changed = threading.Condition()
        self._reported: dict[str, tuple[float, float]] = {}
        """The first and the last report of each log that is waiting."""
        self._after: list[Callable[[], None]] = []
        self._learn_at: float | None = None
        self._stopping = False
        self._child: subprocess.Popen[bytes] | None = None
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

    def learn_after(self, quiet_s: float) -> None:
        """Learn from sessions that were stored otherwise, so long after the last such call."""
        with self._changed:
            self._learn_at = time.monotonic() + quiet_s
            self._changed.notify()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Stop after the import in progress, or end it if it takes longer."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if not self._thread.is_alive():
            return
        self._thread.join(timeout_s)
        if (child := self._child) is not None and child.poll() is None:
            child.terminate()
            self._thread.join(timeout_s)

    @property
    def waiting(self) -> int:
        return len(self._reported)

    def _run(self) -> None:
        while (path := self._next()) is not None:
            try:
                if path:
                    self._call("import", *_with_subagents(path))
                    self._after = [work for work in self._after if not _is_done(work)]
                    self._learn_at = time.monotonic() + _LEARN_QUIET_S if self._learns else None
                else:
                    self._learn_at = None
                    self._call("learn", "--workers", "1")
                    self._on_learned()
            except Exception:
                log.exception("importing %s failed", path or "what was learned")

    def _next(self) -> str | None:
        """Wait for the next log to import; "" means to learn, None to stop."""
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                due = {
                    path: min(last + QUIET_S, first + _LONGEST_DELAY_S)
                    for path, (first, last) in self._reported.items()
                }
                path = min(due, key=due.__getitem__, default=None)
                if path is not None and due[path] <= now:
                    del self._reported[path]
                    return path
                if path is None and self._learn_at is not None and self._learn_at <= now:
                    return ""
                moments = [*due.values(), *filter(None, [None if path else self._learn_at])]
                self._changed.wait(min(moments) - now if moments else None)
        return None

    def _call(self, *arguments: str) -> None:
        """Run a command of the program in a child process, behind people's own work."""
        child = subprocess.Popen(  # noqa: S603 - this program
            [*self._arguments, *arguments, "--json"],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._child = child
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, child.pid, _NICENESS)
        try:
            _, errors = child.communicate(timeout=_IMPORT_LIMIT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            _, errors = child.communicate()
        if child.returncode:
            message = errors.decode("utf-8", "replace").strip()[-500:]
            log.warning("`journeyman %s` failed: %s", " ".join(arguments), message)


def import_detached(home: Path, path: str, environ: Mapping[str, str]) -> None:
    """Start an import that outlives this process."""
    subprocess.Popen(  # noqa: S603 - this program
        [
            *(sys.executable, "-m", "journeyman", "--home", str(home)),
            *("import", *_with_subagents(path), "--json"),
        ],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _with_subagents(path: str) -> list[str]:
    """Return a log and, for Claude Code, the folder of its subagents' logs."""
    folder = Path(path).with_suffix("")
    return [path, str(folder)] if path.endswith(".jsonl") and folder.is_dir() else [path]


def _is_done(work: Callable[[], None]) -> bool:
    try:
        work()
    except UnknownSession:
        return False
    except JourneymanError as error:
        log.warning("%s", error)
    return True
