"""Messages and what hangs on them: the tool calls an assistant asks for, each joined with its
result, and the flags that the recorder itself put on a result. Text is kept as it was recorded.

These records hold no reference to each other in a circle, so the garbage collector is told to
leave them alone (`gc=False`): a large import makes millions of them.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Literal

import msgspec
from msgspec import Struct

Role = Literal["system", "user", "assistant", "tool"]

MessageKind = Literal["plain", "summary", "harness"]
"""`summary`: what a context compression left behind. `harness`: put there by the program around
the agent (reminders, command echoes, cron prompts), said by nobody."""


class ToolCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One tool call as it was asked for. `arguments` is the JSON text as recorded, which may be
    malformed: that is a fact about the call, not about the log.
    """

    id: str
    name: str
    arguments: str = "{}"


class Recorded(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the recorder itself said about a result. None means that it said nothing."""

    is_error: bool | None = None
    exit_code: int | None = None
    status: str | None = None
    interrupted: bool | None = None
    details: dict[str, str | int | float | bool] = {}


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One message of a session.

    `key` names the message inside its session and is the same whenever the log is read again;
    `position` orders messages and grows with the log (a byte offset, a row id, an index).
    `generation` counts the context compressions before it. A message with role `tool` is the
    result of the call `tool_call_id`.
    """

    key: str
    position: int
    role: Role
    text: str = ""
    kind: MessageKind = "plain"
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    recorded: Recorded | None = None
    at: float | None = None
    model: str = ""
    finish_reason: str = ""
    generation: int = 0


def whole(message: Message) -> Message:
    """The message with half characters replaced, which no encoding has."""
    text = json.dumps(msgspec.to_builtins(message), ensure_ascii=False)
    return msgspec.json.decode(text.encode("utf-8", "replace"), type=Message)


_encode = msgspec.msgpack.Encoder().encode
# Not key and position: two copies of one log may number their lines differently.
_content = attrgetter(
    *("role", "kind", "text", "reasoning", "tool_calls", "tool_call_id", "tool_name", "recorded"),
    *("at", "model", "finish_reason", "generation"),
)


def message_digest(message: Message) -> bytes:
    """Sixteen bytes that name the content of a message."""
    body = _encode(_content(message))
    return hashlib.sha256(body).digest()[:16]


def session_digest(digests: Iterable[bytes]) -> str:
    """The digest of a session from those of its messages, in order."""
    return hashlib.sha256(b"".join(digests)).hexdigest()[:32]


def openai_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages as a chat completion request would carry them. Reasoning, flags and times have
    no place there and are left out.
    """
    return [_openai_message(message) for message in messages]


def _openai_message(message: Message) -> dict[str, Any]:
    chat: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        chat["content"] = message.text or None
        chat["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        chat["tool_call_id"] = message.tool_call_id
        if message.tool_name:
            chat["name"] = message.tool_name
    return chat


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
