"""Runs the server: both ports in one event loop, both bound before startup is reported, and stopped
within seconds even while agents wait.
"""

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, Self

import uvicorn
from litestar import Litestar, Response, Router, get
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.static_files import create_static_files_router
from msgspec.structs import replace

from journeyman.confirm.server.admin_routes import ADMIN_ROUTES
from journeyman.confirm.server.agent_routes import AGENT_ROUTES
from journeyman.confirm.server.approver_routes import APPROVER_ROUTES, SESSION_ROUTES
from journeyman.confirm.server.errors import handle_exception
from journeyman.confirm.server.middleware import (
    SECURITY_HEADERS,
    RequestValidationMiddleware,
    allowed_hosts,
)
from journeyman.confirm.server.request_context import (
    HEARTBEAT_S,
    SESSION_COOKIE,
    ApiRequest,
    AppContext,
)
from journeyman.confirm.service import Service
from journeyman.confirm.service_options import ServiceOptions
from journeyman.records.errors import BadSetting, ServiceUnavailable
from journeyman.version import __version__

log = logging.getLogger("journeyman.confirm")

SHUTDOWN_TIMEOUT_S = 3
MAX_CONNECTIONS = 4_096
"""Per port; further connections get 503."""
MAX_HEAD_BYTES = 32 * 1024
MAX_BODY_BYTES = 1024 * 1024
IDLE_S = 20
"""A connection is closed after this long between two requests."""
API_ROUTES = (*AGENT_ROUTES, *APPROVER_ROUTES, *ADMIN_ROUTES)
LANDING_PATHS = ("/", "/open")
"""The paths of the page: its start, and the target of links."""

_PORT_SETTINGS = {"agents": "CONFIRMATION_PORT", "page": "confirm.page_port"}
_PAGE = files("journeyman.confirm").joinpath("page")
_OPENAPI = OpenAPIConfig(
    title="Journeyman confirmations",
    version=__version__,
    description="Agents request risky actions and wait; people decide. The bearer token is an "
    "agent's token or a person's key; a session on the page sends X-CSRF-Token with its cookie. "
    'Errors are {"error": {"code", "message"}}.',
    render_plugins=[JsonRenderPlugin()],
    use_handler_docstrings=True,
    security=[{"bearer": []}, {"session": []}],
    components=Components(
        security_schemes={
            "bearer": SecurityScheme(type="http", scheme="bearer"),
            "session": SecurityScheme(
                type="apiKey", name=SESSION_COOKIE, security_scheme_in="cookie"
            ),
        }
    ),
)


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
        heartbeat_s: float = HEARTBEAT_S,
        ending: Callable[[], None] = lambda: None,
    ) -> None:
        if anonymous and not _is_loopback(options.host):
            raise BadSetting(
                f"Agents without a token cannot be accepted on {options.host}, which other "
                "machines can reach. Listen on 127.0.0.1, or create tokens with `journeyman "
                "confirm token add NAME`."
            )
        self.options = options
        self._service = service
        self._anonymous = anonymous
        self._heartbeat_s = heartbeat_s
        self._ending = ending
        self._sockets: list[socket.socket] = []
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self) -> None:
        """Bind both ports, once. Raise ServiceUnavailable if one is in use or not permitted."""
        if self._sockets:
            return
        host = self.options.host
        if not _is_loopback(host):
            log.warning(
                "Listening on %s: other machines can reach the confirmations, and the traffic is "
                "not encrypted. Put a TLS proxy in front of it, or listen on 127.0.0.1.",
                host,
            )
        try:
            self._sockets.append(_bind_socket(host, self.options.port, "agents"))
            self._sockets.append(_bind_socket(host, self.options.page_port, "page"))
        except ServiceUnavailable:
            self._close_sockets()
            raise
        port, page_port = (listener.getsockname()[1] for listener in self._sockets)
        self.options = replace(self.options, port=port, page_port=page_port)

    def run(self, on_ready: Callable[[Self], None] = lambda _: None) -> None:
        """Serve until a signal or `stop`. `on_ready` is called when both ports respond."""
        self.bind()
        with asyncio.Runner() as runner:
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
            for signal_ in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(signal_, stopping.set)
        servers = [_uvicorn_server(app) for app in self._apps()]
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

    def _apps(self) -> tuple[Litestar, Litestar]:
        """Return the applications of both ports. Both have the API; the second adds the page and
        its sessions.
        """
        options = self.options
        agents = AppContext(
            service=self._service,
            options=options,
            is_page=False,
            heartbeat_s=self._heartbeat_s,
            anonymous=self._anonymous,
        )
        page = replace(agents, is_page=True, anonymous=False)
        hosts = allowed_hosts(options.host, options.page_port, options.page_hosts)
        own_pages = {b"http://" + host for host in hosts}
        own_pages.add(options.shown_page_url.lower().encode())
        return (
            _create_app(
                agents,
                RequestValidationMiddleware(
                    hosts=allowed_hosts(options.host, options.port, options.hosts)
                ),
                API_ROUTES,
            ),
            _create_app(
                page,
                RequestValidationMiddleware(
                    hosts=hosts, origins=frozenset(own_pages), landing_paths=LANDING_PATHS
                ),
                (*API_ROUTES, *SESSION_ROUTES),
                _page,
                create_static_files_router(
                    "/static", [str(_PAGE)], cache_control=None, include_in_schema=False
                ),
            ),
        )

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


@get([*LANDING_PATHS], include_in_schema=False)
async def _page() -> Response[bytes]:
    """Return the page. It does not depend on the request, so nothing in one can end up in it."""
    content = _PAGE.joinpath("index.html").read_bytes()
    return Response(content, headers={"cache-control": "no-cache"}, media_type="text/html")


def _create_app(
    context: AppContext,
    middleware: RequestValidationMiddleware,
    api_routes: Sequence[HTTPRouteHandler],
    *other_routes: Any,
) -> Litestar:
    api = Router("/", route_handlers=api_routes, response_headers={"cache-control": "no-store"})
    return Litestar(
        route_handlers=[api, *other_routes],
        middleware=[middleware],
        exception_handlers={Exception: handle_exception},
        request_class=ApiRequest,
        state=State({"context": context}),
        openapi_config=_OPENAPI,
        logging_config=None,
        request_max_body_size=MAX_BODY_BYTES,
    )


def _uvicorn_server(app: Litestar) -> _Server:
    return _Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=SECURITY_HEADERS,
            limit_concurrency=MAX_CONNECTIONS,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        )
    )


def _is_loopback(host: str) -> bool:
    """Return whether a host is reachable from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bind_socket(host: str, port: int, name: str) -> socket.socket:
    """Return a listening socket. Raise ServiceUnavailable if the port cannot be opened."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(
            (host, port), family=family, backlog=2048, dualstack_ipv6=host == "::"
        )
    except OSError as error:
        is_in_use = error.errno == errno.EADDRINUSE
        in_use = "another program uses it, perhaps a second `journeyman confirm serve`"
        raise ServiceUnavailable(
            f"The {name} port {port} on {host} could not be opened for confirmations: "
            f"{in_use if is_in_use else error.strerror or error}. List the ports in use with `ss "
            f"-ltnp`; choose another port with {_PORT_SETTINGS[name]}, or another address with "
            "confirm.host."
        ) from error
