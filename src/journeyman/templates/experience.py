"""What a library has learned, as arrays: finds the episodes nearest to a task and the commands that
the task is likely to need. Built once for a library or one of its projects, and queried many times.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import accumulate, takewhile

import msgspec
import numpy as np
from numpy.typing import NDArray

from journeyman.models.embedder import DIMENSIONS, Embedder
from journeyman.records.playbook import Playbook, PlaybookCommand, PlaybookMistake
from journeyman.store.episodes import EpisodeRow
from journeyman.templates.agent_tools import SHELLS
from journeyman.templates.briefing import Briefing, briefing_text, mistake_line, usage_line
from journeyman.templates.commands import is_everyday
from journeyman.templates.examples import CountTokens
from journeyman.templates.playbook import (
    SHELL,
    build_playbook,
    mistake_kind,
    most_frequent,
    session_weights,
)
from journeyman.templates.ranking import Bm25, Index, Ranked, task_words, words

_NEIGHBOURS = 200

_COMMON, _NEAR, _MEANING, _WORDS = 0.6, 0.5, 1.5, 0.3
"""Weights in a command's score: how common it is here and among the nearest requests (both as
logarithms), how near in meaning the task is to what the command was used for, and whether the task
contains words of the command. The optimum is flat: on real sessions, halving or doubling one weight
changes the share of foreseen commands among the first 20 by less than 0.01.
"""

_SHARPNESS, _NEIGHBOURS_WEIGHT, _PURPOSES = 3, 5.0, 8
MOST_COMMANDS = 22
LEAST_SCORE = -4.4
"""The maximum number of commands shown, and how likely each must be. Both are set so that about one
shown command in seven is used: a longer list is not foresight."""

_COMMANDS_SHARE, _MISTAKES_SHARE = 0.45, 0.25
_MOST_MISTAKES, _MISTAKE_NEIGHBOURS = 8, 60

_LINE_OVERHEAD = 3
"""Tokens that a line costs in addition to its text."""


LikelyCommand = tuple[PlaybookCommand, float]
"""A command, and how likely a task is to need it."""


class Experience:
    """The episodes of a project or library with their search index and playbook. `bots` counts the
    sessions of bots that were left out.
    """

    def __init__(
        self, project: str, rows: Sequence[EpisodeRow], embedder: Embedder, *, bots: int = 0
    ) -> None:
        self.project = project
        self.bots = bots
        self.rows = list(rows)
        self._embedder = embedder
        self._positions = {episode.row: at for at, episode in enumerate(self.rows)}
        self.index = Index(
            [episode.row for episode in self.rows],
            _vectors([episode.vector for episode in self.rows]),
            [np.frombuffer(episode.words, dtype=np.uint32) for episode in self.rows],
            call_vectors=_vectors([episode.call_vector for episode in self.rows]),
            call_words=[
                np.frombuffer(episode.call_words, dtype=np.uint32) for episode in self.rows
            ],
        )

    @cached_property
    def playbook(self) -> Playbook:
        return msgspec.structs.replace(build_playbook(self.project, self.rows), bots=self.bots)

    def at(self, row: int) -> EpisodeRow:
        return self.rows[self._positions[row]]

    def nearest(self, task: str, *, widened: bool = True) -> list[Ranked]:
        """Return the nearest episodes first; compare requests alone unless `widened`."""
        if not self.rows:
            return []
        vector = self._embedder.embed([task])[0]
        return self.index.nearest(vector, task_words(task), most=_NEIGHBOURS, widened=widened)

    def command_similarity(self, task: str) -> float:
        """Return how near a task is in meaning to what the nearest command was used for."""
        if not self.playbook.commands:
            return 0.0
        return float((self._command_vectors @ self._embedder.embed([task])[0]).max())

    def likely_commands(self, task: str, nearest: Sequence[Ranked]) -> list[LikelyCommand]:
        """Return the commands of the playbook, the most likely for a task first."""
        commands = self.playbook.commands
        if not commands:
            return []
        common = self._common
        near = self._usage_among(nearest)
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
        return [
            (commands[at], float(scores[at])) for at in np.argsort(-scores, kind="stable").tolist()
        ]

    def _usage_among(self, nearest: Sequence[Ranked]) -> NDArray[np.float64]:
        """Return the share of near episodes that used each command, the nearest counting most."""
        usage, total = np.zeros(len(self.playbook.commands)), 0.0
        for hit in nearest:
            at = self._positions[hit.row]
            weight = hit.score**_SHARPNESS * self._recency[at]
            total += weight
            usage[self._used[at]] += weight
        return usage / total if total else usage

    @cached_property
    def _used(self) -> list[list[int]]:
        """For each episode, the positions of the playbook's commands that worked in it."""
        positions = {command.name: at for at, command in enumerate(self.playbook.commands)}
        worked = (
            {use.name for use in episode.facts.commands if use.worked} for episode in self.rows
        )
        return [sorted(positions[name] for name in names & positions.keys()) for names in worked]

    @cached_property
    def _recency(self) -> NDArray[np.float64]:
        """The weight of each episode, which is that of its session."""
        weights = session_weights(self.rows)
        return np.array([weights[episode.session] for episode in self.rows], dtype=np.float64)

    @cached_property
    def _common(self) -> NDArray[np.float64]:
        """The share of all episodes that used each command; smoothed, so that none is zero."""
        usage = np.zeros(len(self.playbook.commands))
        for used, weight in zip(self._used, self._recency, strict=True):
            usage[used] += weight
        shares: NDArray[np.float64] = (usage + 0.1) / (self._recency.sum() + 1.0)
        return shares

    @cached_property
    def _command_texts(self) -> list[str]:
        purposes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for episode in self.rows:
            for use in episode.facts.commands:
                if use.worked and use.purpose:
                    purposes[use.name][use.purpose] += use.worked
        return [
            ". ".join([command.name, *most_frequent(purposes[command.name])[:_PURPOSES]])
            for command in self.playbook.commands
        ]

    @cached_property
    def _command_vectors(self) -> NDArray[np.float32]:
        return self._embedder.embed(self._command_texts)

    @cached_property
    def _command_words(self) -> Bm25:
        return Bm25([words(text) for text in self._command_texts])


