"""Learning: every session that is new or has changed is judged, mined, and its episodes and
patterns are kept. Each session is saved by itself: an interruption costs the one in hand.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from journeyman.embeddings.embedder import Embedder
from journeyman.records import (
    JudgedSession,
    Message,
    MinedSession,
    SearchKeys,
    SessionOverview,
    join_calls,
)
from journeyman.records.errors import AmbiguousSession, UnknownSession
from journeyman.store.episodes import EpisodeKey
from journeyman.store.store import Store
from journeyman.templates.cost import tokens_of
from journeyman.templates.examples import call_text, episode_pattern
from journeyman.templates.mining.miner import CallKey, call_key, mine
from journeyman.templates.selecting.words import words

Judged = Callable[[Sequence[SessionOverview]], list[JudgedSession]]
Progress = Callable[[int, int], None]

_COPIES = ("compression", "branch", "unknown")
"""Kinds of lineage in which recorders write down again what the parent has."""

_BATCH = 16
"""How many sessions are in memory at a time."""

_PASSES = 5
"""What one session teaches may show that another has to be gone through again, which had the same
pattern later. That settles after a few passes; sessions that keep changing wait for the next
time."""


class Learning:
    """Learns from the sessions of a store. `judged` gives the verdicts on sessions; `rules` names
    the rules, and what was learned under another name is learned again.
    """

    def __init__(
        self, store: Store, judged: Judged, embedder: Embedder, rules: str, trivial: Iterable[str]
    ) -> None:
        self._store = store
        self._judged = judged
        self._embedder = embedder
        self._rules = rules
        self._trivial = frozenset(trivial)

    def run(
        self,
        progress: Progress = lambda _done, _total: None,
        executor: Executor | None = None,
        *,
        project: str | None = None,
    ) -> int:
        """Learn from all that is new, or from what is new in a project; how many sessions that
        were.
        """
        learned: set[str] = set()
        for _ in range(_PASSES):
            missing = self.missing(project)
            if not missing:
                break
            self.learn(missing, progress, executor)
            learned.update(missing)
        return len(learned)

    def missing(self, project: str | None = None) -> list[str]:
        """The sessions that are new or have changed, oldest first: of all projects, or of one."""
        return self._store.learned.missing(self._rules, project)

    def learn(
        self,
        session_ids: Sequence[str],
        progress: Progress = lambda _done, _total: None,
        executor: Executor | None = None,
    ) -> int:
        """Learn from these sessions, whether they are known or not."""
        done = 0
        for start in range(0, len(session_ids), _BATCH):
            for one in self._mined(session_ids[start : start + _BATCH], executor):
                found = self._costed(one)
                self._store.learned.save(self._rules, [found], self._keys(found))
                done += 1
                progress(done, len(session_ids))
        return done

    def _mined(
        self, session_ids: Iterable[str], executor: Executor | None
    ) -> Iterator[MinedSession]:
        overviews = list(self._overviews(session_ids))
        judged = self._judged(overviews)
        found = {one.session.id: one for one in overviews}
        jobs = (
            _Job(found[one.id], list(self._messages(one.id)), one, self._copied(found[one.id]))
            for one in judged
        )
        mine_one = partial(_mine_one, trivial=self._trivial)
        yield from map(mine_one, jobs) if executor is None else executor.map(mine_one, jobs)

    def _overviews(self, session_ids: Iterable[str]) -> Iterator[SessionOverview]:
        for session_id in session_ids:
            try:
                overview = self._store.sessions.get(session_id)
            except (UnknownSession, AmbiguousSession):
                continue  # it was deleted meanwhile
            if overview.session.id == session_id:  # and not one that begins so
                yield overview

    def _messages(self, session_id: str) -> Iterator[Message]:
        try:
            yield from self._store.sessions.messages(session_id)
        except (UnknownSession, AmbiguousSession):
            return

    def _copied(self, overview: SessionOverview) -> frozenset[CallKey]:
        """The calls that a session may have as copies: those of the one it goes on from."""
        lineage = overview.session.lineage
        if lineage is None or lineage.kind not in _COPIES:
            return frozenset()
        return frozenset(map(call_key, join_calls(self._messages(lineage.parent))))

    def _costed(self, found: MinedSession) -> MinedSession:
        count = self._embedder.count_tokens
        return msgspec.structs.replace(
            found,
            episodes=tuple(
                msgspec.structs.replace(one, tokens=tokens_of(episode_pattern(one), count))
                for one in found.episodes
            ),
            patterns=tuple(
                msgspec.structs.replace(one, tokens=tokens_of(one, count)) for one in found.patterns
            ),
        )

    def _keys(self, found: MinedSession) -> dict[EpisodeKey, SearchKeys]:
        requests = [one.request for one in found.episodes]
        calls = [call_text(one) for one in found.episodes]
        vectors = self._embedder.embed([*requests, *calls]).astype(np.float16)
        return {
            (one.session, one.number): SearchKeys(
                words=words(request).tobytes(),
                call_words=words(said).tobytes(),
                vector=vectors[at].tobytes(),
                call_vector=vectors[at + len(requests)].tobytes(),
            )
            for at, (one, request, said) in enumerate(
                zip(found.episodes, requests, calls, strict=True)
            )
        }


class _Job(NamedTuple):
    """All that mining one session needs."""

    overview: SessionOverview
    messages: Sequence[Message]
    judged: JudgedSession
    copied: frozenset[CallKey]


def _mine_one(job: _Job, trivial: frozenset[str]) -> MinedSession:
    return mine(
        job.overview.session,
        job.messages,
        job.judged,
        trivial=trivial,
        digest=job.overview.digest,
        copied=job.copied,
    )
