"""What a library has learned, in arrays: the nearest episodes to a task, and the commands that the
task is likely to need. Made once for a library, or for one project of it, and asked many times.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from journeyman.embeddings.embedder import DIMENSIONS, Embedder
from journeyman.records.playbook import PlaybookCommand
from journeyman.store.episodes import EpisodeRow
from journeyman.templates.playbook import PlaybookRows, build_playbook, recency
from journeyman.templates.selecting.bm25 import Bm25
from journeyman.templates.selecting.ranking import Index, Ranked
from journeyman.templates.selecting.words import compounds, words

_NEIGHBOURS = 200

_COMMON, _NEAR, _MEANING, _WORDS = 0.6, 0.5, 1.5, 0.3
"""What a command's score is made of: how common it is here and how common among the nearest
requests (as logarithms), how near in meaning the task is to what the command was used for, and
whether the task has words of the command. The optimum is flat: on real sessions the share of
foreseen commands among the first 20 changes by less than 0.01 where one is half or twice as large.
"""

_SHARPNESS = 3
_NEIGHBOURS_WEIGHT = 5.0
_PURPOSES = 8
_SERVED = 0.4
_DECISIVE = 6
"""How much it counts that an episode did what a task seems to need, and how many of the commands
due to the task tell that."""


_EVERYWHERE = frozenset(("git", "gh", "glab", "hg", "jj", "svn"))
"""Programs that are used alike in every repository."""


def carried_over(rows: Sequence[EpisodeRow]) -> list[EpisodeRow]:
    """Episodes of other projects with what may hold in a project that is not theirs: commands that
    several projects use or that work in any repository, and no files.
    """
    projects: defaultdict[str, set[str]] = defaultdict(set)
    for one in rows:
        for use in one.facts.commands:
            projects[use.name].add(one.project)
    kept = {
        name
        for name, used in projects.items()
        if len(used) > 1 or name.split(" ")[0] in _EVERYWHERE
    }
    return [
        one._replace(
            facts=msgspec.structs.replace(
                one.facts,
                commands=tuple(use for use in one.facts.commands if use.name in kept),
                files=(),
                mistakes=tuple(
                    made for made in one.facts.mistakes if not made.target or made.target in kept
                ),
            )
        )
        for one in rows
    ]


class LikelyCommand(Struct, frozen=True, kw_only=True):
    """A command of the playbook, how likely a task needs it, as a score, and its lift: how much of
    the score is due to the task rather than to how common the command is.
    """

    command: PlaybookCommand
    score: float
    lift: float


class Experience:
    """Episodes with what they are found by, and their playbook."""

    def __init__(self, project: str, rows: Sequence[EpisodeRow], embedder: Embedder) -> None:
        self.project = project
        self.rows = list(rows)
        self._embedder = embedder
        self._places = {one.row: place for place, one in enumerate(self.rows)}
        self._index = Index(
            [one.row for one in self.rows],
            _vectors([one.vector for one in self.rows]),
            [np.frombuffer(one.words, dtype=np.uint32) for one in self.rows],
            call_vectors=_vectors([one.call_vector for one in self.rows]),
            call_words=[np.frombuffer(one.call_words, dtype=np.uint32) for one in self.rows],
        )

    @cached_property
    def playbook(self) -> PlaybookRows:
        """What holds in these episodes."""
        return build_playbook(self.project, self.rows)

    def at(self, row: int) -> EpisodeRow:
        """The episode at a row of the store."""
        return self.rows[self._places[row]]

    def nearest(self, task: str, *, most: int = _NEIGHBOURS, widened: bool = True) -> list[Ranked]:
        """The nearest episodes, the nearest first; by requests alone where the task is not
        `widened` by what near episodes did.
        """
        if not self.rows:
            return []
        vector = self._embedder.embed([task])[0]
        return self._index.nearest(vector, words(task), compounds(task), most=most, widened=widened)

    def vectors_of(self, rows: Sequence[int]) -> NDArray[np.float32]:
        """The vectors of the requests at these rows."""
        return self._index.vectors_of(rows)

    def nearness_to_commands(self, task: str) -> float:
        """How near a task is in meaning to what the nearest command was used for."""
        if not self.playbook.playbook.commands:
            return 0.0
        return float((self._command_vectors @ self._embedder.embed([task])[0]).max())

    def likely_commands(self, task: str, nearest: Sequence[Ranked]) -> list[LikelyCommand]:
        """The commands of the playbook, the likeliest for a task first."""
        commands = self.playbook.playbook.commands
        if not commands:
            return []
        common = self._common
        near = self._among([(self._places[one.row], one.score) for one in nearest])
        joined = (_NEIGHBOURS_WEIGHT * near + common) / (_NEIGHBOURS_WEIGHT + 1.0)
        meaning = self._command_vectors @ self._embedder.embed([task])[0]
        matched = self._command_words.scores(words(task))
        scores = np.round(
            _COMMON * np.log(common)
            + _NEAR * np.log(joined)
            + _MEANING * meaning
            + _WORDS * np.log1p(matched),
            4,
        )
        lift = np.round(scores - (_COMMON + _NEAR) * np.log(common), 4)
        return [
            LikelyCommand(command=commands[at], score=float(scores[at]), lift=float(lift[at]))
            for at in np.argsort(-scores, kind="stable").tolist()
        ]

    def served(self, nearest: Sequence[Ranked], likely: Sequence[LikelyCommand]) -> list[Ranked]:
        """The nearest episodes, those first that did what the task seems to need: a near request
        counts as much as the share of the commands due to the task that its calls have.
        """
        weights = {one.command.name: float(np.exp(one.score + one.lift)) for one in likely}
        first = dict(sorted(weights.items(), key=lambda one: (-one[1], one[0]))[:_DECISIVE])
        total = sum(first.values()) or 1.0

        def value(one: Ranked) -> float:
            used = {use.name for use in self.at(one.row).facts.commands if use.worked}
            share = sum(weight for name, weight in first.items() if name in used) / total
            return round(one.score * (1.0 + _SERVED * share), 5)

        return sorted(nearest, key=lambda one: (-value(one), one.row))

    def _among(self, near: Sequence[tuple[int, float]]) -> NDArray[np.float64]:
        """The share of near episodes that used each command, the nearest counting most."""
        found = np.zeros(len(self.playbook.playbook.commands))
        total = 0.0
        for place, score in near:
            weight = float(score) ** _SHARPNESS * self._recency[place]
            total += weight
            for command in self._used[place]:
                found[command] += weight
        return found / total if total else found

    @cached_property
    def _used(self) -> list[tuple[int, ...]]:
        """For each episode the numbers of the playbook's commands that worked in it."""
        numbers = {one.name: at for at, one in enumerate(self.playbook.playbook.commands)}
        return [
            tuple(
                sorted(
                    {
                        numbers[use.name]
                        for use in one.facts.commands
                        if use.worked and use.name in numbers
                    }
                )
            )
            for one in self.rows
        ]

    @cached_property
    def _recency(self) -> NDArray[np.float64]:
        """How much each episode counts, as its session does."""
        weights = recency(self.rows)
        return np.array([weights[one.session] for one in self.rows], dtype=np.float64)

    @cached_property
    def _common(self) -> NDArray[np.float64]:
        """The share of all episodes that used each command; none is quite zero."""
        found = np.zeros(len(self.playbook.playbook.commands))
        for used, weight in zip(self._used, self._recency, strict=True):
            found[list(used)] += weight
        shares: NDArray[np.float64] = (found + 0.1) / (self._recency.sum() + 1.0)
        return shares

    @cached_property
    def _command_texts(self) -> list[str]:
        purposes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for one in self.rows:
            for use in one.facts.commands:
                if use.worked and use.purpose:
                    purposes[use.name][use.purpose] += use.worked
        return [
            ". ".join([one.name, *_first(purposes[one.name])])
            for one in self.playbook.playbook.commands
        ]

    @cached_property
    def _command_vectors(self) -> NDArray[np.float32]:
        return self._embedder.embed(self._command_texts)

    @cached_property
    def _command_words(self) -> Bm25:
        return Bm25([words(text) for text in self._command_texts])


def _first(purposes: "Counter[str]") -> list[str]:
    return sorted(purposes, key=lambda one: (-purposes[one], one))[:_PURPOSES]


def _vectors(found: Sequence[bytes]) -> NDArray[np.float32]:
    vectors = np.frombuffer(b"".join(found), dtype=np.float16)
    return vectors.astype(np.float32).reshape(-1, DIMENSIONS)
