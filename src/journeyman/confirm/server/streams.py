"""Changes told as they happen, as server-sent events: of one card until it is settled, or of all.
The first events are the present state, read after listening began, so that nothing is missed.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send
from litestar.types.asgi_types import HTTPResponseBodyEvent
from msgspec import Struct

from journeyman.confirm.server.desk import Desk
from journeyman.confirm.server.waiting import LetGo
from journeyman.records.confirmation import SETTLED, Confirmation

_HEARTBEAT = b": still here\n\n"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Told(Struct, frozen=True, kw_only=True):
    """What a stream tells."""

    changes: Callable[[], AsyncIterator[Confirmation]]
    present: Callable[[], Awaitable[list[Confirmation]]]
    shown: Callable[[Confirmation], bytes]
    until_settled: bool
    still_allowed: Callable[[], Awaitable[bool]]
    """Asked before each event: a credential may be revoked while its stream is open."""


class Stream(ASGIResponse):
    """An answer that goes on."""

    __slots__ = ("_desk", "_told")

    def __init__(self, desk: Desk, told: Told) -> None:
        # Without the parent's constructor: it builds what this class does not use.
        self._desk = desk
        self._told = told

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        waiting, by = self._desk.waiting, scope["user"].id
        with waiting.streaming(by), contextlib.suppress(LetGo):
            await waiting.for_(self._tell(send), receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        changes = self._told.changes()
        change = _next(changes)
        try:
            await asyncio.sleep(0)  # lets it begin to listen
            for card in await self._told.present():
                if await self._tell_one(card, send):
                    return
            while True:
                await asyncio.wait((change,), timeout=self._desk.heartbeat_s)
                if not await self._told.still_allowed():
                    return
                if not change.done():
                    await send(_piece(_HEARTBEAT))
                    continue
                if isinstance(change.exception(), StopAsyncIteration):
                    return
                card = change.result()
                change = _next(changes)
                if await self._tell_one(card, send):
                    return
        finally:
            change.cancel()
            await asyncio.wait((change,))
            if isinstance(changes, AsyncGenerator):
                await changes.aclose()

    async def _tell_one(self, card: Confirmation, send: Send) -> bool:
        """Tell of a card; whether it was the last."""
        await send(_piece(b"event: confirmation\ndata: %s\n\n" % self._told.shown(card)))
        return self._told.until_settled and card.status in SETTLED


def _next(changes: AsyncIterator[Confirmation]) -> asyncio.Task[Confirmation]:
    async def one() -> Confirmation:
        return await anext(changes)

    return asyncio.create_task(one())


def _piece(body: bytes) -> HTTPResponseBodyEvent:
    return {"type": "http.response.body", "body": body, "more_body": True}
