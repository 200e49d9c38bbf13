"""Routes for approvers: the inbox, decisions, the whitelist, and sessions on the page's port.

The approver is always the owner of the credential; nothing in a body can change that. One half of a
session's secret is in a cookie that no script can read. The page keeps the other half and sends it
in a header, because browsers send the cookie to every other port of this machine too.
"""

from litestar import Response, delete, get, post
from litestar.datastructures import Cookie
from litestar.params import FromPath, JSONBody
from litestar.response import Stream
from msgspec.structs import asdict

from journeyman.confirm import schemas as api
from journeyman.confirm.schemas import to_schema
from journeyman.confirm.server.errors import raise_if_refused
from journeyman.confirm.server.guards import approver_guard, session_guard
from journeyman.confirm.server.request_context import SESSION_COOKIE, ApiRequest
from journeyman.records.confirmation import Channel, Refusal, VoteChoice, WhitelistEntry

_PLAIN_DENIAL = api.Decision()


@get("/inbox/events", guards=[approver_guard], media_type="text/event-stream")
async def stream_inbox(request: ApiRequest) -> Stream:
    """Stream every change of every confirmation as server-sent events. The first events are the
    pending confirmations, oldest first. Each event `confirmation` carries the whole confirmation.
    """
    await request.service.note("viewed", request.user, inbox="all that waits, and every change")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Stream(request.inbox_events(), media_type="text/event-stream", headers=headers)


@post("/confirm/{confirmation_id:str}/approve", guards=[approver_guard], status_code=200)
async def approve(
    request: ApiRequest, confirmation_id: FromPath[str], data: JSONBody[api.Decision]
) -> api.Card:
    """Approve what the digest identifies. The confirmation may stay pending: some actions need more
    than one person.
    """
    return await _decide(request, confirmation_id, "approve", data)


@post("/confirm/{confirmation_id:str}/deny", guards=[approver_guard], status_code=200)
async def deny(
    request: ApiRequest,
    confirmation_id: FromPath[str],
    data: JSONBody[api.Decision] = _PLAIN_DENIAL,
) -> api.Card:
    """Deny a confirmation. One denial is enough."""
    return await _decide(request, confirmation_id, "deny", data)


async def _decide(
    request: ApiRequest, id_: str, choice: VoteChoice, data: api.Decision
) -> api.Card:
    channel: Channel = "page" if request.user.kind == "session" else "api"
    ballot = api.Ballot(choice=choice, channel=channel, **asdict(data))
    card = await request.get_visible_card(id_)
    decided = await request.service.decide(card.id, ballot, request.user)
    return request.to_card(raise_if_refused(decided))


@get("/whitelist", guards=[approver_guard])
async def whitelist(request: ApiRequest) -> api.Whitelist:
    """List the actions that need no confirmation. Each entry has its author and number of uses."""
    entries = await request.service.whitelist()
    return api.Whitelist(whitelist=[to_schema(entry, api.ListedEntry) for entry in entries])


@post("/whitelist", guards=[approver_guard])
async def add_to_whitelist(
    request: ApiRequest, data: JSONBody[api.NewWhitelistEntry]
) -> api.ListedEntry:
    """Allow an action without confirmation from now on, within the limits of the entry. Actions
    that can never be bypassed are refused.
    """
    fields, now = asdict(data), request.service.clock()
    expires_in_s = fields.pop("expires_in_seconds")
    fields["expires_at"] = None if expires_in_s is None else now + expires_in_s
    entry = WhitelistEntry(id="", added_by=request.user.name, added_at=now, **fields)
    added = raise_if_refused(await request.service.add_to_whitelist(entry, request.user))
    return to_schema(added, api.ListedEntry)


@delete("/whitelist/{entry_id:str}", guards=[approver_guard], status_code=200)
async def revoke_from_whitelist(request: ApiRequest, entry_id: FromPath[str]) -> api.ListedEntry:
    """Revoke a whitelist entry. The entry is kept as revoked, and no longer listed."""
    revoked = raise_if_refused(await request.service.revoke(entry_id[:64], request.user))
    return to_schema(revoked, api.ListedEntry)


APPROVER_ROUTES = (
    stream_inbox,
    approve,
    deny,
    whitelist,
    add_to_whitelist,
    revoke_from_whitelist,
)


@post("/login", status_code=200)
async def log_in(request: ApiRequest, data: JSONBody[api.LoginRequest]) -> Response[api.Session]:
    """Log in on the page. Takes the name and the key of an approver."""
    return await _start_session(request, await request.service.log_in(data.name, data.key))


@post("/links/open", status_code=200)
async def open_link(request: ApiRequest, data: JSONBody[api.LinkRequest]) -> Response[api.Session]:
    """Log in with a one-time link. The link becomes invalid."""
    token = data.link.rpartition("#")[2]
    return await _start_session(request, await request.service.open_link(token))


@post("/logout", guards=[session_guard], status_code=200)
async def log_out(request: ApiRequest) -> Response[dict[str, str]]:
    """Log out. The session ends here and in every other tab."""
    await request.service.log_out(request.user)
    return Response({}, cookies=[_session_cookie(request, "", max_age_s=0)])


@get("/me", guards=[session_guard])
async def me(request: ApiRequest) -> api.Person:
    """Get the logged-in person."""
    return to_schema(request.user, api.Person)


async def _start_session(
    request: ApiRequest, login: api.LoggedIn | Refusal
) -> Response[api.Session]:
    if isinstance(login, Refusal):
        await request.service.refused_stranger(f"POST {request.scope['path']}")
    login = raise_if_refused(login)
    person = login.credential
    session = to_schema({**asdict(person), "csrf": login.csrf}, api.Session)
    max_age_s = None if person.expires_at is None else int(person.expires_at - person.created_at)
    return Response(session, cookies=[_session_cookie(request, login.secret, max_age_s=max_age_s)])


def _session_cookie(request: ApiRequest, secret: str, *, max_age_s: int | None) -> Cookie:
    return Cookie(
        key=SESSION_COOKIE,
        value=secret,
        max_age=max_age_s,
        httponly=True,
        samesite="strict",
        secure=request.context.options.shown_page_url.startswith("https:"),
    )


SESSION_ROUTES = (log_in, open_link, log_out, me)
