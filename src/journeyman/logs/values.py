"""Small conversions that several formats share: times, message content, identifiers."""

import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec

from journeyman.logs.logfile import LogFile

_UNIQUE_LETTERS = 12


def seconds(value: Any) -> float | None:
    """A recorded time as seconds since 1970: ISO text, seconds or milliseconds. A time without a
    zone is taken as UTC. None for what is no time.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15:
        return value / 1000 if value > 1e11 else float(value)
    return None


def as_text(content: Any) -> str:
    """Message content as text: a string as it is, parts joined by line breaks, pictures and other
    attachments as a short note of what was there.
    """
    if content is None:
        return ""
    if isinstance(content, list):
        parts = (as_text(one) if isinstance(one, str | dict) else as_json(one) for one in content)
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
    """Any decoded value as JSON text; text that is already there stays as it is."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def json_value(text: str) -> Any:
    """The value that a JSON text holds, None where it is none."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None


def only_text(value: Any) -> str:
    """The value if it is text, otherwise nothing."""
    return value if isinstance(value, str) else ""


def only_object(value: Any) -> dict[str, Any]:
    """The value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def whole_number(value: Any) -> int | None:
    """A count as recorded, or None when there is none that a database could hold."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        return None
    return int(value)


def path_id(log: LogFile, part: str = "") -> str:
    """An id for a session whose recorder gave it none: a digest of the log's path, which keeps
    logs of one name apart and is enough to name the session by, and then what tells a person
    which one it is.
    """
    digest = hashlib.blake2b(log.name.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{digest}-{part or log.stem()}"


def session_id(log: LogFile, given: str, part: str = "") -> str:
    """The recorder's id, if no other log will have it too; otherwise one made with `path_id`.
    Files that number their conversations 1, 2, 3 are common, and two of them must not mix.
    """
    letters = [letter for letter in given if letter.isalnum()]
    if len(letters) >= _UNIQUE_LETTERS and any(letter.isdigit() for letter in letters):
        return given
    return path_id(log, given or part)
