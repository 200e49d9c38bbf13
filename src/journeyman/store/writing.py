"""Writing sessions: one transaction, from the first fragment to the counts.

Messages are kept by key, so that reading a log again changes nothing. What can be counted from
the rows is counted when the transaction ends, never carried along, so that a copy of a log, an
appended part and a whole one come to the same figures.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Fragment, LogState, Session, SessionChange, SessionId
from journeyman.records.digest import session_digest
from journeyman.records.fragment import Change
from journeyman.store import rows
from journeyman.store.rows import storable
from journeyman.store.search import index_new_messages
from journeyman.store.tables import deleted, logs, messages, sessions, usage
from journeyman.store.values import inserting

_TITLE_CHARACTERS = 120
_TITLE_PROMPTS = 3

# Rows are written in batches, because that is faster, but a batch of long texts is cut short.
_ROWS = 500
_CHARACTERS = 4_000_000

_NOTHING_KNOWN: dict[str, Any] = {
    **dict.fromkeys(("started_at", "ended_at", "outcome", "parent_id", "lineage")),
    **dict.fromkeys(("title", "cwd", "project", "git_branch", "agent", "model"), ""),
    **dict.fromkeys(("end_reason", "outcome_origin"), ""),
    "tags": "[]",
    "details": "{}",
}
"""The facts of a session before anything is known of it."""


class _CallId(msgspec.Struct):
    id: str


_decode_call_ids = msgspec.json.Decoder(list[_CallId]).decode


# Built once: building them for each session would cost more than running them.
_this_row: sa.BindParameter[int] = sa.bindparam("this_row")
_FIND_SESSION = sessions.select().where(sessions.c.id == sa.bindparam("this_id"))
_ADD_SESSION = sessions.insert().returning(sessions.c.row_id)
_UPDATE_SESSION = sessions.update().where(sessions.c.row_id == _this_row)
_COUNTED = (
    sa.select(
        messages.c.digest,
        messages.c.at,
        messages.c.generation,
        messages.c.model,
        messages.c.role,
        messages.c.tool_call_id,
        messages.c.tool_calls,
        sa.case(
            (
                sa.and_(messages.c.role == "user", messages.c.kind == "plain"),
                sa.func.substr(messages.c.text, 1, _TITLE_CHARACTERS * 4),
            )
        ),
    )
    .where(messages.c.session_row == _this_row)
    .order_by(messages.c.position)
)


class _Touched:
    """A session in this transaction: its row, what it was before, what is still known of that
    (nothing, once it is read whole again), and the facts to set.
    """

    def __init__(self, row_id: int, before: sa.Row[Any] | None) -> None:
        self.row_id = row_id
        self.before = before
        self.known = before
        self.facts: dict[str, Any] = {}


class Writing:
    """One open transaction. Nothing is seen by others until the store commits it."""

    def __init__(self, connection: sa.Connection, *, restores: bool = False) -> None:
        self._connection = connection
        self._restores = restores
        self._touched: dict[SessionId, _Touched | None] = {}
        self._messages: list[tuple[Any, ...]] = []
        self._usage: list[tuple[Any, ...]] = []
        self._waiting_characters = 0
        self._insert = _statements(connection.dialect.name)

    def add(self, fragment: Fragment) -> None:
        """Write a fragment's messages and usage, and remember its facts."""
        touched = self._touch(fragment.session)
        if touched is None:
            return
        # Another log with the same session, an export say, may hold less of it: only the log
        # that a session came from can take messages away.
        is_own = touched.before is None or touched.before.log == storable(fragment.session.log)
        if fragment.replaces and is_own:
            self._clear(touched)
        touched.facts |= rows.session_facts(fragment.session)
        row_id = touched.row_id
        for message in fragment.messages:
            self._messages.append(rows.message_values(row_id, message))
            self._waiting_characters += len(message.text)
        self._usage += [rows.usage_values(row_id, one) for one in fragment.usage]
        if len(self._messages) >= _ROWS or self._waiting_characters >= _CHARACTERS:
            self._flush()
        for start, end in fragment.undone if is_own else ():
            self._flush()
            self._connection.execute(
                messages.delete().where(
                    messages.c.session_row == row_id,
                    messages.c.position >= start,
                    messages.c.position < end,
                )
            )

    def message_count(self, session_id: SessionId) -> int | None:
        """How many messages a session has in the store now; None if there is no such session."""
        counted = (
            sa.select(sa.func.count(messages.c.row_id))
            .select_from(sessions.outerjoin(messages, messages.c.session_row == sessions.c.row_id))
            .where(sessions.c.id == storable(session_id))
            .group_by(sessions.c.row_id)
        )
        return self._connection.execute(counted).scalar_one_or_none()

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
        written = msgspec.json.encode(state).decode()
        values = (log, state.reader, state.size, state.mtime_ns, written)
        self._connection.exec_driver_sql(self._insert["logs"], [values])

    def finish(self) -> list[SessionChange]:
        """Count, name and date the sessions that were touched; say what became of each."""
        self._flush()
        changes = []
        for session_id, touched in self._touched.items():
            if touched is None:
                continue
            changes.append(SessionChange(session=session_id, change=self._settle(touched)))
        self._touched.clear()
        index_new_messages(self._connection)
        return changes

    def _touch(self, session: Session) -> _Touched | None:
        """The session's row, made if need be; None for one that was deleted."""
        if session.id in self._touched:
            return self._touched[session.id]
        name = storable(session.id)
        before = self._find(name)
        if before is not None and before.source != storable(session.source):
            # Two recorders with one id: an export into another format, say. Both are kept.
            name = f"{storable(session.source)}:{name}"
            before = self._find(name)
        if before is None and self._was_deleted(name):
            self._touched[session.id] = None
            return None
        if before is None:
            values = {
                "id": name,
                "source": storable(session.source),
                "log": storable(session.log),
            }
            row_id = self._connection.execute(_ADD_SESSION, values).scalar_one()
        else:
            row_id = before.row_id
        touched = self._touched[session.id] = _Touched(row_id, before)
        if before is not None and before.log != session.log and not Path(before.log).exists():
            # The log was moved, as Codex does when it archives.
            touched.facts["log"] = storable(session.log)
        return touched

    def _find(self, name: str) -> sa.Row[Any] | None:
        return self._connection.execute(_FIND_SESSION, {"this_id": name}).one_or_none()

    def _was_deleted(self, name: str) -> bool:
        if name in self._deleted and self._restores:
            self._connection.execute(deleted.delete().where(deleted.c.id == name))
            return False
        return name in self._deleted

    @cached_property
    def _deleted(self) -> frozenset[str]:
        """All of them at once: there are few, and there are many new sessions."""
        return frozenset(self._connection.execute(sa.select(deleted.c.id)).scalars())

    def _clear(self, touched: _Touched) -> None:
        if touched.known is None:
            return
        touched.known = None
        for table in (messages, usage):
            self._connection.execute(table.delete().where(table.c.session_row == touched.row_id))

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
        times, prompts = facts.pop("times"), facts.pop("prompts")
        facts |= touched.facts
        started = [facts.get("started_at"), known and known.started_at, *times]
        ended = [facts.get("ended_at"), known and known.ended_at, *times]
        facts["started_at"] = min((time for time in started if time is not None), default=None)
        facts["ended_at"] = max((time for time in ended if time is not None), default=None)
        if before is not None and _says_more(before.project, facts.get("project", "")):
            facts["project"] = before.project
        if not facts.get("title") and not (known and known.title):
            facts["title"] = _title(prompts)
        if before is not None and all(getattr(before, name) == facts[name] for name in facts):
            return "unchanged"
        self._connection.execute(_UPDATE_SESSION, {"this_row": touched.row_id, **facts})
        return "new" if before is None else "updated"

    def _counts(self, row_id: int) -> dict[str, Any]:
        options = {"yield_per": 1000}
        found = self._connection.execute(_COUNTED, {"this_row": row_id}, execution_options=options)
        digests, asked, answered = [], Counter[str](), Counter[str]()
        models, generations, times = Counter[str](), set(), list[float]()
        prompts = list[str]()
        for digest, at, generation, model, role, tool_call_id, tool_calls, prompt in found:
            digests.append(digest)
            generations.add(generation)
            if at is not None:
                times = [min(times[0], at), max(times[1], at)] if times else [at, at]
            if model:
                models[model] += 1
            if prompt and len(prompts) < _TITLE_PROMPTS:
                prompts.append(prompt)
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
            "prompts": prompts,
        }
        if models:
            counts["model"] = models.most_common(1)[0][0]
        return counts


