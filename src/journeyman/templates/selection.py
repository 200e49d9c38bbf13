"""Selects the few patterns that a task's opening shows: similar ones first, then those that show a
skill which the task seems to need. Every choice, and everything left out, carries its reason. A
small model only repeats what was done for a similar request: it gets the nearest requests with
their calls.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from msgspec import Struct

from journeyman.records import Effect, Pattern
from journeyman.records.defaults import MIN_SIMILARITY, MOST_PATTERNS
from journeyman.records.errors import WrongInput
from journeyman.templates.commands import skills_of
from journeyman.templates.opening import Choice, LeftOut, why_not_shown
from journeyman.templates.tool_schemas import LiveTools

_VOTERS, _SHARPNESS, _AFFINITY = 20, 6, 2.0
"""How many of the nearest requests vote for how to begin, the power to which closeness is raised to
weight a vote, and the weight of a tool's description: a vote of the nearest request is 1."""

_FEWEST = 2
"""The minimum number of examples for a small model, if that many exist."""

_COVERAGE, _LENGTH, _TRIALS = 1.0, 0.5, 2.0
"""Weights of a needed skill that is not shown yet, of the share of the budget that an example
takes, and of what trials found; being the nearest to the task weighs 1."""

_NEEDED = 0.1
"""A skill is needed if at least this share of the similar sessions used it."""

_NEIGHBOURS = 60
_HARMFUL_AFTER, _HARMFUL = 5, -0.05
"""A pattern is no longer shown after this many trials with an average gain below this."""


def nearest_requests(
    patterns: Sequence[Pattern], relevance: Sequence[float], affinity: Mapping[str, float]
) -> list[int]:
    """Return the positions in `patterns` of the requests to show, one pattern each, best first.

    These are the requests that begin with the skill favoured by the nearest requests and the
    descriptions of the tools. If there is only one, the next nearest is added, because after a
    single example a small model sometimes answers in words. A request is shown by its pattern with
    the most calls, because that begins as the work began, and by a correction only if it has
    nothing else.
    """
    requests: dict[str, list[int]] = {}
    for at, pattern in enumerate(patterns):
        requests.setdefault(pattern.intent, []).append(at)

    def completeness(at: int) -> tuple[bool, int, float]:
        pattern = patterns[at]
        return pattern.kind != "recovery", len(pattern.steps), relevance[at]

    best = {
        max(positions, key=completeness): max(relevance[at] for at in positions)
        for positions in requests.values()
    }
    ranked = sorted(best, key=lambda at: (-best[at], at))
    first_skill = {at: skills_of(patterns[at])[0] for at in ranked}
    votes: dict[str, float] = {}
    for at in ranked:
        tool_affinity = affinity.get(patterns[at].steps[0].tool, 0.0)
        votes.setdefault(first_skill[at], _AFFINITY * tool_affinity)
    highest = (best[ranked[0]] if ranked else 0.0) or 1.0
    for at in ranked[:_VOTERS]:
        votes[first_skill[at]] += (best[at] / highest) ** _SHARPNESS
    winner = max(votes, key=lambda skill: votes[skill], default="")
    same = [at for at in ranked if first_skill[at] == winner]
    others = [at for at in ranked if first_skill[at] != winner]
    return same if len(same) > 1 else [*same, *others][:_FEWEST]


class Candidate(Struct, frozen=True, kw_only=True):
    """A pattern, its similarity to the task if there is one, and its ranking score from 0 to 1."""

    pattern: Pattern
    similarity: float | None
    score: float
    effect: Effect = Effect()
    untranslatable: str = ""

    def relevance(self, best: float) -> float:
        """Return how well it fits: up to 1, or more by trials. `best` is the highest similarity."""
        fit = self.score if self.similarity is None else (self.score + self.similarity / best) / 2
        return fit * max(0.0, 1.0 + _TRIALS * self.effect.shrunk)

    def chosen(self, reason: str) -> Choice:
        return Choice(
            pattern=self.pattern,
            reason=reason,
            similarity=self.similarity,
            tokens=self.pattern.tokens,
        )

    def left_out(self, reason: str) -> LeftOut:
        return LeftOut(pattern=self.pattern, reason=reason, similarity=self.similarity)


class OpeningLimits(Struct, frozen=True, kw_only=True):
    """How much may be shown. `alike` selects for a small model."""

    tokens: int
    most: int = MOST_PATTERNS
    floor: float = MIN_SIMILARITY
    alike: bool = False


