"""Token usage and cost of sessions. A `Prices` function estimates the cost of calls for which none
was recorded. Unknown values are counted as unknown, never as zero.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as clock_time
from typing import Any, NamedTuple, Protocol, Unpack, get_args

from journeyman.records import Tokens, Usage
from journeyman.records.errors import WrongInput
from journeyman.records.usage import LAST_MOMENT, UsageBy, UsageLine, UsageReport
from journeyman.store.session_filters import SessionFilters
from journeyman.store.store import Store

_TOKENS = tuple(name for name in Tokens.__struct_fields__ if name != "cost_usd")
_PROMPT = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
_DAY_S = 86_400
_NOON = clock_time(12)
_PERIODS = ("day", "week")

PROMPT_SIZES = (32_000, 100_000, 128_000, 200_000, 256_000, 272_000, 512_000)
"""The prompt sizes from which providers charge more for every token of a call. Calls on different
sides of a limit are summed separately, so that the average call of a group is priced like each."""


class Prices(Protocol):
    """The cost in US dollars of one call with these tokens, or None for a model without a known
    price.
    """

    def __call__(
        self, model: str, tokens: Tokens, *, base_url: str = "", at: float | None = None
    ) -> float | None: ...


class _CallGroup(NamedTuple):
    """What the calls that are summed together have in common. `has_tokens`: every call has its
    input and output tokens. `is_estimate`: the cost is not a recorded one.
    """

    key: str
    model: str
    day: date | None
    size: int
    has_cost: bool
    is_estimate: bool
    has_tokens: bool


_Priced = tuple[_CallGroup, Counter[str], float | None]
"""The sums over a group of calls, of what is known, and their cost."""


class Accounting:
    """The usage of a store's sessions (`jm.accounting`). Days are in the time zone `zone`, by
    default this machine's.
    """

    def __init__(self, store: Store, prices: Prices, *, zone: tzinfo | None = None) -> None:
        self._store = store
        self._prices = prices
        self._zone = zone

    def add(self, session_id: str, increment: Usage) -> None:
        """Count one answer of a model; a repeated key is counted once."""
        self._store.usage.add(session_id, increment)

    def report(self, by: UsageBy = "model", **filters: Unpack[SessionFilters]) -> UsageReport:
        """Report usage by model, source, platform, project, day, week, task or session, for the
        sessions that `sessions.list` returns with the same filters: the most expensive first, days
        and weeks in order.

        Recorded costs are used unchanged. Others are estimated per day and model, as the price of
        the average call times the number of calls. That is exact while each token has one price;
        where long prompts cost more, calls of different sizes are estimated separately.
        """
        if by not in get_args(UsageBy):
            raise WrongInput(
                f"Usage cannot be grouped by {by!r}. Choose one of: {', '.join(get_args(UsageBy))}."
            )
        from journeyman.redaction.redactor import redacted_record  # noqa: PLC0415 - loads slowly

        lines, total = self._lines(self._store.usage.used(**filters), by)
        report = UsageReport(
            by=by,
            zone=str(self._zone or "/".join(dict.fromkeys(time.tzname))),
            sessions=self._store.usage.session_count(**filters),
            rows=tuple(sorted(lines, key=_by_day if by in _PERIODS else _by_cost)),
            total=total,
        )
        return redacted_record(report)

    def of_sessions(self, session_ids: Iterable[str]) -> dict[str, UsageLine]:
        """Return the usage of each of these sessions; those that recorded none are left out."""
        lines, _ = self._lines(self._store.usage.used_by(session_ids), "session")
        return {line.key: line for line in lines}

    def _lines(self, rows: Iterable[Any], by: UsageBy) -> tuple[list[UsageLine], UsageLine]:
        """Return the usage by the values of one column, and that of all rows together."""
        sums = defaultdict[_CallGroup, Counter[str]](Counter)
        sessions = defaultdict[str, set[int]](set)
        for row in rows:
            session, model, _, calls, origin, *values, at, _, _, _, _ = row
            used = dict(zip(Tokens.__struct_fields__, values, strict=True))
            # Tokens imply at least one call, even if the recorder counted none.
            calls = max(calls, 1)
            day = self._day(at)
            key = _period(day, by) if by in _PERIODS else getattr(row, by)
            prompt = sum(used[name] or 0 for name in _PROMPT)
            group = _CallGroup(
                key,
                model,
                day,
                sum(prompt > size * calls for size in PROMPT_SIZES),
                has_cost=used["cost_usd"] is not None,
                is_estimate=origin == "estimated" or used["cost_usd"] is None,
                has_tokens=None not in (used["input_tokens"], used["output_tokens"]),
            )
            sessions[key].add(session)
            counts = sums[group]
            counts["api_calls"] += calls
            for name, value in used.items():
                if value is not None:
                    counts[name] += value
        groups = defaultdict[str, list[_Priced]](list)
        for group, counts in sums.items():
            cost = counts["cost_usd"] if group.has_cost else self._estimated(group, counts)
            groups[group.key].append((group, counts, cost))
        lines = [_line(key, len(sessions[key]), priced) for key, priced in groups.items()]
        everything = [priced for line_groups in groups.values() for priced in line_groups]
        return lines, _line("", len(set().union(*sessions.values())), everything)

    def _day(self, at: float | None) -> date | None:
        """Return the local day of a plausible time, else None. Times within a day of 1970 count as
        implausible, so that no time zone yields a day before 1970.
        """
        if at is None or not _DAY_S <= at < LAST_MOMENT:
            return None
        return datetime.fromtimestamp(at, self._zone).date()

    def _estimated(self, group: _CallGroup, sums: Counter[str]) -> float | None:
        """Return the price of the average call times the number of calls. Tokens are whole numbers:
        the remainder of the average is priced as one small call.
        """
        if not group.has_tokens:
            return None
        calls, at = sums["api_calls"], None
        if group.day is not None:
            at = datetime.combine(group.day, _NOON, UTC).timestamp()
        known = {name: sums[name] for name in _TOKENS if name in sums}
        average = Tokens(**{name: value // calls for name, value in known.items()})
        remainder = Tokens(**{name: value % calls for name, value in known.items()})
        each = self._prices(group.model, average, at=at)
        if each is None:
            return None
        return each * calls + (self._prices(group.model, remainder, at=at) or 0.0)


def _line(key: str, sessions: int, priced: Sequence[_Priced]) -> UsageLine:
    costs = [cost for _, _, cost in priced if cost is not None]
    estimates = [cost for group, _, cost in priced if cost is not None and group.is_estimate]
    cost = math.fsum(costs) if costs else None
    total = sum((sums for _, sums, _ in priced), Counter[str]())
    return UsageLine(
        key=key,
        sessions=sessions,
        api_calls=total["api_calls"],
        cost_usd=cost,
        unknown_tokens=sum(sums["api_calls"] for group, sums, _ in priced if not group.has_tokens),
        unknown_cost=sum(sums["api_calls"] for _, sums, cost in priced if cost is None),
        estimated_share=None if cost is None else math.fsum(estimates) / cost if cost else 0.0,
        **{
            name: total[name] if any(name in sums for _, sums, _ in priced) else None
            for name in _TOKENS
        },
    )


def _period(day: date | None, by: UsageBy) -> str:
    """Return the day, or the Monday of its week; empty if it is unknown."""
    if day is None:
        return ""
    return (day - timedelta(days=day.weekday()) if by == "week" else day).isoformat()


def _by_day(line: UsageLine) -> tuple[bool, str]:
    return (not line.key, line.key)


def _by_cost(line: UsageLine) -> tuple[float, int, str]:
    counts = (getattr(line, name) for name in _TOKENS)
    return (-(line.cost_usd or 0.0), -sum(count or 0 for count in counts), line.key)
