"""The doors of the server: which host a request names, which page it comes from, what kind of body
it brings and how much of it. All of this is looked at before anybody is asked who they are, so that
a web page in somebody's browser cannot reach the service through it.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send
from litestar.utils.scope.state import ScopeState
from msgspec import Struct

from journeyman.confirm.server.answer import Answer, Header
from journeyman.confirm.server.desk import Desk
from journeyman.confirm.server.problems import problem

BODY_LIMIT = 256 * 1024
DRAINED = 8 * 1024 * 1024
"""How much more of a body that is too large is read away, so that its sender sees the answer."""
BODY_WITHIN_S = 10.0

SAFE = frozenset(("GET", "HEAD"))
METHODS = SAFE | {"POST", "DELETE"}

WATCHED = frozenset((
    b"host", b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest", b"content-type",
    b"content-length", b"transfer-encoding", b"authorization", b"cookie", b"x-csrf-token",
    b"idempotency-key",
))  # fmt: skip
"""Headers that decide something. Any of them twice is refused: two readers could pick two."""

Seen = dict[bytes, bytes]
_CLOSE: Header = (b"connection", b"close")

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
SECURITY_HEADERS: tuple[tuple[str, str], ...] = (
    ("content-security-policy", CSP),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
"""On every answer of the page's port, also on what the HTTP server itself says to a broken
request."""
AGENTS_HEADERS: tuple[tuple[str, str], ...] = (("x-content-type-options", "nosniff"),)
"""At the agents' port, where nothing is a page and every browser is turned away."""


class DoorRules(Struct, frozen=True, kw_only=True):
    """Who may come through a port's door."""

    hosts: frozenset[bytes]
    """What the Host header may say, to the letter."""
    origins: frozenset[bytes] = frozenset()
    """Pages that may ask; none at the agents' port."""
    landings: frozenset[str] = frozenset()
    """Paths that a link on another site may lead to."""
    body_within_s: float = BODY_WITHIN_S


def hosts_of(host: str, port: int, others: Iterable[str] = ()) -> frozenset[bytes]:
    """The names under which a port may be called: of this machine, and those that are configured,
    which are taken as they are written and with the port.
    """
    named = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
    given = {name.lower() for name in others}
    found = {f"{name}:{port}" for name in named | given} | given
    if port == 80:
        found |= named
    return frozenset(name.lower().encode() for name in found)


def origins_of(hosts: frozenset[bytes], page_url: str) -> frozenset[bytes]:
    """The pages that are this server's own."""
    return frozenset({b"http://" + host for host in hosts} | {page_url.lower().encode()})


class Doors:
    """An ASGI application around another that lets through only what the rules allow."""

    def __init__(self, app: ASGIApp, rules: DoorRules, desk: Desk) -> None:
        self._app = app
        self._rules = rules
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            return
        seen, twice = _watched(scope["headers"])
        answer = _doubled(twice) if twice else await self._checked(scope, seen)
        if answer is None and scope["method"] not in SAFE:
            body = await _whole_body(receive, seen, self._rules.body_within_s)
            if body is None:
                return
            if isinstance(body, Answer):
                answer = body
            else:
                # Where Litestar keeps a body that it has read.
                ScopeState.from_scope(scope).body = body
        if answer is not None:
            await answer(scope, receive, send)
            return
        scope["state"]["seen"] = seen
        scope["state"]["desk"] = self._desk
        await self._app(scope, receive, send)

    async def _checked(self, scope: HTTPScope, seen: Seen) -> Answer | None:
        method = str(scope["method"])
        foreign = self._foreign(method, scope["path"], seen)
        if foreign:
            about = {"at": scope["path"][:200], "why": foreign}
            await self._desk.refusals.stranger(about)
            return problem("bad_request" if b"host" not in seen else "not_allowed", foreign)
        if method not in METHODS:
            return problem("wrong_method", f"{method} is not used here.")
        if method not in SAFE and not _is_json(method, seen):
            return problem(
                "not_json", "Send the body as JSON, with the header Content-Type: application/json."
            )
        return None

    def _foreign(self, method: str, path: str, seen: Seen) -> str:
        """Why a request comes from where none may come from; empty when it does not."""
        host, origin = seen.get(b"host"), seen.get(b"origin")
        if host is None:
            return "The request does not say which host it is for."
        if host.lower() not in self._rules.hosts:
            return (
                f"This service is not called {_text(host)}. Use the address it was started with, "
                "or add the name to the hosts in its settings."
            )
        if origin is not None and origin.lower() not in self._rules.origins:
            return f"Pages of {_text(origin)} may not use this service."
        site = seen.get(b"sec-fetch-site", b"none").lower()
        if site not in (b"none", b"same-origin") and not self._is_landing(method, path, seen):
            return "Pages of other sites may not use this service."
        if (
            origin is None
            and self._rules.origins
            and method not in SAFE
            and b"authorization" not in seen
        ):
            return "The request does not say which page it comes from."
        return ""

    def _is_landing(self, method: str, path: str, seen: Seen) -> bool:
        """Whether somebody followed a link to the page: in a mail, it is on another site."""
        return (
            method in SAFE
            and path in self._rules.landings
            and seen.get(b"sec-fetch-mode") == b"navigate"
            and seen.get(b"sec-fetch-dest") == b"document"
        )


def _watched(headers: Iterable[tuple[bytes, bytes]]) -> tuple[Seen, bytes]:
    seen: Seen = {}
    for name, value in headers:
        if name in WATCHED:
            if name in seen:
                return seen, name
            seen[name] = value
    return seen, b""


def _doubled(name: bytes) -> Answer:
    return problem("bad_request", f"The header {_text(name)} is there twice. Send it once.")


def _text(value: bytes) -> str:
    return repr(value.decode("latin-1")[:200])


def _has_body(seen: Seen) -> bool:
    return b"transfer-encoding" in seen or seen.get(b"content-length", b"0") != b"0"


def _is_json(method: str, seen: Seen) -> bool:
    kind = seen.get(b"content-type")
    if kind is None:
        # A browser asks before it sends a DELETE to another site, so that one needs no mark.
        return method == "DELETE" and not _has_body(seen)
    return kind.partition(b";")[0].strip().lower() == b"application/json"


async def _whole_body(receive: Receive, seen: Seen, within_s: float) -> bytes | Answer | None:
    """The body; or what is wrong with it; or None when its sender has gone."""
    if not _has_body(seen):
        return b""
    if int(seen.get(b"content-length", b"0")) > BODY_LIMIT:
        return _too_large()
    parts: list[bytes] = []
    size = 0
    more = True
    try:
        async with asyncio.timeout(within_s):
            while more:
                message: Any = await receive()
                if message["type"] == "http.disconnect":
                    return None
                size += len(message["body"])
                more = message["more_body"]
                if size <= BODY_LIMIT:
                    parts.append(message["body"])
                elif size > DRAINED:
                    return _too_large(_CLOSE)
    except TimeoutError:
        late = f"The body did not arrive within {within_s:g} seconds."
        return problem("too_slow", late, headers=(_CLOSE,))
    return b"".join(parts) if size <= BODY_LIMIT else _too_large()


def _too_large(*headers: Header) -> Answer:
    return problem(
        "too_large", f"The body is larger than {BODY_LIMIT // 1024} KB.", headers=headers
    )
