"""Usage added up by the database, so that a million rows need not be read: grouped finely enough
that a price can be put on each sum, and no finer. Prices and the names of days are decided above.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack

import sqlalchemy as sa

from journeyman.records import Tokens
from journeyman.records.usage import IN_TOTAL, LAST_MOMENT, UsageBy
from journeyman.store.choosing import Chosen, conditions
from journeyman.store.tables import sessions, usage

DAY_S = 86_400

_COUNTS = Tokens.__struct_fields__

PROMPT_SIZES = (32_000, 100_000, 128_000, 200_000, 256_000, 272_000, 512_000)
"""Where providers begin to charge more for every token of a call. Calls on different sides of
these are added up apart, so that the price of an average call is that of each."""

Shift = tuple[float, int]
"""From which moment on local time is how many seconds ahead of UTC."""


class UsageSum(NamedTuple):
    """What calls that are alike used: of one key, model, day and size. `tokens.cost_usd` is the
    recorded cost of those that have one, and then of all of them; `is_estimate` says that the
    recorder reckoned it. With `has_tokens` every call has its input and output.
    """

    key: str | int | None
    model: str
    day: int | None
    api_calls: int
    has_tokens: bool
    is_estimate: bool
    tokens: Tokens


class UsageSums(NamedTuple):
    """Usage by something: its sums, the sessions that have any by key and together, and how many
    sessions were looked at.
    """

    sums: list[UsageSum]
    by_key: dict[str | int | None, int]
    with_usage: int
    sessions: int


def add_up(
    connection: sa.Connection,
    by: UsageBy,
    shifts: Callable[[float, float], Sequence[Shift]],
    **chosen: Unpack[Chosen],
) -> UsageSums:
    """The usage of the chosen sessions; `shifts` tells when local time changed in a span."""
    wanted = conditions(**chosen)
    first, last = connection.execute(_span(wanted)).one()
    counted = _counted(by, [] if first is None else shifts(first, last), wanted)
    has_usage = sa.func.count(counted.c.session_row.distinct())
    by_key = sa.select(counted.c.key, has_usage).group_by(counted.c.key)
    looked_at = sa.select(sa.func.count()).select_from(sessions).where(*wanted)
    return UsageSums(
        sums=[_sum_of(row) for row in connection.execute(_added_up(counted))],
        by_key={row[0]: row[1] for row in connection.execute(by_key)},
        with_usage=connection.execute(sa.select(has_usage)).scalar_one(),
        sessions=connection.execute(looked_at).scalar_one(),
    )


_at = sa.func.coalesce(usage.c.at, sessions.c.started_at)
# A day of distance, so that no zone sees it before 1970.
_is_time = sa.and_(_at >= DAY_S, _at < LAST_MOMENT)


def _of_sessions(
    statement: sa.Select[Any], conditions: list[sa.ColumnElement[bool]]
) -> sa.Select[Any]:
    return (
        statement.select_from(usage)
        .join(sessions, usage.c.session_row == sessions.c.row_id)
        .where(usage.c.cost_origin != IN_TOTAL, *conditions)
    )


def _span(conditions: list[sa.ColumnElement[bool]]) -> sa.Select[Any]:
    asked = sa.select(sa.func.min(_at), sa.func.max(_at))
    return _of_sessions(asked, conditions).where(_is_time)


def _counted(
    by: UsageBy, shifts: Sequence[Shift], conditions: list[sa.ColumnElement[bool]]
) -> sa.Subquery:
    """Usage with what it is grouped by. A subquery, because PostgreSQL does not see that an
    expression with values in it is the same in two places.
    """
    columns = usage.c
    day = _day(shifts)
    keys: dict[UsageBy, sa.ColumnElement[Any]] = {
        "model": columns.model,
        "source": sessions.c.source,
        "project": sessions.c.project,
        "day": day,
        "task": columns.task,
    }
    # Who has tokens has called at least once, also where the recorder did not count.
    calls = sa.case((columns.api_calls > 0, columns.api_calls), else_=1)
    is_estimate = sa.and_(columns.cost_usd.is_not(None), columns.cost_origin == "estimated")
    has_tokens = sa.and_(columns.input_tokens.is_not(None), columns.output_tokens.is_not(None))
    asked = sa.select(
        keys[by].label("key"),
        columns.model,
        day.label("day"),
        columns.session_row,
        calls.label("api_calls"),
        _size(calls).label("size"),
        sa.case((columns.cost_usd.is_(None), 0), else_=1).label("has_cost"),
        sa.case((is_estimate, 1), else_=0).label("is_estimate"),
        sa.case((has_tokens, 1), else_=0).label("has_tokens"),
        *(columns[name] for name in _COUNTS),
    )
    return _of_sessions(asked, conditions).subquery()


def _size(calls: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """Between which of the sizes the average prompt lies."""
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    first, *others = (sa.func.coalesce(usage.c[name], 0) for name in names)
    prompt = sum(others, first)
    steps = [(prompt > size * calls, size) for size in reversed(PROMPT_SIZES)]
    return sa.case(*steps, else_=0)


def _day(shifts: Sequence[Shift]) -> sa.ColumnElement[Any]:
    """The local day as a number, or NULL where there is no time."""
    if not shifts:
        return sa.null()
    ahead: sa.ColumnElement[Any] = sa.literal(shifts[0][1])
    if len(shifts) > 1:
        steps = [(_at >= since, seconds) for since, seconds in reversed(shifts[1:])]
        ahead = sa.case(*steps, else_=shifts[0][1])
    local = _at + ahead
    # One database cuts, the other rounds.
    whole = sa.cast(local, sa.BigInteger)
    second = whole - sa.case((whole > local, 1), else_=0)
    return sa.case((_is_time, second // DAY_S))


def _added_up(counted: sa.Subquery) -> sa.Select[Any]:
    columns = counted.c
    alike = (columns.key, columns.model, columns.day, columns.size)
    kinds = (columns.has_cost, columns.is_estimate, columns.has_tokens)
    sums = [sa.func.sum(columns[name]).label(name) for name in ("api_calls", *_COUNTS)]
    return sa.select(*alike, *kinds, *sums).group_by(*alike, *kinds)


def _sum_of(row: sa.Row[Any]) -> UsageSum:
    counts = {name: getattr(row, name) for name in _COUNTS if name != "cost_usd"}
    known = {name: value if value is None else int(value) for name, value in counts.items()}
    return UsageSum(
        key=row.key,
        model=row.model,
        day=row.day,
        api_calls=int(row.api_calls),
        has_tokens=bool(row.has_tokens),
        is_estimate=bool(row.is_estimate),
        tokens=Tokens(**known, cost_usd=row.cost_usd),
    )
