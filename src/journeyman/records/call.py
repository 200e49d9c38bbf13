"""Calls: each tool call joined with its result."""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from journeyman.records.message import Message, Recorded, Role, ToolCall


class Call(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool call and what came back. `result` is None when no result was recorded, which is
    not the same as an empty one. `index` counts the calls of the session from zero.
    """

    id: str
    tool: str
    arguments: str = "{}"
    result: str | None = None
    recorded: Recorded | None = None
    asked_by: Role = "assistant"
    index: int = 0
    generation: int = 0
    model: str = ""
    asked_at: float | None = None
    answered_at: float | None = None
    asked_key: str = ""
    answered_key: str = ""


def join_calls(messages: Iterable[Message]) -> list[Call]:
    """All calls of a session in the order they were asked, each with its result.

    The id decides, wherever the result stands. Some models use an id again: then a result belongs
    to the latest call before it that is still open, and a result that came before its call to the
    first call after it.
    """
    ordered = sorted(messages, key=lambda message: message.position)
    asked: list[tuple[Message, ToolCall]] = []
    answers: dict[int, Message] = {}
    still_open: dict[str, list[int]] = defaultdict(list)
    early: dict[str, list[Message]] = defaultdict(list)
    for message in ordered:
        for call in message.tool_calls:
            index = len(asked)
            asked.append((message, call))
            if early[call.id]:
                answers[index] = early[call.id].pop(0)
            else:
                still_open[call.id].append(index)
        if message.role == "tool" and message.tool_call_id:
            waiting = still_open[message.tool_call_id]
            if waiting:
                answers[waiting.pop()] = message
            else:
                early[message.tool_call_id].append(message)
    return [_joined(index, *pair, answers.get(index)) for index, pair in enumerate(asked)]


def _joined(index: int, asking: Message, call: ToolCall, answer: Message | None) -> Call:
    return Call(
        id=call.id,
        tool=call.name or (answer.tool_name if answer else ""),
        arguments=call.arguments,
        result=None if answer is None else answer.text,
        recorded=None if answer is None else answer.recorded,
        asked_by=asking.role,
        index=index,
        generation=asking.generation,
        model=asking.model,
        asked_at=asking.at,
        answered_at=None if answer is None else answer.at,
        asked_key=asking.key,
        answered_key="" if answer is None else answer.key,
    )
