"""Which sessions are meant: the choices that listing and adding up have in common."""

from typing import TypedDict

import msgspec
import sqlalchemy as sa

from journeyman.store.tables import sessions


class Chosen(TypedDict, total=False):
    """Which sessions are meant, by what they are."""

    source: str | None
    model: str | None
    tag: str | None
    since: float | None
    until: float | None
    min_messages: int
    subagents: bool


def conditions(
    *,
    source: str | None = None,
    model: str | None = None,
    tag: str | None = None,
    since: float | None = None,
    until: float | None = None,
    min_messages: int = 0,
    subagents: bool = True,
) -> list[sa.ColumnElement[bool]]:
    """What has to hold of a session; no choice means all of them."""
    columns = sessions.c
    wanted = [columns.messages >= min_messages]
    if source is not None:
        wanted.append(columns.source == source)
    if model is not None:
        wanted.append(columns.model == model)
    if tag is not None:
        # Contained, and with the same case: LIKE means different things to the databases.
        written = msgspec.json.encode(tag).decode()
        wanted.append(sa.func.replace(columns.tags, written, "") != columns.tags)
    if since is not None:
        wanted.append(columns.started_at >= since)
    if until is not None:
        wanted.append(columns.started_at < until)
    if not subagents:
        wanted.append(sa.func.coalesce(columns.lineage, "") != "subagent")
    return wanted
