"""Forgetting what was learned: from a session, a project, a recorder, or wherever a text is in it.
What is forgotten is not learned again until that is undone.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from journeyman.records import SessionId
from journeyman.records.errors import AmbiguousSession, UnknownSession, WrongInput
from journeyman.records.kept_out import EVERY_REQUEST, Forgotten, ForgottenSession
from journeyman.store.forgotten import TextMatch
from journeyman.store.store import Store
from journeyman.templates.mining.requests import requests
from journeyman.templates.shown.wording import after_opening


class Target(NamedTuple):
    """From where something was learned: one of three, or a `name` that any may have."""

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
        """Remove all that was learned from there, or only say what that is. Raises WrongInput."""
        which = {one: frozenset((EVERY_REQUEST,)) for one in self._sessions(target)}
        return self._store.forgotten.forget(which, at=self._clock(), dry_run=dry_run)

    def forget_matching(self, text: str, *, dry_run: bool = False) -> Forgotten:
        """Remove every request and pattern that holds the text, also from templates."""
        if not text.strip():
            raise WrongInput("The text to be forgotten is empty. Give some of what was learned.")
        found = self._store.forgotten.matching(text)
        which = dict(found.requests)
        match = TextMatch(text)
        for session in found.seen:
            held = self._requests_holding(session, match)
            if not held and session in found.shown and session not in which:
                held = {EVERY_REQUEST}  # nothing stands there as it was recorded
            if held:
                which[session] = frozenset((*which.get(session, ()), *held))
        return self._store.forgotten.forget(which, at=self._clock(), matching=text, dry_run=dry_run)

    def undo(self, target: Target) -> Sequence[SessionId]:
        """Let forgotten sessions teach again; which those were. Raises WrongInput if none was."""
        known = [one.session for one in self.list()]
        begun = target.session or target.name
        try:
            wanted: Iterable[str] = self._sessions(target)
        except UnknownSession:  # it may have been deleted since
            wanted = [one for one in known if begun and one.startswith(begun)]
        found = self._store.forgotten.undo([one for one in wanted if one in set(known)])
        if not found:
            raise WrongInput(
                f"Nothing of {''.join(target)!r} is forgotten. "
                "`journeyman forget --list` shows what is."
            )
        return found

    def list(self) -> Sequence[ForgottenSession]:
        """The sessions that are forgotten, whole or in part, the latest first."""
        return self._store.forgotten.list()

    def _sessions(self, target: Target) -> Sequence[SessionId]:
        """The sessions that a target means. Raises WrongInput."""
        if sum(map(bool, target)) != 1:
            raise WrongInput(
                "Say what to forget: a session, a project or a source, one at a time, or a text "
                "with --matching."
            )
        name, sessions = "".join(target), self._store.sessions
        found: dict[str, Sequence[SessionId]] = {}
        if (target.name or target.project) and (some := sessions.list(project=name)):
            found["project"] = [one.session.id for one in some]
        if (target.name or target.source) and (some := sessions.list(source=name)):
            found["source"] = [one.session.id for one in some]
        if target.name or target.session:
            try:
                found["session"] = [sessions.get(name).session.id]
            except UnknownSession:
                if target.session:
                    raise
            except AmbiguousSession:
                if not found:
                    raise
                found["session"] = ()
        if len(found) > 1:
            options = ", ".join(f"--{kind} {name}" for kind in found)
            raise WrongInput(f"{name!r} may mean more than one thing. Say which: {options}.")
        if not found:
            known = {
                "projects": () if target.source else sessions.nearest_projects(name),
                "sources": () if target.project else [one.source for one in sessions.totals()],
            }
            told = [f"Known {kind}: {', '.join(names)}." for kind, names in known.items() if names]
            advice = " ".join(told) or "`journeyman sessions list` shows what is stored."
            raise UnknownSession(f"No stored session belongs to {name!r}. {advice}")
        return next(iter(found.values()))

    def _requests_holding(self, session: str, match: TextMatch) -> set[int]:
        """The requests of a session in whose recorded messages a text stands."""
        messages = list(self._store.sessions.messages(session))
        live = messages[after_opening(messages) :]
        found = set()
        for message, request in zip(live, requests(live).under, strict=True):
            asked = (call.arguments for call in message.tool_calls)
            if match.holds(message.text, *asked, request.wanted, request.answer):
                found.add(request.number)
        return found
