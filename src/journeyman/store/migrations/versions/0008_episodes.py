"""Episodes: each request with the calls that served it, and its search index. Patterns are no
longer searched; what was learned before is learned again with the new rules.
"""

from alembic import op

from journeyman.store.migrations import create_tables

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    create_tables("episodes")
    op.drop_table("pattern_vectors")
