"""What a library has learned, in arrays: the nearest episodes to a task, and the commands that the
task is likely to need. Made once for a library, or for one project of it, and asked many times.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import accumulate, takewhile

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from journeyman.embeddings.embedder import DIMENSIONS, Embedder
from journeyman.records.playbook import Playbook, PlaybookCommand, PlaybookMistake
from journeyman.store.episodes import EpisodeRow, Facts
from journeyman.templates.examples import CountTokens
from journeyman.templates.playbook import SHELL, build_playbook, kind_of, most_frequent, recency
from journeyman.templates.ranking import Bm25, Index, Ranked, task_words, words
from journeyman.templates.shown.briefing import Briefing, briefing_text, command_line, mistake_line
from journeyman.templates.translation.argument_fields import SHELLS

_NEIGHBOURS = 200

_COMMON, _NEAR, _MEANING, _WORDS = 0.6, 0.5, 1.5, 0.3
"""What a command's score is made of: how common it is here and how common among the nearest
requests (as logarithms), how near in meaning the task is to what the command was used for, and
whether the task has words of the command. The optimum is flat: on real sessions the share of
foreseen commands among the first 20 changes by less than 0.01 where one is half or twice as large.
"""

_SHARPNESS, _NEIGHBOURS_WEIGHT, _PURPOSES = 3, 5.0, 8
_EVERYWHERE = frozenset(("git", "gh", "glab", "hg", "jj", "svn"))
"""Programs that are used alike in every repository."""

MOST_COMMANDS = 22
LEAST_SCORE = -4.4
"""How many commands are shown at most, and how likely each must be. Both are set so that about one
shown command in seven is used: a longer list is not foresight."""

_COMMANDS_SHARE, _MISTAKES_SHARE, _FILES_SHARE = 0.45, 0.25, 0.05
_MOST_MISTAKES, _MOST_FILES, _MISTAKE_NEIGHBOURS = 8, 5, 60
_FILE_NEIGHBOURS = 12
"""Files count that at least two of so many nearest episodes used."""

_A_LINE = 3
"""What a line costs beside its text."""


def carried_over(rows: Sequence[EpisodeRow]) -> list[EpisodeRow]:
    """Episodes of other projects with commands that hold anywhere, and no files."""
    projects: defaultdict[str, set[str]] = defaultdict(set)
    for one in rows:
        for use in one.facts.commands:
            projects[use.name].add(one.project)
    kept = {
        name
        for name, used in projects.items()
        if len(used) > 1 or name.split(" ")[0] in _EVERYWHERE
    }

    def carried(facts: Facts) -> Facts:
        commands = tuple(use for use in facts.commands if use.name in kept)
        mistakes = tuple(one for one in facts.mistakes if not one.target or one.target in kept)
        return msgspec.structs.replace(facts, commands=commands, files=(), mistakes=mistakes)

    return [one._replace(facts=carried(one.facts)) for one in rows]


class LikelyCommand(Struct, frozen=True, kw_only=True):
    """A command, and how likely a task needs it."""

    command: PlaybookCommand
    score: float


class Experience:
    """Episodes with what they are found by, and their playbook."""

    def __init__(self, project: str, rows: Sequence[EpisodeRow], embedder: Embedder) -> None:
        self.project = project
        self.rows = list(rows)
        self._embedder = embedder
        self._places = {one.row: place for place, one in enumerate(self.rows)}
        self.index = Index(
            [one.row for one in self.rows],
            _vectors([one.vector for one in self.rows]),
            [np.frombuffer(one.words, dtype=np.uint32) for one in self.rows],
            call_vectors=_vectors([one.call_vector for one in self.rows]),
            call_words=[np.frombuffer(one.call_words, dtype=np.uint32) for one in self.rows],
        )

    @cached_property
    def playbook(self) -> Playbook:
        return build_playbook(self.project, self.rows)

    def at(self, row: int) -> EpisodeRow:
        return self.rows[self._places[row]]

    def nearest(self, task: str, *, widened: bool = True) -> list[Ranked]:
        """The nearest episodes first; by requests alone unless the task is `widened`."""
        if not self.rows:
            return []
        vector = self._embedder.embed([task])[0]
        return self.index.nearest(vector, task_words(task), most=_NEIGHBOURS, widened=widened)

    def nearness_to_commands(self, task: str) -> float:
        """How near a task is in meaning to what the nearest command was used for."""
        if not self.playbook.commands:
            return 0.0
        return float((self._command_vectors @ self._embedder.embed([task])[0]).max())

    def likely_commands(self, task: str, nearest: Sequence[Ranked]) -> list[LikelyCommand]:
        """The commands of the playbook, the likeliest for a task first."""
        commands = self.playbook.commands
        if not commands:
            return []
        common = self._common
        near = self._among(nearest)
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
            LikelyCommand(command=commands[at], score=float(scores[at]))
            for at in np.argsort(-scores, kind="stable").tolist()
        ]

    def _among(self, nearest: Sequence[Ranked]) -> NDArray[np.float64]:
        """The share of near episodes that used each command, the nearest counting most."""
        found, total = np.zeros(len(self.playbook.commands)), 0.0
        for one in nearest:
            place = self._places[one.row]
            weight = one.score**_SHARPNESS * self._recency[place]
            total += weight
            found[self._used[place]] += weight
        return found / total if total else found

    @cached_property
    def _used(self) -> list[list[int]]:
        """For each episode the numbers of the playbook's commands that worked in it."""
        numbers = {one.name: at for at, one in enumerate(self.playbook.commands)}
        worked = ({use.name for use in one.facts.commands if use.worked} for one in self.rows)
        return [sorted(numbers[name] for name in names & numbers.keys()) for names in worked]

    @cached_property
    def _recency(self) -> NDArray[np.float64]:
        """How much each episode counts, as its session does."""
        weights = recency(self.rows)
        return np.array([weights[one.session] for one in self.rows], dtype=np.float64)

    @cached_property
    def _common(self) -> NDArray[np.float64]:
        """The share of all episodes that used each command; none is quite zero."""
        found = np.zeros(len(self.playbook.commands))
        for used, weight in zip(self._used, self._recency, strict=True):
            found[used] += weight
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
            ". ".join([one.name, *most_frequent(purposes[one.name])[:_PURPOSES]])
            for one in self.playbook.commands
        ]

    @cached_property
    def _command_vectors(self) -> NDArray[np.float32]:
        return self._embedder.embed(self._command_texts)

    @cached_property
    def _command_words(self) -> Bm25:
        return Bm25([words(text) for text in self._command_texts])


