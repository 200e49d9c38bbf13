"""Delivers changed cards to the long polls and event streams of this process. Everything runs on
the event loop; other threads call `publish`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from journeyman.records.confirmation import Confirmation

_MAX_BACKLOG = 1_000
"""A listener this many changes behind is dropped; it can connect again."""

Listener = asyncio.Queue[Confirmation | None]


class Hub:
    """Passes changed cards on to listeners."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: defaultdict[str, set[Listener]] = defaultdict(set)
        self._closed = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    def publish(self, cards: Iterable[Confirmation]) -> None:
        """From any thread: these cards changed."""
        if not self._listeners:
            return  # a listener that comes later reads the card first
        changed = tuple(cards)
        if self._loop is not None and changed:
            self._loop.call_soon_threadsafe(self._deliver, changed)

    @contextmanager
    def listener(self, id_: str = "") -> Iterator[Listener]:
        """Receive the changes of one card, or of all, from now on; None ends them. Enter before
        reading the card, so that a change in between is not missed.
        """
        changes: Listener = asyncio.Queue()
        if self._closed:
            changes.put_nowait(None)
        self._listeners[id_].add(changes)
        try:
            yield changes
        finally:
            self._listeners[id_].discard(changes)
            if not self._listeners[id_]:
                del self._listeners[id_]

    def close(self) -> None:
        """End every listener."""
        self._closed = True
        for listeners in self._listeners.values():
            for changes in listeners:
                changes.put_nowait(None)

    def _deliver(self, cards: tuple[Confirmation, ...]) -> None:
        for card in cards:
            for key in (card.id, ""):
                for changes in self._listeners.get(key, ()):
                    changes.put_nowait(card if changes.qsize() < _MAX_BACKLOG else None)
