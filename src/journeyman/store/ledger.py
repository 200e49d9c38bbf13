"""One transaction over confirmations: cards, what was asked and when, the whitelist, credentials,
and the audit that is written with them. Only one is open at a time on either database, so what it
reads stays true until it ends.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from journeyman.records.confirmation import (
    AuditEntry,
    AuditKind,
    Confirmation,
    Credential,
    CredentialKind,
    WhitelistEntry,
)
from journeyman.store.asked import Asked
from journeyman.store.audit import Chain
from journeyman.store.confirmation_tables import (
    confirmations,
    credentials,
    spent_links,
    whitelist,
)
from journeyman.store.prepared import Inserting, Prepared
from journeyman.store.rows import storable
from journeyman.store.values import json_text

_decode_card = msgspec.json.Decoder(Confirmation).decode
_decode_entry = msgspec.json.Decoder(WhitelistEntry).decode
_decode_credential = msgspec.json.Decoder(Credential).decode

_cards = confirmations.c

# Made once: building a statement takes longer than running it.
_BY_ID = Prepared(sa.select(_cards.body).where(_cards.id == sa.bindparam("id")))
_DUE = (
    sa.select(_cards.body)
    .where(_cards.status == "pending", _cards.expires_at <= sa.bindparam("now"))
    .order_by(_cards.expires_at)
    .limit(500)
)
_LISTED = Prepared(sa.select(whitelist.c.action).where(whitelist.c.revoked.is_(False)).distinct())
_ENTRIES = sa.select(whitelist.c.body).where(
    whitelist.c.action == sa.bindparam("action"), whitelist.c.revoked.is_(False)
)
_ADD_CARD = Inserting(
    confirmations,
    *("id", "fingerprint", "action", "requester", "status", "created_at", "expires_at", "body"),
)
_SAVE_CARD = Prepared(
    confirmations.update()
    .where(_cards.id == sa.bindparam("card"))
    .values(status=sa.bindparam("now_status"), body=sa.bindparam("now_body"))
)

_OWNER = Prepared(
    sa.select(credentials.c.body).where(
        credentials.c.kind == "agent",
        credentials.c.name == sa.bindparam("name"),
        credentials.c.revoked.is_(False),
    )
)

WINDOW_S = 3_600.0
"""The time over which submissions are limited."""


class KnownCredential(NamedTuple):
    """A credential with what is kept beside it and never shown."""

    credential: Credential
    totp_secret: str
    totp_step: int


class Ledger:
    """What may be read and written in one transaction at the time `now`."""

    def __init__(self, connection: sa.Connection, now: float) -> None:
        self._connection = connection
        self._chain = Chain(connection)
        self.now = now
        self.asked = Asked(connection, now, now - WINDOW_S)
        self._adding: dict[str, str] = {}
        self._saving: set[str] = set()
        self._listed: set[str] | None = None
        self._owners: dict[str, str] = {}
        self.changed: dict[str, Confirmation] = {}
        """The cards that this transaction made or changed, as they are at its end."""

    @property
    def entries(self) -> Sequence[AuditEntry]:
        """The audit entries of this transaction."""
        return self._chain.entries

    def note(
        self, kind: AuditKind, actor: str, confirmation: str = "", /, **about: Any
    ) -> AuditEntry:
        """Write down that something happened."""
        return self._chain.note(self.now, kind, actor, confirmation, about)

    def flush(self) -> None:
        """Write what is not yet written; called once, at the end."""
        self._write_cards()
        self.asked.flush()
        self._chain.flush()

    # Cards

    def find(self, id_: str) -> Confirmation | None:
        if id_ in self.changed:
            return self.changed[id_]
        found = _BY_ID.first(self._connection, id=storable(id_))
        return None if found is None else _decode_card(found[0])

    def due(self) -> Sequence[Confirmation]:
        """Cards whose time is over though nobody said so; the 500 that are longest due."""
        self._write_cards()
        found = self._connection.execute(_DUE, {"now": self.now}).scalars()
        return [_decode_card(body) for body in found]

    def add(self, card: Confirmation, fingerprint: str) -> None:
        """Keep a new card; it is written with the others at the end."""
        self.changed[card.id] = card
        self._adding[card.id] = fingerprint

    def save(self, card: Confirmation) -> None:
        """Keep what a card has become; it is written with the others at the end."""
        self.changed[card.id] = card
        if card.id not in self._adding:
            self._saving.add(card.id)

    def _write_cards(self) -> None:
        if self._adding:
            rows = [
                _card_values(self.changed[id_], fingerprint)
                for id_, fingerprint in self._adding.items()
            ]
            _ADD_CARD.many(self._connection, rows)
            self._adding = {}
        if self._saving:
            saved = (self.changed[id_] for id_ in self._saving)
            rows = [
                {"card": card.id, "now_status": card.status, "now_body": json_text(card)}
                for card in saved
            ]
            _SAVE_CARD.many(self._connection, rows)
            self._saving = set()

    def is_approval_noted(self, card: Confirmation) -> bool:
        """Whether the audit knows that what a card stands for now was approved."""
        return self._chain.has(card.id, ("approved", "auto_approved"), card.digest)

    # The whitelist

    def whitelisted(self, action: str) -> Sequence[WhitelistEntry]:
        """The entries for an action that were not revoked."""
        if self._listed is None:
            self._listed = {action for (action,) in _LISTED.rows(self._connection)}
        if storable(action) not in self._listed:
            return []
        found = self._connection.execute(_ENTRIES, {"action": storable(action)}).scalars()
        return [_decode_entry(body) for body in found]

    def find_entry(self, id_: str) -> WhitelistEntry | None:
        asked = sa.select(whitelist.c.body).where(whitelist.c.id == storable(id_))
        found = self._connection.execute(asked).scalar_one_or_none()
        return None if found is None else _decode_entry(found)

    def add_entry(self, entry: WhitelistEntry) -> None:
        self._listed = None
        self._connection.execute(
            whitelist.insert(),
            {
                "id": entry.id,
                "action": storable(entry.action),
                "revoked": entry.revoked_at is not None,
                "body": json_text(entry),
            },
        )

    def save_entry(self, entry: WhitelistEntry) -> None:
        this = whitelist.update().where(whitelist.c.id == entry.id)
        values = {"revoked": entry.revoked_at is not None, "body": json_text(entry)}
        self._connection.execute(this.values(values))

    # Credentials

    def find_credential(self, kind: CredentialKind, name: str) -> KnownCredential | None:
        """The one of this kind and name that was not revoked."""
        columns = credentials.c
        asked = credentials.select().where(
            columns.kind == kind, columns.name == storable(name), columns.revoked.is_(False)
        )
        found = self._connection.execute(asked.limit(1)).one_or_none()
        if found is None:
            return None
        known = _decode_credential(found.body)
        return KnownCredential(known, found.totp_secret, found.totp_step)

    def owner_of(self, agent: str) -> str:
        """The approver whose agent it is; empty where none is known."""
        if agent not in self._owners:
            found = _OWNER.first(self._connection, name=storable(agent))
            self._owners[agent] = "" if found is None else _decode_credential(found[0]).owner
        return self._owners[agent]

    def add_credential(self, credential: Credential, secret_digest: str) -> None:
        self._owners.clear()
        self._connection.execute(
            credentials.insert(),
            {
                "id": credential.id,
                "kind": credential.kind,
                "name": storable(credential.name),
                "secret_digest": secret_digest,
                "revoked": False,
                "totp_secret": "",
                "totp_step": 0,
                "body": json_text(credential),
            },
        )

    def save_credential(self, credential: Credential, *, totp_secret: str | None = None) -> None:
        self._owners.clear()
        values: dict[str, Any] = {
            "revoked": credential.revoked_at is not None,
            "body": json_text(credential),
        }
        if totp_secret is not None:
            values["totp_secret"] = totp_secret
        this = credentials.update().where(credentials.c.id == credential.id)
        self._connection.execute(this.values(values))

    def revoke_sessions(self, name: str) -> None:
        """End every session of an approver."""
        columns = credentials.c
        mine = (columns.kind == "session") & (columns.name == storable(name))
        self._connection.execute(credentials.update().where(mine).values(revoked=True))

    def use_totp_step(self, id_: str, step: int) -> None:
        """Remember the step of a code, so that the code is not taken twice."""
        this = credentials.update().where(credentials.c.id == id_)
        self._connection.execute(this.values(totp_step=step))

    def spend_link(self, nonce: str) -> bool:
        """Whether the link was not used before; from now on it was."""
        asked = sa.select(spent_links.c.nonce).where(spent_links.c.nonce == nonce)
        if self._connection.execute(asked).one_or_none() is not None:
            return False
        self._connection.execute(spent_links.insert(), {"nonce": nonce, "at": self.now})
        return True


def _card_values(card: Confirmation, fingerprint: str) -> dict[str, Any]:
    return {
        "id": card.id,
        "fingerprint": fingerprint,
        "action": storable(card.action),
        "requester": storable(card.requester),
        "status": card.status,
        "created_at": card.created_at,
        "expires_at": card.expires_at,
        "body": json_text(card),
    }
