"""Learning: judges and mines every session that is new or has changed, and stores what it teaches.
Sessions are processed in batches, by this process or by several, and only this process writes. A
batch is saved as a whole, so an interruption costs only the batches in progress.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from functools import cache, partial

import numpy as np
from msgspec import Struct

from journeyman.learning.episodes import mine
from journeyman.learning.search_keys import call_text, words
from journeyman.learning.session_judge import VERDICT_RULES, judged_calls
from journeyman.models.embedder import Embedder
from journeyman.outcomes.judge import judge
from journeyman.records import Episode, JudgedCall, MinedSession, SearchKeys
from journeyman.records.errors import OutsideProblem
from journeyman.records.report import Progress
from journeyman.settings import Settings
from journeyman.store.store import Store

ShowProgress = Callable[[Progress], None]

_BATCH_MESSAGES = 1_000
_BATCH_SESSIONS = 100
"""About half a second of work."""

_WORTH_WORKERS = 4_000
"""The number of messages from which starting worker processes saves time."""


class Lesson(Struct, frozen=True):
    """What one session teaches, with the search keys of its episodes, and the verdicts if they were
    made just now.
    """

    mined: MinedSession
    keys: list[SearchKeys]
    verdicts: tuple[JudgedCall, ...] | None


def extract(store: Store, trivial: Sequence[str], session_ids: Sequence[str]) -> list[Lesson]:
    """Return the lessons of these sessions from a store, which is only read."""
    stored = store.verdicts.known(VERDICT_RULES, session_ids)
    forgotten = store.forgotten.of(session_ids)
    embedder, lessons = Embedder(), []
    for overview in store.sessions.with_ids(session_ids):
        session = overview.session
        messages = list(store.sessions.messages(session.id))
        is_new = session.id not in stored
        verdicts = judged_calls(messages, judge) if is_new else stored[session.id]
        mined = mine(
            session,
            messages,
            verdicts,
            trivial=trivial,
            digest=overview.digest,
            forgotten=forgotten.get(session.id, frozenset()),
        )
        keys = _search_keys(mined.episodes, embedder)
        lessons.append(Lesson(mined, keys, verdicts if is_new else None))
    return lessons


def _search_keys(episodes: Sequence[Episode], embedder: Embedder) -> list[SearchKeys]:
    requests = [episode.request for episode in episodes]
    calls = [call_text(episode) for episode in episodes]
    vectors = embedder.embed([*requests, *calls]).astype(np.float16)
    return [
        SearchKeys(
            words=words(request).tobytes(),
            call_words=words(call).tobytes(),
            vector=vectors[number].tobytes(),
            call_vector=vectors[len(episodes) + number].tobytes(),
        )
        for number, (request, call) in enumerate(zip(requests, calls, strict=True))
    ]


def extract_in_worker(settings: Settings, session_ids: Sequence[str]) -> list[Lesson]:
    """Do `extract` in a worker process, which has loaded nothing yet."""
    store = _worker_store(settings.database, settings.busy_timeout_s)
    return extract(store, settings.trivial_tools, session_ids)


@cache
def _worker_store(database: str, busy_timeout_s: float) -> Store:
    return Store(database, busy_timeout_s=busy_timeout_s, only_looking=True)


class Learner:
    """Learns from sessions. What was learned under other `rules` is learned again."""

    def __init__(self, store: Store, settings: Settings, rules: str) -> None:
        self._store = store
        self._settings = settings
        self._rules = rules

    def missing(self, project: str | None = None) -> list[str]:
        """Return the sessions that are new or have changed, oldest first, in one project or all."""
        return self._store.learned.missing(self._rules, project)

    def learn(
        self,
        session_ids: Sequence[str],
        progress: ShowProgress = lambda _: None,
        executor: Executor | None = None,
        *,
        is_over: Callable[[], bool] = lambda: False,
    ) -> int:
        """Learn from these sessions, whether they are already learned or not, until `is_over`;
        return how many that were.
        """
        overviews = self._store.sessions.with_ids(session_ids)
        messages = {str(overview.session.id): overview.messages for overview in overviews}
        total, batches = sum(messages.values()), _batches(session_ids, messages)
        if executor is None or total < _WORTH_WORKERS:
            extracted: Iterator[list[Lesson]] = map(
                partial(extract, self._store, self._settings.trivial_tools), batches
            )
        else:
            extracted = executor.map(partial(extract_in_worker, self._settings), batches)
        done = done_messages = 0
        progress(Progress(done=0, total=len(session_ids), share=0.0))
        for batch in batches:
            if is_over():
                break
            try:
                self._save(next(extracted))
            except BrokenExecutor as error:
                raise OutsideProblem(
                    "A worker process ended abruptly while learning: it was killed, or memory ran "
                    "out. What was learned before is stored. Run `journeyman learn --workers 1` to "
                    "continue."
                ) from error
            done += len(batch)
            done_messages += sum(messages.get(session_id, 0) for session_id in batch)
            share = done_messages / total if total else 1.0
            progress(Progress(done=done, total=len(session_ids), share=share))
        return done

    def _save(self, lessons: Sequence[Lesson]) -> None:
        judged = [
            (lesson.mined.session, lesson.mined.digest, lesson.verdicts)
            for lesson in lessons
            if lesson.verdicts is not None
        ]
        self._store.verdicts.save(VERDICT_RULES, judged)
        keys = {
            (episode.session, episode.number): episode_keys
            for lesson in lessons
            for episode, episode_keys in zip(lesson.mined.episodes, lesson.keys, strict=True)
        }
        self._store.learned.save(self._rules, [lesson.mined for lesson in lessons], keys)


def _batches(session_ids: Sequence[str], messages: Mapping[str, int]) -> list[list[str]]:
    batches: list[list[str]] = []
    size = 0
    for session_id in session_ids:
        if not batches or size >= _BATCH_MESSAGES or len(batches[-1]) >= _BATCH_SESSIONS:
            batches.append([])
            size = 0
        batches[-1].append(session_id)
        size += messages.get(session_id, 0)
    return batches
