"""What is not learned: what a rule excluded and what a person decided about it, and what a person
asked to forget.
"""

from typing import Literal

from msgspec import Struct

from journeyman.records.session import SessionId

KeptOutKind = Literal["command", "call", "episode", "pattern"]

LONGEST_KEPT_OUT = 2_000
"""How many characters of an excluded text are stored."""


class KeptOut(Struct, frozen=True, kw_only=True):
    """Something that a rule excluded from learning. `text` is redacted and shortened to
    LONGEST_KEPT_OUT; `key` identifies it across learning runs.
    """

    key: str
    kind: KeptOutKind
    rule: str
    reason: str
    text: str
    session: SessionId
    number: int


QuarantineState = Literal["kept out", "released"]
"""`kept out`: not decided yet. `released`: it may be learned. `deleted`: it stays excluded and is
no longer listed."""


class Quarantined(Struct, frozen=True, kw_only=True):
    """Something that a rule excluded, and the sessions in which it occurs."""

    key: str
    kind: KeptOutKind
    rule: str
    reason: str
    text: str
    sessions: tuple[SessionId, ...] = ()
    state: QuarantineState = "kept out"
    decided_at: float | None = None
    decided_by: str = ""


EVERY_REQUEST = -1
"""In place of a request's number: all requests of a session."""


class Forgotten(Struct, frozen=True, kw_only=True):
    """What was forgotten, or would be. `sessions` and `projects` are those it was learned from.
    `templates_changed` and `templates_deleted` name versions, such as web@2.
    """

    sessions: tuple[SessionId, ...] = ()
    projects: tuple[str, ...] = ()
    episodes: int = 0
    patterns: int = 0
    kept_out: int = 0
    templates_changed: tuple[str, ...] = ()
    templates_deleted: tuple[str, ...] = ()
    template_patterns: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing learned is affected."""
        learned = (self.episodes, self.patterns, self.kept_out)
        return not any((*learned, self.templates_changed, self.templates_deleted))


class ForgottenSession(Struct, frozen=True, kw_only=True):
    """A session that is not learned from. If only some of its requests are excluded, `requests` has
    their numbers.
    """

    session: SessionId
    requests: tuple[int, ...] = ()
    at: float
