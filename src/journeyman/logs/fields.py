"""Conversions that several log formats share: times, message content, session ids."""

import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec

from journeyman.logs.log_file import LogFile
from journeyman.records import ToolCall
from journeyman.text.strict_json import decode_repaired

_UNIQUE_CHARACTERS = 12


def seconds(value: Any) -> float | None:
    """Return a recorded time (ISO text, seconds or milliseconds) as seconds since 1970, or None if
    the value is not a time. A time without a zone is taken as UTC.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15:
        return value / 1000 if value > 1e11 else float(value)
    return None


def as_text(content: Any) -> str:
    """Return message content as text: a string unchanged, parts joined by line breaks, images and
    other attachments as a short placeholder such as `[image]`.
    """
    if content is None:
        return ""
    if isinstance(content, list):
        parts = (as_text(p) if isinstance(p, str | dict) else as_json(p) for p in content)
        return "\n".join(filter(None, parts))
    if not isinstance(content, dict):
        return as_json(content)
    for field in ("text", "thinking", "refusal"):
        if isinstance(content.get(field), str):
            return str(content[field])
    if "content" in content:
        return as_text(content["content"])
    return f"[{content.get('type', 'part')}]"


def as_json(value: Any) -> str:
    """Return a decoded value as JSON text; a string is returned unchanged."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def json_value(text: Any) -> Any:
    """Return the value of a JSON text, None of anything else."""
    try:
        return decode_repaired(text) if isinstance(text, str | bytes) else None
    except ValueError:
        return None


def tool_call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    """Return a recorded call; without arguments, they are an empty object."""
    recorded = "{}" if arguments is None else as_json(arguments)
    return ToolCall(id=only_text(call_id), name=only_text(name), arguments=recorded)


def only_text(value: Any) -> str:
    """Return the value if it is a string, otherwise an empty string."""
    return value if isinstance(value, str) else ""


def only_object(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def whole_number(value: Any) -> int | None:
    """Return a recorded count, or None if it is not a number that a database can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        return None
    return int(value)


def uncached(prompt: int | None, *cached: int | None) -> int | None:
    """Return the tokens of a prompt without those that the cache served or stored."""
    return None if prompt is None else max(0, prompt - sum(filter(None, cached)))


def path_id(log: LogFile, part: str = "") -> str:
    """Return an id for a session that has none: a digest of the log's path, which distinguishes
    logs with the same file name and suffices to refer to the session, then a part that people
    recognise.
    """
    digest = hashlib.blake2b(log.name.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{digest}-{part or log.stem()}"


def session_id(log: LogFile, recorded_id: str, part: str = "") -> str:
    """Return the recorded id if it is long enough to be unique across logs, otherwise a `path_id`.
    Many files number their conversations 1, 2, 3, and two such files must not mix.
    """
    characters = [character for character in recorded_id if character.isalnum()]
    if len(characters) >= _UNIQUE_CHARACTERS and any(c.isdigit() for c in characters):
        return recorded_id
    return path_id(log, recorded_id or part)
