"""The record of an installation: what was changed in a host, and its confirmation token."""

from pathlib import Path

import msgspec
from msgspec import Struct


class Record(Struct, frozen=True, kw_only=True):
    """What is installed in a host. The installer extends this."""

    host: str
    token: str = ""
    parts: tuple[str, ...] = ()
    gate_tools: tuple[str, ...] = ()


def record_path(home: Path, host: str) -> Path:
    return home / "hosts" / f"{host}.json"


def read_record(home: Path, host: str) -> Record | None:
    """Return the record of a host; None if nothing is installed, or the file cannot be read."""
    try:
        return msgspec.json.decode(record_path(home, host).read_bytes(), type=Record)
    except (OSError, msgspec.DecodeError):
        return None
