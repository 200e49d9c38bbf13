"""Checks whether arguments fit a tool's schema, and says why not in words. Nothing is ever fetched.
Models keep passing a removed parameter as long as their history shows it, so an unlisted parameter
does not fit, unless the schema says that it accepts others. If arguments contain a placeholder,
such as `<email:1>`, only their names are checked, because the value behind it is unknown.
"""

import json
import re
from functools import lru_cache
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from jsonschema import validators
from referencing import Registry
from referencing.exceptions import Unresolvable

from journeyman.redaction.secret_values import PLACEHOLDER
from journeyman.text.truncation import truncate

# Only formats that need no further library, so that all machines agree.
_FORMATS = jsonschema.FormatChecker(("date", "email", "ipv4", "ipv6", "uuid"))
_NAMES_ONLY = ("required", "additionalProperties", "unevaluatedProperties")
_COMPOSED = frozenset(
    (
        *("additionalProperties", "unevaluatedProperties", "patternProperties", "$ref"),
        *("allOf", "anyOf", "oneOf", "if", "dependentSchemas"),
    )
)
"""Keywords by which an object may accept parameters that its `properties` do not list."""

_LONGEST_REASON = 200


class BadSchema(ValueError):
    """A schema is not valid; the text says why."""


class SchemaFit:
    """One tool's schema, ready to check arguments against. Raises BadSchema."""

    def __init__(self, text: str) -> None:
        self._schema = json.loads(text)
        draft = _draft(self._schema)
        if isinstance(self._schema, dict):
            # A schema that names its draft would get that draft's own validator again.
            self._schema.pop("$schema", None)
        self._validator = draft(self._schema, registry=Registry(), format_checker=_FORMATS)

    def misfit(self, arguments: object) -> str:
        """Return why the arguments do not fit; empty if they do."""
        try:
            if unlisted := _find_unlisted(self._schema, arguments, ""):
                return _shortened(f"'{unlisted}' is no longer a parameter")
            is_redacted = PLACEHOLDER.search(str(arguments)) is not None
            errors = self._validator.iter_errors(arguments)
            relevant = (
                error for error in errors if not is_redacted or error.validator in _NAMES_ONLY
            )
            error = next(relevant, None)
        except (Unresolvable, re.error, RecursionError, ValueError, ArithmeticError):
            return "its schema cannot be followed"
        if error is None:
            return ""
        path = error.json_path.removeprefix("$").removeprefix(".")
        return _shortened(f"'{path}': {error.message}" if path else error.message)


fit_for = lru_cache(maxsize=1024)(SchemaFit)
"""The schema with this JSON text, prepared once: many openings are made for the same tools."""


def _draft(schema: Any) -> Any:
    """Return the validator of the draft that a schema names, or of one that it is valid under."""
    declared = validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    problems = []
    for draft in (declared, jsonschema.Draft7Validator, jsonschema.Draft4Validator):
        try:
            # Formats are not checked: a pattern that Python cannot read does not make it invalid.
            draft.check_schema(schema, format_checker=None)
        except jsonschema.SchemaError as error:
            problems.append(f"{_shortened(error.message)} (at {error.json_path})")
        except RecursionError as error:
            raise BadSchema("it is nested too deeply") from error
        else:
            return draft
    raise BadSchema(problems[0])


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


def _shortened(text: str) -> str:
    return truncate(text, _LONGEST_REASON)
