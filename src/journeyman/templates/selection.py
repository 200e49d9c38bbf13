"""Selects the few patterns that a task's opening shows: similar ones first, then those that show a
skill which the task seems to need. A small model only repeats what was done for a similar request:
it gets the nearest requests with their calls.
"""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from journeyman.records import Pattern
from journeyman.records.defaults import MIN_SIMILARITY, MOST_PATTERNS
from journeyman.records.errors import WrongInput
from journeyman.templates.commands import skills_of
from journeyman.templates.opening import Choice, why_not_shown
from journeyman.templates.tool_schemas import LiveTools

_VOTERS, _SHARPNESS, _AFFINITY = 20, 6, 2.0
"""How many of the nearest requests vote for how to begin, the power to which closeness is raised to
weight a vote, and the weight of a tool's description: a vote of the nearest request is 1."""

_FEWEST = 2
"""The minimum number of examples for a small model, if that many exist."""

_COVERAGE, _LENGTH = 1.0, 0.5
"""Weights of a needed skill that is not shown yet, and of the share of the budget that an example
takes; being the nearest to the task weighs 1."""

_NEEDED = 0.1
"""A skill is needed if at least this share of the similar sessions used it."""

_NEIGHBOURS = 60


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

    def relevance(self, best: float) -> float:
        """Return how well it fits, up to 1. `best` is the highest similarity."""
        return self.score if self.similarity is None else (self.score + self.similarity / best) / 2

    def chosen(self, reason: str) -> Choice:
        return Choice(
            pattern=self.pattern,
            reason=reason,
            similarity=self.similarity,
            tokens=self.pattern.tokens,
        )


class OpeningLimits(Struct, frozen=True, kw_only=True):
    """How much may be shown. `alike` selects for a small model."""

    tokens: int
    most: int = MOST_PATTERNS
    floor: float = MIN_SIMILARITY
    alike: bool = False


NOTHING_FITS = "No example fits: none is similar enough, short enough and for the current tools."


def too_far_message(best: float, floor: float) -> str:
    return (
        f"Nothing that was learned is similar enough to this task: the nearest scores {best:.3f}, "
        f"below the floor of {floor:.2f}."
    )


def select(
    candidates: Sequence[Candidate],
    limits: OpeningLimits,
    live: LiveTools | None = None,
    affinity: Mapping[str, float] | None = None,
) -> tuple[Choice, ...]:
    """Select among candidates greedily: always the best next one, until nothing more helps or fits.
    Without live tools, all selected patterns have the tools of one agent. The nearest to the task
    comes last.
    """
    fitting = [one for one in candidates if not why_not_selected(one, limits, live)]
    best = max((one.similarity or 0.0 for one in fitting), default=0.0) or 1.0
    relevance = [one.relevance(best) for one in fitting]
    if limits.alike:
        patterns = [one.pattern for one in fitting]
        order = nearest_requests(patterns, relevance, affinity or {})
        return select_in_order([fitting[at] for at in order], limits, live)[::-1]
    chosen = _greedy(fitting, relevance, limits, affinity or {}, one_agent=live is None)
    return tuple(sorted(chosen, key=lambda choice: (choice.similarity or 0.0, choice.pattern.id)))


def _greedy(
    candidates: Sequence[Candidate],
    relevance: Sequence[float],
    limits: OpeningLimits,
    affinity: Mapping[str, float],
    *,
    one_agent: bool,
) -> list[Choice]:
    """Return the best candidates one after another, referred to by their positions."""
    patterns = [candidate.pattern for candidate in candidates]
    skills = [skills_of(pattern) for pattern in patterns]
    need = _needed_skills([*zip(candidates, skills, strict=True)], affinity)
    all_needed, total_need = frozenset(need), sum(need.values()) or 1.0
    choices: list[Choice] = []
    room, waiting, has_mistake = limits.tokens, list(range(len(candidates))), False

    def value(at: int) -> tuple[float, int]:
        new = sum(need.get(skill, 0.0) for skill in skills[at]) / total_need
        length = patterns[at].tokens / limits.tokens
        return relevance[at] + _COVERAGE * new - _LENGTH * length, -at

    def adds(at: int) -> bool:
        """Whether it shows something new: a skill, or the first mistake with its correction."""
        is_first_mistake = patterns[at].kind == "recovery" and not has_mistake
        return not need.keys().isdisjoint(skills[at]) or (
            is_first_mistake and skills[at][-1] in all_needed
        )

    while waiting and len(choices) < limits.most:
        best = max(waiting, key=value)
        pattern, new = patterns[best], [skill for skill in skills[best] if skill in need]
        choices.append(candidates[best].chosen(_why_chosen(candidates[best], new)))
        room -= pattern.tokens
        has_mistake = has_mistake or pattern.kind == "recovery"
        need = {skill: weight for skill, weight in need.items() if skill not in new}
        if one_agent and len(choices) == 1:
            own = [other for other in patterns if other.source == pattern.source]
            tools = {tool for other in own for tool in other.tools}
            waiting = [at for at in waiting if tools.issuperset(patterns[at].tools)]
        waiting = [at for at in waiting if at != best and patterns[at].tokens <= room and adds(at)]
    return choices


def _why_chosen(candidate: Candidate, new_skills: Sequence[str]) -> str:
    pattern, similarity = candidate.pattern, candidate.similarity
    reasons = [] if similarity is None else [f"similar to the task ({similarity:.2f})"]
    reasons += [f"shows {', '.join(new_skills)}"] if new_skills else []
    reasons += ["shows a mistake and its correction"] if pattern.kind == "recovery" else []
    if pattern.times > 1:
        plural = "" if pattern.session_count == 1 else "s"
        reasons.append(f"seen {pattern.times} times in {pattern.session_count} session{plural}")
    return "; ".join(reasons)


def select_in_order(
    candidates: Sequence[Candidate], limits: OpeningLimits, live: LiveTools | None
) -> tuple[Choice, ...]:
    """Select as many candidates as the limits allow, in their order."""
    choices: list[Choice] = []
    room = limits.tokens
    for candidate in candidates:
        tokens = candidate.pattern.tokens
        has_room = len(choices) < limits.most and tokens <= room
        if has_room and not why_not_selected(candidate, limits, live):
            room -= tokens
            choices.append(candidate.chosen(_why_chosen(candidate, ())))
    return tuple(choices)


def why_not_selected(candidate: Candidate, limits: OpeningLimits, live: LiveTools | None) -> str:
    """Return why a candidate can never be shown; empty if it can."""
    pattern, similarity = candidate.pattern, candidate.similarity
    if reason := why_not_shown(pattern):
        return reason
    # For a small model, tools that fit are the guard: a far example still shows the right tool.
    if similarity is not None and similarity < limits.floor and not limits.alike:
        return f"not similar enough: {similarity:.2f}, below the floor of {limits.floor:.2f}"
    if live is not None and (misfit := live.misfit_of(pattern)):
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
