"""Learning: every session that is new or has changed is judged and mined, and what it teaches is
kept. Sessions go through in batches, by this process or by several, and only this one writes. A
batch is saved whole: an interruption costs those in hand.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from journeyman.embeddings.embedder import Embedder, Vectors
from journeyman.outcomes import RULES_VERSION
from journeyman.outcomes.judge import judge
from journeyman.records import (
    Episode,
    JudgedCall,
    Message,
    MinedSession,
    SearchKeys,
    Session,
    join_calls,
)
from journeyman.records.errors import AmbiguousSession, UnknownSession, WorkerLost
from journeyman.records.report import Progress
from journeyman.store.store import Store
from journeyman.templates.examples import call_text, episode_pattern, texts_of, tokens_of
from journeyman.templates.judging import judged_calls, judged_session
from journeyman.templates.mining.miner import CallKey, call_key, mine
from journeyman.templates.ranking import words

VERDICT_RULES = str(RULES_VERSION)

_COPIES = ("compression", "branch", "unknown")
"""Kinds of lineage in which recorders write down again what the parent has."""

ShowProgress = Callable[[Progress], None]

_BATCH_MESSAGES = 1_000
_BATCH_SESSIONS = 100
"""About half a second of work."""

_WORTH_WORKERS = 4_000
"""How many messages take one process longer than it takes others to start."""

_BATCHES_AHEAD = 64
"""How many batches are given to workers before their results are needed: none is idle then, and
results do not pile up."""

_PASSES = 5
"""What one session teaches may show that another has to be gone through again, which had the same
pattern later. That settles after a few passes; sessions that keep changing wait for the next
time."""


class Lesson(Struct, frozen=True):
    """What one session teaches, the verdicts that were made now, and the keys of its episodes."""

    mined: MinedSession
    verdicts: tuple[JudgedCall, ...] | None
    read_bytes: int
    keys: tuple[SearchKeys, ...] = ()


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """What a worker process has to know: where the sessions are, and which tools are trivial."""

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
        """The lessons of these sessions. One that was deleted meanwhile has none."""
        known = self._store.verdicts.known(VERDICT_RULES, session_ids)
        released = self._store.quarantine.released()
        forgotten = self._store.forgotten.of(session_ids)
        lessons = []
        for overview in self._store.sessions.with_ids(session_ids):
            session = overview.session
            messages = list(self._messages(session.id))
            is_new = session.id not in known and overview.calls > 0
            verdicts = judged_calls(messages, judge) if is_new else known.get(session.id, ())
            mined = mine(
                session,
                messages,
                judged_session(overview, verdicts),
                trivial=self._trivial,
                digest=overview.digest,
                copied=self._copied(session),
                released=released,
                forgotten=forgotten.get(session.id, frozenset()),
            )
            read = sum(map(_size, messages))
            lessons.append(Lesson(mined, verdicts if is_new else None, read))
        return list(self._with_keys(lessons))

    def _messages(self, session_id: str) -> Iterator[Message]:
        try:
            yield from self._store.sessions.messages(session_id)
        except (UnknownSession, AmbiguousSession):
            return  # it was deleted meanwhile

    def _copied(self, session: Session) -> frozenset[CallKey]:
        """The calls that a session may have as copies: those of the one it goes on from."""
        lineage = session.lineage
        if lineage is None or lineage.kind not in _COPIES:
            return frozenset()
        return frozenset(map(call_key, join_calls(self._messages(lineage.parent))))

    def _with_keys(self, lessons: Sequence[Lesson]) -> Iterator[Lesson]:
        """The lessons with what they cost and are found by; all texts are tokenized together."""
        episodes = [episode for one in lessons for episode in one.mined.episodes]
        shown = [*map(episode_pattern, episodes)]
        shown += [pattern for one in lessons for pattern in one.mined.patterns]
        counts = self._embedder.token_counts(text for one in shown for text in texts_of(one))
        count = counts.__getitem__
        said = [call_text(one) for one in episodes]
        vectors = self._embedder.embed([*(one.request for one in episodes), *said])
        keys = map(_keys, episodes, said, vectors, vectors[len(said) :])
        for lesson in lessons:
            mined = replace(
                lesson.mined,
                episodes=tuple(
                    replace(one, tokens=tokens_of(episode_pattern(one), count))
                    for one in lesson.mined.episodes
                ),
                patterns=tuple(
                    replace(one, tokens=tokens_of(one, count)) for one in lesson.mined.patterns
                ),
            )
            yield replace(lesson, mined=mined, keys=tuple(next(keys) for _ in mined.episodes))


def _keys(episode: Episode, calls: str, vector: Vectors, call_vector: Vectors) -> SearchKeys:
    return SearchKeys(
        words=words(episode.request).tobytes(),
        call_words=words(calls).tobytes(),
        vector=vector.astype(np.float16).tobytes(),
        call_vector=call_vector.astype(np.float16).tobytes(),
    )


def _size(message: Message) -> int:
    asked = sum(len(call.arguments) for call in message.tool_calls)
    return len(message.text) + len(message.reasoning) + asked


def extract(settings: WorkerSettings, session_ids: Sequence[str]) -> list[Lesson]:
    """What `Extractor.extract` gives, in a process that knows nothing yet."""
    return _extractor(settings).extract(session_ids)


@cache
def _extractor(settings: WorkerSettings) -> Extractor:
    store = Store(settings.database, busy_timeout_s=settings.busy_timeout_s, only_looking=True)
    return Extractor(store, settings.trivial)


class Learning:
    """Learns from sessions; what was learned under other `rules` is learned again."""

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
    ) -> int:
        """Learn from all that is new, or new in a project; how many sessions that were."""
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
        progress: ShowProgress = lambda _: None,
        executor: Executor | None = None,
    ) -> None:
        """Learn from these sessions, whether they are known or not."""
        overviews = self._store.sessions.with_ids(session_ids)
        messages: dict[str, int] = {one.session.id: one.messages for one in overviews}
        total = sum(messages.values())
        batches = _batches(session_ids, messages)
        if executor is None or total < _WORTH_WORKERS:
            found: Iterable[list[Lesson]] = map(self._extractor.extract, batches)
        else:
            found = self._spread(batches, executor)
        at = Progress(done=0, total=len(session_ids), done_bytes=0, share=0.0)
        progress(at)
        done_messages = 0
        for batch, lessons in zip(batches, found, strict=True):
            self._save(lessons)
            done_messages += sum(messages.get(one, 0) for one in batch)
            at = replace(
                at,
                done=at.done + len(batch),
                done_bytes=at.done_bytes + sum(one.read_bytes for one in lessons),
                share=done_messages / total if total else 1.0,
            )
            progress(at)

    def _spread(
        self, batches: Iterable[Sequence[str]], executor: Executor
    ) -> Iterator[list[Lesson]]:
        """What the workers of an executor extract, in order."""
        waiting: deque[Future[list[Lesson]]] = deque()
        try:
            for batch in batches:
                waiting.append(executor.submit(extract, self._settings, batch))
                if len(waiting) > _BATCHES_AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenExecutor as error:
            raise WorkerLost(
                "A process that was learning ended abruptly: it was killed, or the memory ran out. "
                "What was learned before is kept. Run `journeyman learn --workers 1` to go on."
            ) from error

    def _save(self, lessons: Sequence[Lesson]) -> None:
        new = [one for one in lessons if one.verdicts is not None]
        judged = [(one.mined.session, one.mined.digest, one.verdicts or ()) for one in new]
        self._store.verdicts.save(VERDICT_RULES, judged)
        keys = {
            (episode.session, episode.number): found
            for one in lessons
            for episode, found in zip(one.mined.episodes, one.keys, strict=True)
        }
        self._store.learned.save(self._rules, [one.mined for one in lessons], keys)


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
