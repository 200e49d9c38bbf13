"""What rules kept out of what is learned, and what a person decided about it.

A decision is by key and holds for every session. Mining finds what was released as before, so that
a release can be looked at and taken back.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import (
    KeptOutKind,
    MinedSession,
    Pattern,
    Quarantined,
    SessionId,
    Template,
)
from journeyman.records.errors import WrongInput
from journeyman.records.kept_out import LONGEST_KEPT_OUT, QuarantineState
from journeyman.store.engine import Repository
from journeyman.store.patterns import wait_for_learners
from journeyman.store.rows import delete_in, record_of, select_in, storable
from journeyman.store.session_filters import conditions
from journeyman.store.tables import kept_out, mined, quarantine_decisions, sessions, templates

_decode_template = msgspec.json.Decoder(Template).decode

_FROM_A_FILE = "It came with the file of a template, and this rule keeps it out."
_DECISION = (
    quarantine_decisions.c.decision.label("state"),
    quarantine_decisions.c.decided_at,
    quarantine_decisions.c.decided_by,
)
_FOUND: sa.Select[Any] = (
    sa.select(kept_out, sessions.c.id, *_DECISION)
    .join(sessions)
    .join(quarantine_decisions, quarantine_decisions.c.key == kept_out.c.key, isouter=True)
    .order_by(sessions.c.row_id)
)
RELEASED = sa.select(quarantine_decisions.c.key).where(
    quarantine_decisions.c.decision == "released"
)
"""The keys that a person released."""


class Quarantine(Repository):
    """What was kept out (`jm.kept_out`): list, rules, get, release, delete, restore. A key may be
    given by any beginning that only one has, in small letters or capitals.
    """

    def list(
        self,
        *,
        rule: str | None = None,
        kind: KeptOutKind | None = None,
        session: str | None = None,
        project: str | None = None,
        decided: bool = False,
    ) -> Sequence[Quarantined]:
        """What waits for a decision, what most sessions have first; or what was `decided`. `rule`
        is one rule, or the beginning of several up to a dot; `session` is a whole id.
        """
        found = [
            one
            for one in self._by_key(session=session, project=project).values()
            if (one.state != "kept out") == decided
            and (kind is None or one.kind == kind)
            and (rule is None or f"{one.rule}.".startswith(f"{rule.rstrip('.')}."))
        ]
        found.sort(key=lambda one: (-len(one.sessions), one.rule, one.key))
        return found

    def rules(self) -> Sequence[str]:
        """The rules that kept something out, whatever was decided about it."""
        return sorted({one.rule for one in self._by_key().values()})

    def get(self, key: str) -> Quarantined:
        """One by its key or the beginning of it. Raises WrongInput."""
        return _find(key, self._by_key())

    def released(self) -> frozenset[str]:
        """The keys that a person released."""
        with self._reading("reading the quarantine") as one:
            return read_released(one)

    def release(self, keys: Iterable[str], *, by: str = "") -> Sequence[Quarantined]:
        """Let these be learned: the next run of learning goes through their sessions again.
        Returns them as they are now. Raises WrongInput, and then nothing is released.
        """
        return self._decide(keys, "released", by)

    def delete(self, keys: Iterable[str], *, by: str = "") -> Sequence[Quarantined]:
        """Take these off the list; they stay kept out. As with `release`."""
        return self._decide(keys, "deleted", by)

    def restore(self, keys: Iterable[str]) -> Sequence[Quarantined]:
        """Take back what was decided about these: they are kept out and listed again."""
        return self._decide(keys, "kept out")

    def _decide(
        self, keys: Iterable[str], state: QuarantineState, by: str = ""
    ) -> Sequence[Quarantined]:
        known = self._by_key()
        found = [_find(key, known) for key in dict.fromkeys(keys)]
        changed = [one.key for one in found if one.state != state]
        # Only what is released, or no longer is, changes what a session teaches.
        relearned = [one.key for one in found if (one.state == "released") != (state == "released")]
        decision = {"decision": state, "decided_at": time.time(), "decided_by": storable(by)}
        with self._writing("deciding about the quarantine") as connection:
            wait_for_learners(connection)
            delete_in(connection, quarantine_decisions.c.key, changed)
            if changed and state != "kept out":
                values = [{"key": key, **decision} for key in changed]
                connection.execute(quarantine_decisions.insert(), values)
            having = sa.select(kept_out.c.session_row).distinct()
            rows = [row[0] for row in select_in(connection, having, kept_out.c.key, relearned)]
            delete_in(connection, mined.c.session_row, rows)
        decided = self._by_key()
        return [decided[one.key] for one in found if one.key in decided]

    def _by_key(
        self, *, session: str | None = None, project: str | None = None
    ) -> dict[str, Quarantined]:
        asked = _FOUND.where(*conditions(project=project))
        if session is not None:
            asked = asked.where(sessions.c.id == session)
        by_key: defaultdict[str, list[sa.Row[Any]]] = defaultdict(list)
        with self._reading("reading the quarantine") as one:
            for row in one.execute(asked):
                by_key[row.key].append(row)
            in_files = {} if session or project else _in_templates(one)
        found = {
            key: record_of(
                Quarantined,
                rows[0],
                sessions=tuple(SessionId(row.id) for row in rows),
                templates=(),
                state=rows[0].state or "kept out",
                decided_by=rows[0].decided_by or "",
            )
            for key, rows in by_key.items()
        }
        return in_files | found


def _find(given: str, known: Mapping[str, Quarantined]) -> Quarantined:
    key = given.strip().casefold()
    found = [key] if key in known else [one for one in known if key and one.startswith(key)]
    if len(found) == 1:
        return known[found[0]]
    if not found:
        raise WrongInput(
            f"Nothing in quarantine has the key {given!r}. `journeyman templates quarantine` "
            "lists what there is."
        )
    shown = ", ".join(sorted(found)[:3]) + (", …" if len(found) > 3 else "")
    raise WrongInput(f"More than one key begins with {given!r}: {shown}. Give more of it.")


def template_key(pattern: Pattern) -> str:
    """The key of a pattern that a template's file brought."""
    return hashlib.sha256(f"template {pattern.id}".encode()).hexdigest()[:16]


