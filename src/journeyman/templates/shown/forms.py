"""Examples in the forms that hosts take: messages of OpenAI's chat and responses interfaces, those
of Anthropic, and plain text. Each is valid where the rules are strictest: roles take turns, every
call is answered at once, no text is empty. What is worth showing is left to the selection; what
cannot be shown has its reason here.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from journeyman.records import Pattern
from journeyman.templates.shown.opening_wording import NO_OUTPUT, NO_REQUEST, closing

Form = Literal["openai", "responses", "anthropic", "text"]
"""`text` is for hosts that cannot be handed messages."""

JsonObject = dict[str, Any]

_CALLABLE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_DEEPEST = 64
"""How deep arguments may be nested: deeper, it depends on the caller's stack what can be read."""


class ExampleCall(Struct, frozen=True, kw_only=True):
    """One call of an example. `arguments` is JSON text that holds an object."""

    tool: str
    arguments: str
    result: str
    worked: bool


class Example(Struct, frozen=True, kw_only=True):
    """A pattern as it is shown, in texts that every host takes: none is empty, none holds half
    characters.
    """

    intent: str
    calls: tuple[ExampleCall, ...]
    closing: str


def can_be_called(tool: str) -> bool:
    """Whether hosts take this as the name of a tool."""
    return _CALLABLE.fullmatch(tool) is not None


def why_not_shown(pattern: Pattern) -> str:
    """Why a pattern cannot be an example; empty if it can."""
    if pattern.quarantined:
        return f"it is in quarantine ({pattern.quarantined})"
    if not pattern.steps:
        return "it has no calls"
    mended = pattern.kind == "recovery" and len(pattern.steps) > 1
    if not all(step.worked for step in pattern.steps[1 if mended else 0 :]):
        return "it shows a failed call that no other call mends"
    for step in pattern.steps:
        if not can_be_called(step.tool):
            return f"no host takes {step.tool[:80]!r} as the name of a tool"
        if _sendable_arguments(step.arguments) is None:
            return f"the arguments of {step.tool} are not a JSON object"
    return ""


def example_of(pattern: Pattern) -> Example:
    """The pattern as an example. It must be showable."""
    return Example(
        intent=_sendable(pattern.intent, NO_REQUEST),
        calls=tuple(
            ExampleCall(
                tool=step.tool,
                arguments=_sendable_arguments(step.arguments) or "{}",
                result=_sendable(step.result, NO_OUTPUT),
                worked=step.worked,
            )
            for step in pattern.steps
        ),
        closing=closing(pattern.kind, pattern.steps),
    )


def openai_messages(examples: Sequence[Example], ids: Sequence[str]) -> list[JsonObject]:
    """Messages of the chat interface. `ids` names the calls of all examples in their order."""
    fresh = iter(ids)
    return [message for example in examples for message in _openai(example, fresh)]


def responses_items(examples: Sequence[Example], ids: Sequence[str]) -> list[JsonObject]:
    """Items of the responses interface. The content of messages is plain text: an assistant's
    text parts are taken by some hosts only with ids and a status, which no one has given out.
    """
    fresh = iter(ids)
    return [item for example in examples for item in _responses(example, fresh)]


def anthropic_messages(examples: Sequence[Example], ids: Sequence[str]) -> list[JsonObject]:
    """Messages as Anthropic takes them: a result is said by the user."""
    fresh = iter(ids)
    return [message for example in examples for message in _anthropic(example, fresh)]


def numbered_text(examples: Sequence[Example]) -> str:
    """The examples as one text, for a model and for a person."""
    return "\n\n".join(
        "\n".join([f"Example {number} of {len(examples)}", *_lines(example)])
        for number, example in enumerate(examples, 1)
    )


def call_ids_in(message: Mapping[str, Any]) -> Iterator[str]:
    """Every id of a call that a message of any form has, asked or answered."""
    for field in ("tool_calls", "content"):
        parts = message.get(field)
        for part in parts if isinstance(parts, list | tuple) else ():
            if isinstance(part, Mapping):
                yield from _texts(part, "id", "tool_use_id")
    yield from _texts(message, "tool_call_id", "call_id")


def sendable_text(text: str) -> str:
    """The text with what some host refuses replaced: half characters and the null character."""
    return _UNSENDABLE.sub("\ufffd", text)


def _openai(example: Example, ids: Iterator[str]) -> Iterator[JsonObject]:
    yield {"role": "user", "content": example.intent}
    for call in example.calls:
        call_id = next(ids)
        function = {"name": call.tool, "arguments": call.arguments}
        asked = {"id": call_id, "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "tool_calls": [asked]}
        yield {"role": "tool", "tool_call_id": call_id, "content": call.result}
    yield {"role": "assistant", "content": example.closing}


def _responses(example: Example, ids: Iterator[str]) -> Iterator[JsonObject]:
    yield {"type": "message", "role": "user", "content": example.intent}
    for call in example.calls:
        call_id = next(ids)
        yield {
            "type": "function_call",
            "call_id": call_id,
            "name": call.tool,
            "arguments": call.arguments,
        }
        yield {"type": "function_call_output", "call_id": call_id, "output": call.result}
    yield {"type": "message", "role": "assistant", "content": example.closing}


def _anthropic(example: Example, ids: Iterator[str]) -> Iterator[JsonObject]:
    yield {"role": "user", "content": example.intent}
    for call in example.calls:
        call_id = next(ids)
        arguments = json.loads(call.arguments)
        asked = {"type": "tool_use", "id": call_id, "name": call.tool, "input": arguments}
        yield {"role": "assistant", "content": [asked]}
        answer: JsonObject = {"type": "tool_result", "tool_use_id": call_id, "content": call.result}
        if not call.worked:
            answer["is_error"] = True
        yield {"role": "user", "content": [answer]}
    yield {"role": "assistant", "content": example.closing}


def _lines(example: Example) -> Iterator[str]:
    yield _line("User", example.intent)
    for call in example.calls:
        yield _line("Call", f"{call.tool} {call.arguments}")
        yield _line("Result" if call.worked else "Result (did not work)", call.result)
    yield _line("Assistant", example.closing)


def _line(label: str, text: str) -> str:
    return f"{label}: " + "\n  ".join(text.splitlines())


def _sendable(text: str, if_empty: str) -> str:
    return sendable_text(text) if text.strip() else if_empty


@lru_cache(maxsize=2_048)
def _sendable_arguments(text: str) -> str | None:
    """The arguments as short JSON text; None if they are no JSON object that hosts can read."""
    try:
        value = json.loads(text)
        if not isinstance(value, dict) or _is_deeper(value, _DEEPEST):
            return None
        # NaN can be read and must not be written: it is no JSON.
        short = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None
    return sendable_text(short)


def _is_deeper(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or _is_deeper(one, levels - 1) for one in inner)


def _texts(source: Mapping[str, Any], *fields: str) -> Iterator[str]:
    for field in fields:
        if isinstance(value := source.get(field), str):
            yield value
