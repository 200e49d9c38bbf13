"""Checking stored calls against the current tools."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from tests.tables import table

from journeyman.experience.tool_schemas import LiveTools
from journeyman.records import Pattern, Step
from journeyman.records.errors import WrongInput

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path"],
}

SHAPES: dict[str, Any] = {
    "OpenAI chat": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
    "OpenAI responses": [{"type": "function", "name": "read", "parameters": SCHEMA}],
    "OpenAI functions": [{"name": "read", "parameters": SCHEMA}],
    "Anthropic": [{"name": "read", "input_schema": SCHEMA}],
    "Anthropic, custom": [{"type": "custom", "name": "read", "input_schema": SCHEMA}],
    "MCP": [{"name": "read", "inputSchema": SCHEMA}],
    "MCP tools/list": {"tools": [{"name": "read", "inputSchema": SCHEMA}]},
    "a tuple": ({"name": "read", "inputSchema": SCHEMA},),
    "the same twice": [{"name": "read", "inputSchema": SCHEMA}] * 2,
}


def step(tool: str = "read", **arguments: object) -> Step:
    return Step(tool=tool, arguments=json.dumps(arguments))


def misfit(schema: object, arguments: object) -> str:
    live = LiveTools.read([{"name": "t", "input_schema": schema}])
    return live.misfit(Step(tool="t", arguments=json.dumps(arguments)))


def of(**properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


class TestShapes:
    @table("shape", SHAPES)
    def test_every_shape_is_read(self, shape: str) -> None:
        live = LiveTools.read(SHAPES[shape])
        assert live.names == ("read",)
        assert live.misfit(step(path="a", limit=3)) == ""
        assert live.misfit(step(limit=3)) == "'path' is a required property"

    @table(
        ("definition", "name"),
        [
            ({"type": "web_search"}, "web_search"),
            ({"type": "web_search_20250305", "name": "web_search", "max_uses": 3}, "web_search"),
            ({"type": "function", "function": {"name": "now"}}, "now"),
            ({"name": "now", "parameters": None}, "now"),
        ],
    )
    def test_tool_without_a_schema_accepts_anything(
        self, definition: dict[str, Any], name: str
    ) -> None:
        live = LiveTools.read([definition])
        assert live.names == (name,)
        assert live.misfit(step(name, anything=1)) == ""

    def test_no_tools_and_any_mapping(self) -> None:
        # Without tools, no tool is offered.
        live = LiveTools.read([])
        assert live.names == ()
        assert live.misfit(step()) == "the tool is not offered"

        # Any mapping is accepted as a definition.
        definition: Mapping[str, Any] = MappingProxyType({"name": "read", "parameters": SCHEMA})
        assert LiveTools.read([definition]).misfit(step()) == "'path' is a required property"

    @table(
        ("tools", "clause"),
        [
            (None, "not a list of definitions"),
            ("read", "not a list of definitions"),
            (5, "not a list of definitions"),
            (["read"], "Tool 1 is not an object"),
            ([{"name": "a"}, {"description": "x"}], "Tool 2 has no name"),
            ([{"type": "function"}], "Tool 1 has no name"),
            ([{"type": "function", "function": {"name": ""}}], "Tool 1 has no name"),
            ([{"name": 5}], "Tool 1 has no name"),
        ],
        ids=lambda given: str(given)[:50].split(" at 0x")[0],
    )
    def test_invalid_definitions_are_refused(self, tools: Any, clause: str) -> None:
        with pytest.raises(WrongInput) as refused:
            LiveTools.read(tools)
        assert clause in str(refused.value)


UNLISTED = "Additional properties are not allowed"
BROKEN = "its schema cannot be followed"
MISFITS: list[tuple[object, object, str]] = [
    (SCHEMA, {"path": "a", "limit": "3"}, "'limit': '3' is not of type 'integer'"),
    (SCHEMA, {"path": None}, "'path': None is not of type 'string'"),
    (SCHEMA, {"path": "a", "amount": 1}, f"{UNLISTED} ('amount' was unexpected)"),
    (SCHEMA, {}, "'path' is a required property"),
    (SCHEMA, [], "its arguments are not a JSON object"),
    (of(a=of(b={"type": "number"})), {"a": {"b": []}}, "'a.b': [] is not of type 'number'"),
    (
        of(a={"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        {"a": 1.5},
        "'a': 1.5 is not valid under any of the given schemas",
    ),
    (of(a={"enum": ["c", "f"]}), {"a": "k"}, "'a': 'k' is not one of ['c', 'f']"),
    (False, {}, "False schema does not allow {}"),
    ({"type": "string"}, {}, "{} is not of type 'string'"),
    (of(), {"a": 1}, f"{UNLISTED} ('a' was unexpected)"),
    (
        {"$ref": "#/$defs/args", "$defs": {"args": SCHEMA}},
        {"b": 1},
        "'path' is a required property",
    ),
    # Schemas that cannot be followed.
    ("x", {}, BROKEN),
    ([], {}, BROKEN),
    ({"type": "objekt"}, {}, BROKEN),
    (of(x={"type": "array", "items": 3}), {}, BROKEN),
    (of(x={"required": True}), {}, BROKEN),
    ({"default": object()}, {}, BROKEN),
    ({"$schema": []}, {}, BROKEN),
    (of(a={"$ref": "#/$defs/gone"}), {"a": 1}, BROKEN),
    (of(a={"$ref": "https://schemas.invalid/a.json"}), {"a": 1}, BROKEN),
    (of(a={"pattern": r"\p{L}"}), {"a": "x"}, BROKEN),
    ({"$ref": "#"}, {"a": 1}, BROKEN),
]


@table(("schema", "arguments", "reason"), MISFITS, ids=lambda given: str(given)[:40])
def test_misfit_reasons(schema: object, arguments: object, reason: str) -> None:
    assert misfit(schema, arguments) == reason


FITS: list[tuple[dict[str, Any] | bool, object]] = [
    (SCHEMA, {"path": "a"}),
    ({"type": "object"}, {"anything": 1}),
    ({}, {"anything": 1}),
    (True, {"anything": 1}),
    (of(a={}) | {"additionalProperties": True}, {"b": 1}),
    (of(a={}) | {"additionalProperties": {"type": "integer"}}, {"b": 1}),
    (of(a={}) | {"patternProperties": {"^x-": {}}}, {"x-b": 1}),
    (of(a={"type": "object"}), {"a": {"free": 1}}),
    (of(a={"anyOf": [of(b={}), {"type": "object", "title": "Any"}]}), {"a": {"free": 1}}),
    ({"allOf": [of(a={}), of(b={})]}, {"a": 1, "b": 1}),
    (of(a={}) | {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1}),
    (of(a={"$ref": "#"}), {"a": {"a": {"a": {}}}}),
    (of(a={"$ref": "#/definitions/b"}) | {"definitions": {"b": of(c={})}}, {"a": {"c": 1}}),
    (of(a={}) | {"if": {"required": ["a"]}, "then": of(b={})}, {"a": 1, "b": 1}),
    (of(a={"type": "number"}), {"a": 1}),
    (of(a={"type": "integer"}), {"a": 1.0}),
    (of(a={"format": "made-up"}), {"a": "x"}),
    (of(a={"enum": ("c", "f")}), {"a": "c"}),
]


@table(("schema", "arguments"), FITS, ids=str)
def test_calls_that_fit(schema: object, arguments: object) -> None:
    assert misfit(schema, arguments) == ""


def test_a_broken_schema_leaves_out_only_its_own_tool() -> None:
    live = LiveTools.read([{"name": "t", "parameters": 5}, {"name": "read", "parameters": SCHEMA}])
    assert live.names == ("t", "read")
    assert live.misfit(step("t")) == BROKEN
    assert live.misfit(step(path="a")) == ""


REDACTED: list[tuple[dict[str, Any], object, str]] = [
    ({"type": "string", "pattern": "^[A-Z]{6}$"}, "<order_id:12>", ""),
    ({"enum": ["a", "b"]}, "see <secret:2>", ""),
    ({"type": "integer", "minimum": 5}, "<phone:1>", ""),
    ({"enum": ["a", "b"]}, "<secret:two>", "'a': '<secret:two>' is not one of ['a', 'b']"),
]


@table(("schema", "value", "reason"), REDACTED, ids=str)
def test_redaction_placeholders_fit_any_schema(schema: object, value: object, reason: str) -> None:
    assert misfit(of(a=schema), {"a": value}) == reason


def test_malformed_and_deep_arguments() -> None:
    # Arguments that are not JSON.
    live = LiveTools.read([{"name": "read", "parameters": SCHEMA}])
    for arguments in ("", "{", "[" * 100_000):
        broken = Step(tool="read", arguments=arguments)
        assert live.misfit(broken) == "its arguments are not a JSON object"

    # Deeply nested arguments.
    deep = '{"a":' * 900 + "1" + "}" * 900
    live = LiveTools.read([{"name": "t", "parameters": of(a={"$ref": "#"})}])
    assert live.misfit(Step(tool="t", arguments=deep)) != ""


class TestPatterns:
    LIVE = LiveTools.read([{"name": "read", "parameters": SCHEMA}, {"name": "find"}])

    def reason(self, *steps: Step) -> str:
        return self.LIVE.misfit_of(Pattern(intent="Read.", steps=steps))

    def test_steps_that_must_fit(self) -> None:
        # All steps must fit.
        assert self.reason(step("find", x=1), step(path="a")) == ""
        assert self.reason(step("find", x=1), step()) == "read: 'path' is a required property"
        assert self.reason(step(path="a"), step("write")) == "write: the tool is not offered"

        # The reason names the tool only if there are several.
        assert self.reason(step()) == "'path' is a required property"
        assert self.reason(step(path="a"), step()) == "'path' is a required property"
