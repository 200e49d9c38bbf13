"""Forgetting what was learned: from a session, a project, a recorder, or wherever a text is in it.
What is forgotten is not learned again until that is undone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from journeyman.records import Message, SessionId
from journeyman.records.errors import AmbiguousSession, UnknownSession, WrongInput
from journeyman.records.kept_out import EVERY_REQUEST, Forgotten, ForgottenSession
from journeyman.store.store import Store
from journeyman.store.text_match import TextMatch
from journeyman.templates.mining.own_openings import after_opening
from journeyman.templates.mining.requests import requests

_NAMED = 3


class Target(NamedTuple):
    """From where something was learned. One of these is given: which of the three it is, or a
    `name` that any of them may have.
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
        """Remove all that was learned from there; with a `dry_run` only say what that is. Raises
        WrongInput where the target means nothing, or more than one thing.
        """
        which = {one: frozenset((EVERY_REQUEST,)) for one in self._sessions(target)}
        return self._store.forgotten.forget(which, at=self._clock(), dry_run=dry_run)

    def forget_matching(self, text: str, *, dry_run: bool = False) -> Forgotten:
        """Remove every request and every pattern in which what was learned holds the text,
        whatever the case, and take it out of templates.
        """
        if not text.strip():
            raise WrongInput("The text to be forgotten is empty. Give some of what was learned.")
        found = self._store.forgotten.matching(text)
        which = {session: set(numbers) for session, numbers in found.requests.items()}
        match = TextMatch(text)
        for session in found.seen:
            held = self._requests_holding(session, match)
            if not held and session in found.shown and session not in which:
                held = {EVERY_REQUEST}  # nothing stands there as it was recorded
            if held:
                which.setdefault(session, set()).update(held)
        return self._store.forgotten.forget(
            {session: frozenset(numbers) for session, numbers in which.items()},
            at=self._clock(),
            matching=text,
            dry_run=dry_run,
        )

    def undo(self, target: Target) -> Sequence[SessionId]:
        """Let sessions teach again that were forgotten, whole or in part; which those were. The
        next run of learning learns from them. Raises WrongInput if none was forgotten.
        """
        known = [one.session for one in self.list()]
        begun = target.session or target.name
        try:
            wanted: Iterable[str] = self._sessions(target)
        except UnknownSession:  # it may have been deleted since
            wanted = [one for one in known if begun and one.startswith(begun)]
        found = self._store.forgotten.undo([one for one in wanted if one in set(known)])
        if not found:
            raise WrongInput(
                f"Nothing of {_said(target)} is forgotten. "
                "`journeyman forget --list` shows what is."
            )
        return found

    def list(self) -> Sequence[ForgottenSession]:
        """The sessions that are forgotten, whole or in part, the latest first."""
        return self._store.forgotten.list()

    def _sessions(self, target: Target) -> Sequence[SessionId]:
        if sum(map(bool, target)) != 1:
            raise WrongInput(
                "Say what to forget: a session, a project or a source, one at a time, or a text "
                "with --matching."
            )
        found = self._meant(target)
        if len(found) > 1:
            options = "; ".join(
                f"--{kind} {target.name} ({said})" for kind, (said, _) in found.items()
            )
            raise WrongInput(f"{target.name!r} may mean more than one thing. Say which: {options}.")
        if not found:
            raise self._unknown(target)
        ((_, sessions),) = found.values()
        return sessions

    def _meant(self, target: Target) -> Mapping[str, tuple[str, Sequence[SessionId]]]:
        """What a target can mean, by kind: in words, and the sessions."""
        found: dict[str, tuple[str, Sequence[SessionId]]] = {}
        sessions = self._store.sessions
        if name := target.session or target.name:
            try:
                session = sessions.get(name).session
            except UnknownSession:
                if target.session:
                    raise
            except AmbiguousSession as error:
                if target.session or not self._is_other(target.name):
                    raise
                found["session"] = (str(error).rstrip("."), [])
            else:
                found["session"] = (f"session {session.id}", [session.id])
        for kind in ("project", "source"):
            if name := getattr(target, kind) or target.name:
                chosen = (
                    sessions.list(project=name) if kind == "project" else sessions.list(source=name)
                )
                if chosen:
                    count = f"{len(chosen):,} session{'s' * (len(chosen) > 1)}"
                    found[kind] = (f"the {kind}, {count}", [one.session.id for one in chosen])
        return found

    def _is_other(self, name: str) -> bool:
        sessions = self._store.sessions
        return bool(sessions.list(project=name, limit=1) or sessions.list(source=name, limit=1))

    def _unknown(self, target: Target) -> WrongInput:
        sessions = self._store.sessions
        name = target.name or target.project or target.source
        known = {
            "projects": sessions.nearest_projects(name)[:_NAMED] if not target.source else (),
            "sources": [one.source for one in sessions.totals()] if not target.project else (),
        }
        told = " ".join(
            f"Known {kind}: {', '.join(names)}." for kind, names in known.items() if names
        )
        advice = "`journeyman sessions list` shows what is stored."
        return UnknownSession(f"No stored session belongs to {_said(target)}. {told or advice}")

    def _requests_holding(self, session: str, match: TextMatch) -> set[int]:
        """The requests of a session in whose recorded messages a text stands."""
        messages = list(self._store.sessions.messages(session))
        live = messages[after_opening(messages) :]
        return {
            request.number
            for message, request in zip(live, requests(live).under, strict=True)
            if match.holds(*_texts(message), request.wanted, request.answer)
        }


def _texts(message: Message) -> Iterable[str]:
    return (message.text, *(call.arguments for call in message.tool_calls))


def _said(target: Target) -> str:
    kind = next((kind for kind in ("session", "project", "source") if getattr(target, kind)), "")
    return f"{kind} {getattr(target, kind)!r}" if kind else repr(target.name)
