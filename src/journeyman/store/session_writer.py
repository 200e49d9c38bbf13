"""Writing sessions in one transaction, from the first fragment to the counts.

Messages are identified by their key, so that reading a log again changes nothing. Counts are
computed from the rows when the transaction ends: a log that is read in parts yields the same as one
read whole.
"""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Fragment, LogState, Session, SessionId
from journeyman.records.fragment import SessionChange
from journeyman.records.message import session_digest
from journeyman.records.session import REDACTED_DETAIL
from journeyman.store import rows
from journeyman.store.rows import dialect_insert, storable, upsert, values_of
from journeyman.store.search import index_new_messages
from journeyman.store.tables import deleted, logs, messages, sessions, usage
from journeyman.text.truncation import truncate

_TITLE_CHARACTERS = 120

# Rows are written in batches, which is faster; a batch of long texts is limited by its characters.
_BATCH_ROWS = 500
_BATCH_CHARACTERS = 4_000_000

_EMPTY_FACTS = rows.FACTS | {"parent_id": None, "lineage": None, "tags": "[]", "details": "{}"}


class _CallId(msgspec.Struct):
    id: str


_decode_call_ids = msgspec.json.Decoder(list[_CallId]).decode


# Built once: building them for each session would cost more than running them.
_this_row: sa.BindParameter[int] = sa.bindparam("this_row")
_FIND_SESSION = sessions.select().where(sessions.c.id == sa.bindparam("this_id"))
_ADD_SESSION = sessions.insert().returning(sessions.c.row_id)
_UPDATE_SESSION = sessions.update().where(sessions.c.row_id == _this_row)
_FIRST_WORDS = sa.case(
    (
        sa.and_(messages.c.role == "user", messages.c.kind == "plain"),
        sa.func.substr(messages.c.text, 1, _TITLE_CHARACTERS * 4),
    )
)
_COUNTED: sa.Select[Any] = (
    sa.select(
        *messages.c["digest", "at", "generation", "model", "role", "tool_call_id", "tool_calls"],
        _FIRST_WORDS,
    )
    .where(messages.c.session_row == _this_row)
    .order_by(messages.c.position)
)


class _OpenSession(msgspec.Struct):
    """A session in this transaction: its stored id, its row id, its row `before` the transaction,
    the `baseline` that the fragments add to (the row before, or None once the session is read
    completely again), and the facts to set.
    """

    id: SessionId
    row_id: int
    before: Any
    baseline: Any
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
        # Another log of the same session, such as an export, may contain less of it: only the log
        # that a session came from can remove messages.
        is_own = opened.before is None or opened.before.log == storable(fragment.session.log)
        if _would_lose_text(opened, fragment.session):
            return opened.id
        row_id = opened.row_id
        if fragment.replaces and is_own and opened.baseline is not None:
            opened.baseline = None
            for table in (messages, usage):
                self._connection.execute(table.delete().where(table.c.session_row == row_id))
        opened.facts |= rows.session_facts(fragment.session)
        for message in fragment.messages:
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
        """Return the number of stored messages of a session, or None if it is not stored."""
        query = sa.select(sessions.c.messages).where(sessions.c.id == storable(session_id))
        return self._connection.execute(query).scalar_one_or_none()

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
        changes = {
            opened.id: self._write_session(opened)
            for opened in self._open_sessions.values()
            if opened is not None
        }
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
            SessionId(name), row_id, before, before
        )
        if before is not None and before.log != session.log and not Path(before.log).exists():
            # The log was moved, as Codex does when it archives.
            opened.facts["log"] = storable(session.log)
        return opened

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

    def _write_session(self, opened: _OpenSession) -> SessionChange:
        """Set the facts and counts of a session; return how it changed."""
        before, baseline = opened.before, opened.baseline
        facts: dict[str, Any] = {} if baseline is not None else dict(_EMPTY_FACTS)
        facts |= self._counts(opened.row_id)
        times, first_prompt = facts.pop("times"), facts.pop("first_prompt")
        facts |= opened.facts
        for name, furthest in (("started_at", min), ("ended_at", max)):
            known_times = [facts.get(name), baseline and getattr(baseline, name), *times]
            facts[name] = furthest((at for at in known_times if at is not None), default=None)
        project = facts.get("project", "").lower()
        if before is not None and project and before.project.lower().endswith(f"/{project}"):
            # The stored name is more complete: the folder may have been deleted since.
            facts["project"] = before.project
        if not facts.get("title") and not (baseline and baseline.title):
            # Titled after the first request.
            facts["title"] = truncate(first_prompt, _TITLE_CHARACTERS)
        if before is not None and all(getattr(before, name) == facts[name] for name in facts):
            return "unchanged"
        self._connection.execute(_UPDATE_SESSION, {"this_row": opened.row_id, **facts})
        return "new" if before is None else "updated"

    def _counts(self, row_id: int) -> dict[str, Any]:
        options = {"yield_per": 1000}
        parameters = {"this_row": row_id}
        counted = self._connection.execute(_COUNTED, parameters, execution_options=options)
        digests, called, answered = [], Counter[str](), Counter[str]()
        models, generations, times = Counter[str](), set(), list[float]()
        first_prompt = ""
        for digest, at, generation, model, role, tool_call_id, tool_calls, prompt in counted:
            digests.append(digest)
            generations.add(generation)
            if at is not None:
                times.append(at)
            if model:
                models[model] += 1
            if prompt and not first_prompt:
                first_prompt = " ".join(prompt.split())
            if tool_calls:
                called.update(call.id for call in _decode_call_ids(tool_calls))
            if role == "tool" and tool_call_id:
                answered[tool_call_id] += 1
        counts = {
            "messages": len(digests),
            "calls": called.total(),
            # The same number as from joining: an id has as many answered calls as results, but no
            # more than calls.
            "answered": (called & answered).total(),
            "generations": max(len(generations), 1),
            "digest": session_digest(digests),
            "times": times,
            "first_prompt": first_prompt,
        }
        if models:
            counts["model"] = models.most_common(1)[0][0]
        return counts


def _would_lose_text(opened: _OpenSession, session: Session) -> bool:
    """Whether the session is stored as it was recorded, and this is only a redacted copy of it."""
    if opened.before is None or not session.details.get(REDACTED_DETAIL):
        return False
    return not rows.decode_details(opened.before.details).get(REDACTED_DETAIL)


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
