"""What every request must be before anybody is asked who they are: for this host, from no foreign
web page, with a body that is JSON, small and not slow. A web page in somebody's browser cannot
reach the service through it, and nobody takes what belongs to all.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import ExitStack
from typing import Any, TypeVar

from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from journeyman.confirm.server.problems import Refused
from journeyman.records.errors import OutsideProblem

log = logging.getLogger("journeyman.confirm")

BODY_LIMIT = 256 * 1024
DRAINED = 8 * 1024 * 1024
"""How much more of a body that is too large is read away, so that its sender sees the answer."""

MOST_STRANGERS_A_MINUTE = 20
MOST_OF_ONE = 64
"""Streams of one credential: each is held open, and costs something with each change."""
MOST_IN_ALL = 512
STREAM_PLACES = "stream_places"
"""What ends with a request, in its state: an `ExitStack`."""

SAFE = frozenset(("GET", "HEAD"))

DECISIVE = frozenset((
    b"host", b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest", b"content-type",
    b"content-length", b"transfer-encoding", b"authorization", b"cookie", b"x-csrf-token",
    b"idempotency-key",
))  # fmt: skip
"""Headers that decide something. Any of them twice is refused: two readers could pick two."""

Headers = dict[bytes, bytes]
Result = TypeVar("Result")

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
"""On every answer, also on what the HTTP server itself says to a broken request."""


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


class RefusalLog:
    """Audit entries about refusals of strangers, limited by the minute: nobody may fill the audit
    by knocking. `write` takes who was refused, about what, and concerning which confirmation.
    """

    def __init__(
        self,
        write: Callable[[str, dict[str, Any], str], Awaitable[None]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._now = now
        self._minute = -1
        self._came = 0

    async def stranger(self, about: dict[str, Any], confirmation: str = "") -> None:
        """Somebody without a credential, or with one that is not known."""
        minute = int(self._now() // 60)
        if minute != self._minute:
            if (over := self._came - MOST_STRANGERS_A_MINUTE) > 0:
                log.warning("%d refusals of strangers were not written to the audit log", over)
            self._minute, self._came = minute, 0
        self._came += 1
        if self._came <= MOST_STRANGERS_A_MINUTE:
            try:
                await self._write("stranger", about, confirmation)
            except OutsideProblem as problem:  # the refusal stands without its entry
                log.warning("a refusal was not written to the audit log: %s", problem)


class OpenRequests:
    """Counts what stays open, and limits how many streams do."""

    def __init__(self) -> None:
        self._polls = 0
        self._streams: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._polls + self._streams.total()

    def take_place(self, scope: Scope, credential: str) -> None:
        """Count a stream until its request has ended, however it ends. Raises Refused."""
        if self._streams[credential] >= MOST_OF_ONE:
            what = f"{MOST_OF_ONE} streams are open with this credential. Close one, or poll."
            raise Refused("over_limit", what)
        if self._streams.total() >= MOST_IN_ALL:
            raise Refused("over_limit", f"{MOST_IN_ALL} streams are open. Poll instead.")
        places: ExitStack = scope["state"][STREAM_PLACES]
        places.callback(self._streams.subtract, (credential,))
        self._streams[credential] += 1

    async def poll(
        self, work: Coroutine[Any, Any, Result | None], receive: Receive
    ) -> Result | None:
        """What is waited for; None when the client went away meanwhile."""
        waited = asyncio.create_task(work)
        gone = asyncio.create_task(_disconnected(receive))
        self._polls += 1
        try:
            await asyncio.wait((waited, gone), return_when=asyncio.FIRST_COMPLETED)
            return await waited if waited.done() else None
        finally:
            self._polls -= 1
            waited.cancel()
            gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class RequestChecks(ASGIMiddleware):
    """Lets through only what a port takes, with the body read whole: for one of its `hosts`, and
    from one of its own pages (`origins`) or by a link on another site to one of its `landings`.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(
        self,
        refusals: RefusalLog,
        *,
        hosts: frozenset[bytes],
        origins: frozenset[bytes] = frozenset(),
        landings: Iterable[str] = (),
        body_s: float,
    ) -> None:
        self._refusals = refusals
        self._hosts = hosts
        self._origins = origins
        self._landings = frozenset(landings)
        self._body_s = body_s

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        headers = _decisive(scope["headers"])
        method = str(scope.get("method", ""))
        if foreign := self._foreign(method, scope["path"], headers):
            await self._refusals.stranger({"at": scope["path"][:200], "why": foreign})
            raise Refused("not_allowed" if b"host" in headers else "bad_request", foreign)
        if method == "OPTIONS":  # Litestar would answer it by itself
            raise Refused("wrong_method", "OPTIONS is not used here.")
        if method not in SAFE:
            length = headers.get(b"content-length", b"0")
            has_body = b"transfer-encoding" in headers or length != b"0"
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            # A browser asks before it sends a DELETE to another site, so that one needs no mark.
            if kind != b"application/json" and (kind or has_body or method != "DELETE"):
                wanted = "Send the body as JSON, with the header Content-Type: application/json."
                raise Refused("not_json", wanted)
            body = await _read_body(receive, headers, self._body_s) if has_body else b""
            if body is None:
                return
            scope["state"]["body"] = body
        with ExitStack() as places:  # streams take theirs, and free it however they end
            scope["state"][STREAM_PLACES] = places
            await next_app(scope, receive, send)

    def _foreign(self, method: str, path: str, headers: Headers) -> str:
        """Why a request comes from where none may come from; empty when it does not."""
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if host is None:
            return "The request does not say which host it is for."
        if host.lower() not in self._hosts:
            return (
                f"This service is not called {_text(host)}. Use the address it was started with, "
                "or add the name to the hosts in its settings."
            )
        if origin is not None and origin.lower() not in self._origins:
            return f"Pages of {_text(origin)} may not use this service."
        # Somebody may follow a link to the page from another site: in a mail, it is on one.
        is_landing = (
            method in SAFE
            and path in self._landings
            and headers.get(b"sec-fetch-mode") == b"navigate"
            and headers.get(b"sec-fetch-dest") == b"document"
        )
        site = headers.get(b"sec-fetch-site", b"none").lower()
        if site not in (b"none", b"same-origin") and not is_landing:
            return "Pages of other sites may not use this service."
        needs_origin = self._origins and method not in SAFE
        if origin is None and needs_origin and b"authorization" not in headers:
            return "The request does not say which page it comes from."
        return ""


