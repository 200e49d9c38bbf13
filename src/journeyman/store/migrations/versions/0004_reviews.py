"""Reviews, and the journal of writes to memory and skills.

The journal stays when a session is deleted: its writes are still in the files, and are undone from
here. Each write is stored as one value, because it is read and undone as a whole.
"""

from journeyman.store.migrations import create_tables

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    create_tables("reviews", "writes")
