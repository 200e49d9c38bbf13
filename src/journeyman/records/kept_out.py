"""What mining did not learn from a session because a rule kept it out."""

from typing import Literal

from msgspec import Struct

from journeyman.records.session import SessionId

KeptOutKind = Literal["command", "call", "episode", "pattern"]

LONGEST_KEPT_OUT = 2_000
"""How many characters are kept of a text that was kept out."""


class KeptOut(Struct, frozen=True, kw_only=True):
    """What was not learned, and the rule that kept it out. `text` is redacted, and shortened to
    LONGEST_KEPT_OUT; `key` identifies it across learning runs.
    """

    key: str
    kind: KeptOutKind
    rule: str
    reason: str
    text: str
    session: SessionId
    number: int
