"""Episodes as examples: their patterns, and the tokens that an example costs, estimated by one
tokenizer for all models.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from journeyman.learning.commands import skill_of
from journeyman.records import Episode, Pattern, PatternId


def episode_pattern(episode: Episode) -> Pattern:
    """Return an episode as the pattern that represents it in an opening."""
    return Pattern(
        id=PatternId(f"{episode.session}#{episode.number}"),
        intent=episode.request,
        steps=episode.steps,
        source=episode.source,
        sessions=(episode.session,),
        at=episode.at,
    )


def merged_patterns(episodes: Iterable[Episode]) -> list[Pattern]:
    """Return the patterns of episodes. Work with the same tools and programs is one pattern, shown
    as in its first episode.
    """
    by_work: defaultdict[tuple[str, ...], list[Episode]] = defaultdict(list)
    for episode in episodes:
        by_work[tuple(skill_of(step.tool, step.arguments) for step in episode.steps)].append(
            episode
        )
    return [
        replace(
            episode_pattern(same[0]),
            times=len(same),
            session_count=len({episode.session for episode in same}),
        )
        for same in by_work.values()
    ]


CountTokens = Callable[[str], int]

_MESSAGE_OVERHEAD = 4
"""Tokens that a message costs in addition to its text: its role, and where it begins and ends."""

_CLOSING = 12
"""Tokens of the sentence that ends an example."""


def example_tokens(pattern: Pattern, count: CountTokens) -> int:
    """Return the tokens that the messages of one example cost."""
    messages = 2 + 2 * len(pattern.steps)
    texts = [text for step in pattern.steps for text in (step.tool, step.arguments, step.result)]
    return sum(map(count, (pattern.intent, *texts))) + messages * _MESSAGE_OVERHEAD + _CLOSING


def note_tokens(note: str, count: CountTokens) -> int:
    """Return the tokens that the system note costs."""
    return count(note) + _MESSAGE_OVERHEAD
