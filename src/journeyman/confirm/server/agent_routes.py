"""Routes for agents: request an action, wait for the decision, cancel and redeem. Approvers share
those that read and cancel. The requester is always the owner of the credential; nothing in a body
can change that.
"""

from typing import Annotated

from litestar import Response, get, post
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter
from msgspec.structs import asdict

from journeyman.confirm import schemas as api
from journeyman.confirm.schemas import to_schema
from journeyman.confirm.server.errors import ApiError, raise_if_refused
from journeyman.confirm.server.guards import agent_guard, any_credential_guard
from journeyman.confirm.server.request_context import ApiRequest
from journeyman.records.confirmation import SETTLED, ConfirmationStatus, Submission

_MAX_WAIT_S = 60
_NO_REASON = api.Cancellation()

Wait = Annotated[float, QueryParameter(ge=0, le=_MAX_WAIT_S)]
IdempotencyKey = Annotated[str, HeaderParameter(name="Idempotency-Key", max_length=200)]
Limit = Annotated[int, QueryParameter(ge=1, le=500)]
CardId = Annotated[str, QueryParameter(max_length=64, pattern="^[A-Za-z0-9_-]*$")]


@post("/confirm", guards=[agent_guard], status_code=202)
async def submit(
    request: ApiRequest,
    data: JSONBody[api.NewConfirmation],
    idempotency_key: IdempotencyKey = "",
) -> Response[api.SubmittedCard]:
    """Request confirmation of an action. Returns 202 with a pending confirmation, or 200 when no
    person is needed. A timeout outside 30 to 3,600 seconds is adjusted; `warnings` says so. The
    header Idempotency-Key is the same as idempotency_key in the body.
    """
    if not data.action.strip() or not data.description.strip():
        raise ApiError("bad_request", "State what to do, in both action and description.")
    if idempotency_key and data.idempotency_key not in ("", idempotency_key):
        raise ApiError(
            "bad_request",
            "The header Idempotency-Key differs from idempotency_key in the body. Send one of "
            "them, or the same value in both.",
            {"field": "idempotency_key"},
        )
    fields = asdict(data) | {"requester": request.user.name, "claimed": data.requester}
    fields["idempotency_key"] = data.idempotency_key or idempotency_key
    del fields["timeout_seconds"]
    submission = Submission(timeout_s=data.timeout_s, **fields)
    accepted = raise_if_refused(await request.service.submit(submission))
    card = request.to_card_type(
        api.SubmittedCard,
        accepted.confirmation,
        shared=accepted.shared,
        replayed=accepted.replayed,
        warnings=data.warnings,
    )
    return Response(card, status_code=202 if card.status == "pending" else 200)


@get("/confirm/{confirmation_id:str}", guards=[any_credential_guard], operation_id="look")
async def get_confirmation(
    request: ApiRequest, confirmation_id: FromPath[str], wait: Wait = 0.0
) -> api.Card:
    """Get a confirmation, at once or when it is decided. Waits up to `wait` seconds. An agent sees
    only its own.
    """
    confirmation = await request.get_visible_card(confirmation_id)
    if request.user.kind != "agent":
        await request.service.viewed(confirmation, request.user)
    if wait > 0 and confirmation.status not in SETTLED:
        confirmation = await request.service.wait(confirmation.id, wait) or confirmation
    return request.to_card(confirmation)


@post("/confirm/{confirmation_id:str}/cancel", guards=[any_credential_guard], status_code=200)
async def cancel(
    request: ApiRequest,
    confirmation_id: FromPath[str],
    data: JSONBody[api.Cancellation] = _NO_REASON,
) -> api.Card:
    """Cancel a confirmation. The agent that requested it and every approver can do this."""
    card = await request.get_visible_card(confirmation_id)
    cancelled = await request.service.cancel(card.id, request.user, data.reason)
    return request.to_card(raise_if_refused(cancelled))


@post("/confirm/{confirmation_id:str}/redeem", guards=[agent_guard], status_code=200)
async def redeem(
    request: ApiRequest, confirmation_id: FromPath[str], data: JSONBody[api.Redemption]
) -> api.Grant:
    """Redeem an approval, once. The grant permits exactly these details to be executed now."""
    card = await request.get_visible_card(confirmation_id)
    redeemed = await request.service.redeem(card.id, request.user, data.digest, data.details)
    granted = raise_if_refused(redeemed)
    confirmation = granted.confirmation
    return to_schema(
        {
            **asdict(confirmation),
            "details": confirmation.approved_details,
            "grant": granted.grant,
        },
        api.Grant,
    )


@get("/confirmations", guards=[any_credential_guard], operation_id="list")
async def list_confirmations(
    request: ApiRequest,
    status: FromQuery[ConfirmationStatus | None] = None,
    limit: Limit = 50,
    before: CardId = "",
) -> api.Cards:
    """List confirmations, newest first. A person sees all, an agent its own. `before` is the last
    id of the previous page.
    """
    requester = request.user.name if request.user.kind == "agent" else ""
    confirmations = await request.service.list(
        status=status, requester=requester, limit=limit, before=before
    )
    if not requester:
        ids = [confirmation.id for confirmation in confirmations]
        await request.service.note("viewed", request.user, cards=ids)
    return api.Cards(confirmations=[request.to_card(item) for item in confirmations])


AGENT_ROUTES = (
    submit,
    get_confirmation,
    cancel,
    redeem,
    list_confirmations,
)
