"""Reviews, and the journal of what was written to memory and skills.

The journal stays when a session is deleted: what was written is still in the files, and has to
be undone from here. Each write is kept whole, as one value, because it is read and undone whole.
"""

from journeyman.store.migrations import create_tables

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    create_tables("reviews", "writes")
