"""Words for the status of a call, as recorders put them beside a result and tools into it."""

from typing import NamedTuple

from journeyman.records import Kind, Status


class StatusWords(NamedTuple):
    """Words, in lower case, that mean the same."""

    words: tuple[str, ...]
    status: Status
    kind: Kind
    reason: str


FAILED = StatusWords(
    (
        *("error", "failed", "failure", "fail", "fatal", "exception", "incomplete", "conflict"),
        *("unauthorized", "invalid"),
    ),
    "failed",
    "",
    "it did not work; the message beside it tells the kind",
)
OVER_TIME = StatusWords(
    ("timeout", "timed_out", "timedout"), "failed", "timeout", "ended because it took too long"
)
HELD = StatusWords(
    ("blocked", "denied", "rejected", "declined", "refused", "forbidden", "disabled"),
    "refused",
    "policy",
    "somebody or something said no before it ran",
)
PENDING = StatusWords(
    ("pending_approval", "approval_required", "requires_approval"),
    "refused",
    "pending",
    "held for a person: it did not run",
)
STOPPED = StatusWords(
    ("interrupted", "cancelled", "canceled", "aborted", "killed"),
    "interrupted",
    "cancelled",
    "somebody stopped it",
)
GOOD = StatusWords(
    ("ok", "success", "succeeded", "approved", "unchanged"), "ok", "", "it worked, by its own word"
)
ENDED = StatusWords(
    ("completed", "complete", "done", "finished"),
    "ok",
    "",
    "it came to its end, which need not be a good one: a result says more",
)

STATUS_WORDS = (FAILED, OVER_TIME, HELD, PENDING, STOPPED, GOOD, ENDED)

_meanings = {word: row for row in STATUS_WORDS for word in row.words}


def meaning(status: object) -> StatusWords | None:
    """What a status says, if it is one of these words."""
    return _meanings.get(status.lower()) if isinstance(status, str) else None
