"""Patterns: calls worth repeating, with the intent before them and a summary of their results, all
of it redacted; and templates, named, versioned sets of them, which keep their own copies.
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


TemplateOrigin = Literal["built", "created", "imported"]
"""`built` from many sessions, `created` from one, `imported` from a file."""


class Gain(Struct, frozen=True, kw_only=True):
    """By how much the error rate fell from early to late calls of the sessions behind a template,
    tool by tool: positive is better. None where too few calls say something.
    """

    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    calls: int = 0
    method: str = ""


class Effect(Struct, frozen=True, kw_only=True):
    """What trials found: how often it was tried, and by how much it helped on average."""

    tried: int = 0
    gained: float = 0.0

    @property
    def mean(self) -> float | None:
        return self.gained / self.tried if self.tried else None

    @property
    def shrunk(self) -> float:
        """The mean, drawn towards zero as long as little is known."""
        return self.gained / (self.tried + SHRINKAGE)


SHRINKAGE = 10.0
"""How many trials without effect a new pattern is taken to have behind it."""


class Template(Struct, frozen=True, kw_only=True):
    """A set of patterns under a name. `addendum` is a text of its own that follows the note of an
    opening. `scanned` and `qualified` count the sessions it was built from.
    """

    name: str
    version: int = 1
    origin: TemplateOrigin = "built"
    task_type: PatternType = "mixed"
    tags: tuple[str, ...] = ()
    description: str = ""
    addendum: str = ""
    source: str = ""
    created_at: float | None = None
    scanned: int = 0
    qualified: int = 0
    gain: Gain | None = None
    patterns: tuple[Pattern, ...] = ()
    used: int = 0
    last_used_at: float | None = None
    effect: Effect = Effect()


class Imported(Struct, frozen=True, kw_only=True):
    """A template that came from a file, and what of the file was left out."""

    template: Template
    skipped: tuple[str, ...] = ()


class TemplateStats(Struct, frozen=True, kw_only=True):
    """The library in numbers: templates (newest versions), all versions, examples and uses."""

    total: int
    versions: int
    by_type: dict[str, int]
    examples: int
    used: int
    most_used: str = ""
    tried: int = 0
