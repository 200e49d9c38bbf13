"""The tools that are offered now, read from the shapes in which agents pass them to models and
servers list them. A stored call is checked against them before it is shown: an example that no
longer fits teaches a mistake. Models keep passing a removed parameter as long as their history
shows it, so an unlisted parameter does not fit, unless the schema says that it accepts others.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

from journeyman.learning.agent_tools import find_arguments
from journeyman.records import Pattern, Step
from journeyman.records.errors import WrongInput
from journeyman.redaction.secret_values import PLACEHOLDER
from journeyman.text.strict_json import InvalidJson, canonical_json
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

_LONGEST_REASON = 200


class _Tool(NamedTuple):
    description: str
    schema: str


class LiveTools:
    """The tools of one agent as they are defined now."""

    def __init__(self, tools: dict[str, _Tool]) -> None:
        self._tools = tools

    @classmethod
    def read(cls, definitions: Definitions) -> Self:
        """Read tools in OpenAI's, Anthropic's or MCP's form, also from an object with a list of
        `tools`. Raises WrongInput.
        """
        listed = definitions.get("tools") if isinstance(definitions, Mapping) else definitions
        if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
            raise WrongInput(f"The tools are not a list of definitions. {_ACCEPTED}")
        tools: dict[str, _Tool] = {}
        for number, definition in enumerate(listed, start=1):
            if not isinstance(definition, Mapping):
                raise WrongInput(f"Tool {number} is not an object. {_ACCEPTED}")
            function = definition.get("function")
            inner = function if isinstance(function, Mapping) else definition
            # A provider's built-in tools are named by their type alone.
            kind = definition.get("type")
            name = inner.get("name", None if kind == "function" else kind)
            if not isinstance(name, str) or not name:
                raise WrongInput(f"Tool {number} has no name. {_ACCEPTED}")
            schemas = (inner[key] for key in _SCHEMA_KEYS if inner.get(key) is not None)
            schema = _checked_schema(name, next(schemas, True))
            description = inner.get("description")
            tool = _Tool(description if isinstance(description, str) else "", schema)
            if tools.setdefault(name, tool).schema != schema:
                raise WrongInput(
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
            return "the tool is not offered"
        arguments = find_arguments(step.arguments)
        if arguments is None:
            return "its arguments are not a JSON object"
        return _misfit(self._tools[step.tool].schema, arguments)

    def misfit_of(self, pattern: Pattern) -> str:
        """Return why a pattern does not fit; empty if it does."""
        for step in pattern.steps:
            if reason := self.misfit(step):
                return f"{step.tool}: {reason}" if len(pattern.tools) > 1 else reason
        return ""


def _checked_schema(name: str, schema: object) -> str:
    if not isinstance(schema, Mapping | bool):
        raise WrongInput(f"The schema of the tool {name!r} is not an object. {_ACCEPTED}")
    try:
        text = canonical_json(schema)
        _validator(text)
    except (InvalidJson, ValueError, RecursionError) as error:
        reason = truncate(str(error), _LONGEST_REASON) or "it is nested too deeply"
        raise WrongInput(
            f"The schema of the tool {name!r} is not valid: {reason}. Fix the schema."
        ) from error
    return text


@lru_cache(maxsize=1024)
def _validator(text: str) -> Any:
    """Return the validator for the schema with this JSON text, prepared once: many openings are
    made for the same tools. It fetches nothing. Raises ValueError.
    """
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415 - loads slowly
    from referencing import Registry  # noqa: PLC0415

    schema = json.loads(text)
    default = jsonschema.Draft202012Validator
    draft = jsonschema.validators.validator_for(schema, default=default)
    try:
        # Formats are not checked: a pattern that Python cannot read does not make it invalid.
        draft.check_schema(schema, format_checker=None)
    except jsonschema.SchemaError as error:
        raise ValueError(f"{error.message} (at {error.json_path})") from error
    return draft(schema, registry=Registry())


def _misfit(text: str, arguments: dict[str, Any]) -> str:
    """Return why arguments do not fit a schema. If they contain a placeholder, such as `<email:1>`,
    only their names are checked, because the value behind it is unknown.
    """
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - loads slowly

    validator = _validator(text)
    try:
        if unlisted := _find_unlisted(validator.schema, arguments, ""):
            return truncate(f"'{unlisted}' is no longer a parameter", _LONGEST_REASON)
        is_redacted = PLACEHOLDER.search(str(arguments)) is not None
        errors = validator.iter_errors(arguments)
        relevant = (error for error in errors if not is_redacted or error.validator in _NAMES_ONLY)
        error = next(relevant, None)
    except (Unresolvable, re.error, RecursionError, ValueError, ArithmeticError):
        return "its schema cannot be followed"
    if error is None:
        return ""
    path = error.json_path.removeprefix("$").removeprefix(".")
    return truncate(f"'{path}': {error.message}" if path else error.message, _LONGEST_REASON)


def _find_unlisted(schema: Any, value: object, path: str) -> str:
    """Return the path of the first parameter that a schema does not list; empty if none."""
    if not isinstance(schema, dict):
        return ""
    if isinstance(value, list):
        paths = (
            _find_unlisted(schema.get("items"), item, f"{path}[{at}]")
            for at, item in enumerate(value)
        )
        return next(filter(None, paths), "")
    listed = schema.get("properties")
    if not isinstance(listed, dict) or not isinstance(value, dict):
        return ""
    for name, inner in value.items():
        here = f"{path}.{name}".removeprefix(".")
        if name not in listed and _COMPOSED.isdisjoint(schema):
            return here
        if unlisted := _find_unlisted(listed.get(name), inner, here):
            return unlisted
    return ""
