"""Checks on every request before authentication: the host, the origin, and the type of the body.
Foreign web pages in a browser cannot reach the service.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from journeyman.confirm.server.errors import ApiError
from journeyman.records.errors import OutsideProblem

log = logging.getLogger("journeyman.confirm")

MAX_REFUSALS_PER_MINUTE = 20
SAFE_METHODS = frozenset(("GET", "HEAD"))

UNIQUE_HEADERS = frozenset((
    b"host", b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest", b"content-type",
    b"content-length", b"transfer-encoding", b"authorization", b"cookie", b"x-csrf-token",
    b"idempotency-key",
))  # fmt: skip
"""Security-relevant headers. Duplicates are refused: two parsers could pick different values."""

Headers = dict[bytes, bytes]

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
SECURITY_HEADERS = [
    ("content-security-policy", CSP),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
]
"""Sent with every response."""


def allowed_hosts(host: str, port: int, configured: Iterable[str] = ()) -> frozenset[bytes]:
    """Return the accepted Host headers of a port: the names of this machine with the port, and the
    configured names with and without it.
    """
    local = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
    names = {name.lower() for name in configured}
    hosts = {f"{name}:{port}" for name in local | names} | names
    if port == 80:
        hosts |= local
    return frozenset(name.lower().encode() for name in hosts)


def allowed_origins(hosts: frozenset[bytes], page_url: str) -> frozenset[bytes]:
    """Return the origins of this server's own pages."""
    return frozenset({b"http://" + host for host in hosts} | {page_url.lower().encode()})


class RefusalLog:
    """Audit entries for unauthenticated requests that were refused, limited per minute so that they
    cannot fill the audit log. `write` takes the actor, the details and the confirmation id.
    """

    def __init__(
        self,
        write: Callable[[str, dict[str, Any], str], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._clock = clock
        self._minute = -1
        self._count = 0

    async def record(self, details: dict[str, Any], confirmation: str = "") -> None:
        """Record a refusal of a client without a credential, or with an unknown one."""
        minute = int(self._clock() // 60)
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        if self._count <= MAX_REFUSALS_PER_MINUTE:
            try:
                await self._write("stranger", details, confirmation)
            except OutsideProblem as problem:  # the request is refused all the same
                log.warning("a refusal was not written to the audit log: %s", problem)


class RequestValidationMiddleware(ASGIMiddleware):
    """Passes on only valid requests. A request must be addressed to one of `hosts`, and come from
    one of `origins` (the server's own pages) or follow a link on another site to one of
    `landing_paths`.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(
        self,
        refusals: RefusalLog,
        *,
        hosts: frozenset[bytes],
        origins: frozenset[bytes] = frozenset(),
        landing_paths: Iterable[str] = (),
    ) -> None:
        self._refusals = refusals
        self._hosts = hosts
        self._origins = origins
        self._landing_paths = frozenset(landing_paths)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        headers = _unique_headers(scope["headers"])
        method = str(scope.get("method", ""))
        if reason := self._origin_problem(method, scope["path"], headers):
            await self._refusals.record({"at": scope["path"][:200], "why": reason})
            raise ApiError("not_allowed" if b"host" in headers else "bad_request", reason)
        if method == "OPTIONS":  # Litestar would answer it automatically
            raise ApiError("wrong_method", "OPTIONS is not supported.")
        if method not in SAFE_METHODS:
            length = headers.get(b"content-length", b"0")
            has_body = b"transfer-encoding" in headers or length != b"0"
            media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            # Browsers preflight a cross-site DELETE, so an empty one needs no content type.
            if media_type != b"application/json" and (media_type or has_body or method != "DELETE"):
                message = "Send the body as JSON, with the header Content-Type: application/json."
                raise ApiError("not_json", message)
        await next_app(scope, receive, send)

    def _origin_problem(self, method: str, path: str, headers: Headers) -> str:
        """Return why the host or the origin of a request is refused, or an empty string."""
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if host is None:
            return "The request has no Host header."
        if host.lower() not in self._hosts:
            return (
                f"This service does not answer to the host {_text(host)}. Use the address it was "
                "started with, or add the name to the hosts in its settings."
            )
        if origin is not None and origin.lower() not in self._origins:
            return f"Pages of {_text(origin)} must not use this service."
        # A person may follow a link to the page from another site, such as web mail.
        is_landing = (
            method in SAFE_METHODS
            and path in self._landing_paths
            and headers.get(b"sec-fetch-mode") == b"navigate"
            and headers.get(b"sec-fetch-dest") == b"document"
        )
        site = headers.get(b"sec-fetch-site", b"none").lower()
        if site not in (b"none", b"same-origin") and not is_landing:
            return "Pages of other sites must not use this service."
        needs_origin = self._origins and method not in SAFE_METHODS
        if origin is None and needs_origin and b"authorization" not in headers:
            return "The request has no Origin header, so its page is unknown."
        return ""


def _unique_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    values: Headers = {}
    for name, value in headers:
        if name in UNIQUE_HEADERS:
            if name in values:
                message = f"The header {_text(name)} occurs twice. Send it once."
                raise ApiError("bad_request", message)
            values[name] = value
    return values


def _text(value: bytes) -> str:
    return repr(value.decode("latin-1")[:200])
