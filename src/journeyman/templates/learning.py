"""Learning: every session that is new or has changed is judged and mined, and what it teaches is
kept. Sessions go through in batches, by this process or by several, and only this one writes. A
batch is saved whole: an interruption costs those in hand.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future

from journeyman.records.errors import WorkerLost
from journeyman.records.report import Progress
from journeyman.store.store import Store
from journeyman.templates.extraction import (
    VERDICT_RULES,
    Extractor,
    Lesson,
    WorkerSettings,
    extract,
    unpacked,
)

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


class Learning:
    """Learns from the sessions of a store. `rules` names the rules, and what was learned under
    another name is learned again.
    """

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
        """Learn from all that is new, or from what is new in a project; how many sessions that
        were. The sessions are spread over an `executor` if there are enough of them.
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
        progress: ShowProgress = lambda _: None,
        executor: Executor | None = None,
    ) -> None:
        """Learn from these sessions, whether they are known or not."""
        messages = self._store.sessions.message_counts(session_ids)
        total = sum(messages.values())
        batches = _batches(session_ids, messages)
        if executor is None or total < _WORTH_WORKERS:
            packed: Iterable[bytes] = map(self._extractor.extract, batches)
        else:
            packed = self._spread(batches, executor)
        done = done_messages = done_bytes = 0
        progress(Progress(done=0, total=len(session_ids), done_bytes=0, share=0.0))
        for batch, lessons in zip(batches, map(unpacked, packed), strict=True):
            self._save(lessons)
            done += len(batch)
            done_messages += sum(messages.get(one, 0) for one in batch)
            done_bytes += sum(one.read_bytes for one in lessons)
            share = done_messages / total if total else 1.0
            progress(
                Progress(done=done, total=len(session_ids), done_bytes=done_bytes, share=share)
            )

    def _spread(self, batches: Iterable[Sequence[str]], executor: Executor) -> Iterator[bytes]:
        """What the workers of an executor extract, in order."""
        waiting: deque[Future[bytes]] = deque()
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
        judged = [
            (one.mined.session, one.mined.digest, one.verdicts)
            for one in lessons
            if one.verdicts is not None
        ]
        self._store.verdicts.save(VERDICT_RULES, judged)
        keys = {
            (episode.session, episode.number): found
            for one in lessons
            for episode, found in zip(one.mined.episodes, one.keys, strict=True)
        }
        self._store.learned.save(self._rules, [one.mined for one in lessons], keys)


def _batches(session_ids: Sequence[str], messages: Mapping[str, int]) -> list[list[str]]:
    batches: list[list[str]] = [[]]
    size = 0
    for session_id in session_ids:
        if size >= _BATCH_MESSAGES or len(batches[-1]) >= _BATCH_SESSIONS:
            batches.append([])
            size = 0
        batches[-1].append(session_id)
        size += messages.get(session_id, 0)
    return batches if batches[-1] else []
