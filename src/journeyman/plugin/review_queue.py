"""Reviews the sessions that have ended, one at a time, in child processes that give way to people's
own work. Whether a session is worth it, and whether the budget allows it, the child decides.
"""

import logging
import os
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

from journeyman.plugin.client import PROGRAM

log = logging.getLogger("journeyman.plugin")

ENDED_S, IDLE_S = 2.0, 900.0
"""How long after its end a session is reviewed; where the host reports no end, after its last
turn."""

_LIMIT_S, _STOP_S = 1_200.0, 20.0
_NICENESS = 10


class ReviewQueue:
    """The sessions that wait for a review. Those that still wait when the process ends are left to
    the person: `journeyman review SESSION`.
    """

    def __init__(self, home: Path, database: str) -> None:
        self._arguments = [*PROGRAM, "--home", str(home), "review", "session", "--unasked"]
        self._environ = {**os.environ, "JOURNEYMAN_DATABASE": database}
        self._waiting: dict[str, threading.Timer] = {}
        self._one_at_a_time = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def put(self, host: str, session: str, delay_s: float) -> None:
        """Have a session reviewed after a while, unless it goes on before."""
        timer = threading.Timer(delay_s, self._review, (host, session))
        timer.daemon = True
        if before := self._waiting.get(session):
            before.cancel()
        self._waiting[session] = timer
        timer.start()

    def stop(self) -> None:
        """Drop what waits, and end a review that is running, with its host."""
        self._is_stopped = True
        for timer in tuple(self._waiting.values()):
            timer.cancel()
        if (child := self._child) is not None:
            child.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(_STOP_S)

    def _review(self, host: str, session: str) -> None:
        with self._one_at_a_time:
            self._waiting.pop(session, None)
            if self._is_stopped:
                return
            self._child = child = subprocess.Popen(  # noqa: S603 - this program
                [*self._arguments, "--with", host, "--json", "--", session],
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                process_group=0,  # Ctrl-C in a terminal is for the server only
            )
            os.setpriority(os.PRIO_PROCESS, child.pid, _NICENESS)
            try:
                _, errors = child.communicate(timeout=_LIMIT_S)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGINT)  # it ends its host in order
                _, errors = child.communicate()
            self._child = None
        if child.returncode and not self._is_stopped:
            said = errors.decode("utf-8", "replace").strip()[-500:]
            log.warning("the review of %s failed: %s", session, said)
