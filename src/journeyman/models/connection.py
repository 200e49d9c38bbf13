"""The connection of one request. Closing it from any thread makes the server stop working too."""

import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import openai

# The SDK accepts only clients of its own library: httpx2 from version 3 on, httpx before.
if TYPE_CHECKING:
    import httpx2 as http
else:
    http = import_module("httpx" if openai.__version__.startswith("2.") else "httpx2")

__all__ = ["Connection", "http"]

_CONNECT_S = 10.0


@cache
def _certificates() -> ssl.SSLContext:
    """Return the TLS context with the machine's certificates, which are slow to load."""
    return http.create_ssl_context()


class Connection:
    """The connection of one request. `timeout_s` limits how long the server may send nothing."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout = http.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s))
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_closed = False

    def client(self) -> http.Client:
        """Return an HTTP client for the request."""
        return http.Client(
            timeout=self.timeout,
            verify=_certificates(),
            follow_redirects=True,
            event_hooks={"request": [self._watch]},
        )

    def _watch(self, request: http.Request) -> None:
        request.extensions = {**request.extensions, "trace": self._trace}

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        connected = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._socket = connected
        if self._is_closed:
            self.close()

    def close(self) -> None:
        """Close the connection; a thread that waits on it wakes up with an error."""
        with self._lock:
            self._is_closed = True
            connected = self._socket
        if connected is not None:
            # An SSL socket's own method would continue in plain text. The connection may already
            # be closed.
            with suppress(OSError):
                socket.socket.shutdown(connected, socket.SHUT_RDWR)
