"""Patterns: calls worth repeating, with the intent before them and a summary of their results, all
redacted; and templates, which are named, versioned sets of patterns with their own copies.
"""

from typing import Literal, NewType

from msgspec import Struct

from journeyman.records.session import SessionId

PatternId = NewType("PatternId", str)

PatternKind = Literal["first_try", "recovery", "sequence", "final"]
"""`first_try`: a call that worked immediately. `recovery`: a failed call and its corrected
successor with the same tool. `sequence`: the few calls that together served one request. `final`:
the last call before the agent finished."""

PatternType = Literal["code", "file", "research", "mixed"]
"""The type of task that a pattern or a template is for."""


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """One call of a pattern. `arguments` is a JSON object as text, `result` the head and tail of
    the recorded result. `worked` is false only for the first step of a recovery.
    """

    tool: str
    arguments: str = "{}"
    result: str = ""
    worked: bool = True


class Pattern(Struct, frozen=True, kw_only=True):
    """What worked, and how often it was seen.

    The id identifies the content without its specific values, so that equal work has one id
    wherever it was recorded. `source` is the recorder of the session whose version is shown: the
    tools are that agent's. `sessions` names the first few of the `session_count` sessions with the
    pattern. `quarantined` names the rule that excluded the pattern from every opening. `tokens` is
    an estimate of what its messages cost in an opening.
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
        """The sort key for sightings of one pattern: the earliest comes first and is shown."""
        at = float("inf") if self.first_seen is None else self.first_seen
        return at, min(self.sessions, default="")

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools of all steps, each once, in order."""
        return tuple(dict.fromkeys(step.tool for step in self.steps))


TemplateOrigin = Literal["built", "created", "imported"]
"""`built` from many sessions, `created` from one, `imported` from a file."""


class LateChange(Struct, frozen=True, kw_only=True):
    """The error rate of late calls minus that of early ones in the sessions behind a template,
    compared per tool: negative is an improvement. None where too few calls are conclusive.
    """

    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    calls: int = 0
    method: str = ""


class Template(Struct, frozen=True, kw_only=True):
    """A named set of patterns. `addendum` is a text that follows the note of an opening. `scanned`
    and `qualified` count the sessions that it was built from.
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
    late_minus_early: LateChange | None = None
    patterns: tuple[Pattern, ...] = ()
    used: int = 0
    last_used_at: float | None = None


class ImportedTemplate(Struct, frozen=True, kw_only=True):
    """A template imported from a file, and the parts of the file that were left out."""

    template: Template
    skipped: tuple[str, ...] = ()


class ImportedFolder(Struct, frozen=True, kw_only=True):
    """The templates imported from a folder, and why each other file was left out, by its name."""

    imported: tuple[ImportedTemplate, ...]
    failed: dict[str, str]


class TemplateStats(Struct, frozen=True, kw_only=True):
    """The library in numbers: templates and patterns of the newest versions, uses of all."""

    total: int
    versions: int
    by_type: dict[str, int]
    patterns: int
    used: int
    most_used: str = ""
