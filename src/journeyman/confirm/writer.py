"""Group commit: what arrives while one transaction is flushed to disk shares the next."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from journeyman.records.errors import OutsideProblem, ServiceUnavailable
from journeyman.store.confirmations import Confirmations, Ledger

logger = logging.getLogger(__name__)

_MOST_AT_ONCE = 256

P = ParamSpec("P")
T = TypeVar("T")
Item = tuple[Callable[[Ledger], Any], Future[Any]]


class Writer:
    """Runs changes. `told` is shown the ledger when it is safe, before anybody is answered."""

    def __init__(
        self,
        confirmations: Confirmations,
        clock: Callable[[], float],
        told: Callable[[Ledger], None],
    ) -> None:
        self._confirmations = confirmations
        self._clock = clock
        self._told = told
        self._waiting: list[Item] = []
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="confirm-writer")

    def stop(self) -> None:
        """Finish what was asked for, then end."""
        self._thread.shutdown()

    async def do(
        self, work: Callable[Concatenate[Ledger, P], T], *given: P.args, **named: P.kwargs
    ) -> T:
        """Run a change; returns when it is safe on disk. Who no longer waits takes nothing back."""
        return await asyncio.shield(asyncio.wrap_future(self.soon(work, *given, **named)))

    def soon(
        self, work: Callable[Concatenate[Ledger, P], T], *given: P.args, **named: P.kwargs
    ) -> Future[T]:
        """From any thread: run a change, perhaps again after a first that was rolled back."""
        done: Future[T] = Future()
        with self._lock:
            self._waiting.append((lambda ledger: work(ledger, *given, **named), done))
            if len(self._waiting) == 1:  # else they are about to be taken, and this one with them
                try:
                    self._thread.submit(self._write_waiting)
                except RuntimeError as error:
                    self._waiting.clear()
                    said = "The service is stopping. Try again in a moment."
                    raise ServiceUnavailable(said) from error
        return done

    def _write_waiting(self) -> None:
        with self._lock:
            items, self._waiting = self._waiting, []
        for first in range(0, len(items), _MOST_AT_ONCE):
            self._write(items[first : first + _MOST_AT_ONCE])

    def _write(self, items: list[Item]) -> None:
        try:
            with self._confirmations.writing(self._clock()) as ledger:
                results = [work(ledger) for work, _ in items]
        except Exception as error:  # noqa: BLE001
            # Around one turn of a background loop. One change that fails must not cost the others
            # theirs: each is tried alone. What is wrong with the database is wrong for all.
            if len(items) > 1 and not isinstance(error, OutsideProblem):
                for item in items:
                    self._write([item])
                return
            logger.warning("%d changes were not written: %s", len(items), error)
            for _, done in items:
                done.set_exception(error)
            return
        try:
            self._told(ledger)
        except Exception:
            # What is written is never tried again, whatever fails after it.
            logger.exception("a change was written but not passed on")
        for (_, done), result in zip(items, results, strict=True):
            done.set_result(result)
