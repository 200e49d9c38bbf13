"""The tools that are offered now, read from the shapes in which agents pass them to models and
servers list them. A stored call is checked against them before it is shown: an example that no
longer fits teaches a mistake. Models keep passing a removed parameter as long as their history
shows it, so an unlisted parameter does not fit, unless the schema says that it accepts others.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from journeyman.learning.agent_tools import find_arguments
from journeyman.records import Pattern, Step
from journeyman.records.errors import WrongInput
from journeyman.redaction.secret_values import PLACEHOLDER
from journeyman.text.truncation import truncate

Definitions = Sequence[Mapping[str, Any]] | Mapping[str, Any]

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
_ACCEPTED = "Pass tools as a list of definitions in the form of OpenAI, Anthropic or MCP."
_NAMES_ONLY = ("required", "additionalProperties", "unevaluatedProperties")
_COMPOSED = frozenset(
    (
        *("additionalProperties", "unevaluatedProperties", "patternProperties", "$ref"),
        *("allOf", "anyOf", "oneOf", "if", "dependentSchemas"),
    )
)
"""Keywords by which an object may accept parameters that its `properties` do not list."""

_BROKEN = (re.error, RecursionError, ValueError, ArithmeticError, TypeError, AttributeError)
"""What following a schema may raise that is not valid, in addition to jsonschema's own errors."""

_LONGEST_REASON = 200


class LiveTools:
    """The tools of one agent as they are defined now."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._validators: dict[str, Any] = {}

    @classmethod
    def read(cls, definitions: Definitions) -> Self:
        """Read tools in OpenAI's, Anthropic's or MCP's form, also from an object with a list of
        `tools`. Raises WrongInput.
        """
        listed = definitions.get("tools") if isinstance(definitions, Mapping) else definitions
        if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
            raise WrongInput(f"The tools are not a list of definitions. {_ACCEPTED}")
        schemas: dict[str, Any] = {}
        for number, definition in enumerate(listed, start=1):
            if not isinstance(definition, Mapping):
                raise WrongInput(f"Tool {number} is not an object. {_ACCEPTED}")
            function = definition.get("function")
            tool = function if isinstance(function, Mapping) else definition
            # A provider's built-in tools are named by their type alone.
            kind = definition.get("type")
            name = tool.get("name", None if kind == "function" else kind)
            if not isinstance(name, str) or not name:
                raise WrongInput(f"Tool {number} has no name. {_ACCEPTED}")
            given = (tool[key] for key in _SCHEMA_KEYS if tool.get(key) is not None)
            schemas[name] = next(given, True)
        return cls(schemas)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._schemas)

    def misfit(self, step: Step) -> str:
        """Return why a call does not fit the tool as it is now; empty if it does. With a redacted
        value, such as `<email:1>`, only names are checked, because the value is unknown.
        """
        from jsonschema import SchemaError  # type: ignore[import-untyped]  # noqa: PLC0415 - loads slowly
        from referencing.exceptions import Unresolvable  # noqa: PLC0415

        if step.tool not in self._schemas:
            return "the tool is not offered"
        arguments = find_arguments(step.arguments)
        if arguments is None:
            return "its arguments are not a JSON object"
        is_redacted = PLACEHOLDER.search(step.arguments) is not None
        try:
            errors = self._validator(step.tool).iter_errors(arguments)
            relevant = (one for one in errors if not is_redacted or one.validator in _NAMES_ONLY)
            error = next(relevant, None)
        except (SchemaError, Unresolvable, *_BROKEN):
            return "its schema cannot be followed"
        if error is None:
            return ""
        path = error.json_path.removeprefix("$").removeprefix(".")
        return truncate(f"'{path}': {error.message}" if path else error.message, _LONGEST_REASON)

    def misfit_of(self, pattern: Pattern) -> str:
        """Return why a pattern does not fit; empty if it does."""
        for step in pattern.steps:
            if reason := self.misfit(step):
                return f"{step.tool}: {reason}" if len(pattern.tools) > 1 else reason
        return ""

    def _validator(self, tool: str) -> Any:
        """Return the validator of a tool's arguments. It fetches nothing."""
        import jsonschema  # noqa: PLC0415 - loads slowly
        from referencing import Registry  # noqa: PLC0415

        if tool not in self._validators:
            # As JSON, in which models see it: a tuple becomes a list.
            schema = json.loads(json.dumps(self._schemas[tool]))
            if isinstance(schema, dict) and "properties" in schema and _COMPOSED.isdisjoint(schema):
                schema["additionalProperties"] = False
            default = jsonschema.Draft202012Validator
            draft = jsonschema.validators.validator_for(schema, default=default)
            # Formats are not checked: a pattern that Python cannot read does not make it invalid.
            draft.check_schema(schema, format_checker=None)
            self._validators[tool] = draft(schema, registry=Registry())
        return self._validators[tool]
