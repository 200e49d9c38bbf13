"""Marks the messages and the usage that are copies of another session's, so that they count once.

Two kinds of recorders copy. Some give every message a key that is unique everywhere (a UUID), and
a fork repeats the keys of its parent without naming it. Others name the parent, and their copies
are recognised by the ids of calls, or by role and text at the places where copies stand. What is
marked follows from the stored sessions only: the order of imports does not matter, and the messages
of a fork count again once its parent is deleted.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from journeyman.records import Tokens
from journeyman.records.copies import MessageTrace, copies_of_parent
from journeyman.store.rows import batches, decode_details, select_in
from journeyman.store.session_counts import call_ids, recount, session_counts
from journeyman.store.tables import messages, sessions, usage

_FORKED_FROM = "forked_from"
_FORKED_AT = "forked_at"
"""Details of a session, set by readers: the session that a fork says it was made from, and when."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_COPYING = ("compression", "branch", "unknown")
"""Kinds of lineage in which recorders may record the parent's messages again."""

_KEYED = sa.select(*messages.c["session_row", "key", "tool_calls", "tool_call_id", "role"])
_TRACED = (
    sa.select(*messages.c["key", "role", "kind", "tool_calls", "tool_call_id", "text"])
    .where(messages.c.session_row == sa.bindparam("this_row"))
    .order_by(messages.c.position)
)


_Keys = set[str | tuple[str, str]]
"""The keys of a session's messages, and the ids of its calls and results."""

_USED = usage.c["at", "model", "task", *Tokens.__struct_fields__]


def root_key(connection: sa.Connection, row_id: int) -> str:
    """Return the key of a session's first message if such keys are unique everywhere, else ""."""
    query = sa.select(messages.c.key).where(messages.c.session_row == row_id)
    key = connection.execute(query.order_by(messages.c.position).limit(1)).scalar() or ""
    return key if _UUID.fullmatch(key) else ""


def holders_of_copies(connection: sa.Connection, row_id: int) -> set[int]:
    """Return the rows of the sessions that may hold copies of a session's messages: children that
    continue it, and those that begin with the same message or at one of its summaries.
    """
    columns = sessions.c
    query = sa.select(columns.row_id)
    this = connection.execute(sessions.select().where(columns.row_id == row_id)).one()
    continues = (columns.parent_id == this.id, columns.lineage.in_(_COPYING))
    holders = set(connection.execute(query.where(*continues)).scalars())
    if this.root:
        is_summary = (messages.c.session_row == row_id, messages.c.kind == "summary")
        summaries = connection.execute(sa.select(messages.c.key).where(*is_summary)).scalars()
        begins_there = select_in(connection, query, columns.root, {this.root, *summaries})
        holders.update(row.row_id for row in begins_there)
    return holders - {row_id}


def refresh(connection: sa.Connection, row_ids: Iterable[int]) -> None:
    """Mark the copies in stored sessions anew, and count those sessions again that changed."""
    for row_id in sorted(row_ids):
        if changes := _find_changes(connection, row_id):
            before = session_counts(connection, row_id)
            _apply(connection, changes)
            recount(connection, row_id, before)


def mark_copies(connection: sa.Connection, row_id: int) -> None:
    """Mark the copies in one session, and set the lineage of a fork."""
    _apply(connection, _find_changes(connection, row_id))


def _apply(connection: sa.Connection, changes: Iterable[sa.Update]) -> None:
    for update in changes:
        connection.execute(update)


def _find_changes(connection: sa.Connection, row_id: int) -> list[sa.Update]:
    """Return the updates that mark the copies in a session; none if they are marked already."""
    this = sessions.c.row_id == row_id
    session = connection.execute(sessions.select().where(this)).one()
    if session.root:
        return _fork_changes(connection, session)
    copied: set[str] = set()
    copied_usage: set[str] = set()
    parent = sessions.c.id == session.parent_id
    is_same_source = sessions.c.source == session.source
    query = sa.select(sessions.c.row_id).where(parent, is_same_source)
    parent_row = connection.execute(query).scalar()
    if session.lineage in _COPYING and parent_row is not None:
        (_, before), (keys, after) = _traces(connection, parent_row), _traces(connection, row_id)
        is_branch = session.lineage == "branch"
        copied = {keys[index] for index in copies_of_parent(before, after, is_branch=is_branch)}
        copied_usage = _repeated_usage(connection, parent_row, row_id)
    return [
        *_copied_changes(connection, messages, row_id, copied),
        *_copied_changes(connection, usage, row_id, copied_usage),
    ]


def _repeated_usage(connection: sa.Connection, parent_row: int, row_id: int) -> set[str]:
    """Return the keys of a session's usage that its parent recorded at the same moment: keys such
    as offsets differ between the two. A sum without a time is never a copy.
    """

    def recorded(row: int) -> dict[str, tuple[Any, ...]]:
        query = sa.select(usage.c.key, *_USED).where(usage.c.session_row == row)
        found = connection.execute(query.where(usage.c.at.is_not(None)))
        return {key: tuple(values) for key, *values in found}

    known = set(recorded(parent_row).values())
    return {key for key, values in recorded(row_id).items() if values in known}


