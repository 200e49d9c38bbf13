"""Listening sockets, and an HTTP protocol that limits the size and duration of a request head, so
that slow senders cannot hold connections.
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
MAX_HEAD_BYTES = 32 * 1024
UNACKNOWLEDGED_S = 60
"""A connection is dropped after this long without acknowledgement from the client."""

_PORT_SETTINGS = {"agents": "CONFIRMATION_PORT", "page": "confirm.page_port"}


class Timeouts(Struct, frozen=True, kw_only=True):
    """Time limits for clients, in seconds."""

    head_s: float = 10.0
    """For sending the head of a request."""
    body_s: float = 10.0
    """For sending its body."""
    idle_s: int = 20
    """Between two requests on one connection."""
    heartbeat_s: float = 15.0
    """A stream without events sends a heartbeat after this long."""


class LimitedHttpProtocol(HttpToolsProtocol):
    """HTTP with limits on the size and the duration of a request head. Between requests, uvicorn's
    own keep-alive timeout applies.
    """

    def __init__(self, *args: Any, head_s: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head_s = head_s
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_size = 0
        self._is_in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self._head_s, self._on_head_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:
            remaining = MAX_HEAD_BYTES - self._head_size
            head, data = data[:remaining], data[remaining:]
            self._head_size += len(head)
            super().data_received(head)
            if self._is_in_head and self._head_size >= MAX_HEAD_BYTES:
                self.send_400_response(
                    f"The request head is larger than {MAX_HEAD_BYTES // 1024} KB."
                )
        if data and not self.transport.is_closing():
            super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_s, self._on_head_timeout)

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

    def _on_head_timeout(self) -> None:
        if self._head_size:
            self.send_400_response(f"The request head took longer than {self._head_s:g} seconds.")
        else:
            self.transport.close()


def is_loopback(host: str) -> bool:
    """Return whether a host is reachable from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bind_socket(host: str, port: int, name: str) -> socket.socket:
    """Return a listening socket. Raise ServiceUnavailable if the port cannot be opened."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server(
            (host, port), family=family, backlog=BACKLOG, dualstack_ipv6=host == "::"
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
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections inherit it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_S * 1000)
    return listener
