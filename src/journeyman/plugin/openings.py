"""The openings of hosts' sessions. What a session starts with is decided once, stored before it is
given out, and never changes: a resumed, compressed or retried session gets the same bytes.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from journeyman.experience.moments import Advice
from journeyman.experience.opening import MessageForm, Opening
from journeyman.facade.journeyman import Journeyman
from journeyman.learning.search_keys import is_small_talk
from journeyman.logs.log_file import LogFile
from journeyman.logs.sqlite_database import open_database
from journeyman.models.embedder import Embedder
from journeyman.plugin.opening_parts import encode_openings, given_text, parts, stored_openings
from journeyman.records import Call
from journeyman.records.errors import LogUnreadable, NotALog, WrongInput
from journeyman.records.host import HELD_OUT, HostSession, HostState, source_of
from journeyman.store.host_sessions import HostSessions

_LONGEST_TASK = 20_000
_LINEAGE = {"sessions": {"id", "parent_session_id"}}
_LONGEST_LINEAGE = 50
_BUSY_TIMEOUT_S = 0.3
_RECENT_PROJECTS = 3

_AT_CALL = "call "
"""Precedes the id of a fact that a session was told at a call."""

_BEGUN = "it had begun without one"
LATE = "it was not ready in time"


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
    form: MessageForm = "openai"
    fresh: bool = True
    parent: str = ""
    platform: str = ""
    path: str = ""


class OpeningAnswer(Struct, frozen=True, kw_only=True):
    """What the session starts with: `system` goes behind the host's own system text, `messages`
    follow it.
    """

    id: str = ""
    state: HostState = "cold"
    reason: str = ""
    system: str = ""
    messages: list[dict[str, Any]] = []
    tokens: int = 0


class SessionOpenings:
    """Decides on openings, and keeps them. Only one is built at a time. With `bots`, what jobs
    did is told too.
    """

    def __init__(
        self,
        journeyman: Journeyman,
        kept: HostSessions,
        clock: Callable[[], float] = time.time,
        *,
        bots: bool = False,
    ) -> None:
        self._journeyman = journeyman
        self._bots = bots
        self._kept = kept
        self._clock = clock
        self._building = threading.Lock()
        self._changing = threading.RLock()
        """Held while a record is read and stored again: hooks of one session run side by side."""

    def find(self, host: str, session: str) -> HostSession | None:
        return self._kept.find(host, session)

    def warm_up(self) -> None:
        """Load what the next openings need: the facts of the newest projects."""
        for totals in self._journeyman.sessions.projects()[:_RECENT_PROJECTS]:
            with self._building:  # a session that begins now need not wait for all of them
                self._journeyman.moments(totals.project).start()

    def opening(self, host: str, asked: OpeningRequest, ends: float) -> OpeningAnswer:
        """Return what a session starts with, for hosts that send whole messages. It must be ready
        at `ends`, by the monotonic clock; otherwise the session stays cold.
        """
        record = self._kept.find(host, asked.session) or self._inherited(host, asked)
        if record is None:
            record = self._decided(host, asked, ends)
        return _answer(record, asked.form)

    def answer(self, host: str, session: str, form: MessageForm) -> OpeningAnswer:
        """Return what a session was given when it began."""
        record = self._kept.find(host, session)
        return OpeningAnswer(reason=_BEGUN) if record is None else _answer(record, form)

    def note(self, host: str, session: str, *, within_s: float | None = None) -> None:
        """Note in the store that a session started warm, if it did."""
        record = self._kept.find(host, session)
        if record is not None and record.state == "warm" and record.opening:
            self._journeyman.sessions.note_opening(
                session, record.opening, source=source_of(host), within_s=within_s
            )

    def take_back(self, host: str, session: str, before: HostSession | None) -> None:
        """Restore the record of a session, because the host did not receive the last answer."""
        with self._changing:
            self._kept.save(before or self._cold(host, session, LATE))

    def project_text(
        self, host: str, session: str, cwd: str, ends: float, *, before_calls: bool = False
    ) -> str:
        """Return the text for the beginning of a session: what recurs in its project, without what
        can be said `before_calls`. It is empty for a session that has begun, unless it missed its
        text.
        """
        # To its end: hooks may stand twice in a host, and ask at the same time.
        with self._reserved(ends):
            record = self._kept.find(host, session)
            if (record and record.reason != LATE) or self._held_out(host, session):
                return ""
            opening = self._for_project(cwd, before_calls=before_calls)
            if opening.is_empty:
                self._kept.add(self._cold(host, session, opening.note), within_s=_left_s(ends))
            return self._given(host, session, opening, ends)

    def task_text(self, host: str, session: str, task: str, cwd: str, ends: float) -> str:
        """Return the text for a request: the facts that it needs and the session has not seen. It
        is empty for a session whose beginning was not seen: a fork has its parent's context, and
        what began without an opening stays so.
        """
        with self._reserved(ends):
            record = self.begun(host, session)
            if record.state == "off" or record.reason == _BEGUN:
                return ""
            advice = self._journeyman.moments(cwd, bots=self._bots).prompt(
                task[:_LONGEST_TASK], frozenset(record.shown)
            )
            return self._given(host, session, _opening(advice), ends)

    def call_advice(
        self,
        host: str,
        session: str,
        call: Call,
        cwd: str,
        *,
        has_failed: bool = False,
        only_bans: bool = False,
    ) -> Advice:
        """Return what is known against exactly this call, before it runs or after it has failed,
        once a session, even if the start has said it. With `only_bans`, only what the person
        forbade.
        """
        silent = Advice(moment="call")
        record = self.begun(host, session)
        if record.state == "off":
            return silent
        moments = self._journeyman.moments(cwd, bots=self._bots)
        told = {part.removeprefix(_AT_CALL) for part in record.shown if part.startswith(_AT_CALL)}
        advice = moments.failure(call, told) if has_failed else moments.call(call, told)
        if only_bans and not advice.is_ban:
            return silent
        new = [self.note_shown(host, session, _AT_CALL + fact.id) for fact in advice.facts]
        if not any(new):
            return silent
        with self._changing:
            record, opening = self.begun(host, session), _opening(advice)
            content = encode_openings((*stored_openings(record), opening))
            tokens = record.tokens + opening.tokens
            self._kept.save(replace(record, content=content, tokens=tokens))
        return advice

    def repeated_text(self, host: str, session: str, cwd: str, log: str) -> str:
        """Return the first text of a session again, after the host has compressed its context, and
        what of its own work the summary may have lost.
        """
        with self._changing:
            record = self._kept.find(host, session)
            openings = stored_openings(record) if record and record.opening else ()
            if record is None or record.state == "off":
                return ""
            start = given_text(openings[0]) if openings else ""
            shown = tuple(parts(openings[0])) if openings else ()
            tokens = Embedder().count_tokens(start)
            self._kept.save(replace(record, shown=shown, tokens=tokens))
        own = self._journeyman.observed(session, log)
        return self._journeyman.moments(cwd, bots=self._bots).compaction(own, start).text

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

    def _for_project(self, cwd: str, *, before_calls: bool = False) -> Opening:
        advice = self._journeyman.moments(cwd, bots=self._bots).start(before_calls=before_calls)
        if advice.is_empty:
            return Opening(task="", note="Nothing is known about this project yet.")
        return _opening(advice)

    def _given(self, host: str, session: str, opening: Opening, ends: float) -> str:
        """Store a further opening of a session, and return its text."""
        if opening.is_empty:
            return ""
        text = given_text(opening)
        with self._changing:
            record = self._kept.find(host, session) or self._cold(host, session, "")
            if record.state == "off":
                return ""
            self._kept.save(
                _warm(record, opening, Embedder().count_tokens(text)), within_s=_left_s(ends)
            )
        return text

    def _inherited(self, host: str, asked: OpeningRequest) -> HostSession | None:
        parents = [asked.parent] if asked.parent else []
        if host == "hermes" and not (asked.fresh or parents or asked.platform == "subagent"):
            parents += _ancestors(asked.path, asked.session)
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
                record = self._cold(host, asked.session, LATE)
            except WrongInput as error:
                record = self._cold(host, asked.session, str(error))
        return self._kept.add(record)

    def _held_out(self, host: str, session: str) -> HostSession | None:
        """Leave a new session without an opening if chance, by its id, has chosen it for that."""
        share = self._journeyman.settings.hosts.holdout
        digest = hashlib.sha256(f"{host} {session}".encode("utf-8", "replace")).digest()
        record = self._kept.find(host, session)
        has_begun = record is not None and record.reason != LATE
        if has_begun or int.from_bytes(digest[:4]) >= share * 2**32:
            return None
        held_out = replace(self._cold(host, session, HELD_OUT), state="off")
        self._kept.save(held_out)
        return held_out

    def _built(self, asked: OpeningRequest) -> Opening:
        task, project = asked.task.strip()[:_LONGEST_TASK], asked.cwd
        if not task or is_small_talk(task):
            return self._for_project(project)
        return self._journeyman.opening(
            task,
            project=project,
            tools=asked.tools or None,
            model=asked.model,
            own_only=True,
            bots=self._bots,
            budget_tokens=self._journeyman.settings.hosts.budget_tokens,
        )

    def _recorded(self, host: str, session: str, opening: Opening) -> HostSession:
        if opening.is_empty:
            return self._cold(host, session, opening.note or "nothing fitted")
        return _warm(self._cold(host, session, ""), opening, opening.tokens)

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


def _warm(record: HostSession, opening: Opening, tokens: int) -> HostSession:
    """Return the record of a session that gets an opening of this size."""
    return replace(
        record,
        state="warm",
        reason="",
        opening=record.opening or opening.id,
        tokens=record.tokens + tokens,
        shown=(*record.shown, *parts(opening)),
        content=encode_openings((*stored_openings(record), opening)),
    )


def _opening(advice: Advice) -> Opening:
    opening = Opening(task="", preamble=advice.text, facts=advice.facts)
    return replace(opening, tokens=Embedder().count_tokens(opening.system))


def _answer(record: HostSession, form: MessageForm) -> OpeningAnswer:
    openings = stored_openings(record) if record.state == "warm" else ()
    if not openings:
        state: HostState = "off" if record.state == "off" else "cold"
        return OpeningAnswer(state=state, reason=record.reason)
    opening = openings[0]
    messages: Sequence[Mapping[str, Any]] = opening.messages(form)
    return OpeningAnswer(
        id=record.opening,
        state="warm",
        system=opening.system,
        messages=[dict(one) for one in messages if one.get("role") != "system"],
        tokens=record.tokens,
    )


def _left_s(ends: float) -> float:
    """Return the time until an answer must be there. Raise LateAnswer if it has passed."""
    left_s = ends - time.monotonic()
    if left_s <= 0:
        raise LateAnswer
    return left_s


def _ancestors(database: str, session: str) -> tuple[str, ...]:
    """Return the sessions of Hermes that this one continues, the nearest first; none if its
    database cannot be read. A compression or a branch may give a conversation a new id that no hook
    reports.
    """
    found: list[str] = []
    try:
        with open_database(
            LogFile(Path(database)), _LINEAGE, busy_timeout_s=_BUSY_TIMEOUT_S
        ) as opened:
            statement = "SELECT parent_session_id FROM sessions WHERE id = ?"
            while len(found) < _LONGEST_LINEAGE:
                row = opened.execute(statement, found[-1] if found else session).fetchone()
                parent = row["parent_session_id"] if row else None
                if not isinstance(parent, str) or parent in found:
                    break
                found.append(parent)
    except (LogUnreadable, NotALog):
        return ()
    return tuple(found)
