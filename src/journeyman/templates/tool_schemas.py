"""The tools that are offered now, read from the shapes in which agents pass them to models and
servers list them. A stored call is checked against them before it is shown: an example that no
longer fits teaches a mistake.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from journeyman.records import Pattern, Step
from journeyman.records.errors import BadTools
from journeyman.templates.argument_fields import find_arguments
from journeyman.text.strict_json import InvalidJson, canonical_json

if TYPE_CHECKING:
    from journeyman.templates.schema_fit import SchemaFit

Definitions = Sequence[Mapping[str, Any]] | Mapping[str, Any]

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
_WRAPPERS = ("function", "custom")
_TYPES_OF_VALUES = ("object", "array", "string", "number", "integer", "boolean", "null")
_ACCEPTED = (
    "Pass tools as a list of definitions in the form of OpenAI, Anthropic or MCP, or as an object "
    "of schemas by name."
)
_NOT_OFFERED = "the tool is not offered"


def _definitions(tools: object) -> Sequence[object]:
    """Return definitions as a list; `tools` may also be MCP's tools/list, or schemas by name."""
    if isinstance(tools, Mapping):
        inner = tools.get("result", tools)
        listed = inner.get("tools") if isinstance(inner, Mapping) else None
        if isinstance(listed, Sequence):
            return listed
        if isinstance(tools.get("name"), str) or isinstance(tools.get("type"), str):
            return [tools]
        return [_named_definition(name, definition) for name, definition in tools.items()]
    if isinstance(tools, Sequence) and not isinstance(tools, str | bytes):
        return tools
    raise BadTools(f"The tools are not a list of definitions. {_ACCEPTED}")


def _named_definition(name: object, definition: object) -> Mapping[str, Any]:
    """Return the definition of a named tool, given as its schema or as a definition with one."""
    fields = definition if isinstance(definition, Mapping) else {}
    if any(key in fields for key in _SCHEMA_KEYS):
        return {**fields, "name": name}
    return {"name": name, "description": fields.get("description"), "parameters": definition}


class _Tool(NamedTuple):
    description: str
    schema: str
    fit: "SchemaFit"


class LiveTools:
    """The tools of one agent as they are defined now."""

    def __init__(self, tools: dict[str, _Tool]) -> None:
        self._tools = tools

    @classmethod
    def read(cls, definitions: Definitions) -> Self:
        """Read tools in OpenAI's, Anthropic's or MCP's form, or schemas by name. Raises
        BadTools.
        """
        from journeyman.templates.schema_fit import (  # noqa: PLC0415 - jsonschema loads slowly
            BadSchema,
            fit_for,
        )

        tools: dict[str, _Tool] = {}
        for number, definition in enumerate(_definitions(definitions), start=1):
            if not isinstance(definition, Mapping):
                raise BadTools(f"Tool {number} is not an object. {_ACCEPTED}")
            wrapped = (definition.get(key) for key in _WRAPPERS)
            inner = next((value for value in wrapped if isinstance(value, Mapping)), definition)
            # A provider's built-in tools are named by their type alone.
            kind = definition.get("type")
            name = inner.get("name", None if kind in (*_WRAPPERS, *_TYPES_OF_VALUES) else kind)
            if not isinstance(name, str) or not name:
                raise BadTools(f"Tool {number} has no name. {_ACCEPTED}")
            schemas = [inner[key] for key in _SCHEMA_KEYS if inner.get(key) is not None]
            schema = schemas[0] if schemas else True
            if not isinstance(schema, Mapping | bool):
                raise BadTools(f"The schema of the tool {name!r} is not an object. {_ACCEPTED}")
            try:
                text = canonical_json(schema)
                fit = fit_for(text)
            except (BadSchema, InvalidJson) as error:
                raise BadTools(
                    f"The schema of the tool {name!r} is not valid: {error}. Fix the schema."
                ) from error
            value = inner.get("description")
            description = value if isinstance(value, str) else ""
            if tools.setdefault(name, _Tool(description, text, fit)).schema != text:
                raise BadTools(
                    f"The tool {name!r} is defined twice, with different schemas. Pass each tool "
                    "once."
                )
        return cls(tools)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def description(self, name: str) -> str:
        """Return a tool's description; empty for a tool that is not offered."""
        return self._tools[name].description if name in self._tools else ""

    def misfit(self, step: Step) -> str:
        """Return why a call does not fit the tool as it is now; empty if it does."""
        if step.tool not in self._tools:
            return _NOT_OFFERED
        arguments = find_arguments(step.arguments)
        if arguments is None:
            return "its arguments are not a JSON object"
        return self._tools[step.tool].fit.misfit(arguments)

    def misfit_of(self, pattern: Pattern) -> str:
        """Return why a pattern does not fit. For a failed step it is enough that the tool is
        offered.
        """
        for step in pattern.steps:
            is_offered = step.tool in self._tools
            reason = self.misfit(step) if step.worked or not is_offered else ""
            if reason:
                return f"{step.tool}: {reason}" if len(pattern.tools) > 1 else reason
        return ""
