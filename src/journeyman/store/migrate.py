"""Bringing a database to the tables this program needs, when it is opened."""

import sqlalchemy as sa

from journeyman.records.errors import StoreUnavailable
from journeyman.store.version import SCHEMA_VERSION


def migrate(engine: sa.Engine, *, only_look: bool = False) -> bool:
    """Apply what is missing, unless asked to only look; whether all is there now. Costs one query
    when nothing is missing.
    """
    with engine.connect() as connection:
        found = _version(connection)
    if found == SCHEMA_VERSION:
        return True
    if found is not None and found > SCHEMA_VERSION:
        raise StoreUnavailable(
            f"The database {engine.url.render_as_string()} was written by a newer Journeyman "
            f"(schema {found}, this program knows {SCHEMA_VERSION}). Upgrade this program."
        )
    if only_look:
        return False
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            # Two programs that open a new database at once: the second waits for the first.
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(7263501)"))
        if _version(connection) != SCHEMA_VERSION:
            _upgrade(connection)
    return True


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(
        sa.text("SELECT version_num FROM alembic_version")
    ).scalar()
    return found


def _upgrade(connection: sa.Connection) -> None:
    # Alembic takes longer to load than the rest of the program, and is needed once.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", "journeyman.store:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
