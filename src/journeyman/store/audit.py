"""The audit's chain: each entry has the digest of the one before it, so that an entry changed, left
out or put in later is seen. What is cut off at the end shows only against a head noted elsewhere.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records.confirmation import AuditEntry, AuditKind
from journeyman.store.confirmation_tables import audit
from journeyman.store.prepared import Inserting, Prepared
from journeyman.store.values import json_text

NOTHING_BEFORE = "0" * 64
"""What the first entry has as the digest before it."""

_PART = 1_000


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as its text is written: every field but the digest, which covers the text."""

    seq: int
    at: float
    kind: AuditKind
    actor: str
    confirmation: str
    about: dict[str, Any]
    previous: str


_decode = msgspec.json.Decoder(Written).decode

_HEAD = Prepared(sa.select(audit.c.seq, audit.c.digest).order_by(audit.c.seq.desc()).limit(1))


_ADD = Inserting(audit, "seq", "kind", "confirmation", "entry", "digest")
_DIGEST = Prepared(sa.select(audit.c.digest).where(audit.c.seq == sa.bindparam("seq")))


class Chain:
    """The end of the chain inside one transaction. Entries are noted as things happen and written
    together by `flush`.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._head: tuple[int, str] | None = None
        self._rows: list[dict[str, Any]] = []
        self.entries: list[AuditEntry] = []

    def note(
        self, at: float, kind: AuditKind, actor: str, confirmation: str, about: dict[str, Any]
    ) -> AuditEntry:
        """Add an entry at the end."""
        if self._head is None:
            self._head = head(self._connection) or (0, NOTHING_BEFORE)
        seq, previous = self._head[0] + 1, self._head[1]
        text = json_text(
            Written(
                seq=seq,
                at=at,
                kind=kind,
                actor=actor,
                confirmation=confirmation,
                about=about,
                previous=previous,
            )
        )
        digest = digest_of(text)
        self._head = (seq, digest)
        self._rows.append(
            {
                "seq": seq,
                "kind": kind,
                "confirmation": confirmation,
                "entry": text,
                "digest": digest,
            }
        )
        entry = AuditEntry(
            seq=seq,
            at=at,
            kind=kind,
            actor=actor,
            confirmation=confirmation,
            about=about,
            previous=previous,
            digest=digest,
        )
        self.entries.append(entry)
        return entry

    def has(self, confirmation: str, kinds: Sequence[AuditKind], digest: str) -> bool:
        """Whether there is an entry of these kinds on a card with this digest."""
        asked = audit.select().where(audit.c.confirmation == confirmation, audit.c.kind.in_(kinds))
        written = [entry_of(row) for row in self._connection.execute(asked)]
        mine = [one for one in self.entries if one.confirmation == confirmation]
        return any(
            one.kind in kinds and one.about.get("digest") == digest for one in (*written, *mine)
        )

    def flush(self) -> None:
        """Write what was noted."""
        if self._rows:
            _ADD.many(self._connection, self._rows)
            self._rows = []


def digest_of(text: str) -> str:
    """The digest of an entry's text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def head(connection: sa.Connection) -> tuple[int, str] | None:
    """The number and digest of the last entry."""
    found = _HEAD.first(connection)
    return None if found is None else (found[0], found[1])


def has_entry(connection: sa.Connection, seq: int, digest: str) -> bool:
    """Whether the entry with this number has this digest; number 0 stands before the first."""
    found = _DIGEST.first(connection, seq=seq)
    return (NOTHING_BEFORE if seq == 0 else found and found[0]) == digest


def entry_of(row: sa.Row[Any]) -> AuditEntry:
    """The entry of a row. Raises msgspec.ValidationError when its text is none."""
    written = _decode(row.entry)
    return AuditEntry(**msgspec.structs.asdict(written), digest=row.digest)


def part_after(seq: int) -> sa.Select[Any]:
    """The query for the next rows of the chain."""
    return audit.select().where(audit.c.seq > seq).order_by(audit.c.seq).limit(_PART)


def rows_in_order(connection: sa.Connection) -> Iterator[sa.Row[Any]]:
    """The rows of the chain, some at a time."""
    after = 0
    while rows := connection.execute(part_after(after)).all():
        yield from rows
        after = rows[-1].seq


def first_break(
    rows: Iterable[sa.Row[Any]],
) -> tuple[int, str] | tuple[None, tuple[int, str]]:
    """The first entry that does not hold and why; or None and the head that was reached."""
    seq, previous = 0, NOTHING_BEFORE
    for row in rows:
        if row.seq != seq + 1:
            return seq + 1, f"entry {seq + 1} is missing; the next one is {row.seq}"
        if digest_of(row.entry) != row.digest:
            return row.seq, f"the text of entry {row.seq} is not the one its digest was made of"
        try:
            written = _decode(row.entry)
        except msgspec.DecodeError:
            return row.seq, f"entry {row.seq} cannot be read"
        if written.previous != previous:
            return row.seq, f"entry {row.seq} does not follow the entry before it"
        told = (written.seq, written.kind, written.confirmation)
        if told != (row.seq, row.kind, row.confirmation):
            return row.seq, f"the columns of entry {row.seq} say something else than its text"
        seq, previous = row.seq, row.digest
    return None, (seq, previous)
