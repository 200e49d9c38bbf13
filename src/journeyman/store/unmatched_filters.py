"""Explains why no stored session matches some filters: which of them excludes all sessions, and
which values exist instead. Describes filters in words.
"""

import json
from collections import Counter
from difflib import get_close_matches
from typing import Any

import sqlalchemy as sa

from journeyman.store.session_filters import SessionFilters, conditions
from journeyman.store.tables import sessions

_MAX_VALUES = 8

_COLUMNS = {
    "project": ("project",),
    "source": ("source",),
    "platform": ("platform",),
    "origin": ("source", "platform"),
    "model": ("model",),
    "tag": ("tags",),
}
"""The columns in which the values of a filter stand."""

_PHRASES = {
    "source": "recorder {!r}",
    "origin": "recorder or platform {!r}",
    "min_messages": "minimum of {:,} messages",
    "subagents": "exclusion of subagents",
    "bots": "exclusion of bots (--bots includes them)",
    "warm": "start with or without an opening",
    "since": "earliest start",
    "until": "latest start",
}


def explain(connection: sa.Connection, filters: SessionFilters) -> str:
    """Return the sentences; empty if there are no filters, no sessions, or matching sessions."""
    used = _used(filters)
    if not used or not _count(connection, {}) or _count(connection, used):
        return ""
    excluding = [name for name, value in used.items() if not _count(connection, {name: value})]
    if not excluding:
        return f"No stored session matches all of these: {describe(filters)}."
    reasons = (_reason(connection, name, used[name]) for name in excluding)
    return f"No stored session matches. {' '.join(reasons)}"


def describe(filters: SessionFilters) -> str:
    """Return the filters in words."""
    return ", ".join(_phrase(name, value) for name, value in _used(filters).items())


def _used(filters: SessionFilters) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value is not None}


def _phrase(name: str, value: Any) -> str:
    return _PHRASES.get(name, f"{name} {{!r}}").format(value)


def _count(connection: sa.Connection, filters: dict[str, Any]) -> int:
    query = sa.select(sa.func.count()).select_from(sessions).where(*conditions(**filters))
    return int(connection.execute(query).scalar_one())


def _reason(connection: sa.Connection, name: str, value: Any) -> str:
    reason = f"None matches the {_phrase(name, value)}."
    if name not in _COLUMNS:
        return reason
    known = _values(connection, name)
    alike = get_close_matches(str(value), known, 3)
    shown = list(dict.fromkeys((*alike, *known)))[:_MAX_VALUES]
    more = f" and {len(known) - len(shown):,} more" if len(known) > len(shown) else ""
    return f"{reason} There are: {', '.join(shown)}{more}." if shown else reason


def _values(connection: sa.Connection, name: str) -> list[str]:
    """Return the values of a filter that sessions have, the most frequent first."""
    counts: Counter[str] = Counter()
    for column in _COLUMNS[name]:
        field = sessions.c[column]
        for value, count in connection.execute(sa.select(field, sa.func.count()).group_by(field)):
            for each in json.loads(value) if name == "tag" else [value]:
                counts[each] += count
    del counts[""]
    return sorted(counts, key=lambda value: (-counts[value], value))
