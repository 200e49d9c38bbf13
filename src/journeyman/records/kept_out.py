"""What is not learned: what a rule kept out and what a person decided about it, and what a person
had forgotten.
"""

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


QuarantineState = Literal["kept out", "released", "deleted"]
"""`kept out`: nobody has decided. `released`: it may be learned. `deleted`: it stays kept out and
is not listed any more."""


class Quarantined(Struct, frozen=True, kw_only=True):
    """What a rule kept out. It was found in `sessions`, or stands in `templates`, each named with
    its version, that came from a file.
    """

    key: str
    kind: KeptOutKind
    rule: str
    reason: str
    text: str
    sessions: tuple[SessionId, ...] = ()
    templates: tuple[str, ...] = ()
    state: QuarantineState = "kept out"
    decided_at: float | None = None
    decided_by: str = ""


EVERY_REQUEST = -1
"""Stands for all requests of a session."""


class Forgotten(Struct, frozen=True, kw_only=True):
    """What was removed, or would be. `sessions` and `projects` are those it was learned from.
    `commands`, `files` and `mistakes` count what no other episode of the same project knows.
    `templates_changed` and `templates_deleted` name versions, such as web@2. `learned_again` counts
    the sessions that the next run of learning goes through again.
    """

    sessions: tuple[SessionId, ...] = ()
    projects: tuple[str, ...] = ()
    episodes: int = 0
    vectors: int = 0
    commands: int = 0
    files: int = 0
    mistakes: int = 0
    patterns: int = 0
    kept_out: int = 0
    templates_changed: tuple[str, ...] = ()
    templates_deleted: tuple[str, ...] = ()
    template_patterns: int = 0
    learned_again: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing that was learned is concerned."""
        learned = (self.episodes, self.patterns, self.kept_out)
        return not any((*learned, self.templates_changed, self.templates_deleted))


class ForgottenSession(Struct, frozen=True, kw_only=True):
    """A session that is not learned from, or of which some requests are not; then `requests` has
    their numbers.
    """

    session: SessionId
    requests: tuple[int, ...] = ()
    at: float
