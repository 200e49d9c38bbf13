"""Reading sessions: listing, finding, searching, counting, deleting; and their verdicts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
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
from journeyman.records.errors import AmbiguousSession, UnknownSession
from journeyman.records.fragment import ExportedSession
from journeyman.store import rows
from journeyman.store.engine import Repository
from journeyman.store.patterns import take_out, wait_for_learners
from journeyman.store.rows import find_beginning, inserting, or_replace, select_in, tokens_of
from journeyman.store.session_filters import (
    Chosen,
    conditions,
    forget_deleted_words,
    search_statement,
    snippet,
)
from journeyman.store.tables import deleted, messages, sessions, usage, verdicts

LONGEST_LINEAGE = 1000

_COUNTS = ("messages", "calls", "answered")
_TOKEN_SUMS = [sa.func.sum(usage.c[name]).label(name) for name in Tokens.__struct_fields__]

# Built once: building them for each session would cost more than running them.
_MESSAGES = (
    sa.select(*rows.MESSAGE_COLUMNS)
    .where(messages.c.session_row == sa.bindparam("this_row"))
    .order_by(messages.c.position)
)


class Choice(Chosen, total=False):
    """Which sessions are meant, as `Sessions.list` takes it."""

    limit: int | None
    offset: int


class Sessions(Repository):
    """The stored sessions (`jm.sessions`). Ids may be given by any beginning that only one
    session has.
    """

    def list(
        self, *, limit: int | None = None, offset: int = 0, **chosen: Unpack[Chosen]
    ) -> list[SessionOverview]:
        """Sessions, newest first; those without a time come last. They are chosen by project,
        source, model, tag, since, until, min_messages and subagents.
        """
        columns = sessions.c
        wanted = sessions.select().where(*conditions(**chosen))
        wanted = wanted.order_by(columns.started_at.desc().nulls_last(), columns.row_id)
        with self._reading("listing sessions") as connection:
            found = connection.execute(wanted.limit(limit).offset(offset)).all()
            return _overviews(connection, found)

    def get(self, session_id: str) -> SessionOverview:
        """One session by its id or the beginning of it. Raises UnknownSession or
        AmbiguousSession.
        """
        with self._reading("looking up a session") as connection:
            return _overviews(connection, [_resolve(connection, session_id)])[0]

    def with_ids(self, session_ids: Sequence[str]) -> Sequence[SessionOverview]:
        """The sessions with exactly these ids, as far as they are stored; their tokens are not
        counted.
        """
        found = self._read_in("looking up sessions", sessions.select(), sessions.c.id, session_ids)
        overviews = {row.id: rows.overview_of(row) for row in found}
        return [overviews[id_] for id_ in session_ids if id_ in overviews]

    def messages(self, session_id: str) -> Iterator[Message]:
        """The messages of a session in order, one at a time."""
        with self._reading("reading a session") as connection:
            asked = {"this_row": _resolve(connection, session_id).row_id}
            options = {"yield_per": 200}
            found = connection.execute(_MESSAGES, asked, execution_options=options)
            yield from map(rows.message_of, found)

    def calls(self, session_id: str) -> Sequence[Call]:
        """The tool calls of a session, each joined with its result."""
        return join_calls(self.messages(session_id))

    def usage(self, session_id: str) -> Sequence[Usage]:
        """The recorded token usage of a session, in order of time."""
        with self._reading("reading usage") as connection:
            this = usage.c.session_row == _resolve(connection, session_id).row_id
            asked = usage.select().where(this).order_by(usage.c.at, usage.c.key)
            return [rows.record_of(Usage, one) for one in connection.execute(asked)]

    def export(self, session_id: str, *, redacted: bool = False) -> ExportedSession:
        """A session with all that is known of it; `journeyman import` reads it back. To be passed
        on, it is `redacted`.
        """
        session = self.get(session_id).session
        messages, used = list(self.messages(session.id)), list(self.usage(session.id))
        exported = ExportedSession(session=session, messages=messages, usage=used)
        if not redacted:
            return exported
        from journeyman.redaction.redactor import redacted_record  # noqa: PLC0415 - exports are rare

        return redacted_record(exported)

    def ancestors(self, session_id: str) -> Sequence[Session]:
        """The session's parent, its parent's parent and so on, as far as they are stored. A cycle
        in the recorded links ends the walk.
        """
        with self._reading("following a lineage") as connection:
            session = rows.overview_of(_resolve(connection, session_id)).session
            found = {session.id: session}
            while session.lineage is not None and len(found) < LONGEST_LINEAGE:
                parent = sessions.c.id == session.lineage.parent
                row = connection.execute(sessions.select().where(parent)).one_or_none()
                if row is None or row.id in found:
                    break
                session = found[row.id] = rows.overview_of(row).session
        return list(found.values())[1:]

    def children(self, session_id: str) -> Sequence[Session]:
        """The sessions that descend directly from this one, oldest first."""
        with self._reading("following a lineage") as connection:
            descends = sessions.c.parent_id == _resolve(connection, session_id).id
            oldest = (sessions.c.started_at, sessions.c.row_id)
            found = connection.execute(sessions.select().where(descends).order_by(*oldest))
            return [rows.overview_of(one).session for one in found]

    def search(
        self,
        query: str,
        *,
        project: str | None = None,
        source: str | None = None,
        limit: int = 20,
        clean: Callable[[str], str] = str,
    ) -> Sequence[SearchHit]:
        """Messages that contain all the words, newest first; words in double quotes must stand
        together. Of a tool's result only the head is searched. What a hit shows goes through
        `clean` before it is cut.
        """
        chosen = conditions(project=project, source=source)
        statement = search_statement(self._engine.dialect.name, query, chosen, limit)
        if statement is None:
            return []
        with self._reading("searching") as connection:
            return [
                SearchHit(**{**row, "snippet": snippet(clean(row["snippet"]), query)})
                for row in connection.execute(statement).mappings()
            ]

    def totals(self) -> Sequence[SourceTotals]:
        """Sessions, messages, calls and tokens by source, the largest first."""
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
        used = sa.select(columns.source, *_TOKEN_SUMS).join(usage).group_by(columns.source)
        with self._reading("counting sessions") as connection:
            tokens = {row.source: tokens_of(row) for row in connection.execute(used)}
            return [
                rows.record_of(SourceTotals, row, tokens=tokens.get(row.source, Tokens()))
                for row in connection.execute(statement)
            ]

    def projects(self) -> Sequence[ProjectTotals]:
        """The projects with their sessions counted, subagents' included; the one that was worked
        in last comes first.
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
        found = self._read("counting sessions", statement)
        return [rows.record_of(ProjectTotals, row) for row in found]

    def nearest_projects(self, name: str, *, limit: int = 3) -> Sequence[str]:
        """Projects with names like this one, or else those that were worked in last."""
        known = {one.project.lower(): one.project for one in self.projects() if one.project}
        by_last = {project.rpartition("/")[2]: known[project] for project in reversed(known)}
        last = name.lower().rstrip("/").rpartition("/")[2]
        like = [by_last[one] for one in get_close_matches(last, by_last, limit)]
        return like or list(known.values())[:limit]

    def delete(self, session_id: str) -> SessionOverview:
        """Delete a session with all its messages and usage, and what was learned from it; templates
        keep their copies. Returns what was deleted. Importing its log again does not bring it
        back, unless the log is reread.
        """
        overview = self.get(session_id)
        with self._writing("deleting a session", erases=True) as connection:
            wait_for_learners(connection)
            this = sessions.c.id == overview.session.id
            asked = sa.select(sessions.c.row_id).where(this).with_for_update()
            row = connection.execute(asked).scalar()
            if row is None:
                raise _unknown(session_id)  # another process was faster
            take_out(connection, [row])
            connection.execute(sessions.delete().where(this))
            connection.execute(deleted.insert(), {"id": overview.session.id})
            forget_deleted_words(connection)
        self._erase_log()
        return overview


