"""The audit chain: each entry contains the digest of the entry before it.

Anyone with write access to the database can store anything there, so rows are read without trusting
them. `AuditChain` follows the entries; the stored confirmations are only compared with it.
"""

import hashlib
from collections import defaultdict, deque
from collections.abc import Mapping
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
from journeyman.store.rows import storable
from journeyman.store.tables import audit

GENESIS_DIGEST = "0" * 64
"""The previous digest of the first entry."""
LARGEST_SEQ = 2**62
WINDOW_S = 3_600.0
"""The period over which requests are rate-limited."""

_decode_entry = msgspec.json.Decoder(WrittenEntry).decode
_decode_card = msgspec.json.Decoder(Confirmation).decode

_TRANSITIONS: Mapping[str, Mapping[str, str]] = {
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
"""The events that each stage of a card allows, and the stage that follows. `closed` is final."""


def stage_of(status: ConfirmationStatus) -> str:
    """Return the stage of a card with this status."""
    return {"auto_approved": "approved"}.get(status, status if status in _TRANSITIONS else "closed")


def digest_of(text: str) -> str:
    """Return the SHA-256 digest of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def safe_rows(
    connection: sa.Connection,
    table: sa.Table,
    *where: sa.ColumnElement[bool],
    limit: int | None = None,
    newest: bool = False,
    **options: Any,
) -> sa.CursorResult[Any]:
    """Select rows of a table, ordered by `seq`. Their values may have any type: SQLite accepts any
    in any column, and text that is not UTF-8. `options` are execution options.
    """
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.text_factory = lambda data: data.decode("utf-8", "replace")
    query = table.select().where(*where)
    query = query.order_by(table.c.seq.desc() if newest else table.c.seq).limit(limit)
    return connection.execute(query, execution_options=options)


def entry_of(row: sa.Row[Any]) -> AuditEntry | str:
    """Return the entry in a row, or a description of what is wrong with it."""
    try:
        written = _decode_entry(only_text(row.entry))
    except (msgspec.DecodeError, RecursionError):
        return f"entry {row.seq} cannot be read"
    in_text = (written.seq, written.kind, written.confirmation, digest_of(row.entry))
    if in_text != (row.seq, row.kind, row.confirmation, row.digest):
        return f"entry {row.seq} was changed: its columns, text and digest do not match"
    return AuditEntry(**asdict(written), digest=row.digest)


class TrackedCard(Struct, kw_only=True):
    """A card according to the chain. `body` is the digest of the card's stored text; empty if that
    text was found changed and is not vouched for.
    """

    stage: str = ""
    body: str = ""
    digest: str
    requester: str
    fingerprint: str
    expires_at: float
    entries: list[tuple[int, str]] = field(default_factory=list)
    """Number and digest of each entry that changed the card."""


class AuditChain:
    """The state that the audit entries of one database add up to: whether the chain is intact,
    which cards are open and in what stage, and the recent requests of each requester. A `complete`
    chain is for verification: it also keeps closed cards, and every problem; otherwise a reset by
    an administrator clears the problems.
    """

    def __init__(self, *, complete: bool = False) -> None:
        self._complete = complete
        self.seq = 0
        self.digest = GENESIS_DIGEST
        self.cards: dict[str, TrackedCard] = {}
        self.pending_by_fingerprint: dict[str, str] = {}
        """The pending card for each fingerprint of a request."""
        self.problems: list[tuple[int | None, str]] = []
        self._times: defaultdict[tuple[str, ...], deque[float]] = defaultdict(deque)

    def read_new(self, connection: sa.Connection) -> None:
        """Read and check the entries added since the last call."""
        if self.seq:
            rows = safe_rows(connection, audit, audit.c.seq > self.seq)
        else:  # every row, including those without a valid number
            rows = safe_rows(connection, audit, yield_per=1_000)
        for row in rows:
            self._check_row(row)

    def append(self, entry: AuditEntry) -> None:
        """Apply an entry that is being written at the end."""
        self.seq, self.digest = entry.seq, entry.digest
        self._apply(entry)

    def stage_after(self, id_: str, kind: AuditKind) -> str | None:
        """Return the stage of a card after this event, or None if the event is not possible."""
        card = self.cards.get(id_)
        return _TRANSITIONS[card.stage if card else ""].get(kind)

    def times(self, key: tuple[str, ...], now: float) -> list[float]:
        """Return when any agent recently asked people for ("", action, "asked"), when (requester,
        action) was approved without asking, or when (requester,) asked people for anything.
        """
        return list(self._recent(key, now))

    def _recent(self, key: tuple[str, ...], now: float) -> deque[float]:
        times = self._times[key]
        while times and times[0] <= now - WINDOW_S:
            times.popleft()
        return times

    def waiting(self) -> list[tuple[float, str]]:
        """Return the expiry and id of each pending card."""
        cards = self.cards.items()
        return [(card.expires_at, id_) for id_, card in cards if card.stage == "pending"]

    def fault(self, connection: sa.Connection, card: TrackedCard) -> str:
        """Return why the stored entries about a card cannot be relied on now, or ""."""
        if self.problems:
            return self.problems[0][1]
        numbers = [seq for seq, _ in card.entries]
        rows = safe_rows(connection, audit, audit.c.seq.in_(numbers)).all()
        faults = (entry for row in rows if isinstance(entry := entry_of(row), str))
        if [(row.seq, row.digest) for row in rows] != card.entries:
            return "the entries about it are not the ones that were written"
        return next(faults, "")

    def _check_row(self, row: sa.Row[Any]) -> None:
        seq = row.seq
        if not isinstance(seq, int) or not 0 < seq < LARGEST_SEQ:
            number = "that is not a whole number" if seq is None else seq
            self._add_problem(None, f"an entry has a number {number}")
            return
        entry = entry_of(row)
        if seq != self.seq + 1:
            missing = self.seq + 1
            self._add_problem(missing, f"entry {missing} is missing; the next one is {seq}")
        elif not isinstance(entry, str) and entry.previous != self.digest:
            self._add_problem(seq, f"entry {seq} does not follow the entry before it")
        self.seq, self.digest = seq, only_text(row.digest)
        if isinstance(entry, str):
            self._add_problem(seq, entry)
        else:
            self._apply(entry)

    def _add_problem(self, seq: int | None, description: str) -> None:
        if self._complete or not self.problems:
            self.problems.append((seq, description))

    def _apply(self, entry: AuditEntry) -> None:
        if entry.kind == "anchor_reset" and not self._complete:
            self.problems.clear()
        about, requester = entry.about, entry.actor.removeprefix("agent:")
        if entry.kind in ("submitted", "shared"):
            # A request that shares a card counts as asked; a new card says whether it asks.
            asks = about.get("asks", entry.kind == "shared")
            action = str(about.get("counted_as", ""))
            key = ("", action, "asked") if asks else (requester, action)
            self._recent(key, entry.at).append(entry.at)
            if about.get("asks") is True:
                self._recent((requester,), entry.at).append(entry.at)
        if not isinstance(body := about.get("card"), str):
            return
        id_, stage = entry.confirmation, self.stage_after(entry.confirmation, entry.kind)
        if (card := self.cards.get(id_)) is None and entry.kind == "submitted":
            stage = about.get("stage", "pending")
            expires_at = about.get("expires_at")
            card = TrackedCard(
                digest=str(about.get("digest", "")),
                requester=requester,
                fingerprint=str(about.get("fingerprint", "")),
                expires_at=expires_at if isinstance(expires_at, int | float) else entry.at,
            )
        if card is None or stage is None:
            state = "not open" if card is None else card.stage
            self._add_problem(
                entry.seq, f"entry {entry.seq} records {entry.kind} for {id_}, which is {state}"
            )
            return
        digest = str(about.get("digest", card.digest))
        if entry.kind == "edited":
            card.digest = digest
        elif digest != card.digest:
            self._add_problem(entry.seq, f"entry {entry.seq} has a different digest than {id_}")
        card.body = body
        card.stage = stage if stage in ("pending", "approved") else "closed"
        card.entries.append((entry.seq, entry.digest))
        self.cards[id_] = card
        if card.stage == "pending":
            self.pending_by_fingerprint[card.fingerprint] = id_
        elif self.pending_by_fingerprint.get(card.fingerprint) == id_:
            del self.pending_by_fingerprint[card.fingerprint]
        if card.stage == "closed" and not self._complete:
            del self.cards[id_]


def only_text(value: Any) -> str:
    """Return a stored value if it is text, else an empty text."""
    return value if isinstance(value, str) else ""


def card_of(body: Any) -> Confirmation | None:
    """Decode the stored text of a card; return None if it cannot be decoded."""
    try:
        return _decode_card(only_text(body))
    except (msgspec.DecodeError, RecursionError):
        return None


def card_fault(row: sa.Row[Any] | None, tracked: TrackedCard) -> str:
    """Return how a stored card differs from the chain's record of it, or ""."""
    card = None if row is None else card_of(row.body)
    if row is None or card is None:
        return "its row is missing or cannot be read"
    in_body = (digest_of(row.body), card.requester, card.digest, stage_of(card.status))
    if in_body != (tracked.body, tracked.requester, tracked.digest, tracked.stage):
        return "it differs from the audit"
    in_columns = (row.seq, row.id, row.requester, row.status, row.created_at)
    submitted, requester = tracked.entries[0][0], storable(card.requester)
    if in_columns != (submitted, card.id, requester, card.status, card.created_at):
        return "its columns do not match its content"
    return ""
