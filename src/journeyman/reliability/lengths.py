"""How long a session is, in three bands. The bands are data; everything that groups by length asks
here.
"""

from typing import Literal

from msgspec import Struct

BandName = Literal["short", "mid", "marathon"]


class Band(Struct, frozen=True, kw_only=True):
    """Sessions of at least so many messages, up to the next band."""

    name: BandName
    at_least: int
    words: str


BANDS = (
    Band(name="short", at_least=0, words="under 20 messages"),
    Band(name="mid", at_least=20, words="20 to 99 messages"),
    Band(name="marathon", at_least=100, words="100 messages or more"),
)
"""From the shortest to the longest."""


def band(messages: int) -> BandName:
    """The band of a session with so many messages."""
    return next((one.name for one in reversed(BANDS) if messages >= one.at_least), BANDS[0].name)
