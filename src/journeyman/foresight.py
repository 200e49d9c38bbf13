"""Foresight: how much of what a session then needed its opening would have shown. Sessions are
taken in the order of time; the earlier part teaches, and the requests of the later part ask. Simple
alternatives stand beside ours: the project's most used commands, the first examples in stored
order, and the commands of the nearest requests.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from journeyman.embeddings.embedder import Embedder
from journeyman.records.project import is_in_project
from journeyman.store.episodes import EpisodeRow
from journeyman.store.store import Store
from journeyman.templates.commands import commands_of
from journeyman.templates.defaults import BUDGET_TOKENS, FLOOR, MOST_PATTERNS
from journeyman.templates.experience import Experience
from journeyman.templates.openings import Openings
from journeyman.templates.playbook import RECURRING, kind_of
from journeyman.templates.selecting.bm25 import Bm25
from journeyman.templates.selecting.selection import Limits
from journeyman.templates.selecting.words import says_nothing, words
from journeyman.templates.shown.opening import Opening
from journeyman.templates.tool_translation import shell_command

EARLIER = 0.6
FIRST = 20
"""The share of sessions that teaches, and how many of the commands shown first are counted apart.
"""

OURS, LISTED = "ours", f"top {FIRST} list"

_EXAMPLES = 15
_COLUMNS = ("needed", "first", "hit", "shown", "requests", "requests hit")
_RESAMPLES = 1_000
_SEED = 20_260_101

_Numbers = NDArray[np.float64]


class Interval(Struct, frozen=True, kw_only=True):
    """A share with its 95 % interval, from resampling sessions."""

    estimate: float
    low: float
    high: float


class Arm(Struct, frozen=True, kw_only=True):
    """What one way of choosing foresaw. `first` is the recall of the first 20 distinct commands
    that it shows, `recall` and `precision` are those of all it shows, `hit` is the share of
    requests for which it shows at least one command that was then used.
    """

    name: str
    first: Interval
    recall: Interval
    precision: Interval
    hit: Interval
    failures: int
    tokens: float


class Foresight(Struct, frozen=True, kw_only=True):
    """The measurement. `seen` is the share of needed commands that the earlier sessions had at all,
    `foreseeable` the number of failures of a kind that three earlier sessions had met. `gain` is by
    how much the first commands of ours hold more of what is needed than the list of most used ones,
    session by session.
    """

    teaching: int
    asking: int
    requests: int
    commands: int
    seen: float
    failures: int
    foreseeable: int
    gain: Interval
    arms: tuple[Arm, ...]


class _Request(Struct, frozen=True, kw_only=True):
    session: str
    text: str
    project: str
    needed: frozenset[str]
    failed: tuple[tuple[str, str], ...]


class _Shown(Struct, frozen=True, kw_only=True):
    commands: tuple[str, ...]
    mistakes: frozenset[tuple[str, str]] = frozenset()
    tokens: int = 0


_Way = Callable[[_Request], _Shown]


def measure(
    store: Store,
    embedder: Embedder,
    *,
    budget: int = BUDGET_TOKENS,
    project: str = "",
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Foresight | None:
    """Measure foresight on what a store has learned; None where no later request used a command
    that worked.
    """
    rows = [
        one for one in store.episodes.rows() if not project or is_in_project(one.project, project)
    ]
    earlier, later = _split(rows)
    texts = store.episodes.requests([one.row for one in later])
    asked = [_request(one, texts[one.row]) for one in later if texts.get(one.row, "").strip()]
    requests = [one for one in asked if one.needed]
    if not requests or not earlier:
        return None
    library = _Library(store, embedder, earlier, budget)
    shown: dict[str, list[_Shown]] = {name: [] for name in library.ways}
    for number, request in enumerate(requests):
        for name, way in library.ways.items():
            shown[name].append(way(request))
        progress(number + 1, len(requests))
    recurring = library.recurring
    foreseeable = [[one for one in request.failed if one in recurring] for request in requests]
    seen = {use.name for one in earlier for use in one.facts.commands if use.worked}
    needed = sum(len(one.needed) for one in requests)
    sums = {name: _Sums(requests, found) for name, found in shown.items()}
    return Foresight(
        teaching=len({one.session for one in earlier}),
        asking=len({one.session for one in requests}),
        requests=len(requests),
        commands=needed,
        seen=sum(len(one.needed & seen) for one in requests) / needed,
        failures=sum(len(one.failed) for one in requests),
        foreseeable=sum(map(len, foreseeable)),
        gain=sums[OURS].gain(sums[LISTED]),
        arms=tuple(_arm(name, sums[name], found, foreseeable) for name, found in shown.items()),
    )


def _split(rows: Sequence[EpisodeRow]) -> tuple[list[EpisodeRow], list[EpisodeRow]]:
    """The episodes of the earlier and of the later sessions."""
    began: dict[str, float] = {}
    for one in rows:
        at = float("inf") if one.at is None else one.at
        began[one.session] = min(began.get(one.session, at), at)
    ordered = sorted(began, key=lambda session: (began[session], session))
    teaching = set(ordered[: int(len(ordered) * EARLIER)])
    return (
        [one for one in rows if one.session in teaching],
        [one for one in rows if one.session not in teaching],
    )


def _request(row: EpisodeRow, text: str) -> _Request:
    return _Request(
        session=row.session,
        text=text,
        project=row.project,
        needed=frozenset(use.name for use in row.facts.commands if use.worked),
        failed=tuple(kind_of(one) for one in row.facts.mistakes),
    )


class _Library:
    """The earlier sessions, and each way to choose from them."""

    def __init__(
        self, store: Store, embedder: Embedder, earlier: Sequence[EpisodeRow], budget: int
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._budget = budget
        self._openings = Openings(store, embedder)
        self._all = list(earlier)
        self._experiences: dict[str, Experience] = {}
        counts: Counter[str] = Counter()
        for one in earlier:
            for use in one.facts.commands:
                counts[use.name] += use.worked
        self._most_used = tuple(sorted(counts, key=lambda name: (-counts[name], name))[:FIRST])
        with_commands = [one for one in earlier if any(use.worked for use in one.facts.commands)]
        self._worked = [_worked(one) for one in with_commands]
        texts = store.episodes.requests([one.row for one in with_commands])
        requests = [texts.get(one.row, "") for one in with_commands]
        self._words = Bm25([words(text) for text in requests])
        self._vectors = embedder.embed(requests)
        self.ways: dict[str, _Way] = {
            OURS: self._ours,
            LISTED: lambda _request: self._listed(self._most_used),
            f"first {_EXAMPLES} examples": self._first_examples,
            "nearest by BM25": self._by_words,
            "nearest by vectors": self._by_vectors,
        }

    @property
    def recurring(self) -> frozenset[tuple[str, str]]:
        """The failures that at least three of the earlier sessions met."""
        sessions: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for one in self._all:
            for mistake in one.facts.mistakes:
                sessions[kind_of(mistake)].add(one.session)
        return frozenset(kind for kind, met in sessions.items() if len(met) >= RECURRING)

    def _ours(self, request: _Request) -> _Shown:
        limits = Limits(tokens=self._budget, most=MOST_PATTERNS, floor=FLOOR)
        experience = self._experience(request.project)
        opening = Opening(task=request.text)
        if not says_nothing(request.text):
            opening = self._openings.from_experience(request.text, limits, experience)
        return _Shown(
            commands=tuple(shown_commands(opening)),
            mistakes=frozenset((one.tool, one.error) for one in opening.briefing.mistakes),
            tokens=opening.tokens,
        )

    def _experience(self, project: str) -> Experience:
        if project not in self._experiences:
            rows = [one for one in self._all if is_in_project(one.project, project)]
            found = Experience(project, rows, self._embedder) if project and rows else None
            self._experiences[project] = found or Experience("", self._all, self._embedder)
        return self._experiences[project]

    def _listed(self, commands: Iterable[str]) -> _Shown:
        shown = tuple(dict.fromkeys(commands))
        return _Shown(commands=shown, tokens=self._embedder.count_tokens("\n".join(shown)))

    def _first_examples(self, _request: _Request) -> _Shown:
        return self._listed(name for some in self._worked[:_EXAMPLES] for name in some)

    def _by_words(self, request: _Request) -> _Shown:
        return self._nearest(self._words.scores(words(request.text)))

    def _by_vectors(self, request: _Request) -> _Shown:
        return self._nearest(self._vectors @ self._embedder.embed([request.text])[0])

    def _nearest(self, scores: "np.ndarray[tuple[int], np.dtype[np.float32]]") -> _Shown:
        """The commands of the nearest requests, until there are as many as the list has."""
        found: dict[str, None] = {}
        for at in np.argsort(-scores, kind="stable").tolist():
            found.update(dict.fromkeys(self._worked[at]))
            if len(found) >= FIRST:
                break
        return self._listed(list(found)[:FIRST])


def shown_commands(opening: Opening) -> list[str]:
    """The commands that an opening shows, by name, in order and each once."""
    lines = [form for one in opening.briefing.commands for form in (one.form, one.piped)]
    for pattern in (*opening.briefing.episodes, *opening.patterns):
        lines += [shell_command(step.tool, step.arguments) for step in pattern.steps]
    return list(dict.fromkeys(command.name for line in lines for command in commands_of(line)))


def _worked(row: EpisodeRow) -> list[str]:
    return list(dict.fromkeys(use.name for use in row.facts.commands if use.worked))


class _Sums:
    """What an arm's requests add up to for each session, and for resampled sets of sessions."""

    def __init__(self, requests: Sequence[_Request], shown: Sequence[_Shown]) -> None:
        sessions = sorted({one.session for one in requests})
        number = {session: at for at, session in enumerate(sessions)}
        self._sums = np.zeros((len(sessions), len(_COLUMNS)))
        for request, one in zip(requests, shown, strict=True):
            hit = len(request.needed.intersection(one.commands))
            first = len(request.needed.intersection(one.commands[:FIRST]))
            counts = (len(request.needed), first, hit, len(one.commands), 1, hit > 0)
            self._sums[number[request.session]] += counts
        # The same draws for every arm, so that differences are of the same sessions.
        drawn = np.random.default_rng(_SEED).integers(0, len(sessions), (_RESAMPLES, len(sessions)))
        self._resampled = self._sums[drawn].sum(axis=1)

    def share(self, part: str, whole: str) -> Interval:
        """One column as a share of another."""
        estimate = self._ratio(self._sums.sum(axis=0)[None], part, whole)[0]
        return _interval(float(estimate), self._ratio(self._resampled, part, whole))

    def gain(self, other: "_Sums") -> Interval:
        """By how much the share of needed commands among the first ones is larger."""
        estimate = self.share("first", "needed").estimate - other.share("first", "needed").estimate
        ours = self._ratio(self._resampled, "first", "needed")
        return _interval(estimate, ours - self._ratio(other._resampled, "first", "needed"))  # noqa: SLF001 - of its own kind

    @staticmethod
    def _ratio(sums: _Numbers, part: str, whole: str) -> _Numbers:
        found: _Numbers = sums[:, _COLUMNS.index(part)] / np.maximum(
            sums[:, _COLUMNS.index(whole)], 1
        )
        return found


def _interval(estimate: float, resampled: _Numbers) -> Interval:
    low, high = np.quantile(resampled, (0.025, 0.975))
    return Interval(estimate=estimate, low=float(low), high=float(high))


def _arm(
    name: str,
    sums: _Sums,
    shown: Sequence[_Shown],
    foreseeable: Sequence[Sequence[tuple[str, str]]],
) -> Arm:
    return Arm(
        name=name,
        first=sums.share("first", "needed"),
        recall=sums.share("hit", "needed"),
        precision=sums.share("hit", "shown"),
        hit=sums.share("requests hit", "requests"),
        failures=sum(
            failure in one.mistakes
            for one, failures in zip(shown, foreseeable, strict=True)
            for failure in failures
        ),
        tokens=float(np.mean([one.tokens for one in shown])),
    )
