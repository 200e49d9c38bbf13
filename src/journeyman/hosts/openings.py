"""The openings of hosts' sessions. What a session starts with is decided once, stored before it is
given out, and never changes: a resumed, compressed or retried session gets the same bytes.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.hermes_lineage import ancestors
from journeyman.models.embedder import Embedder
from journeyman.records.errors import WrongInput
from journeyman.records.host import HELD_OUT, HostSession, HostState, source_of
from journeyman.records.playbook import PlaybookCommand
from journeyman.store.host_sessions import HostSessions
from journeyman.templates.briefing import ELSEWHERE, Briefing
from journeyman.templates.commands import is_everyday
from journeyman.templates.opening import Choice, Form, MessageForm, Opening
from journeyman.templates.ranking import is_small_talk

PROJECT_TOKENS = 900
"""The longest opening for a session whose task is not known yet."""

LONGEST_TEXT = 6_000
"""Claude Code and Codex shorten longer additions, in characters."""

_SMALLEST_TOKENS = 150
"""Fewer tokens than these have no room for anything about a task."""

_LONGEST_TASK = 20_000
_RECENT_PROJECTS = 3

_decode = msgspec.json.Decoder(tuple[Opening, ...]).decode

_BEGUN = "it had begun without one"
_LATE = "it was not ready in time"
_SWITCHED_OFF = "a person switched it off"


class LateAnswer(Exception):
    """The answer came after its deadline, so nobody received it."""


class OpeningRequest(Struct, frozen=True, kw_only=True):
    """A session that may start warm. It is `fresh` if the model has not answered in it yet; one
    that was split off or continues another has that as its `parent`. `path` is the host's database
    of sessions, which says so too.
    """

    session: str
    task: str = ""
    cwd: str = ""
    tools: list[dict[str, Any]] | None = None
    model: str = ""
    form: Form = "openai"
    fresh: bool = True
    parent: str = ""
    platform: str = ""
    path: str = ""


class OpeningAnswer(Struct, frozen=True, kw_only=True):
    """What the session starts with: `system` goes behind the host's own system text, `messages`
    follow it; `text` is all of it for hosts that take only text.
    """

    id: str = ""
    state: HostState = "cold"
    reason: str = ""
    system: str = ""
    messages: list[dict[str, Any]] = []
    text: str = ""
    tokens: int = 0


class SessionOpenings:
    """Decides on openings, and keeps them. Only one is built at a time."""

    def __init__(
        self, journeyman: Journeyman, kept: HostSessions, clock: Callable[[], float] = time.time
    ) -> None:
        self._journeyman = journeyman
        self._kept = kept
        self._clock = clock
        self._building = threading.Lock()
        self._changing = threading.RLock()
        """Held while a record is read and stored again: hooks of one session run side by side."""

    def find(self, host: str, session: str) -> HostSession | None:
        return self._kept.find(host, session)

    def warm_up(self) -> None:
        """Load what the next openings need: the embeddings, and the newest projects."""
        for totals in self._journeyman.sessions.projects()[:_RECENT_PROJECTS]:
            with self._building:  # a session that begins now need not wait for all of them
                self._journeyman.opening("Run the tests", project=totals.project, counted=False)

    def opening(self, host: str, asked: OpeningRequest, ends: float) -> OpeningAnswer:
        """Return what a session starts with, for hosts that send whole messages. It must be ready
        at `ends`, by the monotonic clock; otherwise the session stays cold.
        """
        record = self._kept.find(host, asked.session) or self._inherited(host, asked)
        if record is None:
            record = self._decided(host, asked, ends)
        return _answer(record, asked.form)

    def note(self, host: str, session: str, *, within_s: float | None = None) -> None:
        """Note in the store that a session started warm, if it did. The proxy does so itself, for
        the host that it serves.
        """
        record = self._kept.find(host, session)
        if record is not None and record.state == "warm" and record.opening and host != "proxy":
            self._journeyman.sessions.note_opening(
                session, record.opening, source=source_of(host), within_s=within_s
            )

    def take_back(self, host: str, session: str, before: HostSession | None) -> None:
        """Restore the record of a session, because the host did not receive the last answer."""
        with self._changing:
            self._kept.save(before or self._cold(host, session, _LATE))

    def switch(self, host: str, session: str, *, on: bool) -> HostSession:
        """Switch a session's opening off, or on again if it has one or has not begun."""
        with self._changing:
            found = self._kept.find(host, session)
            record = found or self._cold(host, session, "it has not begun")
            if not on:
                record = replace(record, state="off", reason=_SWITCHED_OFF)
            elif _openings(record):
                record = replace(record, state="warm", reason="")
            elif found is None or record.reason == _SWITCHED_OFF:
                self._kept.erase(host, [session])
                return self._cold(host, session, "it has not begun")
            else:
                record = replace(record, state="cold")
            self._kept.save(record)
        return record

    def project_text(self, host: str, session: str, cwd: str, ends: float) -> str:
        """Return the text for the beginning of a session: what recurs in its project."""
        if self._kept.find(host, session) or self._held_out(host, session):
            return ""
        with self._reserved(ends):
            opening = self._for_project(cwd)
        if opening.is_empty:
            self._kept.add(self._cold(host, session, opening.note), within_s=_left_s(ends))
        return self._given(host, session, opening, ends)

    def task_text(self, host: str, session: str, task: str, cwd: str, ends: float) -> str:
        """Return the text for a request: what fits it, without what the session has seen, and
        within what is left of the session's budget. It is empty for a session whose beginning was
        not seen: a fork has its parent's context, and what began without an opening stays so.
        """
        record = self.begun(host, session)
        if record.state == "off" or record.reason == _BEGUN:
            return ""
        budget = self._journeyman.settings.hosts.budget_tokens - record.tokens
        if budget < _SMALLEST_TOKENS:
            return ""
        with self._reserved(ends):
            shown = frozenset(record.shown)
            opening = _unseen(self._for_task(task, cwd, budget), shown)
            size = len(opening.messages("text"))
            if size > LONGEST_TEXT:
                smaller = int(budget * LONGEST_TEXT / size * 0.9)
                opening = _unseen(self._for_task(task, cwd, smaller), shown)
        if len(opening.messages("text")) > LONGEST_TEXT:
            return ""
        return self._given(host, session, opening, ends)

    def repeated_text(self, host: str, session: str) -> str:
        """Return the first text of a session again, after the host has compressed its context. The
        rest may be shown again with the next request.
        """
        with self._changing:
            record = self._kept.find(host, session)
            openings = _openings(record) if record else ()
            if record is None or record.state != "warm" or not openings:
                return ""
            text = openings[0].messages("text")
            shown, tokens = tuple(_parts(openings[0])), Embedder().count_tokens(text)
            self._kept.save(replace(record, shown=shown, tokens=tokens))
        return text

    def note_shown(self, host: str, session: str, part: str) -> bool:
        """Note that a session has seen something; return whether it is the first time."""
        with self._changing:
            record = self.begun(host, session)
            if part in record.shown:
                return False
            self._kept.save(replace(record, shown=(*record.shown, part)))
        return True

    def begun(self, host: str, session: str, parent: str = "") -> HostSession:
        """Return the record of a session. One whose beginning was not seen inherits that of its
        parent, or has no opening.
        """
        found = self._kept.find(host, session)
        if found is not None:
            return found
        inherited = self._kept.find(host, parent) if parent else None
        record = self._cold(host, session, _BEGUN)
        if inherited is not None:
            record = replace(inherited, session_id=session, at=self._clock())
        return self._kept.add(record)

    def _for_project(self, cwd: str) -> Opening:
        budget = self._journeyman.settings.hosts.budget_tokens
        tokens = min(PROJECT_TOKENS, budget)
        return self._journeyman.project_opening(cwd, budget_tokens=tokens)

    def _for_task(self, task: str, cwd: str, budget: int) -> Opening:
        opening = self._journeyman.opening(
            task[:_LONGEST_TASK], project=cwd, style="text", budget_tokens=budget
        )
        return _own_only(opening)

    def _given(self, host: str, session: str, opening: Opening, ends: float) -> str:
        """Store a further opening of a session, and return its text."""
        if opening.is_empty:
            return ""
        text = opening.messages("text")
        with self._changing:
            record = self._kept.find(host, session) or self._cold(host, session, "")
            if record.state == "off":
                return ""
            self._kept.save(
                replace(
                    record,
                    state="warm",
                    reason="",
                    opening=record.opening or opening.id,
                    tokens=record.tokens + Embedder().count_tokens(text),
                    shown=(*record.shown, *_parts(opening)),
                    content=_encode((*_openings(record), opening)),
                ),
                within_s=_left_s(ends),
            )
        return text

    def _inherited(self, host: str, asked: OpeningRequest) -> HostSession | None:
        parents = [asked.parent] if asked.parent else []
        if host == "hermes" and not (asked.fresh or parents or asked.platform == "subagent"):
            parents += ancestors(asked.path, asked.session)
        found = (self._kept.find(host, parent) for parent in parents)
        record = next(filter(None, found), None)
        if record is None:
            return None
        record = replace(record, session_id=asked.session, at=self._clock())
        return self._kept.add(record)

    def _decided(self, host: str, asked: OpeningRequest, ends: float) -> HostSession:
        """Decide on a session's opening, and store the decision."""
        if asked.fresh and (held_out := self._held_out(host, asked.session)) is not None:
            return held_out
        record = self._cold(host, asked.session, _BEGUN)
        if asked.fresh:
            try:
                with self._reserved(ends):
                    opening = self._built(asked)
                record = self._recorded(host, asked.session, opening)
                return self._kept.add(record, within_s=_left_s(ends))
            except LateAnswer:
                record = self._cold(host, asked.session, _LATE)
            except WrongInput as error:
                record = self._cold(host, asked.session, str(error))
        return self._kept.add(record)

    def _held_out(self, host: str, session: str) -> HostSession | None:
        """Leave a new session without an opening if chance, by its id, has chosen it for that."""
        share = self._journeyman.settings.hosts.holdout
        digest = hashlib.sha256(f"{host} {session}".encode("utf-8", "replace")).digest()
        if int.from_bytes(digest[:4]) >= share * 2**32 or self._kept.find(host, session):
            return None
        return self._kept.add(replace(self._cold(host, session, HELD_OUT), state="off"))

    def _built(self, asked: OpeningRequest) -> Opening:
        task, project = asked.task.strip()[:_LONGEST_TASK], asked.cwd
        if not task or is_small_talk(task):
            return self._for_project(project)
        budget = self._journeyman.settings.hosts.budget_tokens
        opening = self._journeyman.opening(
            task,
            project=project,
            tools=asked.tools or None,
            model=asked.model,
            budget_tokens=budget,
        )
        opening = _own_only(opening)
        if not opening.briefing.commands:
            return opening
        return _with_most_used(opening, self._for_project(project).briefing.commands, budget)

    def _recorded(self, host: str, session: str, opening: Opening) -> HostSession:
        if opening.is_empty:
            return self._cold(host, session, opening.note or "nothing fitted")
        return HostSession(
            host=host,
            session_id=session,
            state="warm",
            at=self._clock(),
            opening=opening.id,
            tokens=opening.tokens,
            shown=tuple(_parts(opening)),
            content=_encode((opening,)),
        )

    def _cold(self, host: str, session: str, reason: str) -> HostSession:
        return HostSession(
            host=host, session_id=session, state="cold", at=self._clock(), reason=reason
        )

    @contextmanager
    def _reserved(self, ends: float) -> Iterator[None]:
        """Wait until no other opening is built, but not longer than until `ends`."""
        if not self._building.acquire(timeout=max(ends - time.monotonic(), 0.0)):
            raise LateAnswer
        try:
            yield
        finally:
            self._building.release()


