"""Authentication and route guards. An agent has a token; a person has a key, or a session in the
browser.
"""

from collections.abc import Callable
from typing import Any

from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from journeyman.confirm.credentials import actor_of, may_decide, session_secret
from journeyman.confirm.server.errors import ApiError
from journeyman.confirm.server.request_context import (
    ANONYMOUS,
    ID_PATTERN,
    SESSION_COOKIE,
    ApiRequest,
)
from journeyman.records.confirmation import Credential


def _guard(is_allowed: Callable[[Credential], bool], message: str) -> Guard:
    """Return a guard that admits allowed credentials. Refused agents are recorded in the audit
    log.
    """

    async def guard(request: Any, _: BaseRouteHandler) -> None:
        user = await _authenticate(request)
        if not is_allowed(user):
            if user.kind == "agent":
                # Clients control the id in the path, so it is left out if it cannot be one.
                id_ = str(request.path_params.get("confirmation_id", ""))
                known_id = id_ if ID_PATTERN.fullmatch(id_) else ""
                at = f"{request.method} {request.scope['path'][:200]}"
                about = {"at": at, "why": "an agent may not do this"}
                await request.service.refused(actor_of(user), about, known_id)
            raise ApiError("not_allowed", message)

    return guard


agent_guard = _guard(
    lambda user: user.kind == "agent",
    "Only agents can do this: they request actions and use approvals. Use an agent's token.",
)
approver_guard = _guard(
    may_decide,
    "An agent's token cannot do this. Use a person's key, or log in on the page.",
)
any_credential_guard = _guard(lambda _: True, "")
"""Admits every known credential; `get_visible_card` decides which confirmations it sees."""
session_guard = _guard(
    lambda user: user.kind == "session", "This is only available on the page, after logging in."
)


async def _authenticate(request: ApiRequest) -> Credential:
    """Return the credential of the client and set it as the user of the request. Raise ApiError if
    there is none, or it is unknown.
    """
    context = request.context
    bearer, secret = request.headers.get("authorization"), ""
    if bearer is not None:
        scheme, _, token = bearer.partition(" ")
        secret = token.strip() if scheme.lower() == "bearer" else ""
    elif context.is_page:
        # The cookie alone is not enough: the page keeps the other half of the session's secret.
        halves = (request.cookies.get(SESSION_COOKIE, ""), request.headers.get("x-csrf-token", ""))
        secret = session_secret(*halves) if all(halves) else ""
    user = await context.service.authenticate(secret) if secret else None
    if not secret and context.anonymous and bearer is None:
        user = ANONYMOUS
    # A session's secret is valid only as a cookie, which needs the CSRF token.
    elif user is None or (user.kind == "session") is not (bearer is None):
        if secret:
            at = f"{request.method} {request.scope['path'][:200]}"
            await context.service.refused_stranger(at)
        raise ApiError(
            "unauthenticated",
            "The request has no valid credential. Send an agent's token or a person's key as "
            "`Authorization: Bearer …`, or log in on the page.",
        )
    request.scope["user"] = user
    request.scope["state"]["secret"] = secret
    return user
