"""The stored sessions: listing, finding, searching, counting and deleting them; and their
verdicts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from os.path import commonprefix
from typing import Any, Unpack

import msgspec
import sqlalchemy as sa

from journeyman.records import (
    Call,
    JudgedCall,
    Message,
    ProjectTotals,
    SearchHit,
    Session,
    SessionId,
    SessionOverview,
    SourceTotals,
    Tokens,
    Usage,
    join_calls,
)
from journeyman.records.errors import AmbiguousSession, UnknownSession, WrongInput
from journeyman.records.fragment import ExportedSession
from journeyman.store import rows
from journeyman.store.copies import holders_of_copies, refresh
from journeyman.store.engine import Repository
from journeyman.store.episodes import remove_learned, wait_for_learners
from journeyman.store.rows import dialect_insert, find_by_prefix, select_in, tokens_of, upsert
from journeyman.store.search import erase_deleted_words, find_messages
from journeyman.store.session_filters import SessionFilters, conditions, why_no_match
from journeyman.store.tables import deleted, messages, session_notes, sessions, usage, verdicts

LONGEST_LINEAGE = 1000

_MIN_ID = 8
_OPENING_ID = re.compile(r"[0-9a-f]{16}")

_COUNTS = ("messages", "calls", "answered")
_TOKEN_SUMS = [sa.func.sum(usage.c[name]).label(name) for name in Tokens.__struct_fields__]
_COUNTS_HERE = ~usage.c.copied
"""The condition on usage that it is not a copy of another session's."""

# Built once: building them for each session would cost more than running them.
_MESSAGES = (
    sa.select(*rows.MESSAGE_COLUMNS)
    .where(messages.c.session_row == sa.bindparam("this_row"))
    .order_by(messages.c.position)
)


class SessionQuery(SessionFilters, total=False):
    """The filters and the limit of `Sessions.list`."""

    limit: int | None


