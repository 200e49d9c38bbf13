"""Forgets what was learned: from a session, a project or a recorder, or wherever a text occurs in
it. What is forgotten is not learned again until that is undone.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from journeyman.records import SessionId
from journeyman.records.errors import AmbiguousSession, UnknownSession, WrongInput
from journeyman.records.exclusions import EVERY_REQUEST, Forgotten, ForgottenSession
from journeyman.store.removals import TextMatch
from journeyman.store.session_filters import SessionFilters
from journeyman.store.store import Store
from journeyman.templates.mining.requests import requests
from journeyman.templates.opening_text import opening_length


class Target(NamedTuple):
    """The origin of what was learned: a session, a project or a source, or a `name` of any
    of them.
    """

    name: str = ""
    session: str = ""
    project: str = ""
    source: str = ""


class Removal:
    """Forgets what was learned (`jm.forgotten`): forget, forget_matching, undo, list."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def forget(self, target: Target, *, dry_run: bool = False) -> Forgotten:
        """Remove all that was learned from the target; with `dry_run`, only report it. Raises
        WrongInput.
        """
        selected = {session: frozenset((EVERY_REQUEST,)) for session in self._sessions(target)}
        return self._store.forgotten.forget(selected, at=self._clock(), dry_run=dry_run)

    def forget_matching(self, text: str, *, dry_run: bool = False) -> Forgotten:
        """Remove every request and pattern that contains the text, also from templates."""
        if not text.strip():
            raise WrongInput("The text to forget is empty. Pass some of the text that was learned.")
        matching = self._store.forgotten.matching(text)
        selected = dict(matching.requests)
        match = TextMatch(text)
        for session in matching.seen:
            numbers = self._requests_containing(session, match)
            if not numbers and session in matching.shown and session not in selected:
                numbers = {EVERY_REQUEST}  # nothing in the session is as it was recorded
            if numbers:
                selected[session] = frozenset((*selected.get(session, ()), *numbers))
        return self._store.forgotten.forget(
            selected, at=self._clock(), matching=text, dry_run=dry_run
        )

    def undo(self, target: Target) -> Sequence[SessionId]:
        """Allow forgotten sessions to be learned from again, and return them. Raises WrongInput if
        there were none.
        """
        forgotten = [entry.session for entry in self.list()]
        prefix = target.session or target.name
        try:
            selected: Iterable[str] = self._sessions(target)
        except UnknownSession:  # it may have been deleted since
            selected = [session for session in forgotten if prefix and session.startswith(prefix)]
        restored = self._store.forgotten.undo(
            [session for session in selected if session in set(forgotten)]
        )
        if not restored:
            raise WrongInput(
                f"Nothing learned from {''.join(target)!r} was forgotten. "
                "`journeyman forget --list` shows what was."
            )
        return restored

    def list(self) -> Sequence[ForgottenSession]:
        """Return the sessions that are forgotten, whole or in part, the latest first."""
        return self._store.forgotten.list()

    def _sessions(self, target: Target) -> Sequence[SessionId]:
        """Return the sessions that a target means. Raises WrongInput and UnknownSession."""
        if sum(map(bool, target)) != 1:
            raise WrongInput(
                "Say what to forget: a session, a project or a source, one at a time, or a text "
                "with --matching."
            )
        name, sessions = "".join(target), self._store.sessions
        matches: dict[str, Sequence[SessionId]] = {}
        if (target.name or target.project) and (overviews := sessions.list(project=name)):
            matches["project"] = [overview.session.id for overview in overviews]
        if (target.name or target.source) and (overviews := sessions.list(source=name)):
            matches["source"] = [overview.session.id for overview in overviews]
        if target.name or target.session:
            try:
                matches["session"] = [sessions.get(name).session.id]
            except UnknownSession:
                if target.session:
                    raise
            except AmbiguousSession:
                if not matches:
                    raise
                matches["session"] = ()
        if len(matches) > 1:
            options = ", ".join(f"--{kind} {name}" for kind in matches)
            raise WrongInput(f"{name!r} is ambiguous. Say which one you mean: {options}.")
        if not matches:
            filters = SessionFilters()
            if not target.source:
                filters["project"] = name
            if not target.project:
                filters["source"] = name
            none_stored = f"No session is stored, so none belongs to {name!r}."
            raise UnknownSession(sessions.no_match(**filters) or none_stored)
        return next(iter(matches.values()))

    def _requests_containing(self, session: str, match: TextMatch) -> set[int]:
        """Return the requests of a session with recorded messages that contain a text."""
        messages = list(self._store.sessions.messages(session))
        live = messages[opening_length(messages) :]
        numbers = set()
        for message, request in zip(live, requests(live).under, strict=True):
            arguments = (call.arguments for call in message.tool_calls)
            if match.holds(message.text, *arguments, request.text, request.answer):
                numbers.add(request.number)
        return numbers
