"""Confirmations, what was asked and when, the whitelist, credentials, and the audit's chain.

A card is kept whole, as one value, beside the columns by which it is found. The audit keeps the
very text that its digest covers, so that a reader in any language can compute it again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "confirmations",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("requester", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("confirmations_alike", "confirmations", ["fingerprint", "status"])
    op.create_index("confirmations_due", "confirmations", ["status", "expires_at"])
    op.create_table(
        "submissions",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column("requester", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("ordinal", sa.BigInteger, nullable=False),
        sa.Column("cards", sa.BigInteger, nullable=False),
        sa.Column("idempotency_key", sa.Text),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("confirmation", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("submissions_of_action", "submissions", ["requester", "action", "at"])
    op.create_index("submissions_of_requester", "submissions", ["requester", "at"])
    op.create_index(
        "submissions_told_again", "submissions", ["requester", "idempotency_key"], unique=True
    )
    op.create_table(
        "whitelist",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("action", sa.Text, nullable=False, index=True),
        sa.Column("revoked", sa.Boolean, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "credentials",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("secret_digest", sa.Text, nullable=False, unique=True),
        sa.Column("revoked", sa.Boolean, nullable=False),
        sa.Column("totp_secret", sa.Text, nullable=False),
        sa.Column("totp_step", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("credentials_by_name", "credentials", ["kind", "name"])
    op.create_table(
        "spent_links",
        sa.Column("nonce", sa.Text, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("confirmation", sa.Text, nullable=False, index=True),
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
