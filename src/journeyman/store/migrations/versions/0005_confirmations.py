"""Confirmations, their submissions, the whitelist, credentials, and the audit chain.

A card is stored as one value, with separate columns for searching. The audit stores the exact text
that its digest covers, so that a program in any language can recompute it.
"""

import sqlalchemy as sa
from alembic import op

from journeyman.store.migrations import create_tables
from journeyman.store.tables import columns, row_id, text, texts

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "confirmations",
        row_id(),
        text("id", unique=True),
        *texts("fingerprint", "action", "requester", "status"),
        *columns(sa.Double, "created_at", "expires_at", nullable=False),
        text("body"),
        sqlite_autoincrement=True,
    )
    op.create_index("confirmations_alike", "confirmations", ["fingerprint", "status"])
    op.create_index("confirmations_due", "confirmations", ["status", "expires_at"])
    op.create_table(
        "submissions",
        row_id(),
        *texts("requester", "action"),
        sa.Column("at", sa.Double, nullable=False),
        *columns(sa.BigInteger, "ordinal", "cards", nullable=False),
        sa.Column("idempotency_key", sa.Text),
        *texts("fingerprint", "confirmation"),
        sqlite_autoincrement=True,
    )
    op.create_index("submissions_of_action", "submissions", ["requester", "action", "at"])
    op.create_index("submissions_of_requester", "submissions", ["requester", "at"])
    op.create_index(
        "submissions_told_again", "submissions", ["requester", "idempotency_key"], unique=True
    )
    create_tables("whitelist", "credentials", "spent_links", "audit")
