"""The write transaction of confirmations: everything that changes them, and the audit entries that
record each change.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from journeyman.records.confirmation import (
    AuditEntry,
    AuditKind,
    Confirmation,
    Credential,
    CredentialKind,
    Refusal,
    WhitelistEntry,
    WrittenEntry,
)
from journeyman.store.audit import AuditChain, card_fault, card_of, digest_of, safe_rows, stage_of
from journeyman.store.rows import json_text, storable, values_of
from journeyman.store.tables import (
    audit,
    confirmations,
    credentials,
    idempotency_keys,
    whitelist,
)

_MOST_DUE = 500

_Record = TypeVar("_Record", WhitelistEntry, Credential)

_TABLES: dict[type, sa.Table] = {WhitelistEntry: whitelist, Credential: credentials}
_DECODERS: dict[type, Callable[[str], Any]] = {
    kind: msgspec.json.Decoder(kind).decode for kind in _TABLES
}


def _matches(table: sa.Table, columns: dict[str, Any]) -> sa.ColumnElement[bool]:
    values = {
        name: storable(value) if isinstance(value, str) else value
        for name, value in columns.items()
    }
    return sa.and_(*(table.c[name] == value for name, value in values.items()))


def select_records(
    connection: sa.Connection, kind: type[_Record], /, **columns: Any
) -> list[_Record]:
    """Return the whitelist entries or credentials with these column values, oldest first."""
    table, decode = _TABLES[kind], _DECODERS[kind]
    query = sa.select(table.c.body).where(_matches(table, columns)).order_by(table.c.row_id)
    return [decode(body) for body in connection.execute(query).scalars()]


class Ledger:
    """Reads and writes in one transaction at the time `now`. A card changes only together with the
    audit entry that records the change: `record` is the only way to write a card.
    """

    def __init__(self, connection: sa.Connection, now: float, chain: AuditChain) -> None:
        self._connection = connection
        self._chain = chain
        self.now = now
        self.entries: list[AuditEntry] = []
        """The audit entries written in this transaction."""
        self.changed: dict[str, Confirmation] = {}
        """The cards that this transaction created or changed, in their final state."""

    def note(
        self, kind: AuditKind, actor: str, confirmation: str = "", /, **about: Any
    ) -> AuditEntry:
        """Add an audit entry."""
        written = WrittenEntry(
            seq=self._chain.seq + 1,
            at=self.now,
            kind=kind,
            actor=actor,
            confirmation=storable(confirmation),
            about=about,
            previous=self._chain.digest,
        )
        text = json_text(written)
        entry = AuditEntry(**msgspec.structs.asdict(written), digest=digest_of(text))
        self._chain.append(entry)
        self._connection.execute(audit.insert(), values_of(entry, audit, entry=text))
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
        """Write a card, and the audit entry that records the change and covers the whole card. A
        card that is not `vouched` for was found changed, and stays marked as such. Raise
        RuntimeError for an event that cannot follow the previous ones, such as a second redemption.
        """
        if self._chain.stage_after(card.id, kind) is None:
            raise RuntimeError(f"{kind} cannot follow the audit's last entry about {card.id}")
        body = json_text(card)
        entry = self.note(kind, actor, card.id, card=digest_of(body) if vouched else "", **about)
        values = values_of(card, confirmations, body=body)
        if kind == "submitted":
            self._connection.execute(confirmations.insert(), {**values, "seq": entry.seq})
        else:
            this = confirmations.c.id == card.id
            self._connection.execute(confirmations.update().where(this).values(values))
        self.changed[card.id] = card
        return entry

    def refused(
        self, actor: str, refusal: Refusal, confirmation: str = "", /, **about: Any
    ) -> Refusal:
        """Add an audit entry for a refused request, and return the refusal."""
        self.note("refused", actor, confirmation, code=refusal.code, **about)
        return refusal

    def check_writes(self) -> None:
        """Write something that changes nothing, so that the commit tests the database."""
        self._connection.execute(sa.text("UPDATE schema_version SET number = number"))

    def find(self, id_: str) -> Confirmation | None:
        """Return a card as stored; `fault` says whether it can be relied on."""
        if id_ in self.changed:
            return self.changed[id_]
        row = self._row(id_)
        return None if row is None else card_of(row.body)

    def fault(self, card: Confirmation, *, of_chain: bool = True) -> str:
        """Return why an open card must not be acted on, because it or its entries were changed; or
        "". Without `of_chain`, only the card itself is checked.
        """
        if card.id in self.changed:
            return ""
        tracked = self._chain.cards.get(card.id)
        if tracked is None:
            is_over = stage_of(card.status) == "closed"  # no further event is possible
            return "" if is_over else "the audit has no such open confirmation"
        fault = self._chain.fault(self._connection, tracked) if of_chain else ""
        return fault or card_fault(self._row(card.id), tracked)

    def due(self) -> Sequence[Confirmation]:
        """Return pending cards that have expired; 500 at most."""
        due = (id_ for at, id_ in self._chain.waiting() if at <= self.now)
        return list(islice(filter(None, map(self.find, due)), _MOST_DUE))

    def next_expiry(self) -> float | None:
        """Return when the next card expires."""
        return min((at for at, _ in self._chain.waiting()), default=None)

    def waiting_alike(self, fingerprint: str) -> Confirmation | None:
        """Return the pending card with the same content."""
        id_ = self._chain.pending_by_fingerprint.get(fingerprint)
        return None if id_ is None else self.find(id_)

    def times(self, *key: str) -> list[float]:
        """Return the recent times of a kind of request; the keys are those of `Chain.times`."""
        return self._chain.times(key, self.now)

    def find_key(self, requester: str, key: str) -> str | None:
        """Return the id of the card that was requested with this idempotency key."""
        query = self._select(idempotency_keys.c.confirmation, requester=requester, key=key)
        return query.scalar_one_or_none()

    def add_key(self, requester: str, key: str, card: str) -> None:
        values = {"requester": storable(requester), "key": storable(key), "confirmation": card}
        self._connection.execute(idempotency_keys.insert(), values)

    def _select(self, *selected: sa.Column[Any], **columns: Any) -> sa.CursorResult[Any]:
        condition = _matches(selected[0].table, columns)
        return self._connection.execute(sa.select(*selected).where(condition))

    def _row(self, id_: str) -> sa.Row[Any] | None:
        is_this = confirmations.c.id == storable(id_)
        return safe_rows(self._connection, confirmations, is_this).one_or_none()

    def add(self, record: WhitelistEntry | Credential, **columns: Any) -> None:
        """Store a new whitelist entry, or a credential with its `secret_digest`."""
        table = _TABLES[type(record)]
        values = values_of(record, table, revoked=False, body=json_text(record), **columns)
        self._connection.execute(table.insert(), values)

    def save(self, record: WhitelistEntry | Credential) -> None:
        """Store a changed record."""
        table, revoked = _TABLES[type(record)], record.revoked_at is not None
        values = {"revoked": revoked, "body": json_text(record)}
        self._connection.execute(table.update().where(table.c.id == record.id).values(values))

    def whitelisted(self, action: str) -> Sequence[WhitelistEntry]:
        """Return the entries for an action that are not revoked."""
        return select_records(self._connection, WhitelistEntry, action=action, revoked=False)

    def find_entry(self, id_: str) -> WhitelistEntry | None:
        return next(iter(select_records(self._connection, WhitelistEntry, id=id_)), None)

    def find_credential(self, kind: CredentialKind, name: str) -> Credential | None:
        """Return the unrevoked credential of this kind and name, if any."""
        records = select_records(self._connection, Credential, kind=kind, name=name, revoked=False)
        return next(iter(records), None)

    def owner_of(self, agent: str) -> str:
        """Return the approver who owns an agent, or ""."""
        credential = self.find_credential("agent", agent)
        return credential.owner if credential else ""

    def revoke_sessions(self, name: str) -> None:
        """End every session and login link of an approver."""
        for kind in ("session", "link"):
            mine = _matches(credentials, {"kind": kind, "name": name})
            self._connection.execute(credentials.update().where(mine).values(revoked=True))

    def spend_link(self, id_: str) -> bool:
        """Mark a login link as used; return whether it was unused before."""
        unused = _matches(credentials, {"kind": "link", "id": id_, "revoked": False})
        changed = self._connection.execute(credentials.update().where(unused).values(revoked=True))
        return changed.rowcount == 1
