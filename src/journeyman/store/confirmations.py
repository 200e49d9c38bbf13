"""The stored confirmations: reading them and their audit, and opening transactions that change
them.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

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
    GENESIS_DIGEST,
    LARGEST_SEQ,
    AuditChain,
    card_fault,
    card_of,
    entry_of,
    only_text,
    safe_rows,
)
from journeyman.store.engine import Repository
from journeyman.store.ledger import Ledger, select_records
from journeyman.store.rows import find_by_prefix, storable
from journeyman.store.tables import audit, confirmations

logger = logging.getLogger(__name__)

_LOCK_ID = 7263503
"""The advisory lock of those who write confirmations on one PostgreSQL."""
_BATCH = 1_000


class Confirmations(Repository):
    """The confirmations of a store."""

    def __init__(self, engine: sa.Engine) -> None:
        super().__init__(engine)
        self._chain = AuditChain()
        self._head = (0, GENESIS_DIGEST)
        self._lock = threading.Lock()

    @contextmanager
    def writing(self, now: float) -> Iterator[Ledger]:
        """Open a transaction: everything is kept, and survives a power failure, if the block
        succeeds; nothing otherwise. Only one is open at a time, on either database. Raise
        AuditBroken if the audit no longer has the entry that was read or written last.
        """
        with self._lock:
            try:
                with self._writing("writing confirmations", durable=True) as connection:
                    if connection.dialect.name == "postgresql":
                        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_ID)))
                    self._check_head(connection)
                    self._chain.read_new(connection)
                    self._head = (self._chain.seq, self._chain.digest)
                    yield Ledger(connection, now, self._chain)
            except BaseException:
                if (self._chain.seq, self._chain.digest) != self._head:
                    self._chain = AuditChain()  # it contains entries that were never written
                raise
            self._head = (self._chain.seq, self._chain.digest)

    def _check_head(self, connection: sa.Connection) -> None:
        seq, digest = self._head
        row = safe_rows(connection, audit, audit.c.seq == seq).one_or_none() if seq else None
        if seq and (row is None or row.digest != digest):
            raise AuditBroken(
                f"While writing confirmations: entry {seq} of the audit is not the one that was "
                "written, so something else changed the database. Nothing more is written until "
                "this is resolved. Check the audit with: journeyman confirm audit verify"
            )

    def find(self, id_: str) -> Confirmation | None:
        """Return a card by its id, or by a prefix that only one id has."""
        with self._reading("reading confirmations") as connection:
            rows = find_by_prefix(connection, confirmations, id_)
        return card_of(rows[0].body) if len(rows) == 1 else None

    def list(
        self,
        *,
        status: ConfirmationStatus | None = None,
        requester: str = "",
        limit: int | None = None,
        before: str = "",
        since: float | None = None,
    ) -> Sequence[Confirmation]:
        """Return cards, newest first; with `before`, only those older than the card with that
        id.
        """
        columns = confirmations.c
        query = sa.select(columns.body).order_by(columns.seq.desc()).limit(limit)
        if status is not None:
            query = query.where(columns.status == status)
        if requester:
            query = query.where(columns.requester == storable(requester))
        if since is not None:
            query = query.where(columns.created_at >= since)
        if before:
            row = sa.select(columns.seq).where(columns.id == storable(before))
            query = query.where(columns.seq < row.scalar_subquery())
        return [card for card in self._cards(query) if card is not None]

    def _cards(self, query: sa.Select[Any]) -> Sequence[Confirmation | None]:
        return [card_of(row.body) for row in self._read("reading confirmations", query)]

    def count_pending(self) -> int:
        query = sa.select(sa.func.count()).where(confirmations.c.status == "pending")
        return int(self._read("counting confirmations", query)[0][0])

    def whitelist(self) -> Sequence[WhitelistEntry]:
        """Return the entries that are not revoked, newest first."""
        with self._reading("reading the whitelist") as connection:
            return select_records(connection, WhitelistEntry, revoked=False)[::-1]

    def find_credential(self, secret_digest: str) -> Credential | None:
        """Return the credential with this digest of its secret, unless it is revoked; it may have
        expired.
        """
        with self._reading("reading credentials") as connection:
            records = select_records(
                connection, Credential, secret_digest=secret_digest, revoked=False
            )
        return next(iter(records), None)

    def credentials(self, kind: CredentialKind) -> Sequence[Credential]:
        """Return all credentials of a kind, newest first."""
        with self._reading("reading credentials") as connection:
            return select_records(connection, Credential, kind=kind)[::-1]

    def audit(
        self,
        *,
        limit: int,
        before: int = 2**63 - 1,
        after: int = 0,
        confirmation: str = "",
        kind: AuditKind | None = None,
    ) -> Sequence[AuditEntry]:
        """Return audit entries, newest first. Entries that cannot be read are logged and left
        out.
        """
        conditions = [audit.c.seq < before, audit.c.seq > after]
        if kind is not None:
            conditions.append(audit.c.kind == kind)
        if confirmation:
            conditions.append(audit.c.confirmation == storable(confirmation))
        with self._reading("reading the audit") as connection:
            rows = safe_rows(connection, audit, *conditions, limit=limit, newest=True)
            entries = [entry_of(row) for row in rows]
        for entry in entries:
            if isinstance(entry, str):
                logger.warning("left out of the listed audit entries: %s", entry)
        return [entry for entry in entries if not isinstance(entry, str)]

    def audit_texts(self) -> Iterator[tuple[str, str]]:
        """Yield the whole audit in order: the text of each entry and its digest, as stored. No
        transaction stays open between batches, however slowly they are consumed.
        """
        after: int | None = -(2**63)
        while after is not None:
            with self._reading("reading the audit") as connection:
                rows = safe_rows(connection, audit, audit.c.seq > after, limit=_BATCH).all()
            yield from ((only_text(row.entry), only_text(row.digest)) for row in rows)
            after = rows[-1].seq if len(rows) == _BATCH else None

    def audit_head(self) -> tuple[int, str]:
        """Return the number and digest of the last entry, or 0 and zeros if there is none."""
        is_number = audit.c.seq.between(1, LARGEST_SEQ)
        with self._reading("reading the audit") as connection:
            row = safe_rows(connection, audit, is_number, limit=1, newest=True).one_or_none()
        return (0, GENESIS_DIGEST) if row is None else (row.seq, only_text(row.digest))

    def checked(self, recompute: Callable[[Confirmation], tuple[str, str]]) -> AuditChain:
        """Return the chain of all audit entries, compared with every stored card at one moment; its
        `problems` list what does not match. `recompute` returns a card's digest and fingerprint,
        computed from what is stored of it.
        """
        chain = AuditChain(complete=True)
        with self._reading("checking the audit") as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ")
            chain.read_new(connection)
            cards = safe_rows(connection, confirmations)
            rows = {only_text(row.id) or "without a readable id": row for row in cards}
            for id_ in rows.keys() | chain.cards.keys():
                row, tracked = rows.get(id_), chain.cards.get(id_)
                fault = "it is not in the audit" if tracked is None else card_fault(row, tracked)
                card = None if row is None else card_of(row.body)
                if tracked and card and not fault:
                    digests = (tracked.digest, tracked.fingerprint)
                    fault = "" if recompute(card) == digests else "its parameters were changed"
                if fault:
                    chain.problems.append((None, f"the confirmation {id_}: {fault}"))
        return chain
