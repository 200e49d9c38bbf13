"""The share of what later sessions needed that openings built from earlier sessions would have
shown.

    python benchmarks/foresight.py LOGS… [--budget 1500] [--json]

LOGS are folders or files of Claude Code, Codex or Hermes. Sessions are ordered by time: the earlier
60 % teach, and every request of the later 40 % that ran shell commands successfully is a query. A
command is a program with its subcommand (`git commit`, `mise run lint`); commands that only prepare
or announce (`cd`, `echo`) do not count, nor do commands that need a person's confirmation, which
are never taught. Per arm: the recall of the first 20 distinct commands shown, the recall and
precision of all, the share of requests with at least one hit, how many failures known from three
earlier sessions are mentioned, and the tokens. Arms: ours; the list of the 20 most used commands;
the first 15 examples in stored order; the commands of the nearest requests by BM25 and by vectors,
up to 20. The intervals resample sessions. The ratio of ours to the list is printed last.
"""

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from journeyman import Journeyman
from journeyman.models.embedder import Embedder
from journeyman.records.defaults import BUDGET_TOKENS, MIN_SIMILARITY, MOST_PATTERNS
from journeyman.records.project import is_in_project
from journeyman.store.episodes import EpisodeRow
from journeyman.store.store import Store
from journeyman.templates.agent_tools import shell_command
from journeyman.templates.commands import commands_of
from journeyman.templates.experience import Experience
from journeyman.templates.opening import Opening
from journeyman.templates.opening_builder import OpeningRequest
from journeyman.templates.playbook import RECURRING, mistake_kind, of_project
from journeyman.templates.ranking import Bm25, is_small_talk, words
from journeyman.templates.selection import OpeningLimits

EARLIER = 0.6
FIRST_COMMANDS = 20
"""The share of sessions that teaches, and how many of the first shown commands are also counted
separately."""

OURS, LISTED = "ours", f"top {FIRST_COMMANDS} list"

_EXAMPLE_COUNT = 15
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
    """What one method of selection foresaw. `first` is the recall of the first 20 distinct commands
    that it shows; `recall` and `precision` are those of all it shows; `hit` is the share of
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
    """The measurement. `seen` is the share of needed commands that the earlier sessions used at
    all, `foreseeable` the number of failures of a kind that three earlier sessions had met. `gain`
    is how much larger a share of the needed commands our first commands contain than the list of
    the most used ones, session by session.
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


def measure_foresight(
    store: Store,
    embedder: Embedder,
    *,
    budget: int = BUDGET_TOKENS,
) -> Foresight | None:
    """Measure foresight on what a store has learned; None if no later request used a command that
    worked.
    """
    rows = of_project(store.episodes.rows(), "", bots=False)[0]
    earlier, later = _split(rows)
    # What a warm session used, its opening may have suggested.
    warm = {overview.session.id for overview in store.sessions.list(warm=True)}
    later = [episode for episode in later if episode.session not in warm]
    whole = store.episodes.by_row([episode.row for episode in later])
    texts = {row: episode.request for row, episode in whole.items()}
    requests = [
        _Request(
            session=episode.session,
            text=texts[episode.row],
            project=episode.project,
            needed=frozenset(used),
            failed=tuple(mistake_kind(mistake) for mistake in episode.facts.mistakes),
        )
        for episode in later
        if (used := {use.name for use in episode.facts.commands if use.worked})
        and texts.get(episode.row, "").strip()
    ]
    if not requests or not earlier:
        return None
    methods = _Methods(store, embedder, earlier, budget)
    shown: dict[str, list[_Shown]] = {name: [] for name in methods.by_name}
    for request in requests:
        for name, method in methods.by_name.items():
            shown[name].append(method(request))
    recurring = methods.recurring
    foreseeable = [
        [failure for failure in request.failed if failure in recurring] for request in requests
    ]
    seen = {use.name for episode in earlier for use in episode.facts.commands if use.worked}
    needed = sum(len(request.needed) for request in requests)
    sums = {name: _sums(requests, answers) for name, answers in shown.items()}
    ours, listed = (sums[name]["first"] / sums[name]["needed"] for name in (OURS, LISTED))
    return Foresight(
        teaching=len({episode.session for episode in earlier}),
        asking=len({request.session for request in requests}),
        requests=len(requests),
        commands=needed,
        seen=sum(len(request.needed & seen) for request in requests) / needed,
        failures=sum(len(request.failed) for request in requests),
        foreseeable=sum(map(len, foreseeable)),
        gain=_interval(ours - listed),
        arms=tuple(_arm(name, sums[name], answers, foreseeable) for name, answers in shown.items()),
    )


