"""What a tool is to the MCP server, and how its answers and schemas are written."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.journeyman import Journeyman


class Answered(Struct, frozen=True, kw_only=True):
    """What a tool says, and whether that is an error."""

    text: str
    is_error: bool = False


class OfferedTool(Struct, frozen=True, kw_only=True):
    """One tool. It only reads, or it writes; what it writes may take something away."""

    name: str
    title: str
    description: str
    schema: dict[str, Any]
    run: Callable[[Journeyman, Mapping[str, Any]], Answered]
    reads_only: bool = False
    deletes: bool = False
    waits: bool = False
    """Whether it waits for people: then it has a thread of its own, and holds no other call up."""


def as_json(answer: object) -> Answered:
    return Answered(text=msgspec.json.encode(answer).decode())


def object_schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": False,
    }
