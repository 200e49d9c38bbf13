"""The verdicts on the calls of sessions, as profiles count them and mining uses them, and a store's
sessions judged, each of them once: verdicts that were made before are read, the rest is made and
kept.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from journeyman.records import (
    Call,
    JudgedCall,
    JudgedSession,
    Message,
    Session,
    SessionId,
    SessionOverview,
    Verdict,
    join_calls,
)
from journeyman.records.errors import AmbiguousSession, OutsideProblem, UnknownSession
from journeyman.redaction.redactor import redacted_evidence
from journeyman.store.sessions import LONGEST_LINEAGE
from journeyman.store.store import Store
from journeyman.templates.shown.wording import after_opening, is_own_call_id

if TYPE_CHECKING:
    from journeyman.reliability.compression import Stretch

Judge = Callable[[Call], Verdict]

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]

_CONTINUES = ("compression", "unknown")
"""Kinds of lineage in which the child goes on where the parent stopped. A recorder that names a
parent without a reason is taken at its word."""


def judged_calls(messages: Sequence[Message], judge: Judge) -> tuple[JudgedCall, ...]:
    """The verdicts on an agent's own calls, without a simulated user's and an opening's."""
    shown = {message.key for message in messages[: after_opening(messages)]}
    return tuple(
        JudgedCall(
            call_id=call.id,
            tool=call.tool,
            verdict=_shown(judge(call), call.result or ""),
            index=call.index,
            generation=call.generation,
            model=call.model,
        )
        for call in join_calls(messages)
        if call.asked_by == "assistant"
        and call.asked_key not in shown
        and not is_own_call_id(call.id)
    )


def judged_session(overview: SessionOverview, calls: tuple[JudgedCall, ...]) -> JudgedSession:
    """A session with the verdicts on its calls."""
    one = overview.session
    return JudgedSession(
        id=one.id,
        source=one.source,
        model=one.model,
        messages=overview.messages,
        tags=one.tags,
        project=one.project,
        calls=calls,
    )


def _shown(verdict: Verdict, result: str) -> Verdict:
    """The verdict, its evidence without secrets and half characters: reports show it."""
    if not verdict.evidence:
        return verdict
    evidence = redacted_evidence(verdict.evidence, result if verdict.is_error else "")
    evidence = evidence.encode("utf-8", "replace").decode()
    return msgspec.structs.replace(verdict, evidence=evidence)


class Judging:
    """Judges the sessions of a store. `rules` names the judge: verdicts that were made under
    another name do not count. Verdicts are kept in batches of sessions, so that an interruption
    loses no more than one.
    """

    def __init__(self, store: Store, judge: Judge, rules: str, *, batch: int = 200) -> None:
        self._store = store
        self._judge = judge
        self._rules = rules
        self._batch = batch

    def judged(
        self, overviews: Sequence[SessionOverview], progress: Progress = lambda _done, _total: None
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

    def stretches(self, session_id: str) -> "tuple[list[Stretch], str]":
        """The lineage of a session, cut at each compression, and what is not known of it."""
        from journeyman.reliability.compression import Stretch  # noqa: PLC0415 - statistics load slowly

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
        stored = {one.id: one for one in sessions.ancestors(session.id) if one.id != session.id}
        while (link := chain[0].lineage) is not None and link.kind in _CONTINUES:
            if link.parent not in stored:
                note = (
                    f"Its parent {link.parent} is not stored, or the recorded links go in a "
                    "circle, so nothing is known before it."
                )
                break
            chain.insert(0, stored.pop(link.parent))
        seen = {one.id for one in chain}
        while len(chain) < LONGEST_LINEAGE:
            later = [
                one
                for one in sessions.children(chain[-1].id)
                if one.lineage and one.lineage.kind in _CONTINUES and one.id not in seen
            ]
            if not later:
                break
            seen.add(later[0].id)
            chain.append(later[0])
        return chain, note

    def _judge_and_keep(
        self, missing: Sequence[SessionOverview], progress: Progress
    ) -> dict[SessionId, tuple[JudgedCall, ...]]:
        """The verdicts on these sessions. Where the first cannot be kept, no more are."""
        found: dict[SessionId, tuple[JudgedCall, ...]] = {}
        keeps = True
        for start in range(0, len(missing), self._batch):
            judged = []
            for done, overview in enumerate(missing[start : start + self._batch], start=start + 1):
                session_id = overview.session.id
                # Where it is gone, others may begin with its id.
                with suppress(UnknownSession, AmbiguousSession):
                    messages = list(self._store.sessions.messages(session_id))
                    found[session_id] = judged_calls(messages, self._judge)
                    judged.append((session_id, overview.digest, found[session_id]))
                progress(done, len(missing))
            try:
                if keeps:
                    self._store.verdicts.save(self._rules, judged)
            except OutsideProblem as problem:
                logger.info("Verdicts are not kept: %s", problem)
                keeps = False
        return found


def _without_copies(
    before: tuple[JudgedCall, ...], calls: tuple[JudgedCall, ...]
) -> tuple[JudgedCall, ...]:
    """The calls without those at their beginning that the end of the part before has already: a
    compression keeps the last messages as they are, and some recorders write them down again.
    """
    if len({one.call_id for one in calls}) < len(calls):
        return calls  # ids that are used again name nothing
    said, again = (
        [(one.call_id, one.tool, one.verdict) for one in some] for some in (before, calls)
    )
    sizes = range(min(len(said), len(again)), 0, -1)
    return calls[next((size for size in sizes if said[-size:] == again[:size]), 0) :]
