"""What an opening costs, in tokens. An estimate, made with one tokenizer for all models."""

from collections.abc import Callable, Iterator

from journeyman.records import Pattern

CountTokens = Callable[[str], int]

_A_MESSAGE = 4
"""What a message costs beside its text: its role and where it begins and ends."""

_CLOSING = 12
"""The sentence that ends an example."""


def tokens_of(pattern: Pattern, count: CountTokens) -> int:
    """What the messages of one example cost."""
    messages = 2 + 2 * len(pattern.steps)
    return sum(map(count, texts_of(pattern))) + messages * _A_MESSAGE + _CLOSING


def texts_of(pattern: Pattern) -> Iterator[str]:
    """The texts of one example that are counted."""
    yield pattern.intent
    for step in pattern.steps:
        yield from (step.tool, step.arguments, step.result)


def tokens_of_note(note: str, count: CountTokens) -> int:
    """What the system note costs."""
    return count(note) + _A_MESSAGE
