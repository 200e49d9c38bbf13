"""Token usage, recorded per model answer or as a sum where the recorder has only sums; and reports
of it.
"""

from typing import Any, Literal

from msgspec import Struct, structs

LAST_MOMENT = 4_102_444_800
"""The year 2100: no clock has shown a later time."""


class Tokens(Struct, frozen=True, kw_only=True):
    """Tokens and cost of one answer, or summed; None means unknown."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None

    @property
    def total(self) -> int | None:
        """Prompt and answer together, or None if neither is known."""
        names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
        known = [count for name in names if (count := getattr(self, name)) is not None]
        return sum(known) if known else None


class Usage(Tokens, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Tokens and cost as recorded; None means not recorded, which is not zero.

    `input_tokens` excludes what the cache served or stored: the whole prompt is
    input + cache_read + cache_write. `output_tokens` includes `reasoning_tokens`. `task` is empty
    for the conversation itself, and names side work (compression, titles, background review).
    """

    key: str
    model: str = ""
    task: str = ""
    at: float | None = None
    api_calls: int = 1
    cost_origin: str = ""


_LIMITS = {"at": LAST_MOMENT, "api_calls": 2**31, **dict.fromkeys(Tokens.__struct_fields__, 2**53)}
"""The exclusive upper limit of each number: what a database or JSON can hold."""

UsageBy = Literal["model", "source", "platform", "project", "day", "week", "task", "session"]


class UsageLine(Tokens, frozen=True, kw_only=True):
    """The usage of one model, source, platform, …, or of all together. Sums cover what is
    known. `unknown_tokens` and `unknown_cost` count the calls missing from them: unless 0, a sum is
    a lower bound. `estimated_share` is the part of the cost, from 0 to 1, that was not charged but
    estimated, by the recorder or by Journeyman.
    """

    key: str
    sessions: int
    api_calls: int
    unknown_tokens: int
    unknown_cost: int
    estimated_share: float | None


class UsageReport(Struct, frozen=True, kw_only=True):
    """Usage grouped by `by`. `sessions` counts the selected sessions, `total.sessions` those of
    them with recorded usage. Days and weeks are in the time zone `zone`; a week
    is named by its Monday. An empty key is the conversation
    itself when grouped by task; otherwise it means unknown.
    """

    by: UsageBy
    zone: str
    sessions: int
    rows: tuple[UsageLine, ...]
    total: UsageLine


def validated_usage(usage: Usage) -> Usage:
    """Return the usage with every invalid number set to None. Without a valid number of calls, one
    call is assumed.
    """
    fields: dict[str, Any] = {}
    for name, value in structs.asdict(usage).items():
        if name not in _LIMITS:
            fields[name] = "" if value is None else str(value)
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < _LIMITS[name]:
            fields[name] = None
        elif name in ("at", "cost_usd"):
            fields[name] = float(value)
        else:
            fields[name] = int(value) if value == int(value) else None
    if fields["api_calls"] is None:
        fields["api_calls"] = 1
    return Usage(**fields)
