"""Sockets and the HTTP protocol on them: a port is taken or the reason is given, and the head of a
request is limited in size and time, so that nobody holds a connection by sending slowly.
"""

import asyncio
import errno
import ipaddress
import socket
from typing import Any

from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from journeyman.records.errors import ServiceUnavailable

BACKLOG = 2048
HEAD_LIMIT = 32 * 1024
VANISHED_AFTER_S = 60
"""When a client that acknowledges nothing any more is given up."""

_SETTINGS = {"agents": "CONFIRMATION_PORT", "page": "confirm.page_port"}


class Timeouts(Struct, frozen=True, kw_only=True):
    """How long clients may take, in seconds."""

    head_s: float = 10.0
    """To send the head of a request."""
    body_s: float = 10.0
    """To send its body."""
    idle_s: int = 20
    """Between two requests on one connection."""
    heartbeat_s: float = 15.0
    """After this time of silence a stream says that it is still there."""


class LimitedHttpProtocol(HttpToolsProtocol):
    """HTTP with a limit on how large the head of a request may be, and how long it may take. From
    one request to the next, uvicorn's own time limit holds.
    """

    def __init__(self, *args: Any, head_s: float, **more: Any) -> None:
        super().__init__(*args, **more)
        self._head_s = head_s
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_size = 0
        self._is_in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self._head_s, self._is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:
            room = HEAD_LIMIT - self._head_size
            head, data = data[:room], data[room:]
            self._head_size += len(head)
            super().data_received(head)
            if self._is_in_head and self._head_size >= HEAD_LIMIT:
                self.send_400_response(f"The head is larger than {HEAD_LIMIT // 1024} KB.")
        if data and not self.transport.is_closing():
            super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_s, self._is_late)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_in_head = True
        self._head_size = 0
        super().on_message_complete()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _is_late(self) -> None:
        if self._head_size:
            self.send_400_response(f"The head took longer than {self._head_s:g} seconds.")
        else:
            self.transport.close()


def is_loopback(host: str) -> bool:
    """Whether a host is this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int, name: str) -> socket.socket:
    """A socket that listens. Raises ServiceUnavailable."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        taken = socket.create_server(
            (host, port), family=family, backlog=BACKLOG, dualstack_ipv6=host == "::"
        )
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        why = "another program has it, perhaps a second `journeyman confirm serve`"
        raise ServiceUnavailable(
            f"The {name} port {port} on {host} could not be opened for confirmations: "
            f"{why if is_taken else error.strerror or error}. See which ports are taken with `ss "
            f"-ltnp`; take another with {_SETTINGS[name]}, or another address with confirm.host."
        ) from error
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections have it from here
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, VANISHED_AFTER_S * 1000)
    return taken