def _resolve(connection: sa.Connection, session_id: str) -> sa.Row[Any]:
    found = find_beginning(connection, sessions, session_id)
    if not found:
        raise _unknown(session_id)
    if len(found) > 1:
        shown = ", ".join(row.id for row in found[:3]) + (", …" if len(found) > 3 else "")
        raise AmbiguousSession(
            f"More than one session begins with {session_id!r}: {shown}. Give more of the id."
        )
    return found[0]


def _unknown(session_id: str) -> UnknownSession:
    return UnknownSession(
        f"There is no session {session_id!r}. `journeyman sessions list` shows what is stored."
    )


def _overviews(connection: sa.Connection, found: Sequence[sa.Row[Any]]) -> list[SessionOverview]:
    asked = sa.select(usage.c.session_row, *_TOKEN_SUMS).group_by(usage.c.session_row)
    used = select_in(connection, asked, usage.c.session_row, [row.row_id for row in found])
    tokens = {row.session_row: tokens_of(row) for row in used}
    return [rows.overview_of(row, tokens.get(row.row_id, Tokens())) for row in found]


_encode_verdicts = msgspec.msgpack.Encoder().encode
_decode_verdicts = msgspec.msgpack.Decoder(tuple[JudgedCall, ...]).decode

_CURRENT: sa.Select[Any] = sa.select(sessions.c.id, verdicts.c.calls).join_from(
    sessions,
    verdicts,
    (verdicts.c.session_row == sessions.c.row_id) & (verdicts.c.digest == sessions.c.digest),
)


