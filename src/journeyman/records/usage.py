"""Token usage: one row for one model answer, or one sum where the recorder keeps only sums; and
what it comes to when it is added up.
"""

from typing import Any, Literal

from msgspec import Struct

LAST_MOMENT = 4_102_444_800
"""The year 2100: a later time was never read from a clock."""

_LIMITS: dict[str, int] = {
    "at": LAST_MOMENT,
    "api_calls": 2**31,
    "input_tokens": 2**53,
    "output_tokens": 2**53,
    "cache_read_tokens": 2**53,
    "cache_write_tokens": 2**53,
    "reasoning_tokens": 2**53,
    "cost_usd": 2**53,
}
"""The numbers of a usage, and what each stays below: what a database or JSON can hold."""

IN_TOTAL = "in_total"
"""The cost's origin in a row whose tokens and cost are part of a total beside it. The row says
nothing any more, but its key is remembered: the same answer must not be counted again.
"""


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Tokens and cost as recorded; None where the recorder said nothing, which is not zero.

    `input_tokens` leaves out what the cache served or stored: the prompt was
    input + cache_read + cache_write. `output_tokens` includes `reasoning_tokens`. `task` is empty
    for the conversation itself and names side work (compression, titles, background review).
    """

    key: str
    model: str = ""
    task: str = ""
    at: float | None = None
    api_calls: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    cost_origin: str = ""


class Tokens(Struct, frozen=True, kw_only=True):
    """Usage added up; a sum over nothing known is None."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None

    @property
    def total(self) -> int | None:
        """Prompt and answer together, or None when neither is known."""
        parts = (
            self.input_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.output_tokens,
        )
        known = [part for part in parts if part is not None]
        return sum(known) if known else None


UsageBy = Literal["model", "source", "project", "day", "task"]


class UsageLine(Struct, frozen=True, kw_only=True):
    """What one model, source, project, day or task used, or all of them together. Sums are of
    what is known. `unknown_tokens` and `unknown_cost` count the calls that are missing in them:
    where that is not 0, a sum means at least. `estimated_share` is the part of the
    cost, from 0 to 1, that nobody was charged but somebody reckoned, the recorder or we.
    """

    key: str
    sessions: int
    api_calls: int
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    unknown_tokens: int
    unknown_cost: int
    estimated_share: float | None


class UsageReport(Struct, frozen=True, kw_only=True):
    """Usage by something. `sessions` is how many were looked at, `total.sessions` how many of them
    recorded any usage. Days are those of `zone`. An empty key is the conversation itself among
    tasks; elsewhere it means not known.
    """

    by: UsageBy
    zone: str
    sessions: int
    rows: tuple[UsageLine, ...]
    total: UsageLine


def checked(usage: Usage) -> tuple[Usage, tuple[str, ...]]:
    """The usage with everything that is no count taken as unknown, and the names of the fields
    that were. What says nothing of its calls is taken as one.
    """
    found: dict[str, Any] = {}
    wrong = []
    for name in Usage.__struct_fields__:
        value = getattr(usage, name)
        found[name] = _number(name, value) if name in _LIMITS else _text(value)
        if found[name] is None and (value is not None or name == "api_calls"):
            wrong.append(name)
    if found["api_calls"] is None:
        found["api_calls"] = 1
    return Usage(**found), tuple(wrong)


def _number(name: str, value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value < _LIMITS[name]:
        return None
    if name in ("at", "cost_usd"):
        return float(value)
    return int(value) if value == int(value) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
