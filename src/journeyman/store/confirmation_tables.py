"""The tables of confirmations, described once for both databases. The migrations make them; a test
holds the two against each other.
"""

import sqlalchemy as sa

from journeyman.store.tables import metadata

_row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

confirmations = sa.Table(
    "confirmations",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    # What two identical requests have in common.
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("requester", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Index("confirmations_alike", "fingerprint", "status"),
    sa.Index("confirmations_due", "status", "expires_at"),
    sqlite_autoincrement=True,
)

submissions = sa.Table(
    "submissions",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column("requester", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    # Running numbers: how many there were in a time is the difference of two of them, which costs
    # the same whatever the limit is. Of this requester and action, and of the requester's cards.
    sa.Column("ordinal", sa.BigInteger, nullable=False),
    sa.Column("cards", sa.BigInteger, nullable=False),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("confirmation", sa.Text, nullable=False),
    sa.Index("submissions_of_action", "requester", "action", "at"),
    sa.Index("submissions_of_requester", "requester", "at"),
    sa.Index("submissions_told_again", "requester", "idempotency_key", unique=True),
    sqlite_autoincrement=True,
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
    # The secret is long and random, so a plain digest cannot be guessed back.
    sa.Column("secret_digest", sa.Text, nullable=False, unique=True),
    sa.Column("revoked", sa.Boolean, nullable=False),
    sa.Column("totp_secret", sa.Text, nullable=False),
    sa.Column("totp_step", sa.BigInteger, nullable=False),
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
    # The very text that the digest covers.
    sa.Column("entry", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
