"""The audit's chain: each entry has the digest of the one before it. Rows are read without trusting
them, since whoever can write to the database can put anything there; the `Trail` follows them, and
the tables of cards are only compared with what it says.
"""

import hashlib
from collections import defaultdict, deque
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import Struct, field
from msgspec.structs import asdict

from journeyman.records.confirmation import (
    AuditEntry,
    AuditKind,
    Confirmation,
    ConfirmationStatus,
    WrittenEntry,
)
from journeyman.store.confirmation_tables import audit
from journeyman.store.rows import storable

NOTHING_BEFORE = "0" * 64
"""What the first entry has as the digest before it."""
LARGEST_SEQ = 2**62
WINDOW_S = 3_600.0
"""The time over which requests are limited."""

_decode_entry = msgspec.json.Decoder(WrittenEntry).decode
_decode_card = msgspec.json.Decoder(Confirmation).decode

_NEXT: Mapping[str, Mapping[str, str]] = {
    "": {"submitted": "pending"},
    "pending": {
        **dict.fromkeys(("shared", "notified", "notice_failed", "edited", "voted"), "pending"),
        **dict.fromkeys(("approved", "auto_approved"), "approved"),
        **dict.fromkeys(("denied", "expired", "cancelled"), "closed"),
    },
    "approved": {
        **dict.fromkeys(("notified", "notice_failed"), "approved"),
        **dict.fromkeys(("cancelled", "redeemed"), "closed"),
    },
    "closed": {},
}
"""What may happen to a card in each stage, and its stage then. Nothing follows the end of it."""


def stage_of(status: ConfirmationStatus) -> str:
    """The stage of a card with this status."""
    return {"auto_approved": "approved"}.get(status, status if status in _NEXT else "closed")


