"""Patterns: calls worth repeating, with the intent before them and a summary of their results.

Everything in a pattern has been redacted before the record is made.
"""

from typing import Literal, NewType

from msgspec import Struct

from journeyman.records.session import SessionId

PatternId = NewType("PatternId", str)

PatternKind = Literal["first_try", "recovery", "sequence", "final"]
"""`first_try`: a call that worked at once. `recovery`: a failed call and its corrected successor
with the same tool. `sequence`: the few calls that together served one request. `final`: the call
after which the agent was done."""

PatternType = Literal["code", "file", "research", "mixed"]
"""The type of the task a pattern or a template is for."""


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """One call of a pattern. `arguments` is a JSON object as text, `result` the head and tail of
    what came back. Only the first step of a recovery has not `worked`.
    """

    tool: str
    arguments: str = "{}"
    result: str = ""
    worked: bool = True


class Pattern(Struct, frozen=True, kw_only=True):
    """What worked, and how often it was seen.

    The id names the content with its particular values left out, so that equal work has one id
    wherever it was recorded. `source` is the recorder of the session as whose it is shown: its
    tools are that agent's. `sessions` names the first few of the `session_count` in which it
    was seen. A pattern that is `quarantined` names the rule that says why, and is in no opening.
    `tokens` is an estimate of what its messages cost in an opening.
    """

    id: PatternId
    kind: PatternKind
    intent: str
    steps: tuple[Step, ...]
    task_type: PatternType = "mixed"
    source: str = ""
    times: int = 1
    session_count: int = 1
    sessions: tuple[SessionId, ...] = ()
    models: tuple[str, ...] = ()
    first_seen: float | None = None
    last_seen: float | None = None
    tokens: int = 0
    quarantined: str = ""

    @property
    def age(self) -> tuple[float, str]:
        """What sorts sightings of one pattern: the earliest first, so that it is the one shown."""
        at = float("inf") if self.first_seen is None else self.first_seen
        return at, min(self.sessions, default="")

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools of all steps, each once, in order."""
        return tuple(dict.fromkeys(step.tool for step in self.steps))
