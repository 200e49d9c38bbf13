"""What the facts that Journeyman tells are worth: every recorded session is met with what was known
before it, through the moments that hooks use, and the calls that a told fact made needless are
counted, minus the facts that were told and not used. The simplest alternatives are counted the same
way.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from journeyman.experience.checkout import Checkout, says
from journeyman.experience.continuity import likely_files, person_of
from journeyman.experience.facts import ProjectFacts, of_project
from journeyman.experience.moments import Advice, Moment, Moments
from journeyman.learning.agent_tools import operation_of, shell_command
from journeyman.learning.commands import commands_of, subject_of
from journeyman.learning.slots import CHANGES
from journeyman.models.embedder import Embedder
from journeyman.records.fact import Fact, FactKind
from journeyman.store.episodes import EpisodeRow
from journeyman.store.store import Store
from journeyman.trials.credit import needless_calls, possible_savings, repairs
from journeyman.trials.replay import (
    RecordedCheckout,
    RecordedSession,
    instructions_in,
    read_session,
)

OURS = "ours"
_MOST_LISTED = 20
_COMMITS = 30
_FEWEST_SESSIONS = 3


_RESAMPLES, _SEED = 2_000, 20_260_101


class Interval(Struct, frozen=True, kw_only=True):
    """A mean over sessions with its 95 % interval, from resampling sessions; `of` counts them."""

    estimate: float
    low: float
    high: float
    of: int


class Arm(Struct, frozen=True, kw_only=True):
    """What one way of telling achieves per session: calls made needless, facts not used, the one
    minus the other, and tokens.
    """

    name: str
    needless: Interval
    unused: Interval
    net: Interval
    tokens: float


class KindWorth(Struct, frozen=True, kw_only=True):
    """What one kind of fact achieved, in all sessions together, and at which moment."""

    kind: FactKind
    moment: Moment
    told: int
    used: int
    needless: int


class Worth(Struct, frozen=True, kw_only=True):
    """The measurement of one project. `ceiling` is what could have been made needless at the most:
    searches before a file was found, and calls that failed for a lasting reason, per session.
    `alarms` are the unrelated requests that would now be told something, with what.
    """

    project: str
    sessions: int
    ceiling: Interval
    arms: tuple[Arm, ...]
    kinds: tuple[KindWorth, ...]
    start_tokens: int
    alarms: tuple[tuple[str, str], ...] = ()


class Score(NamedTuple):
    """What one way of telling achieved in one session."""

    needless: int
    unused: int
    tokens: int


def arm_of(name: str, scores: Sequence[Score]) -> Arm:
    return Arm(
        name=name,
        needless=interval_of([score.needless for score in scores]),
        unused=interval_of([score.unused for score in scores]),
        net=interval_of([score.needless - score.unused for score in scores]),
        tokens=sum(score.tokens for score in scores) / max(len(scores), 1),
    )


def interval_of(values: Sequence[float]) -> Interval:
    """Return the mean of values with the interval in which 95 % of resampled means lie."""
    if not values:
        return Interval(estimate=0.0, low=0.0, high=0.0, of=0)
    found = np.array(values, dtype=np.float64)
    chance = np.random.default_rng(_SEED)
    means = found[chance.integers(len(found), size=(_RESAMPLES, len(found)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(estimate=float(found.mean()), low=float(low), high=float(high), of=len(found))


class _Told(NamedTuple):
    """What a session knows by a fact: the fact, and the moment and place at which it was told."""

    fact: Fact
    moment: Moment
    at: int


def measure_worth(
    store: Store,
    project: str,
    *,
    kinds: AbstractSet[FactKind] | None = None,
    others: Sequence[str] = (),
    unrelated: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Worth | None:
    """Measure what facts are worth in a project; None if it has too few sessions. What is told in
    the first of the `others` that tells anything is one of the alternatives. `unrelated` requests
    have nothing to do with the project.
    """
    overviews = store.sessions.list(project=project, subagents=False, bots=False)
    found = sorted(overviews, key=lambda one: (one.session.started_at or 0.0, one.session.id))
    recorded = [read_session(store, one.session) for one in found if one.calls]
    if len(recorded) < _FEWEST_SESSIONS:
        return None
    rows: defaultdict[str, list[EpisodeRow]] = defaultdict(list)
    for row in store.episodes.rows(project):
        rows[row.session].append(row)
    starts = (
        Moments(
            ProjectFacts(of_project(store.episodes.rows(other), bots=False)[0]),
            Checkout(),
            kinds=kinds,
        ).start()
        for other in others
    )
    placebo = next((start for start in starts if start.text), None)
    replay = _Replay(store, project, recorded, rows, kinds=kinds, placebo=placebo)
    return replay.run(progress, unrelated)


class _Replay:
    """Meets the sessions of a project in their order."""

    def __init__(
        self,
        store: Store,
        project: str,
        recorded: Sequence[RecordedSession],
        rows: dict[str, list[EpisodeRow]],
        *,
        kinds: AbstractSet[FactKind] | None,
        placebo: Advice | None,
    ) -> None:
        self._store, self._project = store, project
        self._recorded, self._rows, self._kinds = recorded, rows, kinds
        self._placebo = placebo
        self._checkout = RecordedCheckout(instructions_in(recorded))
        self._count = Embedder().count_tokens
        self._scores: defaultdict[str, list[Score]] = defaultdict(list)
        self._ceiling: list[int] = []
        self._by_kind: defaultdict[tuple[FactKind, Moment], Counter[str]] = defaultdict(Counter)
        self._start_tokens = 0
        self._uses: Counter[str] = Counter()
        self._changes: list[tuple[str, ...]] = []

    def run(self, progress: Callable[[int, int], None], unrelated: Sequence[str]) -> Worth:
        known: list[EpisodeRow] = []
        for number, recorded in enumerate(self._recorded):
            if number:
                self._meet(recorded, known)
            known += self._rows.get(recorded.session.id, [])
            self._note(recorded)
            progress(number + 1, len(self._recorded))
        moments = Moments(ProjectFacts(known), self._checkout, kinds=self._kinds)
        answers = [(text, moments.prompt(text).text) for text in unrelated]
        return Worth(
            project=self._project,
            sessions=len(self._recorded) - 1,
            ceiling=interval_of(self._ceiling),
            arms=tuple(arm_of(name, scores) for name, scores in self._scores.items()),
            kinds=tuple(
                KindWorth(kind=kind, moment=moment, **_counts(counted))
                for (kind, moment), counted in sorted(self._by_kind.items())
            ),
            start_tokens=self._start_tokens,
            alarms=tuple((text, answer) for text, answer in answers if answer),
        )

    def _request_of(self, row: int) -> str:
        found = self._store.episodes.by_row([row]).get(row)
        return found.request if found is not None else ""

    def _meet(
        self,
        recorded: RecordedSession,
        known: Sequence[EpisodeRow],
    ) -> None:
        session = recorded.session
        facts = ProjectFacts(known)
        moments = Moments(
            facts,
            self._checkout,
            branch=session.git_branch,
            folder=recorded.root,
            cwd=session.cwd,
            person=person_of(session.cwd),
            request_of=self._request_of,
            kinds=self._kinds,
        )
        told, texts, start = self._tell(recorded, moments)
        self._start_tokens = max(self._start_tokens, self._count(start.text))
        score = self._scored(recorded, told, OURS)
        self._scores[OURS].append(score._replace(tokens=sum(map(self._count, texts))))
        self._scores["nothing"].append(Score(0, 0, 0))
        for name, listed, tokens in self._alternatives(facts):
            plain = [_Told(fact, "start", -1) for fact in listed]
            self._scores[name].append(self._scored(recorded, plain, name)._replace(tokens=tokens))
        self._ceiling.append(possible_savings(recorded))

    def _tell(
        self, recorded: RecordedSession, moments: Moments
    ) -> tuple[list[_Told], list[str], Advice]:
        """Return what a session is told, with the texts, and its start."""
        start = moments.start(before_calls=True)
        told = [_Told(fact, "start", -1) for fact in start.facts]
        texts = [start.text] if start.text else []
        shown, at_calls = {fact.id for fact in start.facts}, set[str]()

        def take(advice: Advice, at: int, seen: set[str]) -> None:
            told.extend(_Told(fact, advice.moment, at) for fact in advice.facts)
            seen.update(fact.id for fact in advice.facts)
            texts.extend([advice.text] if advice.text else [])

        for at, event in enumerate(recorded.events):
            if event.prompt:
                take(moments.prompt(event.prompt, shown), at, shown)
            elif event.call is not None and event.verdict is not None:
                before = moments.call(event.call, at_calls)
                take(before, at, at_calls)  # the context arrives with the result of the call
                if event.verdict.is_error:
                    after = moments.failure(event.call, at_calls)
                    take(after, at, at_calls)
        return told, texts, start

    def _scored(self, recorded: RecordedSession, told: Sequence[_Told], name: str) -> Score:
        """Return how many calls the facts made needless, and how many facts were not used."""
        credited: set[int] = set()
        unused = 0
        rules = frozenset(one.fact.subject for one in told if one.fact.kind == "finding")
        findings = [one for one in told if one.fact.kind == "finding"][:1]
        for fact, moment, at in (*(one for one in told if one.fact.kind != "finding"), *findings):
            if fact.kind == "finding":  # one line names them all
                calls, used = repairs(recorded.events, rules, at)
            else:
                calls, used = needless_calls(recorded, fact, at)
            new = calls - credited
            credited |= new
            unused += not used
            if name == OURS:
                counts = {"told": 1, "used": int(used), "needless": len(new)}
                self._by_kind[fact.kind, moment].update(counts)
        return Score(len(credited), unused, 0)

    def _note(self, recorded: RecordedSession) -> None:
        """Note the commands that a session used, the files it changed, and its commits, which are
        changes without files.
        """
        self._checkout.note(recorded)
        for event in recorded.events:
            if event.call is None or event.verdict is None or event.verdict.is_error:
                continue
            line = shell_command(event.call.tool, event.call.arguments)
            names = [command.name for command in commands_of(line)]
            self._uses.update(names)
            if operation_of(event.call.tool, event.call.arguments) in CHANGES:
                self._changes.append(event.files)
            elif "git commit" in names:
                self._changes.append(())

    def _alternatives(self, facts: ProjectFacts) -> Iterable[tuple[str, list[Fact], int]]:
        """Yield the simple alternatives: their names, what they tell as facts, and tokens."""
        edited: dict[str, None] = {}
        commits = 0
        for change in reversed(self._changes):
            commits += not change
            if commits > _COMMITS:
                break
            edited |= dict.fromkeys(change)
        listed = [_fact("command", name) for name, _ in self._uses.most_common(_MOST_LISTED)]
        yield "20 most used commands", listed, self._cost(listed)
        files = [_fact("continuity", path) for path in [*edited][:_MOST_LISTED]]
        yield f"last {_COMMITS} commits", files, self._cost(files)
        written = "\n".join(self._checkout.instructions.values())
        named = [
            _fact("command", fact.subject) for fact in facts.all if says(written, fact.subject)
        ]
        named += [
            _fact("continuity", path)
            for path in likely_files(facts.worked_on, "", "")
            if says(written, path)
        ]
        yield "instructions files", named, self._count(written)
        if self._placebo is not None:
            facts_there = list(self._placebo.facts)
            yield "another project", facts_there, self._count(self._placebo.text)

    def _cost(self, facts: Sequence[Fact]) -> int:
        return self._count("\n".join(fact.subject for fact in facts))


def _fact(kind: FactKind, subject: str) -> Fact:
    present = (subject,) if kind == "continuity" else ()
    return Fact(id=subject, kind=kind, subject=subject_of(subject), text=subject, present=present)


def _counts(counted: Counter[str]) -> dict[str, int]:
    return {name: counted[name] for name in ("told", "used", "needless")}
