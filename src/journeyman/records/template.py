"""Templates: named, versioned sets of patterns. A template keeps its own copies, so that it stays
what it was when the sessions behind it are gone.
"""

from typing import Literal

from msgspec import Struct

from journeyman.records.pattern import Pattern, PatternType

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
