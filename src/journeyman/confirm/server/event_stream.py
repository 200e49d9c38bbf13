"""Server-sent events with the changes of confirmations."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
from litestar.response import Stream

from journeyman.confirm.server.request_context import ApiRequest
from journeyman.records.confirmation import SETTLED, Confirmation

EVENT_STREAM = "text/event-stream"
_HEARTBEAT = b": still here\n\n"


def event_stream(request: ApiRequest, id_: str = "") -> Stream:
    """Return a stream of the changes of one confirmation until it is settled, or of all
    confirmations until the client disconnects or the service stops.
    """
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Stream(_events(request, id_), media_type=EVENT_STREAM, headers=headers)


async def _events(request: ApiRequest, id_: str) -> AsyncIterator[bytes]:
    changes = request.service.changes(id_)

    async def next_change() -> Confirmation | None:
        return await anext(changes, None)

    change = asyncio.create_task(next_change())
    try:
        await asyncio.sleep(0)  # starts the subscription first, so that no later state is missed
        pending = () if id_ else await request.service.list(status="pending")
        updates = (await request.service.get(id_),) if id_ else (*reversed(pending),)
        while True:
            for confirmation in updates:
                if confirmation is None:
                    return
                data = msgspec.json.encode(request.to_card(confirmation))
                yield b"event: confirmation\ndata: %s\n\n" % data
                if id_ and confirmation.status in SETTLED:
                    return
            await asyncio.wait((change,), timeout=request.context.heartbeat_s)
            # A credential may be revoked while its stream is open.
            if not await request.is_still_authenticated():
                return
            updates = ()
            if change.done():
                updates, change = (change.result(),), asyncio.create_task(next_change())
            else:
                yield _HEARTBEAT
    finally:
        change.cancel()
        await asyncio.wait((change,))
        await changes.aclose()
