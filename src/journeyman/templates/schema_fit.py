"""Whether arguments fit a tool's schema, and if not why, in words. Nothing is ever fetched. Models
go on passing a removed parameter as long as their history shows it, so an unlisted parameter does
not fit, unless the schema says that it takes others. Of arguments with a placeholder, such as
`<email:1>`, only the names are checked: what it stands for is not known.
"""

import json
import re
from functools import lru_cache
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from jsonschema import validators
from referencing import Registry
from referencing.exceptions import Unresolvable

from journeyman.redaction.values import PLACEHOLDER

# Those that need no further library, so that one machine does not take what another refuses.
_FORMATS = jsonschema.FormatChecker(("date", "email", "ipv4", "ipv6", "uuid"))
_NAMES_ONLY = ("required", "additionalProperties", "unevaluatedProperties")
_COMPOSED = frozenset(
    (
        *("additionalProperties", "unevaluatedProperties", "patternProperties", "$ref"),
        *("allOf", "anyOf", "oneOf", "if", "dependentSchemas"),
    )
)
"""By which an object may take parameters that its `properties` do not list."""

_LONGEST_REASON = 200


class BadSchema(ValueError):
    """The text says what is wrong with a schema."""


class SchemaFit:
    """One tool's schema, ready to be held against arguments. Raises BadSchema."""

    def __init__(self, text: str) -> None:
        self._schema = json.loads(text)
        draft = _draft(self._schema)
        if isinstance(self._schema, dict):
            # A schema that names its draft would be given that draft's own validator again.
            self._schema.pop("$schema", None)
        self._validator = draft(self._schema, registry=Registry(), format_checker=_FORMATS)

    def misfit(self, arguments: object) -> str:
        """Why the arguments do not fit; nothing when they do."""
        try:
            if unlisted := _find_unlisted(self._schema, arguments, ""):
                return _cut(f"'{unlisted}' is not a parameter any more")
            is_redacted = PLACEHOLDER.search(str(arguments)) is not None
            errors = self._validator.iter_errors(arguments)
            told = (one for one in errors if not is_redacted or one.validator in _NAMES_ONLY)
            error = next(told, None)
        except (Unresolvable, re.error, RecursionError, ValueError, ArithmeticError):
            return "its schema cannot be followed"
        if error is None:
            return ""
        path = error.json_path.removeprefix("$").removeprefix(".")
        return _cut(f"'{path}': {error.message}" if path else error.message)


fit_for = lru_cache(maxsize=1024)(SchemaFit)
"""The schema with this JSON text, made ready once: openings are made again and again for the same
tools."""


def _draft(schema: Any) -> Any:
    """The validator of the draft that a schema names, or of one that tools use unnamed."""
    named = validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    problems = []
    for draft in (named, jsonschema.Draft7Validator, jsonschema.Draft4Validator):
        try:
            # Without a check of formats: a pattern that Python cannot read is no invalid schema.
            draft.check_schema(schema, format_checker=None)
        except jsonschema.SchemaError as error:
            problems.append(f"{_cut(error.message)} (at {error.json_path})")
        except RecursionError as error:
            raise BadSchema("it is nested too deeply") from error
        else:
            return draft
    raise BadSchema(problems[0])


def _find_unlisted(schema: Any, value: object, path: str) -> str:
    """The first parameter that a schema does not list, as a path, or nothing."""
    if not isinstance(schema, dict):
        return ""
    if isinstance(value, list):
        each = (
            _find_unlisted(schema.get("items"), one, f"{path}[{at}]")
            for at, one in enumerate(value)
        )
        return next(filter(None, each), "")
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


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + "…"
