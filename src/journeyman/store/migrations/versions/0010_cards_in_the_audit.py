"""The audit covers every card as a whole. A card has the number of the entry that submitted it;
what follows from the audit alone (limits, deadlines, identical requests) no longer has columns.

Each existing card gets one entry that adopts its current state. Changes to it are detected only
from then on.
"""

import hashlib
import time

import msgspec
import sqlalchemy as sa
from alembic import op

from journeyman.store.migrations import create_tables
from journeyman.store.tables import metadata

revision = "0010"
down_revision = "0009"

_CLOSED = ("denied", "expired", "cancelled", "redeemed")


def upgrade() -> None:
    create_tables("idempotency_keys")
    op.execute(
        "INSERT INTO idempotency_keys SELECT requester, idempotency_key, confirmation"
        " FROM submissions WHERE idempotency_key IS NOT NULL"
    )
    op.drop_table("submissions")
    op.rename_table("confirmations", "confirmations_before")
    op.drop_index("confirmations_alike", "confirmations_before")
    op.drop_index("confirmations_due", "confirmations_before")
    create_tables("confirmations")
    _take_over(op.get_bind(), metadata.tables["confirmations"])
    op.drop_table("confirmations_before")


def _take_over(connection: sa.Connection, cards: sa.Table) -> None:
    names = ("seq", "kind", "confirmation", "entry", "digest")
    audit = sa.table("audit", *map(sa.column, names))
    last = sa.select(audit.c.seq, audit.c.digest).order_by(audit.c.seq.desc()).limit(1)
    seq, previous = connection.execute(last).one_or_none() or (0, "0" * 64)
    before = sa.text("SELECT * FROM confirmations_before ORDER BY row_id")
    for row in connection.execute(before).all():
        seq += 1
        card = msgspec.json.decode(row.body)
        approved = row.status in ("approved", "auto_approved")
        stage = "closed" if row.status in _CLOSED else "approved" if approved else "pending"
        entry = {
            "seq": seq,
            "at": time.time(),
            "kind": "migrated",
            "actor": f"agent:{card['requester']}",
            "confirmation": row.id,
            "about": {
                "card": hashlib.sha256(row.body.encode()).hexdigest(),
                "stage": stage,
                "digest": card["digest"],
                "fingerprint": row.fingerprint,
                "expires_at": row.expires_at,
            },
            "previous": previous,
        }
        text = msgspec.json.encode(entry).decode()
        previous = hashlib.sha256(text.encode()).hexdigest()
        connection.execute(
            audit.insert().values(
                seq=seq, kind="migrated", confirmation=row.id, entry=text, digest=previous
            )
        )
        kept = {name: getattr(row, name) for name in ("id", "requester", "status", "created_at")}
        connection.execute(cards.insert().values(seq=seq, body=row.body, **kept))
