"""What every route needs: the service, the views, who waits, and which port is asked."""

from collections.abc import Callable
from typing import Any, Literal, cast

from litestar import Request
from litestar.datastructures import State
from msgspec import Struct

from journeyman.confirm.server.refusals import RefusalBook
from journeyman.confirm.server.views import Views
from journeyman.confirm.server.waiting import Waiting
from journeyman.confirm.service import Service
from journeyman.records.confirmation import Credential

Port = Literal["agents", "page"]
Asked = Request[Credential, None, State]
"""A request whose sender is known: `user` is the credential."""


class Desk(Struct, frozen=True, kw_only=True):
    """What the routes of one port share."""

    service: Service
    views: Views
    waiting: Waiting
    refusals: RefusalBook
    port: Port
    heartbeat_s: float
    """After how long a stream says that it is still there."""
    anonymous: bool = False
    """Whether agents without a token are taken, under the name `anonymous`."""
    secure_cookie: bool = False
    document: Callable[[], bytes]
    """Makes the OpenAPI document."""


def desk_of(request: Request[Any, Any, Any]) -> Desk:
    """The desk that a request came to."""
    return cast("Desk", request.scope["state"]["desk"])
