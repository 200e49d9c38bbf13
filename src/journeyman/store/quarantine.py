"""What rules kept out of what is learned, and what a person decided about it.

A decision is by key and holds for every session. Mining finds what was released as before, so that
a release can be looked at and taken back.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import (
    KeptOut,
    KeptOutKind,
    MinedSession,
    Pattern,
    Quarantined,
    QuarantineState,
    SessionId,
    Template,
)
from journeyman.records.errors import WrongInput
from journeyman.records.kept_out import LONGEST_KEPT_OUT
from journeyman.store.choosing import conditions
from journeyman.store.counting import wait_for_learners
from journeyman.store.engine import explained, writing
from journeyman.store.rows import storable
from journeyman.store.tables import kept_out, mined, quarantine_decisions, sessions, templates
from journeyman.store.values import parts

_decode_template = msgspec.json.Decoder(Template).decode

_FROM_A_FILE = "It came with the file of a template, and this rule keeps it out."
_DECISION = [quarantine_decisions.c[name] for name in ("decision", "decided_at", "decided_by")]
_FOUND: sa.Select[Any] = (
    sa.select(kept_out, sessions.c.id, *_DECISION)
    .join(sessions, sessions.c.row_id == kept_out.c.session_row)
    .join(quarantine_decisions, quarantine_decisions.c.key == kept_out.c.key, isouter=True)
)
_RELEASED = sa.select(quarantine_decisions.c.key).where(
    quarantine_decisions.c.decision == "released"
)


class Quarantine:
    """What was kept out (`jm.kept_out`): list, rules, get, release, delete, restore. A key may be
    given by any beginning that only one has, in small letters or capitals.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def list(
        self,
        *,
        rule: str | None = None,
        kind: KeptOutKind | None = None,
        session: str | None = None,
        project: str | None = None,
        decided: bool = False,
        limit: int | None = None,
    ) -> Sequence[Quarantined]:
        """What waits for a decision, what most sessions have first; or what was `decided`. `rule`
        is one rule, or the beginning of several up to a dot; `session` is a whole id.
        """
        found = [
            one
            for one in self._read(session=session, project=project)
            if (one.state != "kept out") == decided
            and (kind is None or one.kind == kind)
            and (rule is None or f"{one.rule}.".startswith(f"{rule.rstrip('.')}."))
        ]
        found.sort(key=lambda one: (-len(one.sessions), one.rule, one.key))
        return found[:limit]

    def rules(self) -> Sequence[str]:
        """The rules that kept something out, whatever was decided about it."""
        return sorted({one.rule for one in self._read()})

    def get(self, key: str) -> Quarantined:
        """One by its key or the beginning of it. Raises WrongInput."""
        return _find(key, self._by_key())

    def released(self) -> frozenset[str]:
        """The keys that a person released."""
        with explained(self._engine.url, "reading the quarantine"), self._engine.connect() as one:
            return read_released(one)

    def release(
        self, keys: Iterable[str], *, by: str = "", at: float | None = None
    ) -> Sequence[Quarantined]:
        """Let these be learned: the next run of learning goes through their sessions again.
        Returns them as they are now. Raises WrongInput, and then nothing is released.
        """
        return self._decide(keys, "released", by, time.time() if at is None else at)

    def delete(
        self, keys: Iterable[str], *, by: str = "", at: float | None = None
    ) -> Sequence[Quarantined]:
        """Take these off the list; they stay kept out. As with `release`."""
        return self._decide(keys, "deleted", by, time.time() if at is None else at)

    def restore(self, keys: Iterable[str]) -> Sequence[Quarantined]:
        """Take back what was decided about these: they are kept out and listed again."""
        return self._decide(keys, "kept out", "", 0.0)

    def _decide(
        self, keys: Iterable[str], state: QuarantineState, by: str, at: float
    ) -> Sequence[Quarantined]:
        known = self._by_key()
        found = [_find(key, known) for key in dict.fromkeys(keys)]
        changed = [one.key for one in found if one.state != state]
        # Only what is released, or no longer is, changes what a session teaches.
        relearned = [one.key for one in found if (one.state == "released") != (state == "released")]
        of_key = quarantine_decisions.c.key
        with writing(self._engine, "deciding about the quarantine") as connection:
            wait_for_learners(connection)
            for some in parts(changed):
                connection.execute(quarantine_decisions.delete().where(of_key.in_(some)))
            if changed and state != "kept out":
                decision = {"decision": state, "decided_at": at, "decided_by": storable(by)}
                values = [{"key": key, **decision} for key in changed]
                connection.execute(quarantine_decisions.insert(), values)
            for some in parts(relearned):
                having = sa.select(kept_out.c.session_row).where(kept_out.c.key.in_(some))
                connection.execute(mined.delete().where(mined.c.session_row.in_(having)))
        decided = self._by_key()
        return [decided[one.key] for one in found if one.key in decided]

    def _by_key(self) -> dict[str, Quarantined]:
        return {one.key: one for one in self._read()}

    def _read(
        self, *, session: str | None = None, project: str | None = None
    ) -> Iterator[Quarantined]:
        asked = _FOUND.where(*conditions(project=project)).order_by(sessions.c.row_id)
        if session is not None:
            asked = asked.where(sessions.c.id == session)
        by_key: defaultdict[str, list[sa.Row[Any]]] = defaultdict(list)
        with explained(self._engine.url, "reading the quarantine"), self._engine.connect() as one:
            for row in one.execute(asked):
                by_key[row.key].append(row)
            in_files = [] if session or project else list(_in_templates(one))
        yield from (_quarantined(rows) for rows in by_key.values())
        yield from (one for one in in_files if one.key not in by_key)


