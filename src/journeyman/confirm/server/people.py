"""The routes of people: what waits for them, and their decisions. The approver is always the owner
of the credential; nothing in a body can say otherwise.
"""

from typing import Annotated

from litestar import get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.response.base import ASGIResponse

from journeyman.confirm.answers import Ballot
from journeyman.confirm.server.agents import visible_card
from journeyman.confirm.server.answer import Answer, answered
from journeyman.confirm.server.bodies import Approving, Denying
from journeyman.confirm.server.desk import Asked, desk_of
from journeyman.confirm.server.documented import BEARER, replies
from journeyman.confirm.server.problems import problem, refused
from journeyman.confirm.server.shapes import CardsView, CardView
from journeyman.confirm.server.streams import Stream, Told
from journeyman.confirm.server.who import agents_or_approvers, approvers, still_known
from journeyman.records.confirmation import (
    Channel,
    Confirmation,
    ConfirmationStatus,
    Refusal,
)

_PLAIN_NO = Denying()
_PRESENT = 200
"""How many waiting cards a stream of all begins with."""

Limit = Annotated[int, QueryParameter(ge=1, le=500)]
_DECIDED = replies({200: CardView}, (401, 403, 404, 409, 410, 412), body=True)


@post(
    "/confirm/{confirmation_id:str}/approve",
    before_request=approvers,
    status_code=200,
    operation_id="approve",
    summary="Say yes to what the digest stands for",
    security=BEARER,
    responses=_DECIDED,
)
async def approve(
    request: Asked, confirmation_id: FromPath[str], data: JSONBody[Approving]
) -> Answer:
    """The card may still be pending after it: some actions need more than one person."""
    ballot = Ballot(
        choice="approve",
        digest=data.digest,
        reason=data.reason,
        edited=data.details,
        code=data.code,
        typed=data.typed,
        channel=_channel(request),
    )
    return await _decided(request, confirmation_id, ballot)


@post(
    "/confirm/{confirmation_id:str}/deny",
    before_request=approvers,
    status_code=200,
    operation_id="deny",
    summary="Say no",
    security=BEARER,
    responses=_DECIDED,
)
async def deny(
    request: Asked, confirmation_id: FromPath[str], data: JSONBody[Denying] = _PLAIN_NO
) -> Answer:
    """One no is enough."""
    ballot = Ballot(
        choice="deny", digest=data.digest, reason=data.reason, channel=_channel(request)
    )
    return await _decided(request, confirmation_id, ballot)


async def _decided(request: Asked, id_: str, ballot: Ballot) -> Answer:
    desk = desk_of(request)
    card = await visible_card(request, id_)
    if isinstance(card, Answer):
        return card
    done = await desk.service.decide(card.id, ballot, request.user)
    return refused(done) if isinstance(done, Refusal) else Answer(desk.views.card_bytes(done))


def _channel(request: Asked) -> Channel:
    return "page" if request.user.kind == "session" else "api"


@get(
    "/confirmations",
    before_request=agents_or_approvers,
    operation_id="list",
    summary="Confirmations, newest first",
    security=BEARER,
    responses=replies({200: CardsView}, (401,)),
)
async def listed(
    request: Asked,
    status: FromQuery[ConfirmationStatus | None] = None,
    limit: Limit = 50,
    before: Annotated[str, QueryParameter(max_length=64, pattern="^[A-Za-z0-9_-]*$")] = "",
) -> Answer:
    """A person sees all, an agent its own. `before` is the id of the last one seen."""
    desk = desk_of(request)
    own = request.user.name if request.user.kind == "agent" else ""
    found = await desk.service.list(status=status, requester=own, limit=limit, before=before)
    if not own:
        await desk.service.viewed_many(request.user, cards=[card.id for card in found])
    return answered(CardsView(confirmations=[desk.views.card(card) for card in found]))


@get(
    "/inbox/events",
    before_request=approvers,
    operation_id="followAll",
    summary="Every change of every confirmation as server-sent events",
    description="The first events are the confirmations that wait, oldest first.",
    security=BEARER,
    responses=replies({200: str}, (401, 429), media="text/event-stream"),
)
async def inbox(request: Asked) -> ASGIResponse:
    """Each event `confirmation` carries the whole card."""
    desk = desk_of(request)
    service = desk.service
    if full := desk.waiting.full_for(request.user.id):
        return problem("over_limit", full)
    await service.viewed_many(request.user, inbox="all that waits, and every change")

    async def present() -> list[Confirmation]:
        return list(reversed(await service.list(status="pending", limit=_PRESENT)))

    return Stream(
        desk,
        Told(
            changes=service.changes,
            present=present,
            until_settled=False,
            still_allowed=still_known(request),
            shown=desk.views.card_bytes,
        ),
    )


ROUTES = (approve, deny, listed, inbox)
