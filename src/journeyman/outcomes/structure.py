"""Results with a structure: JSON objects and lists that say by their fields what became of the
call. Only fields that harnesses and tools use for that are looked at, never the data beside them.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from journeyman.outcomes import words
from journeyman.outcomes.fields import (
    ERROR_FIELDS,
    EXIT_FIELDS,
    Fields,
    error_text,
    errors_among,
    in_words,
    message_of,
    number,
    web_status,
)
from journeyman.outcomes.kinds import kind_of
from journeyman.outcomes.rule import excerpt
from journeyman.outcomes.statuses import (
    ENDED,
    FAILED,
    GOOD,
    HELD,
    OVER_TIME,
    PENDING,
    STOPPED,
    StatusWords,
    meaning,
)
from journeyman.records import Kind, Status, Verdict

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
    status: StatusWords | None


def report(fields: Fields) -> Report:
    return Report(fields, error_text(fields), meaning(fields.get("status")))


def _speaks_of_a_call(fields: Fields) -> bool:
    """Whether an object speaks of a call, not of a thing: an order can be cancelled, too."""
    return not _OF_CALLS.isdisjoint(fields) or fields.keys() <= _TALK


def _items_with_error(fields: Fields) -> tuple[int, int]:
    items = fields.get("results")
    return errors_among(items) if isinstance(items, list) else (0, 0)


def _is_graphql_failure(fields: Fields) -> bool:
    errors = fields.get("errors")
    return (
        isinstance(errors, list | dict)
        and bool(errors)
        and not fields.get("data")
        and fields.keys() <= {"errors", "data", "message", "status", "extensions"}
    )


class FieldRule(NamedTuple):
    """A test on the fields of an object. `kind` is empty where the message tells it better."""

    id: str
    holds: Callable[[Report], Any]
    status: Status
    kind: Kind
    example: str
    reason: str


KEPT_FROM_RUNNING: tuple[FieldRule, ...] = (
    FieldRule(
        "fields.guardrail",
        lambda it: it.fields.get("guardrail_refusal") is True,
        "refused",
        "policy",
        '{"error": "You have read this file three times.", "guardrail_refusal": true}',
        "Hermes stops repeated calls; the file is fine",
    ),
    FieldRule(
        "fields.pending",
        lambda it: it.status is PENDING or it.fields.get("approval_pending") is True,
        "refused",
        "pending",
        '{"output": "", "exit_code": -1, "error": "", "status": "pending_approval"}',
        "held for a person: it did not run",
    ),
    FieldRule(
        "fields.blocked",
        lambda it: (
            (it.status is HELD and _speaks_of_a_call(it.fields))
            or (it.error and _REFUSING.match(it.error))
        ),
        "refused",
        "policy",
        '{"output": "", "exit_code": -1, "error": "BLOCKED: rm -rf", "status": "blocked"}',
        "a person or a rule said no before it ran",
    ),
    FieldRule(
        "fields.interrupted",
        lambda it: (
            (it.status is STOPPED and _speaks_of_a_call(it.fields))
            or it.fields.get("interrupted") is True
            or (it.error and meaning(it.error.strip()) is STOPPED)
        ),
        "interrupted",
        "cancelled",
        '{"error": "Interrupted", "success": false}',
        "somebody stopped it",
    ),
    FieldRule(
        "fields.timeout",
        lambda it: it.status is OVER_TIME or it.fields.get("timed_out") is True,
        "failed",
        "timeout",
        '{"status": "timeout", "output": "partial"}',
        "it was ended because it took too long",
    ),
)
"""What kept a call from running or from ending by itself: asked before its exit code."""

REPORTED: tuple[FieldRule, ...] = (
    FieldRule(
        "fields.is_error",
        lambda it: it.fields.get("isError") is True or it.fields.get("is_error") is True,
        "failed",
        "",
        '{"isError": true, "content": [{"type": "text", "text": "no such repository"}]}',
        "MCP's own flag, recorded with the result",
    ),
    FieldRule(
        "fields.unsuccessful",
        lambda it: it.fields.get("success") is False or it.fields.get("ok") in _FALSE,
        "failed",
        "",
        '{"success": false, "error": "Could not find a match for old_string in the file"}',
        "the tool says so by its flag",
    ),
    FieldRule(
        "fields.error",
        lambda it: it.error,
        "failed",
        "",
        '{"error": "File not found: notes.txt", "similar_files": []}',
        "an error that is not empty; null, false and the like mean that there is none",
    ),
    FieldRule(
        "fields.status",
        lambda it: (
            it.fields.get("status") == "error"
            or (it.status is FAILED and _speaks_of_a_call(it.fields))
        ),
        "failed",
        "",
        '{"status": "error", "output": "Script exited with code 1"}',
        "a status of the call; of a thing it would stand among other facts",
    ),
    FieldRule(
        "fields.type",
        lambda it: it.fields.get("type") in ("error", "error-text", "error-json", "tool_error"),
        "failed",
        "",
        '{"type": "error-text", "value": "Location not found"}',
        "the Vercel SDK and others mark an error by its type",
    ),
    FieldRule(
        "fields.http_status",
        lambda it: 400 <= web_status(it.fields) < 600,
        "failed",
        "",
        '{"status_code": 503, "body": "try later"}',
        "the status of a web service",
    ),
    FieldRule(
        "fields.errors",
        lambda it: _is_graphql_failure(it.fields),
        "failed",
        "",
        '{"errors": [{"message": "Cannot query field users"}], "data": null}',
        "GraphQL answers so; a list of errors beside data is a finding, not a failure",
    ),
    FieldRule(
        "fields.not_done",
        lambda it: (
            len(it.fields) <= _SHORT
            and any(it.fields.get(name) is False for name in _DONE)
            and any(isinstance(it.fields.get(name), str) for name in _REASONS)
        ),
        "failed",
        "",
        '{"sent": false, "reason": "mailbox unavailable"}',
        "what was to be done was not, and it is said why; without that it is a fact of a thing",
    ),
    FieldRule(
        "fields.code",
        lambda it: (
            "msg" in it.fields
            and not it.fields.get("data")
            and (number(it.fields.get("code")) or 0) not in (0, *range(200, 300))
        ),
        "failed",
        "",
        '{"code": 4001, "msg": "party size exceeds limit", "data": null}',
        "services that number their errors and put 0 or 200 where there is none",
    ),
    FieldRule(
        "fields.detail",
        lambda it: (
            it.fields.keys() == {"detail"}
            or ("documentation_url" in it.fields and "message" in it.fields)
        ),
        "failed",
        "",
        '{"detail": "Not Found"}',
        "FastAPI and GitHub answer so, and with nothing else",
    ),
    FieldRule(
        "fields.all_items",
        lambda it: (counts := _items_with_error(it.fields))[0] and counts[0] == counts[1],
        "failed",
        "",
        '{"results": [{"url": "a", "error": "404"}, {"url": "b", "error": "timed out"}]}',
        "every part of the batch failed",
    ),
    FieldRule(
        "fields.some_items",
        lambda it: _items_with_error(it.fields)[0],
        "ok",
        "partial",
        '{"results": [{"url": "a", "content": "x", "error": null}, {"url": "b", "error": "404"}]}',
        "a part of the batch failed, the rest came",
    ),
    FieldRule(
        "fields.background",
        lambda it: (
            it.fields.get("output") == "Background process started"
            or it.fields.get("notify_on_complete") is not None
            or isinstance(it.fields.get("backgroundTaskId"), str)
        ),
        "unknown",
        "background",
        '{"output": "Background process started", "session_id": "proc_1", "pid": 7, "exit_code": 0,'
        ' "error": null}',
        "started is not finished",
    ),
    FieldRule(
        "fields.lint",
        lambda it: (
            isinstance(lint := it.fields.get("lint"), dict) and lint.get("status") == "error"
        ),
        "ok",
        "partial",
        '{"bytes_written": 20, "lint": {"status": "error", "message": "line 3"}}',
        "the file was written as asked, and what was written is broken",
    ),
)

SUCCESS = FieldRule(
    "fields.success",
    lambda it: (
        it.fields.get("success") is True
        or it.fields.get("ok") is True
        or it.fields.get("isError") is False
        or it.status is GOOD
        or it.status is ENDED
        or "error" in it.fields
    ),
    "ok",
    "",
    '{"success": true, "error": null}',
    "the tool says so by its flag, or says that there is no error",
)

DATA = FieldRule(
    "fields.data",
    lambda _: True,
    "ok",
    "",
    '{"order_id": "#W1", "status": "cancelled", "items": []}',
    "facts came back, and nothing says that something went wrong",
)


def verdict(rule: FieldRule, seen: Report) -> Verdict:
    """The verdict of a row that holds. What failed may have been refused, stopped or not be
    callable: the words of its message tell.
    """
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
    spoken = SPEAKING.intersection(fields)
    if spoken == _STATUS_ONLY:
        status = fields["status"]
        return isinstance(status, str) and meaning(status) is None
    return not spoken


_STATUS_ONLY = frozenset(("status",))
SPEAKING = frozenset(
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
