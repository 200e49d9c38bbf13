"""A session, its origin and its lineage."""

from typing import Any, Literal, NewType

from msgspec import Struct

from journeyman.records.usage import Tokens

SessionId = NewType("SessionId", str)

LineageKind = Literal["compression", "branch", "subagent", "reset", "unknown"]
"""How a session descends from its parent: it continues after a context compression, it is a copy
that the user branched off, it belongs to a subagent, it was started fresh from the parent, or the
recorder names a parent without a reason."""


BOT_PLATFORMS = (
    *("sdk-cli", "sdk-py", "sdk-ts", "claude-code-github-action", "mcp", "exec", "codex_exec"),
    *("cron", "oneshot", "webhook", "job", "review"),
)
"""Headless entry points, of Journeyman's jobs and reviews too: a program speaks to the agent, not a
person."""

RUN, JOB, REVIEW = "run", "job", "review"
"""Platforms of the sessions that Journeyman started. Those of jobs teach only jobs, and those of
reviews nothing."""


REDACTED_DETAIL = "redacted"
"""The detail of a session that was imported from a redacted export."""


def owner_facts(owner: str) -> tuple[str, tuple[str, ...]]:
    """Return the platform and the tags of a session that Journeyman started in a host: for a person
    (`run`), for a job (`job:NAME`) or as a review (`review:SESSION`).
    """
    platform, _, name = owner.partition(":")
    return platform, (platform, f"{platform}:{name}") if name else ()


class Lineage(Struct, frozen=True, kw_only=True):
    """The parent of a session, which need not be in the store."""

    parent: SessionId
    kind: LineageKind


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about one recorded conversation, apart from its messages.

    `source` is the recorder (hermes, claude_code, codex, …). `outcome` is a reward between 0 and
    1 if someone outside the session judged it, never a guess. `project` is the repository that the
    session worked in (`github.com/acme/app`, `~/src/app`, or only its name), empty if unknown.
    `platform` is where a person or a program spoke to the agent (cli, telegram, cron, …). `opening`
    is the id of the opening that the session started with; empty for a cold session.
    `details` holds what the recorder knows and no other field covers.
    """

    id: SessionId
    source: str
    title: str = ""
    cwd: str = ""
    project: str = ""
    git_branch: str = ""
    platform: str = ""
    agent: str = ""
    model: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: str = ""
    outcome: float | None = None
    outcome_origin: str = ""
    lineage: Lineage | None = None
    log: str = ""
    opening: str = ""
    tags: tuple[str, ...] = ()
    details: dict[str, Any] = {}


class SessionOverview(Struct, frozen=True, kw_only=True):
    """A stored session with its counts. `digest` identifies its content: equal digests mean equal
    messages. `answered` counts the calls with a recorded result.
    """

    session: Session
    messages: int
    calls: int
    answered: int
    generations: int
    tokens: Tokens
    digest: str


class SourceTotals(Struct, frozen=True, kw_only=True):
    """The sums over the sessions of one source. Subagents' sessions are counted separately."""

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
    """The sums over the sessions of one project, and when the last of them ended. The empty name
    stands for sessions without a known project.
    """

    project: str
    sessions: int
    calls: int
    ended_at: float | None


class SearchHit(Struct, frozen=True, kw_only=True):
    """A message found by a search. `message` is its number in the session, from 1; `tool` is that
    of the call or the result in which the match stands. Matches in the snippet are enclosed in `[`
    and `]`.
    """

    session: SessionId
    source: str
    key: str
    role: str
    at: float | None
    message: int
    tool: str = ""
    snippet: str
