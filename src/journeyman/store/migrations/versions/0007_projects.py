"""The project of a session. For stored sessions it is derived from the path of their folder, so
that they need not be imported again.
"""

import sqlalchemy as sa
from alembic import op

from journeyman.records.project import project_name

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    project = sa.Column("project", sa.Text, nullable=False, server_default="")
    op.add_column("sessions", project)
    op.create_index("ix_sessions_project", "sessions", ["project"])
    connection = op.get_bind()
    sessions = sa.table("sessions", sa.column("cwd"), sa.column("project"))
    folders = connection.execute(sa.select(sessions.c.cwd).distinct()).scalars().all()
    named = [{"folder": folder, "name": project_name(folder)} for folder in folders]
    if named:
        connection.execute(
            sessions.update()
            .where(sessions.c.cwd == sa.bindparam("folder"))
            .values(project=sa.bindparam("name")),
            named,
        )