def explain(record: HostSession | None) -> str:
    """Return for a person what a session started with, and why."""
    if record is None:
        return "Journeyman has decided nothing about this session yet."
    openings = _openings(record)
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


def given_texts(record: HostSession) -> list[str]:
    """Return what a session was given, in order, as text."""
    return [opening.messages("text") for opening in _openings(record)]


def _answer(record: HostSession, form: Form) -> OpeningAnswer:
    openings = _openings(record) if record.state == "warm" else ()
    if not openings:
        state: HostState = "off" if record.state == "off" else "cold"
        return OpeningAnswer(state=state, reason=record.reason)
    opening = openings[0]
    answer = OpeningAnswer(
        id=record.opening,
        state="warm",
        system=opening.system,
        text=opening.messages("text"),
        tokens=record.tokens,
    )
    return answer if form == "text" else replace(answer, messages=_examples(opening, form))


def _examples(opening: Opening, form: MessageForm) -> list[dict[str, Any]]:
    messages: Sequence[Mapping[str, Any]] = opening.messages(form)
    return [dict(message) for message in messages if message.get("role") != "system"]


def _own_only(opening: Opening) -> Opening:
    """Return the opening of a project without what was said or printed in other projects: from
    those, it keeps only the commands that work anywhere.
    """
    project = opening.briefing.project
    if opening.is_empty or project not in ("", ELSEWHERE):
        return opening
    commands = replace(opening.briefing, mistakes=(), files=(), episodes=())
    result = replace(opening, briefing=commands, choices=(), addendum="")
    if not project or result.is_empty:
        return Opening(task=opening.task, note="Nothing was learned in this project yet.")
    return replace(result, tokens=Embedder().count_tokens(result.system))


