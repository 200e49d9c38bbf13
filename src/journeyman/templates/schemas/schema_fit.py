"""Whether arguments fit a tool's schema, and if not why, in words. Nothing is ever fetched.

Stored arguments are redacted: where a value was, a placeholder such as `<email:1>` may stand. It
is text that nobody can hold against a list of values, a pattern or a length; of a number that was
replaced nothing can be said at all.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import chain
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from jsonschema import validators
from referencing import Registry
from referencing.exceptions import Unresolvable

from journeyman.redaction.key_names import PLACEHOLDER
from journeyman.templates.schemas.listed_parameters import ListedParameters
from journeyman.templates.schemas.tool_shapes import Schema

Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]

_NEWER = re.compile(
    r'"(?:prefixItems|dependent(?:Schemas|Required)|unevaluated\w+|m(?:in|ax)Contains|\$anchor'
    r'|\$(?:dynamic|recursive)\w+)":'
)
"""Keywords that came after draft 7."""

# Those that need no further library, so that one machine does not take what another refuses.
_FORMATS = jsonschema.FormatChecker(("date", "email", "ipv4", "ipv6", "uuid"))

_UNKNOWN_WITH_PLACEHOLDERS = (
    *("const", "enum", "format", "maxLength", "minLength", "pattern"),
    *("contains", "dependentSchemas", "if", "not", "propertyNames", "uniqueItems"),
)
_ORDER = ("additionalProperties", "unevaluatedProperties", "required", "type")
"""Which of several reasons is given: the first of these, then any other."""

_WORDS = {
    "const": "should be {}",
    "enum": "should be one of {}",
    "exclusiveMaximum": "should be less than {}",
    "exclusiveMinimum": "should be more than {}",
    "format": "should have the form of {}",
    "maxItems": "should have at most {} entries",
    "maxLength": "should have at most {} characters",
    "maximum": "should be at most {}",
    "minItems": "should have at least {} entries",
    "minLength": "should have at least {} characters",
    "minimum": "should be at least {}",
    "multipleOf": "should be a multiple of {}",
    "pattern": "should match {}",
}


class BadSchema(ValueError):
    """The text says what is wrong with a schema."""


@lru_cache(maxsize=1024)
def fit_for(schema: str) -> "SchemaFit":
    """The schema with this JSON text, made ready once: openings are made again and again for the
    same tools. Raises BadSchema.
    """
    return SchemaFit(schema)


class SchemaFit:
    """One tool's schema, ready to be held against arguments. Raises BadSchema."""

    def __init__(self, text: str) -> None:
        schema: Schema = json.loads(text)
        draft = _draft(schema, text)
        if isinstance(schema, dict):
            # A schema that names its draft would be given that draft's own validator again.
            schema.pop("$schema", None)
        self._validator = _lenient(draft)(schema, registry=Registry(), format_checker=_FORMATS)
        self._listed = ListedParameters(schema)

    def misfit(self, arguments: object) -> str:
        """Why the arguments do not fit; nothing when they do."""
        try:
            if unlisted := self._listed.find_unlisted(arguments):
                return f"{_quoted(unlisted)} is not a parameter any more"
            errors = sorted(self._validator.iter_errors(arguments), key=_rank)
        except Unresolvable:
            return "its schema refers to a definition that is not there"
        except re.error:
            return "its schema has a pattern that cannot be read"
        except (RecursionError, ValueError, ArithmeticError):
            return "its schema cannot be followed"
        return _in_words(errors[0]) if errors else ""


def _draft(schema: Schema, text: str) -> Any:
    """The validator of the draft of JSON Schema in which a schema is valid."""
    problem = None
    for draft in _drafts(schema, text):
        try:
            # Without a check of formats: a pattern that Python cannot read is no invalid schema.
            draft.check_schema(schema, format_checker=None)
        except jsonschema.SchemaError as error:
            problem = problem or error
        except RecursionError as error:
            raise BadSchema("it is nested too deeply") from error
        else:
            return draft
    assert problem is not None
    where = _path(problem.absolute_path)
    message = problem.message if len(problem.message) <= 160 else problem.message[:160] + "…"
    raise BadSchema(f"{message} (at {where})" if where else message)


