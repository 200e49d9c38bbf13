"""Messages and what hangs on them: the tool calls an assistant asks for, and the flags that the
recorder itself put on a result. Text is kept as it was recorded; nothing here interprets it.

These records hold no reference to each other in a circle, so the garbage collector is told to
leave them alone (`gc=False`): a large import makes millions of them.
"""

import json
from typing import Literal

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
