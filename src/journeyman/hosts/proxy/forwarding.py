"""Forwards requests to the upstream server and passes answers on as they come: every chunk at once,
headers and status as they are, and the end of either side to the other.
"""

import asyncio
import ipaddress
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx2
from msgspec import Struct

from journeyman.records.errors import WrongInput
from journeyman.templates.opening import MessageForm

log = logging.getLogger("journeyman.proxy")

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
        *(b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    )
)
"""Headers about one connection, which is not the other one."""

_CONNECT_S = 30.0
_KEEP_ALIVE_S = 120.0
"""Agents pause between requests; a new connection would cost them a handshake each time."""

_LARGEST_COPY = 64 * 1024 * 1024


class Disconnected(Exception):
    """The client has gone before its request was complete."""


class Upstream:
    """The server behind the proxy. Raise WrongInput for an address that cannot be one."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError as error:
            raise _bad_upstream(url, str(error)) from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _bad_upstream(url, "it does not begin with http:// or https:// and a host name")
        if parts.query or parts.fragment:
            raise _bad_upstream(url, "it has a query or a fragment")
        if parts.username or parts.password:
            raise _bad_upstream(
                url, "it has a user name or a password, which agents send themselves"
            )
        self.host = parts.hostname
        self.port = port or (443 if parts.scheme == "https" else 80)
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._origin = f"{parts.scheme}://{parts.netloc}/"
        self._path = parts.path.rstrip("/").encode()

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    def request(
        self, method: str, path: bytes, query: bytes, headers: Headers, content: Any
    ) -> httpx2.Request:
        """Return a request with exactly this path and query, below the upstream's own path. Where
        both have the version, as in `/v1`, it stands once.
        """
        last = self._path.rpartition(b"/")[2]
        if last and path.startswith(b"/" + last + b"/"):
            path = path[len(last) + 1 :]
        target = self._path + path + (b"?" + query if query else b"")
        return httpx2.Request(
            method, self._origin, headers=headers, content=content, extensions={"target": target}
        )


class Relayed(Struct, kw_only=True):
    """What was passed on: `copy` has the body as it came, and `is_complete` is true if it ended."""

    status: int = 0
    encoding: str = ""
    is_stream: bool = False
    is_complete: bool = False
    ended_at: float = 0.0
    copy: list[bytes] | None = None

    def keep(self, chunk: bytes) -> None:
        """Keep a chunk of the copy; a copy that becomes too large is given up."""
        if self.copy is not None:
            self.copy.append(chunk)
            if len(self.copy) % 1_000 == 0 and sum(map(len, self.copy)) > _LARGEST_COPY:
                self.copy = None


class Forwarder:
    """Forwards requests over connections that it keeps."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._client = httpx2.AsyncClient(
            # A model may think for minutes; how long to wait is for the agent to decide.
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_KEEP_ALIVE_S),
            # A proxy of the surroundings does not know this machine's own servers.
            trust_env=not upstream.is_local,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def relay(
        self,
        request: httpx2.Request,
        receive: Receive,
        send: Send,
        *,
        form: MessageForm | None = None,
        relayed: Relayed | None = None,
        body_read: asyncio.Event | None = None,
    ) -> None:
        """Send a request, and pass its answer on, noting in `relayed` what comes. If the client
        goes, the upstream's connection is closed; if the upstream fails, the client is told, or its
        answer ends without an end.
        """
        passing = asyncio.ensure_future(self._pass_on(request, send, relayed or Relayed(), form))
        watching = asyncio.ensure_future(_disconnect(receive, body_read))
        try:
            await asyncio.wait({passing, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (passing, watching):
                if not task.done():
                    task.cancel()
            with suppress(asyncio.CancelledError):
                await passing

    async def _pass_on(
        self, request: httpx2.Request, send: Send, relayed: Relayed, form: MessageForm | None
    ) -> None:
        try:
            response = await self._client.send(request, stream=True)
            try:
                await self._pass_answer_on(response, send, relayed)
            finally:
                await response.aclose()
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            if relayed.status:
                log.warning("%s broke off an answer: %s", self._upstream.url, reason)
                return  # the server closes the connection, because the answer has no end
            log.warning("%s cannot be reached: %s", self._upstream.url, reason)
            message = (
                f"Journeyman's proxy cannot reach {self._upstream.url}: {reason}. Check that the "
                "server runs, and the --upstream of `journeyman proxy`."
            )
            await send_error(send, 502, message, form)

    async def _pass_answer_on(
        self, response: httpx2.Response, send: Send, relayed: Relayed
    ) -> None:
        relayed.status = response.status_code
        relayed.encoding = response.headers.get("content-encoding", "")
        relayed.is_stream = "event-stream" in response.headers.get("content-type", "")
        raw = ((name.lower(), value) for name, value in response.headers.raw)
        start = {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": without_hop_by_hop(raw),
        }
        await send(start)
        async for chunk in response.aiter_raw():
            relayed.keep(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        relayed.is_complete, relayed.ended_at = True, time.time()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def read_body(receive: Receive) -> bytes:
    """Return the whole body of a request. Raise Disconnected."""
    return b"".join([chunk async for chunk in body_chunks(receive, asyncio.Event())])


async def body_chunks(receive: Receive, body_read: asyncio.Event) -> AsyncIterator[bytes]:
    """Yield the body of a request as it comes; `body_read` is set at its end."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        more = message.get("more_body", False)
        yield message.get("body", b"")
    body_read.set()


async def _disconnect(receive: Receive, body_read: asyncio.Event | None) -> None:
    """Return when the client has gone."""
    if body_read is not None:
        await body_read.wait()
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_error(send: Send, status: int, message: str, form: MessageForm | None) -> None:
    """Answer with an error in the form of the API, so that agents show its message."""
    error: dict[str, Any] = {"type": "journeyman_proxy_error", "message": message}
    body = {"type": "error", "error": error} if form == "anthropic" else {"error": error}
    content = json.dumps(body).encode()
    length = str(len(content)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": False})


def without_hop_by_hop(headers: Iterable[tuple[bytes, bytes]], *also: bytes) -> Headers:
    """Return headers, with names in lower case, without those about one connection."""
    listed = list(headers)
    named = b",".join(value for name, value in listed if name == b"connection")
    dropped = {*_HOP_BY_HOP, *also, *(token.strip().lower() for token in named.split(b","))}
    return [(name, value) for name, value in listed if name not in dropped]


def with_readable_encodings(headers: Headers, readable: Iterable[str]) -> Headers:
    """Return headers that accept only encodings of which a copy can be read."""
    kept: Headers = []
    for name, value in headers:
        if name != b"accept-encoding":
            kept.append((name, value))
            continue
        wanted = [one.strip() for one in value.decode("latin-1").split(",")]
        left = [one for one in wanted if one.partition(";")[0].strip().lower() in readable]
        kept.append((name, ", ".join(left or ["identity"]).encode("latin-1")))
    return kept


def refusal(headers: Mapping[str, str]) -> str:
    """Return why a request is refused: a page in a browser may not use the proxy. Empty if it is
    not.
    """
    host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
    stated = headers.get("origin", "")
    origin = urlsplit(stated)
    if not is_loopback(host):
        return f"The request is for the host {host!r}, which is not this machine."
    if origin.scheme in ("http", "https") and not is_loopback(origin.hostname or ""):
        return f"The request comes from a page of {origin.hostname}."
    if stated == "null":  # as in a frame that any site can make
        return "The request comes from a page that hides its site."
    return ""


def is_loopback(host: str) -> bool:
    """Return whether a host is reachable from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bad_upstream(url: str, reason: str) -> WrongInput:
    return WrongInput(
        f"The upstream {url!r} cannot be used: {reason}. Pass the address of the API, such as "
        "https://api.openai.com/v1 or http://127.0.0.1:8080."
    )
