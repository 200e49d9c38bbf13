"""Reading sessions: listing, finding, searching, counting, deleting."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from difflib import get_close_matches
from typing import Any, Unpack

import sqlalchemy as sa

from journeyman.records import (
    Call,
    Message,
    ProjectTotals,
    SearchHit,
    Session,
    SessionOverview,
    SourceTotals,
    Tokens,
    Usage,
    join_calls,
)
from journeyman.records.errors import AmbiguousSession, UnknownSession
from journeyman.records.exported import ExportedSession
from journeyman.store import rows
from journeyman.store.choosing import Chosen, conditions
from journeyman.store.engine import explained
from journeyman.store.learned import forget_session
from journeyman.store.search import forget_deleted_words, search_statement, snippet
from journeyman.store.tables import deleted, messages, sessions, usage
from journeyman.store.values import parts

LONGEST_LINEAGE = 1000

# Built once: building them for each session would cost more than running them.
_MESSAGES = (
    sa.select(*rows.MESSAGE_COLUMNS)
    .where(messages.c.session_row == sa.bindparam("this_row"))
    .order_by(messages.c.position)
)
_WITH_ID = sessions.select().where(sessions.c.id == sa.bindparam("this_id"))


class Choice(Chosen, total=False):
    """Which sessions are meant, as `Sessions.list` takes it."""

    limit: int | None
    offset: int


class Sessions:
    """The stored sessions (`jm.sessions`). Ids may be given by any beginning that only one
    session has.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

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
            tokens = _tokens(connection, [row.row_id for row in found])
        return [rows.overview_of(row, tokens.get(row.row_id, Tokens())) for row in found]

    def get(self, session_id: str) -> SessionOverview:
        """One session by its id or the beginning of it. Raises UnknownSession or
        AmbiguousSession.
        """
        with self._reading("looking up a session") as connection:
            row = _resolve(connection, session_id)
            tokens = _tokens(connection, [row.row_id])
        return rows.overview_of(row, tokens.get(row.row_id, Tokens()))

    def with_ids(self, session_ids: Sequence[str]) -> Sequence[SessionOverview]:
        """The sessions with exactly these ids, as far as they are stored; their tokens are not
        counted.
        """
        found: dict[str, SessionOverview] = {}
        with self._reading("looking up sessions") as connection:
            for some in parts(session_ids):
                for row in connection.execute(sessions.select().where(sessions.c.id.in_(some))):
                    found[row.id] = rows.overview_of(row, Tokens())
        return [found[id_] for id_ in session_ids if id_ in found]

    def message_counts(self, session_ids: Sequence[str]) -> dict[str, int]:
        """How many messages sessions have, by their exact ids."""
        asked = sa.select(sessions.c.id, sessions.c.messages)
        found: dict[str, int] = {}
        with self._reading("looking up sessions") as connection:
            for some in parts(session_ids):
                answered = connection.execute(asked.where(sessions.c.id.in_(some)))
                found |= {row.id: row.messages for row in answered}
        return found

    def messages(self, session_id: str) -> Iterator[Message]:
        """The messages of a session in order, one at a time."""
        with self._reading("reading a session") as connection:
            row = _resolve(connection, session_id)
            options = {"yield_per": 200}
            asked = {"this_row": row.row_id}
            for message in connection.execute(_MESSAGES, asked, execution_options=options):
                yield rows.message_of(message)

    def calls(self, session_id: str) -> Sequence[Call]:
        """The tool calls of a session, each joined with its result."""
        return join_calls(self.messages(session_id))

    def usage(self, session_id: str) -> Sequence[Usage]:
        """The recorded token usage of a session, in order of time."""
        with self._reading("reading usage") as connection:
            row = _resolve(connection, session_id)
            found = connection.execute(
                usage.select()
                .where(usage.c.session_row == row.row_id)
                .order_by(usage.c.at, usage.c.key)
            )
            return [rows.usage_of(one) for one in found]

    def export(self, session_id: str, *, redacted: bool = False) -> ExportedSession:
        """A session with all that is known of it; `journeyman import` reads it back. To be passed
        on, it is `redacted`.
        """
        session = self.get(session_id).session
        exported = ExportedSession(
            session=session,
            messages=[*self.messages(session.id)],
            usage=[*self.usage(session.id)],
        )
        if not redacted:
            return exported
        from journeyman.redaction.records import redacted_record  # noqa: PLC0415 - exports are rare

        return redacted_record(exported)

    def ancestors(self, session_id: str) -> Sequence[Session]:
        """The session's parent, its parent's parent and so on, as far as they are stored. A cycle
        in the recorded links ends the walk.
        """
        found: dict[str, Session] = {}
        session = self.get(session_id).session
        seen = {session.id}
        with self._reading("following a lineage") as connection:
            while session.lineage is not None and len(seen) < LONGEST_LINEAGE:
                row = connection.execute(
                    sessions.select().where(sessions.c.id == session.lineage.parent)
                ).one_or_none()
                if row is None or row.id in seen:
                    break
                session = rows.overview_of(row, Tokens()).session
                seen.add(session.id)
                found[session.id] = session
        return list(found.values())

    def children(self, session_id: str) -> Sequence[Session]:
        """The sessions that descend directly from this one, oldest first."""
        with self._reading("following a lineage") as connection:
            row = _resolve(connection, session_id)
            found = connection.execute(
                sessions.select()
                .where(sessions.c.parent_id == row.id)
                .order_by(sessions.c.started_at, sessions.c.row_id)
            )
            return [rows.overview_of(one, Tokens()).session for one in found]

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
        statement = (
            sa.select(
                columns.source,
                sa.func.count().label("all"),
                sa.func.sum(subagent).label("subagents"),
                sa.func.sum(columns.messages).label("messages"),
                sa.func.sum(columns.calls).label("calls"),
                sa.func.sum(columns.answered).label("answered"),
                sa.func.min(columns.started_at).label("started_at"),
                sa.func.max(columns.ended_at).label("ended_at"),
            )
            .group_by(columns.source)
            .order_by(sa.desc("all"), columns.source)
        )
        tokens = (
            sa.select(columns.source, *_sums())
            .join(usage, usage.c.session_row == columns.row_id)
            .group_by(columns.source)
        )
        with self._reading("counting sessions") as connection:
            by_source = {row.source: _as_tokens(row) for row in connection.execute(tokens)}
            return [
                SourceTotals(
                    source=row.source,
                    sessions=row.all - row.subagents,
                    subagents=row.subagents,
                    messages=row.messages,
                    calls=row.calls,
                    answered=row.answered,
                    tokens=by_source.get(row.source, Tokens()),
                    started_at=row.started_at,
                    ended_at=row.ended_at,
                )
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
        with self._reading("counting sessions") as connection:
            return [ProjectTotals(**row) for row in connection.execute(statement).mappings()]

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
        with (
            explained(self._engine.url, "deleting a session"),
            self._engine.connect().execution_options(writes=True) as connection,
        ):
            if connection.dialect.name == "sqlite":
                # What a person deletes should not stay readable in the file's free pages.
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
                connection.commit()
            with connection.begin():
                this = sessions.c.id == overview.session.id
                row = connection.execute(sa.select(sessions.c.row_id).where(this)).scalar()
                if row is not None:
                    forget_session(connection, row)
                if not connection.execute(sessions.delete().where(this)).rowcount:
                    raise _unknown(session_id)  # another process was faster
                connection.execute(deleted.insert(), {"id": overview.session.id})
                forget_deleted_words(connection)
        if self._engine.dialect.name == "sqlite":
            with closing(self._engine.raw_connection()) as driver:
                driver.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return overview

    @contextmanager
    def _reading(self, doing: str) -> Iterator[sa.Connection]:
        with explained(self._engine.url, doing), self._engine.connect() as connection:
            yield connection


def _resolve(connection: sa.Connection, session_id: str) -> sa.Row[Any]:
    exact = connection.execute(_WITH_ID, {"this_id": session_id}).one_or_none()
    if exact is not None:
        return exact
    found = connection.execute(
        sessions.select()
        .where(sa.func.substr(sessions.c.id, 1, len(session_id)) == session_id)
        .order_by(sessions.c.id)
        .limit(4)
    ).all()
    if not session_id or not found:
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


def _sums() -> list[sa.Label[Any]]:
    names = Tokens.__struct_fields__
    return [sa.func.sum(usage.c[name]).label(name) for name in names]


def _as_tokens(row: sa.Row[Any]) -> Tokens:
    sums: dict[str, Any] = {name: getattr(row, name) for name in Tokens.__struct_fields__}
    return Tokens(
        **{
            name: value if value is None or name == "cost_usd" else int(value)
            for name, value in sums.items()
        }
    )


def _tokens(connection: sa.Connection, row_ids: Sequence[int]) -> dict[int, Tokens]:
    found: dict[int, Tokens] = {}
    for start in range(0, len(row_ids), 500):
        statement = (
            sa.select(usage.c.session_row, *_sums())
            .where(usage.c.session_row.in_(row_ids[start : start + 500]))
            .group_by(usage.c.session_row)
        )
        found |= {row.session_row: _as_tokens(row) for row in connection.execute(statement)}
    return found
