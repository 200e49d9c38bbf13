"""Messages and tool definitions as the text a small ChatML model reads: tools in the first system
turn, calls and results in tags. What was rendered once stays the beginning of all that follows, so
that the engine's prefix cache keeps hitting.
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

_MOST_LISTED = 16
"""More tools than that are listed only while there is no call to go by. Such a list takes much of a
small window, and in four comparisons on 40 to 60 requests the embedded model chose the right tool
6 to 10 points less often with even a short list than from examples alone; the grammar lets it call
every tool all the same."""

# What begins a token that steers the model, or a tag of ours: inside a message it is only text.
# Beside `<|…|>` these are what the tokenizer of SmolLM2 takes for more than its letters.
_STEERING = re.compile(
    r"<(?=\||/?tool_(?:call|response)|(?:repo_?name|file_sep|filename|gh_stars|empty_output"
    r"|issue_(?:start|comment|closed)|jupyter_(?:start|text|code|output|script))>)"
)


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
    system = _harmless(system)
    if tools:
        listed = () if len(tools) > _MOST_LISTED and _has_examples(others) else tools
        lines = "\n".join(map(_harmless, tool_lines(listed)))
        parts = [system, lines and f"Tools:\n{lines}", _HOW_TO_CALL]
        system = "\n\n".join(filter(None, parts))
    turns = [_turn("system", system), *map(_message, others)]
    return "".join(turns).encode("utf-8", "replace").decode()


def content_text(content: object) -> str:
    """The text of a message's content, which may come in parts; a part that is no text is named."""
    if isinstance(content, Mapping):
        content = [content]
    if isinstance(content, str) or not isinstance(content, Iterable):
        return content if isinstance(content, str) else ""
    parts = (part if isinstance(part, Mapping) else {"text": part} for part in content)
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)


_ROLES = {"developer": "system", "function": "tool"}


def _role(message: JsonObject) -> str:
    role = _ROLES.get(message.get("role", ""), message.get("role"))
    return role if role in ("system", "tool", "assistant") else "user"


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
    arguments = function.get("arguments")
    try:  # with the spaces that the grammar of replies makes; malformed ones as they are
        if isinstance(arguments, str):
            arguments = json.loads(arguments if arguments.strip() else "{}")
        arguments = _escaped(json.dumps(arguments or {}, ensure_ascii=False))
    except (ValueError, RecursionError):
        arguments = _harmless(str(arguments))
    return f'{CALL_OPENS}{{"name": {_escaped(name)}, "arguments": {arguments}}}{CALL_ENDS}'


def _escaped(text: str) -> str:
    """JSON in which nothing steers the model, and which means the same."""
    return _STEERING.sub(r"\\u003c", text)


def _has_examples(messages: Sequence[JsonObject]) -> bool:
    """Whether a call was made before the last request."""
    requests = [place for place, one in enumerate(messages) if _role(one) == "user"]
    before = messages[: requests[-1]] if requests else ()
    return any(_role(one) == "assistant" and one.get("tool_calls") for one in before)


_LONGEST_SENTENCE = 160
_LONGEST_CHOICE = 80
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def definition(tool: JsonObject) -> JsonObject:
    """The function that a tool definition describes."""
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def own_words(descriptions: Sequence[str]) -> list[str]:
    """Descriptions without the sentences that several have, which tell none from the others."""
    sentences = [_SENTENCE_ENDS.split(" ".join(text.split())) for text in descriptions]
    seen = Counter(sentence for one in sentences for sentence in set(one))
    return [" ".join(sentence for sentence in one if seen[sentence] == 1) for one in sentences]


def tool_lines(tools: Sequence[JsonObject]) -> list[str]:
    """A line for each tool: its name, its parameters (`?`: may be left out) and its use."""
    functions = [definition(tool) for tool in tools]
    uses = own_words([str(function.get("description") or "") for function in functions])
    return [_line(function, use) for function, use in zip(functions, uses, strict=True)]


def _line(function: JsonObject, use: str) -> str:
    schema = function.get("parameters")
    schema = schema if isinstance(schema, Mapping) else {}
    required = schema.get("required") or ()
    parameters = ", ".join(
        f"{name}{'' if name in required else '?'}: {_kind(value)}"
        for name, value in (schema.get("properties") or {}).items()
    )
    sentence = _SENTENCE_ENDS.split(use, maxsplit=1)[0]
    if len(sentence) > _LONGEST_SENTENCE:
        sentence = sentence[: _LONGEST_SENTENCE - 1] + "…"
    return f"{function.get('name', '')}({parameters}){': ' + sentence if sentence else ''}"


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
