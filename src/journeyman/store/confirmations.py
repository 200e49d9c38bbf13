"""Confirmations as they are read, and the one transaction in which they change."""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from journeyman.records.confirmation import (
    AuditEntry,
    AuditKind,
    Confirmation,
    ConfirmationStatus,
    Credential,
    CredentialKind,
    Refusal,
    WhitelistEntry,
    WrittenEntry,
)
from journeyman.records.errors import AuditBroken
from journeyman.store.audit import (
    LARGEST_SEQ,
    NOTHING_BEFORE,
    Trail,
    card_fault,
    card_of,
    digest_of,
    entry_of,
    safe_rows,
    stage_of,
)
from journeyman.store.confirmation_tables import (
    audit,
    confirmations,
    credentials,
    idempotency_keys,
    spent_links,
    whitelist,
)
from journeyman.store.engine import Repository
from journeyman.store.rows import json_text, storable, values_of

logger = logging.getLogger(__name__)

_ID_LENGTH = 32
_AT_ONCE = 7263503
"""The lock that all ledgers on one PostgreSQL share."""
_PART = 1_000

Kept = TypeVar("Kept", WhitelistEntry, Credential)

_TABLES: dict[type, sa.Table] = {WhitelistEntry: whitelist, Credential: credentials}
_DECODERS: dict[type, Callable[[str], Any]] = {
    kind: msgspec.json.Decoder(kind).decode for kind in _TABLES
}


def _equal(table: sa.Table, columns: dict[str, Any]) -> sa.ColumnElement[bool]:
    stored = {name: storable(one) if isinstance(one, str) else one for name, one in columns.items()}
    return sa.and_(*(table.c[name] == one for name, one in stored.items()))


def _kept(connection: sa.Connection, of: type[Kept], /, **columns: Any) -> list[Kept]:
    """Entries of the whitelist, or credentials, with these values in columns; oldest first."""
    table, decode = _TABLES[of], _DECODERS[of]
    asked = sa.select(table.c.body).where(_equal(table, columns)).order_by(table.c.row_id)
    return [decode(body) for body in connection.execute(asked).scalars()]


