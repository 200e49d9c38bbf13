"""Forgetting: what was learned from sessions is removed in one transaction, and what not to learn
again is remembered. The recorded sessions stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import MinedSession, Pattern, SessionId, Step, Template
from journeyman.records.kept_out import EVERY_REQUEST, Forgotten, ForgottenSession
from journeyman.store.counting import bump, mine_again, recount, wait_for_learners
from journeyman.store.engine import explained, writing
from journeyman.store.episodes import Facts
from journeyman.store.quarantine import read_released
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
from journeyman.store.text_match import Matches, Requests, TextMatch, find_matches, in_pieces
from journeyman.store.values import json_text, parts

_decode_facts = msgspec.json.Decoder(Facts).decode
_decode_steps = msgspec.json.Decoder(tuple[Step, ...]).decode
_decode_template = msgspec.json.Decoder(Template).decode

REASON = "forgotten"
"""Why a session teaches nothing that a person had forgotten."""


class ForgottenRequests:
    """What a person had forgotten, and how it is done."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def of(self, session_ids: Sequence[str]) -> Requests:
        """What is not to be learned from these sessions."""
        with self._reading() as connection:
            return _forgotten(connection, session_ids)

    def list(self) -> Sequence[ForgottenSession]:
        """The sessions that are forgotten, whole or in part, the latest first."""
        found: dict[str, list[sa.Row[Any]]] = {}
        asked = forgotten.select().order_by(forgotten.c.at.desc(), forgotten.c.session_id)
        with self._reading() as connection:
            for row in connection.execute(asked):
                found.setdefault(row.session_id, []).append(row)
        return [
            ForgottenSession(
                session=SessionId(id_),
                requests=()
                if any(row.number == EVERY_REQUEST for row in rows)
                else tuple(sorted(row.number for row in rows)),
                at=rows[0].at,
            )
            for id_, rows in found.items()
        ]

    def matching(self, text: str) -> Matches:
        """Where what was learned holds a text, whatever the case."""
        with self._reading() as connection:
            return find_matches(connection, TextMatch(text))

    def forget(
        self, requests: Requests, *, at: float, matching: str = "", dry_run: bool = False
    ) -> Forgotten:
        """Remove what was learned from these requests, and with a text also what holds it; all of
        it or nothing. A `dry_run` removes nothing, and says what would go.
        """
        with writing(self._engine, "forgetting") as connection:
            if connection.dialect.name == "sqlite":
                # What a person had forgotten should not stay readable in the file's free pages.
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
            wait_for_learners(connection)
            removal = _Removal(connection, requests, TextMatch(matching) if matching else None)
            removed = removal.run(at)
            if dry_run:
                connection.rollback()
        if self._engine.dialect.name == "sqlite" and not dry_run:
            with closing(self._engine.raw_connection()) as driver:
                driver.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return removed

    def undo(self, session_ids: Sequence[str]) -> Sequence[SessionId]:
        """Let these sessions teach again, whole; those of them that were forgotten."""
        with writing(self._engine, "undoing") as connection:
            wait_for_learners(connection)
            found = list(_forgotten(connection, session_ids))
            for some in parts(found):
                connection.execute(forgotten.delete().where(forgotten.c.session_id.in_(some)))
                of_these = sa.select(sessions.c.row_id).where(sessions.c.id.in_(some))
                connection.execute(mined.delete().where(mined.c.session_row.in_(of_these)))
        return found

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with explained(self._engine.url, "reading"), self._engine.connect() as connection:
            yield connection


