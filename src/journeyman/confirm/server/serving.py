"""Runs the server: both ports in one event loop, both bound before anything is said, and stopped
within seconds also while agents wait.
"""

import asyncio
import hashlib
import logging
import resource
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from importlib.resources import files
from typing import Any, Self

import uvicorn
from litestar import HttpMethod, Litestar, Request, Response, Router, route
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler
from msgspec.structs import replace

from journeyman.confirm.options import Options
from journeyman.confirm.server import routes
from journeyman.confirm.server.http_protocol import (
    BACKLOG,
    LimitedHttpProtocol,
    Timeouts,
    bound,
    is_loopback,
)
from journeyman.confirm.server.middleware import (
    SECURITY_HEADERS,
    OpenRequests,
    RefusalLog,
    RequestChecks,
    hosts_of,
    origins_of,
)
from journeyman.confirm.server.openapi import document_of
from journeyman.confirm.server.problems import respond
from journeyman.confirm.server.request import Context, KnownRequest, WriteCheck
from journeyman.confirm.service import Service
from journeyman.records.errors import BadSetting, ServiceUnavailable

log = logging.getLogger("journeyman.confirm")

STOP_WITHIN_S = 3
MOST_CONNECTIONS = 4_096
"""Of one port; who comes after is answered 503."""
_OPEN_FILES = 16_384
LANDINGS = ("/", "/open")
"""Where the page itself is: at home, and where links lead."""

_KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


class _Server(uvicorn.Server):
    """A server that leaves signals to who runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Captures none: two servers would take them from each other."""
        yield


