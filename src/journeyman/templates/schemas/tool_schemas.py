"""The tools that are offered now, against which a stored call is held before it is shown: an
example that no longer fits teaches a mistake. The shapes of definitions are read in `tool_shapes`.
"""

import json
from typing import TYPE_CHECKING, Self

from journeyman.records import Pattern, Step
from journeyman.records.errors import BadTools
from journeyman.templates.files.strict_json import BadJson, canonical
from journeyman.templates.schemas.tool_shapes import Definitions, ToolDefinition, read_definitions

if TYPE_CHECKING:
    from journeyman.templates.schemas.schema_fit import SchemaFit

_NOT_OFFERED = "the tool is not offered"


class LiveTools:
    """The tools of one agent as they are defined now."""

    def __init__(self, tools: dict[str, ToolDefinition], fits: "dict[str, SchemaFit]") -> None:
        self._tools = tools
        self._fits = fits

    @classmethod
    def read(cls, definitions: Definitions) -> Self:
        """Tools from their definitions: OpenAI's chat or responses form, Anthropic's, MCP's, or
        schemas by name. Raises BadTools.
        """
        from journeyman.templates.schemas.schema_fit import (  # noqa: PLC0415 - jsonschema loads slowly
            BadSchema,
            fit_for,
        )

        tools = read_definitions(definitions)
        fits = {}
        for name, tool in tools.items():
            try:
                fits[name] = fit_for(canonical(tool.schema))
            except (BadSchema, BadJson) as error:
                raise BadTools(
                    f"The schema of the tool {name!r} is not valid: {error}. Mend the schema."
                ) from error
        return cls(tools, fits)

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
        try:
            arguments = json.loads(step.arguments)
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            return "its arguments are not a JSON object"
        return self._fits[step.tool].misfit(arguments)

    def misfit_of(self, pattern: Pattern) -> str:
        """Why a pattern does not fit. A step that failed is shown as the mistake it was: its tool
        has to be offered, no more.
        """
        for step in pattern.steps:
            if step.worked:
                reason = self.misfit(step)
            else:
                reason = "" if step.tool in self._tools else _NOT_OFFERED
            if reason:
                return f"{step.tool}: {reason}" if len(pattern.tools) > 1 else reason
        return ""
