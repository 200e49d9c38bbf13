"""Runs the server: both ports in one event loop, both bound before startup is reported, and stopped
within seconds even while agents wait.
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

from journeyman.confirm.server.admin_routes import ADMIN_ROUTES
from journeyman.confirm.server.agent_routes import AGENT_ROUTES
from journeyman.confirm.server.approver_routes import APPROVER_ROUTES, SESSION_ROUTES
from journeyman.confirm.server.errors import handle_exception
from journeyman.confirm.server.http_protocol import (
    BACKLOG,
    LimitedHttpProtocol,
    Timeouts,
    bind_socket,
    is_loopback,
)
from journeyman.confirm.server.middleware import (
    SECURITY_HEADERS,
    OpenRequests,
    RefusalLog,
    RequestValidationMiddleware,
    allowed_hosts,
    allowed_origins,
)
from journeyman.confirm.server.openapi import openapi_document
from journeyman.confirm.server.request_context import ApiRequest, AppContext, WriteCheck
from journeyman.confirm.service import Service
from journeyman.confirm.service_options import ServiceOptions
from journeyman.records.errors import BadSetting, ServiceUnavailable

log = logging.getLogger("journeyman.confirm")

SHUTDOWN_TIMEOUT_S = 3
MAX_CONNECTIONS = 4_096
"""Per port; further connections get 503."""
_MAX_OPEN_FILES = 16_384
API_ROUTES = (*AGENT_ROUTES, *APPROVER_ROUTES, *ADMIN_ROUTES)
LANDING_PATHS = ("/", "/open")
"""The paths of the page: its start, and the target of links."""

_MEDIA_TYPES = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}


class _Server(uvicorn.Server):
    """A uvicorn server without signal handlers; ConfirmationServer handles signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Install no handlers: two servers would compete for the signals."""
        yield


class ConfirmationServer:
    """The server of one service. The `options` have the real ports only after `bind`. `ending` is
    called in a thread before the service stops, and may block.
    """

    def __init__(
        self,
        service: Service,
        options: ServiceOptions,
        *,
        anonymous: bool = False,
        with_page: bool = True,
        timeouts: Timeouts | None = None,
        ending: Callable[[], None] = lambda: None,
    ) -> None:
        if anonymous and not is_loopback(options.host):
            raise BadSetting(
                f"Agents without a token cannot be accepted on {options.host}, which other "
                "machines can reach. Listen on 127.0.0.1, or create tokens with `journeyman "
                "confirm token add NAME`."
            )
        self.options = options
        self.open_requests = OpenRequests()
        self._service = service
        self._anonymous = anonymous
        self._with_page = with_page
        self._timeouts = timeouts or Timeouts()
        self._ending = ending
        self._sockets: list[socket.socket] = []
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self) -> None:
        """Bind both ports, once. Raise ServiceUnavailable if one is in use or not permitted."""
        if self._sockets:
            return
        host = self.options.host
        if not is_loopback(host):
            log.warning(
                "Listening on %s: other machines can reach the confirmations, and the traffic is "
                "not encrypted. Put a TLS proxy in front of it, or listen on 127.0.0.1.",
                host,
            )
        try:
            self._sockets.append(bind_socket(host, self.options.port, "agents"))
            if self._with_page:
                self._sockets.append(bind_socket(host, self.options.page_port, "page"))
        except ServiceUnavailable:
            self._close_sockets()
            raise
        ports = [listener.getsockname()[1] for listener in self._sockets]
        self.options = replace(
            self.options, **dict(zip(("port", "page_port"), ports, strict=False))
        )

    def run(self, on_ready: Callable[[Self], None] = lambda _: None) -> None:
        """Serve until a signal or `stop`. `on_ready` is called when both ports respond."""
        self.bind()
        factory = uvicorn.Config("", log_config=None).get_loop_factory()
        with asyncio.Runner(loop_factory=factory) as runner:
            self._loop = runner.get_loop()
            runner.run(self._run(on_ready))

    def stop(self) -> None:
        """Stop, from any thread. Waiting clients get the current state."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def _run(self, on_ready: Callable[[Self], None]) -> None:
        try:
            await self._service.start()
            try:
                await self._serve(on_ready)
            finally:
                await asyncio.to_thread(self._ending)
                await self._service.stop()
        finally:
            self._close_sockets()

    async def _serve(self, on_ready: Callable[[Self], None]) -> None:
        stopping = self._stopping
        if threading.current_thread() is threading.main_thread():
            _raise_open_file_limit()
            for signal_ in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(signal_, stopping.set)
        servers = self._servers()
        tasks = [
            asyncio.create_task(server.serve(sockets=[listener]))
            for server, listener in zip(servers, self._sockets, strict=True)
        ]
        for task in tasks:  # if one server stops, the other stops too
            task.add_done_callback(lambda _: stopping.set())
        while not stopping.is_set() and not all(server.started for server in servers):
            await asyncio.sleep(0.001)
        if not stopping.is_set():
            on_ready(self)
        await stopping.wait()
        self._service.release_waiters()
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*tasks)

    def _servers(self) -> list[_Server]:
        """Return one server per port. Both have the API; the second adds the page and its
        sessions.
        """
        service, options = self._service, self.options
        refusals = RefusalLog(service.refused)
        context = partial(
            AppContext,
            service=service,
            options=options,
            open_requests=self.open_requests,
            refusals=refusals,
            write_check=WriteCheck(service.check_writes),
            heartbeat_s=self._timeouts.heartbeat_s,
        )
        middleware = partial(RequestValidationMiddleware, refusals, body_s=self._timeouts.body_s)
        agents = _create_app(
            context(port="agents", anonymous=self._anonymous),
            middleware(hosts=allowed_hosts(options.host, options.port, options.hosts)),
            API_ROUTES,
        )
        hosts = allowed_hosts(options.host, options.page_port, options.page_hosts)
        origins = allowed_origins(hosts, options.shown_page_url)
        page = _create_app(
            context(port="page"),
            middleware(hosts=hosts, origins=origins, landing_paths=LANDING_PATHS),
            (*API_ROUTES, *SESSION_ROUTES),
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
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=self._timeouts.idle_s,
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        )
        apps = (agents, page) if self._with_page else (agents,)
        return [_Server(config(app)) for app in apps]

    def _close_sockets(self) -> None:
        for listener in self._sockets:
            listener.close()
        self._sockets = []

    @contextmanager
    def in_thread(self, on_ready: Callable[[Self], None] = lambda _: None) -> Iterator[Self]:
        """Serve in a thread for the duration of the block."""
        self.bind()
        ready = threading.Event()

        def signal_ready(server: Self) -> None:
            on_ready(server)
            ready.set()

        with ThreadPoolExecutor(1, thread_name_prefix="confirm-server") as pool:
            done = pool.submit(self.run, signal_ready)
            done.add_done_callback(lambda _: ready.set())
            try:
                ready.wait()
                if not done.done():
                    yield self
            finally:
                self.stop()
        done.result()


