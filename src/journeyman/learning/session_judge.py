"""Verdicts on the calls of sessions, as profiles count them and mining uses them. Each stored
session is judged once: existing verdicts are read, missing ones are computed and stored.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from journeyman.learning.opening_text import is_own_call_id, opening_length
from journeyman.outcomes import RULES_VERSION
from journeyman.records import (
    Call,
    JudgedCall,
    JudgedSession,
    Message,
    Session,
    SessionOverview,
    Verdict,
    join_calls,
)
from journeyman.records.errors import OutsideProblem
from journeyman.records.verdict import JUDGED_CALLS_VERSION
from journeyman.store.store import Store

if TYPE_CHECKING:
    from journeyman.reliability.compression import CallSegment

Judge = Callable[[Call], Verdict]

VERDICT_RULES = f"{RULES_VERSION}.{JUDGED_CALLS_VERSION}"
"""Identifies what stored verdicts were made with."""

Progress = Callable[[int, int], None]

_CONTINUES = ("compression", "unknown")
"""Kinds of lineage in which the child continues where the parent stopped. A recorder that names a
parent without a reason is believed."""


def judged_calls(
    messages: Sequence[Message], judge: Judge, *, raw: bool = False
) -> tuple[JudgedCall, ...]:
    """Return the verdicts on an agent's own calls, without a simulated user's and an opening's.
    Evidence is redacted unless `raw`.
    """
    opening_keys = {message.key for message in messages[: opening_length(messages)]}
    answers = (
        message.key
        for message in messages
        if message.role == "assistant" and message.key not in opening_keys and not message.copied
    )
    texts = {message.key: message.text for message in messages}
    turns = {key: number for number, key in enumerate(answers, start=1)}
    return tuple(
        JudgedCall(
            call_id=call.id,
            tool=call.tool,
            verdict=judge(call)
            if raw
            else redacted_verdict(judge(call), call, texts[call.asked_key]),
            index=call.index,
            generation=call.generation,
            model=call.model,
            turn=turns.get(call.asked_key, 0),
            at=call.asked_at if call.answered_at is None else call.answered_at,
        )
        for call in join_calls(messages)
        if call.asked_by == "assistant"
        and call.asked_key not in opening_keys
        and not is_own_call_id(call.id)
    )


def judged_session(session: Session, messages: int, calls: tuple[JudgedCall, ...]) -> JudgedSession:
    """Return a session of so many messages with the verdicts on its calls."""
    names = {*JudgedSession.__struct_fields__} & {*Session.__struct_fields__}
    shared = {name: getattr(session, name) for name in names}
    return JudgedSession(**shared, messages=messages, calls=calls)


def redacted_verdict(verdict: Verdict, call: Call, said: str = "") -> Verdict:
    """Return the verdict, its evidence without secrets and lone surrogates: reports show it. `said`
    is the text of the message with the call.
    """
    if not verdict.evidence:
        return verdict
    from journeyman.redaction.redactor import redacted_evidence  # noqa: PLC0415 - loads slowly

    context = (said, call.arguments, call.result or "")
    evidence = redacted_evidence(verdict.evidence, *context)
    evidence = evidence.encode("utf-8", "replace").decode()
    return msgspec.structs.replace(verdict, evidence=evidence)


class SessionJudge:
    """Judges the sessions of a store. `rules` identifies the judge: verdicts made under another
    identifier do not count. Verdicts are stored in batches of sessions, so an interruption loses at
    most one batch.
    """

    def __init__(self, store: Store, judge: Judge, rules: str, *, batch: int = 200) -> None:
        self._store = store
        self._judge = judge
        self._rules = rules
        self._batch = batch

    def judged(
        self,
        overviews: Sequence[SessionOverview],
        progress: Progress = lambda _done, _total: None,
        *,
        raw: bool = False,
    ) -> list[JudgedSession]:
        """Return the sessions with the verdicts on their agents' calls, in the given order.
        `progress` is called with the number of sessions judged so far and the number that had to be
        judged. With `raw`, the evidence is as it was recorded, and nothing is stored: stored
        verdicts contain no secrets.
        """
        with_calls = [overview.session.id for overview in overviews if overview.calls]
        verdicts = {} if raw else self._store.verdicts.known(self._rules, with_calls)
        missing = [one for one in overviews if one.calls and one.session.id not in verdicts]
        for start in range(0, len(missing), self._batch):
            judged = []
            for done, overview in enumerate(missing[start : start + self._batch], start=start + 1):
                messages = list(self._store.sessions.messages(overview.session.id))
                calls = judged_calls(messages, self._judge, raw=raw)
                judged.append((overview.session.id, overview.digest, calls))
                progress(done, len(missing))
            verdicts |= {session_id: calls for session_id, _, calls in judged}
            if not raw:
                with suppress(OutsideProblem):  # a database that must not be written to
                    self._store.verdicts.save(self._rules, judged)
        return [
            judged_session(
                overview.session, overview.messages, verdicts.get(overview.session.id, ())
            )
            for overview in overviews
        ]

    def segments(self, session_id: str) -> "tuple[list[CallSegment], str]":
        """Return a session's lineage, cut at each compression, and a note on what is unknown."""
        from journeyman.reliability.compression import CallSegment  # noqa: PLC0415 - statistics load slowly

        chain, note = self._chain(self._store.sessions.get(session_id).session)
        overviews = [self._store.sessions.get(session.id) for session in chain]
        parts: list[CallSegment] = []
        for judged in self.judged(overviews):
            messages = self._store.sessions.messages(judged.id)
            found = {message.generation for message in messages if not message.copied}
            generations = sorted(found) or [0]
            for number, generation in enumerate(generations, start=1):
                part = f", part {number} of {len(generations)}" if len(generations) > 1 else ""
                own = tuple(call for call in judged.calls if call.generation == generation)
                parts.append(CallSegment(label=f"{judged.id}{part}", calls=own))
        return parts, note

    def _chain(self, session: Session) -> tuple[list[Session], str]:
        """Return the sessions that continue each other, oldest first, and where a link breaks."""
        sessions = self._store.sessions
        chain, note = [session], ""
        for ancestor in sessions.ancestors(session.id):
            if _continues(chain[0]):
                chain.insert(0, ancestor)
        if (link := chain[0].lineage) and _continues(chain[0]):
            note = (
                f"Its parent {link.parent} is not stored, or the recorded links form a cycle, so "
                "nothing is known before it."
            )
        while True:
            known = {member.id for member in chain}
            children = sessions.children(chain[-1].id)
            later = [one for one in children if _continues(one) and one.id not in known]
            if not later:
                return chain, note
            chain.append(later[0])


def _continues(session: Session) -> bool:
    return session.lineage is not None and session.lineage.kind in _CONTINUES
