"""Options of the confirmation service on this machine, and a probe whether it answers. It needs no
optional package, because these may be missing where it is used.
"""

import hashlib
import http.client
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

from journeyman.records.errors import MissingPart
from journeyman.settings import ConfirmSettings

ProbeAnswer = Literal["service", "free", "other"]

_PROBE_LIMIT_S = 1.0


class ServiceOptions(ConfirmSettings, frozen=True, kw_only=True):
    """The settings of a service on this machine. `files` is the folder for the audit's anchor, and
    for its policy unless `policy` names another file.
    """

    files: Path

    @property
    def policy_file(self) -> Path:
        """The policy, which must exist if it was named; otherwise the built-in rules can apply."""
        return Path(self.policy).expanduser() if self.policy else self.files / "confirm.toml"

    @property
    def agents_url(self) -> str:
        """The address for agents on this machine."""
        return f"http://{url_host(self.host)}:{self.port}"

    @property
    def shown_page_url(self) -> str:
        """The address of the page for people."""
        if self.page_url:
            return self.page_url.rstrip("/")
        return f"http://{url_host(self.host)}:{self.page_port}"


def url_host(host: str) -> str:
    """Return the host to use in a URL on this machine for a listening address. An address that
    means all interfaces becomes the loopback address.
    """
    loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"[{loopback}]" if ":" in loopback else loopback


class ProbeResult(Struct, frozen=True, kw_only=True):
    """What answers on a port: the service, nothing (`free`), or another program."""

    answer: ProbeAnswer
    pending: int = 0
    problem: str = ""
    """Why the service cannot write to its database, if it reports that."""
    home: str = ""
    """The `home_id` of the home that it serves, if it answered."""


def home_id(home: Path) -> str:
    """Return what tells services of different homes apart, without revealing the path."""
    return hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]


FOREIGN_SERVICE = "the service of another Journeyman home answers on port {port}, not this home's"


def probe(host: str, port: int) -> ProbeResult:
    """Query the health endpoint on a port."""
    connection = http.client.HTTPConnection(host, port, timeout=_PROBE_LIMIT_S)
    try:
        connection.request("GET", "/health")
        health = json.loads(connection.getresponse().read(4_096))
        if "error" in health and health["error"]["code"] == "unavailable":
            return ProbeResult(answer="service", problem=str(health["error"]["message"]))
        is_service = health["status"] == "ok"
        return ProbeResult(
            answer="service" if is_service else "other",
            pending=int(health["pending"]),
            home=str(health.get("home", "")),
        )
    except (ConnectionRefusedError, socket.gaierror):
        return ProbeResult(answer="free")
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return ProbeResult(answer="other")
    finally:
        connection.close()


@contextmanager
def missing_part_error() -> Iterator[None]:
    """Turn an ImportError into MissingPart, which says what to install."""
    try:
        yield
    except ImportError as error:
        raise MissingPart(
            f"Confirmations need packages that are not installed ({error}). Install them with: "
            "pip install 'journeyman[confirm]'"
        ) from error
