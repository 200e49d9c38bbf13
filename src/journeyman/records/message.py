"""Messages, the tool calls in them, each joined with its result, and the flags that the recorder
attached to a result. Text is kept as it was recorded.

These records never refer to each other in a circle, so the garbage collector does not track them
(`gc=False`): a large import creates millions.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Refuser = Literal["", "person", "rule", "hook", "mode", "nobody"]
"""Who refused a call: a person; a rule or policy of the program or its settings; a hook or plugin;
the mode that the program was in, such as a planning mode; or nobody, when it needed an approval
that no one gave. Empty if that is not known."""

REFUSER_PHRASES: dict[Refuser, str] = {
    "person": "by a person",
    "rule": "by a rule",
    "hook": "by a hook",
    "mode": "by the mode",
    "nobody": "for lack of approval",
}
"""Who refused a call, as it is shown after the word "refused"."""

Role = Literal["system", "user", "assistant", "tool"]

_Integer = Annotated[int, Meta(gt=-(2**53), lt=2**53)]
_Count = Annotated[int, Meta(ge=0, lt=2**31)]

MessageKind = Literal["plain", "summary", "harness"]
"""`summary`: left by a context compression. `harness`: inserted by the program around the agent
(reminders, command echoes, cron prompts), not written by the person or the model."""


class ToolCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One tool call. `arguments` is the JSON text as recorded, which may be malformed: that is a
    property of the call, not an error in the log. If a hook rewrote the call, that is what ran, and
    `requested` is what the model wrote.
    """

    id: str
    name: str
    arguments: str = "{}"
    requested: str = ""


class ResultFlags(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The recorder's own flags for a result. None means not recorded."""

    is_error: bool | None = None
    exit_code: _Integer | None = None
    status: str | None = None
    interrupted: bool | None = None
    refused_by: Refuser = ""
    details: dict[str, str | _Integer | float | bool] = {}


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One message of a session.

    `key` identifies the message in its session and stays the same whenever the log is read again;
    `position` orders messages and grows with the log (a byte offset, a row id, an index).
    `generation` counts the context compressions before it. A message with the role `tool` is the
    result of the call `tool_call_id`. `copied` is true for a copy of a message that is stored
    elsewhere, in this session or another of its lineage: it belongs to the conversation, but its
    calls and tokens count where the original stands.
    """

    key: str
    position: _Integer
    role: Role
    text: str = ""
    kind: MessageKind = "plain"
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    recorded: ResultFlags | None = None
    at: float | None = None
    model: str = ""
    finish_reason: str = ""
    generation: _Count = 0
    copied: bool = False


def replace_lone_surrogates(message: Message) -> Message:
    """Return the message with lone surrogates replaced, which no encoding can represent."""
    text = json.dumps(msgspec.to_builtins(message), ensure_ascii=False)
    return msgspec.json.decode(text.encode("utf-8", "replace"), type=Message)


_encode = msgspec.msgpack.Encoder().encode
# Without key and position: two copies of one log may number their lines differently.
_content = attrgetter(
    *("role", "kind", "text", "reasoning", "tool_calls", "tool_call_id", "tool_name", "recorded"),
    *("at", "model", "finish_reason", "generation"),
)


def message_digest(message: Message) -> bytes:
    """Return sixteen bytes that identify the content of a message."""
    body = _encode(_content(message))
    return hashlib.sha256(body).digest()[:16]


_COPY = b"copy "


def counted_digest(digest: bytes, *, copied: bool) -> bytes:
    """Return what the digest of a session takes from a message: whether it counts matters too."""
    return _COPY + digest if copied else digest


def session_digest(digests: Iterable[bytes]) -> str:
    """Return the digest of a session from those of its messages, in order."""
    return hashlib.sha256(b"".join(digests)).hexdigest()[:32]


def openai_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the messages in the form of a chat completion request, which has no place for
    reasoning, flags and times.
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
    """One tool call and its result; `requested` is as in `ToolCall`. `result` is None if no result
    was recorded, which differs from an empty one. `index` counts the session's calls from zero.
    """

    id: str
    tool: str
    arguments: str = "{}"
    requested: str = ""
    result: str | None = None
    recorded: ResultFlags | None = None
    asked_by: Role = "assistant"
    index: int = 0
    generation: int = 0
    model: str = ""
    asked_at: float | None = None
    answered_at: float | None = None
    asked_key: str = ""
    answered_key: str = ""


def join_calls(messages: Iterable[Message], *, with_copies: bool = False) -> list[Call]:
    """Return all calls of a session in the order of the requests, each with its result. A copy is
    not a call; `with_copies` returns copies too.

    Results are matched by id, wherever they stand. Some models reuse ids: then a result belongs to
    the latest call before it that is still open, and a result that precedes its call to the first
    call after it.
    """
    counted = (message for message in messages if with_copies or not message.copied)
    ordered = sorted(counted, key=lambda message: message.position)
    requests: list[tuple[Message, ToolCall]] = []
    results: dict[int, Message] = {}
    open_calls: dict[str, list[int]] = defaultdict(list)
    early: dict[str, list[Message]] = defaultdict(list)
    for message in ordered:
        for call in message.tool_calls:
            index = len(requests)
            requests.append((message, call))
            if early[call.id]:
                results[index] = early[call.id].pop(0)
            else:
                open_calls[call.id].append(index)
        if message.role == "tool" and message.tool_call_id:
            waiting = open_calls[message.tool_call_id]
            if waiting:
                results[waiting.pop()] = message
            else:
                early[message.tool_call_id].append(message)
    return [_joined(index, *pair, results.get(index)) for index, pair in enumerate(requests)]


def _joined(index: int, request: Message, call: ToolCall, result: Message | None) -> Call:
    return Call(
        id=call.id,
        tool=call.name or (result.tool_name if result else ""),
        arguments=call.arguments,
        requested=call.requested,
        result=None if result is None else result.text,
        recorded=None if result is None else result.recorded,
        asked_by=request.role,
        index=index,
        generation=request.generation,
        model=request.model,
        asked_at=request.at,
        answered_at=None if result is None else result.at,
        asked_key=request.key,
        answered_key="" if result is None else result.key,
    )
