"""Signs of life for runs that go on in this process, so that no other takes them for lost."""

import logging
import threading
from collections.abc import Callable, Iterable

from journeyman.records.errors import JourneymanError
from journeyman.records.job import RunId
from journeyman.store.job_claims import JobClaims

logger = logging.getLogger(__name__)

ALIVE_S = 60.0
"""After so long without a sign of life a run is taken for lost."""


class KeptAlive:
    """Gives a sign of life for the runs of a process as long as it is entered. `going` says which
    they are, `lose` hears which of them are no longer its own, once there are any.
    """

    def __init__(
        self,
        claims: JobClaims,
        going: Callable[[], Iterable[RunId]],
        clock: Callable[[], float],
        lose: Callable[[Iterable[RunId]], None] = lambda _lost: None,
        beat_s: float = ALIVE_S / 4,
    ) -> None:
        self._claims, self._going, self._clock, self._lose = claims, going, clock, lose
        self._beat_s = beat_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="journeyman-alive", daemon=True)

    def __enter__(self) -> "KeptAlive":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _go_on(self) -> None:
        while not self._over.wait(self._beat_s):
            going = tuple(self._going())
            try:
                alive = self._claims.keep_alive(going, until=self._clock() + ALIVE_S)
            except JourneymanError as error:
                logger.warning("no sign of life could be given: %s", error)
                continue
            if lost := [run for run in going if run not in alive]:
                self._lose(lost)
