"""The migrations of the database, and how they create tables."""

from alembic import op

from journeyman.store.tables import metadata


def create_tables(*names: str) -> None:
    """Create tables as they are described today. A table that a later migration changes is spelled
    out in the migration that created it.
    """
    for name in names:
        metadata.tables[name].create(op.get_bind())
