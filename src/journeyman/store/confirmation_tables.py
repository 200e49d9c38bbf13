"""The tables of confirmations."""

import sqlalchemy as sa

from journeyman.store.tables import row_id, table, text, texts

confirmations = table(
    "confirmations",
    # The number of the audit entry that recorded its submission.
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    text("id", unique=True),
    text("requester"),
    text("status", index=True),
    sa.Column("created_at", sa.Double, nullable=False),
    text("body"),
)

idempotency_keys = table(
    "idempotency_keys",
    sa.Column("requester", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    text("confirmation"),
)

whitelist = table(
    "whitelist",
    row_id(),
    text("id", unique=True),
    text("action", index=True),
    sa.Column("revoked", sa.Boolean, nullable=False),
    text("body"),
    sqlite_autoincrement=True,
)

credentials = table(
    "credentials",
    row_id(),
    text("id", unique=True),
    *texts("kind", "name"),
    # The secret is long and random, so a plain digest cannot be reversed by guessing.
    text("secret_digest", unique=True),
    sa.Column("revoked", sa.Boolean, nullable=False),
    text("body"),
    sa.Index("credentials_by_name", "kind", "name"),
    sqlite_autoincrement=True,
)

audit = table(
    "audit",
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    text("kind"),
    text("confirmation", index=True),
    # The exact text that the digest covers.
    *texts("entry", "digest"),
)
