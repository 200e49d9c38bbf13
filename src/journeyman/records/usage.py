"""Token usage: one row for one model answer, or one sum where the recorder keeps only sums; and
what it comes to when it is added up.
"""

from typing import Any, Literal

from msgspec import Struct, structs

LAST_MOMENT = 4_102_444_800
"""The year 2100: a later time was never read from a clock."""

IN_TOTAL = "in_total"
"""The cost's origin in a row whose tokens and cost are part of a total beside it. The row says
nothing any more, but its key is remembered: the same answer must not be counted again.
"""


class Tokens(Struct, frozen=True, kw_only=True):
    """Tokens and cost, of one answer or added up; None is not known."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None

    @property
    def total(self) -> int | None:
        """Prompt and answer together, or None when neither is known."""
        names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
        known = [count for name in names if (count := getattr(self, name)) is not None]
        return sum(known) if known else None


class Usage(Tokens, frozen=True, kw_only=True, omit_defaults=True, gc=False):
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
    cost_origin: str = ""


_LIMITS = {"at": LAST_MOMENT, "api_calls": 2**31, **dict.fromkeys(Tokens.__struct_fields__, 2**53)}
"""The numbers of a usage, and what each stays below: what a database or JSON can hold."""

UsageBy = Literal["model", "source", "project", "day", "task"]


class UsageLine(Tokens, frozen=True, kw_only=True):
    """What one model, source, project, day or task used, or all of them together. Sums are of
    what is known. `unknown_tokens` and `unknown_cost` count the calls that are missing in them:
    where that is not 0, a sum means at least. `estimated_share` is the part of the
    cost, from 0 to 1, that nobody was charged but somebody reckoned, the recorder or we.
    """

    key: str
    sessions: int
    api_calls: int
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
    for name, value in structs.asdict(usage).items():
        if name not in _LIMITS:
            found[name] = "" if value is None else str(value)
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < _LIMITS[name]:
            found[name] = None
        elif name in ("at", "cost_usd"):
            found[name] = float(value)
        else:
            found[name] = int(value) if value == int(value) else None
    wrong = [
        name
        for name, value in found.items()
        if value is None and (name == "api_calls" or getattr(usage, name) is not None)
    ]
    if found["api_calls"] is None:
        found["api_calls"] = 1
    return Usage(**found), tuple(wrong)
