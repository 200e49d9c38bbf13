"""Creates the tables and the search index of a new database, and recognises one that another
version of this program made.

Search uses SQLite's FTS5 or PostgreSQL's tsvector. Both split words at everything that is neither
letter nor digit, so that a part of a path is found. FTS5 reads its text through a view, so that no
text is stored twice. New rows are indexed by one statement at the end of a transaction, because a
trigger per row costs ten times as much; `messages_indexed` holds the last indexed row, and triggers
keep the indexed rows up to date.
"""

import sqlalchemy as sa

from journeyman.records.errors import StoreUnavailable
from journeyman.store import jobs  # noqa: F401 - it adds its tables
from journeyman.store.tables import metadata, revisions, schema_version

SCHEMA_VERSION = 6
"""Raise this with every change of a table."""


def prepare_schema(engine: sa.Engine, *, only_look: bool = False) -> bool:
    """Create what a new database needs, unless `only_look`; return whether it is there. Raise
    StoreUnavailable for a database of another version.
    """
    with engine.connect() as connection:
        if _is_current(connection):
            return True
    if only_look:
        return False
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            # Two programs may open a new database at once: the second waits for the first.
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(7263501)"))
        if not _is_current(connection):
            _create(connection)
    return True


def _is_current(connection: sa.Connection) -> bool:
    names = sa.inspect(connection).get_table_names()
    if not names:
        return False
    version = None
    if schema_version.name in names:
        version = connection.execute(sa.select(schema_version.c.number)).scalar()
    if version != SCHEMA_VERSION:
        raise StoreUnavailable(
            f"The database {connection.engine.url.render_as_string()} was made by another version "
            "of Journeyman. Use that version, or move the database away and import again: the logs "
            "are not affected."
        )
    return True


def _create(connection: sa.Connection) -> None:
    metadata.create_all(connection, checkfirst=False)
    connection.execute(schema_version.insert(), {"number": SCHEMA_VERSION})
    connection.execute(revisions.insert(), {"name": "learned", "number": 0})
    statements = _SQLITE_SEARCH if connection.dialect.name == "sqlite" else _POSTGRESQL_SEARCH
    for statement in (*_PARTIAL_INDEXES, *statements):
        connection.exec_driver_sql(statement)


def _head(row: str = "") -> str:
    return f"substr({row}text, 1, CASE {row}role WHEN 'tool' THEN 1000 ELSE 16000 END)"


def _words(column: str) -> str:
    return f"to_tsvector('simple', regexp_replace({column}, '[^[:alnum:]]+', ' ', 'g'))"


# As text: declared with the tables, they would load the dialects of both databases at every start.
_PARTIAL_INDEXES = (
    "CREATE UNIQUE INDEX jobs_named ON jobs (name) WHERE state <> 'removed'",
    "CREATE UNIQUE INDEX job_runs_one_at_a_time ON job_runs (job_id) WHERE status = 'running'",
    # A fork of a compressed session begins at its summary.
    "CREATE INDEX ix_messages_summary ON messages (key) WHERE kind = 'summary'",
)
# The word between them keeps a phrase from beginning in the text and ending in the calls.
_SEARCHED = f"{_head()} || ' endofmessagetext ' || coalesce(call_text, '')"
_INDEXED = "WHEN old.row_id <= (SELECT up_to FROM messages_indexed)"
_REMOVE = (
    "INSERT INTO messages_search(messages_search, rowid, text, calls) "
    f"VALUES ('delete', old.row_id, {_head('old.')}, old.call_text);"
)
_ADD = (
    "INSERT INTO messages_search(rowid, text, calls) "
    f"VALUES (new.row_id, {_head('new.')}, new.call_text);"
)
_SQLITE_SEARCH = (
    f"CREATE VIEW messages_searched AS SELECT row_id, {_head()} AS text, call_text AS calls "
    "FROM messages",
    "CREATE VIRTUAL TABLE messages_search USING fts5(text, calls, content='messages_searched', "
    "content_rowid='row_id', tokenize='unicode61 remove_diacritics 0')",
    # Words are collected in memory up to this size; larger batches need fewer merges.
    "INSERT INTO messages_search(messages_search, rank) VALUES ('hashsize', 8388608)",
    "CREATE TABLE messages_indexed (up_to INTEGER NOT NULL)",
    "INSERT INTO messages_indexed VALUES (0)",
    f"CREATE TRIGGER messages_removed AFTER DELETE ON messages {_INDEXED} BEGIN {_REMOVE} END",
    "CREATE TRIGGER messages_changed AFTER UPDATE OF text, role, call_text ON messages "
    f"{_INDEXED} BEGIN {_REMOVE} {_ADD} END",
)
_POSTGRESQL_SEARCH = (
    "ALTER TABLE messages ADD COLUMN search tsvector GENERATED ALWAYS AS "
    f"({_words(_SEARCHED)}) STORED",
    "CREATE INDEX messages_search ON messages USING gin (search)",
)
