"""The reply grammar: which parts of a schema it contains, and how replies are read. test_embedded
checks that the engine accepts it and that replies fit it.
"""

import json
from typing import Any

import pytest
from tests.tables import table

from journeyman.models.reply_grammar import read_reply, reply_grammar

STRING = {"type": "string"}


def grammar_of(parameters: object) -> Any:
    """The schema in the grammar for the parameters of a tool."""
    grammar = reply_grammar(
        [{"type": "function", "function": {"name": "t", "parameters": parameters}}]
    )
    (call,) = json.loads(grammar.split("%json ")[1])["anyOf"]
    assert call["properties"]["name"] == {"const": "t"}
    return call["properties"]["arguments"]


def value_of(schema: object) -> Any:
    parameters = {"type": "object", "properties": {"a": schema}}
    return grammar_of(parameters)["properties"]["a"]


def test_objects_are_closed_and_keep_their_order() -> None:
    parameters = {
        "type": "object",
        "properties": {"z": STRING, "a": {"type": "integer"}},
        "required": ["a", "ghost"],
    }
    made = grammar_of(parameters)
    assert list(made["properties"]) == ["z", "a"]
    assert made["required"] == ["a"]
    assert made["additionalProperties"] is False


@table(
    ("parameters", "made"),
    [
        pytest.param(None, {"type": "object", "additionalProperties": False}, id="none"),
        pytest.param({"type": "object"}, {"type": "object", "additionalProperties": False}),
        pytest.param(
            {"type": "object", "properties": {}},
            {"type": "object", "additionalProperties": False},
            id="empty",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": STRING},
            {"type": "object"},
            id="a map",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": True}, {"type": "object"}, id="anything"
        ),
        pytest.param({"oneOf": [STRING]}, {"type": "object"}, id="not an object"),
        pytest.param({"$ref": "elsewhere.json"}, {"type": "object"}, id="external reference"),
        pytest.param("junk", {"type": "object", "additionalProperties": False}, id="junk"),
    ],
)
def test_arguments_are_always_an_object(parameters: object, made: dict[str, object]) -> None:
    found = grammar_of(parameters)
    assert {key: one for key, one in found.items() if one not in ({}, [])} == made


@table(
    ("schema", "made"),
    [
        pytest.param({"type": "string", "format": "uri", "pattern": "^(?=a)"}, STRING, id="string"),
        pytest.param({"type": "string", "not": {"const": "a"}}, STRING, id="not"),
        pytest.param({"type": "integer", "multipleOf": 5}, {"type": "integer"}, id="multiple"),
        pytest.param(
            {"type": "integer", "minimum": 1, "maximum": 5}, {"type": "integer"}, id="bounds"
        ),
        pytest.param(
            {"type": "array", "items": STRING, "maxItems": 3, "uniqueItems": True},
            {"type": "array", "items": STRING},
            id="array",
        ),
        pytest.param(
            {"type": "array", "items": [STRING]}, {"type": "array", "items": {}}, id="tuple"
        ),
        pytest.param({"type": "string", "enum": ["a", "b"]}, {"enum": ["a", "b"]}, id="enum"),
        pytest.param({"enum": []}, {}, id="empty enum"),
        pytest.param({"const": 3}, {"const": 3}, id="const"),
        pytest.param(
            {"oneOf": [{"type": "number"}, {"type": "integer"}]},
            {"anyOf": [{"type": "number"}, {"type": "integer"}]},
            id="one of",
        ),
        pytest.param(
            {"type": ["string", "null"], "minLength": 1},
            {"anyOf": [STRING, {"type": "null"}]},
            id="types",
        ),
        pytest.param({"type": "any"}, {}, id="unknown type"),
        pytest.param({"allOf": [STRING, {"maxLength": 5}]}, {}, id="all of"),
        pytest.param({"$ref": "#/$defs/x"}, {}, id="reference"),
        pytest.param(True, {}, id="true"),
        pytest.param(False, {}, id="false"),
        pytest.param({"type": "object"}, {"type": "object"}, id="free object"),
    ],
)
def test_only_supported_schema_parts_are_used(schema: object, made: dict[str, object]) -> None:
    assert value_of(schema) == made


LS = '{"name": "terminal", "arguments": {"command": "ls"}}'
RUNS_LS = ("terminal", '{"command": "ls"}')


def read(reply: str) -> tuple[str, list[tuple[str, str]]]:
    text, calls = read_reply(reply, [])
    return text, [(call.name, call.arguments) for call in calls]


@table(
    ("reply", "text", "calls"),
    [
        pytest.param("Hello.\n", "Hello.", [], id="text"),
        pytest.param("", "", [], id="nothing"),
        pytest.param(f"<tool_call>{LS}</tool_call>", "", [RUNS_LS], id="a call"),
        pytest.param(
            f"I look.\n<tool_call>\n{LS}\n</tool_call>\n", "I look.", [RUNS_LS], id="both"
        ),
        pytest.param(
            '<tool_call>{"name": "terminal", "arguments": {"command": "echo </tool_call>"}}'
            "</tool_call>",
            "",
            [("terminal", '{"command": "echo </tool_call>"}')],
            id="a tag inside",
        ),
        pytest.param(
            '<tool_call>{"name": "terminal", "arguments": {"command": "l',
            "",
            [("terminal", '{"command": "l')],
            id="cut off",
        ),
        pytest.param(
            '<tool_call>{"name": "terminal", "arguments": {"command": "ls"}',
            "",
            [RUNS_LS],
            id="cut off after the arguments",
        ),
        pytest.param('<tool_call>{"na', '<tool_call>{"na', [], id="cut off before the name"),
        pytest.param(
            f"<tool_call>{'[' * 100_000}", f"<tool_call>{'[' * 100_000}", [], id="deeply nested"
        ),
        pytest.param(
            '{"name": "Ada", "arguments": {}}',
            '{"name": "Ada", "arguments": {}}',
            [],
            id="JSON without a call tag",
        ),
    ],
)
def test_read_reply(reply: str, text: str, calls: list[tuple[str, str]]) -> None:
    assert read(reply) == (text, calls)
