"""Patterns and templates: what was learned from sessions.

A pattern is shown as in one session, and is deleted with that session. How often it was seen is
stored per session, so that a changed session can be recounted. Templates are independent values:
they hold copies, and stay.
"""

import sqlalchemy as sa
from alembic import op

from journeyman.store.migrations import create_tables
from journeyman.store.tables import columns, of_pattern

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    create_tables("patterns", "sightings", "mined", "templates", "effects", "revisions")
    vectors = columns(sa.LargeBinary, "words", "vector", nullable=False)
    op.create_table("pattern_vectors", of_pattern(), *vectors)
    op.execute("INSERT INTO revisions (name, number) VALUES ('patterns', 0)")