class Sessions(Repository):
    """The stored sessions (`jm.sessions`). An id can be abbreviated to any prefix that only one
    session has.
    """

    def list(
        self, *, limit: int | None = None, **filters: Unpack[SessionFilters]
    ) -> list[SessionOverview]:
        """Return sessions, newest first; those without a time come last. Filters are project,
        source, platform, model, tag, since, until, min_messages, subagents and warm: with an
        opening or without.
        """
        columns = sessions.c
        query = sessions.select().where(*conditions(**filters))
        query = query.order_by(columns.started_at.desc().nulls_last(), columns.row_id)
        with self._reading("listing sessions") as connection:
            session_rows = connection.execute(query.limit(limit)).all()
            return _overviews(connection, session_rows)

    def get(self, session_id: str) -> SessionOverview:
        """Return a session by its id or a prefix of it. Raise UnknownSession or
        AmbiguousSession.
        """
        with self._reading("looking up a session") as connection:
            return _overviews(connection, [_resolve(connection, session_id)])[0]

    def with_ids(self, session_ids: Sequence[str]) -> Sequence[SessionOverview]:
        """Return the sessions with exactly these ids, if they are stored, without their tokens."""
        query = sessions.select()
        stored = self._read_in("looking up sessions", query, sessions.c.id, session_ids)
        overviews = {row.id: rows.overview_of(row) for row in stored}
        return [overviews[id_] for id_ in session_ids if id_ in overviews]

    def short_ids(self, session_ids: Iterable[str]) -> dict[str, str]:
        """Return the shortest prefix of each id that identifies it in this store, of at least eight
        characters, so that it is unlikely to become ambiguous soon.
        """
        wanted = set(session_ids)
        beginning = sa.func.substr(sessions.c.id, 1, _MIN_ID)
        with self._reading("looking up sessions") as connection:
            prefixes = {id_[:_MIN_ID] for id_ in wanted}
            rows = select_in(connection, sa.select(sessions.c.id), beginning, prefixes)
            alike = sorted(row.id for row in rows)
        # Of sorted ids, each has the longest common beginning with one of its neighbours.
        shared = [
            len(commonprefix(pair))  # noqa: RUF071 - ids, not paths
            for pair in pairwise(alike)
        ]
        lengths = map(max, [0, *shared], [*shared, 0])
        return {
            id_: id_[: max(_MIN_ID, length + 1)]
            for id_, length in zip(alike, lengths, strict=True)
            if id_ in wanted
        }

    def messages(self, session_id: str) -> Iterator[Message]:
        """Yield the messages of a session in order."""
        with self._reading("reading a session") as connection:
            parameters = {"this_row": _resolve(connection, session_id).row_id}
            options = {"yield_per": 200}
            stored = connection.execute(_MESSAGES, parameters, execution_options=options)
            yield from map(rows.message_of, stored)

    def calls(self, session_id: str) -> Sequence[Call]:
        """Return the tool calls of a session, each joined with its result."""
        return join_calls(self.messages(session_id))

    def usage(self, session_id: str) -> Sequence[Usage]:
        """Return the recorded token usage of a session, ordered by time."""
        with self._reading("reading usage") as connection:
            this = usage.c.session_row == _resolve(connection, session_id).row_id
            query = usage.select().where(this).order_by(usage.c.at, usage.c.key)
            return [rows.record_of(Usage, row) for row in connection.execute(query)]

    def export(self, session_id: str, *, redacted: bool = False) -> ExportedSession:
        """Return a session with everything stored about it; `journeyman import` reads it back.
        `redacted` makes it safe to pass on.
        """
        session = self.get(session_id).session
        messages, used = list(self.messages(session.id)), list(self.usage(session.id))
        exported = ExportedSession(session=session, messages=messages, usage=used)
        if not redacted:
            return exported
        from journeyman.redaction.redactor import redacted_record  # noqa: PLC0415 - exports are rare

        return msgspec.structs.replace(redacted_record(exported), redacted=True)

    def ancestors(self, session_id: str) -> Sequence[Session]:
        """Return the parent of a session, the parent's parent and so on, while they are stored. A
        cycle in the recorded links ends the walk.
        """
        with self._reading("following a lineage") as connection:
            session = rows.overview_of(_resolve(connection, session_id)).session
            visited = {session.id: session}
            while session.lineage is not None and len(visited) < LONGEST_LINEAGE:
                parent = sessions.c.id == session.lineage.parent
                row = connection.execute(sessions.select().where(parent)).one_or_none()
                if row is None or row.id in visited:
                    break
                session = visited[row.id] = rows.overview_of(row).session
        return list(visited.values())[1:]

    def children(self, session_id: str) -> Sequence[Session]:
        """Return the sessions that descend directly from this one, oldest first."""
        with self._reading("following a lineage") as connection:
            descends = sessions.c.parent_id == _resolve(connection, session_id).id
            oldest = (sessions.c.started_at, sessions.c.row_id)
            children = connection.execute(sessions.select().where(descends).order_by(*oldest))
            return [rows.overview_of(row).session for row in children]

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        redacted: bool = False,
        **filters: Unpack[SessionFilters],
    ) -> Sequence[SearchHit]:
        """Return messages that contain all the words, in their text or in their calls: the best
        matches first. Words in double quotes must occur together; `pyt*` finds all
        words that start with it. Only the head of a tool's result is searched. `redacted` replaces
        the secrets in what is shown.
        """
        with self._reading("searching") as connection:
            selected = conditions(**filters)
            return find_messages(connection, query, selected, limit=limit, redacted=redacted)

    def totals(self) -> Sequence[SourceTotals]:
        """Return sessions, messages, calls and tokens by source, the largest first."""
        columns = sessions.c
        subagent = sa.case((columns.lineage == "subagent", 1), else_=0)
        statement: sa.Select[Any] = (
            sa.select(
                columns.source,
                sa.func.sum(1 - subagent).label("sessions"),
                sa.func.sum(subagent).label("subagents"),
                *(sa.func.sum(columns[name]).label(name) for name in _COUNTS),
                sa.func.min(columns.started_at).label("started_at"),
                sa.func.max(columns.ended_at).label("ended_at"),
            )
            .group_by(columns.source)
            .order_by(sa.func.count().desc(), columns.source)
        )
        used = sa.select(columns.source, *_TOKEN_SUMS).join(usage).where(_COUNTS_HERE)
        used = used.group_by(columns.source)
        with self._reading("counting sessions") as connection:
            tokens = {row.source: tokens_of(row) for row in connection.execute(used)}
            return [
                rows.record_of(SourceTotals, row, tokens=tokens.get(row.source, Tokens()))
                for row in connection.execute(statement)
            ]

    def projects(self) -> Sequence[ProjectTotals]:
        """Return the projects with their sessions counted, including subagents'; the most recently
        active first.
        """
        columns = sessions.c
        ended = sa.func.max(sa.func.coalesce(columns.ended_at, columns.started_at))
        statement = (
            sa.select(
                columns.project,
                sa.func.count().label("sessions"),
                sa.func.sum(columns.calls).label("calls"),
                ended.label("ended_at"),
            )
            .group_by(columns.project)
            .order_by(ended.desc().nulls_last(), columns.project)
        )
        totals = self._read("counting sessions", statement)
        return [rows.record_of(ProjectTotals, row) for row in totals]

    def note_opening(
        self, session_id: str, opening_id: str, *, source: str, within_s: float | None = None
    ) -> None:
        """Note that a session started with an opening, for hosts whose logs do not show it. The
        session may be imported before or after; it keeps its first opening. Raise StoreUnavailable
        if other writers do not finish `within_s`.
        """
        if not _OPENING_ID.fullmatch(opening_id):
            raise WrongInput(
                f"{opening_id!r} is not the id of an opening. Pass `id` of the opening, which has "
                "16 hexadecimal digits."
            )
        with self._writing("noting an opening", within_s=within_s) as connection:
            is_first = session_notes.c.opening == ""
            these = _note(connection, session_id, source, is_first, opening=opening_id)
            statement = sessions.update().where(these, sessions.c.opening == "")
            connection.execute(statement.values(opening=opening_id))

    def note_owner(self, session_id: str, owner: str, *, source: str) -> None:
        """Note for whom Journeyman started a session in a host: `run` for a person, `job:NAME`, or
        `review:SESSION`. The session may be imported before or after.
        """
        with self._writing("noting the owner of a session") as connection:
            these = _note(connection, session_id, source, owner=owner)
            connection.execute(sessions.update().where(these).values(rows.owner_values(owner)))

    def no_match(self, *, limit: int | None = None, **filters: Unpack[SessionFilters]) -> str:
        """Explain why no session matches these filters: which of them excludes all, and what values
        exist. Empty if sessions match, or none are stored.
        """
        with self._reading("listing sessions") as connection:
            return "" if limit == 0 else why_no_match(connection, filters)

    def delete(self, session_id: str) -> SessionOverview:
        """Delete a session with its messages and usage, and what was learned from it; templates
        keep their copies. What other sessions copied from it counts there from now on. Return
        what was deleted. Importing its log again does not restore it, unless the log is reread.
        """
        overview = self.get(session_id)
        with self._writing("deleting a session", erases=True) as connection:
            wait_for_learners(connection)
            this = sessions.c.id == overview.session.id
            query = sa.select(sessions.c.row_id).where(this).with_for_update()
            row = connection.execute(query).scalar()
            if row is None:
                raise _unknown(session_id)  # another process deleted it first
            remove_learned(connection, [row])
            holders = holders_of_copies(connection, row)
            connection.execute(sessions.delete().where(this))
            refresh(connection, holders)
            connection.execute(deleted.insert(), {"id": overview.session.id})
            erase_deleted_words(connection)
        self._erase_log()
        return overview


