"""Forgetting: what was learned from sessions is removed in one transaction, and what must not be
learned again is recorded. The recorded sessions stay.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import MinedSession, Pattern, SessionId, Template
from journeyman.records.forgetting import EVERY_REQUEST, Forgotten, ForgottenSession
from journeyman.store.engine import Repository
from journeyman.store.episodes import (
    bump_revision,
    decode_observed,
    remove_learned,
    wait_for_learners,
)
from journeyman.store.rows import (
    batches,
    decode_steps,
    delete_in,
    json_text,
    select_in,
    template_of,
)
from journeyman.store.tables import (
    episodes,
    fact_decisions,
    forgotten,
    mined,
    sessions,
    templates,
)

_STREAMED: Any = {"execution_options": {"yield_per": 500}}
"""There may be more rows than should be held in memory."""

FORGOTTEN_REASON = "forgotten"
"""The `reason` of a session that teaches nothing because it was forgotten on request."""

RequestNumbers = Mapping[SessionId, Collection[int]]
"""The numbers of requests by session; `EVERY_REQUEST` stands for all."""


class TextMatch:
    """A text to search for as a person would: ignoring case, and also inside JSON. It is not a
    pattern: every character stands for itself.
    """

    def __init__(self, text: str) -> None:
        self._text = text.casefold()

    def holds(self, *values: Any) -> bool:
        """Return whether any text in these records, lists and texts contains it."""
        texts = _texts(msgspec.to_builtins(values))
        return any(self._text in text.casefold() for text in texts)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):  # arguments of calls, in which quotes and newlines are escaped
            with suppress(ValueError, RecursionError):
                yield from _texts(json.loads(value))
    elif isinstance(value, dict | list | tuple):
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        yield from chain.from_iterable(map(_texts, inside))


class ForgottenRequests(Repository):
    """What was forgotten on request, and the operations of forgetting."""

    def of(self, session_ids: Sequence[str]) -> Mapping[SessionId, frozenset[int]]:
        """Return what must not be learned from these sessions."""
        with self._reading("reading what is forgotten") as connection:
            return _forgotten(connection, session_ids)

    def list(self) -> Sequence[ForgottenSession]:
        """Return the sessions that are forgotten, completely or in part, the latest first."""
        query = forgotten.select().order_by(forgotten.c.at.desc(), forgotten.c.session_id)
        times: defaultdict[SessionId, dict[int, float]] = defaultdict(dict)
        for row in self._read("reading what is forgotten", query):
            times[row.session_id][row.number] = row.at
        return [
            ForgottenSession(
                session=id_,
                requests=() if EVERY_REQUEST in numbers else tuple(sorted(numbers)),
                at=max(numbers.values()),
            )
            for id_, numbers in times.items()
        ]

    def matching(self, text: str) -> RequestNumbers:
        """Return the requests with a text in what they taught."""
        match, requests = TextMatch(text), defaultdict[SessionId, set[int]](set)
        episode_texts = sa.select(
            sessions.c.id, *episodes.c["number", "request", "observed", "steps"]
        ).join(sessions)
        with self._reading("reading what is forgotten") as connection:
            for row in connection.execute(episode_texts, **_STREAMED):
                if match.holds(row.request, decode_observed(row.observed), decode_steps(row.steps)):
                    requests[row.id].add(row.number)
        return dict(requests)

    def forget(
        self, requests: RequestNumbers, *, at: float, matching: str = "", dry_run: bool = False
    ) -> Forgotten:
        """Remove what was learned from these requests, and with `matching` also every part of a
        template that contains the text; completely or not at all. A `dry_run` removes nothing, and
        returns what would be removed.
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
        """Allow these sessions to be learned from again, completely; return those of them that were
        forgotten.
        """
        with self._writing("undoing") as connection:
            wait_for_learners(connection)
            undone = list(_forgotten(connection, session_ids))
            delete_in(connection, forgotten.c.session_id, undone)
            query = sa.select(sessions.c.row_id)
            rows = [row[0] for row in select_in(connection, query, sessions.c.id, undone)]
            delete_in(connection, mined.c.session_row, rows)
        return undone


def without_forgotten(
    connection: sa.Connection, results: Mapping[SessionId, MinedSession]
) -> dict[SessionId, MinedSession]:
    """Return the results without what was forgotten on request. A session that was mined before a
    part of it was forgotten is left out: it is mined again.
    """
    remembered = dict(results)
    for id_, numbers in _forgotten(connection, results).items():
        session = results[id_]
        if EVERY_REQUEST in numbers:
            remembered[id_] = msgspec.structs.replace(session, reason=FORGOTTEN_REASON, episodes=())
        elif any(episode.number in numbers for episode in session.episodes):
            del remembered[id_]
    return remembered


