"""Writing sessions in one transaction, from the first fragment to the counts.

Messages are identified by their key, so that reading a log again changes nothing. Counts are
computed from the rows when the transaction ends: a log that is read in parts yields the same as one
read whole.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Fragment, LogState, Session, SessionId
from journeyman.records.fragment import SessionChange
from journeyman.records.host import REPORTED_USAGE, marked_opening
from journeyman.records.session import REDACTED_DETAIL
from journeyman.store import rows
from journeyman.store.copies import holders_of_copies, mark_copies, refresh, root_key
from journeyman.store.rows import dialect_insert, storable, upsert, values_of
from journeyman.store.search import index_new_messages
from journeyman.store.session_counts import session_counts
from journeyman.store.tables import deleted, logs, messages, session_notes, sessions, usage

# Rows are written in batches, which is faster; a batch of long texts is limited by its characters.
_BATCH_ROWS = 500
_BATCH_CHARACTERS = 4_000_000

_OPENING_ROLES = ("system", "user")
_ORIGIN = ("root", "parent_id", "lineage", "details")
_EMPTY_FACTS = rows.FACTS | {"parent_id": None, "lineage": None, "tags": "[]", "details": "{}"}


# Built once: building them for each session would cost more than running them.
_this_row: sa.BindParameter[int] = sa.bindparam("this_row")
_FIND_SESSION = sessions.select().where(sessions.c.id == sa.bindparam("this_id"))
_ADD_SESSION = sessions.insert().returning(sessions.c.row_id)
_NOTED = session_notes.select().where(
    session_notes.c.source == sa.bindparam("this_source"),
    session_notes.c.session_id == sa.bindparam("this_id"),
)
_UPDATE_SESSION = sessions.update().where(sessions.c.row_id == _this_row)


class _OpenSession(msgspec.Struct):
    """A session in this transaction: its stored id, its own id, its row `before` the transaction,
    the `baseline` that the fragments add to (the row before, or None once the session is read
    completely again), and the facts to set. `is_redacted`: a redacted copy of it was stored before.
    """

    id: SessionId
    session_id: str
    source: str
    row_id: int
    before: Any
    baseline: Any
    is_redacted: bool = False
    facts: dict[str, Any] = {}


class SessionWriter:
    """An open write transaction. Its changes are invisible to others until the store commits it."""

    def __init__(self, connection: sa.Connection, *, restores: bool = False) -> None:
        self._connection = connection
        self._restores = restores
        self._open_sessions: dict[SessionId, _OpenSession | None] = {}
        self._messages: list[dict[str, Any]] = []
        self._usage: list[dict[str, Any]] = []
        self._batch_characters = 0
        self._deleted: frozenset[str] | None = None
        self._upserts = _upserts(connection.dialect.name)

    def add(self, fragment: Fragment) -> SessionId | None:
        """Write the messages and usage of a fragment, and collect its facts. Return the id that the
        session is stored under, or None if it was deleted.
        """
        opened = self._open(fragment.session)
        if opened is None:
            return None
        before, row_id = opened.before, opened.row_id
        if before is not None and fragment.session.details.get(REDACTED_DETAIL):
            return opened.id  # a redacted copy adds nothing to a stored session
        # Another log of the same session, such as an export, may contain less of it: only the log
        # that a session came from can remove messages, unless only a redacted copy was stored.
        log = storable(fragment.session.log)
        is_own = before is None or opened.is_redacted or before.log == log
        if fragment.replaces and is_own and opened.baseline is not None:
            self._clear(opened)
        if opened.is_redacted or not (is_own or Path(before.log).exists()):
            # The log was moved, as Codex does when it archives.
            opened.facts["log"] = log
        opened.facts |= rows.session_facts(fragment.session)
        for message in fragment.messages:
            if message.role in _OPENING_ROLES and (opening := marked_opening(message.text)):
                opened.facts.setdefault("opening", opening)
            self._messages.append(rows.message_values(row_id, message))
            self._batch_characters += len(message.text)
        self._usage += [rows.usage_values(row_id, usage_) for usage_ in fragment.usage]
        if len(self._messages) >= _BATCH_ROWS or self._batch_characters >= _BATCH_CHARACTERS:
            self._flush()
        for start, end in fragment.undone if is_own else ():
            self._flush()
            these = messages.c.position.between(start, end - 1)
            undone = messages.delete().where(messages.c.session_row == row_id, these)
            self._connection.execute(undone)
        return opened.id

    def message_count(self, session_id: SessionId) -> int | None:
        """Return the number of stored messages of a session, copies included, or None if it is not
        stored.
        """
        this = sessions.c.id == storable(session_id)
        row = self._connection.execute(sa.select(sessions.c.row_id).where(this)).scalar()
        if row is None:
            return None
        query = sa.select(sa.func.count()).where(messages.c.session_row == row)
        return int(self._connection.execute(query).scalar_one())

    def repository_folders(self) -> dict[str, str]:
        """Return the folders of stored sessions that had a git branch recorded, and their
        projects.
        """
        columns = sessions.c
        query = sa.select(columns.cwd, columns.project).distinct()
        query = query.where(columns.cwd != "", columns.project != "", columns.git_branch != "")
        return {row.cwd: row.project for row in self._connection.execute(query)}

    def remember(self, log: str, state: LogState) -> None:
        """Store how far a log was read, in the same transaction as what was read."""
        values = values_of(state, logs, log=log, state=msgspec.json.encode(state).decode())
        self._connection.execute(self._upserts["logs"], values)

    def finish(self) -> dict[SessionId, SessionChange]:
        """Update the counts, title and times of the written sessions; return how each changed, by
        stored id.
        """
        self._flush()
        written = [opened for opened in self._open_sessions.values() if opened]
        self._mark_copies(written)
        changes = {opened.id: self._write_session(opened) for opened in written}
        self._open_sessions.clear()
        index_new_messages(self._connection)
        return changes

    def _open(self, session: Session) -> _OpenSession | None:
        """Find or create the row of a session; return None if the session was deleted."""
        if session.id in self._open_sessions:
            return self._open_sessions[session.id]
        id_, source = storable(session.id), storable(session.source)
        # Two recorders can use one id, as after an export into another format. Both are kept.
        for name in (id_, f"{source}:{id_}"):
            before = self._connection.execute(_FIND_SESSION, {"this_id": name}).one_or_none()
            if before is None or before.source == source:
                break
        if before is None and self._was_deleted(name):
            self._open_sessions[session.id] = None
            return None
        if before is None:
            columns = {"id": name, "source": session.source, "log": session.log}
            values = {key: storable(value) for key, value in columns.items()}
            row_id = self._connection.execute(_ADD_SESSION, values).scalar_one()
        else:
            row_id = before.row_id
        opened = self._open_sessions[session.id] = _OpenSession(
            SessionId(name), id_, source, row_id, before, before
        )
        if before is not None:
            opened.is_redacted = REDACTED_DETAIL in rows.decode_details(before.details)
        return opened

    def _clear(self, opened: _OpenSession) -> None:
        """Delete the messages and the usage of a session that is read completely again, but not
        usage that its log never had.
        """
        self._flush()
        opened.baseline = None
        for table in (messages, usage):
            these = table.c.session_row == opened.row_id
            if table is usage:
                these &= ~usage.c.key.startswith(REPORTED_USAGE)
            self._connection.execute(table.delete().where(these))

    def _was_deleted(self, name: str) -> bool:
        if self._deleted is None:  # loaded at once: there are few, but many new sessions
            ids = self._connection.execute(sa.select(deleted.c.id)).scalars()
            self._deleted = frozenset(ids)
        if name in self._deleted and self._restores:
            self._connection.execute(deleted.delete().where(deleted.c.id == name))
        return name in self._deleted and not self._restores

    def _flush(self) -> None:
        if self._messages:
            self._connection.execute(self._upserts["messages"], self._messages)
        if self._usage:
            self._connection.execute(self._upserts["usage"], self._usage)
        self._messages, self._usage, self._batch_characters = [], [], 0

    def _noted(self, opened: _OpenSession, opening: str) -> dict[str, Any]:
        """Return the facts about a session that are known beside its log. Its own opening stays."""
        parameters = {"this_source": opened.source, "this_id": opened.session_id}
        note = self._connection.execute(_NOTED, parameters).one_or_none()
        if note is None:
            return {}
        facts = rows.owner_values(note.owner) if note.owner else {}
        return {**facts, "opening": opening or note.opening}

    def _mark_copies(self, written: Sequence[_OpenSession]) -> None:
        """Mark the copies in the written sessions, and in others that have copies of them."""
        for opened in written:
            self._write_origin(opened)
        all_holders = (holders_of_copies(self._connection, opened.row_id) for opened in written)
        holders = set[int]().union(*all_holders)
        for opened in written:
            facts, this = opened.facts, sessions.c.row_id == opened.row_id
            parent = facts.get("parent_id", opened.baseline and opened.baseline.parent_id)
            if facts["root"] or parent is not None or opened.row_id in holders:
                mark_copies(self._connection, opened.row_id)
                query = sa.select(sessions.c.parent_id, sessions.c.lineage)
                facts |= self._connection.execute(query.where(this)).mappings().one()
        refresh(self._connection, holders.difference(opened.row_id for opened in written))

    def _write_origin(self, opened: _OpenSession) -> None:
        """Write where a session comes from ahead of its other facts: copies are found by it."""
        facts, before = opened.facts, opened.before
        facts["root"] = root_key(self._connection, opened.row_id)
        stated = facts if opened.baseline is not None else {**_EMPTY_FACTS, **facts}
        origin = {name: stated[name] for name in _ORIGIN if name in stated}
        if any(
            (origin["root"], origin.get("parent_id"), before and (before.root or before.parent_id))
        ):
            self._connection.execute(_UPDATE_SESSION, {"this_row": opened.row_id, **origin})

    def _write_session(self, opened: _OpenSession) -> SessionChange:
        """Set the facts and counts of a session; return how it changed."""
        before, baseline = opened.before, opened.baseline
        facts: dict[str, Any] = {} if baseline is not None else dict(_EMPTY_FACTS)
        counts = session_counts(self._connection, opened.row_id)
        facts |= counts.columns
        facts |= opened.facts
        for name, furthest in (("started_at", min), ("ended_at", max)):
            known_times = [facts.get(name), baseline and getattr(baseline, name), *counts.times]
            facts[name] = furthest((at for at in known_times if at is not None), default=None)
        project = facts.get("project", "").lower()
        if before is not None and project and before.project.lower().endswith(f"/{project}"):
            # The stored name is more complete: the folder may have been deleted since.
            facts["project"] = before.project
        if not facts.get("title") and not (baseline and baseline.title):
            lineage = facts.get("lineage", baseline and baseline.lineage)
            facts["title"] = counts.title(lineage)
        facts |= self._noted(opened, facts.get("opening") or (baseline and baseline.opening) or "")
        if before is not None and all(getattr(before, name) == facts[name] for name in facts):
            return "unchanged"
        self._connection.execute(_UPDATE_SESSION, {"this_row": opened.row_id, **facts})
        return "new" if before is None else "updated"


@cache
def _upserts(dialect_name: str) -> dict[str, Any]:
    """The inserts that replace a row with the same key. A message that has not changed is left
    alone.
    """
    insert = dialect_insert(dialect_name)
    differs = messages.c.digest != insert(messages).excluded.digest
    return {
        "messages": upsert(insert(messages), "session_row", "key", where=differs),
        "usage": upsert(insert(usage), "session_row", "key"),
        "logs": upsert(insert(logs), "log"),
    }