def _find(given: str, known: Mapping[str, Quarantined]) -> Quarantined:
    key = given.strip().casefold()
    found = [one for one in known if key and one.startswith(key)]
    if key in known or len(found) == 1:
        return known[key if key in known else found[0]]
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
    return frozenset(connection.execute(_RELEASED).scalars())


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


def replace_kept_out(connection: sa.Connection, found: Mapping[int, Iterable[KeptOut]]) -> None:
    """Keep what was kept out of sessions, by their rows, in the place of what was before."""
    new = {
        (row, one.key): {
            "session_row": row,
            "key": one.key,
            "number": one.number,
            "kind": one.kind,
            "rule": one.rule,
            "reason": storable(one.reason),
            "text": storable(one.text),
        }
        for row, entries in found.items()
        for one in entries
    }
    for some in parts(list(found)):
        connection.execute(kept_out.delete().where(kept_out.c.session_row.in_(some)))
    if new:
        connection.execute(kept_out.insert(), list(new.values()))


def _quarantined(rows: Sequence[sa.Row[Any]]) -> Quarantined:
    first = rows[0]
    return Quarantined(
        key=first.key,
        kind=first.kind,
        rule=first.rule,
        reason=first.reason,
        text=first.text,
        sessions=tuple(SessionId(row.id) for row in rows),
        state=first.decision or "kept out",
        decided_at=first.decided_at,
        decided_by=first.decided_by or "",
    )


def _in_templates(connection: sa.Connection) -> Iterator[Quarantined]:
    """What imported templates hold in quarantine: no session has it."""
    held: dict[str, tuple[Pattern, list[str]]] = {}
    asked = sa.select(templates.c.body).order_by(templates.c.name, templates.c.version)
    for body in connection.execute(asked).scalars():
        template = _decode_template(body)
        for pattern in template.patterns:
            if pattern.quarantined:
                _, names = held.setdefault(template_key(pattern), (pattern, []))
                names.append(f"{template.name}@{template.version}")
    decided = {row.key: row for row in connection.execute(quarantine_decisions.select())}
    for key, (pattern, names) in held.items():
        row = decided.get(key)
        steps = (f"{one.tool} {one.arguments}\n{one.result}" for one in pattern.steps)
        yield Quarantined(
            key=key,
            kind="pattern",
            rule=pattern.quarantined,
            reason=_FROM_A_FILE,
            text="\n".join((pattern.intent, *steps)).strip()[:LONGEST_KEPT_OUT],
            templates=tuple(dict.fromkeys(names)),
            state="kept out" if row is None else row.decision,
            decided_at=None if row is None else row.decided_at,
            decided_by="" if row is None else row.decided_by,
        )
