"""Forgets what was learned: from a session or a project, or wherever a text occurs in
it. What is forgotten is not learned again until that is undone.
"""

from collections.abc import Callable, Sequence

from journeyman.records import SessionId
from journeyman.records.errors import UnknownSession, WrongInput
from journeyman.records.forgetting import EVERY_REQUEST, Forgotten, ForgottenSession
from journeyman.store.store import Store


class Removal:
    """Forgets what was learned (`jm.forgotten`): forget, forget_matching, undo, list. What to
    forget is a session or a project, one of the two.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def forget(self, session: str = "", *, project: str = "", dry_run: bool = False) -> Forgotten:
        """Remove all that was learned there; with `dry_run`, only report it. Raises WrongInput and
        UnknownSession.
        """
        sessions = self._sessions(session, project)
        selected = {id_: frozenset((EVERY_REQUEST,)) for id_ in sessions}
        return self._store.forgotten.forget(selected, at=self._clock(), dry_run=dry_run)

    def forget_matching(self, text: str, *, dry_run: bool = False) -> Forgotten:
        """Remove every request that contains the text, also from templates."""
        if not text.strip():
            raise WrongInput("The text to forget is empty. Pass some of the text that was learned.")
        found = self._store.forgotten.matching(text)
        return self._store.forgotten.forget(found, at=self._clock(), matching=text, dry_run=dry_run)

    def undo(self, session: str = "", *, project: str = "") -> Sequence[SessionId]:
        """Allow forgotten sessions to be learned from again, and return them. Raises WrongInput if
        there were none.
        """
        restored = self._store.forgotten.undo(self._sessions(session, project))
        if not restored:
            raise WrongInput(
                f"Nothing learned from {session or project!r} was forgotten. "
                "`journeyman forget --list` shows what was."
            )
        return restored

    def list(self) -> Sequence[ForgottenSession]:
        """Return the sessions that are forgotten, whole or in part, the latest first."""
        return self._store.forgotten.list()

    def _sessions(self, session: str, project: str) -> Sequence[SessionId]:
        if bool(session) == bool(project):
            raise WrongInput("Say what to forget: a session, a project, or a text with --matching.")
        if session:
            return [self._store.sessions.get(session).session.id]
        found = self._store.sessions.list(project=project)
        if not found:
            reason = self._store.sessions.no_match(project=project)
            raise UnknownSession(reason or "No session is stored, so nothing was learned.")
        return [overview.session.id for overview in found]