class Verdicts(Repository):
    """The verdicts on the calls of stored sessions, kept so that a session is judged once. They go
    when their session goes, and are not known any more when it changes.
    """

    def known(
        self, rules: str, session_ids: Sequence[str] | None = None
    ) -> dict[SessionId, tuple[JudgedCall, ...]]:
        """What these rules said of the sessions as they are now, of all sessions if none are
        named. A session that was never judged so is not in it.
        """
        found: dict[SessionId, tuple[JudgedCall, ...]] = {}
        with self._reading("reading verdicts") as connection:
            asked = _CURRENT.where(verdicts.c.rules == rules)
            if session_ids is None:
                found_rows: Iterable[Any] = connection.execute(asked)
            else:
                found_rows = select_in(connection, asked, sessions.c.id, session_ids)
            for session_id, written in found_rows:
                # Damaged, or with words that this program does not know.
                with suppress(ValueError):
                    found[SessionId(session_id)] = _decode_verdicts(written)
        return found

    def save(self, rules: str, judged: Iterable[tuple[str, str, Sequence[JudgedCall]]]) -> None:
        """Keep verdicts, each with the session's id and the digest it was judged at, in the place
        of earlier ones. All are kept or none, but for sessions that have changed or gone since.
        """
        given = {session_id: (digest, calls) for session_id, digest, calls in judged}
        asked = (
            sa.select(sessions.c.id, sessions.c.row_id, sessions.c.digest)
            # In one order, so that two who save the same sessions at once wait and do not deadlock.
            .order_by(sessions.c.row_id)
            # A session that is being deleted: wait until it is gone. SQLite has one writer anyway.
            .with_for_update(read=True, key_share=True)
        )
        with self._writing("keeping verdicts", erases=True) as connection:
            values = [
                {
                    "session_row": row.row_id,
                    "digest": row.digest,
                    "rules": rules,
                    "calls": _encode_verdicts(given[row.id][1]),
                }
                for row in select_in(connection, asked, sessions.c.id, sorted(given))
                if row.digest == given[row.id][0]
            ]
            if values:
                insert = inserting(connection.dialect.name)(verdicts)
                connection.execute(or_replace(insert, "session_row"), values)
