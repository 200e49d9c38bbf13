"""Which sessions are meant: the choices that listing and adding up have in common."""

import re
from typing import TypedDict

import msgspec
import sqlalchemy as sa

from journeyman.store.tables import sessions


class Chosen(TypedDict, total=False):
    """Which sessions are meant, by what they are."""

    project: str | None
    source: str | None
    model: str | None
    tag: str | None
    since: float | None
    until: float | None
    min_messages: int
    subagents: bool


def conditions(
    *,
    project: str | None = None,
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
    if project is not None:
        wanted.append(in_project(project))
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


def in_project(name: str) -> sa.ColumnElement[bool]:
    """Whether a session belongs to a project, whatever the case: its project is the one named, or
    ends in it (`cli` and `acme/cli` mean `github.com/acme/cli`), or is known only by its last part
    (sessions of a folder that is not on this machine belong to `cli`). The empty name means the
    sessions whose project is not known.
    """
    name = name.rstrip("/")
    last = name.rpartition("/")[2]
    ending = "%/" + re.sub(r"([\\%_])", r"\\\1", name)
    # The database lowers both sides: each has its own idea of letters beyond ASCII.
    stored, lower = sa.func.lower(sessions.c.project), sa.func.lower
    return sa.or_(stored.in_((lower(name), lower(last))), stored.like(lower(ending), escape="\\"))
