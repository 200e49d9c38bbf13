"""Renders messages and tool definitions as the prompt of a small ChatML model: tools in the first
system turn, calls and results in tags. Rendered text stays a prefix of every later prompt of the
conversation, so that the engine's prefix cache keeps hitting.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from journeyman.models.model import JsonObject

CALL_OPENS, CALL_ENDS = "<tool_call>", "</tool_call>"

_DEFAULT_SYSTEM = "You are a helpful assistant."
_HOW_TO_CALL = (
    f'To use a tool, reply with {CALL_OPENS}{{"name": ..., "arguments": {{...}}}}{CALL_ENDS}. '
    "When the task is done, reply in words."
)

_MAX_LISTED_TOOLS = 16
"""A longer list of tools is shown only until the conversation has a call as an example. Such a list
takes much of a small window, and in four comparisons on 40 to 60 requests the embedded model chose
the right tool 6 to 10 points less often with even a short list than from examples alone; the
grammar still allows every tool."""

# The start of a control token of the model, or of one of our tags; inside a message it must be
# plain text. Besides `<|…|>` these are the control tokens of the SmolLM2 tokenizer.
_CONTROL_TOKEN = re.compile(
    r"<(?=\||/?tool_(?:call|response)|(?:repo_?name|file_sep|filename|gh_stars|empty_output"
    r"|issue_(?:start|comment|closed)|jupyter_(?:start|text|code|output|script))>)"
)


def prompt_text(messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> str:
    """Return the prompt: the conversation, and the start of the model's own turn."""
    return chat_text(messages, tools) + "<|im_start|>assistant\n"


def chat_text(messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> str:
    """Return the conversation as text. The text of its first messages is a prefix of the whole."""
    if not messages:
        return ""
    system, others = _DEFAULT_SYSTEM, messages
    if _role(messages[0]) == "system":
        system, others = content_text(messages[0].get("content")), messages[1:]
    system = _neutralised(system)
    if tools:
        listed = () if len(tools) > _MAX_LISTED_TOOLS and _has_earlier_calls(others) else tools
        lines = "\n".join(map(_neutralised, tool_lines(listed)))
        parts = [system, lines and f"Tools:\n{lines}", _HOW_TO_CALL]
        system = "\n\n".join(filter(None, parts))
    turns = [_render_turn("system", system), *map(_render_message, others)]
    return "".join(turns).encode("utf-8", "replace").decode()


def content_text(content: object) -> str:
    """Return the text of a message's content or of its parts; other parts appear as `[type]`."""
    if isinstance(content, Mapping):
        content = [content]
    if isinstance(content, str) or not isinstance(content, Iterable):
        return content if isinstance(content, str) else ""
    parts = (part if isinstance(part, Mapping) else {"text": part} for part in content)
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)


def _role(message: JsonObject) -> str:
    role = message.get("role")
    return role if role in ("system", "tool", "assistant") else "user"


def _render_message(message: JsonObject) -> str:
    role, text = _role(message), _neutralised(content_text(message.get("content")))
    if role == "tool":
        return _render_turn("user", f"<tool_response>{text}</tool_response>")
    calls = (
        "".join(map(_render_call, message.get("tool_calls") or ())) if role == "assistant" else ""
    )
    return _render_turn(
        role, f"{text.rstrip()}\n{calls}" if text.strip() and calls else calls or text
    )


def _render_turn(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def _neutralised(text: str) -> str:
    """Return the text with a space inserted in every control token."""
    return _CONTROL_TOKEN.sub("< ", text)


def _render_call(call: JsonObject) -> str:
    function = function_definition(call)
    name = json.dumps(function.get("name", ""), ensure_ascii=False)
    arguments = function.get("arguments")
    try:  # spaced as the reply grammar does; malformed arguments stay unchanged
        if isinstance(arguments, str):
            arguments = json.loads(arguments if arguments.strip() else "{}")
        arguments = _escaped_json(json.dumps(arguments or {}, ensure_ascii=False))
    except (ValueError, RecursionError):
        arguments = _neutralised(str(arguments))
    return f'{CALL_OPENS}{{"name": {_escaped_json(name)}, "arguments": {arguments}}}{CALL_ENDS}'


def _escaped_json(text: str) -> str:
    """Return JSON of the same value, with control tokens escaped."""
    return _CONTROL_TOKEN.sub(r"\\u003c", text)


def _has_earlier_calls(messages: Sequence[JsonObject]) -> bool:
    """Whether the model made a call before the last request."""
    requests = [index for index, message in enumerate(messages) if _role(message) == "user"]
    before = messages[: requests[-1]] if requests else ()
    return any(_role(message) == "assistant" and message.get("tool_calls") for message in before)


_MAX_SENTENCE = 160
_MAX_CHOICES_TEXT = 80
_SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def function_definition(tool: JsonObject) -> JsonObject:
    """Return the function that a tool definition describes."""
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def distinct_sentences(descriptions: Sequence[str]) -> list[str]:
    """Return the descriptions without the sentences that several share, which distinguish none."""
    sentences = [_SENTENCE_BREAK.split(" ".join(text.split())) for text in descriptions]
    counts = Counter(sentence for text_sentences in sentences for sentence in set(text_sentences))
    return [
        " ".join(sentence for sentence in text_sentences if counts[sentence] == 1)
        for text_sentences in sentences
    ]


def tool_lines(tools: Sequence[JsonObject]) -> list[str]:
    """Return a line for each tool: its name, its parameters (`?`: optional) and its purpose."""
    functions = [function_definition(tool) for tool in tools]
    purposes = distinct_sentences(
        [str(function.get("description") or "") for function in functions]
    )
    return [
        _tool_line(function, purpose) for function, purpose in zip(functions, purposes, strict=True)
    ]


def _tool_line(function: JsonObject, purpose: str) -> str:
    schema = function.get("parameters")
    schema = schema if isinstance(schema, Mapping) else {}
    required = schema.get("required") or ()
    parameters = ", ".join(
        f"{name}{'' if name in required else '?'}: {_type_text(value)}"
        for name, value in (schema.get("properties") or {}).items()
    )
    sentence = _SENTENCE_BREAK.split(purpose, maxsplit=1)[0]
    if len(sentence) > _MAX_SENTENCE:
        sentence = sentence[: _MAX_SENTENCE - 1] + "…"
    return f"{function.get('name', '')}({parameters}){': ' + sentence if sentence else ''}"


def _type_text(schema: object) -> str:
    """Return the type of a parameter, or a short list of its choices."""
    if not isinstance(schema, Mapping):
        return "any"
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        listed = "|".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
        if len(listed) <= _MAX_CHOICES_TEXT:
            return listed
    kind = schema.get("type")
    if kind == "array" and "items" in schema:
        return f"{_type_text(schema['items'])}[]"
    return "|".join(map(str, kind)) if isinstance(kind, list) else str(kind or "any")
