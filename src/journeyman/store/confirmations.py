"""Confirmations as they are read, and the one transaction in which they change."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records.confirmation import (
    AuditEntry,
    AuditKind,
    Confirmation,
    ConfirmationStatus,
    Credential,
    CredentialKind,
    WhitelistEntry,
)
from journeyman.records.errors import AuditBroken
from journeyman.store.audit import (
    NOTHING_BEFORE,
    entry_of,
    first_break,
    has_entry,
    head,
    part_after,
    rows_in_order,
)
from journeyman.store.confirmation_tables import audit, confirmations, credentials, whitelist
from journeyman.store.engine import explained, writing
from journeyman.store.ledger import Ledger
from journeyman.store.rows import storable

_decode_card = msgspec.json.Decoder(Confirmation).decode
_decode_entry = msgspec.json.Decoder(WhitelistEntry).decode
_decode_credential = msgspec.json.Decoder(Credential).decode

_ID_LENGTH = 32
_AT_ONCE = 7263503
"""The lock that all ledgers on one PostgreSQL share."""


class Confirmations:
    """The confirmations of a store."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @contextmanager
    def writing(self, now: float, *, after: tuple[int, str] | None = None) -> Iterator[Ledger]:
        """A transaction: all of it is kept, and outlives a loss of power, when the block ends
        well; none of it otherwise. One at a time on either database. Raises AuditBroken when the
        audit no longer has the entry that it must come `after`.
        """
        with writing(self._engine, "writing confirmations", durable=True) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_AT_ONCE)))
            if after is not None and not has_entry(connection, *after):
                raise AuditBroken(
                    f"Entry {after[0]} of the audit is not the one that was written: somebody "
                    "changed the database. Nothing more is written. See: journeyman confirm audit "
                    "verify"
                )
            ledger = Ledger(connection, now)
            yield ledger
            ledger.flush()

    def find(self, id_: str) -> Confirmation | None:
        """A card by its id, or by the beginning of it where only one begins so."""
        begins = storable(id_)
        if not begins:
            return None
        columns = confirmations.c
        asked = sa.select(columns.id, columns.body)
        if len(begins) == _ID_LENGTH:
            asked = asked.where(columns.id == begins)
        else:
            # A range, not LIKE, which takes capital letters for small ones and uses no index. Ids
            # are hexadecimal, and g comes after all of their letters in every language's order.
            asked = asked.where(columns.id >= begins, columns.id < begins + "g")
        found = self._rows(asked.limit(2))
        return _decode_card(found[0].body) if len(found) == 1 else None

    def list(
        self,
        *,
        status: ConfirmationStatus | None = None,
        requester: str = "",
        limit: int | None = None,
        before: str = "",
        since: float | None = None,
    ) -> Sequence[Confirmation]:
        """Cards, newest first; those older than the one whose id is `before`."""
        columns = confirmations.c
        asked = sa.select(columns.body).order_by(columns.row_id.desc()).limit(limit)
        if status is not None:
            asked = asked.where(columns.status == status)
        if requester:
            asked = asked.where(columns.requester == storable(requester))
        if since is not None:
            asked = asked.where(columns.created_at >= since)
        if before:
            row = sa.select(columns.row_id).where(columns.id == storable(before))
            asked = asked.where(columns.row_id < row.scalar_subquery())
        return [_decode_card(row.body) for row in self._rows(asked)]

    def count_pending(self) -> int:
        asked = sa.select(sa.func.count()).where(confirmations.c.status == "pending")
        return int(self._rows(asked)[0][0])

    def next_expiry(self) -> float | None:
        """When the time of the next card is over."""
        asked = sa.select(sa.func.min(confirmations.c.expires_at)).where(
            confirmations.c.status == "pending"
        )
        found: float | None = self._rows(asked)[0][0]
        return found

    def whitelist(self, *, revoked: bool = False) -> Sequence[WhitelistEntry]:
        """The entries, newest first; also those that were revoked, when asked to."""
        asked = sa.select(whitelist.c.body).order_by(whitelist.c.row_id.desc())
        if not revoked:
            asked = asked.where(whitelist.c.revoked.is_(False))
        return [_decode_entry(row.body) for row in self._rows(asked)]

    def find_credential(self, secret_digest: str) -> Credential | None:
        """Whose secret has this digest, unless it was revoked. Whether its time is over, the
        caller sees.
        """
        columns = credentials.c
        asked = sa.select(columns.body).where(
            columns.secret_digest == secret_digest, columns.revoked.is_(False)
        )
        found = self._rows(asked)
        return _decode_credential(found[0].body) if found else None

    def credentials(self, kind: CredentialKind | None = None) -> Sequence[Credential]:
        """All credentials but the sessions in browsers, or all of a kind, newest first."""
        columns = credentials.c
        asked = sa.select(columns.body).order_by(columns.row_id.desc())
        wanted = columns.kind != "session" if kind is None else columns.kind == kind
        return [_decode_credential(row.body) for row in self._rows(asked.where(wanted))]

    def audit(
        self,
        *,
        limit: int,
        before: int | None = None,
        confirmation: str = "",
        kind: AuditKind | None = None,
    ) -> Sequence[AuditEntry]:
        """Entries of the audit, newest first."""
        asked = audit.select().order_by(audit.c.seq.desc()).limit(limit)
        if kind is not None:
            asked = asked.where(audit.c.kind == kind)
        if before is not None:
            asked = asked.where(audit.c.seq < before)
        if confirmation:
            asked = asked.where(audit.c.confirmation == storable(confirmation))
        return [entry_of(row) for row in self._rows(asked)]

    def audit_after(self, seq: int) -> Sequence[tuple[int, str, str]]:
        """What happened since: number, kind and card of each entry, oldest first."""
        asked = (
            sa.select(audit.c.seq, audit.c.kind, audit.c.confirmation)
            .where(audit.c.seq > seq)
            .order_by(audit.c.seq)
        )
        return [(row.seq, row.kind, row.confirmation) for row in self._rows(asked)]

    def audit_texts(self) -> Iterator[tuple[str, str]]:
        """The whole audit in its order: the text of each entry and the text's digest. No
        transaction is open between its parts, however long the reader takes.
        """
        after = 0
        while rows := self._rows(part_after(after)):
            yield from ((row.entry, row.digest) for row in rows)
            after = rows[-1].seq

    def audit_head(self) -> tuple[int, str]:
        """The number and digest of the last entry; 0 and zeros when there is none."""
        with explained(self._engine.url, "reading the audit"), self._engine.connect() as one:
            return head(one) or (0, NOTHING_BEFORE)

    def audit_digest(self, seq: int) -> str | None:
        """The digest of one entry."""
        found = self._rows(sa.select(audit.c.digest).where(audit.c.seq == seq))
        return found[0].digest if found else None

    def audit_break(self) -> tuple[int, str] | tuple[None, tuple[int, str]]:
        """The first entry of the chain that does not hold and why; or None and the head."""
        with explained(self._engine.url, "reading the audit"), self._engine.connect() as one:
            return first_break(rows_in_order(one))

    def _rows(self, asked: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with explained(self._engine.url, "reading confirmations"), self._engine.connect() as one:
            return one.execute(asked).all()
