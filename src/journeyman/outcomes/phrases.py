"""Finds the phrases of harnesses and programs in the text of a result: at its head, near its end or
in a one-line message; exit codes that harnesses state; error messages of programs without a
recorded exit code; the kind of failure that a message describes, and who refused a call.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from journeyman.outcomes.commands import HiddenRun, only_shows
from journeyman.outcomes.rules import RULES, Rule, RuleMatch, excerpt, finder
from journeyman.records import Refuser, Verdict, VerdictKind

_LONGEST_END = 300
_LONGEST_MESSAGE = 300
_KIND_PART = 200
_PREFIXES = ("Error: ", "ERROR: ", "error: ")
_find_head = finder(RULES["head"], at_start=True)
# A specific phrase can follow a general "Error: ", which on its own is the last resort.
_SPECIFIC = ("refused", "interrupted", "invalid")
_find_specific = finder(
    [row for row in RULES["head"] if row.status in _SPECIFIC or row.kind == "timeout"],
    at_start=True,
)
_find_message = finder([row for row in RULES["message"] if row.patterns], at_start=True)
_PHRASES = tuple((phrase, row) for row in RULES["message"] for phrase in row.phrases)
_KINDS = tuple((phrase, row.kind) for row in RULES["kind"] for phrase in row.phrases)
_PASSED_ON = tuple((phrase, row.by) for row in RULES["passed_on"] for phrase in row.phrases)
_REFUSERS = _PASSED_ON + tuple(
    (phrase, row.by) for row in RULES["refuser"] for phrase in row.phrases
)
_KINDS_BY_REFUSER: dict[Refuser, VerdictKind] = {
    **dict.fromkeys(("rule", "hook", "mode"), "policy"),
    "person": "declined",
    "nobody": "pending",
}
_LONGEST_WHOLE = 80
_WHOLE = tuple((row, re.compile("|".join(row.patterns), re.IGNORECASE)) for row in RULES["whole"])
_find_end = finder(RULES["end"])
# Every rule for the end contains one of these, and hardly any text does: checking for them first
# saves a third of the judge's time.
_END_WORDS = (
    *("try again.", "mistakes.", "to repeat", "rejected by the user]", "nterrupted", "aborted"),
    *("[Error occurred", "NOT executed.", "END error", "timed out", "exceeding timeout"),
    *("no new output", "still running"),
)


def at_head(text: str) -> RuleMatch | None:
    """Return the rule whose phrase a result begins with."""
    if text.startswith(_PREFIXES):
        return _find_specific(text[7:].lstrip()) or _find_head(text)
    return _find_head(text)


def in_message(text: str) -> RuleMatch | None:
    """Return the rule whose phrase is in a result of one or two short lines."""
    if len(text) > _LONGEST_MESSAGE or text.count("\n") > 1:
        return None
    lowered = text.lower()
    for phrase, row in _PHRASES:
        if phrase in lowered:
            return RuleMatch(row)
    return _find_message(text)


def bare_failure(text: str, *, is_content: bool) -> Rule | None:
    """Return the rule by which a result says nothing but that the call failed. What a tool shows as
    content has to be unmistakable.
    """
    if len(text) > _LONGEST_WHOLE:
        return None
    message = text.rstrip(".! \n")
    rows = (row for row, pattern in _WHOLE if pattern.fullmatch(message))
    return next((row for row in rows if not (row.general and is_content)), None)


def near_end(text: str) -> RuleMatch | None:
    """Return the rule whose phrase is near the end of a result."""
    end = text[-_LONGEST_END:]
    for word in _END_WORDS:
        if word in end:
            return _find_end(end)
    return None


def kind_of(message: str, default: VerdictKind = "error") -> VerdictKind:
    """Return the kind of failure that the message of a failed call describes."""
    if len(message) > 2 * _KIND_PART:
        # The cause is stated first or last, rarely in the middle.
        message = message[:_KIND_PART] + "\n" + message[-_KIND_PART:]
    lowered = message.lower()
    return next((kind for phrase, kind in _KINDS if phrase in lowered), default)


def refusal(row: Rule, message: str, *, rule: str = "", evidence: str = "") -> Verdict:
    """Return the verdict on a call that was refused; the message may say by whom. The rule is that
    of the row, and the evidence the message, unless stated otherwise.
    """
    lowered = message[: 2 * _KIND_PART].lower()
    by = row.by or next((by for phrase, by in _REFUSERS if phrase in lowered), "")
    kind = _KINDS_BY_REFUSER.get(by, row.kind)
    text = excerpt(evidence or message)
    return Verdict(status="refused", kind=kind, by=by, rule=rule or row.id, evidence=text)


def recorded_refusal(by: Refuser, message: str) -> Verdict:
    """Return the verdict on a call that was refused according to the recorder itself. It knows only
    who spoke to it, and that may have been Journeyman for someone else.
    """
    lowered = message[: 2 * _KIND_PART].lower()
    by = next((who for phrase, who in _PASSED_ON if phrase in lowered), by)
    kind, text = _KINDS_BY_REFUSER[by], excerpt(message)
    return Verdict(status="refused", kind=kind, by=by, rule="recorded.refused", evidence=text)


EXIT_MEANINGS = {code: row for row in RULES["exit_meaning"] for code in row.codes}

_head_codes, _end_codes = (
    "|".join(row.patterns[0].replace("{code}", r"(-?\d{1,10})") for row in rows)
    for rows in (RULES["exit_at_head"], RULES["exit_at_end"])
)
_exit_at_head, _exit_at_end = re.compile(_head_codes), re.compile(rf"(?:{_end_codes})\s*\Z")
# Every rule for the end contains one of these, and most texts do not: checking for them first saves
# a quarter of the judge's time.
_CODE_WORDS = ("xit", "eturn code", "eturn Code", "eturn_code")


class StatedExit(NamedTuple):
    """An exit code that a harness stated, the id of the rule, and the output without it."""

    id: str
    code: int
    output: str


def exit_at_head(text: str) -> StatedExit | None:
    """Return the exit code that a result begins with."""
    match = _exit_at_head.match(text)
    return match and _stated_exit(RULES["exit_at_head"], match, text[match.end() :])


def exit_at_end(text: str) -> StatedExit | None:
    """Return the exit code that a result ends with."""
    end = text[-_LONGEST_END:]
    for word in _CODE_WORDS:
        if word in end:
            match = _exit_at_end.search(text, max(0, len(text) - _LONGEST_END))
            return match and _stated_exit(RULES["exit_at_end"], match, text[: match.start()])
    return None


def _stated_exit(rows: Sequence[Rule], match: re.Match[str], output: str) -> StatedExit:
    group = match.lastindex or 1
    return StatedExit(rows[group - 1].id, int(match[group]), output)


_find_shell_error = finder(RULES["shell"], on_lines=True)
_find_error = finder((*RULES["shell"], *RULES["summary"]), on_lines=True)

_NO_GLOB_MATCH = re.compile(r"(?:\(eval\)|zsh):(?:\d+:)? no matches found: ")
"""What zsh says of a part of a command that names files by a pattern that fits none."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_END_LENGTH = 500
_SHORT_OUTPUT = 600
_HEAD_LENGTH = 4000
_SHORTEST_REASON = 12
"""A last line shorter than this, such as FAIL, says less than the lines before it."""

