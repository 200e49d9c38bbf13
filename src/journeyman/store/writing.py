"""Writing sessions: one transaction, from the first fragment to the counts.

Messages are kept by key, so that reading a log again changes nothing. Figures are counted from the
rows when the transaction ends: a log that is read in parts comes to the same as one read whole.
"""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Fragment, LogState, Session, SessionId
from journeyman.records.fragment import Change
from journeyman.records.message import session_digest
from journeyman.store import rows
from journeyman.store.rows import inserting, or_replace, storable, values_of
from journeyman.store.session_filters import index_new_messages
from journeyman.store.tables import deleted, logs, messages, sessions, usage

_TITLE_CHARACTERS = 120

# Rows are written in batches, because that is faster, but a batch of long texts is cut short.
_ROWS = 500
_CHARACTERS = 4_000_000

_NOTHING_KNOWN = rows.FACTS | {"parent_id": None, "lineage": None, "tags": "[]", "details": "{}"}


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


class _Touched(msgspec.Struct):
    """A session in this transaction: its row, what it was before, what is still known of that
    (nothing, once it is read whole again), and the facts to set.
    """

    row_id: int
    before: Any
    known: Any
    facts: dict[str, Any] = {}


class Writing:
    """One open transaction. Nothing is seen by others until the store commits it."""

    def __init__(self, connection: sa.Connection, *, restores: bool = False) -> None:
        self._connection = connection
        self._restores = restores
        self._touched: dict[SessionId, _Touched | None] = {}
        self._messages: list[dict[str, Any]] = []
        self._usage: list[dict[str, Any]] = []
        self._waiting_characters = 0
        self._deleted: frozenset[str] | None = None
        kind: Any = type(connection.dialect)
        self._insert = _inserts(kind)

    def add(self, fragment: Fragment) -> None:
        """Write a fragment's messages and usage, and remember its facts."""
        touched = self._touch(fragment.session)
        if touched is None:
            return
        # Another log with the same session, an export say, may hold less of it: only the log
        # that a session came from can take messages away.
        is_own = touched.before is None or touched.before.log == storable(fragment.session.log)
        row_id = touched.row_id
        if fragment.replaces and is_own and touched.known is not None:
            touched.known = None
            for table in (messages, usage):
                self._connection.execute(table.delete().where(table.c.session_row == row_id))
        touched.facts |= rows.session_facts(fragment.session)
        for message in fragment.messages:
            self._messages.append(rows.message_values(row_id, message))
            self._waiting_characters += len(message.text)
        self._usage += [rows.usage_values(row_id, one) for one in fragment.usage]
        if len(self._messages) >= _ROWS or self._waiting_characters >= _CHARACTERS:
            self._flush()
        for start, end in fragment.undone if is_own else ():
            self._flush()
            these = messages.c.position.between(start, end - 1)
            undone = messages.delete().where(messages.c.session_row == row_id, these)
            self._connection.execute(undone)

    def message_count(self, session_id: SessionId) -> int | None:
        """How many messages a session has in the store; None if there is no such session."""
        asked = sa.select(sessions.c.messages).where(sessions.c.id == storable(session_id))
        return self._connection.execute(asked).scalar_one_or_none()

    def repository_folders(self) -> dict[str, str]:
        """The folders that stored sessions worked in while a git branch was recorded, and their
        projects.
        """
        columns = sessions.c
        asked = sa.select(columns.cwd, columns.project).distinct()
        asked = asked.where(columns.cwd != "", columns.project != "", columns.git_branch != "")
        return {row.cwd: row.project for row in self._connection.execute(asked)}

    def remember(self, log: str, state: LogState) -> None:
        """Keep how far a log was read, in the same transaction as what was read."""
        values = values_of(state, logs, log=log, state=msgspec.json.encode(state).decode())
        self._connection.exec_driver_sql(self._insert["logs"], values)

    def finish(self) -> dict[SessionId, Change]:
        """Count, name and date the sessions that were touched; say what became of each."""
        self._flush()
        changes = {id_: self._settle(one) for id_, one in self._touched.items() if one is not None}
        self._touched.clear()
        index_new_messages(self._connection)
        return changes

    def _touch(self, session: Session) -> _Touched | None:
        """The session's row, made if need be; None for one that was deleted."""
        if session.id in self._touched:
            return self._touched[session.id]
        wanted, source = storable(session.id), storable(session.source)
        # Two recorders with one id: an export into another format, say. Both are kept.
        for name in (wanted, f"{source}:{wanted}"):
            before = self._connection.execute(_FIND_SESSION, {"this_id": name}).one_or_none()
            if before is None or before.source == source:
                break
        if before is None and self._was_deleted(name):
            self._touched[session.id] = None
            return None
        if before is None:
            named = {"id": name, "source": session.source, "log": session.log}
            values = {key: storable(value) for key, value in named.items()}
            row_id = self._connection.execute(_ADD_SESSION, values).scalar_one()
        else:
            row_id = before.row_id
        touched = self._touched[session.id] = _Touched(row_id, before, before)
        if before is not None and before.log != session.log and not Path(before.log).exists():
            # The log was moved, as Codex does when it archives.
            touched.facts["log"] = storable(session.log)
        return touched

    def _was_deleted(self, name: str) -> bool:
        if self._deleted is None:  # all of them at once: there are few, and many new sessions
            found = self._connection.execute(sa.select(deleted.c.id)).scalars()
            self._deleted = frozenset(found)
        if name in self._deleted and self._restores:
            self._connection.execute(deleted.delete().where(deleted.c.id == name))
        return name in self._deleted and not self._restores

    def _flush(self) -> None:
        if self._messages:
            self._connection.exec_driver_sql(self._insert["messages"], self._messages)
        if self._usage:
            self._connection.exec_driver_sql(self._insert["usage"], self._usage)
        self._messages, self._usage, self._waiting_characters = [], [], 0

    def _settle(self, touched: _Touched) -> Change:
        """Set the facts and counts of a session; what became of it."""
        before, known = touched.before, touched.known
        facts: dict[str, Any] = {} if known is not None else dict(_NOTHING_KNOWN)
        facts |= self._counts(touched.row_id)
        times, first_prompt = facts.pop("times"), facts.pop("first_prompt")
        facts |= touched.facts
        for name, furthest in (("started_at", min), ("ended_at", max)):
            known_times = [facts.get(name), known and getattr(known, name), *times]
            facts[name] = furthest((at for at in known_times if at is not None), default=None)
        found = facts.get("project", "").lower()
        if before is not None and found and before.project.lower().endswith(f"/{found}"):
            # It is known better than by this name: the folder may have been deleted since.
            facts["project"] = before.project
        if not facts.get("title") and not (known and known.title):
            # It is called after the first thing that was asked.
            cut = first_prompt[: _TITLE_CHARACTERS - 1].rstrip() + "…"
            facts["title"] = cut if len(first_prompt) > _TITLE_CHARACTERS else first_prompt
        if before is not None and all(getattr(before, name) == facts[name] for name in facts):
            return "unchanged"
        self._connection.execute(_UPDATE_SESSION, {"this_row": touched.row_id, **facts})
        return "new" if before is None else "updated"

    def _counts(self, row_id: int) -> dict[str, Any]:
        options = {"yield_per": 1000}
        found = self._connection.execute(_COUNTED, {"this_row": row_id}, execution_options=options)
        digests, asked, answered = [], Counter[str](), Counter[str]()
        models, generations, times = Counter[str](), set(), list[float]()
        first_prompt = ""
        for digest, at, generation, model, role, tool_call_id, tool_calls, prompt in found:
            digests.append(digest)
            generations.add(generation)
            if at is not None:
                times.append(at)
            if model:
                models[model] += 1
            if prompt and not first_prompt:
                first_prompt = " ".join(prompt.split())
            if tool_calls:
                asked.update(call.id for call in _decode_call_ids(tool_calls))
            if role == "tool" and tool_call_id:
                answered[tool_call_id] += 1
        counts = {
            "messages": len(digests),
            "calls": asked.total(),
            # The same figure that joining gives: an id has as many answered calls as results,
            # but no more than calls.
            "answered": (asked & answered).total(),
            "generations": max(len(generations), 1),
            "digest": session_digest(digests),
            "times": times,
            "first_prompt": first_prompt,
        }
        if models:
            counts["model"] = models.most_common(1)[0][0]
        return counts


@cache
def _inserts(dialect: Any) -> dict[str, str]:
    """The inserts for tables as the driver takes them: what SQLAlchemy does with each row is a
    tenth of an import. A message that is there already is left alone if it is the same.
    """
    insert = inserting(dialect.name)
    differs = messages.c.digest != insert(messages).excluded.digest
    style = "named" if dialect.name == "sqlite" else "pyformat"
    return {
        statement.table.name: str(
            statement.compile(
                dialect=dialect(paramstyle=style),
                column_keys=[one.name for one in statement.table.columns if one.name != "row_id"],
            )
        )
        for statement in (
            or_replace(insert(messages), "session_row", "key", where=differs),
            or_replace(insert(usage), "session_row", "key"),
            or_replace(insert(logs), "log"),
        )
    }
