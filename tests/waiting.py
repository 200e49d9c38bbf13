"""The only place where tests look at a clock. Waiting has one limit, so generous that only what
hangs reaches it; the cost of work is a ratio of two sizes, measured in one run.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

LONGEST_S = 240.0


def deadline(within_s: float = LONGEST_S) -> float:
    return time.monotonic() + within_s


def until(found: Callable[[], Any]) -> Any:
    """Wait until `found` returns something true, and return it."""
    ends = deadline()
    while not (value := found()):
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.01)
    return value


async def until_async(found: Callable[[], Awaitable[Any]]) -> Any:
    """The same within an event loop."""
    ends = deadline()
    while not (value := await found()):
        assert time.monotonic() < ends, "it did not happen"
        await asyncio.sleep(0.01)
    return value


def until_cut_off(connection: socket.socket, drip: bytes) -> bytes:
    """Send a little again and again until the other side ends the connection, and return what it
    answered last.
    """
    answer = b""

    def is_cut_off() -> bool:
        nonlocal answer
        try:
            connection.sendall(drip)
            answer = connection.recv(1_000)
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    connection.settimeout(0.05)
    until(is_cut_off)
    return answer


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Assert that the work takes about 8 times as long at 8 times the size, not 64 times. The best
    of several runs counts, because other programs on the machine can only slow them down.
    """
    small = large = float("inf")
    for number in count(1):
        small, large = min(small, _took_s(work, size)), min(large, _took_s(work, 8 * size))
        if number > 1 and large < 32 * small:
            return
        assert number < 6, f"{large / small:.0f} times as long at 8 times the size"


def _took_s(work: Callable[[int], object], size: int) -> float:
    began = time.thread_time()
    work(size)
    return time.thread_time() - began