_RAISED = re.compile(
    r"^(?:\w{1,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception)\b[^\n]{0,300}", re.MULTILINE
)


def find_complaint(arguments: str, output: str) -> tuple[Rule, str] | None:
    """Return the rule and the line of an error message in the output of a command whose exit code
    was not recorded.
    """
    end = _end(output)
    found = _complaint(_find_error, end)
    if found and only_shows(arguments):
        # Next to content, a program's own error message is the first or the last line.
        end = end.rstrip().rpartition("\n")[2]
        if "|" in arguments and _NO_GLOB_MATCH.match(end):
            return None  # a later part of the command set its exit code
        found = _complaint(_find_shell_error, end)
        if not found and len(output) < _SHORT_OUTPUT:
            found = _complaint(_find_shell_error, output.partition("\n")[0])
    return found


_OF_RUNS = (row for row in RULES["summary"] if row.in_runs)
_find_run_failure = finder(
    [msgspec.structs.replace(row, patterns=row.patterns + row.in_runs) for row in _OF_RUNS],
    on_lines=True,
)
_find_pass = finder(RULES["passed"], on_lines=True)
_TASK = re.compile(r"^\[[\w:.@/-]{1,60}\] ", re.MULTILINE)
"""What task runners and Maven put before each line."""

_ENDED_BADLY = re.compile(
    r"^(?:Traceback \(most recent call last\)|[Ee]rror|ERROR|fatal error): ?", re.MULTILINE
)
_PRINTED_CODE = re.compile(r"(?:^|[\s:=(])(\d{1,3})\W{0,4}\Z")
_NOTHING = re.compile(r"\W*(?:(?:\w+ )?completed with no output|no (?:output|content)|output)?\W*")