def _traces(connection: sa.Connection, row_id: int) -> tuple[list[str], list[MessageTrace]]:
    keys, traces = [], []
    for row in connection.execute(_TRACED, {"this_row": row_id}):
        keys.append(row.key)
        traces.append(
            MessageTrace(
                role=row.role,
                text=hash(row.text.strip()),
                calls=tuple(call_ids(row.tool_calls)),
                answers=row.tool_call_id,
                is_summary=row.kind == "summary",
            )
        )
    return keys, traces


def _fork_changes(connection: sa.Connection, session: Any) -> list[sa.Update]:
    earlier = _earlier_sessions(connection, session)
    copied: set[str] = set()
    copied_usage: set[str] = set()
    if earlier:
        rows = [row.row_id for row, _ in earlier]
        known = _Keys().union(*(keys for _, keys in earlier))
        for row in select_in(connection, _KEYED, messages.c.session_row, [session.row_id]):
            # Lines of one answer may be grouped in another way in the fork.
            asked = _call_keys(row)
            is_known_result = row.role == "tool" and ("result", row.tool_call_id) in known
            if row.key in known or (asked and asked <= known) or is_known_result:
                copied.add(row.key)
        copied_usage = _usage_keys(connection, [session.row_id]) & _usage_keys(connection, rows)
    return [
        *_lineage_changes(connection, session, earlier),
        *_copied_changes(connection, messages, session.row_id, copied),
        *_copied_changes(connection, usage, session.row_id, copied_usage),
    ]


def _usage_keys(connection: sa.Connection, rows: Collection[int]) -> set[str]:
    found = select_in(connection, sa.select(usage.c.key), usage.c.session_row, rows)
    return {row.key for row in found}


def _earlier_sessions(connection: sa.Connection, session: Any) -> list[tuple[Any, _Keys]]:
    """Return the sessions that a fork may have copied from, with their keys: those with a summary
    that it begins at, and those that begin as it does and are older.
    """
    columns = sessions.c
    is_other = sa.and_(columns.row_id != session.row_id, columns.source == session.source)
    same = sessions.select().where(is_other, columns.root == session.root)
    begins_at = sa.and_(messages.c.kind == "summary", messages.c.key == session.root)
    compressed = (
        sessions.select()
        .join(messages, messages.c.session_row == columns.row_id)
        .where(is_other, begins_at, columns.root != session.root)
    )
    parents = connection.execute(compressed).all()
    siblings = connection.execute(same).all()
    if not parents and not siblings:
        return []
    older = sorted((row for row in siblings if _age(row) < _age(session)), key=_age)
    keys = _keys(connection, [row.row_id for row in (*parents, *older)])
    return [(row, keys[row.row_id]) for row in (*parents, *older)]


def _keys(connection: sa.Connection, rows: Collection[int]) -> dict[int, _Keys]:
    keys: dict[int, _Keys] = {row: set() for row in rows}
    for row in select_in(connection, _KEYED, messages.c.session_row, rows):
        keys[row.session_row] |= {row.key, *_call_keys(row)}
        if row.role == "tool":
            keys[row.session_row].add(("result", row.tool_call_id))
    return keys


def _call_keys(row: Any) -> _Keys:
    return {("call", id_) for id_ in call_ids(row.tool_calls)}


def _age(row: Any) -> tuple[float, str]:
    """Return what sorts sessions that begin with the same message, the original first: a fork
    states when it was made.
    """
    forked_at = decode_details(row.details).get(_FORKED_AT)
    return float(forked_at) if isinstance(forked_at, int | float) else 0.0, row.id


def _lineage_changes(
    connection: sa.Connection, session: Any, earlier: Collection[tuple[Any, _Keys]]
) -> list[sa.Update]:
    """Return the update that sets the parent of a fork: the one that it names, otherwise the
    session that it shares most with, the oldest of several.
    """
    if session.lineage not in (None, "branch"):
        return []
    parent = decode_details(session.details).get(_FORKED_FROM)
    if parent is None and earlier:
        own = _keys(connection, [session.row_id])[session.row_id]
        shared = {row.id: len(own & keys) for row, keys in earlier}
        parent = max(shared, key=lambda id_: shared[id_])
    lineage = None if parent is None else "branch"
    if (session.parent_id, session.lineage) == (parent, lineage):
        return []
    values = {"parent_id": parent, "lineage": lineage}
    this = sessions.c.row_id == session.row_id
    return [sessions.update().where(this).values(values)]


def _copied_changes(
    connection: sa.Connection, table: sa.Table, row_id: int, copied: set[str]
) -> list[sa.Update]:
    """Return the updates after which exactly these rows of a session are copies."""
    these = table.c.session_row == row_id
    query = sa.select(table.c.key).where(these, table.c.copied)
    before = set(connection.execute(query).scalars())
    return [
        table.update().where(these, table.c.key.in_(batch)).values(copied=value)
        for value, keys in ((True, copied - before), (False, before - copied))
        for batch in batches(sorted(keys))
    ]
