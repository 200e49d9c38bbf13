"""Who asks, and whether they may. An agent has a token, a person a key or a session in the browser;
each route names one of the checks below, and what is decided is decided under the credential's own
name, whatever a body says.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from litestar import Request

from journeyman.confirm import credentials
from journeyman.confirm.deciding import actor_of
from journeyman.confirm.server.answer import Answer
from journeyman.confirm.server.desk import Asked, desk_of
from journeyman.confirm.server.doors import Seen
from journeyman.confirm.server.problems import problem
from journeyman.records.confirmation import Confirmation, Credential

COOKIE = "journeyman_session"
ANONYMOUS = Credential(id="anonymous", kind="agent", name="anonymous", created_at=0.0)

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What an id, or the beginning of one, can look like."""

_COOKIE = f"{COOKIE}=".encode()
_BEARER = b"bearer "

Check = Answer | None
"""What a check answers: why not, or nothing when the request may go on."""


def seen_in(request: Request[Any, Any, Any]) -> Seen:
    """The headers that the doors looked at."""
    seen: Seen = request.scope["state"]["seen"]
    return seen


def session_cookie(request: Request[Any, Any, Any]) -> str:
    """What the session's cookie says; empty without one."""
    for part in seen_in(request).get(b"cookie", b"").split(b";"):
        stripped = part.strip()
        if stripped.startswith(_COOKIE):
            return stripped[len(_COOKIE) :].decode("latin-1")
    return ""


async def agents(request: Asked) -> Check:
    """Only agents: they ask for things and use what was approved."""
    return await _known(request) or (
        None
        if request.user.kind == "agent"
        else problem(
            "not_allowed",
            f"This is for agents. {request.user.name} is a person: use an agent's token.",
        )
    )


async def approvers(request: Asked) -> Check:
    """Only people, with their whole account. An agent that tries is written down."""
    refused = await _known(request)
    if refused is not None:
        return refused
    by = request.user
    if by.kind == "agent":
        about = {"at": f"{request.method} {_path(request)}", "why": "an agent may not do this"}
        await desk_of(request).refusals.known(actor_of(by), about, _card_id(request))
        return problem(
            "not_allowed", "An agent's token cannot do this. A person does it with their own key."
        )
    if by.view_only:
        return problem("not_allowed", "This link lets you look at one card. Log in to decide.")
    return None


async def agents_or_approvers(request: Asked) -> Check:
    """Everybody with a credential of their own."""
    refused = await _known(request)
    if refused is None and request.user.view_only:
        return problem("not_allowed", "This link lets you look at one card. Log in for more.")
    return refused


async def lookers(request: Asked) -> Check:
    """Everybody who is known; which card they see is for `may_see`."""
    return await _known(request)


async def sessions(request: Asked) -> Check:
    """Only people in a browser."""
    if b"authorization" not in seen_in(request) and not _session_secret(request):
        return _who_are_you()  # the page asks this before anybody has logged in
    refused = await _known(request)
    if refused is None and request.user.kind != "session":
        return problem("not_allowed", "This is for the page, after logging in.")
    return refused


def may_see(by: Credential, card: Confirmation) -> bool:
    """Whether a card is shown to somebody: an agent sees its own, a link's session the one."""
    if by.kind == "agent":
        return card.requester == by.name
    return not by.view_only or by.view_only == card.id


def still_known(request: Asked) -> Callable[[], Awaitable[bool]]:
    """Asks again whether the sender of a request is known: for what goes on for long."""
    service, by = desk_of(request).service, request.user
    secret = str(request.scope["state"].get("secret", ""))

    async def ask() -> bool:
        return by is ANONYMOUS or await service.authenticate(secret) is not None

    return ask


async def _known(request: Asked) -> Check:
    """Finds who asks and puts it into the request; answers why not when nobody known does."""
    desk, seen = desk_of(request), seen_in(request)
    bearer = seen.get(b"authorization")
    if bearer is not None:
        secret = _bearer_secret(bearer)
    elif desk.port == "page":
        secret = _session_secret(request)
    else:
        secret = ""
    if not secret:
        if not desk.anonymous or bearer is not None:
            return await _unknown(request, "without a credential")
        request.scope["user"] = ANONYMOUS
        return None
    found = await desk.service.authenticate(secret)
    # A session's secret is good only as a cookie, where it needs the token beside it.
    if found is None or (found.kind == "session") is not (bearer is None):
        return await _unknown(request, "with a credential that is not known")
    request.scope["user"] = found
    request.scope["state"]["secret"] = secret
    return None


def _bearer_secret(header: bytes) -> str:
    if header[: len(_BEARER)].lower() != _BEARER:
        return ""
    return header[len(_BEARER) :].strip().decode("latin-1")


def _session_secret(request: Request[Any, Any, Any]) -> str:
    """Both halves of a session's secret; without the page's half the cookie is worth nothing."""
    cookie = session_cookie(request)
    token = seen_in(request).get(b"x-csrf-token", b"").decode("latin-1")
    return credentials.session_secret(cookie, token) if cookie and token else ""


async def _unknown(request: Asked, how: str) -> Answer:
    about = {"at": f"{request.method} {_path(request)}", "why": how}
    await desk_of(request).refusals.stranger(about, _card_id(request))
    return _who_are_you()


def _who_are_you() -> Answer:
    return problem(
        "unauthenticated",
        "The service does not know who asks. Send an agent's token or a person's key as "
        "`Authorization: Bearer …`, or log in on the page.",
    )


def _path(request: Request[Any, Any, Any]) -> str:
    return request.scope["path"][:200]


def _card_id(request: Request[Any, Any, Any]) -> str:
    """The card that a request is about, if it can be one's id: strangers' text is no id."""
    id_ = str(request.scope.get("path_params", {}).get("confirmation_id", ""))
    return id_ if ID.fullmatch(id_) else ""
