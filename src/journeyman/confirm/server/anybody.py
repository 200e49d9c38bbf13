"""What anybody may ask: whether the service is there, and what can be asked of it."""

import asyncio

from litestar import Request, get
from litestar.datastructures import State

from journeyman.confirm.server.answer import Answer, answered
from journeyman.confirm.server.desk import desk_of
from journeyman.confirm.server.documented import NOBODY, replies
from journeyman.confirm.server.shapes import HealthView
from journeyman.version import __version__

Anybody = Request[None, None, State]


@get(
    "/health",
    operation_id="health",
    summary="Whether the service is there",
    security=NOBODY,
    responses=replies({200: HealthView}),
)
async def health(request: Anybody) -> Answer:
    """Nothing is written by it."""
    pending = await desk_of(request).service.pending()
    return answered(HealthView(status="ok", version=__version__, pending=pending))


@get("/openapi.json", include_in_schema=False)
async def openapi(request: Anybody) -> Answer:
    """What the routes take and answer."""
    return Answer(await asyncio.to_thread(desk_of(request).document))


ROUTES = (health, openapi)