def _vectors(found: Sequence[bytes]) -> NDArray[np.float32]:
    vectors = np.frombuffer(b"".join(found), dtype=np.float16)
    return vectors.astype(np.float32).reshape(-1, DIMENSIONS)


def brief(
    experience: Experience,
    ranked: Sequence[Ranked],
    likely: Sequence[LikelyCommand],
    budget: int,
    count: CountTokens,
    *,
    tools: Collection[str] | None = None,
) -> Briefing:
    """The briefing for a task. What needs a tool that is not among the `tools` is not told."""
    has_shell = tools is None or not SHELLS.isdisjoint(tools)
    likely = [one for one in likely[:MOST_COMMANDS] if has_shell and one.score >= LEAST_SCORE]
    commands = [one.command for one in likely]
    mistakes = [
        one
        for one in _near_first(experience, ranked)
        if tools is None or one.tool in tools or (one.tool == SHELL and has_shell)
    ][:_MOST_MISTAKES]
    files = _used_again(experience, ranked)
    commands_fit = _fit(map(command_line, commands), budget * _COMMANDS_SHARE, count)
    mistakes_fit = _fit(map(mistake_line, mistakes), budget * _MISTAKES_SHARE, count)
    files_fit = _fit(files, budget * _FILES_SHARE, count, beside=1)
    playbook = experience.playbook
    briefing = Briefing(
        project=playbook.project,
        sessions=playbook.sessions,
        commands=tuple(commands[:commands_fit]),
        mistakes=tuple(mistakes[:mistakes_fit]),
        files=tuple(files[:files_fit]),
    )
    while not briefing.is_empty and count(briefing_text(briefing)) > budget:
        # Without its least important line.
        more_mistakes = len(briefing.mistakes) > len(briefing.commands)
        field = "files" if briefing.files else "mistakes" if more_mistakes else "commands"
        fewer = {field: getattr(briefing, field)[:-1]}
        briefing = msgspec.structs.replace(briefing, **fewer)
    return briefing


def _fit(lines: Iterable[str], room: float, count: CountTokens, beside: int = _A_LINE) -> int:
    """How many of these lines, from the first on, there is room for."""
    costs = accumulate(count(line) + beside for line in lines)
    return sum(1 for _ in takewhile(lambda cost: cost <= room, costs))


def _near_first(experience: Experience, ranked: Sequence[Ranked]) -> list[PlaybookMistake]:
    """The mistakes that recur, those first that near episodes met."""
    met: Counter[tuple[str, str]] = Counter()
    for near in ranked[:_MISTAKE_NEIGHBOURS]:
        met.update({kind_of(one) for one in experience.at(near.row).facts.mistakes})
    found = experience.playbook.mistakes
    order = sorted(range(len(found)), key=lambda at: (-met[found[at].tool, found[at].error], at))
    return [found[at] for at in order]


def _used_again(experience: Experience, ranked: Sequence[Ranked]) -> list[str]:
    """The files that several of the nearest episodes used, those first that most did."""
    used: Counter[str] = Counter()
    for near in ranked[:_FILE_NEIGHBOURS]:
        episode = experience.at(near.row)
        if not episode.quarantined:
            used.update({file.path for file in episode.facts.files})
    again = sorted((path for path in used if used[path] > 1), key=lambda one: (-used[one], one))
    return again[:_MOST_FILES]
