"""A streaming request that can be cancelled at any moment: it runs in its own thread."""

import queue
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import closing
from functools import cache

import openai

from journeyman.models.http_library import http
from journeyman.models.model import Cancelled

POLL_S = 0.1
"""How often the caller checks for cancellation."""


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


def stream_events(
    events: Callable[[], Generator[object]],
    *,
    cancelled: Callable[[], bool],
    timeout_s: float,
    clock: Callable[[], float],
) -> Generator[object]:
    """Yield the events of a request as they arrive. Raise Cancelled, ReadTimeout if none arrives
    within `timeout_s`, or RequestFailed. The thread then closes the connection with the next event.
    """
    abandoned = threading.Event()
    arrived: queue.SimpleQueue[object] = queue.SimpleQueue()

    def receive() -> None:
        end: object = _END
        try:
            with closing(events()) as incoming:
                for event in incoming:
                    arrived.put(event)
                    if abandoned.is_set():
                        break
        # What a server can cause: errors of the client and of the connection, invalid JSON
        # (ValueError) or JSON nested too deeply, a body closed while being read (RuntimeError).
        except (openai.OpenAIError, http.HTTPError, OSError, ValueError, RuntimeError) as error:
            end = RequestFailed(error)
        finally:
            arrived.put(end)

    threading.Thread(target=receive, name="model request", daemon=True).start()
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
        abandoned.set()