class Selection(Struct, frozen=True, kw_only=True):
    """The choices, and what was left out."""

    choices: tuple[Choice, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @classmethod
    def of(cls, choices: Sequence[Choice], left_out: Iterable[LeftOut]) -> Self:
        """Return the selection, with what was left out ordered nearest to the task first."""
        ordered = sorted(left_out, key=lambda entry: -(entry.similarity or 0.0))
        return cls(choices=tuple(choices), left_out=tuple(ordered))

    def why_empty(self, limits: OpeningLimits) -> str:
        """Return why no candidate was chosen, or an empty text if there were no candidates."""
        entries = self.left_out
        if not entries:
            return ""
        similar = [
            entry
            for entry in entries
            if entry.similarity is None or entry.similarity >= limits.floor
        ]
        if not similar:
            return too_far_message(max(entry.similarity or 0.0 for entry in entries), limits.floor)
        return f"Nothing similar can be shown. The nearest: {similar[0].reason}."


def too_far_message(best: float, floor: float) -> str:
    return (
        f"Nothing that was learned is similar enough to this task: the nearest scores {best:.3f}, "
        f"below the floor of {floor:.2f}."
    )


def limit_reached(limit: int) -> str:
    return f"the limit of {limit} is reached"


def no_room(tokens: int, room: int) -> str:
    return f"no room: {tokens} tokens, {room} left"


def select(
    candidates: Sequence[Candidate],
    limits: OpeningLimits,
    live: LiveTools | None = None,
    affinity: Mapping[str, float] | None = None,
) -> Selection:
    """Select among candidates greedily: always the best next one, until nothing more helps or fits.
    Without live tools, all selected patterns have the tools of one agent. The nearest to the task
    comes last.
    """
    return _GreedySelection(candidates, limits, live, affinity or {}).run()


class _GreedySelection:
    """One greedy selection. Candidates are referred to by their position."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        limits: OpeningLimits,
        live: LiveTools | None,
        affinity: Mapping[str, float],
    ) -> None:
        self._candidates = candidates
        self._patterns = [candidate.pattern for candidate in candidates]
        self._limits = limits
        self._live = live
        self._affinity = affinity
        self._reasons = [why_not_selected(candidate, limits, live) for candidate in candidates]
        self._fitting = [at for at, reason in enumerate(self._reasons) if not reason]
        # In order, because sums of floats depend on it, and the same question has one answer.
        self._skills = {at: skills_of(self._patterns[at]) for at in self._fitting}
        self._need = _needed_skills(
            [(candidates[at], self._skills[at]) for at in self._fitting], affinity
        )
        self._all_needed = frozenset(self._need)
        self._total_need = sum(self._need.values()) or 1.0
        similarities = (candidates[at].similarity or 0.0 for at in self._fitting)
        best = max(similarities, default=0.0) or 1.0
        self._relevance = {at: candidates[at].relevance(best) for at in self._fitting}
        self._choices: dict[int, Choice] = {}
        self._room = limits.tokens
        self._foreign: frozenset[int] = frozenset()

    def run(self) -> Selection:
        """Select, and give every candidate that was left out its reason."""
        alike = self._limits.alike
        waiting = self._nearest_requests() if alike else self._fitting
        while len(self._choices) < self._limits.most:
            waiting = [at for at in waiting if self._is_eligible(at)]
            if not waiting:
                break
            best = waiting[0] if alike else max(waiting, key=lambda at: (self._value(at), -at))
            self._choose(best)
        for at in self._fitting:
            if at not in self._choices:
                self._reasons[at] = self._why_left_out(at)
        shown = list(self._choices.values())[::-1]
        if not alike:
            shown.sort(key=lambda choice: (choice.similarity or 0.0, choice.pattern.id))
        pairs = zip(self._candidates, self._reasons, strict=True)
        return Selection.of(
            shown, [candidate.left_out(reason) for candidate, reason in pairs if reason]
        )

    def _nearest_requests(self) -> list[int]:
        positions = nearest_requests(
            [self._patterns[at] for at in self._fitting],
            [self._relevance[at] for at in self._fitting],
            self._affinity,
        )
        return [self._fitting[position] for position in positions]

    def _is_eligible(self, at: int) -> bool:
        if at in self._choices or at in self._foreign or self._patterns[at].tokens > self._room:
            return False
        return not self._choices or self._limits.alike or self._adds(at)

    def _new_skills(self, at: int) -> list[str]:
        return [skill for skill in self._skills[at] if skill in self._need]

    def _adds(self, at: int) -> bool:
        """Whether it shows something new: a skill, or the first mistake with its correction."""
        shown = {self._patterns[other].kind for other in self._choices}
        is_first_mistake = self._patterns[at].kind == "recovery" and "recovery" not in shown
        return bool(self._new_skills(at)) or (
            is_first_mistake and self._skills[at][-1] in self._all_needed
        )

    def _value(self, at: int) -> float:
        new = sum(self._need[skill] for skill in self._new_skills(at)) / self._total_need
        length = self._patterns[at].tokens / self._limits.tokens
        return self._relevance[at] + _COVERAGE * new - _LENGTH * length

    def _choose(self, at: int) -> None:
        candidate, pattern = self._candidates[at], self._patterns[at]
        self._choices[at] = candidate.chosen(_why_chosen(candidate, self._new_skills(at)))
        self._room -= pattern.tokens
        skills = self._skills[at]
        self._need = {skill: weight for skill, weight in self._need.items() if skill not in skills}
        if self._live is None and len(self._choices) == 1:
            own = [other for other in self._patterns if other.source == pattern.source]
            tools = {tool for other in own for tool in other.tools}
            self._foreign = frozenset(
                other
                for other in self._fitting
                if not tools.issuperset(self._patterns[other].tools)
            )

    def _why_left_out(self, at: int) -> str:
        pattern = self._patterns[at]
        if at in self._foreign:
            return f"it uses the tools of another agent ({pattern.source})"
        if not self._limits.alike and not self._adds(at):
            return "what it shows is not needed, or already shown"
        if len(self._choices) >= self._limits.most:
            return limit_reached(self._limits.most)
        if pattern.tokens > self._room:
            return no_room(pattern.tokens, self._room)
        return "others show more of what a small model needs"


def _why_chosen(candidate: Candidate, new_skills: Sequence[str]) -> str:
    pattern, effect, similarity = candidate.pattern, candidate.effect, candidate.similarity
    reasons = [] if similarity is None else [f"similar to the task ({similarity:.2f})"]
    reasons += [f"shows {', '.join(new_skills)}"] if new_skills else []
    reasons += ["shows a mistake and its correction"] if pattern.kind == "recovery" else []
    if pattern.times > 1:
        plural = "" if pattern.session_count == 1 else "s"
        reasons.append(f"seen {pattern.times} times in {pattern.session_count} session{plural}")
    if effect.tried:
        reasons.append(f"{effect.mean:+.2f} on average in {effect.tried} trials")
    return "; ".join(reasons)


def select_in_order(
    candidates: Iterable[Candidate], limits: OpeningLimits, live: LiveTools | None
) -> Selection:
    """Select as many candidates as the limits allow, in their order."""
    choices: list[Choice] = []
    left_out: list[LeftOut] = []
    room = limits.tokens
    for candidate in candidates:
        tokens, reason = candidate.pattern.tokens, why_not_selected(candidate, limits, live)
        if not reason and len(choices) >= limits.most:
            reason = limit_reached(limits.most)
        elif not reason and tokens > room:
            reason = no_room(tokens, room)
        if reason:
            left_out.append(candidate.left_out(reason))
        else:
            room -= tokens
            choices.append(candidate.chosen(f"number {len(choices) + 1} of the template"))
    return Selection.of(choices, left_out)


def why_not_selected(candidate: Candidate, limits: OpeningLimits, live: LiveTools | None) -> str:
    """Return why a candidate can never be shown; empty if it can."""
    pattern, similarity, effect = candidate.pattern, candidate.similarity, candidate.effect
    if reason := why_not_shown(pattern):
        return reason
    if similarity is not None and similarity < limits.floor:
        return f"not similar enough: {similarity:.2f}, below the floor of {limits.floor:.2f}"
    if effect.tried >= _HARMFUL_AFTER and (effect.mean or 0.0) < _HARMFUL:
        return f"it made things worse in {effect.tried} trials"
    if live is not None and (misfit := live.misfit_of(pattern)):
        if candidate.untranslatable:
            return candidate.untranslatable.rstrip(".")
        return f"it does not fit the current tools: {misfit}"
    if pattern.tokens > limits.tokens:
        return f"too long: {pattern.tokens} tokens, with room for {limits.tokens}"
    return ""


def _needed_skills(
    candidates: Sequence[tuple[Candidate, tuple[str, ...]]], affinity: Mapping[str, float]
) -> dict[str, float]:
    """Return the skills that the task seems to need, with their weights, by similar sessions and
    descriptions of tools.
    """
    sessions: dict[str, tuple[float, set[str]]] = {}
    for candidate, skills in candidates[:_NEIGHBOURS]:
        pattern = candidate.pattern
        session = pattern.sessions[0] if pattern.sessions else pattern.id
        near = candidate.score if candidate.similarity is None else candidate.similarity
        weight, used = sessions.get(session, (0.0, set()))
        sessions[session] = (max(weight, near**2), used.union(skills))
    total = sum(weight for weight, _ in sessions.values()) or 1.0
    shares: dict[str, float] = {}
    for weight, used in sessions.values():
        for skill in sorted(used):
            shares[skill] = shares.get(skill, 0.0) + weight / total
    need = {
        skill: share + max(0.0, affinity.get(skill, 0.0)) / 4 for skill, share in shares.items()
    }
    return {skill: weight for skill, weight in need.items() if weight >= _NEEDED}


def check_limits(task: object, tokens: object, most: object, floor: object) -> None:
    """Raise WrongInput unless the arguments of an opening are usable."""
    if not isinstance(task, str):
        raise WrongInput(f"The task {task!r} is not text. Describe what the session should do.")
    for name, value in (("budget_tokens", tokens), ("max_patterns", most)):
        if not isinstance(value, int) or value < 0:
            raise WrongInput(f"{name} is {value!r}. Use a whole number, 0 or greater.")
    if not isinstance(floor, int | float) or math.isnan(floor):
        raise WrongInput(f"The similarity floor is {floor!r}. Use a number from 0 to 1.")