class Ledger:
    """What may be read and written in one transaction at the time `now`. A card changes only
    together with the entry that says so: `record` is the one way to write it.
    """

    def __init__(self, connection: sa.Connection, now: float, trail: Trail) -> None:
        self._connection = connection
        self._trail = trail
        self._rows: list[dict[str, Any]] = []
        self._cards: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        # Looked up once for all who share a transaction, which are many when it matters.
        self._owners: dict[str, str] | None = None
        self._whitelisted: list[WhitelistEntry] | None = None
        self.now = now
        self.head_before = (trail.seq, trail.digest)
        self.entries: list[AuditEntry] = []
        """The audit entries of this transaction."""
        self.changed: dict[str, Confirmation] = {}
        """The cards that this transaction made or changed, as they are at its end."""

    def note(
        self, kind: AuditKind, actor: str, confirmation: str = "", /, **about: Any
    ) -> AuditEntry:
        """Write down that something happened."""
        written = WrittenEntry(
            seq=self._trail.seq + 1,
            at=self.now,
            kind=kind,
            actor=actor,
            confirmation=storable(confirmation),
            about=about,
            previous=self._trail.digest,
        )
        text = json_text(written)
        entry = AuditEntry(**msgspec.structs.asdict(written), digest=digest_of(text))
        self._trail.take(entry)
        self._rows.append(values_of(entry, audit, entry=text))
        self.entries.append(entry)
        return entry

    def record(
        self,
        kind: AuditKind,
        actor: str,
        card: Confirmation,
        /,
        *,
        vouched: bool = True,
        **about: Any,
    ) -> AuditEntry:
        """Write what became of a card, and the entry that says so, which covers all of the card. A
        card that is not `vouched` for was found changed, and stays marked so. What cannot follow
        what happened to it before, such as a second redemption, is never written.
        """
        if self._trail.stage_after(card.id, kind) is None:
            raise RuntimeError(f"{kind} cannot follow what the audit says of {card.id}")
        body = json_text(card)
        entry = self.note(kind, actor, card.id, card=digest_of(body) if vouched else "", **about)
        self._cards[card.id] |= values_of(card, confirmations, body=body)
        if kind == "submitted":
            self._cards[card.id]["seq"] = entry.seq
        self.changed[card.id] = card
        return entry

    def refused(
        self, actor: str, refusal: Refusal, confirmation: str = "", /, **about: Any
    ) -> Refusal:
        """Write down that something was not done, and hand on why."""
        self.note("refused", actor, confirmation, code=refusal.code, **about)
        return refusal

    def check_writes(self) -> None:
        """Write something that changes nothing, so that ending the transaction tries the disk."""
        self._connection.execute(sa.text("UPDATE alembic_version SET version_num = version_num"))

    def flush(self) -> None:
        """Write what is not yet written; called once, at the end."""
        for id_, values in self._cards.items():
            if "seq" not in values:
                this = confirmations.update().where(confirmations.c.id == id_)
                self._connection.execute(this.values(values))
        if added := [values for values in self._cards.values() if "seq" in values]:
            self._connection.execute(confirmations.insert(), added)
        if self._rows:
            self._connection.execute(audit.insert(), self._rows)

    def find(self, id_: str) -> Confirmation | None:
        """A card as it is stored; `fault` says whether it can be relied on."""
        if id_ in self.changed:
            return self.changed[id_]
        row = self._row(id_)
        return None if row is None else card_of(row.body)

    def fault(self, card: Confirmation, *, of_chain: bool = True) -> str:
        """Why an open card must not be acted on: it or its entries were changed. Or empty."""
        if card.id in self.changed:
            return ""
        known = self._trail.cards.get(card.id)
        if known is None:
            is_over = stage_of(card.status) == "closed"  # nothing more can become of it
            return "" if is_over else "the audit knows of no such open confirmation"
        found = self._trail.fault(self._connection, known) if of_chain else ""
        return found or card_fault(self._row(card.id), known)

    def due(self) -> Sequence[Confirmation]:
        """Cards that wait though their time is over; 500 at most."""
        due = (id_ for at, id_ in self._trail.waiting() if at <= self.now)
        return list(islice(filter(None, map(self.find, due)), 500))

    def next_expiry(self) -> float | None:
        """When the time of the next card is over."""
        return min((at for at, _ in self._trail.waiting()), default=None)

    def waiting_alike(self, fingerprint: str) -> Confirmation | None:
        """The card that waits with the same content."""
        id_ = self._trail.alike.get(fingerprint)
        return None if id_ is None else self.find(id_)

    def times(self, *key: str) -> list[float]:
        """When a requester asked for an action lately, or put anything before people."""
        return self._trail.times(key, self.now)

    def find_key(self, requester: str, key: str) -> str | None:
        """The card of the request that had this idempotency key."""
        found = self._select(idempotency_keys.c.confirmation, requester=requester, key=key)
        return found.scalar_one_or_none()

    def add_key(self, requester: str, key: str, card: str) -> None:
        values = {"requester": storable(requester), "key": storable(key), "confirmation": card}
        self._connection.execute(idempotency_keys.insert(), values)

    def _select(self, *wanted: sa.Column[Any], **columns: Any) -> sa.CursorResult[Any]:
        is_it = _equal(wanted[0].table, columns)
        return self._connection.execute(sa.select(*wanted).where(is_it))

    def _row(self, id_: str) -> sa.Row[Any] | None:
        is_this = confirmations.c.id == storable(id_)
        return safe_rows(self._connection, confirmations, is_this).one_or_none()

    def add(self, record: WhitelistEntry | Credential, **beside: Any) -> None:
        """Keep an entry of the whitelist, or a credential with the `secret_digest` beside it."""
        self._forget()
        table = _TABLES[type(record)]
        values = values_of(record, table, revoked=False, body=json_text(record), **beside)
        self._connection.execute(table.insert(), values)

    def save(self, record: WhitelistEntry | Credential, **beside: Any) -> None:
        """Write one anew, and what is kept `beside` it: `totp_secret` and `totp_step`."""
        self._forget()
        table, revoked = _TABLES[type(record)], record.revoked_at is not None
        values = {"revoked": revoked, "body": json_text(record), **beside}
        self._connection.execute(table.update().where(table.c.id == record.id).values(values))

    def _forget(self) -> None:
        self._owners = self._whitelisted = None

    def whitelisted(self, action: str) -> Sequence[WhitelistEntry]:
        """The entries for an action that were not revoked."""
        if self._whitelisted is None:
            self._whitelisted = _kept(self._connection, WhitelistEntry, revoked=False)
        return [entry for entry in self._whitelisted if entry.action == action]

    def find_entry(self, id_: str) -> WhitelistEntry | None:
        return next(iter(_kept(self._connection, WhitelistEntry, id=id_)), None)

    def find_credential(self, kind: CredentialKind, name: str) -> Credential | None:
        """The one of this kind and name that was not revoked."""
        found = _kept(self._connection, Credential, kind=kind, name=name, revoked=False)
        return next(iter(found), None)

    def totp_of(self, credential: Credential) -> tuple[str, int]:
        """The secret for one-time codes, which is empty where there is none, and the last step."""
        columns = credentials.c
        found = self._select(columns.totp_secret, columns.totp_step, id=credential.id).one()
        return found.totp_secret, found.totp_step

    def owner_of(self, agent: str) -> str:
        """The approver whose agent it is; empty where none is known."""
        if self._owners is None:
            agents = _kept(self._connection, Credential, kind="agent", revoked=False)
            self._owners = {one.name: one.owner for one in reversed(agents)}
        return self._owners.get(agent, "")

    def revoke_sessions(self, name: str) -> None:
        """End every session of an approver."""
        mine = _equal(credentials, {"kind": "session", "name": name})
        self._connection.execute(credentials.update().where(mine).values(revoked=True))

    def spend_link(self, nonce: str) -> bool:
        """Whether the link was not used before; from now on it was."""
        if self._select(spent_links.c.nonce, nonce=nonce).first() is not None:
            return False
        self._connection.execute(spent_links.insert(), {"nonce": nonce, "at": self.now})
        return True


