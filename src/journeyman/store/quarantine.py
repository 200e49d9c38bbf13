"""What rules excluded from learning, and what a person decided about it.

A decision applies to a key, in every session. Mining still finds what was released, so that a
release can be inspected and withdrawn.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from journeyman.records import (
    MinedSession,
    Quarantined,
    SessionId,
)
from journeyman.records.errors import WrongInput
from journeyman.records.exclusions import QuarantineState
from journeyman.store.engine import Repository
from journeyman.store.patterns import wait_for_learners
from journeyman.store.rows import delete_in, record_of, select_in, storable
from journeyman.store.session_filters import conditions
from journeyman.store.tables import kept_out, mined, quarantine_decisions, sessions

_DECISION = (
    quarantine_decisions.c.decision.label("state"),
    quarantine_decisions.c.decided_at,
    quarantine_decisions.c.decided_by,
)
_EXCLUSIONS: sa.Select[Any] = (
    sa.select(kept_out, sessions.c.id, *_DECISION)
    .join(sessions)
    .join(quarantine_decisions, quarantine_decisions.c.key == kept_out.c.key, isouter=True)
    .order_by(sessions.c.row_id)
)
_RELEASED = sa.select(quarantine_decisions.c.key).where(
    quarantine_decisions.c.decision == "released"
)


class Quarantine(Repository):
    """What was excluded (`jm.kept_out`): list, get, release, restore. A key can be
    abbreviated to any prefix that only one key has, ignoring case. `clock` dates decisions.
    """

    def __init__(self, engine: sa.Engine, clock: Callable[[], float]) -> None:
        super().__init__(engine)
        self._clock = clock

    def list(
        self,
        *,
        rule: str | None = None,
        project: str | None = None,
        decided: bool = False,
    ) -> Sequence[Quarantined]:
        """Return what waits for a decision, or what was `decided`; what occurs in most sessions
        comes first. `rule` is a rule, or a prefix of several rules that ends before a dot.
        """
        entries = [
            entry
            for entry in self._by_key(project).values()
            if (entry.state == "released") == decided
            and (rule is None or f"{entry.rule}.".startswith(f"{rule.rstrip('.')}."))
        ]
        entries.sort(key=lambda entry: (-len(entry.sessions), entry.rule, entry.key))
        return entries

    def get(self, key: str) -> Quarantined:
        """Return an entry by its key or a prefix of it. Raise WrongInput."""
        return _find(key, self._by_key())

    def released(self) -> frozenset[str]:
        """Return the keys that a person released."""
        return frozenset(row.key for row in self._read("reading the quarantine", _RELEASED))

    def release(self, keys: Iterable[str], *, by: str = "") -> Sequence[Quarantined]:
        """Allow these to be learned: the next learning run mines their sessions again. Return them
        in their new state. Raise WrongInput, and then nothing is released.
        """
        return self._decide(keys, "released", by)

    def restore(self, keys: Iterable[str]) -> Sequence[Quarantined]:
        """Withdraw the decisions about these: they are excluded and listed again."""
        return self._decide(keys, "kept out")

    def _decide(
        self, keys: Iterable[str], state: QuarantineState, by: str = ""
    ) -> Sequence[Quarantined]:
        by_key = self._by_key()
        entries = [_find(key, by_key) for key in dict.fromkeys(keys)]
        changed = [entry.key for entry in entries if entry.state != state]
        decision = {"decision": state, "decided_at": self._clock(), "decided_by": storable(by)}
        with self._writing("deciding about the quarantine") as connection:
            wait_for_learners(connection)
            delete_in(connection, quarantine_decisions.c.key, changed)
            if changed and state == "released":
                values = [{"key": key, **decision} for key in changed]
                connection.execute(quarantine_decisions.insert(), values)
            query = sa.select(kept_out.c.session_row).distinct()
            rows = [row[0] for row in select_in(connection, query, kept_out.c.key, changed)]
            delete_in(connection, mined.c.session_row, rows)
        decided = self._by_key()
        return [decided[entry.key] for entry in entries if entry.key in decided]

    def _by_key(self, project: str | None = None) -> dict[str, Quarantined]:
        query = _EXCLUSIONS.where(*conditions(project=project))
        rows_by_key: defaultdict[str, list[sa.Row[Any]]] = defaultdict(list)
        with self._reading("reading the quarantine") as connection:
            for row in connection.execute(query):
                rows_by_key[row.key].append(row)
        return {
            key: record_of(
                Quarantined,
                rows[0],
                sessions=tuple(SessionId(row.id) for row in rows),
                state=rows[0].state or "kept out",
                decided_by=rows[0].decided_by or "",
            )
            for key, rows in rows_by_key.items()
        }


def _find(prefix: str, by_key: Mapping[str, Quarantined]) -> Quarantined:
    start = prefix.strip().casefold()
    keys = [key for key in by_key if start and key.startswith(start)]
    if start in by_key:
        keys = [start]
    if len(keys) == 1:
        return by_key[keys[0]]
    if not keys:
        raise WrongInput(
            f"Nothing in quarantine has the key {prefix!r}. List the keys with: "
            "journeyman templates quarantine"
        )
    shown = ", ".join(sorted(keys)[:3]) + (", …" if len(keys) > 3 else "")
    raise WrongInput(f"More than one key starts with {prefix!r}: {shown}. Use more characters.")


def without_stale_decisions(
    connection: sa.Connection, results: Mapping[SessionId, MinedSession]
) -> dict[SessionId, MinedSession]:
    """Return the results without those of sessions in which something was released, or a release
    withdrawn, after they were mined: these sessions are mined again.
    """
    released = frozenset(connection.execute(_RELEASED).scalars())
    return {
        id_: session
        for id_, session in results.items()
        if (released ^ session.released).isdisjoint(entry.key for entry in session.kept_out)
    }
