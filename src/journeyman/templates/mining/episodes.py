"""The episodes of a session: each request with the calls that served it, how it ended, the commands
and files that it used, and the mistakes that were made with their remedies.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal

import msgspec
from msgspec import Struct

from journeyman.records import (
    Call,
    CommandUse,
    Ending,
    Episode,
    FileUse,
    Message,
    Mistake,
    Session,
    Step,
    Verdict,
)
from journeyman.redaction.instructions import find_suspicion
from journeyman.reliability.fingerprints import fingerprint
from journeyman.templates.agent_tools import file_path, operation_of, parse_arguments, shell_command
from journeyman.templates.commands import commands_of
from journeyman.templates.mining.requests import UserRequest, without_reminders
from journeyman.templates.mining.safety import KeptOutList, is_safe_form
from journeyman.templates.sanitizer import clean_pattern, redacted_line, suspicion_of

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
_RESULT_IN_EPISODE = 120
_REMEDY_WITHIN = 12
"""The same call must work within this many calls for those in between to count as the remedy."""

_LONGEST_REMEDY = 3
_JOINED = re.compile(r"\|(?!\|)|;|\|\|\s*(?:true|echo|:)")
_FAILED = re.compile(
    r"^(?:FAIL\b|FAILED\b|--- FAIL|.{0,80}\bERROR task failed|Traceback \(most recent"
    r"|error(?:\[\w+\])?: |Error: |.{0,40}command not found|make: \*\*\*|npm ERR!)",
    re.MULTILINE,
)
_LONGEST_PURPOSE = 80
_WORD, _IN_A_NAME = re.compile(r"[^\W\d_]{2,}"), re.compile(r"[-_./+]+")
_FEWEST_WORDS = 3
"""The minimum number of words in an instruction."""


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
    session: Session, verdicts: Sequence[Verdict], *, rejected: bool, interrupted: bool
) -> Ending:
    """Return how an episode with these call verdicts, in order, ended."""
    if rejected:
        return "rejected"
    if session.outcome is not None:
        return "well" if session.outcome >= SUCCESS else "failed"
    if interrupted:
        return "interrupted"
    counted = [verdict for verdict in verdicts if verdict.counts]
    if not counted:
        return "unknown"
    error_count = sum(verdict.is_error for verdict in counted)
    has_failed = counted[-1].is_error or error_count > MOST_ERRORS * len(counted)
    return "failed" if has_failed else "well"


class ServingCall(Struct, frozen=True, kw_only=True):
    """A call of the session with all that mining needs to know about it. A safe call does nothing
    that a person would have to confirm. An example is safe, worked, and is complete and short
    enough.
    """

    call: Call
    skill: str
    request: UserRequest
    verdict: Verdict
    is_ok: bool
    is_error: bool
    is_safe: bool
    is_released: bool
    is_example: bool


class ServedRequest(Struct, frozen=True, kw_only=True):
    """A request, the calls that served it, and how that ended."""

    request: UserRequest
    calls: list[ServingCall]
    ending: Ending


def episode_of(session: Session, served: ServedRequest, kept_out: KeptOutList) -> Episode:
    """Return the episode of one request, redacted; of failed or rejected work only its mistakes."""
    has_failed = session.outcome is not None and served.ending == "failed"
    is_usable = served.ending != "rejected" and not has_failed
    steps = decisive_calls(served) if served.ending == "well" else []
    cleaned = clean_pattern(
        "sequence",
        served.request.intent(),
        [as_step(serving.call) for serving in steps],
        result_limit=_RESULT_IN_EPISODE,
    )
    cleaned = kept_out.reviewed("episode", cleaned, served.request.number)
    asked_at = [serving.call.asked_at for serving in served.calls]
    times = [at for at in asked_at if at is not None]
    sound = [serving for serving in served.calls if suspicion_of(serving.call.arguments) is None]
    return Episode(
        session=session.id,
        number=served.request.number,
        request=cleaned.intent,
        ending=served.ending,
        at=min(times, default=session.started_at),
        source=session.source,
        project=session.project,
        steps=cleaned.steps,
        commands=tuple(_commands(sound)) if is_usable else (),
        files=tuple(_files(sound, session.cwd)) if is_usable else (),
        mistakes=tuple(_mistakes(served.calls, with_remedies=is_usable)),
        quarantined=cleaned.quarantined,
    )


def decisive_calls(served: ServedRequest) -> list[ServingCall]:
    """Return the first call of each skill that worked; of many, the last ones."""
    if not served.request.text or served.request.is_withdrawal:
        return []
    worked = [serving for serving in served.calls if serving.is_ok]
    if worked and not worked[-1].is_safe:
        return []  # the final call must not be shown, and the rest is only half of the work
    first: dict[str, ServingCall] = {}
    for serving in served.calls:
        if serving.is_example:
            first.setdefault(serving.skill, serving)
    return list(first.values())[-_MOST_STEPS:]


def as_step(call: Call, *, worked: bool = True) -> Step:
    """Return a call as it was recorded, without what the harness added to its result."""
    result = without_reminders(call.result or "")
    return Step(tool=call.tool, arguments=call.arguments, result=result, worked=worked)


def _commands(calls: Sequence[ServingCall]) -> Iterator[CommandUse]:
    counts: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    purposes: dict[tuple[str, str], str] = {}
    for serving in calls:
        if not serving.is_safe or not (serving.is_ok or serving.is_error):
            continue
        line = shell_command(serving.call.tool, serving.call.arguments)
        for command in commands_of(line):
            is_complete = "…" not in command.form and "cd " not in line
            may_teach = serving.is_released or is_complete or is_safe_form(command.form)
            if not may_teach or not _is_sound(command.form):
                continue
            key = redacted_line(command.name), redacted_line(command.form)
            counts[key][serving.is_error] += 1
            if serving.is_ok and key not in purposes:
                purposes[key] = redacted_line(_purpose(serving.call.arguments))
    for (name, form), (worked, failed) in counts.items():
        yield CommandUse(name, form, worked, failed, purposes.get((name, form), ""))


def _purpose(arguments: str) -> str:
    """Return the agent's own description of a command, which Claude Code and others record."""
    description = parse_arguments(arguments).get("description", "")
    if not isinstance(description, str) or not _is_sound(description):
        return ""
    return " ".join(description.split())[:_LONGEST_PURPOSE]


