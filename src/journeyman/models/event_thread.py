"""Events of a request that runs in a thread of its own, for a caller that may stop at any moment:
what produces them may block for minutes, and Ctrl-C would be lost in it.
"""

import queue
import threading
from collections.abc import Callable, Generator
from typing import TypeVar

from journeyman.models.model import Cancelled

Event = TypeVar("Event")

POLL_S = 0.1
"""How often the caller checks for cancellation."""

GRACE_S = 0.2
"""How long to wait for the thread after the caller has left; it ends later in any case."""


def thread_events(
    produce: Callable[[Callable[[Event], bool]], None],
    *,
    cancelled: Callable[[], bool],
    daemon: bool = True,
) -> Generator[Event]:
    """Yield what `produce` passes to its parameter, which returns whether the caller has left.
    Raise Cancelled.
    """
    arrived: queue.SimpleQueue[tuple[Event, ...]] = queue.SimpleQueue()
    has_left = threading.Event()

    def emit(event: Event) -> bool:
        arrived.put((event,))
        return has_left.is_set()

    def run() -> None:
        try:
            produce(emit)
        finally:
            arrived.put(())

    thread = threading.Thread(target=run, name="model request", daemon=daemon)
    thread.start()
    try:
        while True:
            if cancelled():
                raise Cancelled("the request was cancelled")
            try:
                events = arrived.get(timeout=POLL_S)
            except queue.Empty:
                continue
            if not events:
                return
            yield events[0]
    finally:
        has_left.set()
        thread.join(GRACE_S)
