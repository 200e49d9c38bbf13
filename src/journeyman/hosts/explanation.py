"""Explains to people why a host's session started as it did, and shows what was added to it."""

from msgspec import Struct

from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.opening_parts import stored_openings
from journeyman.records.errors import WrongInput
from journeyman.records.host import HostSession, HostState


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
            explanation=explain(record),
            texts=tuple(opening.messages("text") for opening in stored_openings(record)),
        )
        for record in records
    ]


def explain(record: HostSession | None) -> str:
    """Return for a person what a session started with, and why."""
    if record is None:
        return "Journeyman has decided nothing about this session yet."
    openings = stored_openings(record)
    if record.state != "warm" or not openings:
        reason = record.reason or "nothing that was learned fits"
        return f"This session started without an opening: {reason.rstrip('.')}."
    lines = [f"This session started warm, with opening {record.opening} ({record.tokens} tokens):"]
    for opening in openings:
        briefing = opening.briefing
        counted = {
            "commands": briefing.commands,
            "recurring mistakes": briefing.mistakes,
            "files": briefing.files,
            "earlier requests": briefing.episodes,
        }
        kinds = [f"{len(items)} {name}" for name, items in counted.items() if items]
        if kinds:
            sessions = f"{briefing.sessions} earlier sessions"
            lines.append(f"- {', '.join(kinds)}, from {sessions} in {briefing.project}")
        lines += [
            f"- an example for {choice.pattern.intent[:80]!r}: {choice.reason}"
            for choice in opening.choices
        ]
    return "\n".join(lines)
