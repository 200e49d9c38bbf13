"""One operation for a host in a process of its own, where no resident process answers."""

import math
import os
import socket
import time
from collections.abc import Callable

from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.client import socket_path
from journeyman.hosts.resident import start_detached
from journeyman.hosts.service import Exchange, HostService
from journeyman.records.errors import BadSetting

_LONGEST_S = 3_600.0
_CONNECT_S = 0.2
_PATIENCE_S = 0.5
"""The caller waits for the end of this process."""


def run_operation(
    journeyman: Journeyman,
    operation: str,
    host: str,
    body: bytes,
    send: Callable[[bytes], None],
    *,
    until: float | None = None,
) -> None:
    """Run an operation and send its answer; start a resident process for the next one if the
    settings allow it. The caller waits `until` this time, and no longer than it lives.
    """
    settings = journeyman.settings
    if not settings.home.is_dir():
        raise BadSetting(
            f"There is no folder {settings.home}: a hook does not create Journeyman's home. Remove "
            "the hook with `journeyman hosts remove`, or install it again."
        )
    if settings.hosts.start == "on-demand" and not is_served(str(settings.home)):
        start_detached(settings.home, settings.database)
    caller = os.getppid()
    left_s = _LONGEST_S if until is None or math.isnan(until) else until - time.time()
    exchange = Exchange(
        host=host,
        ends=time.monotonic() + min(left_s, _LONGEST_S),
        cancelled=lambda: os.getppid() != caller,
        patience_s=_PATIENCE_S,
    )
    answer = HostService(journeyman).handle(operation, body, exchange)
    send(answer)
    exchange.finish(is_received=True)


def is_served(home: str) -> bool:
    """Whether a resident process of this home accepts connections."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_CONNECT_S)
        try:
            connection.connect(socket_path(home))
        except OSError:
            return False
    return True
