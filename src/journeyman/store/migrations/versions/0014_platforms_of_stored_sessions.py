"""The platform of stored sessions, taken from what their recorders stated, so that they need not be
imported again.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_BATCH = 1000


def upgrade() -> None:
    op.create_index("ix_sessions_platform", "sessions", ["platform"])
    connection = op.get_bind()
    sessions = sa.table("sessions", *map(sa.column, ("row_id", "source", "platform", "details")))
    stated = sa.select(sessions.c.row_id, sessions.c.source, sessions.c.details).where(
        sessions.c.platform == "", sessions.c.source.in_(("hermes", "codex", "journeyman"))
    )
    known = [
        {"row": row, "name": name}
        for row, source, details in connection.execute(stated)
        if (name := _platform(source, details))
    ]
    update = sessions.update().where(sessions.c.row_id == sa.bindparam("row"))
    for start in range(0, len(known), _BATCH):
        batch = known[start : start + _BATCH]
        connection.execute(update.values(platform=sa.bindparam("name")), batch)


def _platform(source: str, details_text: str) -> str:
    details: dict[str, Any] = json.loads(details_text)
    if source == "hermes":
        stated = details.get("channel")
        return stated if isinstance(stated, str) and stated != "unknown" else ""
    if source == "codex":
        started_by = details.get("source")
        if isinstance(started_by, dict):
            return "subagent" if "subagent" in started_by else ""
        stated = started_by or details.get("originator")
    else:
        stated = details.get("platform")
    return stated if isinstance(stated, str) else ""
