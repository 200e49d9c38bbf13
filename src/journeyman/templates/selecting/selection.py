"""Choosing the few patterns that a task's opening shows.

Similar ones first; then those that show a skill which the task seems to need and no chosen one
shows yet; what trials found counts; near-duplicates are spread out; a pattern that does not fit
the tools as they are now is dropped; below the floor of similarity there is nothing. Every choice
carries its reason, and so does everything that was left out.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from journeyman.embeddings.embedder import Vectors
from journeyman.records import Effect, Pattern
from journeyman.templates.defaults import FLOOR, MOST_PATTERNS
from journeyman.templates.schemas.tool_schemas import LiveTools
from journeyman.templates.shown.forms import why_not_shown
from journeyman.templates.shown.opening import Choice, LeftOut
from journeyman.templates.skills import skills_of
from journeyman.templates.small_models import RankedPattern, nearest_requests

_COVERAGE = 1.0
_LIKENESS = 0.5
_LENGTH = 0.5
_TRIALS = 2.0
"""How much weigh: a skill that is needed and not shown yet, likeness to what is already chosen, the
share of the budget that it takes, and what trials found; being the nearest to the task weighs
one."""

_SAME_INTENT = 0.6
"""How like are two patterns of one request that show different skills."""

_NEEDED = 0.1
"""A skill that fewer of the similar sessions used than this is not needed."""

_NEIGHBOURS = 60
_HURT_AFTER = 5
_HURT = -0.05


class Candidate(Struct, frozen=True, kw_only=True):
    """A pattern that may be shown: how near it is (None where there is no task to be near to), its
    place in the joined order between 0 and 1, and what trials found.
    """

    pattern: Pattern
    similarity: float | None
    place: float
    effect: Effect = Effect()
    untranslatable: str = ""

    def relevance(self, best: float) -> float:
        """How much it fits, up to 1 and, where trials say so, more; `best` is the similarity of
        the nearest.
        """
        near = self.place if self.similarity is None else (self.place + self.similarity / best) / 2
        return near * max(0.0, 1.0 + _TRIALS * self.effect.shrunk)


class Limits(Struct, frozen=True, kw_only=True):
    """How much may be shown. With `alike` it is for a small model: see `small_models`."""

    tokens: int
    most: int = MOST_PATTERNS
    floor: float = FLOOR
    alike: bool = False


class Selection(Struct, frozen=True, kw_only=True):
    """What was chosen and what was not."""

    choices: tuple[Choice, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def select(
    candidates: Sequence[Candidate],
    vectors: Vectors,
    limits: Limits,
    live: LiveTools | None = None,
    affinity: Mapping[str, float] | None = None,
) -> Selection:
    """Choose among candidates, which come in their order; each has a row of `vectors`. `affinity`
    says how near the task is to what live tools say of themselves.
    """
    reasons = [why_not(one, limits, live) for one in candidates]
    fitting = [index for index, reason in enumerate(reasons) if not reason]
    choosing = _Choosing(
        candidates, vectors, limits, fitting, affinity or {}, one_source=live is None
    )
    choices = choosing.run()
    for index in fitting:
        if index not in choosing.taken:
            reasons[index] = choosing.why_left(index)
    left_out = [
        LeftOut(pattern=one.pattern, reason=reason, similarity=one.similarity)
        for one, reason in zip(candidates, reasons, strict=True)
        if reason
    ]
    left_out.sort(key=lambda one: -(one.similarity or 0.0))
    return Selection(choices=tuple(choices), left_out=tuple(left_out))


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


class _Choosing:
    """One choice: greedy, the best next one until nothing more helps or fits."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        vectors: Vectors,
        limits: Limits,
        fitting: Sequence[int],
        affinity: Mapping[str, float],
        *,
        one_source: bool,
    ) -> None:
        self._candidates = candidates
        self._vectors = vectors
        self._limits = limits
        self._fitting = fitting
        self._affinity = affinity
        self._one_source = one_source
        self._of_others: frozenset[int] = frozenset()
        # In order, because sums of floats depend on it, and the same question has one answer.
        self._skills = [skills_of(one.pattern) for one in candidates]
        self._need = _needed([(candidates[at], self._skills[at]) for at in fitting], affinity)
        self._wanted = frozenset(self._need)
        best = max((candidates[at].similarity or 0.0 for at in fitting), default=0.0) or 1.0
        self._relevance = [one.relevance(best) for one in candidates]
        self._all_need = sum(self._need.values()) or 1.0
        self._likeness = [0.0] * len(candidates)
        self._room = limits.tokens
        self.taken: list[int] = []

    def run(self) -> list[Choice]:
        if self._limits.alike:
            return self._nearest_requests()
        choices = []
        open_ = list(self._fitting)
        while len(self.taken) < self._limits.most:
            # What adds nothing now adds nothing later: the longer the list, the less is open.
            open_ = [at for at in open_ if self._is_open(at)]
            if not open_:
                break
            best = max(open_, key=lambda at: (self._value(at), -at))
            choices.append(self._choice(best))
            self._take(best)
        # The nearest to the task comes last, next to the task itself.
        return sorted(choices, key=lambda one: (one.similarity or 0.0, one.pattern.id))

    def _nearest_requests(self) -> list[Choice]:
        """What a small model is shown: the nearest requests, the nearest of them last."""
        ranked = nearest_requests(
            [
                RankedPattern(
                    pattern=self._candidates[at].pattern,
                    relevance=self._relevance[at],
                    affinity=self._affinity.get(self._candidates[at].pattern.steps[0].tool, 0.0),
                )
                for at in self._fitting
            ]
        )
        choices: list[Choice] = []
        for at in (self._fitting[place] for place in ranked):
            tokens = self._candidates[at].pattern.tokens
            if len(choices) == self._limits.most:
                break
            if tokens <= self._room and at not in self._of_others:
                choices.append(self._choice(at))
                self._take(at)
        return choices[::-1]

    def why_left(self, index: int) -> str:
        """Why one that could be shown was not."""
        tokens = self._candidates[index].pattern.tokens
        if index in self._of_others:
            return f"it has the tools of another agent ({self._candidates[index].pattern.source})"
        if self._limits.alike and (tokens <= self._room or len(self.taken) >= self._limits.most):
            return "others show more of what a small model needs"
        if self._limits.alike:
            return f"no room: {tokens} tokens, {self._room} left"
        if not self._new_skills(index) and not self._wanted.intersection(self._skills[index]):
            return "the task does not seem to need what it shows"
        if not self._adds(index):
            return "what it shows is shown already"
        if len(self.taken) >= self._limits.most:
            return f"enough are chosen ({self._limits.most})"
        return f"no room: {tokens} tokens, {self._room} left"

    def _is_open(self, index: int) -> bool:
        """Whether it may still be taken."""
        if self._candidates[index].pattern.tokens > self._room or index in self.taken:
            return False
        return not self.taken or self._adds(index)

    def _adds(self, index: int) -> bool:
        """Whether it shows something new: a skill, or the first mistake with its correction."""
        if index in self._of_others:
            return False
        if self._new_skills(index):
            return True
        pattern = self._candidates[index].pattern
        is_first = all(self._candidates[at].pattern.kind != "recovery" for at in self.taken)
        return pattern.kind == "recovery" and is_first and self._skills[index][-1] in self._wanted

    def _find_others(self) -> frozenset[int]:
        """Those that use tools which the agent of what is chosen was not seen with. Which tools
        the session will have is not known then, but they are one agent's.
        """
        source = self._candidates[self.taken[0]].pattern.source
        known: set[str] = set()
        for one in self._candidates:
            if one.pattern.source == source:
                known.update(one.pattern.tools)
        return frozenset(
            at for at in self._fitting if not known.issuperset(self._candidates[at].pattern.tools)
        )

    def _value(self, index: int) -> float:
        new = sum(self._need[skill] for skill in self._new_skills(index)) / self._all_need
        length = self._candidates[index].pattern.tokens / self._limits.tokens
        return (
            self._relevance[index]
            + _COVERAGE * new
            - _LIKENESS * self._likeness[index]
            - _LENGTH * length
        )

    def _new_skills(self, index: int) -> list[str]:
        """What it shows, is needed, and nothing chosen shows."""
        return [skill for skill in self._skills[index] if skill in self._need]

    def _take(self, index: int) -> None:
        self.taken.append(index)
        if self._one_source and len(self.taken) == 1:
            self._of_others = self._find_others()
        self._room -= self._candidates[index].pattern.tokens
        skills = set(self._skills[index])
        for skill in skills:
            self._need.pop(skill, None)
        # Like what is chosen is what has the same intent, the more so with the same skills.
        near = np.maximum(self._vectors @ self._vectors[index], 0.0).tolist()
        for at in self._fitting:
            shared = len(skills.intersection(self._skills[at])) / len(
                skills.union(self._skills[at])
            )
            self._likeness[at] = max(self._likeness[at], near[at] * max(shared, _SAME_INTENT))

    def _choice(self, index: int) -> Choice:
        one = self._candidates[index]
        pattern = one.pattern
        said = [] if one.similarity is None else [f"similar to the task ({one.similarity:.2f})"]
        if new := self._new_skills(index):
            said.append(f"shows {', '.join(new)}")
        if pattern.kind == "recovery":
            said.append("shows a mistake and its correction")
        if pattern.times > 1:
            count = pattern.session_count
            plural = "" if count == 1 else "s"
            said.append(f"seen {pattern.times} times in {count} session{plural}")
        if one.effect.tried:
            said.append(f"{one.effect.mean:+.2f} on average in {one.effect.tried} trials")
        return Choice(
            pattern=pattern,
            reason="; ".join(said),
            similarity=one.similarity,
            tokens=pattern.tokens,
        )