def _says_more(known: str, found: str) -> bool:
    """Whether a project is known better than by the name that was found now: the folder may have
    been deleted since.
    """
    return bool(found) and known.lower().endswith(f"/{found.lower()}")


def _title(prompts: Iterable[str]) -> str:
    """A session without a title is called after the first thing that was asked."""
    for prompt in prompts:
        if words := " ".join(prompt.split()):
            cut = len(words) > _TITLE_CHARACTERS
            return words[: _TITLE_CHARACTERS - 1].rstrip() + "…" if cut else words
    return ""


@cache
def _statements(dialect_name: str) -> dict[str, str]:
    """The inserts as the driver takes them, with values in the order of the table's columns.
    Made once: for each batch it would cost as much as writing the rows.
    """
    driver = {"postgresql": "postgresql+psycopg", "sqlite": "sqlite"}[dialect_name]
    style = {"postgresql": "format", "sqlite": "qmark"}[dialect_name]
    dialect: Any = sa.make_url(f"{driver}://").get_dialect()
    insert = inserting(dialect_name)
    made = {}
    for table in (messages, usage, logs):
        statement = _upsert(insert(table), "digest" if table is messages else "")
        given = [column.name for column in table.columns if column.name != "row_id"]
        compiled = statement.compile(dialect=dialect(paramstyle=style), column_keys=given)
        assert compiled.positiontup == given
        made[table.name] = str(compiled)
    return made


def _upsert(insert: Any, unless_equal: str = "") -> Any:
    """Insert, or set everything but the key where the key is there already."""
    table = insert.table
    keys = [column.name for column in table.primary_key]
    if table is messages:
        keys = ["session_row", "key"]
    values = {
        column.name: insert.excluded[column.name]
        for column in table.columns
        if column.name not in keys and column.name != "row_id"
    }
    differs = table.c[unless_equal] != insert.excluded[unless_equal] if unless_equal else None
    return insert.on_conflict_do_update(index_elements=keys, set_=values, where=differs)
