"""How the service on this machine is set up, and whether it answers. Only the standard library is
needed: whoever asks may not have the parts for more.
"""

import http.client
import json
import socket
from pathlib import Path
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


class Options(Struct, frozen=True, kw_only=True):
    """What a service on this machine needs to know. `files` is the folder for its key and for the
    audit's anchor.
    """

    files: Path
    policy: Path
    policy_required: bool = False
    """Whether the file has to be there; otherwise the built-in rules hold without it."""
    rate_limit: int = 10
    host: str = "127.0.0.1"
    port: int = 6000
    page_port: int = 6080
    hosts: tuple[str, ...] = ()
    page_hosts: tuple[str, ...] = ()
    page_url: str = ""
    notify: tuple[str, ...] = ()

    @property
    def agents_url(self) -> str:
        """Where agents on this machine ask."""
        return f"http://{reached(self.host)}:{self.port}"

    @property
    def shown_page_url(self) -> str:
        """The page's address as people open it."""
        if self.page_url:
            return self.page_url.rstrip("/")
        return f"http://{reached(self.host)}:{self.page_port}"

    def __repr__(self) -> str:
        """Without the addresses for notices, which have secrets in them."""
        return f"Options(host={self.host!r}, port={self.port!r}, page_port={self.page_port!r})"


def reached(host: str) -> str:
    """How an address that is listened on is written in a URL on this machine: one that means all
    addresses is reached as this machine's own.
    """
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"[{here}]" if ":" in here else here


class Probed(Struct, frozen=True, kw_only=True):
    """What answers on a port: the service, nobody, or somebody else."""

    answer: Answer
    pending: int = 0
    problem: str = ""
    """Why the service cannot write, when it says so."""


def probe(host: str, port: int) -> Probed:
    """Ask a port for its health."""
    connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/health")
        told = json.loads(connection.getresponse().read(4_096))
        if "error" in told and told["error"]["code"] == "unavailable":
            return Probed(answer="service", problem=str(told["error"]["message"]))
        is_service = told["status"] == "ok"
        return Probed(answer="service" if is_service else "other", pending=int(told["pending"]))
    except (ConnectionRefusedError, socket.gaierror):
        return Probed(answer="free")
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return Probed(answer="other")
    finally:
        connection.close()
