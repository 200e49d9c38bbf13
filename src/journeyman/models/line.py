"""A request that can be given up at any moment: it runs in a thread of its own, and the caller
listens. When nobody listens any more the connection is cut, so that the server stops working too.
"""

import queue
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from functools import cache
from typing import Any

import httpx2
import openai

from journeyman.models.model import Cancelled

HEARING_S = 0.1
"""How long the caller listens before it looks whether the request was cancelled."""

GRACE_S = 0.2
"""How long a thread whose line was cut is given to end; it ends by itself in any case."""


@cache
def certificates() -> ssl.SSLContext:
    """The TLS context with the machine's certificates, which take long to read."""
    return httpx2.create_ssl_context()


class RequestFailed(Exception):
    """The request ended with an error, which is not raised itself: it can show the key."""

    def __init__(self, error: Exception) -> None:
        super().__init__(type(error).__name__)
        self.error = error


class TooQuiet(Exception):
    """Nothing came for too long."""


_END = object()


class Line:
    """The connection of one request, which any thread can cut."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_cut = False

    def watch(self, request: httpx2.Request) -> None:
        """Learn which connection a request goes over: a hook for the HTTP client."""
        request.extensions = {**request.extensions, "trace": self._trace}

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        found = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._socket = found
        if self.is_cut:
            self.cut()

    def cut(self) -> None:
        """End the connection; a thread that waits for it wakes up with an error."""
        with self._lock:
            self.is_cut = True
            connected = self._socket
        if connected is not None:
            # Not the method of an encrypted socket, which would speak plainly from then on. The
            # connection may have ended by itself.
            with suppress(OSError):
                socket.socket.shutdown(connected, socket.SHUT_RDWR)


def listen(
    events: Callable[[Line], Generator[object]],
    *,
    cancelled: Callable[[], bool],
    timeout_s: float,
    clock: Callable[[], float],
) -> Generator[object]:
    """The events of a request as they come. Raises Cancelled, TooQuiet when none comes for
    `timeout_s`, RequestFailed; then, and when the caller goes away, the line is cut.
    """
    line = Line()
    arrived: queue.SimpleQueue[object] = queue.SimpleQueue()

    def pass_on() -> None:
        end: object = _END
        try:
            with closing(events(line)) as coming:
                for event in coming:
                    arrived.put(event)
                    if line.is_cut:
                        break
        # What a server can cause: errors of the client and of the connection, text that is no JSON
        # (ValueError) or is nested too deeply, a body closed under the reader (RuntimeError).
        except (openai.OpenAIError, httpx2.HTTPError, OSError, ValueError, RuntimeError) as error:
            end = RequestFailed(error)
        finally:
            arrived.put(end)

    thread = threading.Thread(target=pass_on, name="model request", daemon=True)
    thread.start()
    heard_at = clock()
    try:
        while True:
            if cancelled():
                raise Cancelled("the request was given up")
            try:
                event = arrived.get(timeout=HEARING_S)
            except queue.Empty:
                if clock() - heard_at > timeout_s:
                    raise TooQuiet from None
                continue
            heard_at = clock()
            if event is _END:
                return
            if isinstance(event, RequestFailed):
                raise event
            yield event
    finally:
        line.cut()
        thread.join(GRACE_S)
