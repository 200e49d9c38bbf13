"""What sessions used and what it cost. The store adds up what was recorded; prices are handed in,
for the calls whose cost nobody recorded. What is not known stays so: it is counted, never taken
as zero.
"""

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple, Protocol, Unpack, get_args

from journeyman.records import Tokens, Usage
from journeyman.records.errors import WrongInput
from journeyman.records.usage import UsageBy, UsageLine, UsageReport
from journeyman.redaction.records import redacted_record
from journeyman.store.choosing import Chosen
from journeyman.store.store import Store
from journeyman.store.usage_sums import DAY_S, Shift, UsageSum

_TOKENS = tuple(name for name in Tokens.__struct_fields__ if name != "cost_usd")


class Prices(Protocol):
    """What one call with these tokens costs in US dollars, or None for a model without a known
    price.
    """

    def __call__(
        self, model: str, tokens: Tokens, *, base_url: str = "", at: float | None = None
    ) -> float | None: ...


class _Priced(NamedTuple):
    sum: UsageSum
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
        found = self._store.accounts.sums(by, self._shifts, **chosen)
        groups: defaultdict[str | int | None, list[_Priced]] = defaultdict(list)
        for one in found.sums:
            groups[one.key].append(self._priced(one))
        lines = [
            _line(_name(key), found.by_key.get(key, 0), priced) for key, priced in groups.items()
        ]
        everything = [priced for group in groups.values() for priced in group]
        report = UsageReport(
            by=by,
            zone=self._zone_name,
            sessions=found.sessions,
            rows=tuple(sorted(lines, key=_by_day if by == "day" else _by_cost)),
            total=_line("", found.with_usage, everything),
        )
        return redacted_record(report)

    @property
    def _zone_name(self) -> str:
        return "/".join(dict.fromkeys(time.tzname)) if self._zone is None else str(self._zone)

    def _priced(self, one: UsageSum) -> _Priced:
        if one.tokens.cost_usd is not None:
            return _Priced(one, one.tokens.cost_usd, one.is_estimate)
        return _Priced(one, self._estimated(one) if one.has_tokens else None, is_estimate=True)

    def _estimated(self, one: UsageSum) -> float | None:
        """The price of the average call, as often as there were calls. Tokens are whole: what the
        average leaves over is a call of its own, at the price of a small one.
        """
        at = None if one.day is None else one.day * DAY_S + DAY_S / 2
        calls = one.api_calls
        sums = {name: getattr(one.tokens, name) for name in _TOKENS}
        known = {name: value for name, value in sums.items() if value is not None}
        average = Tokens(**{name: value // calls for name, value in known.items()})
        left = Tokens(**{name: value % calls for name, value in known.items()})
        each = self._prices(one.model, average, at=at)
        if each is None:
            return None
        return each * calls + (self._prices(one.model, left, at=at) or 0.0)

    def _shifts(self, first: float, last: float) -> list[Shift]:
        """When local time changed from the first moment to the last, beginning with how it was."""
        found: list[Shift] = [(first, self._ahead(first))]
        start = first
        while start < last:
            end = start + DAY_S
            if self._ahead(end) != found[-1][1]:
                moment = self._change(start, end)
                found.append((moment, self._ahead(moment)))
            start = end
        return found

    def _change(self, start: float, end: float) -> float:
        """The second between these two at which local time changes."""
        before, after = math.floor(start), math.ceil(end)
        known = self._ahead(start)
        while after - before > 1:
            middle = (before + after) // 2
            if self._ahead(middle) == known:
                before = middle
            else:
                after = middle
        return after

    def _ahead(self, at: float) -> int:
        """How many seconds local time is ahead of UTC."""
        if self._zone is None:
            return time.localtime(at).tm_gmtoff
        ahead = datetime.fromtimestamp(at, self._zone).utcoffset() or timedelta()
        return int(ahead.total_seconds())


def _name(key: str | int | None) -> str:
    if isinstance(key, int):
        return datetime.fromtimestamp(key * DAY_S, UTC).date().isoformat()
    return key or ""


def _line(key: str, sessions: int, priced: Sequence[_Priced]) -> UsageLine:
    costs = [one.cost_usd for one in priced if one.cost_usd is not None]
    reckoned = [one.cost_usd for one in priced if one.cost_usd is not None and one.is_estimate]
    cost = math.fsum(costs) if costs else None
    share = None if cost is None else math.fsum(reckoned) / cost if cost else 0.0
    return UsageLine(
        key=key,
        sessions=sessions,
        api_calls=sum(one.sum.api_calls for one in priced),
        cost_usd=cost,
        unknown_tokens=sum(one.sum.api_calls for one in priced if not one.sum.has_tokens),
        unknown_cost=sum(one.sum.api_calls for one in priced if one.cost_usd is None),
        estimated_share=share,
        **{name: _known_sum(priced, name) for name in _TOKENS},
    )


def _known_sum(priced: Sequence[_Priced], name: str) -> int | None:
    values = [getattr(one.sum.tokens, name) for one in priced]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _by_day(line: UsageLine) -> tuple[bool, str]:
    return (not line.key, line.key)


def _by_cost(line: UsageLine) -> tuple[float, int, str]:
    counts = (getattr(line, name) for name in _TOKENS)
    return (-(line.cost_usd or 0.0), -sum(count or 0 for count in counts), line.key)
