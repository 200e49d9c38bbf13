"""What a scripted agent does, and what came of it.

A script is data: the user's words, the agent's thoughts and the calls it makes. Playing it
(`play.py`) executes the calls and gives a `Played` session; the recorders turn that into log
files. Tools have neutral names here (shell, read, write, edit, search, python, delegate); each
recorder knows its own.
"""

from typing import Any, Literal

from msgspec import Struct

Fate = Literal["run", "refused", "cancelled", "lost"]
"""`run`: the call is executed. The others never reach the tool: the user refuses, a sibling call
failed first, or the session ends before there is a result."""

ResultKind = Literal[
    "ok",
    "nonzero_exit",
    "missing_file",
    "unread_file",
    "no_match",
    "many_matches",
    "tool_error",
    "unknown_tool",
    "bad_arguments",
    "refused",
    "cancelled",
]


class Ask(Struct, frozen=True, kw_only=True):
    """One call as the agent wants it. `said` is what the user says when refusing. `inner` is what
    a subagent does for a `delegate` call. `malformed` is the text of arguments that are no JSON.
    """

    tool: str
    arguments: dict[str, Any]
    fate: Fate = "run"
    said: str = ""
    inner: tuple["Act", ...] = ()
    malformed: str = ""


class Act(Struct, frozen=True, kw_only=True):
    """One message of the agent; without asks it is an answer to the user."""

    text: str = ""
    thought: str = ""
    asks: tuple[Ask, ...] = ()


class UserSays(Struct, frozen=True, kw_only=True):
    """A message of the user."""

    text: str


class Compress(Struct, frozen=True, kw_only=True):
    """The harness replaces what was said so far by a summary."""

    summary: str


Step = Act | UserSays | Compress


class Script(Struct, frozen=True, kw_only=True):
    """A whole session before it is played. `bugs` are put into the projects first."""

    name: str
    project: str
    title: str
    steps: tuple[Step, ...]
    bugs: tuple[str, ...] = ()
    reward: float | None = None


class Result(Struct, frozen=True, kw_only=True):
    """What a call gave. `text` is what the tool printed or read, `before` and `after` are the
    file around a write or an edit; `before` is None for a new file.
    """

    kind: ResultKind
    text: str = ""
    errors: str = ""
    exit_code: int | None = None
    before: str | None = None
    after: str = ""
    matches: int = 0

    @property
    def failed(self) -> bool:
        """True when the call was carried out, or tried, and went wrong."""
        return self.kind not in ("ok", "refused", "cancelled")


class Reply(Struct, frozen=True, kw_only=True):
    """A call with its result; no result when it was lost."""

    ask: Ask
    result: Result | None
    at: float
    inner: tuple["Turn", ...] = ()


class Turn(Struct, frozen=True, kw_only=True):
    """A message of the agent, played."""

    at: float
    act: Act
    replies: tuple[Reply, ...] = ()


class Heard(Struct, frozen=True, kw_only=True):
    """A message of the user, played."""

    at: float
    text: str


class Compressed(Struct, frozen=True, kw_only=True):
    """A compression of the context, played."""

    at: float
    summary: str


Event = Turn | Heard | Compressed


class Played(Struct, frozen=True, kw_only=True):
    """A session as it happened."""

    script: Script
    events: tuple[Event, ...]

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(event for event in self.events if isinstance(event, Turn))

    @property
    def replies(self) -> tuple[Reply, ...]:
        return tuple(reply for turn in self.turns for reply in turn.replies)

    @property
    def started_at(self) -> float:
        return self.events[0].at

    @property
    def ended_at(self) -> float:
        last = self.events[-1]
        return max([last.at, *(r.at for r in last.replies)]) if isinstance(last, Turn) else last.at
