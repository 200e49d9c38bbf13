"""The grammar that a small model's replies must fit when it has tools: words, or words and one
call, or one call, whose arguments fit the tool's schema. It is written for llguidance, which
llama.cpp carries; what the calls look like, `chat_text` decides.

The engine ignores a grammar with anything in it that llguidance does not know, and does not say
so. Only what is known to work is therefore taken over from a schema; the rest is left out, which
allows more than the schema does and never less.
"""

import json
from collections.abc import Mapping, Sequence

from journeyman.models.chat_text import CALL_ENDS, CALL_OPENS
from journeyman.models.model import JsonObject
from journeyman.models.tool_list import definition

Schema = dict[str, object]

_DEEPEST = 12
"""How far a schema is followed; one that refers to itself has no end."""

_ANYTHING: Schema = {}
_ANY_OBJECT: Schema = {"type": "object"}
_BOUNDS = {
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}
_SMALLEST = {"integer": -(10**9), "number": -(10**9), "array": 0}
_LARGEST = {"integer": 10**9, "number": 10**9, "array": 64}

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
    calls = [_call(definition(tool)) for tool in tools]
    return f"{_GRAMMAR}{json.dumps({'anyOf': calls, 'x-guidance': _SPACES})}\n"


def _call(function: JsonObject) -> Schema:
    return _closed({"name": {"const": function.get("name", "")}, "arguments": _arguments(function)})


def _arguments(function: JsonObject) -> Schema:
    schema = function.get("parameters")
    if not isinstance(schema, Mapping) or not schema:
        return _closed({})
    known = _Root(schema).value(schema)
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


class _Root:
    """A schema that parts of it may refer to."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema

    def value(self, schema: object, depth: int = 0) -> Schema:
        """What llguidance knows of a schema, which allows all that the schema allows."""
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return _ANYTHING
        if isinstance(reference := schema.get("$ref"), str):
            return self.value(self._referred(reference), depth + 1)
        if "const" in schema:
            return {"const": schema["const"]}
        if isinstance(choices := schema.get("enum"), list) and choices:
            return {"enum": choices}
        kind = schema.get("type")
        if isinstance(kind, list) and kind:
            return {"anyOf": [self.value({**schema, "type": one}, depth + 1) for one in kind]}
        branches = schema.get("anyOf") or schema.get("oneOf")
        if kind is None and "properties" not in schema and isinstance(branches, list):
            return {"anyOf": [self.value(branch, depth + 1) for branch in branches]}
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, depth)
        if kind == "array":
            return {
                "type": kind,
                "items": self.value(schema.get("items"), depth + 1),
                **_bounds(kind, schema),
            }
        if kind in ("string", "integer", "number", "boolean", "null"):
            return {"type": kind, **_bounds(str(kind), schema)}
        return _ANYTHING

    def _object(self, schema: JsonObject, depth: int) -> Schema:
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        if not isinstance(properties, Mapping) or not properties:
            if isinstance(others, Mapping):
                return {**_ANY_OBJECT, "additionalProperties": self.value(others, depth + 1)}
            return _ANY_OBJECT
        required = schema.get("required")
        return {
            "type": "object",
            "properties": {name: self.value(one, depth + 1) for name, one in properties.items()},
            "required": [
                name for name in properties if isinstance(required, list) and name in required
            ],
            "additionalProperties": (
                self.value(others, depth + 1) if isinstance(others, Mapping) else others is True
            ),
        }

    def _referred(self, reference: str) -> object:
        """The part of the schema that is meant, None where it is not in it."""
        where, *names = reference.split("/")
        if where != "#":
            return None
        found: object = self._schema
        for name in names:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found


def _bounds(kind: str, schema: JsonObject) -> Schema:
    """Least and most, where they are small whole numbers that can both be met."""
    found: dict[str, int] = {}
    for name in _BOUNDS.get(kind, ()):
        bound = schema.get(name)
        if type(bound) is int and _SMALLEST[kind] <= bound <= _LARGEST[kind]:
            found[name] = bound
    bounds = list(found.values())
    return dict(found) if bounds == sorted(bounds) else {}
