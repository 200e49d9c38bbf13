"""Values as both databases can hold them: JSON as text, and long lists in parts."""

import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, TypeVar

import msgspec

_PART = 500

_Value = TypeVar("_Value")

_encode = msgspec.json.Encoder().encode


def json_text(value: object) -> str:
    """A value as JSON. A NUL is spelled out there, so that PostgreSQL takes it; half characters,
    which no encoding has, are replaced.
    """
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return text.encode("utf-8", "replace").decode()


def inserting(dialect_name: str) -> Any:
    """The database's own insert, which can also replace. Loaded for the one in use: the other
    takes a good part of the time that a command needs to start.
    """
    return import_module(f"sqlalchemy.dialects.{dialect_name}").insert


def parts(values: Sequence[_Value]) -> Iterator[Sequence[_Value]]:
    """The values in parts, because databases take only so many at once."""
    return (values[start : start + _PART] for start in range(0, len(values), _PART))