def _files(calls: Sequence[ServingCall], folder: str) -> Iterator[FileUse]:
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for serving in calls:
        operation = operation_of(serving.call.tool, serving.call.arguments)
        if serving.is_ok and serving.is_safe and operation in ("read", "edit", "write"):
            path = _inside(file_path(serving.call.tool, serving.call.arguments), folder)
            if path and _is_sound(path):
                counts[redacted_line(path)][operation != "read"] += 1
    for path, (read, changed) in counts.items():
        yield FileUse(path, read, changed)


def _inside(path: str, folder: str) -> str:
    """Return a path relative to the project; empty for a path outside of it."""
    if not path or "\n" in path or len(path) > 300:
        return ""
    if not path.startswith(("/", "~")) and ":" not in path[:3]:
        return path.removeprefix("./")
    absolute, root = PurePosixPath(path), PurePosixPath(folder or "/nowhere")
    return str(absolute.relative_to(root)) if absolute.is_relative_to(root) else ""


def _mistakes(calls: Sequence[ServingCall], *, with_remedies: bool) -> Iterator[Mistake]:
    for number, failed in enumerate(calls):
        mistake = find_mistake(failed.call, failed.verdict) if failed.is_error else None
        if mistake is not None:
            remedy = tuple(_remedy(calls, number)) if with_remedies else ()
            yield msgspec.structs.replace(mistake, remedy=remedy)


def find_mistake(failed: Call, verdict: Verdict) -> Mistake | None:
    """Return what a failed call has in common with others that failed the same way, without a
    remedy; None if its error has no text that could be shown.
    """
    error = redacted_line(fingerprint(verdict.evidence))
    if not error or not _is_sound(error):
        return None
    return Mistake(redacted_line(failed.tool), error, _target(failed)[1])


def _remedy(calls: Sequence[ServingCall], failed: int) -> Iterator[str]:
    """Yield the calls between a failed call and its success, unless one needs confirmation."""
    between: dict[str, None] = {}
    for later in calls[failed + 1 : failed + 1 + _REMEDY_WITHIN]:
        if not later.is_safe and shell_command(later.call.tool, later.call.arguments):
            return
        if not later.is_ok:
            continue
        label = _label(later.call)
        if _is_retry(calls[failed].call, later.call):
            yield from [*list(between)[-_LONGEST_REMEDY + 1 :], label]
            return
        between.pop(label, None)
        between[label] = None


def _is_retry(failed: Call, later: Call) -> bool:
    """Whether a call has the file, the command or else an argument of a failed one."""
    if failed.tool != later.tool:
        return False
    if any(_target(failed)):
        return _target(failed) == _target(later)
    failed_arguments, later_arguments = (
        {repr(pair) for pair in parse_arguments(call.arguments).items()} for call in (failed, later)
    )
    return not failed_arguments.isdisjoint(later_arguments)


def hides_failure(call: Call) -> bool:
    """Whether a part failed that does not decide the exit code: before a pipe, `;` or `|| true`."""
    line = shell_command(call.tool, call.arguments)
    return bool(_JOINED.search(line)) and _FAILED.search(call.result or "") is not None


def _target(call: Call) -> tuple[str, str]:
    """Return what a call is aimed at: its file, and its last command by name."""
    commands = commands_of(shell_command(call.tool, call.arguments))
    name = redacted_line(commands[-1].name) if commands else ""
    return file_path(call.tool, call.arguments), name


def _label(call: Call) -> str:
    name = _target(call)[1]
    return f"`{name}`" if name else redacted_line(call.tool)


@lru_cache(maxsize=4_096)
def _is_sound(text: str) -> bool:
    """Whether a short text contains no instruction, not even hidden in names."""
    if len(_WORD.findall(text)) < _FEWEST_WORDS:
        return True
    return find_suspicion((text, _IN_A_NAME.sub(" ", text))) is None
