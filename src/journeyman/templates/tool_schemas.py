"""The tools that are offered now, in the shapes in which agents pass them to models and servers
list them. A stored call is held against them before it is shown: an example that no longer fits
teaches a mistake.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from journeyman.records import Pattern, Step
from journeyman.records.errors import BadTools
from journeyman.templates.strict_json import BadJson, canonical
from journeyman.templates.translation.argument_fields import find_object

if TYPE_CHECKING:
    from journeyman.templates.schema_fit import SchemaFit

Definitions = Sequence[Mapping[str, Any]] | Mapping[str, Any]

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
_WRAPPERS = ("function", "custom")
_TYPES_OF_VALUES = ("object", "array", "string", "number", "integer", "boolean", "null")
_KNOWN = (
    "Tools are given as a list of definitions in the form of OpenAI, Anthropic or MCP, or as an "
    "object of schemas by name."
)
_NOT_OFFERED = "the tool is not offered"


def _listed(given: object) -> Sequence[object]:
    """Definitions as a list; given may also be MCP's tools/list, or schemas by name."""
    if isinstance(given, Mapping):
        inner = given.get("result", given)
        tools = inner.get("tools") if isinstance(inner, Mapping) else None
        if isinstance(tools, Sequence):
            return tools
        if isinstance(given.get("name"), str) or isinstance(given.get("type"), str):
            return [given]
        return [_by_name(name, one) for name, one in given.items()]
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        return given
    raise BadTools(f"The tools are not a list of definitions. {_KNOWN}")


def _by_name(name: object, given: object) -> Mapping[str, Any]:
    """A tool by its name: the value is its schema, or a definition that has one."""
    fields = given if isinstance(given, Mapping) else {}
    if any(key in fields for key in _SCHEMA_KEYS):
        return {**fields, "name": name}
    return {"name": name, "description": fields.get("description"), "parameters": given}


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
        """Tools in OpenAI's, Anthropic's or MCP's form, or schemas by name. Raises BadTools."""
        from journeyman.templates.schema_fit import (  # noqa: PLC0415 - jsonschema loads slowly
            BadSchema,
            fit_for,
        )

        tools: dict[str, _Tool] = {}
        for number, definition in enumerate(_listed(definitions), start=1):
            if not isinstance(definition, Mapping):
                raise BadTools(f"Tool {number} is not an object. {_KNOWN}")
            wrapped = (definition.get(key) for key in _WRAPPERS)
            inner = next((one for one in wrapped if isinstance(one, Mapping)), definition)
            # Tools that a provider brings along are named by their type alone.
            kind = definition.get("type")
            name = inner.get("name", None if kind in (*_WRAPPERS, *_TYPES_OF_VALUES) else kind)
            if not isinstance(name, str) or not name:
                raise BadTools(f"Tool {number} has no name. {_KNOWN}")
            given = [inner[key] for key in _SCHEMA_KEYS if inner.get(key) is not None]
            schema = given[0] if given else True
            if not isinstance(schema, Mapping | bool):
                raise BadTools(f"The schema of the tool {name!r} is not an object. {_KNOWN}")
            try:
                text = canonical(schema)
                fit = fit_for(text)
            except (BadSchema, BadJson) as error:
                raise BadTools(
                    f"The schema of the tool {name!r} is not valid: {error}. Mend the schema."
                ) from error
            description = inner.get("description")
            said = description if isinstance(description, str) else ""
            if tools.setdefault(name, _Tool(said, text, fit)).schema != text:
                raise BadTools(
                    f"The tool {name!r} is defined twice, with different schemas. Give each tool "
                    "once."
                )
        return cls(tools)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def description(self, name: str) -> str:
        """What a tool says about itself; nothing for one that is not offered."""
        return self._tools[name].description if name in self._tools else ""

    def misfit(self, step: Step) -> str:
        """Why a call does not fit the tool as it is now; nothing when it does."""
        if step.tool not in self._tools:
            return _NOT_OFFERED
        arguments = find_object(step.arguments)
        if arguments is None:
            return "its arguments are not a JSON object"
        return self._tools[step.tool].fit.misfit(arguments)

    def misfit_of(self, pattern: Pattern) -> str:
        """Why a pattern does not fit. Of a step that failed only the tool has to be offered."""
        for step in pattern.steps:
            is_offered = step.tool in self._tools
            reason = self.misfit(step) if step.worked or not is_offered else ""
            if reason:
                return f"{step.tool}: {reason}" if len(pattern.tools) > 1 else reason
        return ""
