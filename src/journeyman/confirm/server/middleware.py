"""Checks on every request before authentication: the host, the origin, and the type of the body.
Foreign web pages in a browser cannot reach the service.
"""

import logging
from collections.abc import Iterable

from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from journeyman.confirm.server.errors import ApiError

log = logging.getLogger("journeyman.confirm")

SAFE_METHODS = frozenset(("GET", "HEAD"))

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
    hosts = {f"{name}:{port}" for name in (*local, *configured)} | {*configured}
    if port == 80:
        hosts |= local
    return frozenset(name.lower().encode() for name in hosts)


class RequestValidationMiddleware(ASGIMiddleware):
    """Passes on only valid requests. A request must be addressed to one of `hosts`, and come from
    one of `origins` (the server's own pages) or follow a link on another site to one of
    `landing_paths`.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(
        self,
        *,
        hosts: frozenset[bytes],
        origins: frozenset[bytes] = frozenset(),
        landing_paths: Iterable[str] = (),
    ) -> None:
        self._hosts = hosts
        self._origins = origins
        self._landing_paths = frozenset(landing_paths)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        headers = dict(scope["headers"])
        method = str(scope.get("method", ""))
        if reason := self._origin_problem(method, scope["path"], headers):
            log.warning("refused a request: %s", reason)
            raise ApiError("not_allowed", reason)
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
        host, origin = headers.get(b"host", b""), headers.get(b"origin")
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


def _text(value: bytes) -> str:
    return repr(value.decode("latin-1")[:200])