def without_released(template: Template, released: frozenset[str]) -> Template:
    """A template in which the patterns that a person released are no longer in quarantine."""
    patterns = tuple(
        msgspec.structs.replace(one, quarantined="")
        if one.quarantined and template_key(one) in released
        else one
        for one in template.patterns
    )
    return msgspec.structs.replace(template, patterns=patterns)


def read_released(connection: sa.Connection) -> frozenset[str]:
    """The keys that a person released, on an open connection."""
    return frozenset(connection.execute(RELEASED).scalars())


def mined_as_decided(
    connection: sa.Connection, found: Mapping[SessionId, MinedSession]
) -> dict[SessionId, MinedSession]:
    """What sessions teach, but for those that were mined before something in them was released, or
    a release was taken back: they are mined again.
    """
    released = read_released(connection)
    return {
        id_: one
        for id_, one in found.items()
        if (released ^ one.released).isdisjoint(entry.key for entry in one.kept_out)
    }


def _in_templates(connection: sa.Connection) -> dict[str, Quarantined]:
    """What imported templates hold in quarantine, by key: no session has it."""
    found: dict[str, Quarantined] = {}
    asked_about = sa.select(quarantine_decisions.c.key, *_DECISION)
    decided = {row["key"]: dict(row) for row in connection.execute(asked_about).mappings()}
    asked = sa.select(templates.c.body).order_by(templates.c.name, templates.c.version)
    for template in map(_decode_template, connection.execute(asked).scalars()):
        for pattern in template.patterns:
            if not pattern.quarantined:
                continue
            key = template_key(pattern)
            steps = (f"{one.tool} {one.arguments}\n{one.result}" for one in pattern.steps)
            others = found[key].templates if key in found else ()
            found[key] = Quarantined(
                **decided.get(key, {"key": key}),
                kind="pattern",
                rule=pattern.quarantined,
                reason=_FROM_A_FILE,
                text="\n".join((pattern.intent, *steps)).strip()[:LONGEST_KEPT_OUT],
                templates=tuple(dict.fromkeys((*others, f"{template.name}@{template.version}"))),
            )
    return found
