"""The migrations of the database, and a helper that creates tables."""

from alembic import op

from journeyman.store.tables import metadata


def create_tables(*names: str) -> None:
    """Create tables as they are described today. A table that a later migration changes is written
    out in the migration that creates it.
    """
    for name in names:
        metadata.tables[name].create(op.get_bind())
