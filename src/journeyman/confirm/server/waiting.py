"""Requests that wait for something: long polls and streams of events. They are let go when their
client goes away, and when the server stops.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from litestar.types import Receive

Awaited = TypeVar("Awaited")


MOST_STREAMS = 64
"""Of one credential: every stream is held open, and costs something with each change."""


class LetGo(Exception):
    """The wait is over without what was waited for: the client has gone, or the server stops."""


class Waiting:
    """All requests that wait."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._let_go: set[asyncio.Task[object]] = set()
        self._streams: Counter[str] = Counter()
        self.is_over = False

    def __len__(self) -> int:
        return len(self._tasks)

    def full_for(self, credential: str) -> str:
        """Why this credential may open no further stream; empty when it may."""
        if self._streams[credential] < MOST_STREAMS:
            return ""
        return f"{MOST_STREAMS} streams are open with this credential. Close one, or poll."

    @contextmanager
    def streaming(self, credential: str) -> Iterator[None]:
        """Counts a stream for as long as it is open."""
        self._streams[credential] += 1
        try:
            yield
        finally:
            self._streams[credential] -= 1
            if not self._streams[credential]:
                del self._streams[credential]

    async def for_(self, waited: Coroutine[Any, Any, Awaited], receive: Receive) -> Awaited:
        """What is waited for. Raises LetGo."""
        if self.is_over:
            waited.close()
            raise LetGo
        task = asyncio.current_task()
        assert task is not None
        watch = asyncio.create_task(self._watch(receive, task))
        self._tasks.add(task)
        try:
            return await waited
        except asyncio.CancelledError:
            if task not in self._let_go:
                raise
            task.uncancel()
            raise LetGo from None
        finally:
            watch.cancel()
            self._tasks.discard(task)
            self._let_go.discard(task)

    async def _watch(self, receive: Receive, task: asyncio.Task[object]) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._free(task)

    def _free(self, task: asyncio.Task[object]) -> None:
        if task not in self._let_go:
            self._let_go.add(task)
            task.cancel()

    def end(self) -> None:
        """Let all go: the server stops."""
        self.is_over = True
        for task in list(self._tasks):
            self._free(task)
