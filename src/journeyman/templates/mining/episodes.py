"""The episodes of a session: each request with the calls that served it, how it ended, the commands
and files that it used, and the mistakes that it made with what mended them.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from journeyman.records import (
    Call,
    CommandUse,
    Ending,
    Episode,
    FileUse,
    Mistake,
    Session,
    Step,
    Verdict,
)
from journeyman.redaction.instructions import find_suspicion
from journeyman.reliability.fingerprints import fingerprint
from journeyman.templates.cleaning import clean_pattern, redacted_line, suspicion_of
from journeyman.templates.commands import commands_of
from journeyman.templates.mining.requests import Request, without_reminders
from journeyman.templates.mining.safety import KeptOutList, is_safe_form
from journeyman.templates.tool_translation import file_path, operation_of, shell_command
from journeyman.templates.translation.argument_fields import as_object

SUCCESS = 0.99
"""A reward from which on a session counts as a success: a part of the work is not the work."""

MOST_ERRORS = 0.5

Reason = Literal["", "no calls", "failed", "nothing ended well"]
"""Why a session teaches nothing; empty when it may."""

WHY_NOT = {
    "no calls": "it has no calls",
    "failed": "its outcome is known, and was not a success",
    "nothing ended well": "nothing in it ended well: calls failed, or the person rejected the work",
    "forgotten": "you had it forgotten (`journeyman forget --list`)",
}
"""Why a session teaches nothing, in words."""

_MOST_STEPS = 6
_RESULT_IN_EPISODE = 120
_REMEDY_WITHIN = 12
"""How many calls later the same call may work for what lies between to count as the remedy."""

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
"""How many words it takes to instruct somebody."""


def why_not(session: Session, calls: int, endings: Iterable[Ending]) -> Reason:
    """Why nothing is learned from a session, or nothing if it may teach."""
    if not calls:
        return "no calls"
    if session.outcome is not None and session.outcome < SUCCESS:
        return "failed"
    return "" if "well" in endings else "nothing ended well"


def ending_of(
    session: Session, verdicts: Sequence[Verdict], *, rejected: bool, interrupted: bool
) -> Ending:
    """How an episode with these verdicts on its calls, in order, ended."""
    if rejected:
        return "rejected"
    if session.outcome is not None:
        return "well" if session.outcome >= SUCCESS else "failed"
    if interrupted:
        return "interrupted"
    counted = [verdict for verdict in verdicts if verdict.counts]
    if not counted:
        return "unknown"
    errors = sum(verdict.is_error for verdict in counted)
    is_bad = counted[-1].is_error or errors > MOST_ERRORS * len(counted)
    return "failed" if is_bad else "well"


class ServingCall(Struct, frozen=True, kw_only=True):
    """A call of the session with all that mining asks about it. One that is safe does nothing that
    a person would have to confirm. One that may be an example is safe, worked, and is whole and
    short enough.
    """

    call: Call
    skill: str
    request: Request
    verdict: Verdict
    is_ok: bool
    is_error: bool
    is_safe: bool
    is_released: bool
    is_example: bool


class Served(Struct, frozen=True, kw_only=True):
    """A request, the calls that served it, and how that ended."""

    request: Request
    calls: list[ServingCall]
    ending: Ending


def episode_of(session: Session, served: Served, kept_out: KeptOutList) -> Episode:
    """The episode of one request, redacted; of failed or rejected work only its mistakes."""
    has_failed = session.outcome is not None and served.ending == "failed"
    is_kept = served.ending != "rejected" and not has_failed
    steps = decisive(served) if served.ending == "well" else []
    cleaned = clean_pattern(
        "sequence",
        served.request.intent(),
        [as_step(one.call) for one in steps],
        result_limit=_RESULT_IN_EPISODE,
    )
    cleaned = kept_out.reviewed("episode", cleaned, served.request.number)
    times = [one.call.asked_at for one in served.calls if one.call.asked_at is not None]
    sound = [one for one in served.calls if suspicion_of(one.call.arguments) is None]
    return Episode(
        session=session.id,
        number=served.request.number,
        request=cleaned.intent,
        ending=served.ending,
        at=min(times, default=session.started_at),
        source=session.source,
        project=session.project,
        steps=cleaned.steps,
        commands=tuple(_commands(sound)) if is_kept else (),
        files=tuple(_files(sound, session.cwd)) if is_kept else (),
        mistakes=tuple(_mistakes(served.calls, are_mended=is_kept)),
        quarantined=cleaned.quarantined,
    )


def decisive(served: Served) -> list[ServingCall]:
    """Of each skill the first call that worked, and of many the last ones."""
    if not served.request.wanted or served.request.ends:
        return []
    done = [one for one in served.calls if one.is_ok]
    if done and not done[-1].is_safe:
        return []  # what brought it to its end may not be shown, and the rest is only half of it
    first: dict[str, ServingCall] = {}
    for one in served.calls:
        if one.is_example:
            first.setdefault(one.skill, one)
    return list(first.values())[-_MOST_STEPS:]


def as_step(call: Call, *, worked: bool = True) -> Step:
    """A call as it was recorded, without what the harness added to its result."""
    result = without_reminders(call.result or "")
    return Step(tool=call.tool, arguments=call.arguments, result=result, worked=worked)


def _commands(calls: Sequence[ServingCall]) -> Iterator[CommandUse]:
    counts: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    purposes: dict[tuple[str, str], str] = {}
    for one in calls:
        if not one.is_safe or not (one.is_ok or one.is_error):
            continue
        line = shell_command(one.call.tool, one.call.arguments)
        for command in commands_of(line):
            is_as_run = "…" not in command.form and "cd " not in line
            may_teach = one.is_released or is_as_run or is_safe_form(command.form)
            if not may_teach or not _is_sound(command.form):
                continue
            key = redacted_line(command.name), redacted_line(command.form)
            counts[key][one.is_error] += 1
            if one.is_ok and key not in purposes:
                purposes[key] = redacted_line(_purpose(one.call.arguments))
    for (name, form), (worked, failed) in counts.items():
        yield CommandUse(name, form, worked, failed, purposes.get((name, form), ""))


def _purpose(arguments: str) -> str:
    """What the agent said a command was for; Claude Code's and others' agents say so."""
    said = as_object(arguments).get("description", "")
    if not isinstance(said, str) or not _is_sound(said):
        return ""
    return " ".join(said.split())[:_LONGEST_PURPOSE]


def _files(calls: Sequence[ServingCall], folder: str) -> Iterator[FileUse]:
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in calls:
        operation = operation_of(one.call.tool, one.call.arguments)
        if one.is_ok and one.is_safe and operation in ("read", "edit", "write"):
            path = _inside(file_path(one.call.tool, one.call.arguments), folder)
            if path and _is_sound(path):
                counts[redacted_line(path)][operation != "read"] += 1
    for path, (read, changed) in counts.items():
        yield FileUse(path, read, changed)


def _inside(path: str, folder: str) -> str:
    """A path as it is inside the project; empty for one that is elsewhere."""
    if not path or "\n" in path or len(path) > 300:
        return ""
    if not path.startswith(("/", "~")) and ":" not in path[:3]:
        return path.removeprefix("./")
    within, root = PurePosixPath(path), PurePosixPath(folder or "/nowhere")
    return str(within.relative_to(root)) if within.is_relative_to(root) else ""


def _mistakes(calls: Sequence[ServingCall], *, are_mended: bool) -> Iterator[Mistake]:
    for number, one in enumerate(calls):
        if not one.is_error:
            continue
        error = redacted_line(fingerprint(one.verdict.evidence))
        if not error or not _is_sound(error):
            continue
        remedy = tuple(_remedy(calls, number)) if are_mended else ()
        yield Mistake(redacted_line(one.call.tool), error, _target(one.call)[1], remedy)


def _remedy(calls: Sequence[ServingCall], failed: int) -> Iterator[str]:
    """What came between a failed call and its success, unless that needs confirmation."""
    between: dict[str, None] = {}
    for later in calls[failed + 1 : failed + 1 + _REMEDY_WITHIN]:
        if not later.is_safe and shell_command(later.call.tool, later.call.arguments):
            return
        if not later.is_ok:
            continue
        label = _label(later.call)
        if _is_again(calls[failed].call, later.call):
            yield from [*list(between)[-_LONGEST_REMEDY + 1 :], label]
            return
        between.pop(label, None)
        between[label] = None


def _is_again(failed: Call, later: Call) -> bool:
    """Whether a call has the file, the command or else an argument of a failed one."""
    if failed.tool != later.tool:
        return False
    if any(_target(failed)):
        return _target(failed) == _target(later)
    before, after = (
        {repr(pair) for pair in as_object(one.arguments).items()} for one in (failed, later)
    )
    return not before.isdisjoint(after)


def hides_failure(call: Call) -> bool:
    """Whether a part failed that decides no exit code: before a pipe, `;` or `|| true`."""
    line = shell_command(call.tool, call.arguments)
    return bool(_JOINED.search(line)) and _FAILED.search(call.result or "") is not None


def _target(call: Call) -> tuple[str, str]:
    """What a call is aimed at: its file, or its last command by name."""
    commands = commands_of(shell_command(call.tool, call.arguments))
    name = redacted_line(commands[-1].name) if commands else ""
    return file_path(call.tool, call.arguments), name


def _label(call: Call) -> str:
    name = _target(call)[1]
    return f"`{name}`" if name else redacted_line(call.tool)


@lru_cache(maxsize=4_096)
def _is_sound(text: str) -> bool:
    """Whether a short text instructs nobody, also hidden in names."""
    if len(_WORD.findall(text)) < _FEWEST_WORDS:
        return True
    return find_suspicion((text, _IN_A_NAME.sub(" ", text))) is None
