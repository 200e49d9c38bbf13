"""Runs the server: both ports in one event loop, both bound before anything is said, and stopped
within seconds also while agents wait.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Self

import uvicorn
from litestar.types import ASGIApp

from journeyman.confirm.server.apps import HEARTBEAT_S, Ports, make_apps
from journeyman.confirm.server.binding import BACKLOG, bound, is_loopback
from journeyman.confirm.server.doors import AGENTS_HEADERS, BODY_WITHIN_S, SECURITY_HEADERS
from journeyman.confirm.server.waiting import Waiting
from journeyman.confirm.service import Service
from journeyman.records.errors import BadSetting, ServiceUnavailable

try:
    import resource
except ImportError:  # there is none on Windows
    resource = None  # type: ignore[assignment]

log = logging.getLogger("journeyman.confirm")

STOP_WITHIN_S = 3
_OPEN_FILES = 16_384


class _Server(uvicorn.Server):
    """A server that leaves signals to who runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Captures none: two servers would take them from each other."""
        yield


class Serving:
    """The server of one service. Bind first: only then are the real ports known."""

    def __init__(
        self,
        service: Service,
        *,
        ports: Ports | None = None,
        hosts: Sequence[str] = (),
        page_hosts: Sequence[str] = (),
        page_url: str = "",
        anonymous: bool = False,
        body_within_s: float = BODY_WITHIN_S,
        heartbeat_s: float = HEARTBEAT_S,
        ending: Callable[[], None] = lambda: None,
    ) -> None:
        self.ports = ports or Ports()
        if anonymous and not is_loopback(self.ports.host):
            raise BadSetting(
                f"Agents without a token cannot be taken on {self.ports.host}, which other "
                "machines reach. Listen on 127.0.0.1, or make tokens with `journeyman confirm "
                "token add NAME`."
            )
        self._service = service
        self._page_url = page_url
        self._ending = ending
        self.waiting = Waiting()
        self._apps = partial(
            make_apps,
            service,
            waiting=self.waiting,
            hosts=hosts,
            page_hosts=page_hosts,
            page_url=page_url,
            anonymous=anonymous,
            body_within_s=body_within_s,
            heartbeat_s=heartbeat_s,
        )
        self._sockets: list[socket.socket] = []
        self._servers: list[_Server] = []
        self._stopping: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def agents_url(self) -> str:
        return self.ports.agents_url

    @property
    def page_url(self) -> str:
        """Where people find the page."""
        return (self._page_url or self.ports.page_url).rstrip("/")

    def bind(self) -> Ports:
        """Take both ports, once. Raises ServiceUnavailable when one is taken or not allowed."""
        if self._sockets:
            return self.ports
        host = self.ports.host
        if not is_loopback(host):
            log.warning(
                "Listening on %s: other machines can reach the confirmations, and what they send "
                "is not encrypted. Put a proxy with TLS before it, or listen on 127.0.0.1.",
                host,
            )
        try:
            for name in ("agents", "page"):
                self._sockets.append(bound(host, getattr(self.ports, name), name))
        except ServiceUnavailable:
            self._close_sockets()
            raise
        agents, page = (one.getsockname()[1] for one in self._sockets)
        self.ports = Ports(host=host, agents=agents, page=page)
        return self.ports

    def run(self, told: Callable[[Self], None] | None = None) -> None:
        """Serve until a signal or `stop`. `told` is called when both ports answer."""
        self.bind()
        if threading.current_thread() is threading.main_thread():
            _prepare_process()
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self.serve(told))

    async def serve(self, told: Callable[[Self], None] | None = None) -> None:
        """The same inside a running event loop."""
        self.bind()
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            await self._service.start()
            try:
                await self._serve(told)
            finally:
                # What still reports to the service ends before it, and may wait for it.
                await asyncio.to_thread(self._ending)
                await self._service.stop()
        finally:
            self._close_sockets()

    def stop(self) -> None:
        """End, from any thread: who waits is answered with how things are."""
        loop, stopping = self._loop, self._stopping
        if loop is not None and stopping is not None and not loop.is_closed():
            loop.call_soon_threadsafe(stopping.set)

    async def _serve(self, told: Callable[[Self], None] | None) -> None:
        stopping = self._stopping
        assert stopping is not None
        agents, page = self._apps(ports=self.ports)
        self._servers = [_server(agents, AGENTS_HEADERS), _server(page, SECURITY_HEADERS)]
        running = [
            asyncio.create_task(server.serve(sockets=[one]))
            for server, one in zip(self._servers, self._sockets, strict=True)
        ]
        for one in running:  # a server that ends by itself takes the other along
            one.add_done_callback(lambda _: stopping.set())
        with _signals(stopping):
            while not stopping.is_set() and not all(one.started for one in self._servers):
                await asyncio.sleep(0.001)
            if told is not None and not stopping.is_set():
                told(self)
            await stopping.wait()
            self.waiting.end()
            for server in self._servers:
                server.should_exit = True
            await asyncio.gather(*running)

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


def _server(app: ASGIApp, headers: Sequence[tuple[str, str]]) -> _Server:
    return _Server(
        uvicorn.Config(
            app,
            http="auto",  # httptools where it is installed
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=list(headers),
            backlog=BACKLOG,
            timeout_graceful_shutdown=STOP_WITHIN_S,
        )
    )


def _prepare_process() -> None:
    """For a process that does nothing else: room for thousands of waiters, and a collector that
    does not walk what was loaded and stays anyway.
    """
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    gc.collect()
    gc.freeze()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415  # where it is installed
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


@contextmanager
def _signals(stopping: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and an asked end stop the server; in a thread, its owner does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stopping.set)
    try:
        yield
    finally:
        for one in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):
                loop.remove_signal_handler(one)
