"""Tool definitions in the shapes in which agents pass them to models and servers list them, read
into a name, a description and a schema each. Whether a schema is a valid one is asked elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from journeyman.records.errors import BadTools

Definitions = Sequence[Mapping[str, Any]] | Mapping[str, Any]
Schema = Mapping[str, Any] | bool

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
_WRAPPERS = ("function", "custom")
_TYPES_OF_VALUES = ("object", "array", "string", "number", "integer", "boolean", "null")
_SIGNS_OF_A_SCHEMA = frozenset(
    ("type", "properties", "$ref", "allOf", "anyOf", "oneOf", "$schema", *_SCHEMA_KEYS)
)
_KNOWN = (
    "Tools are given as a list of definitions in the form of OpenAI, Anthropic or MCP, or as an "
    "object of schemas by name."
)


class ToolDefinition(NamedTuple):
    """A tool as it is offered now. A tool without a schema takes any arguments."""

    name: str
    description: str = ""
    schema: Schema = True


def read_definitions(given: Definitions) -> dict[str, ToolDefinition]:
    """The tools by name, in order. Raises BadTools."""
    found: dict[str, ToolDefinition] = {}
    for tool in _definitions(given):
        if found.setdefault(tool.name, tool).schema != tool.schema:
            raise BadTools(
                f"The tool {tool.name!r} is defined twice, with different schemas. Give each tool "
                "once."
            )
    return found


def _definitions(given: object) -> Iterator[ToolDefinition]:
    if isinstance(given, Mapping):
        # The answer to MCP's tools/list, with its envelope or without.
        inner = given.get("result", given)
        listed = inner.get("tools") if isinstance(inner, Mapping) else None
        if isinstance(listed, Sequence):
            yield from _definitions(listed)
        elif isinstance(given.get("name"), str) or isinstance(given.get("type"), str):
            yield _one(given, "The tool")
        else:
            yield from (_bare(name, schema) for name, schema in given.items())
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        for number, definition in enumerate(given, start=1):
            yield _one(definition, f"Tool {number}")
    else:
        raise BadTools(f"The tools are not a list of definitions. {_KNOWN}")


def _one(definition: object, label: str) -> ToolDefinition:
    if not isinstance(definition, Mapping):
        raise BadTools(f"{label} is not an object. {_KNOWN}")
    wrapped = (definition.get(key) for key in _WRAPPERS)
    inner = next((one for one in wrapped if isinstance(one, Mapping)), definition)
    name = inner.get("name", _built_in(definition))
    if not isinstance(name, str) or not name:
        raise BadTools(f"{label} has no name. {_KNOWN}")
    return ToolDefinition(name, _description(inner), _schema(inner, name))


def _built_in(definition: Mapping[str, Any]) -> object:
    """Tools that a provider brings along are named by their type alone."""
    kind = definition.get("type")
    return None if kind in (*_WRAPPERS, *_TYPES_OF_VALUES) else kind


def _bare(name: object, given: object) -> ToolDefinition:
    """A tool by its name: the value is its schema, or a definition that has one."""
    looks_right = isinstance(given, bool) or (
        isinstance(given, Mapping) and (not given or _SIGNS_OF_A_SCHEMA & given.keys())
    )
    if not looks_right or not isinstance(name, str) or not name:
        raise BadTools(f"{name!r} has no schema beside it. {_KNOWN}")
    if isinstance(given, Mapping) and any(key in given for key in _SCHEMA_KEYS):
        return ToolDefinition(name, _description(given), _schema(given, name))
    description = _description(given) if isinstance(given, Mapping) else ""
    return ToolDefinition(name, description, _schema({"parameters": given}, name))


def _description(definition: Mapping[str, Any]) -> str:
    given = definition.get("description")
    return given if isinstance(given, str) else ""


def _schema(definition: Mapping[str, Any], name: str) -> Schema:
    given = next((definition[key] for key in _SCHEMA_KEYS if key in definition), None)
    if given is None:
        return True
    if not isinstance(given, Mapping | bool):
        raise BadTools(f"The schema of the tool {name!r} is not an object. {_KNOWN}")
    return given
