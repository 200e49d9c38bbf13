"""What an opening for a host's session contains: which parts of it a session has seen, how it is
stored, and how it is explained to people.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from journeyman.experience.opening import Opening
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.host import HostSession, HostState

_decode = msgspec.json.Decoder(tuple[Opening, ...]).decode


def parts(opening: Opening) -> Iterator[str]:
    """Yield names for the parts of an opening."""
    yield from (fact.id for fact in opening.facts)
    yield from (f"request {choice.pattern.intent}" for choice in opening.choices)


def given_text(opening: Opening) -> str:
    """Return the text that a host without messages was given: a start stands between marks."""
    is_start = opening.preamble.startswith("Journeyman:") or bool(opening.choices)
    return opening.messages("text") if is_start else opening.preamble


def encode_openings(openings: Sequence[Opening]) -> str:
    """Return openings as they are stored."""
    return msgspec.json.encode(list(openings)).decode()


def stored_openings(record: HostSession) -> tuple[Opening, ...]:
    """Return what a record holds; nothing if another version of this program wrote it."""
    try:
        return _decode(record.content)
    except msgspec.DecodeError:
        return ()


class Explanation(Struct, frozen=True, kw_only=True):
    """A session of a host: why it started as it did, and the texts that it was given."""

    host: str
    session: str
    state: HostState
    explanation: str
    texts: tuple[str, ...]


def explain_session(journeyman: Journeyman, session: str) -> list[Explanation]:
    """Return the explanation of a session, by its id or the beginning of it. Raise WrongInput if no
    host's session has such an id.
    """
    records = journeyman.host_sessions.named(session) if session else []
    if not records:
        raise WrongInput(
            f"No session of a host has an id that starts with {session!r}. `journeyman sessions "
            "list --warm` shows sessions that started with an opening."
        )
    return [
        Explanation(
            host=record.host,
            session=record.session_id,
            state=record.state,
            explanation=_explain(record),
            texts=tuple(map(given_text, stored_openings(record))),
        )
        for record in records
    ]


def _explain(record: HostSession) -> str:
    """Return for a person what a session started with, and why."""
    openings = stored_openings(record)
    if record.state != "warm" or not openings:
        reason = record.reason or "nothing that was learned fits"
        return f"This session started without an opening: {reason.rstrip('.')}."
    lines = [f"This session started warm, with opening {record.opening} ({record.tokens} tokens):"]
    for opening in openings:
        lines += [f"- {fact.kind}: {fact.text}" for fact in opening.facts]
        lines += [
            f"- an example for {choice.pattern.intent[:80]!r}: {choice.reason}"
            for choice in opening.choices
        ]
    return "\n".join(lines)
