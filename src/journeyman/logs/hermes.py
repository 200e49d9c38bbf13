"""Reader for Hermes' `state.db`, any schema version, opened read-only. Copies made by an in-place
compaction and rows that the user undid are omitted.
"""

from collections.abc import Iterable, Iterator, Set
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from journeyman.logs import hermes_rows
from journeyman.logs.fields import whole_number
from journeyman.logs.fragments import in_fragments
from journeyman.logs.hermes_rows import COUNTERS, Row, usage_of_session
from journeyman.logs.log_file import LogFile
from journeyman.logs.sqlite_database import (
    Database,
    has_tables,
    open_database,
    read_changed_sessions,
    row_digest,
)
from journeyman.records import Fragment, LogEvent, LogState, Message, Skip
from journeyman.records.copies import MessageTrace, copies_in_place
from journeyman.records.host import marked_opening

_OPTIONAL_TABLES = ("session_model_usage",)
_REQUIRED_COLUMNS = {
    "sessions": {"id", "source", "started_at"},
    "messages": {"session_id", "role", "content"},
}


class HermesReader:
    """Reads Hermes' database of sessions."""

    name = "hermes"
    about = "Hermes Agent database (state.db), any schema version"

    def recognises(self, log: LogFile) -> bool:
        return has_tables(log, _REQUIRED_COLUMNS)

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        with open_database(log, _REQUIRED_COLUMNS, optional=_OPTIONAL_TABLES) as opened:
            database = _HermesDatabase(opened)
            sessions = (
                (str(row["id"]), digest, partial(_read_session, database, row, parent_end, log))
                for row, parent_end, digest in database.sessions()
            )
            yield from read_changed_sessions(log, self.name, since, sessions)


def read_session(log: LogFile, session_id: str) -> Iterator[Fragment]:
    """Read one session of a database, which Hermes may be writing to. Raises LogUnreadable."""
    with open_database(log, _REQUIRED_COLUMNS, optional=_OPTIONAL_TABLES) as opened:
        database = _HermesDatabase(opened)
        for row in opened.select("sessions WHERE id = ?", session_id):
            for part in _read_session(database, row, None, log):
                if isinstance(part, Fragment):
                    yield part


def _read_session(
    database: "_HermesDatabase", row: Row, parent_end: str | None, log: LogFile
) -> Iterator[Fragment | Skip]:
    session = hermes_rows.parse_session(row, parent_end, log.name)
    session = msgspec.structs.replace(session, opening=database.opening(row["id"]))
    omitted: Set[int] = set()
    if database.has_inactive(row["id"]):
        omitted = _omitted(_split(database.messages(row["id"])))
    messages = _conversation(session.id, _split(database.messages(row["id"])), omitted)
    usage = usage_of_session(row, database.model_usage(row["id"]))
    yield from in_fragments(session, chain(usage, messages))


def _omitted(rows: Iterable[Row]) -> Set[int]:
    """Return the indexes of the split rows that are copies, or that the user undid. Among the
    copies of a message, the live one decides, otherwise the last: undoing a copy undoes all.
    """
    traces: list[MessageTrace] = []
    states: list[tuple[bool, bool]] = []
    for row in rows:
        traces.append(hermes_rows.trace(row))
        states.append((bool(row.get("active", True)), hermes_rows.is_undone(row)))
    originals = copies_in_place(traces)
    decisive: dict[int, tuple[bool, bool]] = {}
    for index, (live, undone) in enumerate(states):
        original = index
        while original in originals:
            original = originals[original]
        if live >= decisive.get(original, (False, False))[0]:
            decisive[original] = (live, undone)
    undone_rows = {index for index, (_, undone) in enumerate(states) if undone}
    return {*originals, *undone_rows, *(at for at, (_, undone) in decisive.items() if undone)}


def _split(rows: Iterable[Row]) -> Iterator[Row]:
    return chain.from_iterable(map(hermes_rows.split_summary, rows))


