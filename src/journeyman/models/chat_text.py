"""Messages and tool definitions as the text a small ChatML model reads. Its own template knows no
tools, so they stand in the first system turn, calls in tags of the assistant's turns, and results
in tags of the user's. Each turn depends on its message alone: what was rendered once stays the
beginning of all that follows, and the engine's prefix cache keeps hitting.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from journeyman.models.model import JsonObject

CALL_OPENS, CALL_ENDS = "<tool_call>", "</tool_call>"

_DEFAULT_SYSTEM = "You are a helpful assistant."
_HOW_TO_CALL = (
    f'To use a tool, reply with {CALL_OPENS}{{"name": ..., "arguments": {{...}}}}{CALL_ENDS}. '
    "When the task is done, reply in words."
)
_LONGEST_SENTENCE = 160
_LONGEST_CHOICE = 80

# What begins a token that steers the model, or a tag of ours: inside a message it is only text.
# Beside `<|…|>` these are what the tokenizer of SmolLM2 takes for more than its letters.
_STEERING = re.compile(
    r"<(?=\||/?tool_(?:call|response)|(?:repo_?name|file_sep|filename|gh_stars|empty_output"
    r"|issue_(?:start|comment|closed)|jupyter_(?:start|text|code|output|script))>)"
)
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def prompt_text(messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> str:
    """What the model is given: the conversation, and the beginning of its own turn."""
    return chat_text(messages, tools) + "<|im_start|>assistant\n"


def chat_text(messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> str:
    """The conversation as text. That of the first messages is the beginning of that of more."""
    if not messages:
        return ""
    system, others = _DEFAULT_SYSTEM, messages
    if _role(messages[0]) == "system":
        system, others = content_text(messages[0].get("content")), messages[1:]
    turns = [_turn("system", _with_tools(system, tools)), *map(_message, others)]
    return "".join(turns).encode("utf-8", "replace").decode()


def content_text(content: object) -> str:
    """The text of a message's content, which may come in parts; a part that is no text is named."""
    if isinstance(content, Mapping):
        content = [content]
    if isinstance(content, str) or not isinstance(content, Iterable):
        return content if isinstance(content, str) else ""
    parts = (part if isinstance(part, Mapping) else {"text": part} for part in content)
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)


def definition(tool: JsonObject) -> JsonObject:
    """The function that a tool definition describes."""
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def _role(message: JsonObject) -> str:
    role = message.get("role")
    if role in ("system", "developer"):
        return "system"
    if role in ("tool", "function"):
        return "tool"
    return "assistant" if role == "assistant" else "user"


def _message(message: JsonObject) -> str:
    role, text = _role(message), _harmless(content_text(message.get("content")))
    if role == "tool":
        return _turn("user", f"<tool_response>{text}</tool_response>")
    calls = "".join(map(_call, message.get("tool_calls") or ())) if role == "assistant" else ""
    return _turn(role, f"{text.rstrip()}\n{calls}" if text.strip() and calls else calls or text)


def _turn(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def _harmless(text: str) -> str:
    """The text with a gap in everything that would steer the model."""
    return _STEERING.sub("< ", text)


def _call(call: JsonObject) -> str:
    function = definition(call)
    name = json.dumps(function.get("name", ""), ensure_ascii=False)
    arguments = _arguments(function.get("arguments"))
    return f'{CALL_OPENS}{{"name": {_escaped(name)}, "arguments": {arguments}}}{CALL_ENDS}'


def _arguments(arguments: object) -> str:
    """Arguments with the spaces that the grammar of replies makes; malformed ones as they are."""
    try:
        if isinstance(arguments, str):
            arguments = json.loads(arguments if arguments.strip() else "{}")
        return _escaped(json.dumps(arguments or {}, ensure_ascii=False))
    except (ValueError, RecursionError):
        return _harmless(str(arguments))


def _escaped(text: str) -> str:
    """JSON in which nothing steers the model, and which means the same."""
    return _STEERING.sub(r"\\u003c", text)


def _with_tools(system: str, tools: Sequence[JsonObject]) -> str:
    system = _harmless(system)
    if not tools:
        return system
    lines = "\n".join(_harmless(_tool(definition(tool))) for tool in tools)
    return f"{system}\n\nTools:\n{lines}\n\n{_HOW_TO_CALL}"


def _tool(function: JsonObject) -> str:
    """A tool in one line: its name, its parameters (a `?` where they may be left out), its use."""
    schema = function.get("parameters")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    required = schema.get("required") if isinstance(schema, Mapping) else None
    parameters = ", ".join(
        f"{name}{'' if name in (required or ()) else '?'}: {_kind(value)}"
        for name, value in (properties or {}).items()
    )
    use = _first_sentence(function.get("description"))
    return f"{function.get('name', '')}({parameters}){': ' + use if use else ''}"


def _kind(schema: object) -> str:
    """What a parameter takes, in a word or as a short list of choices."""
    if not isinstance(schema, Mapping):
        return "any"
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        listed = "|".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
        if len(listed) <= _LONGEST_CHOICE:
            return listed
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, list):
        return "|".join(dict.fromkeys(map(_kind, branches)))
    kind = schema.get("type")
    if isinstance(kind, list):
        return "|".join(map(str, kind))
    if kind == "array" and "items" in schema:
        return f"{_kind(schema['items'])}[]"
    return str(kind or "any")


def _first_sentence(description: object) -> str:
    text = " ".join(str(description or "").split())
    sentence = _SENTENCE_ENDS.split(text, maxsplit=1)[0]
    if len(sentence) <= _LONGEST_SENTENCE:
        return sentence
    return sentence[: _LONGEST_SENTENCE - 1] + "…"
