"""A streaming request that can be cancelled at any moment. It runs in its own thread; when the
caller stops reading, the connection is closed, so that the server stops working too.
"""

import queue
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import openai

from journeyman.models.model import Cancelled

# The SDK accepts only clients of its own library: httpx2 from version 3 on, httpx before.
if TYPE_CHECKING:
    import httpx2 as http
else:
    http = import_module("httpx" if openai.__version__.startswith("2.") else "httpx2")

__all__ = ["Connection", "ReadTimeout", "RequestFailed", "certificates", "http", "stream_events"]

POLL_S = 0.1
"""How often the caller checks for cancellation."""

GRACE_S = 0.2
"""How long to wait for the thread after closing its connection; it ends later in any case."""


@cache
def certificates() -> ssl.SSLContext:
    """Return the TLS context with the machine's certificates, which are slow to load."""
    return http.create_ssl_context()


class RequestFailed(Exception):
    """The request failed. Its error is not raised itself, because it can contain the API key."""

    def __init__(self, error: Exception) -> None:
        super().__init__(type(error).__name__)
        self.error = error


class ReadTimeout(Exception):
    """The server sent nothing for too long."""


_END = object()


class Connection:
    """The connection of one request, which any thread can close."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_closed = False

    def watch(self, request: http.Request) -> None:
        """Note the socket that a request uses; a hook for the HTTP client."""
        request.extensions = {**request.extensions, "trace": self._trace}

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        connected = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._socket = connected
        if self.is_closed:
            self.close()

    def close(self) -> None:
        """Close the connection; a thread that waits on it wakes up with an error."""
        with self._lock:
            self.is_closed = True
            connected = self._socket
        if connected is not None:
            # An SSL socket's own method would continue in plain text. The connection may already
            # be closed.
            with suppress(OSError):
                socket.socket.shutdown(connected, socket.SHUT_RDWR)


def stream_events(
    events: Callable[[Connection], Generator[object]],
    *,
    cancelled: Callable[[], bool],
    timeout_s: float,
    clock: Callable[[], float],
) -> Generator[object]:
    """Yield the events of a request as they arrive. Raise Cancelled, ReadTimeout if none arrives
    within `timeout_s`, or RequestFailed. The connection is closed then, and when the caller stops
    reading.
    """
    connection = Connection()
    arrived: queue.SimpleQueue[object] = queue.SimpleQueue()

    def receive() -> None:
        end: object = _END
        try:
            with closing(events(connection)) as incoming:
                for event in incoming:
                    arrived.put(event)
                    if connection.is_closed:
                        break
        # What a server can cause: errors of the client and of the connection, invalid JSON
        # (ValueError) or JSON nested too deeply, a body closed while being read (RuntimeError).
        except (openai.OpenAIError, http.HTTPError, OSError, ValueError, RuntimeError) as error:
            end = RequestFailed(error)
        finally:
            arrived.put(end)

    thread = threading.Thread(target=receive, name="model request", daemon=True)
    thread.start()
    last_event_at = clock()
    try:
        while True:
            if cancelled():
                raise Cancelled("the request was cancelled")
            try:
                event = arrived.get(timeout=POLL_S)
            except queue.Empty:
                if clock() - last_event_at > timeout_s:
                    raise ReadTimeout from None
                continue
            last_event_at = clock()
            if event is _END:
                return
            if isinstance(event, RequestFailed):
                raise event
            yield event
    finally:
        connection.close()
        thread.join(GRACE_S)