def _remove(
    connection: sa.Connection, requests: RequestNumbers, match: TextMatch | None, at: float
) -> Forgotten:
    query = sa.select(sessions.c.id, sessions.c.row_id, sessions.c.project)
    rows = list(select_in(connection, query, sessions.c.id, requests))
    whole = [row.row_id for row in rows if EVERY_REQUEST in requests[row.id]]
    changed, deleted = _clean_templates(connection, requests, match)
    # Sessions that are forgotten completely are not mined again; those forgotten in part are.
    for batch in batches(whole):
        this = mined.c.session_row.in_(batch)
        connection.execute(mined.update().where(this).values(reason=FORGOTTEN_REASON))
    removed = remove_learned(connection, whole)
    if match is not None:
        for decision in connection.execute(fact_decisions.select()).all():
            if match.holds(decision.text):
                same = fact_decisions.c.project == decision.project
                this = same & (fact_decisions.c.id == decision.id)
                connection.execute(fact_decisions.delete().where(this))
                bump_revision(connection)
    for row in rows:
        if EVERY_REQUEST not in requests[row.id]:
            removed += _remove_requests(connection, row.row_id, requests[row.id])
    known = _forgotten(connection, requests)
    new = [
        {"session_id": id_, "number": number, "at": at}
        for id_, numbers in requests.items()
        for number in sorted(set(numbers) - known.get(id_, frozenset()))
    ]
    if new:
        connection.execute(forgotten.insert(), new)
    return Forgotten(
        sessions=tuple(sorted(row.id for row in rows)),
        projects=tuple(sorted({row.project for row in rows} - {""})),
        episodes=removed,
        templates_changed=changed,
        templates_deleted=deleted,
    )


def _remove_requests(connection: sa.Connection, session_row: int, numbers: Collection[int]) -> int:
    these = (episodes.c.session_row == session_row) & episodes.c.number.in_(numbers)
    removed = connection.execute(episodes.delete().where(these)).rowcount
    connection.execute(mined.delete().where(mined.c.session_row == session_row))
    return removed


def _clean_templates(
    connection: sa.Connection, requests: RequestNumbers, match: TextMatch | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Remove patterns from templates. Return the versions that changed, and those that were
    deleted because nothing was left.
    """
    changed: list[str] = []
    deleted: list[str] = []
    query = templates.select().order_by(templates.c.name, templates.c.version)
    for row in connection.execute(query).all():
        before = template_of(row.body)
        after = _without(before, requests, match)
        if after == before:
            continue
        version, this = f"{row.name}@{row.version}", templates.c.row_id == row.row_id
        if after is None:
            deleted.append(version)
            connection.execute(templates.delete().where(this))
        else:
            changed.append(version)
            connection.execute(templates.update().where(this).values(body=json_text(after)))
    return tuple(changed), tuple(deleted)


def _without(
    template: Template, requests: RequestNumbers, match: TextMatch | None
) -> Template | None:
    """Return a template without what is forgotten, or None if nothing is left."""

    def stays(pattern: Pattern) -> bool:
        if any(EVERY_REQUEST in requests.get(id_, ()) for id_ in pattern.sessions[:1]):
            return False  # the pattern is shown as in that session
        return match is None or not match.holds(pattern.intent, pattern.steps)

    kept = tuple(filter(stays, template.patterns))
    if match is not None and match.holds(template.name):
        return None
    texts: dict[str, Any] = {}
    if match is not None:
        texts = {
            name: "" for name in ("description", "addendum") if match.holds(getattr(template, name))
        }
        texts["tags"] = tuple(tag for tag in template.tags if not match.holds(tag))
    if not kept and (template.patterns or not texts.get("addendum", template.addendum)):
        return None
    return msgspec.structs.replace(template, patterns=kept, **texts)


def _forgotten(
    connection: sa.Connection, session_ids: Iterable[str]
) -> dict[SessionId, frozenset[int]]:
    by_session: defaultdict[SessionId, set[int]] = defaultdict(set)
    for row in select_in(connection, forgotten.select(), forgotten.c.session_id, session_ids):
        by_session[row.session_id].add(row.number)
    return {id_: frozenset(numbers) for id_, numbers in by_session.items()}
