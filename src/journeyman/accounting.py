"""What sessions used and what it cost. Prices are handed in, for the calls whose cost nobody
recorded. What is not known stays so: it is counted, never taken as zero.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, tzinfo
from typing import NamedTuple, Protocol, Unpack, get_args

from journeyman.records import Tokens, Usage
from journeyman.records.errors import WrongInput
from journeyman.records.usage import LAST_MOMENT, UsageBy, UsageLine, UsageReport
from journeyman.redaction.redactor import redacted_record
from journeyman.store.session_filters import Chosen
from journeyman.store.store import Store

_TOKENS = tuple(name for name in Tokens.__struct_fields__ if name != "cost_usd")
_PROMPT = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
_DAY_S = 86_400

PROMPT_SIZES = (32_000, 100_000, 128_000, 200_000, 256_000, 272_000, 512_000)
"""Where providers begin to charge more for every token of a call. Calls on different sides of
these are added up apart, so that the price of an average call is that of each."""


class Prices(Protocol):
    """What one call with these tokens costs in US dollars, or None for a model without a known
    price.
    """

    def __call__(
        self, model: str, tokens: Tokens, *, base_url: str = "", at: float | None = None
    ) -> float | None: ...


class _Alike(NamedTuple):
    """What calls have in common that are added up. With `has_tokens` every call has its input and
    output; `is_estimate` says that the recorder reckoned the cost.
    """

    key: str
    model: str
    day: date | None
    size: int
    has_cost: bool
    is_estimate: bool
    has_tokens: bool


class _Priced(NamedTuple):
    """The sums of calls, of what is known, and their cost."""

    sums: Counter[str]
    has_tokens: bool
    cost_usd: float | None
    is_estimate: bool


class Accounting:
    """The usage of a store's sessions (`jm.accounting`). Days are those of `zone`, or else those
    that this machine's clock shows.
    """

    def __init__(self, store: Store, prices: Prices, *, zone: tzinfo | None = None) -> None:
        self._store = store
        self._prices = prices
        self._zone = zone

    def add(self, session_id: str, increment: Usage) -> None:
        """Count one answer of a model; the same key again is not counted twice."""
        self._store.accounts.add(session_id, increment)

    def set_total(self, session_id: str, total: Usage) -> None:
        """Set what a session's task used of a model so far, in the place of all that was counted
        for these three before; what it leaves open is not known.
        """
        self._store.accounts.set_total(session_id, total)

    def report(self, by: UsageBy = "model", **chosen: Unpack[Chosen]) -> UsageReport:
        """Usage by model, source, project, day or task, of the sessions that `sessions.list`
        finds for the same choices: the most expensive first, days in order.

        A recorded cost is taken as it is. Others are estimated from the sums of a day's calls with
        one model, by the price of their average call. That is exact while each token has one
        price; where long prompts cost more, calls of different size are estimated apart.
        """
        if by not in get_args(UsageBy):
            raise WrongInput(f"Usage is shown by {', '.join(get_args(UsageBy))}, not by {by!r}.")
        sums = defaultdict[_Alike, Counter[str]](Counter)
        having = defaultdict[str, set[int]](set)
        for row in self._store.accounts.used(**chosen):
            session, model, _, calls, origin, *counts, at, _, _ = row
            used = dict(zip(Tokens.__struct_fields__, counts, strict=True))
            # Who has tokens has called at least once, also where the recorder did not count.
            calls = max(calls, 1)
            day = self._day(at)
            key = (day and day.isoformat()) or "" if by == "day" else getattr(row, by)
            prompt = sum(used[name] or 0 for name in _PROMPT)
            alike = _Alike(
                key,
                model,
                day,
                sum(prompt > size * calls for size in PROMPT_SIZES),
                has_cost=used["cost_usd"] is not None,
                is_estimate=origin == "estimated",
                has_tokens=None not in (used["input_tokens"], used["output_tokens"]),
            )
            having[key].add(session)
            found = sums[alike]
            found["api_calls"] += calls
            for name, value in used.items():
                if value is not None:
                    found[name] += value
        groups = defaultdict[str, list[_Priced]](list)
        for alike, found in sums.items():
            groups[alike.key].append(self._priced(alike, found))
        lines = [_line(key, len(having[key]), priced) for key, priced in groups.items()]
        everything = [priced for group in groups.values() for priced in group]
        report = UsageReport(
            by=by,
            zone=str(self._zone or "/".join(dict.fromkeys(time.tzname))),
            sessions=self._store.accounts.session_count(**chosen),
            rows=tuple(sorted(lines, key=_by_day if by == "day" else _by_cost)),
            total=_line("", len(set().union(*having.values())), everything),
        )
        return redacted_record(report)

    def _day(self, at: float | None) -> date | None:
        """The local day of a time that a clock may have shown. A day of distance, so that no zone
        sees it before 1970.
        """
        if at is None or not _DAY_S <= at < LAST_MOMENT:
            return None
        return datetime.fromtimestamp(at, self._zone).date()

    def _priced(self, alike: _Alike, sums: Counter[str]) -> _Priced:
        if alike.has_cost:
            return _Priced(sums, alike.has_tokens, sums["cost_usd"], alike.is_estimate)
        cost = self._estimated(alike, sums) if alike.has_tokens else None
        return _Priced(sums, alike.has_tokens, cost, is_estimate=True)

    def _estimated(self, alike: _Alike, sums: Counter[str]) -> float | None:
        """The price of the average call, as often as there were calls. Tokens are whole: what the
        average leaves over is a call of its own, at the price of a small one.
        """
        day, calls = alike.day, sums["api_calls"]
        at = None
        if day is not None:
            at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp()
        known = {name: sums[name] for name in _TOKENS if name in sums}
        average = Tokens(**{name: value // calls for name, value in known.items()})
        left = Tokens(**{name: value % calls for name, value in known.items()})
        each = self._prices(alike.model, average, at=at)
        if each is None:
            return None
        return each * calls + (self._prices(alike.model, left, at=at) or 0.0)


def _line(key: str, sessions: int, priced: Sequence[_Priced]) -> UsageLine:
    costs = [one.cost_usd for one in priced if one.cost_usd is not None]
    reckoned = [one.cost_usd for one in priced if one.cost_usd is not None and one.is_estimate]
    cost = math.fsum(costs) if costs else None
    share = None if cost is None else math.fsum(reckoned) / cost if cost else 0.0
    return UsageLine(
        key=key,
        sessions=sessions,
        api_calls=sum(one.sums["api_calls"] for one in priced),
        cost_usd=cost,
        unknown_tokens=sum(one.sums["api_calls"] for one in priced if not one.has_tokens),
        unknown_cost=sum(one.sums["api_calls"] for one in priced if one.cost_usd is None),
        estimated_share=share,
        **{name: _known_sum(priced, name) for name in _TOKENS},
    )


def _known_sum(priced: Sequence[_Priced], name: str) -> int | None:
    known = [one.sums[name] for one in priced if name in one.sums]
    return sum(known) if known else None


def _by_day(line: UsageLine) -> tuple[bool, str]:
    return (not line.key, line.key)


def _by_cost(line: UsageLine) -> tuple[float, int, str]:
    counts = (getattr(line, name) for name in _TOKENS)
    return (-(line.cost_usd or 0.0), -sum(count or 0 for count in counts), line.key)
