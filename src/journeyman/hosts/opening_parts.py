"""What an opening for a host's session contains: which parts of it a session has seen, what may be
shown of other projects, how it is stored, and how it is explained to people.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from journeyman.facade.journeyman import Journeyman
from journeyman.models.embedder import Embedder
from journeyman.records.errors import WrongInput
from journeyman.records.host import HostSession, HostState
from journeyman.records.playbook import PlaybookCommand
from journeyman.templates.commands import is_everyday
from journeyman.templates.opening import Opening

_decode = msgspec.json.Decoder(tuple[Opening, ...]).decode


def own_only(opening: Opening) -> Opening:
    """Return the opening of a project; an empty one for what was said or printed in others."""
    if opening.is_empty or opening.briefing.project:
        return opening
    return Opening(task=opening.task, note="Nothing was learned in this project yet.")


def with_most_used(opening: Opening, most_used: Sequence[PlaybookCommand], budget: int) -> Opening:
    """Return the opening with the project's most used commands behind those that its task is likely
    to need, in the place of commands that every agent knows, as far as the budget allows:
    benchmarks/host_foresight.py measures what that adds.
    """
    likely = [one for one in opening.briefing.commands if not is_everyday(one.name)]
    commands = [*{one.name: one for one in (*likely, *most_used)}.values()]
    count = Embedder().count_tokens
    examples = opening.tokens - count(opening.system)
    while True:
        result = replace(opening, briefing=replace(opening.briefing, commands=tuple(commands)))
        tokens = count(result.system) + examples
        if tokens <= budget or not commands:
            return replace(result, tokens=tokens)
        commands.pop()


def unseen(opening: Opening, shown: Iterable[str]) -> Opening:
    """Return the opening without what a session has seen, and without further commands that every
    agent knows. It is empty for more of the same task, which is one whose nearest request was
    shown, and where nothing about the task itself is left.
    """
    seen = frozenset(shown)
    if not seen or opening.is_empty:
        return opening
    briefing = opening.briefing
    commands = tuple(
        one
        for one in briefing.commands
        if f"command {one.name}" not in seen and not is_everyday(one.name)
    )
    mistakes = tuple(one for one in briefing.mistakes if f"mistake {one.error}" not in seen)
    episodes = tuple(one for one in briefing.episodes if f"request {one.intent}" not in seen)
    choices = tuple(one for one in opening.choices if f"request {one.pattern.intent}" not in seen)
    nearest = next(_requests(opening), "")
    if nearest in seen or not (episodes or choices or mistakes):
        return Opening(task=opening.task, note="The session has seen all that fits.")
    rest = replace(briefing, commands=commands, mistakes=mistakes, episodes=episodes)
    return replace(opening, briefing=rest, choices=choices)


def parts(opening: Opening) -> Iterator[str]:
    """Yield names for the parts of an opening."""
    briefing = opening.briefing
    yield from (f"command {one.name}" for one in briefing.commands)
    yield from (f"mistake {one.error}" for one in briefing.mistakes)
    yield from _requests(opening)


def _requests(opening: Opening) -> Iterator[str]:
    """Yield names for the requests in an opening, the nearest first."""
    yield from (f"request {one.pattern.intent}" for one in opening.choices)
    yield from (f"request {one.intent}" for one in opening.briefing.episodes)


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
            texts=tuple(opening.messages("text") for opening in stored_openings(record)),
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
        briefing = opening.briefing
        counted = {
            "commands": briefing.commands,
            "recurring mistakes": briefing.mistakes,
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
