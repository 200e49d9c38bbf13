"""One operation for a host in a process of its own, where no resident process answers."""

import socket
import time

from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.client import socket_path
from journeyman.hosts.resident import start_detached
from journeyman.hosts.service import Exchange, HostService

_LONGEST_S = 3_600.0
_CONNECT_S = 0.2


def run_operation(journeyman: Journeyman, operation: str, host: str, body: bytes) -> bytes:
    """Run an operation and return its answer; start a resident process for the next one if the
    settings allow it. The caller limits the time.
    """
    settings = journeyman.settings
    if settings.hosts.start == "on-demand" and not is_served(str(settings.home)):
        start_detached(settings.home, settings.database)
    exchange = Exchange(host=host, ends=time.monotonic() + _LONGEST_S)
    return HostService(journeyman).handle(operation, body, exchange)


def is_served(home: str) -> bool:
    """Whether a resident process of this home accepts connections."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_CONNECT_S)
        try:
            connection.connect(socket_path(home))
        except OSError:
            return False
    return True
