"""The tables of confirmations for both databases; a test compares the migrations with them."""

import sqlalchemy as sa

from journeyman.store.tables import metadata

_row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

confirmations = sa.Table(
    "confirmations",
    metadata,
    # The number of the audit entry that recorded its submission.
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("requester", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False, index=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("requester", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("confirmation", sa.Text, nullable=False),
)

whitelist = sa.Table(
    "whitelist",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("action", sa.Text, nullable=False, index=True),
    sa.Column("revoked", sa.Boolean, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)

credentials = sa.Table(
    "credentials",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    # The secret is long and random, so a plain digest cannot be reversed by guessing.
    sa.Column("secret_digest", sa.Text, nullable=False, unique=True),
    sa.Column("revoked", sa.Boolean, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Index("credentials_by_name", "kind", "name"),
    sqlite_autoincrement=True,
)

spent_links = sa.Table(
    "spent_links",
    metadata,
    sa.Column("nonce", sa.Text, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("confirmation", sa.Text, nullable=False, index=True),
    # The exact text that the digest covers.
    sa.Column("entry", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
