"""Explains why no stored session matches some filters: which of them excludes all sessions, and
which values exist instead. Describes filters in words.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

import sqlalchemy as sa

from journeyman.store.session_filters import SessionFilters, conditions
from journeyman.store.tables import sessions

_MAX_VALUES = 8

_NOUNS = {
    "project": ("project", "Projects"),
    "source": ("recorder", "Recorders"),
    "platform": ("platform", "Platforms"),
    "origin": ("recorder or platform", "Recorders and platforms"),
    "model": ("model", "Models"),
    "tag": ("tag", "Tags"),
}
"""What the values of a filter are called: one, and several at the beginning of a sentence."""


def explain(connection: sa.Connection, filters: SessionFilters) -> str:
    """Return the sentences; empty if there are no filters, no sessions, or matching sessions."""
    used: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    if not used or not _count(connection, {}) or _count(connection, used):
        return ""
    alone = {name: _count(connection, {name: value}) for name, value in used.items()}
    excluding = [name for name, count in alone.items() if not count]
    if excluding:
        reasons = [_reason(connection, name, used[name]) for name in excluding]
        return f"No stored session matches. {' '.join(reasons)}"
    matched = ", ".join(f"{_phrase(name, used[name])} ({count:,})" for name, count in alone.items())
    text = f"No stored session matches all of these, although each matches some: {matched}."
    for name, value in used.items():
        others = {other: kept for other, kept in used.items() if other != name}
        if count := _count(connection, others):
            matching = "1 session matches" if count == 1 else f"{count:,} sessions match"
            text += f" Without the {_phrase(name, value)}, {matching}."
    return text


def describe(filters: SessionFilters) -> str:
    """Return the filters in words."""
    used: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    return ", ".join(_phrase(name, value) for name, value in used.items())


def _count(connection: sa.Connection, filters: dict[str, Any]) -> int:
    query = sa.select(sa.func.count()).select_from(sessions).where(*conditions(**filters))
    return int(connection.execute(query).scalar_one())


def _phrase(name: str, value: Any) -> str:
    if name in _NOUNS:
        return f"{_NOUNS[name][0]} {value!r}"
    if name == "min_messages":
        return f"minimum of {value:,} message{'' if value == 1 else 's'}"
    if name == "subagents":
        return "exclusion of subagents"
    if name == "bots":
        return "exclusion of bots (--bots)"
    if name == "warm":
        return "start with an opening" if value else "start without an opening"
    if name in ("since", "until"):
        return f"start {'from' if name == 'since' else 'before'} {_day(value)}"
    return f"filter {name.replace('_', ' ')}"


def _reason(connection: sa.Connection, name: str, value: Any) -> str:
    if name in _NOUNS:
        return _missing_value(connection, name, value)
    if name == "subagents":
        return "All of them are sessions of subagents."
    if name == "bots":
        return "All of them are sessions of bots; --bots includes them."
    if name == "warm":
        return f"{'None' if value else 'Every session'} started with an opening."
    if name == "min_messages":
        longest = connection.execute(sa.select(sa.func.max(sessions.c.messages))).scalar_one()
        return f"None has {value:,} messages or more: the longest has {longest:,}."
    if name not in ("since", "until"):
        return f"None matches the {_phrase(name, value)}."
    is_since = name == "since"
    end = sa.func.max if is_since else sa.func.min
    known = connection.execute(sa.select(end(sessions.c.started_at))).scalar_one()
    when = "on or after" if is_since else "before"
    reason = f"None started {when} {_day(value)}"
    if known is None:
        return f"{reason}: their times are not recorded."
    return f"{reason}: the {'last' if is_since else 'first'} one started on {_day(known)}."


def _missing_value(connection: sa.Connection, name: str, value: str) -> str:
    noun, plural = _NOUNS[name]
    known = _values(connection, name)
    reason = f"None has the {noun} {value!r}"
    if not known:
        return f"{reason}: no {noun} is recorded."
    shown = list(dict.fromkeys((*_alike(value, known), *known)))[:_MAX_VALUES]
    more = len(known) - len(shown)
    rest = f" and {more:,} more" if more else ""
    return f"{reason}. {plural}: {', '.join(shown)}{rest}."


def _values(connection: sa.Connection, name: str) -> list[str]:
    """Return the values of a filter that sessions have, the most frequent first."""
    columns = {"origin": ("source", "platform"), "tag": ("tags",)}.get(name, (name,))
    read: Callable[[str], list[str]] = json.loads if name == "tag" else lambda value: [value]
    counts: Counter[str] = Counter()
    for column in columns:
        field = sessions.c[column]
        for value, count in connection.execute(sa.select(field, sa.func.count()).group_by(field)):
            for each in read(value):
                counts[each] += count
    del counts[""]
    return sorted(counts, key=lambda value: (-counts[value], value))


def _alike(value: str, known: Sequence[str]) -> list[str]:
    """Return values that are spelled almost like this one, in whole or in their last part."""
    whole = {each.lower(): each for each in reversed(known)}
    last = {each.lower().rpartition("/")[2]: each for each in reversed(known)}
    asked = value.lower().rstrip("/")
    near = [whole[each] for each in get_close_matches(asked, whole, 3)]
    near += [last[each] for each in get_close_matches(asked.rpartition("/")[2], last, 3)]
    return list(dict.fromkeys(near))[:3]


def _day(at: float) -> str:
    try:
        return datetime.fromtimestamp(at).astimezone().date().isoformat()
    except (OverflowError, ValueError, OSError):  # a clock that was far off
        return "an unknown day"