def _split(rows: Sequence[EpisodeRow]) -> tuple[list[EpisodeRow], list[EpisodeRow]]:
    """Return the episodes of the earlier and of the later sessions."""
    began: dict[str, float] = {}
    for episode in rows:
        at = float("inf") if episode.at is None else episode.at
        began[episode.session] = min(began.get(episode.session, at), at)
    ordered = sorted(began, key=lambda session: (began[session], session))
    teaching = set(ordered[: int(len(ordered) * EARLIER)])
    return (
        [episode for episode in rows if episode.session in teaching],
        [episode for episode in rows if episode.session not in teaching],
    )


class _Methods:
    """The methods of selecting from the earlier sessions, ours and the alternatives."""

    def __init__(
        self, store: Store, embedder: Embedder, earlier: Sequence[EpisodeRow], budget: int
    ) -> None:
        self._store, self._embedder = store, embedder
        self._budget = budget
        self._earlier = list(earlier)
        self._experiences: dict[str, Experience] = {}
        counts: Counter[str] = Counter()
        for episode in earlier:
            for use in episode.facts.commands:
                counts[use.name] += use.worked
        most_used = sorted(counts, key=lambda name: (-counts[name], name))[:FIRST_COMMANDS]
        with_commands = [
            episode for episode in earlier if any(use.worked for use in episode.facts.commands)
        ]
        self._worked = [
            list(dict.fromkeys(use.name for use in episode.facts.commands if use.worked))
            for episode in with_commands
        ]
        whole = store.episodes.by_row([episode.row for episode in with_commands])
        texts = {row: episode.request for row, episode in whole.items()}
        requests = [texts.get(episode.row, "") for episode in with_commands]
        ranking, vectors = Bm25([words(text) for text in requests]), embedder.embed(requests)
        examples = [name for names in self._worked[:_EXAMPLE_COUNT] for name in names]
        self.by_name: dict[str, Callable[[_Request], _Shown]] = {
            OURS: self._ours,
            LISTED: lambda _: self._listed(most_used),
            f"first {_EXAMPLE_COUNT} examples": lambda _: self._listed(examples),
            "nearest by BM25": lambda request: self._nearest(ranking.scores(words(request.text))),
            "nearest by vectors": lambda request: self._nearest(
                vectors @ embedder.embed([request.text])[0]
            ),
        }

    @property
    def recurring(self) -> frozenset[tuple[str, str]]:
        """The failures that at least three of the earlier sessions met."""
        sessions: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for episode in self._earlier:
            for mistake in episode.facts.mistakes:
                sessions[mistake_kind(mistake)].add(episode.session)
        return frozenset(kind for kind, met_in in sessions.items() if len(met_in) >= RECURRING)

    def _ours(self, request: _Request) -> _Shown:
        limits = OpeningLimits(tokens=self._budget, most=MOST_PATTERNS, floor=MIN_SIMILARITY)
        experience = self._experience(request.project)
        opening = Opening(task=request.text)
        if not is_small_talk(request.text):
            opening = OpeningRequest(
                self._store, self._embedder, request.text, limits
            ).from_experience(experience)
        return _Shown(
            commands=tuple(shown_commands(opening)),
            mistakes=frozenset(
                (mistake.tool, mistake.error) for mistake in opening.briefing.mistakes
            ),
            tokens=opening.tokens,
        )

    def _experience(self, project: str) -> Experience:
        if project not in self._experiences:
            rows = [row for row in self._earlier if is_in_project(row.project, project)]
            own = Experience(project, rows, self._embedder) if project and rows else None
            self._experiences[project] = own or Experience("", self._earlier, self._embedder)
        return self._experiences[project]

    def _listed(self, commands: Iterable[str]) -> _Shown:
        shown = tuple(dict.fromkeys(commands))
        return _Shown(commands=shown, tokens=self._embedder.count_tokens("\n".join(shown)))

    def _nearest(self, scores: "np.ndarray[tuple[int], np.dtype[np.float32]]") -> _Shown:
        """Return the commands of the nearest requests, until there are as many as the list has."""
        commands: dict[str, None] = {}
        for at in np.argsort(-scores, kind="stable").tolist():
            commands.update(dict.fromkeys(self._worked[at]))
            if len(commands) >= FIRST_COMMANDS:
                break
        return self._listed(list(commands)[:FIRST_COMMANDS])