def _conversation(
    session_id: str, rows: Iterable[Row], omitted: Set[int]
) -> Iterator[Message | Skip]:
    """Yield split rows as messages, in order, without those `omitted`, and with their generations
    counted.
    """
    generation, has_messages = 0, False
    last_summary: int | None = None
    for index, row in enumerate(rows):
        if index in omitted:
            continue
        recorded_id = whole_number(row["id"]) if isinstance(row.get("id"), int) else None
        number = index if recorded_id is None else recorded_id
        if hermes_rows.is_summary(row):
            # A compaction may keep the summary of the one before it, directly after its own.
            generation += has_messages and last_summary != index - 1
            last_summary = index
        where = f"message {number} of {session_id}"
        try:
            calls = hermes_rows.parse_tool_calls(row.get("tool_calls"))
        except ValueError as error:
            # The text of the message is kept.
            calls = ()
            yield Skip(line=0, reason=f"{where}: {error}")
        try:
            message = hermes_rows.parse_message(row, number, generation, calls)
        except ValueError as error:
            yield Skip(line=0, reason=f"{where}: {error}")
            continue
        if message is not None:
            has_messages = has_messages or message.role != "system"
            yield message


def _opening(rows: Iterable[Row]) -> str:
    """Return the id of the first opening in what was sent to the model beside the messages."""
    sent = (hermes_rows.content_text(row.get("api_content")) for row in rows)
    return next(filter(None, map(marked_opening, sent)), "")


class _HermesDatabase:
    """Queries of an open state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._row_id = "id" if database.has("messages", "id") else "rowid"

    def sessions(self) -> Iterator[tuple[Row, str | None, str]]:
        """Yield each session's row, why its parent ended, and a digest that changes whenever the
        session does.
        """
        messages = self._sums("messages", ("active", "compacted"), f"max({self._row_id})")
        usage = self._sums("session_model_usage", COUNTERS)
        ends: dict[Any, str] = {}
        if self._database.has("sessions", "end_reason"):
            ended = "SELECT id, end_reason FROM sessions WHERE end_reason IS NOT NULL"
            ends = {row[0]: row[1] for row in self._database.execute(ended)}
        for record in self._database.execute(
            "SELECT * FROM sessions WHERE id IS NOT NULL ORDER BY started_at, id"
        ):
            row = dict(record)
            parent_end = ends.get(row.get("parent_session_id"))
            counts = messages.get(row["id"]), usage.get(row["id"])
            yield row, parent_end, row_digest(row, parent_end, *counts)

    def messages(self, session_id: Any) -> Iterator[Row]:
        """Yield all messages of a session, in the order they were written."""
        return self._database.select(
            f"messages WHERE session_id = ? ORDER BY {self._row_id}", session_id
        )

    def has_inactive(self, session_id: Any) -> bool:
        """Return whether a compaction archived messages of a session, or the user undid some."""
        if not self._database.has("messages", "active"):
            return True  # not recorded
        return any(
            self._database.select(
                "messages WHERE session_id = ? AND active = 0 LIMIT 1", session_id
            )
        )

    def opening(self, session_id: Any) -> str:
        """Return the id of the opening that was added to what the user said, or ""."""
        if not self._database.has("messages", "api_content"):
            return ""
        added = "messages WHERE session_id = ? AND api_content != ''"
        return _opening(self._database.select(f"{added} ORDER BY {self._row_id}", session_id))

    def model_usage(self, session_id: Any) -> list[Row]:
        """Return a session's token counts by model and task, if the database has them."""
        if not self._database.has("session_model_usage", "session_id"):
            return []
        return list(self._database.select("session_model_usage WHERE session_id = ?", session_id))

    def _sums(self, table: str, columns: Iterable[str], *more: str) -> dict[Any, Any]:
        """Return, by session, the number of its rows and the totals of those columns that exist."""
        if not self._database.has(table, "session_id"):
            return {}
        totals = [f"total({column})" for column in columns if self._database.has(table, column)]
        selected = ", ".join(["session_id", "count(*)", *more, *totals])
        statement = f"SELECT {selected} FROM {table} GROUP BY session_id"  # noqa: S608 - as above
        return {row[0]: tuple(row)[1:] for row in self._database.execute(statement)}
