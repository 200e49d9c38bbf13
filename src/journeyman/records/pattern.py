"""Patterns: the calls that served a request, with summaries of their results, all redacted; and
templates, which are named, versioned sets of patterns with their own copies.
"""

from typing import Literal, NewType

from msgspec import Struct

from journeyman.records.session import SessionId

PatternId = NewType("PatternId", str)

PatternType = Literal["code", "file", "research", "mixed"]
"""The type of task that a template is for."""


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """One call of a pattern, which worked. `arguments` is a JSON object as text, `result` a short
    result, or how long it was.
    """

    tool: str
    arguments: str = "{}"
    result: str = ""


class Pattern(Struct, frozen=True, kw_only=True):
    """What worked, and how often work with the same tools and programs was seen.

    `source` is the recorder of the session whose version is shown: the tools are that agent's.
    `sessions` names that session, and `id` the request in it; both are empty for a pattern from a
    file. `tokens` is an estimate of what its messages cost in an opening.
    """

    id: PatternId = PatternId("")
    intent: str
    steps: tuple[Step, ...]
    source: str = ""
    times: int = 1
    session_count: int = 1
    sessions: tuple[SessionId, ...] = ()
    at: float | None = None
    tokens: int = 0

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