def shown_commands(opening: Opening) -> list[str]:
    """Return the names of the commands that an opening shows, in order and each once."""
    commands = opening.briefing.commands
    lines = [form for command in commands for form in (command.form, command.piped)]
    for pattern in (*opening.briefing.episodes, *opening.patterns):
        lines += [shell_command(step.tool, step.arguments) for step in pattern.steps]
    return list(dict.fromkeys(command.name for line in lines for command in commands_of(line)))


def _sums(requests: Sequence[_Request], shown: Sequence[_Shown]) -> dict[str, _Numbers]:
    """Return the sums over the requests of an arm by column: for all sessions, then for each
    resampled set of them.
    """
    sessions = sorted({request.session for request in requests})
    position = {session: at for at, session in enumerate(sessions)}
    sums = np.zeros((len(sessions), len(_COLUMNS)))
    for request, answer in zip(requests, shown, strict=True):
        hit = len(request.needed.intersection(answer.commands))
        first = len(request.needed.intersection(answer.commands[:FIRST_COMMANDS]))
        counts = (len(request.needed), first, hit, len(answer.commands), 1, hit > 0)
        sums[position[request.session]] += counts
    # The same draws for every arm, so that differences compare the same sessions.
    drawn = np.random.default_rng(_SEED).integers(0, len(sessions), (_RESAMPLES, len(sessions)))
    totals = np.vstack((sums.sum(axis=0), sums[drawn].sum(axis=1)))
    return dict(zip(_COLUMNS, totals.T, strict=True))


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
            failure in answer.mistakes
            for answer, failures in zip(shown, foreseeable, strict=True)
            for failure in failures
        ),
        tokens=float(np.mean([answer.tokens for answer in shown])),
    )


def show(report: Foresight) -> None:
    print(
        f"{report.teaching:,} earlier sessions teach; {report.requests:,} requests of "
        f"{report.asking:,} later ones ran {report.commands:,} commands that worked, "
        f"{report.seen:.0%} of which had been seen before"
    )
    first = f"first {FIRST_COMMANDS}"
    columns = (first, "all", "precision", "any hit", "failures", "tokens")
    print(f"{'':24s}" + "".join(f"{name:>22s}" for name in columns))
    for arm in report.arms:
        values = (
            f"{arm.first.estimate:.2f} ({arm.first.low:.2f} to {arm.first.high:.2f})",
            *(f"{share.estimate:.2f}" for share in (arm.recall, arm.precision, arm.hit)),
            f"{arm.failures} of {report.foreseeable}",
            f"{arm.tokens:,.0f}",
        )
        print(f"{arm.name:24s}" + "".join(f"{value:>22s}" for value in values))
    low, high = (100 * limit for limit in (report.gain.low, report.gain.high))
    print(f"difference to the list: {100 * report.gain.estimate:+.1f} ({low:+.1f} to {high:+.1f})")
    ours, listed = report.arms[:2]
    print(f"ratio to the {listed.name}: {ours.first.estimate / listed.first.estimate:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=BUDGET_TOKENS)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Journeyman(home=folder) as journeyman:
        journeyman.import_logs(asked.logs)
        journeyman.learn()
        with Store(journeyman.settings.database) as store:
            found = measure_foresight(store, Embedder(), budget=asked.budget)
    if found is None:
        raise SystemExit("There are too few sessions with shell commands to measure foresight on.")
    if asked.json:
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        show(found)


if __name__ == "__main__":
    main()
