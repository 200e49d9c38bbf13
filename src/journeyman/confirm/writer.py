"""Group commit: one thread makes all changes, and what arrives while one transaction is being
flushed to disk shares the next. Every answer waits until its change is safe, and yet the disk is
asked once for many.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Generic, TypeVar

from journeyman.records.errors import OutsideProblem, ServiceUnavailable
from journeyman.store.asked import Wanted
from journeyman.store.confirmations import Confirmations
from journeyman.store.ledger import Ledger

logger = logging.getLogger(__name__)

_MOST_AT_ONCE = 256
_MANY = 8
_GATHERED_S = 0.001

T = TypeVar("T")
Work = Callable[[Ledger], T]
"""A change. It may be run a second time after a first that was rolled back."""


class _Item(Generic[T]):
    def __init__(
        self, work: Work[T], future: "asyncio.Future[T] | None", wants: Wanted | None = None
    ) -> None:
        self.work = work
        self.wants = wants
        self.future = future
        self.loop = None if future is None else future.get_loop()
        self.result: T | None = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]


class Writer:
    """Runs changes, many to a transaction, for as long as the audit still has the `known_head`.
    `told` is shown the ledger in the writer's thread, when
    what it wrote is safe and before anybody is answered.
    """

    def __init__(
        self,
        confirmations: Confirmations,
        clock: Callable[[], float],
        told: Callable[[Ledger], None],
        known_head: Callable[[], tuple[int, str] | None] = lambda: None,
    ) -> None:
        self._confirmations = confirmations
        self._clock = clock
        self._told = told
        self._known_head = known_head
        self._queue: queue.SimpleQueue[_Item[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="confirm-writer", daemon=True)
        self._stopping = False
        self._is_busy = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish what was asked for, then end."""
        self._stopping = True
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    async def do(self, work: Work[T], wants: Wanted | None = None) -> T:
        """Run a change; returns when it is safe on disk. What it `wants` to know of submissions is
        read together with what others want.
        """
        if self._stopping:
            raise ServiceUnavailable("The service is stopping. Try again in a moment.")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put(_Item(work, future, wants))
        return await future

    def soon(self, work: Work[object]) -> None:
        """Run a change that nobody waits for; from any thread."""
        self._queue.put(_Item(work, None))

    def _run(self) -> None:
        ending = False
        while not ending:
            items, ending = self._next()
            if items:
                self._write(items)
            self._is_busy = len(items) >= _MANY
        late = [item for item in self._rest() if item is not None]
        for item in late:
            item.error = ServiceUnavailable("The service is stopping. Try again in a moment.")
        _settle(late)

    def _rest(self) -> Iterator[_Item[Any] | None]:
        with suppress(queue.Empty):
            while True:
                yield self._queue.get_nowait()

    def _next(self) -> tuple[list[_Item[Any]], bool]:
        first = self._queue.get()
        if first is None:
            return [], True
        items = [first]
        if self._is_busy and self._queue.qsize() < _MANY:
            # Who comes in a moment shares the transaction, and does not wait for a whole one.
            time.sleep(_GATHERED_S)
        while len(items) < _MOST_AT_ONCE:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                return items, True
            items.append(item)
        return items, False

    def _write(self, items: list[_Item[Any]]) -> None:
        ledger: Ledger | None = None
        try:
            ledger = self._together(items)
            self._told(ledger)
        except Exception as error:
            # Around one turn of a background loop. One change that fails must not cost the others
            # theirs: each is tried alone, and the failing one is told. What is written is never
            # tried again, whatever fails after it.
            if ledger is not None:
                logger.exception("a change was written but not passed on")
            elif len(items) == 1 or isinstance(error, OutsideProblem):
                # What is wrong with the database is wrong for all of them.
                logger.warning("%d changes were not written: %s", len(items), error)
                for item in items:
                    item.error = error
            else:
                for item in items:
                    self._write([item])
                return
        _settle(items)

    def _together(self, items: list[_Item[Any]]) -> Ledger:
        with self._confirmations.writing(self._clock(), after=self._known_head()) as ledger:
            ledger.asked.look_up([item.wants for item in items if item.wants is not None])
            for item in items:
                item.result = item.work(ledger)
        return ledger


def _settle(items: list[_Item[Any]]) -> None:
    """Answer all, waking each event loop once."""
    loops = {item.loop for item in items if item.loop is not None}
    for loop in loops:
        mine = [item for item in items if item.loop is loop]
        try:
            loop.call_soon_threadsafe(_settle_all, mine)
        except RuntimeError:
            logger.debug("the loop of %d waiting requests is closed", len(mine))


def _settle_all(items: list[_Item[Any]]) -> None:
    for item in items:
        item.settle()