def digest_of(text: str) -> str:
    """The digest of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


class _AnyText(sa.TypeDecorator[str]):
    """Text that is read as None where it is no UTF-8."""

    impl = sa.LargeBinary
    cache_ok = True

    def process_result_value(self, value: bytes | None, _dialect: sa.Dialect) -> str | None:
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            return None


@cache
def _safe_select(table: sa.Table, dialect: str) -> sa.Select[Any]:
    if dialect != "sqlite":
        return table.select()
    return sa.select(*(_safe(column).label(column.name) for column in table.c))


def _safe(column: sa.Column[Any]) -> sa.Case[Any]:
    found = sa.func.typeof(column)
    if isinstance(column.type, sa.Text):
        return sa.case((found == "text", sa.cast(column, _AnyText)))
    kind = "real" if isinstance(column.type, sa.Double) else "integer"
    return sa.case((found == kind, column))


def safe_rows(
    connection: sa.Connection,
    table: sa.Table,
    *where: sa.ColumnElement[bool],
    limit: int | None = None,
    newest: bool = False,
    **options: Any,
) -> sa.CursorResult[Any]:
    """Rows of a table as they can be read whatever is in them, by their numbers: SQLite lets any
    type into any column, and text that is no UTF-8, which is NULL here. `options` are those of the
    execution.
    """
    asked = _safe_select(table, connection.dialect.name).where(*where)
    asked = asked.order_by(table.c.seq.desc() if newest else table.c.seq).limit(limit)
    return connection.execute(asked, execution_options=options)


def entry_of(row: sa.Row[Any]) -> AuditEntry | str:
    """The entry of a row, or what is wrong with it."""
    try:
        written = _decode_entry(row.entry)
    except (msgspec.DecodeError, RecursionError, TypeError):
        return f"entry {row.seq} cannot be read"
    told = (written.seq, written.kind, written.confirmation, digest_of(row.entry))
    if told != (row.seq, row.kind, row.confirmation, row.digest):
        return f"entry {row.seq} was changed: its columns, its text and its digest do not agree"
    return AuditEntry(**asdict(written), digest=row.digest)


class Tracked(Struct, kw_only=True):
    """A card as the chain has it. `body` is the digest of the stored text of the card; empty when
    that was found changed, and nobody vouches for it.
    """

    stage: str = ""
    body: str = ""
    digest: str
    requester: str
    fingerprint: str
    expires_at: float
    entries: list[tuple[int, str]] = field(default_factory=list)
    """Number and digest of each entry that changed it."""


class Trail:
    """What the chain of one database says: whether it holds, which cards are open and in what
    stage, and who asked how often lately. A `complete` one is for checking: it keeps closed cards
    too, and every problem; otherwise a reset that an administrator made is an end to problems.
    """

    def __init__(self, *, complete: bool = False) -> None:
        self._complete = complete
        self.seq = 0
        self.digest = NOTHING_BEFORE
        self.cards: dict[str, Tracked] = {}
        self.alike: dict[str, str] = {}
        """The card that waits, by the fingerprint of its request."""
        self.problems: list[tuple[int | None, str]] = []
        self._times: defaultdict[tuple[str, ...], deque[float]] = defaultdict(deque)

    def follow(self, connection: sa.Connection) -> None:
        """Take in what was added."""
        if self.seq:
            rows = safe_rows(connection, audit, audit.c.seq > self.seq)
        else:  # all, also what has no number
            rows = safe_rows(connection, audit, yield_per=1_000)
        for row in rows:
            self._add(row)

    def take(self, entry: AuditEntry) -> None:
        """Take in an entry that is being written at the end."""
        self.seq, self.digest = entry.seq, entry.digest
        self._happened(entry)

    def stage_after(self, id_: str, kind: AuditKind) -> str | None:
        """The stage of a card after this happens to it; None where it cannot happen."""
        card = self.cards.get(id_)
        return _NEXT[card.stage if card else ""].get(kind)

    def times(self, key: tuple[str, ...], now: float) -> list[float]:
        """When (requester, action) was asked for lately, or (requester,) asked people."""
        return list(self._recent(key, now))

    def _recent(self, key: tuple[str, ...], now: float) -> deque[float]:
        times = self._times[key]
        while times and times[0] <= now - WINDOW_S:
            times.popleft()
        return times

    def waiting(self) -> list[tuple[float, str]]:
        """The cards that wait, each with the end of its time."""
        cards = self.cards.items()
        return [(card.expires_at, id_) for id_, card in cards if card.stage == "pending"]

    def fault(self, connection: sa.Connection, card: Tracked) -> str:
        """Why the entries about a card cannot be relied on as stored now; or empty."""
        if self.problems:
            return self.problems[0][1]
        numbers = [seq for seq, _ in card.entries]
        rows = safe_rows(connection, audit, audit.c.seq.in_(numbers)).all()
        wrong = (found for row in rows if isinstance(found := entry_of(row), str))
        if [(row.seq, row.digest) for row in rows] != card.entries:
            return "entries about it are not the ones that were written"
        return next(wrong, "")

    def _add(self, row: sa.Row[Any]) -> None:
        seq = row.seq
        if not isinstance(seq, int) or not 0 < seq < LARGEST_SEQ:
            named = "something that is no whole number" if seq is None else seq
            self._problem(None, f"an entry has the number {named}")
            return
        entry = entry_of(row)
        if seq != self.seq + 1:
            missing = self.seq + 1
            self._problem(missing, f"entry {missing} is missing; the next one is {seq}")
        elif not isinstance(entry, str) and entry.previous != self.digest:
            self._problem(seq, f"entry {seq} does not follow the entry before it")
        self.seq, self.digest = seq, row.digest or ""
        if isinstance(entry, str):
            self._problem(seq, entry)
        else:
            self._happened(entry)

    def _problem(self, seq: int | None, what: str) -> None:
        if self._complete or not self.problems:
            self.problems.append((seq, what))

    def _happened(self, entry: AuditEntry) -> None:
        if entry.kind == "anchor_reset" and not self._complete:
            self.problems.clear()
        about, requester = entry.about, entry.actor.removeprefix("agent:")
        if entry.kind in ("submitted", "shared"):
            keys: list[tuple[str, ...]] = [(requester, str(about.get("counted_as", "")))]
            for key in [*keys, (requester,)] if about.get("asks") is True else keys:
                self._recent(key, entry.at).append(entry.at)
        if not isinstance(body := about.get("card"), str):
            return
        id_, stage = entry.confirmation, self.stage_after(entry.confirmation, entry.kind)
        if (card := self.cards.get(id_)) is None and entry.kind in ("submitted", "migrated"):
            stage = about.get("stage", "pending")
            ends = about.get("expires_at")
            card = Tracked(
                digest=str(about.get("digest", "")),
                requester=requester,
                fingerprint=str(about.get("fingerprint", "")),
                expires_at=ends if isinstance(ends, int | float) else entry.at,
            )
        if card is None or stage is None:
            where = "not open" if card is None else card.stage
            self._problem(
                entry.seq, f"entry {entry.seq} says {entry.kind} of {id_}, which is {where}"
            )
            return
        digest = str(about.get("digest", card.digest))
        if entry.kind == "edited":
            card.digest = digest
        elif digest != card.digest:
            self._problem(entry.seq, f"entry {entry.seq} has another digest than {id_} had")
        card.body = body
        card.stage = stage if stage in ("pending", "approved") else "closed"
        card.entries.append((entry.seq, entry.digest))
        self.cards[id_] = card
        if card.stage == "pending":
            self.alike[card.fingerprint] = id_
        elif self.alike.get(card.fingerprint) == id_:
            del self.alike[card.fingerprint]
        if card.stage == "closed" and not self._complete:
            del self.cards[id_]


def card_of(body: str | bytes | None) -> Confirmation | None:
    """The card that a text stands for, if it does for one."""
    try:
        return _decode_card(body or b"")
    except (msgspec.DecodeError, RecursionError, TypeError):
        return None


def card_fault(row: sa.Row[Any] | None, known: Tracked) -> str:
    """In what a stored card differs from what the chain says of it; empty when in nothing."""
    card = None if row is None else card_of(row.body)
    if row is None or card is None:
        return "its row is gone or cannot be read"
    told = (digest_of(row.body), card.requester, card.digest, stage_of(card.status))
    if told != (known.body, known.requester, known.digest, known.stage):
        return "it is not as the audit says"
    told_by_columns = (row.seq, row.id, row.requester, row.status, row.created_at)
    submitted, requester = known.entries[0][0], storable(card.requester)
    if told_by_columns != (submitted, card.id, requester, card.status, card.created_at):
        return "its columns say something else than the rest of it"
    return ""
