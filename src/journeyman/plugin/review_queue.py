"""Reviews the sessions that have ended, one at a time, in child processes that give way to people's
own work. Whether a session is worth it, and whether the budget allows it, the child decides.
"""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from journeyman.plugin.client import PROGRAM

log = logging.getLogger("journeyman.plugin")

ENDED_S, IDLE_S = 2.0, 900.0
"""How long after its end a session is reviewed; where the host reports no end, after its last
turn."""

_LIMIT_S, _STOP_S = 1_200.0, 20.0
_NICENESS = 10


class ReviewQueue:
    """The sessions that wait for a review. `program` is the command line of this program. What
    waits when the process ends is left to the person: `journeyman review SESSION`.
    """

    def __init__(
        self,
        home: Path,
        database: str,
        *,
        ended_s: float = ENDED_S,
        idle_s: float = IDLE_S,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self._arguments = [*program, "--home", str(home), "review", "session"]
        self._environ = {**os.environ, "JOURNEYMAN_DATABASE": database}
        self._ended_s, self._idle_s = ended_s, idle_s
        self._changed = threading.Condition()
        self._due: dict[tuple[str, str], float] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="hosts-review", daemon=True)

    def ended(self, host: str, session: str) -> None:
        """Note that a session has ended."""
        self._put(host, session, self._ended_s)

    def worked(self, host: str, session: str) -> None:
        """Note a turn of a session in a host that reports no end."""
        self._put(host, session, self._idle_s)

    def _put(self, host: str, session: str, delay_s: float) -> None:
        with self._changed:
            self._due[host, session] = time.monotonic() + delay_s
            if self._thread.ident is None:
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """End a review that is running, which ends its host in order."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
            child = self._child
        if child is not None:
            child.send_signal(signal.SIGINT)
        if self._thread.ident is not None:
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        while (found := self._next()) is not None:
            try:
                self._review(*found)
            except Exception:
                log.exception("the review of %s failed", found[1])

    def _next(self) -> tuple[str, str] | None:
        """Wait for the next session that is due; None to stop."""
        with self._changed:
            while not self._stopping:
                first = min(self._due, key=self._due.__getitem__, default=None)
                if first is not None and self._due[first] <= time.monotonic():
                    del self._due[first]
                    return first
                left_s = None if first is None else self._due[first] - time.monotonic()
                self._changed.wait(left_s)
        return None

    def _review(self, host: str, session: str) -> None:
        child = subprocess.Popen(  # noqa: S603 - this program
            [*self._arguments, "--with", host, "--unasked", "--json", "--", session],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,  # Ctrl-C in a terminal is for the server only
        )
        with self._changed:
            self._child = child
        os.setpriority(os.PRIO_PROCESS, child.pid, _NICENESS)
        try:
            _, errors = child.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate()
        finally:
            with self._changed:
                self._child = None
        if child.returncode and not self._stopping:
            message = errors.decode("utf-8", "replace").strip()[-500:]
            log.warning("the review of %s failed: %s", session, message)
