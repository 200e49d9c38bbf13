"""Which calls of a recorded session a told fact makes needless, and how many facts could."""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from journeyman.learning.agent_tools import shell_command
from journeyman.learning.commands import (
    check_kind,
    commands_of,
    placed,
    program_of,
    subject_of,
)
from journeyman.learning.observations import findings_of
from journeyman.learning.traps import SHELL, WITHIN, traps_of
from journeyman.records.fact import Fact
from journeyman.trials.replay import Event, RecordedSession, is_search


def needless_calls(recorded: RecordedSession, fact: Fact, at: int) -> tuple[set[int], bool]:
    """Return the calls after `at` that a fact makes needless, and whether it was used at all."""
    events, root = recorded.events, recorded.root
    if fact.kind == "continuity":
        return _searches(events, fact.present or (fact.subject,), at)
    if fact.kind == "command":
        return _wrong_attempts(events, fact.subject, at)
    if fact.kind == "trap":
        remedy = subject_of(fact.remedy)
        needless, used = _wrong_attempts(events, remedy, at) if remedy else (set[int](), False)
        for number, event in _calls(events, at):
            if event.verdict is not None and event.verdict.is_error and _meets(event, fact, root):
                return needless | _until_end(events, number, fact), True
        return needless, used
    return set(), True


def _searches(events: Sequence[Event], paths: Iterable[str], at: int) -> tuple[set[int], bool]:
    """Return the searches that found one of the files, before it was first used."""
    wanted, credited, used = {*paths}, set[int](), False
    pending: list[tuple[int, Event]] = []
    for number, event in enumerate(events):
        if event.call is None:
            continue
        found = wanted.intersection(event.files)
        if found and number > at and event.verdict is not None and not event.verdict.is_error:
            used = True
            for path in found:
                name = path.rpartition("/")[2]
                credited |= {
                    earlier
                    for earlier, one in pending
                    if one.call and name in f"{one.call.arguments}{one.call.result}"
                }
            wanted -= found
        elif is_search(event.call) and number > at:
            pending.append((number, event))
    return credited, used


def _wrong_attempts(events: Sequence[Event], subject: str, at: int) -> tuple[set[int], bool]:
    """Return the failed attempts with other commands of its kind before a command was used, and the
    searches that found its script.
    """
    kind, needless = check_kind(subject), set[int]()
    for number, event in _calls(events, at):
        names = _names(event)
        if subject in names:
            return needless, True
        is_attempt = kind is not None and any(check_kind(name) == kind for name in names)
        has_failed = event.verdict is not None and event.verdict.is_error
        if (is_attempt and has_failed and _is_missing(event)) or _finds_script(event, subject):
            needless.add(number)
    return set(), False


def _finds_script(event: Event, script: str) -> bool:
    """Whether a call looks for something and shows a script by its path, or in its folder."""
    call = event.call
    folder, _, name = script.removeprefix("./").rpartition("/")
    if call is None or not folder or not is_search(call):
        return False
    in_folder = _has_word(folder, call.arguments) and _has_word(name, call.result or "")
    return in_folder or _has_word(f"{folder}/{name}", f"{call.arguments} {call.result}")


def _has_word(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w.-])", text) is not None


def _until_end(events: Sequence[Event], number: int, fact: Fact) -> set[int]:
    """Return a failed call, and the failures and searches after it until its end was reached."""
    needless, remedy = {number}, subject_of(fact.remedy) if fact.remedy else ""
    for later, event in _calls(events[: number + 1 + WITHIN], number):
        text = event.call.arguments if event.call else ""
        if not remedy or remedy in text:
            return needless
        if event.call and event.verdict and (event.verdict.is_error or is_search(event.call)):
            needless.add(later)
    return {number}


def _calls(events: Sequence[Event], after: int) -> Iterable[tuple[int, Event]]:
    return (
        (number, event)
        for number, event in enumerate(events)
        if number > after and event.call is not None
    )


def _names(event: Event) -> list[str]:
    call = event.call
    line = shell_command(call.tool, call.arguments) if call else ""
    return [placed(subject_of(one.name), event.folder or "") for one in commands_of(line)]


def _meets(event: Event, fact: Fact, root: str) -> bool:
    """Whether a failed call is the one that a trap is about."""
    if event.call is None or event.verdict is None:
        return False
    return any(
        fact.subject
        == (program_of(trap.failed) if trap.tool == SHELL else f"{trap.tool}({trap.failed})")
        for trap in traps_of(event.call, event.verdict, root, event.folder)
    )


def _is_missing(event: Event) -> bool:
    if event.call is None or event.verdict is None:
        return False
    traps = traps_of(event.call, event.verdict, "", event.folder)
    return any(trap.reason in ("program", "check", "task", "option") for trap in traps)


def repairs(events: Sequence[Event], rules: AbstractSet[str], at: int) -> tuple[set[int], bool]:
    """Return the failed lints that reported nothing but known rules, with what followed until one
    of the same command worked, and whether any of the rules came up.
    """
    needless, came_up = set[int](), False
    for number, event in _calls(events, at):
        if event.call is None or event.verdict is None or not event.verdict.is_error:
            continue
        found = findings_of(event.call, event.verdict)
        reported = {one.rule for one in found if check_kind(one.command) != "test"}
        came_up = came_up or bool(reported & rules)
        if number in needless or not reported or not reported <= rules:
            continue
        command = found[0].command
        needless.add(number)
        for later, one in _calls(events[: number + 1 + WITHIN], number):
            needless.add(later)
            worked = one.verdict is not None and one.verdict.status == "ok"
            if worked and command in _names(one):
                needless.discard(later)  # the check that is made anyway
                break
        else:
            needless -= set(range(number + 1, number + 1 + WITHIN))
    return needless, came_up


def possible_savings(recorded: RecordedSession) -> int:
    """Return how many calls looked for something or failed for a lasting reason."""
    return sum(
        is_search(event.call)
        or (
            event.verdict is not None
            and event.verdict.is_error
            and bool(traps_of(event.call, event.verdict, recorded.root, event.folder))
        )
        for event in recorded.events
        if event.call is not None
    )
