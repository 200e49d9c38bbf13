"""Forgetting: what was learned from sessions is removed in one transaction, and what not to learn
again is remembered. The recorded sessions stay.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from journeyman.records import MinedSession, Pattern, SessionId, Template
from journeyman.records.kept_out import EVERY_REQUEST, Forgotten, ForgottenSession
from journeyman.store.engine import Repository
from journeyman.store.episodes import decode_facts
from journeyman.store.patterns import take_out, wait_for_learners
from journeyman.store.quarantine import RELEASED
from journeyman.store.rows import decode_steps, delete_in, json_text, parts, select_in
from journeyman.store.tables import (
    effects,
    episodes,
    forgotten,
    kept_out,
    mined,
    patterns,
    sessions,
    sightings,
    templates,
)

_decode_template = msgspec.json.Decoder(Template).decode

_IN_PIECES: Any = {"execution_options": {"yield_per": 500}}
"""There may be more rows than memory should hold."""

REASON = "forgotten"
"""Why a session teaches nothing that a person had forgotten."""

Requests = Mapping[SessionId, Collection[int]]
"""Numbers of requests by session; `EVERY_REQUEST` stands for all."""


class TextMatch:
    """A text that is looked for as a person would find it: whatever the case, and also where it
    stands inside JSON. It is no pattern: every character stands for itself.
    """

    def __init__(self, text: str) -> None:
        self._text = text.casefold()

    def holds(self, *values: Any) -> bool:
        """Whether any text in these records, lists and texts holds it."""
        given = msgspec.to_builtins(values)
        return any(self._text in text.casefold() for text in _texts(given))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):  # arguments of calls: quotes and line ends are escaped there
            with suppress(ValueError, RecursionError):
                yield from _texts(json.loads(value))
    elif isinstance(value, dict | list | tuple):
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        yield from chain.from_iterable(map(_texts, inside))


class Matches(NamedTuple):
    """Where a text was learned: in these requests, and in patterns that are shown in the words of
    some sessions and were seen in others too.
    """

    requests: Requests
    shown: frozenset[SessionId]
    seen: frozenset[SessionId]


class ForgottenRequests(Repository):
    """What a person had forgotten, and how it is done."""

    def of(self, session_ids: Sequence[str]) -> Mapping[SessionId, frozenset[int]]:
        """What is not to be learned from these sessions."""
        with self._reading("reading what is forgotten") as connection:
            return _forgotten(connection, session_ids)

    def list(self) -> Sequence[ForgottenSession]:
        """The sessions that are forgotten, whole or in part, the latest first."""
        asked = forgotten.select().order_by(forgotten.c.at.desc(), forgotten.c.session_id)
        found: defaultdict[SessionId, dict[int, float]] = defaultdict(dict)
        for row in self._read("reading what is forgotten", asked):
            found[row.session_id][row.number] = row.at
        return [
            ForgottenSession(
                session=id_,
                requests=() if EVERY_REQUEST in numbers else tuple(sorted(numbers)),
                at=max(numbers.values()),
            )
            for id_, numbers in found.items()
        ]

    def matching(self, text: str) -> Matches:
        """Where what was learned holds a text: in episodes, in what was kept out, in patterns."""
        match, requests = TextMatch(text), defaultdict[SessionId, set[int]](set)
        told = sa.select(sessions.c.id, *episodes.c["number", "request", "facts", "steps"]).join(
            sessions
        )
        held = sa.select(sessions.c.id, kept_out.c.number, kept_out.c.text).join(sessions)
        seen = sa.select(sightings.c.pattern_row, sessions.c.row_id, sessions.c.id).join(sessions)
        with self._reading("reading what is forgotten") as connection:
            for row in connection.execute(told, **_IN_PIECES):
                if match.holds(row.request, decode_facts(row.facts), decode_steps(row.steps)):
                    requests[row.id].add(row.number)
            for row in connection.execute(held, **_IN_PIECES):
                if match.holds(row.text):
                    requests[row.id].add(row.number)
            origins = _patterns_holding(connection, match)
            had = list(select_in(connection, seen, sightings.c.pattern_row, origins))
        return Matches(
            dict(requests),
            frozenset(row.id for row in had if origins[row.pattern_row] == row.row_id),
            frozenset(row.id for row in had),
        )

    def forget(
        self, requests: Requests, *, at: float, matching: str = "", dry_run: bool = False
    ) -> Forgotten:
        """Remove what was learned from these requests, and with a text also the patterns and what
        of templates holds it; all of it or nothing. A `dry_run` removes nothing, and says what
        would go.
        """
        with self._writing("forgetting", erases=True) as connection:
            wait_for_learners(connection)
            match = TextMatch(matching) if matching else None
            removed = _remove(connection, requests, match, at)
            if dry_run:
                connection.rollback()
        if not dry_run:
            self._erase_log()
        return removed

    def undo(self, session_ids: Sequence[str]) -> Sequence[SessionId]:
        """Let these sessions teach again, whole; those of them that were forgotten."""
        with self._writing("undoing") as connection:
            wait_for_learners(connection)
            found = list(_forgotten(connection, session_ids))
            delete_in(connection, forgotten.c.session_id, found)
            asked = sa.select(sessions.c.row_id)
            rows = [row[0] for row in select_in(connection, asked, sessions.c.id, found)]
            delete_in(connection, mined.c.session_row, rows)
        return found


def without_forgotten(
    connection: sa.Connection, found: Mapping[SessionId, MinedSession]
) -> dict[SessionId, MinedSession]:
    """What sessions teach without what a person had forgotten. One that was mined before a part of
    it was forgotten is left out: it is mined again.
    """
    kept = dict(found)
    for id_, numbers in _forgotten(connection, found).items():
        one = found[id_]
        if EVERY_REQUEST in numbers:
            kept[id_] = msgspec.structs.replace(
                one, reason=REASON, episodes=(), patterns=(), kept_out=()
            )
        elif any(episode.number in numbers for episode in one.episodes):
            del kept[id_]
        else:
            held = tuple(entry for entry in one.kept_out if entry.number not in numbers)
            kept[id_] = msgspec.structs.replace(one, kept_out=held)
    return kept


def _remove(
    connection: sa.Connection, requests: Requests, match: TextMatch | None, at: float
) -> Forgotten:
    asked = sa.select(sessions.c.id, sessions.c.row_id, sessions.c.project)
    found = list(select_in(connection, asked, sessions.c.id, requests))
    whole = [row.row_id for row in found if EVERY_REQUEST in requests[row.id]]
    before = _learned(connection)
    changed, deleted, dropped = _clean_templates(connection, requests, match)
    # Those that are forgotten whole are not mined again; those that are in part are, without it.
    for some in parts(whole):
        this = mined.c.session_row.in_(some)
        connection.execute(mined.update().where(this).values(reason=REASON))
    take_out(connection, whole, () if match is None else _patterns_holding(connection, match))
    for row in found:
        if EVERY_REQUEST in requests[row.id]:
            continue
        for table in (episodes, kept_out):
            these = table.c.number.in_(requests[row.id])
            connection.execute(table.delete().where(table.c.session_row == row.row_id, these))
        connection.execute(mined.delete().where(mined.c.session_row == row.row_id))
    known = _forgotten(connection, requests)
    new = [
        {"session_id": id_, "number": number, "at": at}
        for id_, numbers in requests.items()
        for number in sorted(set(numbers) - known.get(id_, frozenset()))
    ]
    if new:
        connection.execute(forgotten.insert(), new)
    gone: dict[str, Any] = Counter(kind for kind, *_ in before - _learned(connection))
    return Forgotten(
        sessions=tuple(sorted(row.id for row in found)),
        projects=tuple(sorted({row.project for row in found} - {""})),
        vectors=2 * gone.get("episodes", 0),
        templates_changed=changed,
        templates_deleted=deleted,
        template_patterns=dropped,
        **gone,
    )


def _learned(connection: sa.Connection) -> set[tuple[str, ...]]:
    """All that is learned, each thing with the field of `Forgotten` first that counts what is
    missing later.
    """
    found: set[tuple[Any, ...]] = set()
    told = sa.select(episodes.c.row_id, sessions.c.project, episodes.c.facts).join(sessions)
    for row_id, project, written in connection.execute(told):
        facts = decode_facts(written)
        found.add(("episodes", row_id))
        found.update(("commands", project, one.name) for one in facts.commands)
        found.update(("files", project, one.path) for one in facts.files)
        found.update(
            ("mistakes", project, one.tool, one.target, one.error) for one in facts.mistakes
        )
    held = sa.select(kept_out.c.session_row, kept_out.c.key)
    for kind, asked in (
        ("patterns", sa.select(patterns.c.row_id)),
        ("learned_again", sa.select(mined.c.session_row)),
        ("kept_out", held.where(kept_out.c.key.not_in(RELEASED))),
    ):
        found.update((kind, *row) for row in connection.execute(asked))
    return found


def _clean_templates(
    connection: sa.Connection, requests: Requests, match: TextMatch | None
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Take patterns out of templates; which versions changed, which had nothing left and were
    deleted, and how many patterns that were.
    """
    changed: list[str] = []
    deleted: list[str] = []
    dropped = 0
    asked = templates.select().order_by(templates.c.name, templates.c.version)
    for row in connection.execute(asked).all():
        before = _decode_template(row.body)
        after = _without(before, requests, match)
        if after == before:
            continue
        named, this = f"{row.name}@{row.version}", templates.c.row_id == row.row_id
        dropped += len(before.patterns) - (len(after.patterns) if after else 0)
        if after is None:
            deleted.append(named)
            connection.execute(effects.delete().where(effects.c.id == f"template:{named}"))
            connection.execute(templates.delete().where(this))
        else:
            changed.append(named)
            connection.execute(templates.update().where(this).values(body=json_text(after)))
    return tuple(changed), tuple(deleted), dropped


