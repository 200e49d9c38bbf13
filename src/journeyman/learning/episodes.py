"""The episodes of a session: each request with the calls that served it, how it ended, and what it
shows about its project.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from journeyman.learning.agent_tools import operation_of, shell_command
from journeyman.learning.commands import check_kind, commands_of
from journeyman.learning.observations import Observer, takes_in
from journeyman.learning.requests import ServingCall, UserRequest, without_reminders
from journeyman.learning.sanitizer import cleaned
from journeyman.records import Call, Ending, Episode, Message, Session, Step

SUCCESS = 0.99
"""The lowest reward of a successful session: partial work does not count."""

MOST_ERRORS = 0.5

Reason = Literal["", "no calls", "failed", "error", "nothing ended well"]
"""Why a session teaches nothing; empty if it may teach."""

NOT_LEARNED_REASONS = {
    "no calls": "it has no calls",
    "failed": "its outcome is known, and was not a success",
    "error": "its recorder ended it with an error",
    "nothing ended well": "nothing in it ended well: calls failed, or the person rejected the work",
    "forgotten": "it was forgotten on request (`journeyman forget --list`)",
}
"""Why a session teaches nothing, in words."""

_ENDED_IN_ERROR = re.compile(r"(?!.*abort).*(?:error|fail|crash|exception|fatal)", re.IGNORECASE)
_ERROR_FINISHES = ("error", "agent_error", "content_filter")

_MOST_STEPS = 6
_JOINED = re.compile(r"\|(?!\|)|;|\|\|\s*(?:true|echo|:)")
_FAILED = re.compile(
    r"^(?:FAIL\b|FAILED\b|--- FAIL|.{0,80}\bERROR task failed|Traceback \(most recent"
    r"|error(?:\[\w+\])?: |Error: |.{0,40}command not found|make: \*\*\*|npm ERR!)",
    re.MULTILINE,
)


def ended_in_error(session: Session, last: Message | None) -> bool:
    """Whether the recorder ended a session with an error, by its end reason or its last message. A
    person's interruption is not an error, and a known outcome decides instead.
    """
    if session.outcome is not None:
        return False
    if last is not None and last.finish_reason in _ERROR_FINISHES:
        return True
    return _ENDED_IN_ERROR.match(session.end_reason) is not None


def why_not_learned(session: Session, calls: int, endings: Iterable[Ending]) -> Reason:
    """Return why nothing is learned from a session; empty if it may teach."""
    if not calls:
        return "no calls"
    if session.outcome is not None and session.outcome < SUCCESS:
        return "failed"
    return "" if "well" in endings else "nothing ended well"


def ending_of(
    session: Session, calls: Sequence[ServingCall], *, rejected: bool, interrupted: bool
) -> Ending:
    """Return how an episode with these calls, in order, ended."""
    verdicts = [serving.verdict for serving in calls]
    if rejected:
        return "rejected"
    if session.outcome is not None:
        return "well" if session.outcome >= SUCCESS else "failed"
    if verdicts and verdicts[-1].status == "refused":
        return "rejected"
    if interrupted:
        return "interrupted"
    counted = [verdict for verdict in verdicts if verdict.counts]
    if not counted:
        return "unknown"
    error_count = sum(verdict.is_error for verdict in counted)
    has_failed = counted[-1].is_error or error_count > MOST_ERRORS * len(counted)
    return "failed" if has_failed or _last_check_failed(calls) else "well"


def _last_check_failed(calls: Sequence[ServingCall]) -> bool:
    """Whether the last test, lint or build after the last edit failed."""
    for serving in reversed(calls):
        tool, arguments = serving.call.tool, serving.call.arguments
        operation = operation_of(tool, arguments)
        if operation in ("edit", "write", "patch") and serving.is_ok:
            return False
        if operation == "run" and (serving.is_ok or serving.is_error):
            names = [command.name for command in commands_of(shell_command(tool, arguments))]
            if any(map(check_kind, names)):
                return serving.is_error
    return False


def takes_back_commit(calls: Iterable[ServingCall]) -> bool:
    """Whether calls revert or reset a commit before they make one of their own."""
    for serving in calls:
        if serving.is_ok:
            line = shell_command(serving.call.tool, serving.call.arguments)
            for command in commands_of(line):
                words = command.form.split()
                moves = any(
                    word.startswith(("--hard", "--soft", "HEAD~", "HEAD^")) for word in words
                )
                if command.name == "git revert" or (command.name == "git reset" and moves):
                    return True
                if command.name == "git commit":
                    return False
    return False


class ServedRequest(Struct, frozen=True, kw_only=True):
    """A request, the calls that served it, and how that ended. `correction` is what the person
    said against the work before it. It `is_tainted` if the session had taken in content from
    outside by then.
    """

    request: UserRequest
    calls: list[ServingCall]
    ending: Ending
    correction: str = ""
    is_tainted: bool = False


def episode_of(session: Session, served: ServedRequest, observer: Observer) -> Episode:
    """Return the episode of one request, redacted; of failed or rejected work only its mistakes,
    and no text, command or file if any of it instructs its reader.
    """
    has_failed = session.outcome is not None and served.ending == "failed"
    is_usable = served.ending != "rejected" and not has_failed
    steps = decisive_calls(served) if served.ending == "well" else []
    intent, clean_steps, suspicion = cleaned(
        served.request.intent(),
        [_as_step(serving.call) for serving in steps],
    )
    asked_at = [serving.call.asked_at for serving in served.calls]
    times = [at for at in asked_at if at is not None]
    observed = observer.observe(
        served.calls,
        correction=served.correction,
        usable=is_usable,
        tainted=served.is_tainted,
    )
    if suspicion is not None:
        intent, clean_steps = "", ()
        observed = replace(observed, commands=(), files=())
    return Episode(
        session=session.id,
        number=served.request.number,
        request=intent,
        ending=served.ending,
        at=min(times, default=session.started_at),
        source=session.source,
        project=session.project,
        steps=clean_steps,
        observed=observed,
    )


def decisive_calls(served: ServedRequest) -> list[ServingCall]:
    """Return the first call of each skill that worked; of many, the first and the last ones."""
    if not served.request.text or served.request.is_withdrawal:
        return []
    worked = [serving for serving in served.calls if serving.is_ok]
    if worked and not worked[-1].is_safe:
        return []  # the final call must not be shown, and the rest is only half of the work
    first: dict[str, ServingCall] = {}
    for serving in _before_intake(served.calls):
        if serving.is_example:
            first.setdefault(serving.skill, serving)
    found = list(first.values())
    return [*found[:1], *found[1:][1 - _MOST_STEPS :]]


def _before_intake(calls: Sequence[ServingCall]) -> list[ServingCall]:
    """Return the calls that were made before the agent took in content from outside."""
    outside = (at for at, serving in enumerate(calls) if takes_in(serving.call))
    return list(calls[: next(outside, len(calls)) + 1])


def _as_step(call: Call) -> Step:
    """Return a call as it was recorded, without what the harness added to its result."""
    result = without_reminders(call.result or "")
    return Step(tool=call.tool, arguments=call.arguments, result=result)


def hides_failure(call: Call) -> bool:
    """Whether a part failed that does not decide the exit code: before a pipe, `;` or `|| true`."""
    line = shell_command(call.tool, call.arguments)
    return bool(_JOINED.search(line)) and _FAILED.search(call.result or "") is not None