def _decisive(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    found: Headers = {}
    for name, value in headers:
        if name in DECISIVE:
            if name in found:
                twice = f"The header {_text(name)} is there twice. Send it once."
                raise Refused("bad_request", twice)
            found[name] = value
    return found


def _text(value: bytes) -> str:
    return repr(value.decode("latin-1")[:200])


async def _read_body(receive: Receive, headers: Headers, within_s: float) -> bytes | None:
    """The body, or None when its sender has gone. Raises Refused."""
    too_large = f"The body is larger than {BODY_LIMIT // 1024} KB."
    if int(headers.get(b"content-length", b"0")) > BODY_LIMIT:
        raise Refused("too_large", too_large)
    body, size, more = bytearray(), 0, True
    try:
        async with asyncio.timeout(within_s):
            while more:
                message: Any = await receive()
                if message["type"] == "http.disconnect":
                    return None
                size += len(message["body"])
                more = message["more_body"]
                if size <= BODY_LIMIT:
                    body += message["body"]
                elif size > DRAINED:
                    raise Refused("too_large", too_large, close=True)
    except TimeoutError:
        late = f"The body did not arrive within {within_s:g} seconds."
        raise Refused("too_slow", late, close=True) from None
    if size > BODY_LIMIT:
        raise Refused("too_large", too_large)
    return bytes(body)