def _needed(
    candidates: Sequence[tuple[Candidate, tuple[str, ...]]], affinity: Mapping[str, float]
) -> dict[str, float]:
    """Which skills the task seems to need, up to 1 and more: those that similar sessions used, the
    more similar the more weight, and tools whose own words are near to the task's.
    """
    sessions: dict[str, tuple[float, set[str]]] = {}
    nearest: dict[str, float] = {}
    for one, skills in candidates[:_NEIGHBOURS]:
        name = one.pattern.sessions[0] if one.pattern.sessions else one.pattern.id
        near = one.place if one.similarity is None else one.similarity
        weight, others = sessions.get(name, (0.0, set()))
        sessions[name] = (max(weight, near**2), others.union(skills))
        for skill in skills:
            nearest[skill] = max(nearest.get(skill, 0.0), near / len(skills))
    total = sum(weight for weight, _ in sessions.values()) or 1.0
    best = max(nearest.values(), default=1.0) or 1.0
    need = {skill: (near / best) ** 4 / 2 for skill, near in nearest.items()}
    for weight, used in sessions.values():
        for skill in used:
            need[skill] += weight / total / 2
    said = {name: need[name] + max(0.0, affinity.get(name, 0.0)) / 4 for name in need}
    return {name: weight for name, weight in said.items() if weight >= _NEEDED}
