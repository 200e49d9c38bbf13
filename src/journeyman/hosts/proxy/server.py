"""Runs the proxy: its port, its parts in threads, and its end."""

import asyncio
import errno
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Self

import uvicorn

from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.imports import ImportQueue
from journeyman.hosts.proxy.application import OpeningSource, Proxy, ProxyOptions
from journeyman.hosts.proxy.forwarding import Forwarder, Upstream, is_loopback
from journeyman.hosts.proxy.recorder import Recorder
from journeyman.hosts.service import HostService
from journeyman.records.errors import ServiceUnavailable, WrongInput

_SHUTDOWN_S = 3
_IDLE_S = 600
"""A connection that an agent keeps is closed after this long: it must not be closed first while
the agent sends its next request."""


class _Server(uvicorn.Server):
    """A uvicorn server without signal handlers; ProxyServer handles signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class ProxyServer:
    """Runs the proxy. Raise WrongInput for options that cannot be used."""

    def __init__(self, journeyman: Journeyman, options: ProxyOptions) -> None:
        self._journeyman = journeyman
        self.options = options
        self.upstream = Upstream(options.upstream)
        if not is_loopback(options.host):
            raise WrongInput(
                f"The proxy does not listen on {options.host}, which other machines can reach: "
                "whoever reaches it could have sessions recorded. Use 127.0.0.1 or ::1."
            )
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """The address of the proxy; its port is known after `bind`."""
        port = self._socket.getsockname()[1] if self._socket else self.options.port
        host = self.options.host
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def bind(self) -> None:
        """Open the port. Raise ServiceUnavailable if it is in use, WrongInput for a loop."""
        host, port = self.options.host, self.options.port
        if self.upstream.is_local and self.upstream.port == port:
            raise WrongInput(
                f"The upstream {self.upstream.url} is the proxy's own address. Pass another --port."
            )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            in_use = "another program uses it, perhaps a second `journeyman proxy`"
            reason = in_use if error.errno == errno.EADDRINUSE else error.strerror or error
            raise ServiceUnavailable(
                f"The port {port} on {host} could not be opened for the proxy: {reason}. Choose "
                "another with --port, or 0 for any that is free."
            ) from error

    def run(self, on_ready: Callable[[Self], None] = lambda _: None) -> None:
        """Serve until a signal or `stop`. `on_ready` is called when the port answers."""
        if self._socket is None:
            self.bind()
        factory = uvicorn.Config("", log_config=None).get_loop_factory()
        with asyncio.Runner(loop_factory=factory) as runner:
            self._loop = runner.get_loop()
            runner.run(self._run(on_ready))

    def stop(self) -> None:
        """Stop, from any thread: answers in progress have a few seconds."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end)

    @contextmanager
    def in_thread(self) -> Iterator[Self]:
        """Serve in a thread for the duration of the block."""
        self.bind()
        ready = threading.Event()
        with ThreadPoolExecutor(1, thread_name_prefix="proxy") as pool:
            done = pool.submit(self.run, lambda _: ready.set())
            done.add_done_callback(lambda _: ready.set())
            ready.wait()
            try:
                if not done.done():
                    yield self
            finally:
                self.stop()
        done.result()

    async def _run(self, on_ready: Callable[[Self], None]) -> None:
        settings, options = self._journeyman.settings, self.options
        service = HostService(self._journeyman)
        openings = OpeningSource(service, options, subagents=settings.hosts.subagents)
        learns = options.records and settings.hosts.learn
        imports = ImportQueue(settings.home, settings.database, on_learned=openings.warm_up)
        recorder = None
        if options.records:
            learn = partial(imports.learn_after, options.learn_after_s)
            recorder = Recorder(self._journeyman, learn if learns else lambda: None)
        forwarder = Forwarder(self.upstream)
        proxy = Proxy(forwarder, self.upstream, recorder, openings, options)
        if learns:
            imports.start()
        openings.warm_up()
        if recorder is not None:
            recorder.start()
        try:
            await self._serve(proxy, on_ready)
        finally:
            await forwarder.close()
            if recorder is not None:
                await asyncio.to_thread(recorder.stop)
            await asyncio.to_thread(imports.stop)
            openings.close()

    async def _serve(self, proxy: Proxy, on_ready: Callable[[Self], None]) -> None:
        assert self._socket is not None
        config = uvicorn.Config(
            proxy,
            http="httptools",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=_SHUTDOWN_S,
        )
        server = self._server = _Server(config)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, self._end)
        serving = asyncio.create_task(server.serve(sockets=[self._socket]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.001)
        if not serving.done():
            on_ready(self)
        await serving

    def _end(self) -> None:
        """Stop in order; the second time, at once."""
        if self._server is not None:
            self._server.force_exit = self._server.should_exit
            self._server.should_exit = True
