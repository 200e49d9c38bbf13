"""The grammar, for llguidance in llama.cpp, of a small model's replies with tools (text, text and
one call, or one call), and a parser of such replies. The engine silently ignores a grammar that
contains anything llguidance does not support, so only supported parts of a schema are used: the
grammar may allow more than the schema, never less.
"""

import itertools
import json
import re
from collections.abc import Mapping, Sequence

from journeyman.models.chat_template import CALL_ENDS, CALL_OPENS, function_definition
from journeyman.models.model import JsonObject
from journeyman.models.reply_parser import used_call_ids
from journeyman.records import ToolCall

Schema = dict[str, object]

_MAX_DEPTH = 12
"""How deep a schema is followed."""

_ANY_VALUE: Schema = {}
_ANY_OBJECT: Schema = {"type": "object"}

# The spacing of Python's json, so that a call is rendered again exactly as the model wrote it.
_JSON_SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}

# TEXT contains no tag, so that the model cannot invent the result of a call it did not make.
# `preface` is the text before a call, up to and including its opening tag.
_GRAMMAR = rf"""%llguidance {{}}
start: TEXT <|im_end|> | "{CALL_OPENS}" rest | preface rest
TEXT: /[^<{{\s](.|\n)*/ & ~/(.|\n)*<\/?tool_(.|\n)*/
preface[lazy]: /[^<{{\s]([^<]|<[^t\/])*{CALL_OPENS}/
rest: call "{CALL_ENDS}"
call: %json """


def reply_grammar(tools: Sequence[JsonObject]) -> str:
    """Return the grammar for replies of a model with these tools, or "" if there are none."""
    if not tools:
        return ""
    functions = [function_definition(tool) for tool in tools]
    calls = [
        _closed_object(
            {"name": {"const": function.get("name", "")}, "arguments": _arguments_schema(function)}
        )
        for function in functions
    ]
    return f"{_GRAMMAR}{json.dumps({'anyOf': calls, 'x-guidance': _JSON_SPACING})}\n"


def _arguments_schema(function: JsonObject) -> Schema:
    schema = function.get("parameters")
    if not isinstance(schema, Mapping) or not schema:
        return _closed_object({})
    supported = _supported_schema(schema)
    if supported == _ANY_OBJECT and not schema.get("additionalProperties"):
        return _closed_object({})  # an unspecified object: a tool without parameters
    return supported if supported.get("type") == "object" else _ANY_OBJECT


def _closed_object(properties: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _supported_schema(schema: object, depth: int = 0) -> Schema:
    """Return what llguidance supports of a schema; it allows all that the schema allows."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return _ANY_VALUE
    match schema:
        case {"$ref": _}:
            return _ANY_VALUE
        case {"const": value}:
            return {"const": value}
        case {"enum": [_, *_] as choices}:
            return {"enum": choices}
        case {"type": [_, *_] as kinds, **others}:
            branches = [{**others, "type": kind} for kind in kinds]
            return {"anyOf": [_supported_schema(branch, depth + 1) for branch in branches]}
        case {"type": "array", **others}:
            return {"type": "array", "items": _supported_schema(others.get("items"), depth + 1)}
        case {"type": "string" | "integer" | "number" | "boolean" | "null" as kind}:
            return {"type": kind}
        case {"type": "object"} | {"properties": _}:
            return _supported_object(schema, depth)
        case {"anyOf": [_, *_] as branches} | {"oneOf": [_, *_] as branches}:
            return {"anyOf": [_supported_schema(branch, depth + 1) for branch in branches]}
    return _ANY_VALUE


def _supported_object(schema: JsonObject, depth: int) -> Schema:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    if not isinstance(properties, Mapping) or not properties:
        return _ANY_OBJECT
    required = schema.get("required")
    return {
        "type": "object",
        "properties": {
            name: _supported_schema(value, depth + 1) for name, value in properties.items()
        },
        "required": [
            name for name in properties if isinstance(required, list) and name in required
        ],
        "additionalProperties": (
            _supported_schema(others, depth + 1) if isinstance(others, Mapping) else others is True
        ),
    }


_DECODER = json.JSONDecoder()
_CALL_START = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]+)"\s*,\s*"arguments"\s*:\s*(?=\S)')


def read_reply(reply: str, messages: Sequence[JsonObject]) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text and the call of a reply to these messages by a model with tools. Truncated
    arguments stay as they are, for the agent to handle; a call without a name is text.
    """
    text, _, inside = reply.partition(CALL_OPENS)
    start = _CALL_START.match(inside)
    if start is None:
        return reply.strip(), ()
    try:
        _, end = _DECODER.raw_decode(inside, start.end())
    except (ValueError, RecursionError):
        end = len(inside)
    arguments = inside[start.end() : end]
    return text.strip(), (ToolCall(id=_next_call_id(messages), name=start[1], arguments=arguments),)


def _next_call_id(messages: Sequence[JsonObject]) -> str:
    """Return an unused id for the next call: always the same for the same messages."""
    used = used_call_ids(messages)
    numbered = (f"call_{number:04}" for number in itertools.count(1))
    return next(call_id for call_id in numbered if call_id not in used)
