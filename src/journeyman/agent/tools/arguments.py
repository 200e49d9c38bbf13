"""The arguments of a call, read from the text that a model wrote and held against the tool's
schema. What is wrong with them is answered in words that help the model to call again.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from journeyman.agent.tools.tool import Result, Tool, failed

_INTEGER = re.compile(r"[+-]?\d{1,15}")
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")
_TRUTH = {"true": True, "false": False}

_FROM_TEXT: dict[str, Callable[[str], object]] = {
    "integer": lambda text: int(text) if _INTEGER.fullmatch(text) else text,
    "number": lambda text: float(text) if _NUMBER.fullmatch(text) else text,
    "boolean": lambda text: _TRUTH.get(text.lower(), text),
}
"""Small models put numbers and truth in quotes; what they mean is plain."""

_ORDER = ("additionalProperties", "required", "type")
"""Which of several problems is told first; then any other."""


def read_arguments(tool: Tool, text: str) -> dict[str, Any] | Result:
    """The arguments that a text holds, or the answer that says why it holds none that fit."""
    try:
        given = msgspec.json.decode(text) if text.strip() else {}
        if isinstance(given, str):  # an object that was written down twice
            given = msgspec.json.decode(given)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return failed(
            f"Invalid JSON in the arguments of {tool.name}: {error}. Send one JSON object."
        )
    if not isinstance(given, dict):
        return _invalid(tool, "they are not a JSON object")
    arguments = _meant(given, tool.parameters)
    problem = _unknown(arguments, tool.parameters) or _misfit(arguments, tool.parameters)
    return _invalid(tool, problem) if problem else arguments


def _meant(given: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as they were meant: plain values in quotes taken out of them, and null where
    nothing has to be given left out.
    """
    meant = {}
    properties, required = schema.get("properties", {}), schema.get("required", ())
    for name, value in given.items():
        wanted = properties.get(name, {}).get("type")
        if value is None and name not in required:
            continue
        meant[name] = _plain(value, wanted)
    return meant


def _plain(value: object, wanted: object) -> object:
    if isinstance(value, str) and isinstance(wanted, str) and wanted in _FROM_TEXT:
        return _FROM_TEXT[wanted](value.strip())
    if isinstance(value, float) and wanted == "integer" and value.is_integer():
        return int(value)
    return value


def _unknown(arguments: dict[str, Any], schema: Mapping[str, Any]) -> str:
    names = [name for name in arguments if name not in schema.get("properties", {})]
    if not names or schema.get("additionalProperties"):
        return ""
    shown = ", ".join(f"'{name[:60]}'" for name in names[:3])
    return f"{shown} {'is no parameter' if len(names) == 1 else 'are no parameters'}"


def _misfit(arguments: dict[str, Any], schema: Mapping[str, Any]) -> str:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # noqa: PLC0415

    errors = sorted(Draft202012Validator(schema).iter_errors(arguments), key=_rank)
    return _in_words(errors[0]) if errors else ""


def _rank(error: Any) -> tuple[int, str]:
    order = _ORDER.index(error.validator) if error.validator in _ORDER else len(_ORDER)
    return order, str(list(error.absolute_path))


def _in_words(error: Any) -> str:
    keyword, wanted = error.validator, error.validator_value
    where = ".".join(map(str, error.absolute_path))
    if keyword == "required":
        missing = [name for name in wanted if name not in error.instance]
        names = ", ".join(f"'{where}.{name}'" if where else f"'{name}'" for name in missing)
        return f"{names} {'is' if len(missing) == 1 else 'are'} missing"
    if keyword == "type":
        types = wanted if isinstance(wanted, str) else " or ".join(wanted)
        return f"'{where}' should be of type {types}"
    if keyword == "enum":
        return f"'{where}' should be one of {', '.join(map(repr, wanted))}"
    if keyword in ("minimum", "maximum"):
        return f"'{where}' should be at {'least' if keyword == 'minimum' else 'most'} {wanted}"
    if keyword == "exclusiveMinimum":
        return f"'{where}' should be more than {wanted}"
    return f"'{where}' does not fit: {error.message[:160]}"


def _invalid(tool: Tool, problem: str) -> Result:
    required = tool.parameters.get("required", ())
    names = [
        name if name in required else f"{name} (optional)"
        for name in tool.parameters.get("properties", {})
    ]
    takes = f"{tool.name} takes {', '.join(names)}." if names else f"{tool.name} takes nothing."
    return failed(f"Invalid arguments for {tool.name}: {problem}. {takes}")
