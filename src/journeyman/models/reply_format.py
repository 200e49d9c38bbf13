"""The grammar, for llguidance in llama.cpp, of a small model's replies with tools: words, words and
one call, or one call; and such a reply read. The engine silently ignores a grammar with something
that llguidance does not know, so only what works is taken over from a schema: it allows more, never
less.
"""

import itertools
import json
import re
from collections.abc import Mapping, Sequence

from journeyman.models.chat_text import CALL_ENDS, CALL_OPENS, definition
from journeyman.models.model import JsonObject
from journeyman.records import ToolCall

Schema = dict[str, object]

_DEEPEST = 12
"""How far a schema is followed; one that refers to itself has no end."""

_ANYTHING: Schema = {}
_ANY_OBJECT: Schema = {"type": "object"}
_NUMBER = ("minimum", "maximum", range(-(10**9), 10**9 + 1))
_BOUNDS = {"integer": _NUMBER, "number": _NUMBER, "array": ("minItems", "maxItems", range(65))}

# The spaces that Python's json writes, so that a call is rendered back as the model wrote it.
_SPACES = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}

# TEXT has no tag in it, so that the model cannot imagine the result of a call it did not make.
# PREFACE are the words before a call, with the tag that opens it; it ends where the tag does.
_GRAMMAR = rf"""%llguidance {{}}
start: TEXT <|im_end|> | "{CALL_OPENS}" rest | preface rest
TEXT: /[^<{{\s](.|\n)*/ & ~/(.|\n)*<\/?tool_(.|\n)*/
preface[lazy]: /[^<{{\s]([^<]|<[^t\/])*{CALL_OPENS}/
rest: call "{CALL_ENDS}"
call: %json """


def reply_grammar(tools: Sequence[JsonObject]) -> str:
    """The grammar for replies of a model with these tools; empty where there are none."""
    if not tools:
        return ""
    functions = [definition(tool) for tool in tools]
    calls = [
        _closed({"name": {"const": one.get("name", "")}, "arguments": _arguments(one)})
        for one in functions
    ]
    return f"{_GRAMMAR}{json.dumps({'anyOf': calls, 'x-guidance': _SPACES})}\n"


def _arguments(function: JsonObject) -> Schema:
    schema = function.get("parameters")
    if not isinstance(schema, Mapping) or not schema:
        return _closed({})
    known = _known(schema, schema)
    if known == _ANY_OBJECT and not schema.get("additionalProperties"):
        return _closed({})  # an object of which nothing is said: a tool without parameters
    return known if known.get("type") == "object" else _ANY_OBJECT


def _closed(properties: Mapping[str, Schema]) -> Schema:
    """An object with all of these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _known(schema: object, root: JsonObject, depth: int = 0) -> Schema:
    """What llguidance knows of a schema, which allows all that the schema allows."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return _ANYTHING
    if isinstance(reference := schema.get("$ref"), str):
        return _known(_referred(reference, root), root, depth + 1)
    if "const" in schema:
        return {"const": schema["const"]}
    if isinstance(choices := schema.get("enum"), list) and choices:
        return {"enum": choices}
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        return {"anyOf": [_known({**schema, "type": one}, root, depth + 1) for one in kind]}
    branches = schema.get("anyOf") or schema.get("oneOf")
    if kind is None and "properties" not in schema and isinstance(branches, list):
        return {"anyOf": [_known(branch, root, depth + 1) for branch in branches]}
    if kind == "object" or (kind is None and "properties" in schema):
        return _known_object(schema, root, depth)
    if kind == "array":
        return {
            "type": kind,
            "items": _known(schema.get("items"), root, depth + 1),
            **_bounds(kind, schema),
        }
    if kind in ("string", "integer", "number", "boolean", "null"):
        return {"type": kind, **_bounds(str(kind), schema)}
    return _ANYTHING


def _known_object(schema: JsonObject, root: JsonObject, depth: int) -> Schema:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    if not isinstance(properties, Mapping) or not properties:
        if isinstance(others, Mapping):
            return {**_ANY_OBJECT, "additionalProperties": _known(others, root, depth + 1)}
        return _ANY_OBJECT
    required = schema.get("required")
    return {
        "type": "object",
        "properties": {name: _known(one, root, depth + 1) for name, one in properties.items()},
        "required": [
            name for name in properties if isinstance(required, list) and name in required
        ],
        "additionalProperties": (
            _known(others, root, depth + 1) if isinstance(others, Mapping) else others is True
        ),
    }


def _referred(reference: str, root: JsonObject) -> object:
    """The part of the schema that is meant, None where it is not in it."""
    where, *names = reference.split("/")
    if where != "#":
        return None
    found: object = root
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _bounds(kind: str, schema: JsonObject) -> Schema:
    """Least and most, where they are small whole numbers that can both be met."""
    least, most, small = _BOUNDS.get(kind, ("", "", range(0)))
    given = {name: schema.get(name) for name in (least, most)}
    found = {name: one for name, one in given.items() if type(one) is int and one in small}
    bounds = list(found.values())
    return dict(found) if bounds == sorted(bounds) else {}


_DECODER = json.JSONDecoder()
_NAMED = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]+)"\s*,\s*"arguments"\s*:\s*(?=\S)')


def read_reply(reply: str, messages: Sequence[JsonObject]) -> tuple[str, tuple[ToolCall, ...]]:
    """The text and the call of a reply to these messages by a model with tools. Arguments that are
    cut off stay as they came, for the agent to answer; what names no tool is text.
    """
    text, _, inside = reply.partition(CALL_OPENS)
    named = _NAMED.match(inside)
    if named is None:
        return reply.strip(), ()
    try:
        _, end = _DECODER.raw_decode(inside, named.end())
    except (ValueError, RecursionError):
        end = len(inside)
    arguments = inside[named.end() : end]
    return text.strip(), (ToolCall(id=_new_id(messages), name=named[1], arguments=arguments),)


def settled(reply: str) -> str:
    """How much of a reply that is still coming will be its text, whatever follows."""
    text = reply.partition(CALL_OPENS)[0]
    begun = (CALL_OPENS[:size] for size in range(len(CALL_OPENS) - 1, 0, -1))
    return text.removesuffix(next(filter(text.endswith, begun), "")).strip()


def _new_id(messages: Sequence[JsonObject]) -> str:
    """An id for the next call of a conversation: the same for the same messages, and not used."""
    asked = [call for message in messages for call in message.get("tool_calls") or ()]
    used = {call.get("id") for call in asked} | {one.get("tool_call_id") for one in messages}
    numbered = (f"call_{number:04}" for number in itertools.count(len(asked) + 1))
    return next(one for one in numbered if one not in used)
