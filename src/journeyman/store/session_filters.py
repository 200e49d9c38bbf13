"""The filters on sessions, as conditions on their rows and in words, and which of them excludes all
stored sessions.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, TypedDict, Unpack

import msgspec
import sqlalchemy as sa

from journeyman.records.errors import WrongInput
from journeyman.records.project import is_whole
from journeyman.records.session import BOT_PLATFORMS
from journeyman.store.tables import sessions


class SessionFilters(TypedDict, total=False):
    """Filters on sessions, by their properties. `origin` is a source or a platform; the case of a
    platform does not matter. Without `bots`, sessions in which no person spoke are left out.
    """

    project: str | None
    source: str | None
    platform: str | None
    origin: str | None
    model: str | None
    tag: str | None
    since: float | None
    until: float | None
    min_messages: int
    subagents: bool
    bots: bool | None
    warm: bool | None


def conditions(**filters: Unpack[SessionFilters]) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on a session; without filters, every session matches."""
    values: dict[str, Any] = {**filters}
    if unknown := values.keys() - _CONDITIONS.keys():
        known = ", ".join(_CONDITIONS)
        raise WrongInput(f"There is no filter {min(unknown)!r} on sessions. Filters are: {known}.")
    return [_CONDITIONS[name](value) for name, value in values.items() if value is not None]


def leave_out_bots(filters: SessionFilters) -> None:
    """Leave sessions of bots out, unless the filters name their platform or a tag."""
    named = (filters.get("platform") or filters.get("origin") or "").lower()
    if filters.get("bots") is None and not (filters.get("tag") or named in BOT_PLATFORMS):
        filters["bots"] = False


def in_project(name: str) -> sa.ColumnElement[bool]:
    """The condition that a session belongs to a project, ignoring case: its project is the one
    named, or ends with it unless it is whole (`cli` and `acme/cli` match `github.com/acme/cli`), or
    is only the last part of the name (sessions of a folder that is not on this machine belong to
    `cli`). The empty name matches sessions without a known project.
    """
    name = name.rstrip("/")
    last = name.rpartition("/")[2]
    ending = "%/" + re.sub(r"([\\%_])", r"\\\1", name)
    # The database lowers both sides: each treats letters beyond ASCII differently.
    stored, lower = sa.func.lower(sessions.c.project), sa.func.lower
    is_equal = stored.in_((lower(name), lower(last)))
    if is_whole(name):
        return is_equal
    return sa.or_(is_equal, stored.like(lower(ending), escape="\\"))


def _on_platform(name: str) -> sa.ColumnElement[bool]:
    return sa.func.lower(sessions.c.platform) == sa.func.lower(name)


def _has_tag(tag: str) -> sa.ColumnElement[bool]:
    # Contained, with the same case: LIKE differs between the databases.
    tags, written = sessions.c.tags, msgspec.json.encode(tag).decode()
    return sa.func.replace(tags, written, "") != tags


_CONDITIONS: dict[str, Callable[[Any], sa.ColumnElement[bool]]] = {
    "project": in_project,
    "source": lambda name: sessions.c.source == name,
    "platform": _on_platform,
    "origin": lambda name: sa.or_(sessions.c.source == name, _on_platform(name)),
    "model": lambda name: sessions.c.model == name,
    "tag": _has_tag,
    "since": lambda at: sessions.c.started_at >= at,
    "until": lambda at: sessions.c.started_at < at,
    "min_messages": lambda count: sessions.c.messages >= count,
    "subagents": lambda too: (
        sa.true() if too else sa.func.coalesce(sessions.c.lineage, "") != "subagent"
    ),
    "bots": lambda too: (
        sa.true() if too else sa.func.lower(sessions.c.platform).not_in(BOT_PLATFORMS)
    ),
    "warm": lambda warm: (sessions.c.opening != "") == warm,
}

_COLUMNS = {"origin": ("source", "platform"), "tag": ("tags",)}
_COLUMNS |= {name: (name,) for name in ("project", "source", "platform", "model")}
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
_MAX_VALUES = 8


def describe(filters: SessionFilters) -> str:
    """Return the filters in words."""
    return ", ".join(_phrase(name, value) for name, value in filters.items() if value is not None)


def why_no_match(connection: sa.Connection, filters: SessionFilters) -> str:
    """Return which filters exclude all stored sessions, and the most frequent values that exist
    instead; empty if there are no filters, no sessions, or matching sessions.
    """
    used: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    if not used or not _count(connection, {}) or _count(connection, used):
        return ""
    reasons = ["No stored session matches."]
    for name, value in used.items():
        if not _count(connection, {name: value}):
            known = _values(connection, name)
            alike = get_close_matches(str(value), known, 3)
            values = ", ".join([*dict.fromkeys((*alike, *known))][:_MAX_VALUES])
            there_are = f" There are: {values}." if values else ""
            reasons.append(f"None matches the {_phrase(name, value)}.{there_are}")
    if len(reasons) == 1:
        return f"No stored session matches all of these: {describe(filters)}."
    return " ".join(reasons)


def _phrase(name: str, value: Any) -> str:
    return _PHRASES.get(name, f"{name} {{!r}}").format(value)


def _count(connection: sa.Connection, filters: dict[str, Any]) -> int:
    query = sa.select(sa.func.count()).select_from(sessions).where(*conditions(**filters))
    return int(connection.execute(query).scalar_one())


def _values(connection: sa.Connection, name: str) -> list[str]:
    counts: Counter[str] = Counter()
    for column in _COLUMNS.get(name, ()):
        field = sessions.c[column]
        for value, count in connection.execute(sa.select(field, sa.func.count()).group_by(field)):
            for each in json.loads(value) if name == "tag" else [value]:
                counts[each] += count
    del counts[""]
    return sorted(counts, key=lambda value: (-counts[value], value))
