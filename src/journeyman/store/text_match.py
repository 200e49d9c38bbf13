"""Where what was learned holds a text, as a person would find it: whatever the case, and also where
it stands inside JSON.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from journeyman.records import SessionId, Step
from journeyman.store.episodes import Facts
from journeyman.store.tables import episodes, kept_out, patterns, sessions, sightings
from journeyman.store.values import parts

_decode_facts = msgspec.json.Decoder(Facts).decode
_decode_steps = msgspec.json.Decoder(tuple[Step, ...]).decode

Requests = Mapping[SessionId, frozenset[int]]
"""Numbers of requests by session; `EVERY_REQUEST` stands for all."""


class TextMatch:
    """A text that is looked for. It is no pattern: every character stands for itself."""

    def __init__(self, text: str) -> None:
        self._text = text.casefold()

    def holds(self, *values: Any) -> bool:
        """Whether any text in these records, lists and texts holds it."""
        return any(self._text in text.casefold() for value in values for text in _texts(value))


class Matches(NamedTuple):
    """Where a text was learned: in these requests, and in patterns that are shown in the words of
    some sessions and were seen in others too.
    """

    requests: Requests
    shown: frozenset[SessionId]
    seen: frozenset[SessionId]


def find_matches(connection: sa.Connection, match: TextMatch) -> Matches:
    """Look through episodes, what was kept out, and patterns."""
    requests: dict[SessionId, set[int]] = {}
    of_session = sessions.c.row_id
    told = sa.select(
        sessions.c.id, episodes.c.number, episodes.c.request, episodes.c.facts, episodes.c.steps
    ).join(sessions, of_session == episodes.c.session_row)
    for row in in_pieces(connection, told):
        if match.holds(row.request, _decode_facts(row.facts), _decode_steps(row.steps)):
            requests.setdefault(row.id, set()).add(row.number)
    held = sa.select(sessions.c.id, kept_out.c.number, kept_out.c.text).join(
        sessions, of_session == kept_out.c.session_row
    )
    for row in in_pieces(connection, held):
        if match.holds(row.text):
            requests.setdefault(row.id, set()).add(row.number)
    origins = {
        row.row_id: row.origin_row
        for row in in_pieces(connection, patterns.select())
        if match.holds(row.intent, _decode_steps(row.steps))
    }
    shown, seen = set(), set()
    asked = sa.select(sightings.c.pattern_row, of_session, sessions.c.id).join(
        sessions, of_session == sightings.c.session_row
    )
    for some in parts(list(origins)):
        had = connection.execute(asked.where(sightings.c.pattern_row.in_(some)))
        for pattern_row, session_row, id_ in had:
            seen.add(SessionId(id_))
            if origins[pattern_row] == session_row:
                shown.add(SessionId(id_))
    by_session = {id_: frozenset(numbers) for id_, numbers in requests.items()}
    return Matches(by_session, frozenset(shown), frozenset(seen))


def in_pieces(connection: sa.Connection, asked: sa.Select[Any]) -> Iterator[sa.Row[Any]]:
    """Rows a few at a time: there may be more than memory should hold."""
    yield from connection.execute(asked, execution_options={"yield_per": 500})


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):  # arguments of calls: quotes and line ends are escaped there
            yield from _inner(value)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _texts(getattr(value, name))
    elif isinstance(value, dict):
        yield from _texts([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _inner(value: str) -> Iterator[str]:
    try:
        yield from _texts(json.loads(value))
    except (ValueError, RecursionError):
        return
