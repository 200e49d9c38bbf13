"""A look from outside whether the service answers, with nothing but the standard library: whoever
asks may not have the parts for more.
"""

import http.client
import json
import socket
from typing import Literal

from msgspec import Struct

Answer = Literal["service", "free", "other"]

_PATIENCE_S = 1.0

BLOCKED_PORTS = frozenset(
    (
        *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95),
        *(101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161),
        *(179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563),
        *(587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061),
        *(6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
    )
)
"""Ports to which browsers do not connect, by the rules that they share."""


class Probed(Struct, frozen=True, kw_only=True):
    """What answers on a port: the service, nobody, or somebody else."""

    answer: Answer
    pending: int = 0


def probe(host: str, port: int) -> Probed:
    """Ask a port for its health."""
    connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/health")
        told = json.loads(connection.getresponse().read(4_096))
        if told["status"] == "ok":
            return Probed(answer="service", pending=int(told["pending"]))
    except (ConnectionRefusedError, socket.gaierror):
        return Probed(answer="free")
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return Probed(answer="other")
    finally:
        connection.close()
    return Probed(answer="other")
