"""Foresight: how much of what a session then needed its opening would have shown. Sessions are
taken in the order of time; the earlier part teaches, and the requests of the later part ask. Simple
alternatives stand beside ours: the project's most used commands, the first examples in stored
order, and the commands of the nearest requests.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

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
from journeyman.templates.ranking import Bm25, says_nothing, words
from journeyman.templates.selection import Limits
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


class _Request(NamedTuple):
    session: str
    text: str
    project: str
    needed: frozenset[str]
    failed: tuple[tuple[str, str], ...]


class _Shown(NamedTuple):
    commands: tuple[str, ...]
    mistakes: frozenset[tuple[str, str]] = frozenset()
    tokens: int = 0


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
    requests = [
        _Request(
            session=one.session,
            text=texts[one.row],
            project=one.project,
            needed=frozenset(used),
            failed=tuple(kind_of(mistake) for mistake in one.facts.mistakes),
        )
        for one in later
        if (used := {use.name for use in one.facts.commands if use.worked})
        and texts.get(one.row, "").strip()
    ]
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
    sums = {name: _sums(requests, found) for name, found in shown.items()}
    ours, listed = (sums[name]["first"] / sums[name]["needed"] for name in (OURS, LISTED))
    return Foresight(
        teaching=len({one.session for one in earlier}),
        asking=len({one.session for one in requests}),
        requests=len(requests),
        commands=needed,
        seen=sum(len(one.needed & seen) for one in requests) / needed,
        failures=sum(len(one.failed) for one in requests),
        foreseeable=sum(map(len, foreseeable)),
        gain=_interval(ours - listed),
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


class _Library:
    """The earlier sessions, and each way to choose from them."""

    def __init__(
        self, store: Store, embedder: Embedder, earlier: Sequence[EpisodeRow], budget: int
    ) -> None:
        self._embedder = embedder
        self._budget = budget
        self._openings = Openings(store, embedder)
        self._all = list(earlier)
        self._experiences: dict[str, Experience] = {}
        counts: Counter[str] = Counter()
        for one in earlier:
            for use in one.facts.commands:
                counts[use.name] += use.worked
        most_used = sorted(counts, key=lambda name: (-counts[name], name))[:FIRST]
        with_commands = [one for one in earlier if any(use.worked for use in one.facts.commands)]
        self._worked = [
            list(dict.fromkeys(use.name for use in one.facts.commands if use.worked))
            for one in with_commands
        ]
        texts = store.episodes.requests([one.row for one in with_commands])
        requests = [texts.get(one.row, "") for one in with_commands]
        ranking, vectors = Bm25([words(text) for text in requests]), embedder.embed(requests)
        examples = [name for some in self._worked[:_EXAMPLES] for name in some]
        self.ways: dict[str, Callable[[_Request], _Shown]] = {
            OURS: self._ours,
            LISTED: lambda _: self._listed(most_used),
            f"first {_EXAMPLES} examples": lambda _: self._listed(examples),
            "nearest by BM25": lambda one: self._nearest(ranking.scores(words(one.text))),
            "nearest by vectors": lambda one: self._nearest(
                vectors @ embedder.embed([one.text])[0]
            ),
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


def _sums(requests: Sequence[_Request], shown: Sequence[_Shown]) -> dict[str, _Numbers]:
    """What the requests of an arm add up to by column: in all sessions, then in each resampled set
    of them.
    """
    sessions = sorted({one.session for one in requests})
    number = {session: at for at, session in enumerate(sessions)}
    sums = np.zeros((len(sessions), len(_COLUMNS)))
    for request, one in zip(requests, shown, strict=True):
        hit = len(request.needed.intersection(one.commands))
        first = len(request.needed.intersection(one.commands[:FIRST]))
        counts = (len(request.needed), first, hit, len(one.commands), 1, hit > 0)
        sums[number[request.session]] += counts
    # The same draws for every arm, so that differences are of the same sessions.
    drawn = np.random.default_rng(_SEED).integers(0, len(sessions), (_RESAMPLES, len(sessions)))
    everything = np.vstack((sums.sum(axis=0), sums[drawn].sum(axis=1)))
    return dict(zip(_COLUMNS, everything.T, strict=True))


def _interval(shares: _Numbers) -> Interval:
    low, high = np.quantile(shares[1:], (0.025, 0.975))
    return Interval(estimate=float(shares[0]), low=float(low), high=float(high))


def _arm(
    name: str,
    sums: Mapping[str, _Numbers],
    shown: Sequence[_Shown],
    foreseeable: Sequence[Sequence[tuple[str, str]]],
) -> Arm:
    def share(part: str, whole: str) -> Interval:
        return _interval(sums[part] / np.maximum(sums[whole], 1))

    return Arm(
        name=name,
        first=share("first", "needed"),
        recall=share("hit", "needed"),
        precision=share("hit", "shown"),
        hit=share("requests hit", "requests"),
        failures=sum(
            failure in one.mistakes
            for one, failures in zip(shown, foreseeable, strict=True)
            for failure in failures
        ),
        tokens=float(np.mean([one.tokens for one in shown])),
    )