class Serving:
    """The server of one service. Bind first: only then do the `options` have the real ports.
    `ending` is called before the service stops, and may wait for it.
    """

    def __init__(
        self,
        service: Service,
        options: Options,
        *,
        anonymous: bool = False,
        timeouts: Timeouts | None = None,
        ending: Callable[[], None] = lambda: None,
    ) -> None:
        if anonymous and not is_loopback(options.host):
            raise BadSetting(
                f"Agents without a token cannot be taken on {options.host}, which other "
                "machines reach. Listen on 127.0.0.1, or make tokens with `journeyman confirm "
                "token add NAME`."
            )
        self.options = options
        self.open_requests = OpenRequests()
        self._service = service
        self._anonymous = anonymous
        self._timeouts = timeouts or Timeouts()
        self._ending = ending
        self._sockets: list[socket.socket] = []
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self) -> None:
        """Take both ports, once. Raises ServiceUnavailable when one is taken or not allowed."""
        if self._sockets:
            return
        host = self.options.host
        if not is_loopback(host):
            log.warning(
                "Listening on %s: other machines can reach the confirmations, and what they send "
                "is not encrypted. Put a proxy with TLS before it, or listen on 127.0.0.1.",
                host,
            )
        try:
            self._sockets.append(bound(host, self.options.port, "agents"))
            self._sockets.append(bound(host, self.options.page_port, "page"))
        except ServiceUnavailable:
            self._close_sockets()
            raise
        port, page_port = (one.getsockname()[1] for one in self._sockets)
        self.options = replace(self.options, port=port, page_port=page_port)

    def run(self, told: Callable[[Self], None] = lambda _: None) -> None:
        """Serve until a signal or `stop`. `told` is called when both ports answer."""
        self.bind()
        factory = uvicorn.Config("", log_config=None).get_loop_factory()
        with asyncio.Runner(loop_factory=factory) as runner:
            self._loop = runner.get_loop()
            runner.run(self._run(told))

    def stop(self) -> None:
        """End, from any thread: who waits is answered with how things are."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def _run(self, told: Callable[[Self], None]) -> None:
        try:
            await self._service.start()
            try:
                await self._serve(told)
            finally:
                await asyncio.to_thread(self._ending)
                await self._service.stop()
        finally:
            self._close_sockets()

    async def _serve(self, told: Callable[[Self], None]) -> None:
        stopping = self._stopping
        if threading.current_thread() is threading.main_thread():
            _allow_open_files()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        servers = self._servers()
        running = [
            asyncio.create_task(server.serve(sockets=[one]))
            for server, one in zip(servers, self._sockets, strict=True)
        ]
        for one in running:  # a server that ends by itself takes the other along
            one.add_done_callback(lambda _: stopping.set())
        while not stopping.is_set() and not all(one.started for one in servers):
            await asyncio.sleep(0.001)
        if not stopping.is_set():
            told(self)
        await stopping.wait()
        self._service.release_waiters()
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*running)

    def _servers(self) -> list[_Server]:
        """One for each port: both have the same routes, and one has the page and its logins."""
        service, options = self._service, self.options
        refusals = RefusalLog(service.refused)
        context = partial(
            Context,
            service=service,
            options=options,
            open_requests=self.open_requests,
            refusals=refusals,
            write_check=WriteCheck(service.check_writes),
            heartbeat_s=self._timeouts.heartbeat_s,
        )
        checks = partial(RequestChecks, refusals, body_s=self._timeouts.body_s)
        agents = _application(
            context(port="agents", anonymous=self._anonymous),
            checks(hosts=hosts_of(options.host, options.port, options.hosts)),
            routes.ROUTES,
        )
        hosts = hosts_of(options.host, options.page_port, options.page_hosts)
        origins = origins_of(hosts, options.shown_page_url)
        page = _application(
            context(port="page"),
            checks(hosts=hosts, origins=origins, landings=LANDINGS),
            (*routes.ROUTES, *routes.PAGE_ROUTES),
            _page_route(),
        )
        protocol: Any = partial(LimitedHttpProtocol, head_s=self._timeouts.head_s)
        config = partial(
            uvicorn.Config,
            http=protocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=SECURITY_HEADERS,
            backlog=BACKLOG,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=self._timeouts.idle_s,
            timeout_graceful_shutdown=STOP_WITHIN_S,
        )
        return [_Server(config(app)) for app in (agents, page)]

    def _close_sockets(self) -> None:
        for one in self._sockets:
            one.close()
        self._sockets = []

    @contextmanager
    def in_thread(self, told: Callable[[Self], None] = lambda _: None) -> Iterator[Self]:
        """Serve in a thread for as long as the block lasts."""
        self.bind()
        ready = threading.Event()

        def answers(serving: Self) -> None:
            told(serving)
            ready.set()

        with ThreadPoolExecutor(1, thread_name_prefix="confirm-server") as pool:
            done = pool.submit(self.run, answers)
            done.add_done_callback(lambda _: ready.set())
            try:
                ready.wait()
                if not done.done():
                    yield self
            finally:
                self.stop()
        done.result()


def _application(
    context: Context,
    checks: RequestChecks,
    handlers: Sequence[HTTPRouteHandler],
    *more: HTTPRouteHandler,
) -> Litestar:
    api = Router("/", route_handlers=handlers, response_headers={"cache-control": "no-store"})
    return Litestar(
        route_handlers=[api, *more],
        middleware=[checks],
        exception_handlers={Exception: respond},
        request_class=KnownRequest,
        state=State({"context": context, "document": cache(partial(document_of, handlers))}),
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,  # the checks have seen to it
    )


def _page_route() -> HTTPRouteHandler:
    """The route that sends the page's files, which are read once. Nothing on them is made per
    request, so nothing in a request can end up in them.
    """
    found: dict[str, tuple[bytes, str, str]] = {}
    for file in files("journeyman.confirm").joinpath("page").iterdir():
        if kind := _KINDS.get(file.name.rpartition(".")[2]):
            content = file.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            paths = LANDINGS if file.name == "index.html" else (f"/static/{file.name}",)
            found |= dict.fromkeys(paths, (content, kind, tag))

    @route(sorted(found), http_method=[HttpMethod.GET, HttpMethod.HEAD], include_in_schema=False)
    async def page(request: Request[None, None, State]) -> Response[bytes]:
        content, kind, tag = found[request.scope["path"]]
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(b"", status_code=304, headers=headers, media_type=kind)
        return Response(content, headers=headers, media_type=kind)

    return page


def _allow_open_files() -> None:
    """Make room for thousands of waiters."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
