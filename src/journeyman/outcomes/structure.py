"""Reads verdicts from structured results: JSON objects and lists. Only fields that harnesses and
tools use to report on a call count, never the data next to them.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from journeyman.outcomes import phrases
from journeyman.outcomes.phrases import kind_of
from journeyman.outcomes.rules import RULES, Rule, excerpt
from journeyman.records import Verdict, VerdictKind, VerdictStatus

_MEANINGS = {word: row for row in RULES["status"] for word in row.phrases}


def status_rule(status: object) -> Rule | None:
    """Return the rule for a status word, if there is one."""
    return _MEANINGS.get(status.lower()) if isinstance(status, str) else None


Fields = dict[str, Any]

_NOTHING = ("", "none", "null", "n/a", "(none)", "false", "no error", "ok", "success")

ERROR_FIELDS = (
    *("error", "Error", "err", "error_message", "errorMessage", "errorMessages"),
    *("Error Message", "exception", "failure"),
)


def error_text(fields: Fields) -> str:
    """Return the error that an object reports, or an empty text. A number is data, such as a
    model's error rate.
    """
    for name in ERROR_FIELDS:
        value = fields.get(name)
        if isinstance(value, str):
            if value.strip().lower() not in _NOTHING:
                return value
        elif isinstance(value, dict):
            message = value.get("message") or value.get("Message") or value.get("msg")
            if message or value:
                return message if isinstance(message, str) else printable(value)
        elif value is True or (isinstance(value, list) and value):
            return message_of(fields) or printable(value)
    return ""


def printable(value: Any) -> str:
    """Return a value as text, whatever it contains."""
    try:
        return str(value)
    except ValueError:  # an integer with more digits than Python prints
        return "an error that cannot be printed"


_MESSAGE_NAMES = (
    *("message", "detail", "reason", "stderr", "output", "content", "result", "errors", "note"),
)


def message_of(fields: Fields) -> str:
    for name in _MESSAGE_NAMES:
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
COMMAND_FIELDS = frozenset((*EXIT_FIELDS, "output", "stdout", "stderr", "metadata"))
"""Fields of a harness's report on a command, as opposed to JSON that a command printed."""


def exit_code(fields: Fields) -> int | None:
    """Return the exit code that an object states."""
    for holder in (fields, fields.get("metadata")):
        if isinstance(holder, dict):
            for name in EXIT_FIELDS:
                if (value := number(holder.get(name))) is not None:
                    return value
    return None


_NUMBER = re.compile(r"-?[0-9]{1,9}")
_HIGHEST = 2**31
"""Exit codes and HTTP statuses are below this."""


def number(value: Any) -> int | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _HIGHEST:
        return value
    return None


def exit_code_among(items: list[Any]) -> int | None:
    """Return the first exit code other than 0 in a list of command reports."""
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


def count_errors(items: list[Any]) -> tuple[int, int]:
    """Return how many objects in a list report a failure, and how many objects there are."""
    objects = [item for item in items if isinstance(item, dict)]
    failed = sum(1 for item in objects if error_text(item) or item.get("success") is False)
    return failed, len(objects)


def http_status(fields: Fields) -> int:
    for name in ("status_code", "statusCode", "status"):
        value = fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    if "message" in fields:
        return number(fields.get("code", fields.get("cod"))) or 0
    return 0


def output_text(fields: Fields) -> str:
    """Return what a command printed, errors last."""
    parts = (fields.get(name) for name in ("output", "stdout", "stderr", "error", "content"))
    return "\n".join(part for part in parts if isinstance(part, str) and part.strip())


def harmless_meaning(fields: Fields) -> str:
    """Return the meaning of an exit code if Hermes states that it is not an error."""
    meaning = fields.get("exit_code_meaning")
    return meaning if isinstance(meaning, str) and "not an error" in meaning else ""


_ENVELOPE_FIELDS = (
    *("detailedContent", "type", "id", "jsonrpc", "meta", "structuredContent", "annotations"),
    "name",
)
_CONTENT_FIELDS = (
    *("llmContent", "result", "output", "content", "response", "text", "value", "data"),
    "observation",
)