def _note(
    connection: sa.Connection,
    session_id: str,
    source: str,
    where: sa.ColumnElement[bool] | None = None,
    **known: str,
) -> sa.ColumnElement[bool]:
    """Store what is known of a session beside its log, unless `where` excludes its note; return the
    condition on its row.
    """
    id_, source = rows.storable(session_id), rows.storable(source)
    insert = dialect_insert(connection.dialect.name)(session_notes)
    keys = {"source": source, "session_id": id_}
    statement = insert.on_conflict_do_update(index_elements=[*keys], set_=known, where=where)
    connection.execute(statement, {"opening": "", "owner": "", **keys, **known})
    return sessions.c.id.in_((id_, f"{source}:{id_}")) & (sessions.c.source == source)


def _resolve(connection: sa.Connection, session_id: str) -> sa.Row[Any]:
    matches = find_by_prefix(connection, sessions, session_id)
    if not matches:
        raise _unknown(session_id)
    if len(matches) > 1:
        shown = ", ".join(row.id for row in matches[:3]) + (", …" if len(matches) > 3 else "")
        raise AmbiguousSession(
            f"More than one session id starts with {session_id!r}: {shown}. Use more characters."
        )
    return matches[0]


def _unknown(session_id: str) -> UnknownSession:
    return UnknownSession(
        f"There is no session {session_id!r}. List the sessions with: journeyman sessions list"
    )