def _vectors(stored: Sequence[bytes]) -> NDArray[np.float32]:
    vectors = np.frombuffer(b"".join(stored), dtype=np.float16)
    return vectors.astype(np.float32).reshape(-1, DIMENSIONS)


def build_briefing(
    experience: Experience,
    ranked: Sequence[Ranked],
    likely: Sequence[LikelyCommand],
    budget: int,
    count: CountTokens,
    *,
    tools: Collection[str] | None = None,
) -> Briefing:
    """Return the briefing for a task. What needs a tool that is not among the `tools` is
    left out.
    """
    has_shell = tools is None or not SHELLS.isdisjoint(tools)
    commands = [
        command for command, score in likely[:MOST_COMMANDS] if has_shell and score >= LEAST_SCORE
    ]
    mistakes = [
        mistake
        for mistake in _mistakes_by_nearness(experience, ranked)
        if tools is None or mistake.tool in tools or (mistake.tool == SHELL and has_shell)
    ][:_MOST_MISTAKES]
    commands_fit = _fit(map(usage_line, commands), budget * _COMMANDS_SHARE, count)
    mistakes_fit = _fit(map(mistake_line, mistakes), budget * _MISTAKES_SHARE, count)
    playbook = experience.playbook
    briefing = Briefing(
        project=playbook.project,
        sessions=playbook.sessions,
        bots=playbook.bots,
        commands=tuple(commands[:commands_fit]),
        mistakes=tuple(mistakes[:mistakes_fit]),
    )
    while not briefing.is_empty and count(briefing_text(briefing)) > budget:
        # Drop the least important line.
        more_mistakes = len(briefing.mistakes) > len(briefing.commands)
        field = "mistakes" if more_mistakes else "commands"
        fewer = {field: getattr(briefing, field)[:-1]}
        briefing = msgspec.structs.replace(briefing, **fewer)
    return briefing


def project_briefing(experience: Experience, budget: int, count: CountTokens) -> Briefing:
    """Return the briefing for a session whose task is not known yet: the project's most used
    commands, without those that every agent knows, and its recurring mistakes.
    """
    most_used = [
        (command, 0.0) for command in experience.playbook.commands if not is_everyday(command.name)
    ]
    briefing = build_briefing(experience, (), most_used, budget, count)
    return msgspec.structs.replace(briefing, for_task=False)


def _fit(lines: Iterable[str], room: float, count: CountTokens) -> int:
    """Return how many of these lines, from the first, there is room for."""
    costs = accumulate(count(line) + _LINE_OVERHEAD for line in lines)
    return sum(1 for _ in takewhile(lambda cost: cost <= room, costs))


def _mistakes_by_nearness(
    experience: Experience, ranked: Sequence[Ranked]
) -> list[PlaybookMistake]:
    """Return the recurring mistakes, those that near episodes made first."""
    times: Counter[tuple[str, str]] = Counter()
    for hit in ranked[:_MISTAKE_NEIGHBOURS]:
        mistakes = experience.at(hit.row).facts.mistakes
        times.update({mistake_kind(mistake) for mistake in mistakes})
    # Sorting is stable: equal ones keep the order of the playbook.
    return sorted(
        experience.playbook.mistakes, key=lambda mistake: -times[mistake.tool, mistake.error]
    )