def _create_app(
    context: AppContext,
    middleware: RequestValidationMiddleware,
    api_routes: Sequence[HTTPRouteHandler],
    *other_routes: HTTPRouteHandler,
) -> Litestar:
    api = Router("/", route_handlers=api_routes, response_headers={"cache-control": "no-store"})
    return Litestar(
        route_handlers=[api, *other_routes],
        middleware=[middleware],
        exception_handlers={Exception: handle_exception},
        request_class=ApiRequest,
        state=State({"context": context, "document": cache(partial(openapi_document, api_routes))}),
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,  # the middleware limits it
    )


def _page_route() -> HTTPRouteHandler:
    """Return the route of the page's static files. They are read once and never depend on a
    request, so nothing in a request can end up in them.
    """
    pages: dict[str, tuple[bytes, str, str]] = {}
    for file in files("journeyman.confirm").joinpath("page").iterdir():
        if media_type := _MEDIA_TYPES.get(file.name.rpartition(".")[2]):
            content = file.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            paths = LANDING_PATHS if file.name == "index.html" else (f"/static/{file.name}",)
            pages |= dict.fromkeys(paths, (content, media_type, etag))

    @route(sorted(pages), http_method=[HttpMethod.GET, HttpMethod.HEAD], include_in_schema=False)
    async def page(request: Request[None, None, State]) -> Response[bytes]:
        content, media_type, etag = pages[request.scope["path"]]
        headers = {"etag": etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == etag:
            return Response(b"", status_code=304, headers=headers, media_type=media_type)
        return Response(content, headers=headers, media_type=media_type)

    return page


def _raise_open_file_limit() -> None:
    """Raise the limit on open files, for thousands of waiting clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(_MAX_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
