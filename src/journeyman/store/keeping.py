"""One transaction of learning: what sessions taught takes the place of what they taught before.

A pattern is shown as the earliest session had it. Only what differs is written, so that learning
the same again changes nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from journeyman.records import MinedSession, Pattern, PatternId, SearchKeys, SessionId
from journeyman.store import counting
from journeyman.store.counting import Key, Seen
from journeyman.store.episodes import EpisodeKey, episode_values
from journeyman.store.forgotten import without_forgotten
from journeyman.store.quarantine import mined_as_decided, replace_kept_out
from journeyman.store.rows import storable
from journeyman.store.tables import episodes, mined, patterns, sessions, sightings
from journeyman.store.values import json_text, parts

_this_row: sa.BindParameter[int] = sa.bindparam("this_row")
_UPDATE_PATTERN = patterns.update().where(patterns.c.row_id == _this_row)
_STORED: sa.Select[Any] = sa.select(patterns, sessions.c.id.label("shown")).join(
    sessions, sessions.c.row_id == patterns.c.origin_row
)


class _Offer(NamedTuple):
    """A pattern as the earliest of the sessions has it that were mined now."""

    pattern: Pattern
    session: SessionId
    age: tuple[float, str]


class Keeping:
    """Keeps what sessions taught, on an open transaction."""

    def __init__(
        self, connection: sa.Connection, rules: str, keys: Mapping[EpisodeKey, SearchKeys]
    ) -> None:
        self._connection = connection
        self._rules = rules
        self._keys = keys
        self._has_changed = False

    def keep(self, found: Iterable[MinedSession]) -> None:
        """Keep all of it, but for sessions that changed or went since they were mined, and for what
        a person has had forgotten, has released or no longer releases since then.
        """
        given = without_forgotten(self._connection, {one.session: one for one in found})
        given = mined_as_decided(self._connection, given)
        rows = self._session_rows(given)
        taken = [one for one in given.values() if one.session in rows]
        if not taken:
            return
        before = counting.sightings_in(self._connection, list(rows.values()))
        pattern_rows = self._show(_offers(taken), rows)
        after = {
            (pattern_rows[pattern.id], rows[one.session]): Seen.of(pattern)
            for one in taken
            for pattern in one.patterns
        }
        self._count(before, after)
        self._drop_orphans(list(rows.values()), frozenset(pattern_rows.values()))
        self._replace_episodes(taken, rows)
        replace_kept_out(self._connection, {rows[one.session]: one.kept_out for one in taken})
        self._mark(taken, rows)
        if self._has_changed:
            counting.bump(self._connection)

    def _session_rows(self, given: Mapping[SessionId, MinedSession]) -> dict[SessionId, int]:
        columns = sessions.c
        asked = (
            sa.select(columns.id, columns.row_id, columns.digest, columns.outcome)
            .add_columns(columns.end_reason)
            .order_by(columns.row_id)
            # One that is being deleted: wait until it is gone. SQLite has one writer anyway.
            .with_for_update(read=True, key_share=True)
        )
        rows: dict[SessionId, int] = {}
        for some in parts(list(given)):
            for row in self._connection.execute(asked.where(columns.id.in_(some))):
                one = given[row.id]
                was = (one.digest, one.outcome, one.end_reason)
                if was == (row.digest, row.outcome, row.end_reason):
                    rows[row.id] = row.row_id
        return rows

    def _show(
        self, offers: Mapping[PatternId, _Offer], session_rows: Mapping[SessionId, int]
    ) -> dict[PatternId, int]:
        """Insert new patterns; show an old one anew if an earlier session has it, or if the session
        as whose it was shown is among these. The row of each.
        """
        stored = self._stored(list(offers))
        later: list[_Offer] = []
        inserted: list[dict[str, Any]] = []
        updated: list[dict[str, Any]] = []
        for id_, offer in offers.items():
            old, values = stored.get(id_), _values(offer.pattern, session_rows[offer.session])
            if old is None:
                inserted.append(values)
                continue
            shown = _age(old.shown_at, old.shown)
            is_obsolete = old.shown in session_rows
            if (is_obsolete or offer.age < shown) and _differs(old, values):
                updated.append({"this_row": old.row_id, **values})
            if is_obsolete and offer.age > shown:
                later.append(offer)
        if inserted:
            self._connection.execute(patterns.insert(), inserted)
        if updated:
            self._connection.execute(_UPDATE_PATTERN, updated)
        rows = {id_: row.row_id for id_, row in stored.items()}
        rows |= self._rows_of([one["id"] for one in inserted])
        self._has_changed |= bool(inserted or updated)
        self._look_for_earlier({rows[offer.pattern.id]: offer for offer in later})
        return rows

    def _stored(self, ids: Sequence[PatternId]) -> dict[PatternId, sa.Row[Any]]:
        found = {}
        for some in parts(ids):
            for row in self._connection.execute(_STORED.where(patterns.c.id.in_(some))):
                found[PatternId(row.id)] = row
        return found

    def _rows_of(self, ids: Sequence[str]) -> dict[PatternId, int]:
        asked = sa.select(patterns.c.id, patterns.c.row_id)
        found: dict[PatternId, int] = {}
        for some in parts(ids):
            for id_, row in self._connection.execute(asked.where(patterns.c.id.in_(some))):
                found[PatternId(id_)] = row
        return found

    def _replace_episodes(
        self, taken: Sequence[MinedSession], rows: Mapping[SessionId, int]
    ) -> None:
        columns = [column for column in episodes.c if column.name != "row_id"]
        asked = sa.select(*columns).order_by(episodes.c.row_id)
        old: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        for some in parts(list(rows.values())):
            found = self._connection.execute(asked.where(episodes.c.session_row.in_(some)))
            for row in found.mappings():
                old[row["session_row"]].append(dict(row))
        inserted: list[dict[str, Any]] = []
        replaced: list[int] = []
        for one in taken:
            session_row = rows[one.session]
            new = [
                {"session_row": session_row, **episode_values(episode, self._keys)}
                for episode in one.episodes
            ]
            if new != old[session_row]:
                inserted += new
                replaced.append(session_row)
        self._has_changed |= bool(replaced)
        for some in parts([row for row in replaced if old[row]]):
            self._connection.execute(episodes.delete().where(episodes.c.session_row.in_(some)))
        if inserted:
            self._connection.execute(episodes.insert(), inserted)

    def _look_for_earlier(self, shown: Mapping[int, _Offer]) -> None:
        """Patterns that their own session now has later than before: another session may be the
        earliest, and is mined again to show them in its words.
        """
        asked = sa.select(
            sightings.c.pattern_row, sightings.c.session_row, sightings.c.first_seen, sessions.c.id
        ).join(sessions, sessions.c.row_id == sightings.c.session_row)
        earlier: set[int] = set()
        for some in parts(list(shown)):
            for row in self._connection.execute(asked.where(sightings.c.pattern_row.in_(some))):
                if _age(row.first_seen, row.id) < shown[row.pattern_row].age:
                    earlier.add(row.session_row)
        for some in parts(sorted(earlier)):
            self._connection.execute(mined.delete().where(mined.c.session_row.in_(some)))

    def _count(self, before: dict[Key, Seen], after: dict[Key, Seen]) -> None:
        lost, gained = counting.replace(self._connection, before, after)
        only_gained = {row: seen for row, seen in gained.items() if row not in lost}
        counting.add_counts(self._connection, only_gained)
        counting.recount(self._connection, lost)
        self._has_changed |= bool(lost or gained)

    def _drop_orphans(self, session_rows: Sequence[int], kept: frozenset[int]) -> None:
        """Patterns that were shown as one of these sessions had them, and that none of these has
        any more. Other sessions that had them are mined again, to show them in their words.
        """
        gone: list[int] = []
        for some in parts(session_rows):
            asked = sa.select(patterns.c.row_id).where(patterns.c.origin_row.in_(some))
            gone += [row for row in self._connection.execute(asked).scalars() if row not in kept]
        for some in parts(gone):
            counting.mine_again(self._connection, patterns.c.row_id.in_(some))
            self._connection.execute(patterns.delete().where(patterns.c.row_id.in_(some)))

    def _mark(self, found: Iterable[MinedSession], rows: Mapping[SessionId, int]) -> None:
        for some in parts(list(rows.values())):
            self._connection.execute(mined.delete().where(mined.c.session_row.in_(some)))
        self._connection.execute(
            mined.insert(),
            [
                {
                    "session_row": rows[one.session],
                    "digest": one.digest,
                    "outcome": one.outcome,
                    "end_reason": one.end_reason,
                    "rules": self._rules,
                    "reason": one.reason,
                }
                for one in found
            ],
        )


def _offers(found: Iterable[MinedSession]) -> dict[PatternId, _Offer]:
    offers: dict[PatternId, _Offer] = {}
    for one in found:
        for pattern in one.patterns:
            known, age = offers.get(pattern.id), _age(pattern.first_seen, one.session)
            if known is None or age < known.age:
                offers[pattern.id] = _Offer(pattern, one.session, age)
    return offers


def _differs(old: sa.Row[Any], values: Mapping[str, Any]) -> bool:
    return any(getattr(old, name) != value for name, value in values.items())


def _values(pattern: Pattern, session_row: int) -> dict[str, Any]:
    return {
        "id": pattern.id,
        "origin_row": session_row,
        "kind": pattern.kind,
        "task_type": pattern.task_type,
        "quarantined": pattern.quarantined,
        "tokens": pattern.tokens,
        "shown_at": pattern.first_seen,
        "intent": storable(pattern.intent),
        "steps": json_text(pattern.steps),
    }


def _age(first_seen: float | None, session_id: str) -> tuple[float, str]:
    """What sorts sightings of one pattern, as `Pattern.age` does."""
    return float("inf") if first_seen is None else first_seen, session_id