class _Removal:
    """One transaction of forgetting."""

    def __init__(
        self, connection: sa.Connection, requests: Requests, match: TextMatch | None
    ) -> None:
        self._connection = connection
        self._requests = requests
        self._match = match
        self._rows: dict[int, SessionId] = {}
        for some in parts(list(requests)):
            asked = sa.select(sessions.c.row_id, sessions.c.id).where(sessions.c.id.in_(some))
            self._rows |= {row.row_id: SessionId(row.id) for row in connection.execute(asked)}
        self._whole = [row for row, id_ in self._rows.items() if EVERY_REQUEST in requests[id_]]

    def run(self, at: float) -> Forgotten:
        execute = self._connection.execute
        gone_episodes, projects, lost = self._episodes()
        held, released = self._kept_out(), read_released(self._connection)
        gone_patterns = self._patterns()
        changed, deleted, dropped = self._templates()
        self._remember(at)
        again = self._mark_mined(gone_patterns)
        for some in parts(gone_episodes):
            execute(episodes.delete().where(episodes.c.row_id.in_(some)))
        for session_row, key in held:
            this = (kept_out.c.session_row == session_row) & (kept_out.c.key == key)
            execute(kept_out.delete().where(this))
        seen: set[int] = set()
        for some in parts(self._whole):
            of_these = sightings.c.session_row.in_(some)
            seen.update(execute(sa.select(sightings.c.pattern_row).where(of_these)).scalars())
            execute(sightings.delete().where(of_these))
        for some in parts(gone_patterns):
            execute(patterns.delete().where(patterns.c.row_id.in_(some)))
        recount(self._connection, seen.difference(gone_patterns))
        bump(self._connection)
        return Forgotten(
            sessions=tuple(sorted(self._rows.values())),
            projects=projects,
            episodes=len(gone_episodes),
            vectors=2 * len(gone_episodes),
            commands=lost["commands"],
            files=lost["files"],
            mistakes=lost["mistakes"],
            patterns=len(gone_patterns),
            kept_out=sum(key not in released for _, key in held),
            templates_changed=changed,
            templates_deleted=deleted,
            template_patterns=dropped,
            learned_again=again,
        )

    def _concerns(self, session_row: int, number: int) -> bool:
        id_ = self._rows.get(session_row)
        return id_ is not None and not self._requests[id_].isdisjoint((number, EVERY_REQUEST))

    def _episodes(self) -> tuple[list[int], tuple[str, ...], dict[str, int]]:
        """The rows of the episodes that go, the projects of all sessions, and how much of what
        playbooks count is known from no other episode of a project.
        """
        gone: list[int] = []
        facts: dict[bool, dict[str, set[tuple[str, ...]]]] = {
            going: {"commands": set(), "files": set(), "mistakes": set()} for going in (True, False)
        }
        asked = sa.select(
            *(episodes.c.row_id, episodes.c.session_row, episodes.c.number, episodes.c.facts),
            sessions.c.project,
        ).join(sessions, sessions.c.row_id == episodes.c.session_row)
        for row in self._connection.execute(asked):
            going = self._concerns(row.session_row, row.number)
            if going:
                gone.append(row.row_id)
            known, found = facts[going], _decode_facts(row.facts)
            known["commands"].update((row.project, one.name) for one in found.commands)
            known["files"].update((row.project, one.path) for one in found.files)
            known["mistakes"].update(
                (row.project, one.tool, one.target, one.error) for one in found.mistakes
            )
        projects: set[str] = set()
        for some in parts(list(self._rows)):
            named = sa.select(sessions.c.project).where(sessions.c.row_id.in_(some))
            projects.update(self._connection.execute(named).scalars())
        lost = {name: len(found - facts[False][name]) for name, found in facts[True].items()}
        return gone, tuple(sorted(projects - {""})), lost

    def _kept_out(self) -> list[tuple[int, str]]:
        asked = sa.select(
            kept_out.c.session_row, kept_out.c.key, kept_out.c.number, kept_out.c.text
        )
        return [
            (row.session_row, row.key)
            for row in self._connection.execute(asked)
            if self._concerns(row.session_row, row.number)
            or (self._match is not None and self._match.holds(row.text))
        ]

    def _patterns(self) -> list[int]:
        """The rows of the patterns that are shown as a session had them that is forgotten, or that
        hold the text.
        """
        gone: set[int] = set()
        for some in parts(self._whole):
            asked = sa.select(patterns.c.row_id).where(patterns.c.origin_row.in_(some))
            gone.update(self._connection.execute(asked).scalars())
        if self._match is not None:
            for row in in_pieces(self._connection, patterns.select()):
                if self._match.holds(row.intent, _decode_steps(row.steps)):
                    gone.add(row.row_id)
        return sorted(gone)

    def _templates(self) -> tuple[tuple[str, ...], tuple[str, ...], int]:
        """Take patterns out of templates; which versions changed, which had nothing left and were
        deleted, and how many patterns that were.
        """
        changed: list[str] = []
        deleted: list[str] = []
        dropped = 0
        asked = templates.select().order_by(templates.c.name, templates.c.version)
        for row in self._connection.execute(asked).all():
            before = _decode_template(row.body)
            after = self._without(before)
            if after == before:
                continue
            named = f"{row.name}@{row.version}"
            dropped += len(before.patterns) - (len(after.patterns) if after else 0)
            this = templates.c.row_id == row.row_id
            if after is None:
                deleted.append(named)
                of_it = effects.c.id == f"template:{named}"
                self._connection.execute(effects.delete().where(of_it))
                self._connection.execute(templates.delete().where(this))
            else:
                changed.append(named)
                body = json_text(after)
                self._connection.execute(templates.update().where(this).values(body=body))
        return tuple(changed), tuple(deleted), dropped

    def _without(self, template: Template) -> Template | None:
        """A template without what is forgotten, or None if nothing of it is left."""
        kept = tuple(one for one in template.patterns if not self._drops(one))
        match = self._match
        if not kept or (match is not None and match.holds(template.name)):
            return None
        if match is None:
            return msgspec.structs.replace(template, patterns=kept)
        return msgspec.structs.replace(
            template,
            patterns=kept,
            tags=tuple(tag for tag in template.tags if not match.holds(tag)),
            description="" if match.holds(template.description) else template.description,
            addendum="" if match.holds(template.addendum) else template.addendum,
        )

    def _drops(self, pattern: Pattern) -> bool:
        shown_as = pattern.sessions[:1]
        if any(EVERY_REQUEST in self._requests.get(one, ()) for one in shown_as):
            return True
        return self._match is not None and self._match.holds(pattern.intent, pattern.steps)

    def _remember(self, at: float) -> None:
        known = _forgotten(self._connection, list(self._requests))
        new = [
            {"session_id": id_, "number": number, "at": at}
            for id_, numbers in self._requests.items()
            for number in sorted(numbers - known.get(id_, frozenset()))
        ]
        if new:
            self._connection.execute(forgotten.insert(), new)

    def _mark_mined(self, gone_patterns: Sequence[int]) -> int:
        """Sessions that had these patterns too show them in their own words when they are mined
        again, and those that are forgotten in part are mined without it. Those that are forgotten
        whole are not due. How many are due.
        """
        execute = self._connection.execute
        before = execute(sa.select(sa.func.count()).select_from(mined)).scalar_one()
        asked = mined.select()
        kept = [
            dict(row._mapping) | {"reason": REASON}  # noqa: SLF001 - its public name
            for some in parts(self._whole)
            for row in execute(asked.where(mined.c.session_row.in_(some)))
        ]
        for some in parts(gone_patterns):
            mine_again(self._connection, patterns.c.row_id.in_(some))
        for some in parts(list(self._rows)):
            execute(mined.delete().where(mined.c.session_row.in_(some)))
        if kept:
            execute(mined.insert(), kept)
        return before - execute(sa.select(sa.func.count()).select_from(mined)).scalar_one()


def without_forgotten(
    connection: sa.Connection, found: Mapping[SessionId, MinedSession]
) -> dict[SessionId, MinedSession]:
    """What sessions teach without what a person had forgotten. One that was mined before a part of
    it was forgotten is left out: it is mined again.
    """
    which = _forgotten(connection, list(found))
    kept = dict(found)
    for id_, numbers in which.items():
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


def _forgotten(
    connection: sa.Connection, session_ids: Sequence[str]
) -> dict[SessionId, frozenset[int]]:
    found: dict[SessionId, set[int]] = {}
    for some in parts(session_ids):
        asked = forgotten.select().where(forgotten.c.session_id.in_(some))
        for row in connection.execute(asked):
            found.setdefault(SessionId(row.session_id), set()).add(row.number)
    return {id_: frozenset(numbers) for id_, numbers in found.items()}
