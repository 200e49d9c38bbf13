"""Group commit: changes that arrive while a transaction is flushed to disk share the next."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from journeyman.records.errors import OutsideProblem, ServiceUnavailable
from journeyman.store.confirmations import Confirmations
from journeyman.store.ledger import Ledger

logger = logging.getLogger(__name__)

_MAX_BATCH = 256

P = ParamSpec("P")
T = TypeVar("T")
Item = tuple[Callable[[Ledger], Any], Future[Any]]


class Writer:
    """Runs changes. `after_commit` gets the ledger when it is on disk, before callers return."""

    def __init__(
        self,
        confirmations: Confirmations,
        clock: Callable[[], float],
        after_commit: Callable[[Ledger], None],
    ) -> None:
        self._confirmations = confirmations
        self._clock = clock
        self._after_commit = after_commit
        self._pending: list[Item] = []
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="confirm-writer")

    def stop(self) -> None:
        """Finish the pending changes, then stop."""
        self._thread.shutdown()

    async def do(
        self, work: Callable[Concatenate[Ledger, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a change; return when it is on disk. Cancelling the caller does not undo it."""
        return await asyncio.shield(asyncio.wrap_future(self.soon(work, *args, **kwargs)))

    def soon(
        self, work: Callable[Concatenate[Ledger, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """From any thread: run a change. It may run twice, if the first run was rolled back."""
        done: Future[T] = Future()
        with self._lock:
            self._pending.append((lambda ledger: work(ledger, *args, **kwargs), done))
            if len(self._pending) == 1:  # otherwise a batch is already scheduled
                try:
                    self._thread.submit(self._write_pending)
                except RuntimeError as error:
                    self._pending.clear()
                    message = "The service is stopping. Try again in a moment."
                    raise ServiceUnavailable(message) from error
        return done

    def _write_pending(self) -> None:
        with self._lock:
            items, self._pending = self._pending, []
        for first in range(0, len(items), _MAX_BATCH):
            self._write(items[first : first + _MAX_BATCH])

    def _write(self, items: list[Item]) -> None:
        try:
            with self._confirmations.writing(self._clock()) as ledger:
                results = [work(ledger) for work, _ in items]
        except Exception as error:  # noqa: BLE001
            # Around one turn of a background loop. A change that fails must not fail the others, so
            # each is tried alone. A problem of the database concerns all of them.
            if len(items) > 1 and not isinstance(error, OutsideProblem):
                for item in items:
                    self._write([item])
                return
            logger.warning("%d changes were not written: %s", len(items), error)
            for _, done in items:
                done.set_exception(error)
            return
        try:
            self._after_commit(ledger)
        except Exception:
            # What is written must never be written again, whatever fails afterwards.
            logger.exception("a change was written but not published")
        for (_, done), result in zip(items, results, strict=True):
            done.set_result(result)