def _drafts(schema: Schema, text: str) -> tuple[Any, ...]:
    """The drafts to try: the one a schema names, and those that tools use without naming them. A
    schema with nothing newer in it is read as draft 7, which is checked ten times as fast.
    """
    draft = validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    is_newer = draft in (jsonschema.Draft202012Validator, jsonschema.Draft201909Validator)
    if (is_newer and not _NEWER.search(text)) or draft is jsonschema.Draft3Validator:
        draft = jsonschema.Draft7Validator
    return tuple(dict.fromkeys((draft, jsonschema.Draft7Validator, jsonschema.Draft4Validator)))


@cache
def _lenient(draft: Any) -> Any:
    """The validator of a draft that knows placeholders."""
    keywords: dict[str, Keyword] = {
        keyword: _unless_placeholders(draft.VALIDATORS[keyword])
        for keyword in _UNKNOWN_WITH_PLACEHOLDERS
        if keyword in draft.VALIDATORS
    }
    keywords["type"] = _type_unless_placeholder(draft.VALIDATORS["type"])
    # What tells alternatives apart may be what was replaced: then several fit.
    one, some = draft.VALIDATORS["oneOf"], draft.VALIDATORS["anyOf"]
    keywords["oneOf"] = lambda validator, value, instance, schema: (
        some if _has_placeholder(instance) else one
    )(validator, value, instance, schema)
    return validators.extend(draft, keywords)


def _unless_placeholders(keyword: Keyword) -> Keyword:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not _has_placeholder(instance):
            yield from keyword(validator, value, instance, schema) or ()

    return checked


def _type_unless_placeholder(keyword: Keyword) -> Keyword:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        types = [value] if isinstance(value, str) else value
        was_a_number = isinstance(instance, str) and PLACEHOLDER.fullmatch(instance)
        if not (was_a_number and {"integer", "number"} & set(types)):
            yield from keyword(validator, value, instance, schema) or ()

    return checked


def _has_placeholder(value: object) -> bool:
    if isinstance(value, str):
        return PLACEHOLDER.search(value) is not None
    if isinstance(value, dict):
        return any(map(_has_placeholder, (*value, *value.values())))
    return isinstance(value, list) and any(map(_has_placeholder, value))


def _rank(error: Any) -> tuple[int, list[str]]:
    order = _ORDER.index(error.validator) if error.validator in _ORDER else len(_ORDER)
    return order, [str(part) for part in error.absolute_path]


def _in_words(error: Any) -> str:
    """An error as a short reason. It names parameters and what the schema wants, never values."""
    where, keyword, wanted = error.absolute_path, error.validator, error.validator_value
    if keyword == "required":
        missing = next(name for name in wanted if name not in error.instance)
        return f"{_quoted(_path([*where, missing]))} is missing"
    what = _quoted(_path(where)) if where else "the arguments"
    if types := _wanted_types(error):
        return f"{what} should be {' or '.join(types)}, not {_type_of(error.instance)}"
    if keyword in _WORDS:
        return f"{what} {_WORDS[keyword].format(_listing(wanted))}"
    if keyword in ("anyOf", "oneOf"):
        return f"{what} should have {'one' if error.context else 'only one'} of the allowed forms"
    return f"its schema does not allow {what}" + (f" ({keyword})" if keyword else "")


def _wanted_types(error: Any) -> list[str]:
    """The types that a value may have, where its type is all that is wrong with it."""
    if error.validator == "type":
        given = error.validator_value
        return [given] if isinstance(given, str) else list(given)
    if error.validator in ("anyOf", "oneOf") and error.context:
        inner = [one for one in error.context if not one.relative_path]
        if len(inner) == len(error.context):
            types = [_wanted_types(one) for one in inner]
            return list(dict.fromkeys(chain.from_iterable(types))) if all(types) else []
    return []


def _type_of(value: object) -> str:
    for kind, name in (
        *((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string")),
        *((list, "array"), (dict, "object")),
    ):
        if isinstance(value, kind):
            return name
    return "null"


def _path(parts: Any) -> str:
    joined = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return joined.removeprefix(".")


def _quoted(path: str) -> str:
    return f"'{path}'" if len(path) <= 80 else f"'{path[:80]}…'"


def _listing(wanted: object) -> str:
    shown = [repr(one) for one in wanted] if isinstance(wanted, list) else [str(wanted)]
    text = ", ".join(shown)
    return text if len(text) <= 80 else text[:80] + "…"
