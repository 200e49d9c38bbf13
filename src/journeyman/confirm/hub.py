"""Who waits for what, inside one process: long polls and event streams. All of it happens on the
event loop; other threads hand in what changed through `publish`.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager

from journeyman.records.confirmation import Confirmation

_BEHIND = 1_000
"""A listener that does not keep up with so many changes is let go; it can come again."""

Listener = asyncio.Queue[Confirmation | None]


class Hub:
    """Tells listeners of changed cards."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening: defaultdict[str, set[Listener]] = defaultdict(set)
        self._closed = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    def publish(self, cards: Iterable[Confirmation]) -> None:
        """From any thread: these cards changed."""
        if not self._listening:
            return  # whoever comes now looks at the cards first
        changed = tuple(cards)
        if self._loop is not None and changed:
            self._loop.call_soon_threadsafe(self._tell, changed)

    @contextmanager
    def listener(self, id_: str = "") -> Iterator[Listener]:
        """The changes of one card, or of all, from now on; None ends them. Enter first, then look
        at the card: what is changed in between is not missed.
        """
        changes: Listener = asyncio.Queue()
        if self._closed:
            changes.put_nowait(None)
        self._listening[id_].add(changes)
        try:
            yield changes
        finally:
            self._listening[id_].discard(changes)
            if not self._listening[id_]:
                del self._listening[id_]

    def close(self) -> None:
        """Let everybody go."""
        self._closed = True
        for listeners in self._listening.values():
            for changes in listeners:
                changes.put_nowait(None)

    def _tell(self, cards: tuple[Confirmation, ...]) -> None:
        for card in cards:
            for key in (card.id, ""):
                for changes in self._listening.get(key, ()):
                    changes.put_nowait(card if changes.qsize() < _BEHIND else None)


async def until_none(changes: Listener) -> AsyncIterator[Confirmation]:
    """What a listener hears, until it is let go."""
    while (card := await changes.get()) is not None:
        yield card
