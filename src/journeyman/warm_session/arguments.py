"""Arguments as models write them, read against the schema of a tool. What is meant clearly is
taken; everything else is an error that says how to write it.
"""

import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from journeyman.records.errors import WrongInput

Schema = Mapping[str, Any]
Given = dict[str, Any]

_NO_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)


def read_arguments(tool: str, arguments: object, schema: Schema) -> Given:
    """The arguments that were given, each of the type that the schema asks for. Null and empty
    texts count as left out. Raises WrongInput.
    """
    given = _as_object(tool, arguments)
    known: Mapping[str, Schema] = schema["properties"]
    for name in given:
        if name not in known:
            raise WrongInput(
                f"{tool} has no parameter {_shown(name)}. It takes: {', '.join(known)}."
            )
    read = {
        name: _READERS[wanted["type"]](name, given[name], wanted)
        for name, wanted in known.items()
        if not _is_left_out(given.get(name))
    }
    for name in schema.get("required", ()):
        if name not in read:
            raise WrongInput(f"{tool} needs {name}, which was not given. {_said(known[name])}")
    return read


def _as_object(tool: str, arguments: object) -> Mapping[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except _NO_JSON:
            raise WrongInput(
                f"The arguments of {tool} are a text that is no JSON. Give a JSON object."
            ) from None
    if not isinstance(arguments, Mapping) or not all(isinstance(name, str) for name in arguments):
        found = _shown(arguments)
        raise WrongInput(f"The arguments of {tool} are {found}. Give a JSON object instead.")
    return arguments


def _is_left_out(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _text(name: str, value: object, wanted: Schema) -> str:
    choices = wanted.get("enum")
    if choices and value not in choices:
        raise WrongInput(f"There is no {name} {_shown(value)}. {_said(wanted)}")
    if not isinstance(value, str):
        raise WrongInput(f"{name} is {_shown(value)}, and must be a text.")
    return _sendable(value)


def _sendable(text: str) -> str:
    """The text without halves of surrogate pairs, which no database and no file takes."""
    return text.encode(errors="replace").decode()


def _whole_number(name: str, value: object, wanted: Schema) -> int:
    low, high = wanted["minimum"], wanted["maximum"]
    if isinstance(value, str):  # models do write numbers as texts
        value = _decoded(value.strip())
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(whole, int) and not isinstance(whole, bool) and low <= whole <= high:
        return whole
    raise WrongInput(f"{name} is {_shown(value)}, and must be a whole number from {low} to {high}.")


def _list(name: str, value: object, wanted: Schema) -> list[Any]:
    inner = wanted["items"]["type"]
    if isinstance(value, str):
        decoded = _decoded(value)
        is_list = isinstance(decoded, list) or inner == "object"
        value = decoded if is_list else [one.strip() for one in value.split(",")]
    kind = {"string": str, "object": Mapping}[inner]
    if not isinstance(value, list | tuple) or not all(isinstance(one, kind) for one in value):
        what = {"string": "texts", "object": "objects"}[inner]
        raise WrongInput(f"{name} is {_shown(value)}, and must be a list of {what}.")
    kept = [one for one in value if not _is_left_out(one)]
    return [_sendable(one) for one in kept] if inner == "string" else kept


def _decoded(text: str) -> object:
    try:
        decoded: object = msgspec.json.decode(text)
    except _NO_JSON:
        return text
    return decoded


_READERS: dict[str, Callable[[str, object, Schema], Any]] = {
    "string": _text,
    "integer": _whole_number,
    "array": _list,
}


def _said(wanted: Schema) -> str:
    choices = wanted.get("enum")
    return f"Choose one of: {', '.join(choices)}." if choices else wanted["description"]


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except (ValueError, RecursionError):  # a number with thousands of digits cannot be written
        return f"a {type(value).__name__} that cannot be shown"
