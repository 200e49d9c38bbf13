"""Telling people, away from everybody who waits: channels are tried in order until one works, each
under a time limit, and what came of it is reported. Words and channels are made elsewhere.
"""

import logging
import queue
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TextIO

from journeyman.confirm.notices.channel import FollowsUp, Listens, NoticeChannel, NotTold
from journeyman.confirm.notices.terminal import TERMINAL, write_line
from journeyman.confirm.notices.text import NoticeText
from journeyman.records.confirmation import Confirmation, ConfirmationId, Notice

logger = logging.getLogger(__name__)

_MOST_STUCK: Final = 4
_PATIENCE_S: Final = 1.0

Report = Callable[[ConfirmationId, Notice], None]
"""Takes what came of a notice. Called from any thread; must not block."""
_Work = Callable[[], None]


class Telling:
    """Tells people through the first channel that works. When all fail, the notice stands in the
    service's terminal.
    """

    def __init__(
        self,
        channels: Sequence[NoticeChannel],
        report: Report,
        *,
        time_limit_s: float = 10.0,
        workers: int = 2,
        most_waiting: int = 256,
        terminal: TextIO | None = None,
    ) -> None:
        self._channels = tuple(channels)
        self._report = report
        self._time_limit_s = time_limit_s
        self._terminal = terminal
        self._queues: list[queue.Queue[_Work | None]] = [
            queue.Queue(maxsize=max(1, most_waiting // workers)) for _ in range(workers)
        ]
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._stuck: Counter[int] = Counter()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to tell people, and to listen where they can answer."""
        for waiting in self._queues:
            thread = threading.Thread(
                target=self._run, args=(waiting,), name="telling", daemon=True
            )
            thread.start()
            self._threads.append(thread)
        for channel in self._channels:
            if isinstance(channel, Listens):
                channel.start()

    def stop(self) -> None:
        """Stop. Notices that wait are dropped unreported: who starts again tells them again."""
        self._stopping.set()
        for channel in self._channels:
            if isinstance(channel, Listens):
                channel.stop()
        for waiting in self._queues:
            with suppress(queue.Full):  # then the worker sees that it is to stop by itself
                waiting.put_nowait(None)
        for thread in self._threads:
            thread.join(_PATIENCE_S)

    def tell(self, confirmation: Confirmation, make: Callable[[], NoticeText]) -> None:
        """Have people told what `make` makes. Never waits: a queue that is full is a failure, and
        reported so.
        """
        if not self._taken(confirmation, partial(self._tell, confirmation, make)):
            error = "too many notices wait to be sent"
            logger.warning("the notice of %s was not sent: %s", confirmation.short_id, error)
            self._report(confirmation.id, Notice(status="failed", error=error))

    def settled(self, confirmation: Confirmation) -> None:
        """Have it shown, where people were told, that the matter is settled. Never waits."""
        if any(isinstance(channel, FollowsUp) for channel in self._channels):
            self._taken(confirmation, partial(self._follow_up, confirmation))

    def _taken(self, confirmation: Confirmation, work: _Work) -> bool:
        # One confirmation always goes to the same worker: it is told before it is settled.
        mine = self._queues[zlib.crc32(confirmation.id.encode()) % len(self._queues)]
        try:
            mine.put_nowait(work)
        except queue.Full:
            return False
        return True

    def _run(self, waiting: "queue.Queue[_Work | None]") -> None:
        while (work := waiting.get()) is not None and not self._stopping.is_set():
            try:
                work()
            except Exception:  # one notice that goes wrong must not silence all that follow
                logger.exception("a notice could not be dealt with")

    def _tell(self, confirmation: Confirmation, make: Callable[[], NoticeText]) -> None:
        text = make()
        errors = []
        for channel in self._channels:
            try:
                self._within_limit(channel, partial(channel.send, text, confirmation))
            except NotTold as error:
                errors.append(f"{channel.name}: {error}")
                logger.warning(
                    "the notice of %s failed on %s: %s", confirmation.short_id, channel.name, error
                )
            else:
                self._report(confirmation.id, Notice(status="sent", channel=channel.name))
                return
        shown = write_line(f"{text.title}. Open: {text.link}", self._terminal)
        self._report(
            confirmation.id,
            Notice(
                status="sent" if shown and not errors else "failed",
                channel=TERMINAL if shown else "",
                error="; ".join(errors),
            ),
        )

    def _follow_up(self, confirmation: Confirmation) -> None:
        for channel in self._channels:
            if isinstance(channel, FollowsUp):
                try:
                    self._within_limit(channel, partial(channel.settled, confirmation))
                except NotTold as error:
                    logger.info(
                        "the end of %s is not shown on %s: %s",
                        confirmation.short_id,
                        channel.name,
                        error,
                    )

    def _within_limit(self, channel: NoticeChannel, call: _Work) -> None:
        """Call, and give up on it after the time limit: a thread cannot be ended, only left."""
        with self._lock:
            if self._stuck[id(channel)] >= _MOST_STUCK:
                raise NotTold("earlier notices have still not come through")
            self._stuck[id(channel)] += 1
        outcome: queue.SimpleQueue[NotTold | None] = queue.SimpleQueue()
        target = partial(self._call, channel, call, outcome)
        threading.Thread(target=target, name=f"telling-{channel.name}", daemon=True).start()
        try:
            failed = outcome.get(timeout=self._time_limit_s)
        except queue.Empty:
            raise NotTold(f"no answer within {self._time_limit_s:g} s") from None
        if failed is not None:
            raise failed

    def _call(
        self, channel: NoticeChannel, call: _Work, outcome: "queue.SimpleQueue[NotTold | None]"
    ) -> None:
        failed: NotTold | None = None
        try:
            call()
        except NotTold as error:
            failed = error
        except Exception as error:  # noqa: BLE001 - a stranger's code, whose words may hold secrets
            failed = NotTold(f"it broke off ({type(error).__name__})")
        with self._lock:
            self._stuck[id(channel)] -= 1
        outcome.put(failed)