class Confirmations(Repository):
    """The confirmations of a store."""

    def __init__(self, engine: sa.Engine) -> None:
        super().__init__(engine)
        self._trail = Trail()
        self._last = (0, NOTHING_BEFORE)
        self._one_at_a_time = threading.Lock()

    @contextmanager
    def writing(self, now: float) -> Iterator[Ledger]:
        """A transaction: all of it is kept, and outlives a loss of power, when the block ends
        well; none of it otherwise. One at a time on either database. Raises AuditBroken when the
        audit no longer has the entry that was read or written last.
        """
        with self._one_at_a_time:
            try:
                with self._writing("writing confirmations", durable=True) as connection:
                    if connection.dialect.name == "postgresql":
                        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_AT_ONCE)))
                    self._check_last(connection)
                    self._trail.follow(connection)
                    self._last = (self._trail.seq, self._trail.digest)
                    ledger = Ledger(connection, now, self._trail)
                    yield ledger
                    ledger.flush()
            except BaseException:
                if (self._trail.seq, self._trail.digest) != self._last:
                    self._trail = Trail()  # what it took in was never written
                raise
            self._last = (self._trail.seq, self._trail.digest)

    def _check_last(self, connection: sa.Connection) -> None:
        seq, digest = self._last
        found = safe_rows(connection, audit, audit.c.seq == seq).one_or_none() if seq else None
        if seq and (found is None or found.digest != digest):
            raise AuditBroken(
                f"Entry {seq} of the audit is not the one that was written: somebody changed the "
                "database. Nothing more is written until somebody has looked: journeyman confirm "
                "audit verify"
            )

    def find(self, id_: str) -> Confirmation | None:
        """A card by its id, or by the beginning of it where only one begins so."""
        begins, columns = storable(id_), confirmations.c
        # A range, not LIKE, which takes capital letters for small ones and uses no index. Ids are
        # hexadecimal, and g comes after all of their letters in every language's order.
        after = begins if len(begins) == _ID_LENGTH else begins + "g"
        is_this = columns.id.between(begins, after)
        found = self._cards(sa.select(columns.body).where(is_this).limit(2)) if begins else ()
        return found[0] if len(found) == 1 else None

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
        asked = sa.select(columns.body).order_by(columns.seq.desc()).limit(limit)
        if status is not None:
            asked = asked.where(columns.status == status)
        if requester:
            asked = asked.where(columns.requester == storable(requester))
        if since is not None:
            asked = asked.where(columns.created_at >= since)
        if before:
            row = sa.select(columns.seq).where(columns.id == storable(before))
            asked = asked.where(columns.seq < row.scalar_subquery())
        return [card for card in self._cards(asked) if card is not None]

    def _cards(self, asked: sa.Select[Any]) -> Sequence[Confirmation | None]:
        return [card_of(row.body) for row in self._read("reading confirmations", asked)]

    def count_pending(self) -> int:
        asked = sa.select(sa.func.count()).where(confirmations.c.status == "pending")
        return int(self._read("counting confirmations", asked)[0][0])

    def whitelist(self) -> Sequence[WhitelistEntry]:
        """The entries that were not revoked, newest first."""
        with self._reading("reading the whitelist") as one:
            return _kept(one, WhitelistEntry, revoked=False)[::-1]

    def find_credential(self, secret_digest: str) -> Credential | None:
        """Whose secret has this digest, unless it was revoked; its time may be over."""
        with self._reading("reading credentials") as one:
            found = _kept(one, Credential, secret_digest=secret_digest, revoked=False)
        return next(iter(found), None)

    def credentials(self, kind: CredentialKind) -> Sequence[Credential]:
        """All credentials of a kind, newest first."""
        with self._reading("reading credentials") as one:
            return _kept(one, Credential, kind=kind)[::-1]

    def audit(
        self,
        *,
        limit: int,
        before: int = 2**63 - 1,
        after: int = 0,
        confirmation: str = "",
        kind: AuditKind | None = None,
    ) -> Sequence[AuditEntry]:
        """Entries of the audit, newest first."""
        wanted = [audit.c.seq < before, audit.c.seq > after]
        if kind is not None:
            wanted.append(audit.c.kind == kind)
        if confirmation:
            wanted.append(audit.c.confirmation == storable(confirmation))
        with self._reading("reading the audit") as one:
            found = [
                entry_of(row) for row in safe_rows(one, audit, *wanted, limit=limit, newest=True)
            ]
        for entry in found:
            if isinstance(entry, str):
                logger.warning("left out of what is shown of the audit: %s", entry)
        return [entry for entry in found if not isinstance(entry, str)]

    def audit_texts(self) -> Iterator[tuple[str, str]]:
        """The whole audit in its order: the text of each entry and the text's digest, as they are
        stored. No transaction is open between its parts, however long the reader takes.
        """
        after: int | None = -(2**63)
        while after is not None:
            with self._reading("reading the audit") as one:
                rows = safe_rows(one, audit, audit.c.seq > after, limit=_PART).all()
            yield from ((row.entry or "", row.digest or "") for row in rows)
            after = rows[-1].seq if len(rows) == _PART else None

    def audit_head(self) -> tuple[int, str]:
        """The number and digest of the last entry; 0 and zeros when there is none."""
        is_number = audit.c.seq.between(1, LARGEST_SEQ)
        with self._reading("reading the audit") as one:
            found = safe_rows(one, audit, is_number, limit=1, newest=True).one_or_none()
        return (0, NOTHING_BEFORE) if found is None else (found.seq or 0, found.digest or "")

    def checked(self, recomputed: Callable[[Confirmation], tuple[str, str]]) -> Trail:
        """Every entry of the audit followed, and every card held against it, as they are at one
        moment. What does not hold is in the trail's problems. `recomputed` makes the digest and
        the fingerprint from what is stored of a card.
        """
        trail = Trail(complete=True)
        with self._reading("checking the audit") as one:
            if one.dialect.name == "postgresql":
                one.execution_options(isolation_level="REPEATABLE READ")
            trail.follow(one)
            cards = safe_rows(one, confirmations)
            rows = {row.id or "without a readable id": row for row in cards}
            for id_ in rows.keys() | trail.cards.keys():
                row, known = rows.get(id_), trail.cards.get(id_)
                fault = "the audit knows nothing of it" if known is None else card_fault(row, known)
                card = None if row is None else card_of(row.body)
                if known and card and not fault:
                    told = (known.digest, known.fingerprint)
                    fault = "" if recomputed(card) == told else "its parameters were changed"
                if fault:
                    trail.problems.append((None, f"the confirmation {id_}: {fault}"))
        return trail
