"""A session, where it came from and what it descends from."""

from typing import Any, Literal, NewType

from msgspec import Struct

from journeyman.records.usage import Tokens

SessionId = NewType("SessionId", str)

LineageKind = Literal["compression", "branch", "subagent", "reset", "unknown"]
"""How a session descends from its parent: it goes on after the context was compressed, it is a
copy that the user branched off, it is a subagent's, it was started fresh from the other, or the
recorder names a parent without saying why."""


class Lineage(Struct, frozen=True, kw_only=True):
    """The parent of a session; it need not be in the store."""

    parent: SessionId
    kind: LineageKind


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about one recorded conversation, apart from its messages.

    `source` is the recorder (hermes, claude_code, codex, …). `outcome` is a reward between 0 and
    1 where somebody outside the session judged it, never a guess. `project` is the repository that
    the session worked in (`github.com/acme/app`, `~/src/app`, or only its name), empty if it is
    not known. `details` keeps what the recorder knows and no other field holds.
    """

    id: SessionId
    source: str
    title: str = ""
    cwd: str = ""
    project: str = ""
    git_branch: str = ""
    agent: str = ""
    model: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: str = ""
    outcome: float | None = None
    outcome_origin: str = ""
    lineage: Lineage | None = None
    log: str = ""
    tags: tuple[str, ...] = ()
    details: dict[str, Any] = {}


class SessionOverview(Struct, frozen=True, kw_only=True):
    """A stored session with its counts. `digest` names its content: equal digests, equal
    messages. `answered` counts the calls whose result was recorded.
    """

    session: Session
    messages: int
    calls: int
    answered: int
    generations: int
    tokens: Tokens
    digest: str


class SourceTotals(Struct, frozen=True, kw_only=True):
    """The sessions of one source, counted. Subagents' sessions are counted apart."""

    source: str
    sessions: int
    subagents: int
    messages: int
    calls: int
    answered: int
    tokens: Tokens
    started_at: float | None
    ended_at: float | None


class ProjectTotals(Struct, frozen=True, kw_only=True):
    """The sessions of one project, counted, and when the last of them ended. The empty name is
    that of the sessions whose project is not known.
    """

    project: str
    sessions: int
    calls: int
    ended_at: float | None


class SearchHit(Struct, frozen=True, kw_only=True):
    """A message that a search found; matches in the snippet stand between `[` and `]`."""

    session: SessionId
    source: str
    key: str
    role: str
    at: float | None
    snippet: str