def _without(template: Template, requests: Requests, match: TextMatch | None) -> Template | None:
    """A template without what is forgotten, or None if nothing of it is left."""

    def stays(pattern: Pattern) -> bool:
        if any(EVERY_REQUEST in requests.get(one, ()) for one in pattern.sessions[:1]):
            return False  # it is shown in the words of that session
        return match is None or not match.holds(pattern.intent, pattern.steps)

    kept = tuple(filter(stays, template.patterns))
    if not kept or (match is not None and match.holds(template.name)):
        return None
    said: dict[str, Any] = {}
    if match is not None:
        said = {
            name: "" for name in ("description", "addendum") if match.holds(getattr(template, name))
        }
        said["tags"] = tuple(tag for tag in template.tags if not match.holds(tag))
    return msgspec.structs.replace(template, patterns=kept, **said)


def _patterns_holding(connection: sa.Connection, match: TextMatch) -> dict[int, int]:
    """The rows of the patterns that hold a text, and of the sessions as whose they are shown."""
    return {
        row.row_id: row.origin_row
        for row in connection.execute(patterns.select(), **_IN_PIECES)
        if match.holds(row.intent, decode_steps(row.steps))
    }


def _forgotten(
    connection: sa.Connection, session_ids: Iterable[str]
) -> dict[SessionId, frozenset[int]]:
    found: defaultdict[SessionId, set[int]] = defaultdict(set)
    for row in select_in(connection, forgotten.select(), forgotten.c.session_id, session_ids):
        found[row.session_id].add(row.number)
    return {id_: frozenset(numbers) for id_, numbers in found.items()}