def _overviews(
    connection: sa.Connection, session_rows: Sequence[sa.Row[Any]]
) -> list[SessionOverview]:
    query = sa.select(usage.c.session_row, *_TOKEN_SUMS).where(_COUNTS_HERE)
    query = query.group_by(usage.c.session_row)
    ids = [row.row_id for row in session_rows]
    used = select_in(connection, query, usage.c.session_row, ids)
    tokens = {row.session_row: tokens_of(row) for row in used}
    return [rows.overview_of(row, tokens.get(row.row_id, Tokens())) for row in session_rows]


_encode_verdicts = msgspec.msgpack.Encoder().encode
_decode_verdicts = msgspec.msgpack.Decoder(tuple[JudgedCall, ...]).decode

_CURRENT: sa.Select[Any] = sa.select(sessions.c.id, verdicts.c.calls).join_from(
    sessions,
    verdicts,
    (verdicts.c.session_row == sessions.c.row_id) & (verdicts.c.digest == sessions.c.digest),
)


class Verdicts(Repository):
    """The verdicts on the calls of stored sessions, so that each session is judged once. They are
    deleted with their session, and are stale when it changes.
    """

    def known(
        self, rules: str, session_ids: Sequence[str] | None = None
    ) -> dict[SessionId, tuple[JudgedCall, ...]]:
        """Return the current verdicts of these rules, for all sessions if none are named. Sessions
        without current verdicts are left out.
        """
        verdicts_by_session: dict[SessionId, tuple[JudgedCall, ...]] = {}
        with self._reading("reading verdicts") as connection:
            query = _CURRENT.where(verdicts.c.rules == rules)
            if session_ids is None:
                stored: Iterable[Any] = connection.execute(query)
            else:
                stored = select_in(connection, query, sessions.c.id, session_ids)
            for session_id, encoded in stored:
                # Skip what is damaged, or has values that this program does not know.
                with suppress(ValueError):
                    verdicts_by_session[SessionId(session_id)] = _decode_verdicts(encoded)
        return verdicts_by_session

    def save(self, rules: str, judged: Iterable[tuple[str, str, Sequence[JudgedCall]]]) -> None:
        """Store verdicts, each with the session's id and the digest it was judged at, in place of
        earlier ones. All are stored or none, except for sessions that have changed or gone since.
        """
        by_id = {session_id: (digest, calls) for session_id, digest, calls in judged}
        query = (
            sa.select(sessions.c.id, sessions.c.row_id, sessions.c.digest)
            # In one order, so that two savers of the same sessions wait instead of deadlocking.
            .order_by(sessions.c.row_id)
            # Wait until a session that is being deleted is gone. SQLite has one writer anyway.
            .with_for_update(read=True, key_share=True)
        )
        with self._writing("storing verdicts", erases=True) as connection:
            values = [
                {
                    "session_row": row.row_id,
                    "digest": row.digest,
                    "rules": rules,
                    "calls": _encode_verdicts(by_id[row.id][1]),
                }
                for row in select_in(connection, query, sessions.c.id, sorted(by_id))
                if row.digest == by_id[row.id][0]
            ]
            if values:
                insert = dialect_insert(connection.dialect.name)(verdicts)
                connection.execute(upsert(insert, "session_row"), values)
