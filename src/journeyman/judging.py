"""Judging stored sessions, each of them once. Verdicts that were made before are read; the rest is
made, a session at a time, and kept for the next time. What makes a good or a bad call is the
judge's business, which is handed in.

A lineage is judged here too: the sessions that continue each other, cut where the context was
compressed.
"""

import logging
from collections.abc import Callable, Sequence

from journeyman.records import (
    JudgedCall,
    JudgedSession,
    Session,
    SessionId,
    SessionOverview,
    Verdict,
)
from journeyman.records.errors import AmbiguousSession, OutsideProblem, UnknownSession
from journeyman.reliability.compression import Stretch
from journeyman.store.sessions import LONGEST_LINEAGE
from journeyman.store.store import Store
from journeyman.templates.judged_calls import Judge, judged_calls, judged_session

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]

_Judged = tuple[SessionId, str, tuple[JudgedCall, ...]]
"""A session's id, the digest of its content, and the verdicts on its calls."""


_CONTINUES = ("compression", "unknown")
"""Kinds of lineage in which the child goes on where the parent stopped. A recorder that names a
parent without a reason is taken at its word."""


class Judging:
    """Judges the sessions of a store. `rules` names the judge: verdicts that were made under
    another name do not count. Verdicts are kept in batches of `most_sessions` or `most_calls`,
    whichever is reached first, so that an interruption loses no more than one.
    """

    def __init__(
        self,
        store: Store,
        judge: Judge,
        rules: str,
        *,
        most_sessions: int = 200,
        most_calls: int = 50_000,
    ) -> None:
        self._store = store
        self._judge = judge
        self._rules = rules
        self._most_sessions = most_sessions
        self._most_calls = most_calls

    def judged(
        self,
        overviews: Sequence[SessionOverview],
        progress: Progress = lambda _done, _total: None,
    ) -> list[JudgedSession]:
        """The sessions with the verdicts on their agents' calls, in the order given; one that has
        been deleted since it was listed is left out. `progress` is told how many sessions are
        done of those that had to be judged.
        """
        with_calls = {one.session.id: one for one in overviews if one.calls}
        found = self._store.verdicts.known(self._rules, [*with_calls])
        missing = [one for id_, one in with_calls.items() if id_ not in found]
        found |= self._judge_and_keep(missing, progress)
        return [
            judged_session(one, found.get(one.session.id, ()))
            for one in overviews
            if one.session.id in found or not one.calls
        ]

    def stretches(self, session_id: str) -> tuple[list[Stretch], str]:
        """The lineage of a session in parts, cut at each compression, and what is not known of it:
        its parents, itself and what went on from it, with the generations inside each.
        """
        chain, note = self._chain(self._store.sessions.get(session_id).session)
        overviews = [self._store.sessions.get(session.id) for session in chain]
        parts: list[Stretch] = []
        for judged in self.judged(overviews):
            calls = _without_copies(parts[-1].calls if parts else (), judged.calls)
            generations = sorted({call.generation for call in calls}) or [0]
            for number, generation in enumerate(generations, start=1):
                part = f", part {number} of {len(generations)}" if len(generations) > 1 else ""
                own = tuple(call for call in calls if call.generation == generation)
                parts.append(Stretch(label=f"{judged.id}{part}", calls=own))
        return parts, note

    def _chain(self, session: Session) -> tuple[list[Session], str]:
        """The sessions that continue each other, oldest first, and where the links break."""
        sessions = self._store.sessions
        chain, note = [session], ""
        stored = {one.id: one for one in sessions.ancestors(session.id)}
        while (link := chain[0].lineage) is not None and link.kind in _CONTINUES:
            if link.parent in {one.id for one in chain}:
                note = f"The recorded links go in a circle at {link.parent}, and were cut there."
                break
            if link.parent not in stored:
                note = f"Its parent {link.parent} is not stored, so nothing is known before it."
                break
            chain.insert(0, stored[link.parent])
        seen = {one.id for one in chain}
        while len(chain) < LONGEST_LINEAGE:
            later = [one for one in sessions.children(chain[-1].id) if _is_next(one, seen)]
            if not later:
                break
            seen.add(later[0].id)
            chain.append(later[0])
        return chain, note

    def _judge_and_keep(
        self, missing: Sequence[SessionOverview], progress: Progress
    ) -> dict[SessionId, tuple[JudgedCall, ...]]:
        found: dict[SessionId, tuple[JudgedCall, ...]] = {}
        waiting: list[_Judged] = []
        keeps = True
        for done, overview in enumerate(missing, start=1):
            session_id = overview.session.id
            calls = self._judged_calls(session_id)
            if calls is not None:
                found[session_id] = calls
                waiting.append((session_id, overview.digest, calls))
            if self._is_full(waiting):
                keeps = keeps and self._keep(waiting)
                waiting = []
            progress(done, len(missing))
        if keeps:
            self._keep(waiting)
        return found

    def _judged_calls(self, session_id: SessionId) -> tuple[JudgedCall, ...] | None:
        """The verdicts on the agent's calls, or None if the session is gone."""
        try:
            messages = list(self._store.sessions.messages(session_id))
        except (UnknownSession, AmbiguousSession):  # others may begin with the id that is gone
            return None
        return judged_calls(messages, self._judge)

    def _is_full(self, waiting: list[_Judged]) -> bool:
        calls = sum(len(calls) for _, _, calls in waiting)
        return len(waiting) >= self._most_sessions or calls >= self._most_calls

    def _keep(self, waiting: list[_Judged]) -> bool:
        """Whether it is worth trying again: a verdict is as right when it cannot be kept, and a
        database that is read-only or locked should make nobody wait twice.
        """
        try:
            self._store.verdicts.save(self._rules, waiting)
        except OutsideProblem as problem:
            logger.info("Verdicts are not kept: %s", problem)
            return False
        return True


def _is_next(session: Session, seen: set[SessionId]) -> bool:
    lineage = session.lineage
    return lineage is not None and lineage.kind in _CONTINUES and session.id not in seen


def _without_copies(
    before: tuple[JudgedCall, ...], calls: tuple[JudgedCall, ...]
) -> tuple[JudgedCall, ...]:
    """The calls without those at their beginning that the end of the part before has already: a
    compression keeps the last messages as they are, and some recorders write them down again.
    """
    ids, earlier = [call.call_id for call in calls], [call.call_id for call in before]
    if len(set(ids)) < len(ids) or len(set(earlier)) < len(earlier) or not ids:
        return calls  # ids that are used again name nothing
    if ids[0] not in earlier:
        return calls
    size = len(earlier) - earlier.index(ids[0])
    copied = [_as_said(call) for call in calls[:size]]
    return calls[size:] if copied == [_as_said(call) for call in before[-size:]] else calls


def _as_said(call: JudgedCall) -> tuple[str, str, Verdict]:
    return call.call_id, call.tool, call.verdict
