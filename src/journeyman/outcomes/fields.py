"""What the fields of an object say by themselves: an error, an exit code, a message, the text that
it carries. What that means for the call, `structure` decides.
"""

import re
from typing import Any

Fields = dict[str, Any]

_NOTHING = ("", "none", "null", "n/a", "(none)", "false", "no error", "ok", "success")

# A dictionary keeps its order, and tells as fast as a set that it shares nothing with another.
ERROR_FIELDS = dict.fromkeys(
    (
        *("error", "Error", "err", "error_message", "errorMessage", "errorMessages"),
        *("Error Message", "exception", "failure"),
    )
).keys()


def error_text(fields: Fields) -> str:
    """What an object says went wrong; nothing when it says that nothing did. A number is data:
    a model's error rate, say.
    """
    if ERROR_FIELDS.isdisjoint(fields):
        return ""
    for name in ERROR_FIELDS:
        value = fields.get(name)
        if isinstance(value, str):
            if value.strip().lower() not in _NOTHING:
                return value
        elif isinstance(value, dict):
            message = value.get("message") or value.get("Message") or value.get("msg")
            if message or value:
                return message if isinstance(message, str) else in_words(value)
        elif value is True or (isinstance(value, list) and value):
            return message_of(fields) or in_words(value)
    return ""


def in_words(value: Any) -> str:
    """A value in words, whatever is in it."""
    try:
        return str(value)
    except ValueError:  # a number with more digits than Python writes
        return "an error that cannot be written"


def message_of(fields: Fields) -> str:
    for name in ("message", "detail", "reason", "stderr", "output", "content", "result", "errors"):
        value = fields.get(name)
        if isinstance(value, list) and value:
            first = value[0]
            value = block_texts(value) or (
                first.get("message") if isinstance(first, dict) else first
            )
        if isinstance(value, str) and value.strip():
            return value
    return ""


EXIT_FIELDS = ("exit_code", "exitCode", "returncode", "return_code", "exit_status")
_WITH_EXIT = frozenset((*EXIT_FIELDS, "metadata"))
OF_COMMANDS = frozenset((*EXIT_FIELDS, "output", "stdout", "stderr", "metadata"))
"""Fields of a report on a command, as against what a command printed."""


def exit_code(fields: Fields) -> int | None:
    """The exit code an object states."""
    if _WITH_EXIT.isdisjoint(fields):
        return None
    for holder in (fields, fields.get("metadata")):
        if isinstance(holder, dict):
            for name in EXIT_FIELDS:
                value = number(holder.get(name))
                if value is not None:
                    return value
    return None


_NUMBER = re.compile(r"-?[0-9]{1,9}")
_HIGHEST = 2**31
"""No exit code and no status of a service is above this."""


def number(value: Any) -> int | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _HIGHEST:
        return value
    return None


def exit_code_among(items: list[Any]) -> int | None:
    """The first exit code other than 0 in a list of commands' reports."""
    for item in items:
        if not isinstance(item, dict):
            continue
        code = exit_code(item)
        outcome = item.get("outcome")
        if isinstance(outcome, dict):
            code = 124 if outcome.get("type") == "timeout" else exit_code(outcome)
        if code:
            return code
    return None


def errors_among(items: list[Any]) -> tuple[int, int]:
    """How many of the objects in a list say that they failed, and how many there are."""
    objects = [item for item in items if isinstance(item, dict)]
    bad = sum(1 for item in objects if error_text(item) or item.get("success") is False)
    return bad, len(objects)


def web_status(fields: Fields) -> int:
    for name in ("status_code", "statusCode", "status"):
        value = fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    if "message" in fields:
        return number(fields.get("code", fields.get("cod"))) or 0
    return 0


def printed(fields: Fields) -> str:
    """What a command printed, with what went wrong last."""
    parts = (fields.get(name) for name in ("output", "stdout", "stderr", "error", "content"))
    return "\n".join(part for part in parts if isinstance(part, str) and part.strip())


def no_error_by_its_meaning(fields: Fields) -> str:
    """What an exit code means, where Hermes adds that this is no error."""
    meaning = fields.get("exit_code_meaning")
    return meaning if isinstance(meaning, str) and "not an error" in meaning else ""


def says_fine(fields: Fields) -> bool:
    """Whether the harness says that there is no error, beside an exit code other than 0."""
    return "error" in fields and not error_text(fields) and "exit_code_meaning" not in fields


_BESIDE = (
    "detailedContent",
    "type",
    "id",
    "jsonrpc",
    "meta",
    "structuredContent",
    "annotations",
    "name",
)
_INNER = (
    "llmContent",
    "result",
    "output",
    "content",
    "response",
    "text",
    "value",
    "data",
    "observation",
)


def inner_text(fields: Fields) -> str | None:
    """The text or blocks that an object does no more than carry."""
    if fields.get("type") == "text" and isinstance(fields.get("text"), str):
        return str(fields["text"])
    carried = [name for name in _INNER if name in fields]
    if len(carried) != 1 or not fields.keys() <= {carried[0], *_BESIDE}:
        return None
    value = fields[carried[0]]
    if isinstance(value, list):
        return block_texts(value)
    return value if isinstance(value, str) else None


def block_texts(items: list[Any]) -> str | None:
    """The texts of content blocks ({"type": "text", "text": …}) as one, if the items are that."""
    if not items:
        return None
    texts = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            return None
        if isinstance(item.get("text"), str):
            texts.append(item["text"])
    return "\n".join(texts) if texts else None
