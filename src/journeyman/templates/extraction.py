"""What learning does with sessions before anything is written: it reads, judges and mines them,
counts tokens and embeds. Other processes can do it, knowing only which sessions are meant; what
they find comes back as bytes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from journeyman import outcomes
from journeyman.embeddings.embedder import Embedder, Vectors
from journeyman.outcomes.judge import judge
from journeyman.records import (
    Episode,
    JudgedCall,
    Message,
    MinedSession,
    SearchKeys,
    SessionId,
    SessionOverview,
    join_calls,
)
from journeyman.records.errors import AmbiguousSession, UnknownSession
from journeyman.store.store import Store
from journeyman.templates.cost import texts_of, tokens_of
from journeyman.templates.examples import call_text, episode_pattern
from journeyman.templates.judged_calls import judged_calls, judged_session
from journeyman.templates.mining.miner import CallKey, call_key, mine
from journeyman.templates.selecting.words import words

VERDICT_RULES = str(outcomes.RULES_VERSION)

_COPIES = ("compression", "branch", "unknown")
"""Kinds of lineage in which recorders write down again what the parent has."""


class Lesson(Struct, frozen=True, array_like=True):
    """What one session teaches. `verdicts` are given where they were made now; `keys` are those of
    its episodes, in order.
    """

    mined: MinedSession
    verdicts: tuple[JudgedCall, ...] | None
    read_bytes: int
    keys: tuple[SearchKeys, ...] = ()


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """What a worker process has to know: where the sessions are, and which tools are trivial."""

    database: str
    busy_timeout_s: float
    trivial: frozenset[str]


class _Decisions(NamedTuple):
    """What a person decided: keys of what was kept out and is released, and the numbers of the
    requests of each session that are forgotten.
    """

    released: frozenset[str]
    forgotten: Mapping[SessionId, frozenset[int]]


class Extractor:
    """Extracts lessons from the sessions of a store, which it only reads."""

    def __init__(self, store: Store, trivial: Iterable[str]) -> None:
        self._store = store
        self._trivial = frozenset(trivial)
        self._embedder = Embedder()

    def extract(self, session_ids: Sequence[str]) -> bytes:
        """The lessons of these sessions, to be read by `unpacked`. A session that was deleted
        meanwhile has none.
        """
        overviews = self._store.sessions.with_ids(session_ids)
        known = self._store.verdicts.known(VERDICT_RULES, session_ids)
        decided = _Decisions(
            self._store.quarantine.released(), self._store.forgotten.of(session_ids)
        )
        lessons = [self._mined(one, known.get(one.session.id), decided) for one in overviews]
        return _packed(list(self._with_keys(lessons)))

    def _mined(
        self, overview: SessionOverview, known: tuple[JudgedCall, ...] | None, decided: "_Decisions"
    ) -> Lesson:
        messages = list(self._messages(overview.session.id))
        is_new = known is None and overview.calls > 0
        verdicts = judged_calls(messages, judge) if is_new else known or ()
        mined = mine(
            overview.session,
            messages,
            judged_session(overview, verdicts),
            trivial=self._trivial,
            digest=overview.digest,
            copied=self._copied(overview),
            released=decided.released,
            forgotten=decided.forgotten.get(overview.session.id, frozenset()),
        )
        return Lesson(mined, verdicts if is_new else None, sum(map(_size, messages)))

    def _messages(self, session_id: str) -> Iterator[Message]:
        try:
            yield from self._store.sessions.messages(session_id)
        except (UnknownSession, AmbiguousSession):
            return  # it was deleted meanwhile

    def _copied(self, overview: SessionOverview) -> frozenset[CallKey]:
        """The calls that a session may have as copies: those of the one it goes on from."""
        lineage = overview.session.lineage
        if lineage is None or lineage.kind not in _COPIES:
            return frozenset()
        return frozenset(map(call_key, join_calls(self._messages(lineage.parent))))

    def _with_keys(self, lessons: Sequence[Lesson]) -> Iterator[Lesson]:
        """The lessons with what they cost and are found by. The texts of all go through the
        tokenizer together: most stand in a pattern and in an episode.
        """
        episodes = [episode for one in lessons for episode in one.mined.episodes]
        shown = [*map(episode_pattern, episodes)]
        shown += [pattern for one in lessons for pattern in one.mined.patterns]
        counts = self._embedder.token_counts(text for one in shown for text in texts_of(one))
        count = counts.__getitem__
        said = [call_text(one) for one in episodes]
        vectors = self._embedder.embed([*(one.request for one in episodes), *said])
        keys = iter([*map(_keys, episodes, said, vectors, vectors[len(said) :])])
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


_encode = msgspec.msgpack.Encoder().encode
unpacked = msgspec.msgpack.Decoder(list[Lesson]).decode


def _packed(lessons: list[Lesson]) -> bytes:
    try:
        return _encode(lessons)
    except UnicodeEncodeError:  # half a character, which a call's arguments may spell as an escape
        text = json.dumps(msgspec.to_builtins(lessons), ensure_ascii=False)
        return _encode(msgspec.json.decode(text.encode("utf-8", "replace"), type=list[Lesson]))


def extract(settings: WorkerSettings, session_ids: Sequence[str]) -> bytes:
    """What `Extractor.extract` gives, in a process that knows nothing yet."""
    return _extractor(settings).extract(session_ids)


@cache
def _extractor(settings: WorkerSettings) -> Extractor:
    timeout_s = settings.busy_timeout_s
    store = Store(settings.database, busy_timeout_s=timeout_s, only_looking=True)
    return Extractor(store, settings.trivial)
