"""What was asked and when, inside one transaction: how often an agent asked for an action, which
request waits with the same content, and which one had an idempotency key. A transaction takes many
submissions, so what it knows already is not read again, and what it adds is written together.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from journeyman.store.confirmation_tables import confirmations, submissions
from journeyman.store.prepared import Inserting, Prepared
from journeyman.store.rows import storable

_asked, _cards = submissions.c, confirmations.c
_newest = (_asked.at.desc(), _asked.row_id.desc())
_oldest = (_asked.at, _asked.row_id)


def _one(column: sa.ColumnElement[Any], *where: Any, order: Any) -> sa.ScalarSelect[Any]:
    return sa.select(column).where(*where).order_by(*order).limit(1).scalar_subquery()


@cache
def _seen_by(count: int) -> Prepared:
    """What there was before each of so many submissions, in one statement: a statement costs more
    than what it looks up, and a driver lets other threads run at each.
    """
    columns = ("requester", "action", "fingerprint")
    wanted = sa.values(*(sa.column(name, sa.Text) for name in columns), name="wanted")
    rows = [
        tuple(sa.bindparam(f"{name}{number}", type_=sa.Text) for name in columns)
        for number in range(count)
    ]
    of = wanted.data(rows).cte("wanted").c
    of_requester = _asked.requester == of.requester
    of_action = of_requester & (_asked.action == of.action)
    since = sa.bindparam("since", type_=sa.Double)
    recent, earlier = _asked.at > since, _asked.at <= since
    return Prepared(
        sa.select(
            of.requester,
            of.action,
            of.fingerprint,
            _one(_asked.ordinal, of_action, order=_newest),
            _one(_asked.ordinal, of_action, earlier, order=_newest),
            _one(_asked.at, of_action, recent, order=_oldest),
            _one(_asked.cards, of_requester, order=_newest),
            _one(_asked.cards, of_requester, earlier, order=_newest),
            _one(_asked.at, of_requester, recent, order=_oldest),
            _one(
                _cards.id,
                (_cards.fingerprint == of.fingerprint) & (_cards.status == "pending"),
                order=(_cards.row_id.desc(),),
            ),
        )
    )


_LARGEST_BIT = 6
_COUNT = Inserting(
    submissions,
    *("requester", "action", "at", "ordinal", "cards", "idempotency_key", "fingerprint"),
    "confirmation",
)
_TOLD = Prepared(
    sa.select(_asked.fingerprint, _asked.confirmation).where(
        _asked.requester == sa.bindparam("requester"),
        _asked.idempotency_key == sa.bindparam("key"),
    )
)


class Counted(NamedTuple):
    """How many there were in a time, how many ever, and when the first of that time was."""

    recent: int
    ever: int
    first_at: float | None

    def more(self, now: float) -> "Counted":
        return Counted(
            self.recent + 1, self.ever + 1, now if self.first_at is None else self.first_at
        )


class Wanted(NamedTuple):
    """Of which submission something is asked: who, which action, and what it has in common with
    identical ones.
    """

    requester: str
    action: str
    fingerprint: str


class Seen(NamedTuple):
    """What there was before a submission: of this action, of all of the agent's cards, and the id
    of the card that waits with the same content.
    """

    of_action: Counted
    cards: Counted
    alike: str | None


class Asked:
    """Submissions in one transaction at the time `now`; the limits' time begins at `since`."""

    def __init__(self, connection: sa.Connection, now: float, since: float) -> None:
        self._connection = connection
        self._now = now
        self._since = since
        self._of_action: dict[tuple[str, str], Counted] = {}
        self._cards: dict[str, Counted] = {}
        self._alike: dict[str, str] = {}
        self._told: dict[tuple[str, str], tuple[str, str]] = {}
        self._rows: list[dict[str, Any]] = []
        self._found: dict[tuple[str, ...], tuple[Any, ...]] = {}

    def look_up(self, wanted: Sequence[Wanted]) -> None:
        """Read at once what several submissions will ask for."""
        known = [tuple(map(storable, one)) for one in dict.fromkeys(wanted)]
        while known:
            # Few sizes, so that few statements are made; what fills one up asks for the last again.
            size = 1 << min((len(known) - 1).bit_length(), _LARGEST_BIT)
            some, known = known[:size], known[size:]
            values = {
                f"{name}{number}": value
                for number in range(size)
                for name, value in zip(
                    ("requester", "action", "fingerprint"),
                    some[min(number, len(some) - 1)],
                    strict=True,
                )
            }
            for row in _seen_by(size).rows(self._connection, since=self._since, **values):
                self._found[row[:3]] = row[3:]

    def seen(self, wanted: Wanted) -> Seen:
        """What there was until now, this transaction included."""
        requester, action, fingerprint = wanted
        stored = tuple(map(storable, wanted))
        if stored not in self._found:
            self.look_up([wanted])
        row = self._found[stored]
        of_action = self._of_action.get((requester, action)) or _counted(*row[:3])
        cards = self._cards.get(requester) or _counted(*row[3:6])
        return Seen(of_action, cards, self._alike.get(fingerprint, row[6]))

    def told(self, requester: str, key: str) -> tuple[str, str] | None:
        """The fingerprint and the card of the request that had this idempotency key."""
        if (requester, key) in self._told:
            return self._told[requester, key]
        found = _TOLD.first(self._connection, requester=storable(requester), key=storable(key))
        return None if found is None else (found[0], found[1])

    def count(
        self,
        seen: Seen,
        *,
        wanted: Wanted,
        key: str,
        card: str,
        is_new: bool,
    ) -> None:
        """Count a submission; `is_new` when it made a card."""
        requester, action, fingerprint = wanted
        of_action = seen.of_action.more(self._now)
        cards = seen.cards.more(self._now) if is_new else seen.cards
        self._of_action[requester, action] = of_action
        self._cards[requester] = cards
        self._alike[fingerprint] = card
        if key:
            self._told[requester, key] = (fingerprint, card)
        self._rows.append(
            {
                "requester": storable(requester),
                "action": storable(action),
                "at": self._now,
                "ordinal": of_action.ever,
                "cards": cards.ever,
                "idempotency_key": storable(key) or None,
                "fingerprint": fingerprint,
                "confirmation": card,
            }
        )

    def flush(self) -> None:
        """Write what was counted."""
        if self._rows:
            _COUNT.many(self._connection, self._rows)
            self._rows = []


def _counted(last: int | None, earlier: int | None, first_at: float | None) -> Counted:
    return Counted((last or 0) - (earlier or 0), last or 0, first_at)
