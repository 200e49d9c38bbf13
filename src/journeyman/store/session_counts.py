"""The counts, times, title and digest of a session, computed from its messages. Copies belong to
the conversation, but count where their originals stand.
"""

from collections import Counter
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records.message import counted_digest, session_digest
from journeyman.store.tables import messages, sessions
from journeyman.text.truncation import truncate

_TITLE_CHARACTERS = 120


class _CallId(msgspec.Struct):
    id: str


_decode_call_ids = msgspec.json.Decoder(list[_CallId]).decode


def call_ids(tool_calls: str | None) -> list[str]:
    """Return the ids of the calls in a column."""
    return [call.id for call in _decode_call_ids(tool_calls)] if tool_calls else []


# Built once: building it for each session would cost more than running it.
_FIRST_WORDS = sa.case(
    (
        sa.and_(messages.c.role == "user", messages.c.kind == "plain"),
        sa.func.substr(messages.c.text, 1, _TITLE_CHARACTERS * 4),
    )
)
_COUNTED: sa.Select[Any] = (
    sa.select(
        *messages.c["digest", "at", "generation", "model", "role", "tool_call_id", "tool_calls"],
        messages.c.copied,
        _FIRST_WORDS,
    )
    .where(messages.c.session_row == sa.bindparam("this_row"))
    .order_by(messages.c.position)
)


class SessionCounts(msgspec.Struct):
    """What the messages of a session say about it. `columns` are set as they are; the times and the
    title are used if nothing else states them. The title is that of the first request: a branch is
    titled after its own first request, if it has one.
    """

    columns: dict[str, Any]
    times: list[float]
    first_request: str
    own_request: str

    def title(self, lineage: str | None) -> str:
        return (self.own_request if lineage == "branch" else "") or self.first_request


def session_counts(connection: sa.Connection, row_id: int) -> SessionCounts:
    """Compute the counts of a session."""
    options = {"yield_per": 1000}
    parameters = {"this_row": row_id}
    counted = connection.execute(_COUNTED, parameters, execution_options=options)
    digests, called, answered = [], Counter[str](), Counter[str]()
    models, generations = Counter[str](), set()
    times, copied_times = list[float](), list[float]()
    first_request, own_request = "", ""
    own_messages = 0
    for digest, at, generation, model, role, tool_call_id, tool_calls, copied, words in counted:
        digests.append(counted_digest(digest, copied=copied))
        if at is not None:
            (copied_times if copied else times).append(at)
        first_request = first_request or words or ""
        if copied:
            continue
        own_messages += 1
        generations.add(generation)
        if model:
            models[model] += 1
        own_request = own_request or words or ""
        called.update(call_ids(tool_calls))
        if role == "tool" and tool_call_id:
            answered[tool_call_id] += 1
    counts: dict[str, Any] = {
        "messages": own_messages,
        "calls": called.total(),
        # The same number as from joining: an id has as many answered calls as results, but no
        # more than calls.
        "answered": (called & answered).total(),
        "generations": max(len(generations), 1),
        "digest": session_digest(digests),
    }
    if models:
        counts["model"] = models.most_common(1)[0][0]
    titles = (_title(request) for request in (first_request, own_request))
    return SessionCounts(counts, times or copied_times, *titles)


def _title(request: str) -> str:
    return truncate(" ".join(request.split()), _TITLE_CHARACTERS)


def recount(connection: sa.Connection, row_id: int, before: SessionCounts) -> None:
    """Update a session after other messages of it have become copies, or no longer are. `before`
    are its counts at that time: what was derived from them is derived again.
    """
    this = sessions.c.row_id == row_id
    session = connection.execute(sessions.select().where(this)).one()
    after = session_counts(connection, row_id)
    values = dict(after.columns)
    if session.title in (before.first_request, before.own_request):
        values["title"] = after.title(session.lineage)
    for name, furthest in (("started_at", min), ("ended_at", max)):
        derived = furthest(before.times, default=None)
        if getattr(session, name) == derived:
            values[name] = furthest(after.times, default=None)
    connection.execute(sessions.update().where(this).values(values))
