"""Our own openings in what agents have recorded, known again so that they are never learned from.
The ids of their calls tell; where a host has changed the ids, the note and the shape of the
examples after it do. If neither is left, as when a host records no system messages and gives out
ids of its own, an opening is not found.
"""

from collections.abc import Iterator, Sequence

from journeyman.records import Message
from journeyman.templates.shown.briefing import is_briefing
from journeyman.templates.shown.call_ids import is_own_call_id
from journeyman.templates.shown.opening_wording import (
    BEGIN_MARK,
    end_mark,
    is_closing,
    noted_examples,
)

__all__ = ["after_opening", "is_own_call_id", "shows_opening", "without_opening_text"]


def after_opening(messages: Sequence[Message]) -> int:
    """How many of the messages of a session, in their order, belong to the opening: all through
    the sentence that ends its last example, system messages in front included. None if no opening
    is there.
    """
    return _told_by_ids(messages) or _told_by_note(messages)


def shows_opening(text: str) -> bool:
    """Whether a text holds an opening of ours, as the result of asking for one does."""
    return "Journeyman" in text and (
        BEGIN_MARK.search(text) is not None or noted_examples(text) > 0 or is_briefing(text)
    )


def without_opening_text(text: str) -> str:
    """The text with what stands between our marks cut out, up to its end if that mark is missing.
    A text without marks stays as it is.
    """
    kept = []
    at = 0
    while begin := BEGIN_MARK.search(text, at):
        kept.append(text[at : begin.start()])
        end = text.find(end_mark(begin[1]), begin.end())
        at = len(text) if end < 0 else end + len(end_mark(begin[1]))
    if not kept:
        return text
    pieces = (piece.strip() for piece in (*kept, text[at:]))
    return "\n\n".join(piece for piece in pieces if piece)


def _told_by_ids(messages: Sequence[Message]) -> int:
    """Through the last of our calls, as long as no other call came before and no id came twice: a
    model that makes its ids itself may copy one that it has read.
    """
    end = 0
    asked: set[str] = set()
    for index, message in enumerate(messages):
        ids = [call.id for call in message.tool_calls]
        if not all(is_own_call_id(one) and one not in asked for one in ids):
            break
        asked.update(ids)
        if ids or (message.role == "tool" and message.tool_call_id in asked):
            end = index + 1
    return end + (0 < end < len(messages) and _is_closing(messages[end]))


def _told_by_note(messages: Sequence[Message]) -> int:
    """Through as many examples as the notes in front speak of, as far as they have their shape."""
    start, count = _noted(messages)
    end = 0
    for _ in range(count):
        past = _past_example(messages, start)
        if past is None:
            break
        end = start = past
    return end


def _noted(messages: Sequence[Message]) -> tuple[int, int]:
    """Where the first example begins, and how many are announced. Some hosts put what the system
    says into the first message of the user.
    """
    count = 0
    for index, message in enumerate(messages):
        if message.role in ("system", "user"):
            # A note inside the text form announces no messages.
            count += noted_examples(without_opening_text(message.text))
        if message.role != "system":
            return index, count
    return len(messages), count


def _past_example(messages: Sequence[Message], start: int) -> int | None:
    """The place after an example: a request, calls with their results, our closing sentence."""
    steps = _said(messages, start)
    _, request = next(steps, (0, None))
    if request is None or request.role != "user":
        return None
    called = False
    for index, message in steps:
        if called and _is_closing(message):
            return index + 1
        if not message.tool_calls and message.role != "tool":
            return None
        called = True
    return None


def _said(messages: Sequence[Message], start: int) -> Iterator[tuple[int, Message]]:
    """The messages from a place on, without what programs around the agent put in between."""
    for index in range(start, len(messages)):
        if messages[index].kind == "plain" and messages[index].role != "system":
            yield index, messages[index]


def _is_closing(message: Message) -> bool:
    return message.role == "assistant" and not message.tool_calls and is_closing(message.text)
