"""Choosing the few patterns that a task's opening shows: similar ones first, then those that show a
skill which the task seems to need. Every choice, and everything left out, carries its reason. A
small model only repeats what was done for a similar request: it gets the nearest requests with
their calls.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from msgspec import Struct

from journeyman.records import Effect, Pattern
from journeyman.templates.commands import skills_of
from journeyman.templates.defaults import FLOOR, MOST_PATTERNS
from journeyman.templates.shown.opening import Choice, LeftOut, why_not_shown
from journeyman.templates.tool_schemas import LiveTools

_VOTERS, _SHARPNESS, _AFFINITY = 20, 6, 2.0
"""How many of the nearest requests vote for how to begin, how much more the nearer ones count, and
how much the description of a tool counts beside them: a vote of the nearest request is 1."""

_FEWEST = 2
"""How many examples there are at least, where there are so many."""

_COVERAGE, _LENGTH, _TRIALS = 1.0, 0.5, 2.0
"""How much weigh: a skill that is needed and not shown yet, the share of the budget that it takes,
and what trials found; being the nearest to the task weighs one."""

_NEEDED = 0.1
"""A skill that fewer of the similar sessions used than this is not needed."""

_NEIGHBOURS, _HURT_AFTER, _HURT = 60, 5, -0.05


def nearest_requests(
    patterns: Sequence[Pattern], relevance: Sequence[float], affinity: Mapping[str, float]
) -> list[int]:
    """The places in `patterns` of the requests to show, each by one pattern, best first: those that
    begin with the skill for which the nearest requests and the descriptions of the tools speak;
    where there is only one, the next nearest too, because after a single example a small model
    sometimes answers in words. A request is shown by its pattern with the most calls, because that
    begins as the work began, and by a correction only where it has nothing else.
    """
    requests: dict[str, list[int]] = {}
    for place, one in enumerate(patterns):
        requests.setdefault(one.intent, []).append(place)

    def fullness(place: int) -> tuple[bool, int, float]:
        one = patterns[place]
        return one.kind != "recovery", len(one.steps), relevance[place]

    best = {
        max(places, key=fullness): max(relevance[place] for place in places)
        for places in requests.values()
    }
    ranked = sorted(best, key=lambda place: (-best[place], place))
    begins = {place: skills_of(patterns[place])[0] for place in ranked}
    votes: dict[str, float] = {}
    for place in ranked:
        near = affinity.get(patterns[place].steps[0].tool, 0.0)
        votes.setdefault(begins[place], _AFFINITY * near)
    nearest = (best[ranked[0]] if ranked else 0.0) or 1.0
    for place in ranked[:_VOTERS]:
        votes[begins[place]] += (best[place] / nearest) ** _SHARPNESS
    first = max(votes, key=lambda skill: votes[skill], default="")
    same = [place for place in ranked if begins[place] == first]
    others = [place for place in ranked if begins[place] != first]
    return same if len(same) > 1 else [*same, *others][:_FEWEST]


class Candidate(Struct, frozen=True, kw_only=True):
    """A pattern, how near it is to the task if there is one, and its place from 0 to 1."""

    pattern: Pattern
    similarity: float | None
    place: float
    effect: Effect = Effect()
    untranslatable: str = ""

    def relevance(self, best: float) -> float:
        """How much it fits, up to 1 or, by trials, more; `best` is the highest similarity."""
        near = self.place if self.similarity is None else (self.place + self.similarity / best) / 2
        return near * max(0.0, 1.0 + _TRIALS * self.effect.shrunk)

    def chosen(self, reason: str) -> Choice:
        return Choice(
            pattern=self.pattern,
            reason=reason,
            similarity=self.similarity,
            tokens=self.pattern.tokens,
        )

    def left_out(self, reason: str) -> LeftOut:
        return LeftOut(pattern=self.pattern, reason=reason, similarity=self.similarity)


class Limits(Struct, frozen=True, kw_only=True):
    """How much may be shown. With `alike` it is for a small model."""

    tokens: int
    most: int = MOST_PATTERNS
    floor: float = FLOOR
    alike: bool = False


class Selection(Struct, frozen=True, kw_only=True):
    """What was chosen and what was not."""

    choices: tuple[Choice, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @classmethod
    def of(cls, choices: Sequence[Choice], left_out: Iterable[LeftOut]) -> Self:
        """The choices, and what was left out with the nearest to the task first."""
        ordered = sorted(left_out, key=lambda one: -(one.similarity or 0.0))
        return cls(choices=tuple(choices), left_out=tuple(ordered))

    def why_empty(self, limits: Limits) -> str:
        """Why no candidate was chosen; empty if there was none."""
        left = self.left_out
        if not left:
            return ""
        similar = [one for one in left if one.similarity is None or one.similarity >= limits.floor]
        if not similar:
            return too_far(max(one.similarity or 0.0 for one in left), limits.floor)
        return f"Nothing that is similar can be shown. Of the nearest: {similar[0].reason}."


def too_far(best: float, floor: float) -> str:
    return (
        f"Nothing that was learned is similar enough to this task: the nearest has "
        f"{best:.3f}, and the floor is {floor:.2f}."
    )


def select(
    candidates: Sequence[Candidate],
    limits: Limits,
    live: LiveTools | None = None,
    affinity: Mapping[str, float] | None = None,
) -> Selection:
    """Choose among candidates: greedy, the best next one until nothing more helps or fits. Without
    live tools, all have the tools of one agent. The nearest to the task comes last.
    """
    reasons = [why_not(one, limits, live) for one in candidates]
    fitting = [index for index, reason in enumerate(reasons) if not reason]
    patterns, affinity = [one.pattern for one in candidates], affinity or {}
    # In order, because sums of floats depend on it, and the same question has one answer.
    skills = {at: skills_of(patterns[at]) for at in fitting}
    need = _needed([(candidates[at], skills[at]) for at in fitting], affinity)
    wanted, all_need = frozenset(need), sum(need.values()) or 1.0
    best = max((candidates[at].similarity or 0.0 for at in fitting), default=0.0) or 1.0
    relevance = {at: candidates[at].relevance(best) for at in fitting}
    choices: dict[int, Choice] = {}
    room, foreign, waiting = limits.tokens, frozenset[int](), fitting

    def new_skills(at: int) -> list[str]:
        return [skill for skill in skills[at] if skill in need]

    def adds(at: int) -> bool:
        """Whether it shows something new: a skill, or the first mistake with its correction."""
        shown = {patterns[other].kind for other in choices}
        is_mistake = patterns[at].kind == "recovery" and "recovery" not in shown
        return bool(new_skills(at)) or (is_mistake and skills[at][-1] in wanted)

    def value(at: int) -> float:
        new = sum(need[skill] for skill in new_skills(at)) / all_need
        return relevance[at] + _COVERAGE * new - _LENGTH * patterns[at].tokens / limits.tokens

    if limits.alike:
        near = nearest_requests(
            [patterns[at] for at in fitting], [relevance[at] for at in fitting], affinity
        )
        waiting = [fitting[place] for place in near]
    while len(choices) < limits.most:
        waiting = [
            at
            for at in waiting
            if at not in choices and at not in foreign and patterns[at].tokens <= room
            if not choices or limits.alike or adds(at)
        ]
        if not waiting:
            break
        at = waiting[0] if limits.alike else max(waiting, key=lambda at: (value(at), -at))
        choices[at] = candidates[at].chosen(_why_chosen(candidates[at], new_skills(at)))
        room -= patterns[at].tokens
        need = {skill: weight for skill, weight in need.items() if skill not in skills[at]}
        if live is None and len(choices) == 1:
            source = patterns[at].source
            known = {tool for one in patterns if one.source == source for tool in one.tools}
            foreign = frozenset(at for at in fitting if not known.issuperset(patterns[at].tools))
    for at in (at for at in fitting if at not in choices):
        if at in foreign:
            reasons[at] = f"it has the tools of another agent ({patterns[at].source})"
        elif not limits.alike and not adds(at):
            reasons[at] = "what it shows is not needed, or shown already"
        elif len(choices) >= limits.most:
            reasons[at] = f"enough are chosen ({limits.most})"
        elif patterns[at].tokens > room:
            reasons[at] = f"no room: {patterns[at].tokens} tokens, {room} left"
        else:
            reasons[at] = "others show more of what a small model needs"
    pairs = zip(candidates, reasons, strict=True)
    shown = list(choices.values())[::-1]
    if not limits.alike:
        shown.sort(key=lambda one: (one.similarity or 0.0, one.pattern.id))
    return Selection.of(shown, [one.left_out(reason) for one, reason in pairs if reason])


def _why_chosen(one: Candidate, new: Sequence[str]) -> str:
    pattern = one.pattern
    said = [] if one.similarity is None else [f"similar to the task ({one.similarity:.2f})"]
    said += [f"shows {', '.join(new)}"] if new else []
    said += ["shows a mistake and its correction"] if pattern.kind == "recovery" else []
    if pattern.times > 1:
        plural = "" if pattern.session_count == 1 else "s"
        said.append(f"seen {pattern.times} times in {pattern.session_count} session{plural}")
    if one.effect.tried:
        said.append(f"{one.effect.mean:+.2f} on average in {one.effect.tried} trials")
    return "; ".join(said)


def select_in_order(
    candidates: Iterable[Candidate], limits: Limits, live: LiveTools | None
) -> Selection:
    """As many patterns as are asked for and fit, in the order in which they come."""
    choices: list[Choice] = []
    left_out: list[LeftOut] = []
    room = limits.tokens
    for one in candidates:
        tokens, reason = one.pattern.tokens, why_not(one, limits, live)
        if not reason and len(choices) >= limits.most:
            reason = f"enough are chosen ({limits.most})"
        elif not reason and tokens > room:
            reason = f"no room: {tokens} tokens, {room} left"
        if reason:
            left_out.append(one.left_out(reason))
        else:
            room -= tokens
            choices.append(one.chosen(f"number {len(choices) + 1} of the template"))
    return Selection.of(choices, left_out)


def why_not(one: Candidate, limits: Limits, live: LiveTools | None) -> str:
    """Why a pattern cannot be shown at all, whatever else is; empty if it can."""
    if reason := why_not_shown(one.pattern):
        return reason
    if one.similarity is not None and one.similarity < limits.floor:
        return f"not similar enough: {one.similarity:.2f}, and the floor is {limits.floor:.2f}"
    if one.effect.tried >= _HURT_AFTER and (one.effect.mean or 0.0) < _HURT:
        return f"it made things worse in {one.effect.tried} trials"
    if live is not None and (misfit := live.misfit_of(one.pattern)):
        if one.untranslatable:
            return one.untranslatable.rstrip(".")
        return f"it does not fit the tools as they are now: {misfit}"
    if one.pattern.tokens > limits.tokens:
        return f"too long: {one.pattern.tokens} tokens, and there is room for {limits.tokens}"
    return ""


def _needed(
    candidates: Sequence[tuple[Candidate, tuple[str, ...]]], affinity: Mapping[str, float]
) -> dict[str, float]:
    """Which skills the task seems to need, by similar sessions and descriptions of tools."""
    sessions: dict[str, tuple[float, set[str]]] = {}
    for one, skills in candidates[:_NEIGHBOURS]:
        name = one.pattern.sessions[0] if one.pattern.sessions else one.pattern.id
        near = one.place if one.similarity is None else one.similarity
        weight, others = sessions.get(name, (0.0, set()))
        sessions[name] = (max(weight, near**2), others.union(skills))
    total = sum(weight for weight, _ in sessions.values()) or 1.0
    need: dict[str, float] = {}
    for weight, used in sessions.values():
        for skill in sorted(used):
            need[skill] = need.get(skill, 0.0) + weight / total
    said = {name: need[name] + max(0.0, affinity.get(name, 0.0)) / 4 for name in need}
    return {name: weight for name, weight in said.items() if weight >= _NEEDED}