def inner_text(fields: Fields) -> str | None:
    """Return the text of an object that only wraps it, or None."""
    if fields.get("type") == "text" and isinstance(fields.get("text"), str):
        return str(fields["text"])
    names = [name for name in _CONTENT_FIELDS if name in fields]
    if len(names) != 1 or not fields.keys() <= {names[0], *_ENVELOPE_FIELDS}:
        return None
    value = fields[names[0]]
    if isinstance(value, list):
        return block_texts(value)
    return value if isinstance(value, str) else None


def block_texts(items: list[Any]) -> str | None:
    """Return the joined text of content blocks ({"type": "text", "text": …}), or None if the items
    are something else.
    """
    if not all(isinstance(item, dict) and isinstance(item.get("type"), str) for item in items):
        return None
    texts = [item["text"] for item in items if isinstance(item.get("text"), str)]
    return "\n".join(texts) if texts else None


_FALSE = (False, "false")  # and 0, which is equal to False
_SUCCESS_FIELDS = (
    *("sent", "accepted", "approved", "created", "updated", "deleted", "saved", "executed"),
    *("applied", "delivered", "succeeded"),
)
_REASON_FIELDS = ("reason", "why", "message", "msg", "note", "decline_code")
_SHORT_OBJECT = 4
_CONFIRMATION_FIELDS = frozenset(("id", "action", "digest", "next"))
"""Fields of the answer of Journeyman's own confirmation tools."""
_CALL_FIELDS = frozenset(("error", "exit_code", "output"))
_MESSAGE_FIELDS = frozenset(("status", "message", "feedback", "reason", "type", "detail"))
_REFUSAL = re.compile(r"BLOCKED\b|Blocked\b|Stopped \w+:|User denied|Denied by|Write denied\b")


class Report(NamedTuple):
    """An object as the rules see it: its fields, the error it reports, and the id of its status."""

    fields: Fields
    error: str
    status: str


def report(fields: Fields) -> Report:
    return Report(fields, error_text(fields), _status_id(fields.get("status")))


def _status_id(status: object) -> str:
    rule = status_rule(status)
    return rule.id if rule else ""


def _describes_call(fields: Fields) -> bool:
    """Return whether an object describes a call rather than a thing: orders get cancelled too."""
    return not _CALL_FIELDS.isdisjoint(fields) or fields.keys() <= _MESSAGE_FIELDS


def _count_item_errors(fields: Fields) -> tuple[int, int]:
    items = fields.get("results")
    return count_errors(items) if isinstance(items, list) else (0, 0)


def _is_graphql_failure(fields: Fields) -> bool:
    known = {"errors", "data", "message", "status", "extensions"}
    errors = isinstance(fields.get("errors"), list | dict) and fields["errors"]
    return bool(errors) and not fields.get("data") and fields.keys() <= known


