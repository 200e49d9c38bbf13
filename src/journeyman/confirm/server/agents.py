"""The routes of agents: ask for an action, wait for the decision, take it back, redeem it."""

from typing import Annotated

from litestar import get, post
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from journeyman.confirm.server.answer import Answer, answered
from journeyman.confirm.server.bodies import Cancelling, NewConfirmation, Redeeming
from journeyman.confirm.server.desk import Asked, Desk, desk_of
from journeyman.confirm.server.documented import BEARER, replies
from journeyman.confirm.server.problems import problem, refused
from journeyman.confirm.server.shapes import CardView, GrantView, SubmittedView
from journeyman.confirm.server.streams import Stream, Told
from journeyman.confirm.server.views import grant_view
from journeyman.confirm.server.waiting import LetGo
from journeyman.confirm.server.who import (
    ID,
    agents,
    agents_or_approvers,
    lookers,
    may_see,
    seen_in,
    still_known,
)
from journeyman.records.confirmation import SETTLED, Confirmation, Refusal, Submission

LONGEST_WAIT_S = 60

_NO_REASON = Cancelling()
Wait = Annotated[
    float, QueryParameter(ge=0, le=LONGEST_WAIT_S, description="Seconds to wait for a decision.")
]


@post(
    "/confirm",
    before_request=agents,
    status_code=202,
    operation_id="submit",
    summary="Ask for an action to be confirmed",
    security=BEARER,
    responses=replies({202: SubmittedView, 200: SubmittedView}, (401, 403, 409, 429), body=True),
)
async def submit(request: Asked, data: JSONBody[NewConfirmation]) -> Answer:
    """202 with a card that waits, or 200 when no person is needed."""
    return await taken(request, data)


async def taken(request: Asked, data: NewConfirmation) -> Answer:
    """The answer to a submission whose sender is known."""
    if not data.action.strip() or not data.description.strip():
        return problem("bad_request", "Say what is to be done, in both action and description.")
    key = seen_in(request).get(b"idempotency-key", b"").decode("latin-1")
    if len(key) > 200 or (key and data.idempotency_key not in ("", key)):
        return problem(
            "bad_request",
            "The header Idempotency-Key is longer than 200 or not the idempotency_key of the body.",
            {"field": "idempotency_key"},
        )
    desk = desk_of(request)
    accepted = await desk.service.submit(
        Submission(
            action=data.action,
            description=data.description,
            details=data.details,
            requester=request.user.name,
            claimed=data.requester,
            session_key=data.session_key,
            timeout_s=data.timeout_seconds,
            idempotency_key=data.idempotency_key or key,
        )
    )
    if isinstance(accepted, Refusal):
        return refused(accepted)
    status = 202 if accepted.confirmation.status == "pending" else 200
    return answered(desk.views.submitted(accepted), status=status)


class Waited(ASGIResponse):
    """The answer to a long poll. It waits while it is being sent, so that nothing but the sending
    is left to do when the decision comes.
    """

    __slots__ = ("_card", "_desk", "_wait_s")

    def __init__(self, desk: Desk, card: Confirmation, wait_s: float) -> None:
        # Without the parent's constructor: it builds what this class does not use.
        self._desk = desk
        self._card = card
        self._wait_s = wait_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        desk, card = self._desk, self._card
        try:
            waited = await desk.waiting.for_(desk.service.wait(card.id, self._wait_s), receive)
            card = waited or card
        except LetGo:
            if not desk.waiting.is_over:
                return  # nobody is there to be answered
        await Answer(desk.views.card_bytes(card))(scope, receive, send)


@get(
    "/confirm/{confirmation_id:str}",
    before_request=lookers,
    operation_id="look",
    summary="A confirmation, at once or as soon as it is decided",
    security=BEARER,
    responses=replies({200: CardView}, (401, 404)),
)
async def look(request: Asked, confirmation_id: FromPath[str], wait: Wait = 0.0) -> ASGIResponse:
    """An agent sees its own."""
    desk = desk_of(request)
    card = await visible_card(request, confirmation_id)
    if isinstance(card, Answer):
        return card
    if request.user.kind != "agent":
        await desk.service.viewed(card, request.user)
    if request.user.view_only:
        return Answer(desk.views.looked_at(card))
    if wait > 0 and card.status not in SETTLED:
        return Waited(desk, card, wait)
    return Answer(desk.views.card_bytes(card))


@get(
    "/confirm/{confirmation_id:str}/events",
    before_request=lookers,
    operation_id="follow",
    summary="A confirmation's changes as server-sent events, until it is settled",
    security=BEARER,
    responses=replies({200: str}, (401, 404, 429), media="text/event-stream"),
)
async def follow(request: Asked, confirmation_id: FromPath[str]) -> ASGIResponse:
    """Each event `confirmation` carries the whole card."""
    desk = desk_of(request)
    card = await visible_card(request, confirmation_id)
    if isinstance(card, Answer):
        return card
    if full := desk.waiting.full_for(request.user.id):
        return problem("over_limit", full)
    if request.user.kind != "agent":
        await desk.service.viewed(card, request.user)
    id_ = card.id

    async def present() -> list[Confirmation]:
        return [await desk.service.get(id_) or card]

    return Stream(
        desk,
        Told(
            changes=lambda: desk.service.changes(id_),
            present=present,
            until_settled=True,
            still_allowed=still_known(request),
            shown=desk.views.looked_at if request.user.view_only else desk.views.card_bytes,
        ),
    )


@post(
    "/confirm/{confirmation_id:str}/cancel",
    before_request=agents_or_approvers,
    status_code=200,
    operation_id="cancel",
    summary="Take a request back",
    security=BEARER,
    responses=replies({200: CardView}, (401, 404, 409, 410), body=True),
)
async def cancel(
    request: Asked, confirmation_id: FromPath[str], data: JSONBody[Cancelling] = _NO_REASON
) -> Answer:
    """By the agent that asked, or by a person."""
    desk = desk_of(request)
    card = await visible_card(request, confirmation_id)
    if isinstance(card, Answer):
        return card
    done = await desk.service.cancel(card.id, request.user, data.reason)
    return refused(done) if isinstance(done, Refusal) else Answer(desk.views.card_bytes(done))


@post(
    "/confirm/{confirmation_id:str}/redeem",
    before_request=agents,
    status_code=200,
    operation_id="redeem",
    summary="Use an approval, once",
    security=BEARER,
    responses=replies({200: GrantView}, (401, 403, 404, 409, 410), body=True),
)
async def redeem(
    request: Asked, confirmation_id: FromPath[str], data: JSONBody[Redeeming]
) -> Answer:
    """The grant says that exactly these details may be done now."""
    desk = desk_of(request)
    card = await visible_card(request, confirmation_id)
    if isinstance(card, Answer):
        return card
    granted = await desk.service.redeem(card.id, request.user, data.digest, data.details)
    return refused(granted) if isinstance(granted, Refusal) else answered(grant_view(granted))


async def visible_card(request: Asked, id_: str) -> Confirmation | Answer:
    """The card that is asked for, or that there is none: to who may not see it, there is none."""
    card = await desk_of(request).service.get(id_) if ID.fullmatch(id_) else None
    if card is None or not may_see(request.user, card):
        return problem("unknown", "There is no such confirmation, or it is not yours to see.")
    return card


ROUTES = (submit, look, follow, cancel, redeem)
