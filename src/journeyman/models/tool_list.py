"""The tools as a small model's prompt lists them: one line each, with name, parameters and use."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from journeyman.models.model import JsonObject

_LONGEST_SENTENCE = 160
_LONGEST_CHOICE = 80
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def definition(tool: JsonObject) -> JsonObject:
    """The function that a tool definition describes."""
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def own_words(descriptions: Sequence[str]) -> list[str]:
    """Descriptions without the sentences that several of them have: servers like to begin each of
    their tools with what the server is, and that tells none of them from the others.
    """
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
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    required = schema.get("required") if isinstance(schema, Mapping) else None
    parameters = ", ".join(
        f"{name}{'' if name in (required or ()) else '?'}: {_kind(value)}"
        for name, value in (properties or {}).items()
    )
    sentence = _first_sentence(use)
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


def _first_sentence(text: str) -> str:
    sentence = _SENTENCE_ENDS.split(text, maxsplit=1)[0]
    if len(sentence) <= _LONGEST_SENTENCE:
        return sentence
    return sentence[: _LONGEST_SENTENCE - 1] + "…"