def _with_most_used(opening: Opening, most_used: Sequence[PlaybookCommand], budget: int) -> Opening:
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


def _unseen(opening: Opening, shown: Iterable[str]) -> Opening:
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
    files = tuple(path for path in briefing.files if f"file {path}" not in seen)
    episodes = tuple(one for one in briefing.episodes if f"request {one.intent}" not in seen)
    choices = tuple(one for one in opening.choices if f"request {one.pattern.intent}" not in seen)
    nearest = next(_requests(opening), "")
    if nearest in seen or not (episodes or choices or files or mistakes):
        return Opening(task=opening.task, note="The session has seen all that fits.")
    rest = replace(briefing, commands=commands, mistakes=mistakes, files=files, episodes=episodes)
    return replace(opening, briefing=rest, choices=choices)


def _parts(opening: Opening) -> Iterator[str]:
    """Yield names for the parts of an opening."""
    briefing: Briefing = opening.briefing
    yield from (f"command {one.name}" for one in briefing.commands)
    yield from (f"mistake {one.error}" for one in briefing.mistakes)
    yield from (f"file {path}" for path in briefing.files)
    yield from _requests(opening)


def _requests(opening: Opening) -> Iterator[str]:
    """Yield names for the requests in an opening, the nearest first."""
    choices: tuple[Choice, ...] = opening.choices
    yield from (f"request {one.pattern.intent}" for one in choices)
    yield from (f"request {one.intent}" for one in opening.briefing.episodes)


def _encode(openings: Sequence[Opening]) -> str:
    # What was left out is for people who look at one opening, and long.
    return msgspec.json.encode([replace(opening, left_out=()) for opening in openings]).decode()


def _openings(record: HostSession) -> tuple[Opening, ...]:
    """Return what a record holds; nothing if another version of this program wrote it."""
    try:
        return _decode(record.content)
    except msgspec.DecodeError:
        return ()


def _left_s(ends: float) -> float:
    """Return the time until an answer must be there. Raise LateAnswer if it has passed."""
    left_s = ends - time.monotonic()
    if left_s <= 0:
        raise LateAnswer
    return left_s
