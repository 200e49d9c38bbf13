"""Statements that are run for each of many requests. Their text is made once for a database, and
then the driver is asked directly: SQLAlchemy's part of a small statement takes ten times as long as
the database's.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from journeyman.store.values import parts


class _Text:
    """A statement as a driver takes it."""

    def __init__(self, statement: sa.Select[Any] | sa.Update, dialect: sa.Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self.text = str(compiled)
        self._fixed = {name: at for name, at in compiled.params.items() if at is not None}
        self._names: Sequence[str] | None = getattr(compiled, "positiontup", None)

    def values(self, given: Mapping[str, Any]) -> Any:
        """The values, in the order or with the names that the driver wants."""
        every = {**self._fixed, **given}
        return every if self._names is None else tuple(every[name] for name in self._names)


class Prepared:
    """A statement whose values have names. Rows come as plain tuples, as the driver reads them."""

    def __init__(self, statement: sa.Select[Any] | sa.Update) -> None:
        self._statement = statement
        self._texts: dict[str, _Text] = {}

    def rows(self, connection: sa.Connection, **given: Any) -> Sequence[tuple[Any, ...]]:
        """All that a query finds."""
        text = self._text(connection.dialect)
        with _asked(connection, text.text) as cursor:
            cursor.execute(text.text, text.values(given))
            return cursor.fetchall()

    def first(self, connection: sa.Connection, **given: Any) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        found = self.rows(connection, **given)
        return found[0] if found else None

    def many(self, connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """The change that the statement makes, once for each row of values."""
        text = self._text(connection.dialect)
        with _asked(connection, text.text) as cursor:
            cursor.executemany(text.text, [text.values(row) for row in rows])

    def _text(self, dialect: sa.Dialect) -> _Text:
        found = self._texts.get(dialect.name)
        if found is None:
            found = self._texts[dialect.name] = _Text(self._statement, dialect)
        return found


class Inserting:
    """Puts rows into these columns of a table, many in one statement: a driver lets other threads
    run at each statement, and may have to wait for them each time.
    """

    def __init__(self, table: sa.Table, *columns: str) -> None:
        # The names are this program's own.
        self._head = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES "  # noqa: S608
        self._columns = columns

    def many(self, connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert the rows."""
        sign = "?" if connection.dialect.paramstyle == "qmark" else "%s"
        one = f"({', '.join([sign] * len(self._columns))})"
        for some in parts(rows):
            text = self._head + ", ".join([one] * len(some))
            with _asked(connection, text) as cursor:
                cursor.execute(text, [row[name] for row in some for name in self._columns])


@contextmanager
def _asked(connection: sa.Connection, text: str) -> Iterator[DBAPICursor]:
    kind_of_error = connection.dialect.loaded_dbapi.Error
    cursor = connection.connection.cursor()
    try:
        yield cursor
    except kind_of_error as error:
        # As SQLAlchemy would raise it, so that it is explained like any other.
        raise sa.exc.DBAPIError.instance(
            text, None, error, kind_of_error, dialect=connection.dialect
        ) from error
    finally:
        cursor.close()
