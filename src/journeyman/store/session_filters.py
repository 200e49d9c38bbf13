"""The filters on sessions, as conditions on their rows."""

import re
from collections.abc import Callable
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


def matches_none(connection: sa.Connection, filters: SessionFilters) -> bool:
    """Return whether sessions are stored, and the filters exclude all of them."""
    query = sa.select(sessions.c.row_id).limit(1)
    stored = connection.execute(query).first()
    return (
        stored is not None and not connection.execute(query.where(*conditions(**filters))).first()
    )
