"""What the searches for secrets give back: where a secret stands."""

from typing import NamedTuple


class Found(NamedTuple):
    """A secret and where it stands. `wants_quotes` says that the text around it wants quotes."""

    start: int
    end: int
    family: str
    wants_quotes: bool = False