_CONDITIONS: dict[str, Callable[[Report], Any]] = {
    "fields.denied_confirmation": lambda report: (
        report.fields.get("status") == "denied" and report.fields.keys() >= _CONFIRMATION_FIELDS
    ),
    "fields.expired_confirmation": lambda report: (
        report.fields.get("status") == "expired" and report.fields.keys() >= _CONFIRMATION_FIELDS
    ),
    "fields.guardrail": lambda report: report.fields.get("guardrail_refusal") is True,
    "fields.pending": lambda report: (
        report.status == "pending" or report.fields.get("approval_pending") is True
    ),
    "fields.blocked": lambda report: (
        (report.status == "held" and _describes_call(report.fields))
        or (report.error and _REFUSAL.match(report.error))
    ),
    "fields.interrupted": lambda report: (
        (report.status == "stopped" and _describes_call(report.fields))
        or report.fields.get("interrupted") is True
        or (report.error and _status_id(report.error.strip()) == "stopped")
    ),
    "fields.timeout": lambda report: (
        report.status == "over_time" or report.fields.get("timed_out") is True
    ),
    "fields.is_error": lambda report: (
        report.fields.get("isError") is True or report.fields.get("is_error") is True
    ),
    "fields.unsuccessful": lambda report: (
        report.fields.get("success") is False or report.fields.get("ok") in _FALSE
    ),
    "fields.error": lambda report: report.error,
    "fields.status": lambda report: (
        report.fields.get("status") == "error"
        or (report.status == "failed" and _describes_call(report.fields))
    ),
    "fields.type": lambda report: (
        report.fields.get("type") in ("error", "error-text", "error-json", "tool_error")
    ),
    "fields.http_status": lambda report: 400 <= http_status(report.fields) < 600,
    "fields.errors": lambda report: _is_graphql_failure(report.fields),
    "fields.not_done": lambda report: (
        len(report.fields) <= _SHORT_OBJECT
        and any(report.fields.get(name) is False for name in _SUCCESS_FIELDS)
        and any(isinstance(report.fields.get(name), str) for name in _REASON_FIELDS)
    ),
    "fields.code": lambda report: (
        "msg" in report.fields
        and not report.fields.get("data")
        and (number(report.fields.get("code")) or 0) not in (0, *range(200, 300))
    ),
    "fields.detail": lambda report: (
        report.fields.keys() == {"detail"}
        or ("documentation_url" in report.fields and "message" in report.fields)
    ),
    "fields.all_items": lambda report: (
        (counts := _count_item_errors(report.fields))[0] and counts[0] == counts[1]
    ),
    "fields.some_items": lambda report: _count_item_errors(report.fields)[0],
    "fields.background": lambda report: (
        report.fields.get("output") == "Background process started"
        or (report.status == "launched" and report.fields.get("mode") == "background")
        or report.fields.get("notify_on_complete") is not None
        or isinstance(report.fields.get("backgroundTaskId"), str)
    ),
    "fields.lint": lambda report: (
        isinstance(lint := report.fields.get("lint"), dict) and lint.get("status") == "error"
    ),
    "fields.success": lambda report: (
        report.fields.get("success") is True
        or report.fields.get("ok") is True
        or report.fields.get("isError") is False
        or report.status in ("good", "ended")
        or "error" in report.fields
    ),
}
"""The condition of each rule on fields, by id."""

_TABLES = {
    name: tuple((row, _CONDITIONS[row.id]) for row in RULES[name])
    for name in ("held_back", "reported", "success")
}


def verdict(table: str, report: Report) -> Verdict | None:
    """Return the verdict of the first rule of a table that holds. The message determines whether a
    failed call was refused, interrupted or invalid.
    """
    for rule, holds in _TABLES[table]:
        if holds(report):
            return _rule_verdict(rule, report)
    return None


def _rule_verdict(rule: Rule, report: Report) -> Verdict:
    if rule.status == "ok":
        return Verdict(status="ok", kind=rule.kind, rule=rule.id)
    message = report.error or message_of(report.fields) or printable(report.fields)
    if code := http_status(report.fields):
        message = f"status code {code}: {message}"
    if rule.status == "refused":
        return phrases.refusal(rule, message)
    status: VerdictStatus = rule.status
    kind: VerdictKind = rule.kind
    if status == "failed" and not kind:
        match = phrases.at_head(message)
        if match is not None and match.rule.status == "refused":
            return phrases.refusal(match.rule, message, rule=rule.id)
        if match is not None and match.rule.status != "unknown":
            status, kind = match.rule.status, match.rule.kind
        kind = kind or kind_of(message)
    return Verdict(status=status, kind=kind, rule=rule.id, evidence=excerpt(message))


def is_data(fields: Fields) -> bool:
    """Return whether no rule reads any field of an object, or only the status of a thing."""
    names = _RULE_FIELDS.intersection(fields)
    if names == {"status"}:
        return isinstance(fields["status"], str) and status_rule(fields["status"]) is None
    return not names


_RULE_FIELDS = frozenset(
    (
        *ERROR_FIELDS,
        *EXIT_FIELDS,
        *_SUCCESS_FIELDS,
        *("errors", "type", "success", "ok", "status", "status_code", "statusCode", "isError"),
        *("is_error", "timed_out", "interrupted", "metadata", "output", "results", "result"),
        *("code", "cod", "detail", "documentation_url", "lint", "backgroundTaskId"),
        *("guardrail_refusal", "approval_pending", "notify_on_complete", "digest"),
    )
)
"""Every field that a rule reads; an object with none of them is data."""
