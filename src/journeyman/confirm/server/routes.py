"""The routes: agents ask, wait, take back and redeem; people look and decide, keep an eye on the
whitelist, the audit log and the policy, and log in on the page's port. Who asks or decides is
always the owner of the credential; nothing in a body can say otherwise.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Annotated, Any

import msgspec
from litestar import Response, delete, get, post
from litestar.datastructures import Cookie
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter
from litestar.response import Stream
from msgspec.structs import asdict, replace

from journeyman.confirm import schemas as api
from journeyman.confirm.audit import Format, exported
from journeyman.confirm.schemas import shown
from journeyman.confirm.server.openapi import answers
from journeyman.confirm.server.problems import Refused, allowed
from journeyman.confirm.server.request import (
    COOKIE,
    LARGEST_INTEGER,
    KnownRequest,
    agents,
    agents_or_approvers,
    approvers,
    sessions,
    viewers,
)
from journeyman.records.confirmation import (
    SETTLED,
    Choice,
    Confirmation,
    ConfirmationStatus,
    Refusal,
    Submission,
    WhitelistEntry,
)
from journeyman.version import __version__

_LONGEST_WAIT_S = 60
_PRESENT = 200
"""How many waiting cards a stream of all begins with."""
_NO_REASON = api.Cancellation()
_PLAIN_NO = api.Denial()
_EVENT_STREAM = "text/event-stream"
_HEARTBEAT = b": still here\n\n"
_EXPORTED_TOGETHER = 500
_EXPORTED_AS: dict[Format, str] = {"jsonl": "application/jsonl", "csv": "text/csv"}

Wait = Annotated[float, QueryParameter(ge=0, le=_LONGEST_WAIT_S)]
IdempotencyKey = Annotated[str, HeaderParameter(name="Idempotency-Key", max_length=200)]
Limit = Annotated[int, QueryParameter(ge=1, le=500)]
CardId = Annotated[str, QueryParameter(max_length=64, pattern="^[A-Za-z0-9_-]*$")]
Before = Annotated[int, QueryParameter(ge=1, le=LARGEST_INTEGER)]


@post("/confirm", guards=[agents], status_code=202, responses=answers(api.SubmittedCard))
async def submit(
    request: KnownRequest,
    data: JSONBody[api.NewConfirmation],
    idempotency_key: IdempotencyKey = "",
) -> Response[api.SubmittedCard]:
    """Ask for an action to be confirmed. 202 with a card that waits, or 200 when no person is
    needed. The header Idempotency-Key is the same as idempotency_key in the body.
    """
    if not data.action.strip() or not data.description.strip():
        raise Refused("bad_request", "Say what is to be done, in both action and description.")
    if idempotency_key and data.idempotency_key not in ("", idempotency_key):
        raise Refused(
            "bad_request",
            "The header Idempotency-Key is not the idempotency_key of the body.",
            {"field": "idempotency_key"},
        )
    given = asdict(data) | {"requester": request.user.name, "claimed": data.requester}
    given["idempotency_key"] = data.idempotency_key or idempotency_key
    submission = Submission(timeout_s=given.pop("timeout_seconds"), **given)
    accepted = allowed(await request.service.submit(submission))
    options, asked = request.context.options, accepted.confirmation
    own = f"{options.agents_url}/confirm/{asked.id}"
    urls = {way: f"{own}/{way}" for way in ("events", "cancel", "redeem")}
    page = f"{options.shown_page_url}/#/card/{asked.id}"
    card = request.card_as(
        api.SubmittedCard,
        asked,
        shared=accepted.shared,
        replayed=accepted.replayed,
        limit=shown(accepted.limit, api.LimitLeft),
        urls={"self": own, "wait": f"{own}?wait=25", **urls, "page": page},
    )
    return Response(card, status_code=202 if card.status == "pending" else 200)


@get("/confirm/{confirmation_id:str}", guards=[viewers])
async def look(request: KnownRequest, confirmation_id: FromPath[str], wait: Wait = 0.0) -> api.Card:
    """A confirmation, at once or as soon as it is decided. At the latest after `wait` seconds; an
    agent sees its own.
    """
    card = await request.visible_card(confirmation_id)
    if request.user.kind != "agent":
        await request.service.viewed(card, request.user)
    if wait > 0 and card.status not in SETTLED:
        waiting = request.service.wait(card.id, wait)
        card = await request.context.open_requests.poll(waiting, request.receive) or card
    return request.card(card)


@get(
    "/confirm/{confirmation_id:str}/events",
    guards=[viewers],
    media_type=_EVENT_STREAM,
    responses=answers(str, _EVENT_STREAM),
)
async def follow(request: KnownRequest, confirmation_id: FromPath[str]) -> Stream:
    """A confirmation's changes as server-sent events, until it is settled. Each event
    `confirmation` carries the whole card.
    """
    card = await request.visible_card(confirmation_id)
    request.context.open_requests.take_place(request.scope, request.user.id)
    if request.user.kind != "agent":
        await request.service.viewed(card, request.user)
    return _stream(request, card.id)


@get(
    "/inbox/events",
    guards=[approvers],
    media_type=_EVENT_STREAM,
    responses=answers(str, _EVENT_STREAM),
)
async def follow_all(request: KnownRequest) -> Stream:
    """Every change of every confirmation as server-sent events. The first events are the
    confirmations that wait, oldest first. Each event `confirmation` carries the whole card.
    """
    request.context.open_requests.take_place(request.scope, request.user.id)
    await request.service.note("viewed", request.user, inbox="all that waits, and every change")
    return _stream(request)


def _stream(request: KnownRequest, id_: str = "") -> Stream:
    """The changes of one card until it is settled, or of all, until the client or the service goes
    away.
    """
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Stream(_events(request, id_), media_type=_EVENT_STREAM, headers=headers)


async def _events(request: KnownRequest, id_: str) -> AsyncIterator[bytes]:
    changes = request.service.changes(id_)

    async def following() -> Confirmation | None:
        return await anext(changes, None)

    change = asyncio.create_task(following())
    try:
        await asyncio.sleep(0)  # lets it begin to listen: read after that, no state is missed
        waiting = () if id_ else await request.service.list(status="pending", limit=_PRESENT)
        news = (await request.service.get(id_),) if id_ else (*reversed(waiting),)
        while True:
            for card in news:
                if card is None:
                    return
                data = msgspec.json.encode(request.card(card))
                yield b"event: confirmation\ndata: %s\n\n" % data
                if id_ and card.status in SETTLED:
                    return
            await asyncio.wait((change,), timeout=request.context.heartbeat_s)
            # A credential may be revoked while its stream is open.
            if not await request.is_still_known():
                return
            news = ()
            if change.done():
                news, change = (change.result(),), asyncio.create_task(following())
            else:
                yield _HEARTBEAT
    finally:
        change.cancel()
        await asyncio.wait((change,))
        await changes.aclose()


@post("/confirm/{confirmation_id:str}/cancel", guards=[agents_or_approvers], status_code=200)
async def cancel(
    request: KnownRequest,
    confirmation_id: FromPath[str],
    data: JSONBody[api.Cancellation] = _NO_REASON,
) -> api.Card:
    """Take a request back. By the agent that asked, or by a person."""
    card = await request.visible_card(confirmation_id)
    return request.card(allowed(await request.service.cancel(card.id, request.user, data.reason)))


@post("/confirm/{confirmation_id:str}/redeem", guards=[agents], status_code=200)
async def redeem(
    request: KnownRequest, confirmation_id: FromPath[str], data: JSONBody[api.Redemption]
) -> api.Grant:
    """Use an approval, once. The grant says that exactly these details may be done now."""
    card = await request.visible_card(confirmation_id)
    redeemed = await request.service.redeem(card.id, request.user, data.digest, data.details)
    granted = allowed(redeemed)
    done = granted.confirmation
    return shown(
        {**asdict(done), "details": done.approved_details, "grant": granted.grant}, api.Grant
    )


@post("/confirm/{confirmation_id:str}/approve", guards=[approvers], status_code=200)
async def approve(
    request: KnownRequest, confirmation_id: FromPath[str], data: JSONBody[api.Approval]
) -> api.Card:
    """Say yes to what the digest stands for. The card may still be pending after it: some actions
    need more than one person.
    """
    return await _decided(request, confirmation_id, "approve", data)


@post("/confirm/{confirmation_id:str}/deny", guards=[approvers], status_code=200)
async def deny(
    request: KnownRequest,
    confirmation_id: FromPath[str],
    data: JSONBody[api.Denial] = _PLAIN_NO,
) -> api.Card:
    """Say no. One no is enough."""
    return await _decided(request, confirmation_id, "deny", data)


async def _decided(
    request: KnownRequest, id_: str, choice: Choice, data: api.Approval | api.Denial
) -> api.Card:
    by, given = request.user, asdict(data)
    given |= {"choice": choice, "channel": "page" if by.kind == "session" else "api"}
    ballot = api.Ballot(edited=given.pop("details", None), **given)
    card = await request.visible_card(id_)
    return request.card(allowed(await request.service.decide(card.id, ballot, by)))


@get("/confirmations", guards=[agents_or_approvers])
async def list_(
    request: KnownRequest,
    status: FromQuery[ConfirmationStatus | None] = None,
    limit: Limit = 50,
    before: CardId = "",
) -> api.Cards:
    """Confirmations, newest first. A person sees all, an agent its own. `before` is the id of the
    last one seen.
    """
    own = request.user.name if request.user.kind == "agent" else ""
    found = await request.service.list(status=status, requester=own, limit=limit, before=before)
    if not own:
        await request.service.note("viewed", request.user, cards=[card.id for card in found])
    return api.Cards(confirmations=[request.card(card) for card in found])


@get("/whitelist", guards=[approvers])
async def whitelist(request: KnownRequest) -> api.Whitelist:
    """What is let through without asking. With who added each entry and how often it was used."""
    found = await request.service.whitelist()
    return api.Whitelist(whitelist=[shown(entry, api.ListedEntry) for entry in found])


@post("/whitelist", guards=[approvers])
async def add_to_whitelist(
    request: KnownRequest, data: JSONBody[api.NewWhitelistEntry]
) -> api.ListedEntry:
    """Let an action through from now on. As far as the entry says; what can never be bypassed is
    refused.
    """
    given, now = asdict(data), time.time()
    lasts = given.pop("expires_in_seconds")
    given["expires_at"] = None if lasts is None else now + lasts
    entry = WhitelistEntry(id="", added_by=request.user.name, added_at=now, **given)
    return shown(
        allowed(await request.service.add_to_whitelist(entry, request.user)), api.ListedEntry
    )


@delete("/whitelist/{entry_id:str}", guards=[approvers], status_code=200)
async def revoke_from_whitelist(request: KnownRequest, entry_id: FromPath[str]) -> api.ListedEntry:
    """Take an entry off the whitelist. The entry is kept, as revoked, and no longer listed."""
    return shown(
        allowed(await request.service.revoke(entry_id[:64], request.user)), api.ListedEntry
    )


@get("/audit", guards=[approvers])
async def audit(
    request: KnownRequest,
    limit: Limit = 50,
    before: Before = LARGEST_INTEGER,
    confirmation: CardId = "",
) -> api.AuditPage:
    """The audit log, newest first. From the entry before `before` on, or on one confirmation."""
    found = await request.service.audit(limit=limit, before=before, confirmation=confirmation)
    return api.AuditPage(audit=[shown(entry, api.ListedEvent) for entry in found])


@get("/audit/export", guards=[approvers], responses=answers(str, _EXPORTED_AS["jsonl"]))
async def export_audit(
    request: KnownRequest, format_: Annotated[Format, QueryParameter(name="format")] = "jsonl"
) -> Stream:
    """The whole audit log as a file, oldest first. In a line of jsonl, sha256 of the line without
    its digest is the digest.
    """
    await request.service.note("exported", request.user, format=format_)
    lines = exported(request.service.confirmations.audit_texts(), format_)

    def parts() -> Iterator[str]:
        while part := "".join(islice(lines, _EXPORTED_TOGETHER)):
            yield part

    name = f'attachment; filename="journeyman-audit.{format_}"'
    headers = {"content-disposition": name, "cache-control": "no-store"}
    return Stream(parts(), media_type=_EXPORTED_AS[format_], headers=headers)


@get("/audit/verify", guards=[approvers])
async def verify_audit(request: KnownRequest) -> api.Verified:
    """Check the chain of the audit log. Names the first entry that does not hold."""
    return await request.service.verify_audit()


@get("/policy", guards=[approvers])
async def policy(request: KnownRequest) -> dict[str, Any]:
    """The policy in force. The rules, and what can never be bypassed."""
    found = request.service.policy
    return {"digest": found.digest, **found.describe()}


@get("/stats", guards=[approvers])
async def stats(request: KnownRequest) -> api.Stats:
    """How people decided lately. Approving nearly all, and fast, means that too much is asked."""
    found = await request.service.stats()
    decided = found.approved + found.denied
    return replace(found, approval_rate=found.approved / decided if decided else None)


@get("/health")
async def health(request: KnownRequest) -> api.Health:
    """Whether the service is there and can write. 503 with the reason when the database cannot be
    written to. Nothing is kept of it.
    """
    await request.context.write_check.passed()
    return api.Health(status="ok", version=__version__, pending=await request.service.pending())


@get("/openapi.json", include_in_schema=False)
async def openapi(request: KnownRequest) -> Response[bytes]:
    """What the routes take and answer."""
    document = await asyncio.to_thread(request.app.state["document"])
    return Response(document, media_type="application/json")


# On the page's port. One half of the session's secret lives in a cookie that no script can read;
# the page keeps the other and sends it in a header, because browsers send the cookie to every other
# port of this machine too.


@post("/login", status_code=200)
async def log_in(request: KnownRequest, data: JSONBody[api.LoginRequest]) -> Response[api.Session]:
    """Log in on the page. With the name and the key of an approver."""
    return await _session(request, await request.service.log_in(data.name, data.key))


@post("/links/open", status_code=200)
async def open_link(
    request: KnownRequest, data: JSONBody[api.LinkRequest]
) -> Response[api.Session]:
    """Open a one-time link. It logs in, or lets one confirmation be looked at, and decides nothing.
    The link is used up.
    """
    return await _session(request, await request.service.open_link(data.link.rpartition("#")[2]))


@post("/logout", guards=[sessions], status_code=200)
async def log_out(request: KnownRequest) -> Response[dict[str, str]]:
    """Log out. The session ends here and in every other tab."""
    await request.service.log_out(request.user)
    return Response({}, cookies=[_cookie(request, "", lasts_s=0)])


@get("/me", guards=[sessions])
async def me(request: KnownRequest) -> api.Person:
    """Who is logged in. And how: with a link, one card may be looked at."""
    return shown(request.user, api.Person)


async def _session(request: KnownRequest, opened: api.LoggedIn | Refusal) -> Response[api.Session]:
    if isinstance(opened, Refusal):
        # Who tries keys or links is no more than a stranger, and must not fill the audit.
        about = {"at": f"POST {request.scope['path']}", "why": opened.code}
        await request.context.refusals.stranger(about)
    by = allowed(opened)
    person = by.credential
    session = shown({**asdict(person), "csrf": by.csrf}, api.Session)
    lasts = None if person.expires_at is None else int(person.expires_at - person.created_at)
    return Response(session, cookies=[_cookie(request, by.secret, lasts_s=lasts)])


def _cookie(request: KnownRequest, secret: str, *, lasts_s: int | None) -> Cookie:
    return Cookie(
        key=COOKIE,
        value=secret,
        max_age=lasts_s,
        httponly=True,
        samesite="strict",
        secure=request.context.options.shown_page_url.startswith("https:"),
    )


ROUTES = (
    *(submit, look, follow, cancel, redeem, approve, deny, list_, follow_all),
    *(whitelist, add_to_whitelist, revoke_from_whitelist, audit, export_audit, verify_audit),
    *(policy, stats, health, openapi),
)
PAGE_ROUTES = (log_in, open_link, log_out, me)
