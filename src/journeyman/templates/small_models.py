"""Which examples a small model gets: the requests nearest to its task, each once, with all the
calls that served it. Such a model repeats what was done for a similar request, so the right call
has to be among a few examples; skills that the task might also need only distract it.
"""

from collections.abc import Sequence

from msgspec import Struct

from journeyman.records import Pattern
from journeyman.templates.skills import skills_of

SMALL_MODEL_EXAMPLES = 3
"""How many examples a small model gets."""

_VOTERS, _SHARPNESS, _AFFINITY = 20, 6, 2.0
"""How many of the nearest requests vote for how to begin, how much more the nearer ones count, and
how much the description of a tool counts beside them: a vote of the nearest request is 1."""

_FEWEST = 2
"""How many examples there are at least, where there are so many."""


class RankedPattern(Struct, frozen=True, kw_only=True, gc=False):
    """A pattern that may be shown, how well its request fits the task, and how near the task is to
    the description of its first tool.
    """

    pattern: Pattern
    relevance: float
    affinity: float = 0.0


def nearest_requests(patterns: Sequence[RankedPattern]) -> list[int]:
    """The places in `patterns` of the requests to show, each by one pattern, best first: those that
    begin with the skill for which the nearest requests and the descriptions of the tools speak;
    where there is only one, the next nearest too, because after a single example a small model
    sometimes answers in words instead of a call.

    A request is shown by its pattern with the most calls, because that begins as the work began;
    a correction is shown only where the request has nothing else, because a small model would
    repeat the mistake.
    """
    requests: dict[str, list[int]] = {}
    for place, one in enumerate(patterns):
        requests.setdefault(one.pattern.intent, []).append(place)

    def fullness(place: int) -> tuple[bool, int, float]:
        one = patterns[place]
        return one.pattern.kind != "recovery", len(one.pattern.steps), one.relevance

    relevance = {
        max(places, key=fullness): max(patterns[place].relevance for place in places)
        for places in requests.values()
    }
    ranked = sorted(relevance, key=lambda place: (-relevance[place], place))
    begins = {place: skills_of(patterns[place].pattern)[0] for place in ranked}
    votes: dict[str, float] = {}
    for place in ranked:
        votes.setdefault(begins[place], _AFFINITY * patterns[place].affinity)
    best = (relevance[ranked[0]] if ranked else 0.0) or 1.0
    for place in ranked[:_VOTERS]:
        votes[begins[place]] += (relevance[place] / best) ** _SHARPNESS
    first = max(votes, key=lambda skill: votes[skill], default="")
    same = [place for place in ranked if begins[place] == first]
    others = [place for place in ranked if begins[place] != first]
    return same if len(same) > 1 else [*same, *others][:_FEWEST]
