"""Facts: what is known about working in a project, with the evidence and what it rests on."""

import hashlib
from typing import Literal, get_args

from msgspec import Struct

from journeyman.records.session import SessionId

FactKind = Literal["trap", "command", "finding", "continuity", "preference"]
FACT_KINDS: tuple[FactKind, ...] = get_args(FactKind)
"""`trap`: a call that fails here, and what works instead. `command`: one of the project's own.
`finding`: a rule that linters and tests report again and again. `continuity`: what the last
sessions worked on. `preference`: what the person wants."""

FactState = Literal["known", "draft", "pinned", "dropped"]
"""`known` by counting, a `draft` until a person accepts it, `pinned` or `dropped` by a person."""


TOLD = "t"
"""What the id of a fact begins with that a person told: not a digit of other ids."""


class Fact(Struct, frozen=True, kw_only=True):
    """One thing learned. `subject` is what it is about, `text` what is shown, made only of parts of
    calls, names of rules, numbers and the person's own words. `remedy` is what works in the place
    of a trap. `present` and `absent` are paths that must exist in the checkout, or must not, for
    the fact to hold. `tool` and `target` say which calls it is about. `sessions` are its evidence,
    the newest first; `weight` counts them, older ones less.
    """

    id: str
    kind: FactKind
    subject: str
    text: str
    detail: str = ""
    remedy: str = ""
    tool: str = ""
    target: str = ""
    state: FactState = "known"
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    sessions: tuple[SessionId, ...] = ()
    times: int = 0
    first_at: float | None = None
    last_at: float | None = None
    weight: float = 0.0


class FactDecision(Struct, frozen=True, kw_only=True):
    """What a person decided about a fact of a project, or told to remember. A `text` takes the
    place of the fact's own.
    """

    project: str
    id: str
    state: FactState
    kind: FactKind = "preference"
    text: str = ""
    at: float = 0.0


class Correction(Struct, frozen=True, kw_only=True):
    """A command in an instructions file that sessions show to be wrong."""

    file: str
    says: str
    fact: Fact


class Playbook(Struct, frozen=True, kw_only=True):
    """A project's facts, the most useful first of each kind. `sessions` counts those it is based
    on, `bots` those of bots that were left out.
    """

    project: str
    sessions: int = 0
    bots: int = 0
    facts: tuple[Fact, ...] = ()
    corrections: tuple[Correction, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.facts or self.corrections)


def fact_id(kind: FactKind, subject: str) -> str:
    """Return the id that a fact keeps across learning runs."""
    return hashlib.sha256(f"{kind}\0{subject}".encode("utf-8", "replace")).hexdigest()[:8]
