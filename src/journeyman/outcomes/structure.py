"""Results with a structure: JSON objects and lists that say by their fields what became of the
call. Only fields that harnesses and tools use for that are looked at, never the data beside them.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from journeyman.outcomes import words
from journeyman.outcomes.rules import RULES, Rule, excerpt
from journeyman.outcomes.words import kind_of
from journeyman.records import Kind, Status, Verdict

_MEANINGS = {word: row for row in RULES["status"] for word in row.phrases}


def meaning(status: object) -> Rule | None:
    """What a status says, if it is one of the words for that."""
    return _MEANINGS.get(status.lower()) if isinstance(status, str) else None


Fields = dict[str, Any]

_NOTHING = ("", "none", "null", "n/a", "(none)", "false", "no error", "ok", "success")

ERROR_FIELDS = (
    *("error", "Error", "err", "error_message", "errorMessage", "errorMessages"),
    *("Error Message", "exception", "failure"),
)


def error_text(fields: Fields) -> str:
    """What an object says went wrong; nothing when it says that nothing did. A number is data:
    a model's error rate, say.
    """
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
OF_COMMANDS = frozenset((*EXIT_FIELDS, "output", "stdout", "stderr", "metadata"))
"""Fields of a report on a command, as against what a command printed."""


def exit_code(fields: Fields) -> int | None:
    """The exit code an object states."""
    for holder in (fields, fields.get("metadata")):
        if isinstance(holder, dict):
            for name in EXIT_FIELDS:
                if (value := number(holder.get(name))) is not None:
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
    *("detailedContent", "type", "id", "jsonrpc", "meta", "structuredContent", "annotations"),
    "name",
)
_INNER = (
    *("llmContent", "result", "output", "content", "response", "text", "value", "data"),
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
    if not all(isinstance(one, dict) and isinstance(one.get("type"), str) for one in items):
        return None
    texts = [item["text"] for item in items if isinstance(item.get("text"), str)]
    return "\n".join(texts) if texts else None


_FALSE = (False, "false")  # and 0, which is equal to False
_DONE = (
    *("sent", "accepted", "approved", "created", "updated", "deleted", "saved", "executed"),
    *("applied", "delivered", "succeeded"),
)
_REASONS = ("reason", "why", "message", "msg", "note", "decline_code")
_SHORT = 4
_OF_CALLS = frozenset(("error", "exit_code", "output"))
_TALK = frozenset(("status", "message", "feedback", "reason", "type", "detail"))
_REFUSING = re.compile(r"BLOCKED\b|Blocked\b|Stopped \w+:|User denied|Denied by|Write denied\b")


class Report(NamedTuple):
    """An object as the rules see it: its fields, what it says went wrong, and what its status
    says.
    """

    fields: Fields
    error: str
    status: str


def report(fields: Fields) -> Report:
    return Report(fields, error_text(fields), _status_id(fields.get("status")))


def _status_id(status: object) -> str:
    said = meaning(status)
    return said.id if said else ""


def _speaks_of_a_call(fields: Fields) -> bool:
    """Whether an object speaks of a call, not of a thing: an order can be cancelled, too."""
    return not _OF_CALLS.isdisjoint(fields) or fields.keys() <= _TALK


def _items_with_error(fields: Fields) -> tuple[int, int]:
    items = fields.get("results")
    return errors_among(items) if isinstance(items, list) else (0, 0)


def _is_graphql_failure(fields: Fields) -> bool:
    known = {"errors", "data", "message", "status", "extensions"}
    errors = isinstance(fields.get("errors"), list | dict) and fields["errors"]
    return bool(errors) and not fields.get("data") and fields.keys() <= known


_CONDITIONS: dict[str, Callable[[Report], Any]] = {
    "fields.guardrail": lambda it: it.fields.get("guardrail_refusal") is True,
    "fields.pending": lambda it: (
        it.status == "pending" or it.fields.get("approval_pending") is True
    ),
    "fields.blocked": lambda it: (
        (it.status == "held" and _speaks_of_a_call(it.fields))
        or (it.error and _REFUSING.match(it.error))
    ),
    "fields.interrupted": lambda it: (
        (it.status == "stopped" and _speaks_of_a_call(it.fields))
        or it.fields.get("interrupted") is True
        or (it.error and _status_id(it.error.strip()) == "stopped")
    ),
    "fields.timeout": lambda it: it.status == "over_time" or it.fields.get("timed_out") is True,
    "fields.is_error": lambda it: (
        it.fields.get("isError") is True or it.fields.get("is_error") is True
    ),
    "fields.unsuccessful": lambda it: (
        it.fields.get("success") is False or it.fields.get("ok") in _FALSE
    ),
    "fields.error": lambda it: it.error,
    "fields.status": lambda it: (
        it.fields.get("status") == "error"
        or (it.status == "failed" and _speaks_of_a_call(it.fields))
    ),
    "fields.type": lambda it: (
        it.fields.get("type") in ("error", "error-text", "error-json", "tool_error")
    ),
    "fields.http_status": lambda it: 400 <= web_status(it.fields) < 600,
    "fields.errors": lambda it: _is_graphql_failure(it.fields),
    "fields.not_done": lambda it: (
        len(it.fields) <= _SHORT
        and any(it.fields.get(name) is False for name in _DONE)
        and any(isinstance(it.fields.get(name), str) for name in _REASONS)
    ),
    "fields.code": lambda it: (
        "msg" in it.fields
        and not it.fields.get("data")
        and (number(it.fields.get("code")) or 0) not in (0, *range(200, 300))
    ),
    "fields.detail": lambda it: (
        it.fields.keys() == {"detail"}
        or ("documentation_url" in it.fields and "message" in it.fields)
    ),
    "fields.all_items": lambda it: (
        (counts := _items_with_error(it.fields))[0] and counts[0] == counts[1]
    ),
    "fields.some_items": lambda it: _items_with_error(it.fields)[0],
    "fields.background": lambda it: (
        it.fields.get("output") == "Background process started"
        or it.fields.get("notify_on_complete") is not None
        or isinstance(it.fields.get("backgroundTaskId"), str)
    ),
    "fields.lint": lambda it: (
        isinstance(lint := it.fields.get("lint"), dict) and lint.get("status") == "error"
    ),
    "fields.success": lambda it: (
        it.fields.get("success") is True
        or it.fields.get("ok") is True
        or it.fields.get("isError") is False
        or it.status in ("good", "ended")
        or "error" in it.fields
    ),
}
"""When the rows on fields hold, by their ids."""


def verdict(table: str, seen: Report) -> Verdict | None:
    """The verdict of the first row of a table that holds. What failed may have been refused,
    stopped or not be callable: the words of its message tell.
    """
    rule = next((row for row in RULES[table] if _CONDITIONS[row.id](seen)), None)
    if rule is None:
        return None
    if rule.status == "ok":
        return Verdict(status="ok", kind=rule.kind, rule=rule.id)
    message = seen.error or message_of(seen.fields) or in_words(seen.fields)
    if code := web_status(seen.fields):
        message = f"status code {code}: {message}"
    status: Status = rule.status
    kind: Kind = rule.kind
    if status == "failed" and not kind:
        found = words.at_the_head(message)
        if found is not None and found.rule.status != "unknown":
            status, kind = found.rule.status, found.rule.kind
        kind = kind or kind_of(message)
    return Verdict(status=status, kind=kind, rule=rule.id, evidence=excerpt(message))


def is_data(fields: Fields) -> bool:
    """Whether an object has no field that any rule looks at, or only the status of a thing."""
    spoken = _SPEAKING.intersection(fields)
    if spoken == {"status"}:
        return isinstance(fields["status"], str) and meaning(fields["status"]) is None
    return not spoken


_SPEAKING = frozenset(
    (
        *ERROR_FIELDS,
        *EXIT_FIELDS,
        *_DONE,
        *("errors", "type", "success", "ok", "status", "status_code", "statusCode", "isError"),
        *("is_error", "timed_out", "interrupted", "metadata", "output", "results", "result"),
        *("code", "cod", "detail", "documentation_url", "lint", "backgroundTaskId"),
        *("guardrail_refusal", "approval_pending", "notify_on_complete"),
    )
)
"""Every field that a rule here looks at: an object with none of them is data."""
