"""What a check of the installation found, and what to do about it."""

from typing import Literal

from msgspec import Struct

Status = Literal["ok", "note", "problem"]


class Finding(Struct, frozen=True):
    """The result of one check. `advice` is empty when there is nothing to do."""

    what: str
    status: Status
    found: str
    advice: str = ""
