"""The page's own routes: logging in and out, who is logged in, and opening a link. One half of the
session's secret lives in a cookie that no script can read; the page keeps the other and sends it in
a header, because browsers send the cookie to every other port of this machine too.
"""

from litestar import get, post
from litestar.params import JSONBody

from journeyman.confirm.answers import LoggedIn
from journeyman.confirm.server.answer import Answer, Header, answered
from journeyman.confirm.server.bodies import LoggingIn, OpeningLink
from journeyman.confirm.server.desk import Asked, Desk, desk_of
from journeyman.confirm.server.documented import NOBODY, SESSION, replies
from journeyman.confirm.server.problems import refused
from journeyman.confirm.server.shapes import LoggedInView, MeView
from journeyman.confirm.server.who import COOKIE, sessions
from journeyman.records.confirmation import Refusal


@post(
    "/login",
    status_code=200,
    operation_id="logIn",
    summary="Log in on the page",
    security=NOBODY,
    responses=replies({200: LoggedInView}, (401,), body=True),
)
async def log_in(request: Asked, data: JSONBody[LoggingIn]) -> Answer:
    """With the name and the key of an approver."""
    desk = desk_of(request)
    return await _opened(desk, await desk.service.log_in(data.name, data.key), "POST /login")


@post(
    "/links/open",
    status_code=200,
    operation_id="openLink",
    summary="Open a one-time link",
    description="It logs in, or lets one confirmation be looked at. It decides nothing.",
    security=NOBODY,
    responses=replies({200: LoggedInView}, (401,), body=True),
)
async def open_link(request: Asked, data: JSONBody[OpeningLink]) -> Answer:
    """The link is used up by it."""
    desk = desk_of(request)
    opened = await desk.service.open_link(data.link.rpartition("#")[2])
    return await _opened(desk, opened, "POST /links/open")


@post(
    "/logout",
    before_request=sessions,
    status_code=200,
    operation_id="logOut",
    summary="Log out",
    security=SESSION,
    responses=replies({200: None}, (401,), body=True),
)
async def log_out(request: Asked) -> Answer:
    """The session ends here and in every other tab."""
    desk = desk_of(request)
    await desk.service.log_out(request.user)
    return answered({}, headers=(_cookie(desk, "", lasts_s=0),))


@get(
    "/me",
    before_request=sessions,
    operation_id="me",
    summary="Who is logged in",
    security=SESSION,
    responses=replies({200: MeView}, (401,)),
)
async def me(request: Asked) -> Answer:
    """And how: with a link, one card may be looked at."""
    by = request.user
    return answered(MeView(name=by.name, has_totp=by.has_totp, view_only=by.view_only))


async def _opened(desk: Desk, found: LoggedIn | Refusal, how: str) -> Answer:
    if isinstance(found, Refusal):
        # Who tries keys or links is no more than a stranger, and must not fill the audit.
        await desk.refusals.stranger({"at": how, "why": found.code})
        return refused(found)
    by = found.credential
    shown = LoggedInView(
        name=by.name, has_totp=by.has_totp, view_only=by.view_only, csrf=found.csrf
    )
    lasts = None if by.expires_at is None else int(by.expires_at - by.created_at)
    return answered(shown, headers=(_cookie(desk, found.secret, lasts_s=lasts),))


def _cookie(desk: Desk, secret: str, *, lasts_s: int | None) -> Header:
    parts = [f"{COOKIE}={secret}", "Path=/", "HttpOnly", "SameSite=Strict"]
    if lasts_s is not None:
        parts.append(f"Max-Age={lasts_s}")
    if desk.secure_cookie:
        parts.append("Secure")
    return b"set-cookie", "; ".join(parts).encode("latin-1")


ROUTES = (log_in, open_link, log_out, me)