def run_verdict(run: HiddenRun, output: str) -> Verdict:
    """Return the verdict on a test, lint or build by its own words: those of failure, then those of
    success; without either it is unknown.
    """
    text = output.replace("\\n", "\n") if output.startswith(("{", "[", '"')) else output
    text = _TASK.sub("", _COLOURS.sub("", text)) if "[" in text else text
    last = text.rstrip().rpartition("\n")[2]
    printed = _PRINTED_CODE.search(last) if run.prints_code else None
    if printed and int(printed[1]) == 0:
        return Verdict(status="ok", rule="runs.printed_code", evidence=excerpt(last))
    found = _complaint(_find_run_failure, text) or _complaint(_find_error, last)
    if not found and not printed:
        is_cut = run.most_lines and text.count("\n") + 1 >= run.most_lines
        if (not is_cut and _find_pass(text)) or (run.silent and _NOTHING.fullmatch(text)):
            return Verdict(status="ok", rule="runs.passed")
        found = _complaint(_find_error, _end(text))
        if not found and not _ENDED_BADLY.search(text):
            return Verdict(status="unknown", rule="runs.hidden")
    rule, line = (found[0].id, found[1]) if found else ("runs.ended_badly", failure_line(text)[1])
    kind = (found and found[0].kind) or kind_of(line, "exit_code")
    return Verdict(status="failed", kind=kind, rule=rule, evidence=excerpt(line))


def _complaint(find: Callable[[str], RuleMatch | None], text: str) -> tuple[Rule, str] | None:
    match = find(text)
    return match and (match.rule, text[match.start :].partition("\n")[0])


def failure_line(output: str) -> tuple[VerdictKind, str]:
    """Return the kind of a command's failure, and the line of its output that best explains it:
    one that a rule knows, else the last.
    """
    end = _end(output)
    last = end.rpartition("\n")[2]
    if len(last) > _SHORTEST_REASON and (match := _find_error(last)):
        return match.rule.kind, last  # most programs state it last
    if match := _find_error(end):
        return match.rule.kind, end[match.start :].partition("\n")[0]
    # The error stream can precede the rest of the output.
    head = output[:_HEAD_LENGTH]
    raised = _RAISED.search(head) if "Traceback" in head else None
    return "", raised[0] if raised else last


def _end(output: str) -> str:
    # Some harnesses put tags around an output.
    end = output[-_END_LENGTH:].rstrip()
    end = end.removesuffix("</output>").removesuffix("</output_tail>").rstrip()
    return _COLOURS.sub("", end) if "\x1b" in end else end
