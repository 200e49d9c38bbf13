"""Learning: judges and mines every session that is new or has changed, and stores what it teaches.
Sessions are processed in batches, by this process or by several, and only this process writes. A
batch is saved as a whole, so an interruption costs only the batches in progress.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from journeyman.learning.episodes import mine
from journeyman.learning.search_keys import call_text, words
from journeyman.learning.session_judge import VERDICT_RULES, judged_calls, judged_session
from journeyman.models.embedder import Embedder, Vectors
from journeyman.outcomes.judge import judge
from journeyman.records import (
    Episode,
    JudgedCall,
    Message,
    MinedSession,
    SearchKeys,
)
from journeyman.records.errors import AmbiguousSession, OutsideProblem, UnknownSession
from journeyman.records.report import Progress
from journeyman.store.store import Store

ShowProgress = Callable[[Progress], None]

_BATCH_MESSAGES = 1_000
_BATCH_SESSIONS = 100
"""About half a second of work."""

_WORTH_WORKERS = 4_000
"""The number of messages from which starting worker processes saves time."""

_BATCHES_AHEAD = 64
"""How many batches are submitted to workers before their results are needed: enough that none is
idle, and few enough that results do not pile up."""


class Lesson(Struct, frozen=True):
    """What one session teaches, the verdicts made just now, and the search keys of its episodes."""

    mined: MinedSession
    verdicts: tuple[JudgedCall, ...] | None
    read_bytes: int
    keys: tuple[SearchKeys, ...] = ()


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """What a worker process needs to know: where the sessions are, and which tools are trivial."""

    database: str
    busy_timeout_s: float
    trivial: frozenset[str]


class Extractor:
    """Extracts lessons from the sessions of a store, which it only reads."""

    def __init__(self, store: Store, trivial: Iterable[str]) -> None:
        self._store = store
        self._trivial = frozenset(trivial)
        self._embedder = Embedder()

    def extract(self, session_ids: Sequence[str]) -> list[Lesson]:
        """Return the lessons of these sessions; a session that was deleted meanwhile has none."""
        stored = self._store.verdicts.known(VERDICT_RULES, session_ids)
        forgotten = self._store.forgotten.of(session_ids)
        lessons = []
        for overview in self._store.sessions.with_ids(session_ids):
            session = overview.session
            messages = list(self._messages(session.id))
            is_new = session.id not in stored and overview.calls > 0
            verdicts = judged_calls(messages, judge) if is_new else stored.get(session.id, ())
            mined = mine(
                session,
                messages,
                judged_session(session, overview.messages, verdicts),
                trivial=self._trivial,
                digest=overview.digest,
                forgotten=forgotten.get(session.id, frozenset()),
            )
            read = sum(map(_size, messages))
            lessons.append(Lesson(mined, verdicts if is_new else None, read))
        return list(self._with_keys(lessons))

    def _messages(self, session_id: str) -> Iterator[Message]:
        try:
            yield from self._store.sessions.messages(session_id)
        except (UnknownSession, AmbiguousSession):
            return  # deleted meanwhile

    def _with_keys(self, lessons: Sequence[Lesson]) -> Iterator[Lesson]:
        """Add search keys; all texts are embedded together."""
        episodes = [episode for lesson in lessons for episode in lesson.mined.episodes]
        texts = [call_text(episode) for episode in episodes]
        vectors = self._embedder.embed([*(episode.request for episode in episodes), *texts])
        keys = map(_search_keys, episodes, texts, vectors, vectors[len(texts) :])
        for lesson in lessons:
            yield replace(lesson, keys=tuple(next(keys) for _ in lesson.mined.episodes))


def _search_keys(episode: Episode, calls: str, vector: Vectors, call_vector: Vectors) -> SearchKeys:
    return SearchKeys(
        words=words(episode.request).tobytes(),
        call_words=words(calls).tobytes(),
        vector=vector.astype(np.float16).tobytes(),
        call_vector=call_vector.astype(np.float16).tobytes(),
    )


def _size(message: Message) -> int:
    arguments = sum(len(call.arguments) for call in message.tool_calls)
    return len(message.text) + len(message.reasoning) + arguments


def extract(settings: WorkerSettings, session_ids: Sequence[str]) -> list[Lesson]:
    """Do `Extractor.extract` in a worker process, which has loaded nothing yet."""
    return _extractor(settings).extract(session_ids)


@cache
def _extractor(settings: WorkerSettings) -> Extractor:
    store = Store(settings.database, busy_timeout_s=settings.busy_timeout_s, only_looking=True)
    return Extractor(store, settings.trivial)


class Learner:
    """Learns from sessions. What was learned under other `rules` is learned again."""

    def __init__(self, store: Store, settings: WorkerSettings, rules: str) -> None:
        self._store = store
        self._settings = settings
        self._extractor = Extractor(store, settings.trivial)
        self._rules = rules

    def run(
        self,
        progress: ShowProgress = lambda _: None,
        executor: Executor | None = None,
        *,
        project: str | None = None,
        is_over: Callable[[], bool] | None = None,
    ) -> int:
        """Learn from all that is new, in one project or all; return the number of sessions. With
        `is_over`, learn from the newest sessions first, until it returns true.
        """
        missing = [] if is_over and is_over() else self.missing(project)
        if is_over:
            missing.reverse()
        return len(self.learn(missing, progress, executor, is_over=is_over)) if missing else 0

    def missing(self, project: str | None = None) -> list[str]:
        """Return the sessions that are new or have changed, oldest first, in one project or all."""
        return self._store.learned.missing(self._rules, project)

    def learn(
        self,
        session_ids: Sequence[str],
        progress: ShowProgress = lambda _: None,
        executor: Executor | None = None,
        *,
        is_over: Callable[[], bool] | None = None,
    ) -> list[str]:
        """Learn from these sessions, whether they are already learned or not, until `is_over`;
        return those that were learned from.
        """
        overviews = self._store.sessions.with_ids(session_ids)
        messages: dict[str, int] = {
            overview.session.id: overview.messages for overview in overviews
        }
        total = sum(messages.values())
        batches = _batches(session_ids, messages)
        if executor is None or total < _WORTH_WORKERS:
            extracted: Iterable[list[Lesson]] = map(self._extractor.extract, batches)
        else:
            extracted = self._extract_in_workers(batches, executor)
        at = Progress(done=0, total=len(session_ids), done_bytes=0, share=0.0)
        progress(at)
        done_messages = 0
        done: list[str] = []
        for batch, lessons in zip(batches, extracted, strict=True):
            self._save(lessons)
            done_messages += sum(messages.get(session_id, 0) for session_id in batch)
            at = replace(
                at,
                done=at.done + len(batch),
                done_bytes=at.done_bytes + sum(lesson.read_bytes for lesson in lessons),
                share=done_messages / total if total else 1.0,
            )
            progress(at)
            done += batch
            if is_over and is_over():
                break
        return done

    def _extract_in_workers(
        self, batches: Iterable[Sequence[str]], executor: Executor
    ) -> Iterator[list[Lesson]]:
        """Yield what the workers of an executor extract, in order."""
        waiting: deque[Future[list[Lesson]]] = deque()
        try:
            for batch in batches:
                waiting.append(executor.submit(extract, self._settings, batch))
                if len(waiting) > _BATCHES_AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenExecutor as error:
            raise OutsideProblem(
                "A worker process ended abruptly while learning: it was killed, or memory ran out. "
                "What was learned before is stored. Run `journeyman learn --workers 1` to continue."
            ) from error

    def _save(self, lessons: Sequence[Lesson]) -> None:
        new = [lesson for lesson in lessons if lesson.verdicts is not None]
        judged = [
            (lesson.mined.session, lesson.mined.digest, lesson.verdicts or ()) for lesson in new
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
