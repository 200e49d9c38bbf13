"""Messages and tool definitions as the text a small ChatML model reads. Its own template knows no
tools, so they stand in the first system turn, calls in tags of the assistant's turns, and results
in tags of the user's. Each turn depends on its message alone: what was rendered once stays the
beginning of all that follows, and the engine's prefix cache keeps hitting. (Only a list of very
many tools goes when there are calls to go by.)
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from journeyman.models.model import JsonObject
from journeyman.models.tool_list import definition, tool_lines

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
    listed = () if len(tools) > _MOST_LISTED and _has_examples(others) else tools
    turns = [_turn("system", _with_tools(system, listed, tools)), *map(_message, others)]
    return "".join(turns).encode("utf-8", "replace").decode()


def content_text(content: object) -> str:
    """The text of a message's content, which may come in parts; a part that is no text is named."""
    if isinstance(content, Mapping):
        content = [content]
    if isinstance(content, str) or not isinstance(content, Iterable):
        return content if isinstance(content, str) else ""
    parts = (part if isinstance(part, Mapping) else {"text": part} for part in content)
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)


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


def _has_examples(messages: Sequence[JsonObject]) -> bool:
    """Whether a call was made before the last request."""
    requests = [place for place, one in enumerate(messages) if _role(one) == "user"]
    before = messages[: requests[-1]] if requests else ()
    return any(_role(one) == "assistant" and one.get("tool_calls") for one in before)


def _with_tools(system: str, listed: Sequence[JsonObject], callable_: Sequence[JsonObject]) -> str:
    system = _harmless(system)
    if not callable_:
        return system
    lines = "\n".join(map(_harmless, tool_lines(listed)))
    return "\n\n".join(filter(None, [system, lines and f"Tools:\n{lines}", _HOW_TO_CALL]))
