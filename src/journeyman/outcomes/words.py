"""The words of harnesses where they put them: at the beginning of a result, near its end, or in a
message of one line; exit codes as they state them; how programs complain whose exit code nobody
recorded; and the kind of failure that a message speaks of.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from journeyman.outcomes.commands import only_shows
from journeyman.outcomes.rules import RULES, Found, Rule, finder
from journeyman.records import Kind

_LONGEST_END = 300
_LONGEST_MESSAGE = 300
_MOST = 200
_PREFIXES = ("Error: ", "ERROR: ", "error: ")
_find = finder(RULES["head"], at_start=True)
# What is special can stand behind a general "Error: "; the last resort is that word itself.
_SPECIAL = ("refused", "interrupted", "invalid")
_special = finder(
    [row for row in RULES["head"] if row.status in _SPECIAL or row.kind == "timeout"], at_start=True
)
_find_message = finder([row for row in RULES["message"] if row.patterns], at_start=True)
_PHRASES = tuple((phrase, row) for row in RULES["message"] for phrase in row.phrases)
_KINDS = tuple((phrase, row.kind) for row in RULES["kind"] for phrase in row.phrases)
_find_late = finder(RULES["end"])
# Every row near the end has one of these in it, and hardly any text does: to look for them first
# takes a third off the judge's time.
_IN_THE_END = (
    *("try again.", "mistakes.", "to repeat", "rejected by the user]", "nterrupted", "aborted"),
    *("[Error occurred", "NOT executed.", "END error", "timed out", "exceeding timeout"),
    *("no new output", "still running"),
)


def at_the_head(text: str) -> Found | None:
    """The row whose words a result begins with."""
    if text.startswith(_PREFIXES):
        return _special(text[7:].lstrip()) or _find(text)
    return _find(text)


def in_a_message(text: str) -> Found | None:
    """The row whose words a result has that is one short line or two."""
    if len(text) > _LONGEST_MESSAGE or text.count("\n") > 1:
        return None
    low = text.lower()
    fits = (Found(row) for phrase, row in _PHRASES if phrase in low)
    return next(fits, None) or _find_message(text)


def near_the_end(text: str) -> Found | None:
    """The row whose words stand near the end of a result."""
    end = text[-_LONGEST_END:]
    return _find_late(end) if any(word in end for word in _IN_THE_END) else None


def kind_of(message: str, otherwise: Kind = "error") -> Kind:
    """The kind that the words of something known to have failed tell."""
    if len(message) > 2 * _MOST:
        # What went wrong is said first or last, seldom in the middle.
        message = message[:_MOST] + "\n" + message[-_MOST:]
    low = message.lower()
    return next((kind for phrase, kind in _KINDS if phrase in low), otherwise)


MEANING = {code: row for row in RULES["exit_meaning"] for code in row.codes}

_head_codes, _end_codes = (
    "|".join(row.patterns[0].replace("{code}", r"(-?\d{1,10})") for row in rows)
    for rows in (RULES["exit_at_head"], RULES["exit_at_end"])
)
_exit_at_head, _exit_at_end = re.compile(_head_codes), re.compile(rf"(?:{_end_codes})\s*\Z")
# Every row for the end has one of these in it, and most texts do not: to look for them first takes
# a quarter off the judge's time.
_BEFORE_A_CODE = ("xit", "eturn code", "eturn Code", "eturn_code")


class Stated(NamedTuple):
    """An exit code that a harness stated, by which row, and the output beside it."""

    id: str
    code: int
    output: str


def stated_at_the_head(text: str) -> Stated | None:
    """The exit code that a result begins with."""
    found = _exit_at_head.match(text)
    return found and _stated(RULES["exit_at_head"], found, text[found.end() :])


def stated_at_the_end(text: str) -> Stated | None:
    """The exit code that a result closes with."""
    if not any(phrase in text[-_LONGEST_END:] for phrase in _BEFORE_A_CODE):
        return None
    found = _exit_at_end.search(text, max(0, len(text) - _LONGEST_END))
    return found and _stated(RULES["exit_at_end"], found, text[: found.start()])


def _stated(rows: Sequence[Rule], found: re.Match[str], output: str) -> Stated:
    at = found.lastindex or 1
    return Stated(rows[at - 1].id, int(found[at]), output)


_shell = finder(RULES["shell"], on_lines=True)
_any = finder((*RULES["shell"], *RULES["summary"]), on_lines=True)

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LAST = 500
_SHORT = 600
_FIRST = 4000
_TELLING = 12
"""A last line such as FAIL is shorter than this, and a line before it says more."""

_RAISED = re.compile(
    r"^(?:\w{1,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception)\b[^\n]{0,300}", re.MULTILINE
)


def complaint(arguments: str, output: str) -> tuple[Rule, str] | None:
    """What a command complains of, when nobody recorded its exit code: a row and its line."""
    end = _end(output)
    found = _any(end)
    if found is not None and only_shows(arguments):
        # The program's own complaint stands alone, first or last.
        end = end.rstrip().rpartition("\n")[2]
        found = _shell(end)
        if found is None and len(output) < _SHORT:
            end = output.partition("\n")[0]
            found = _shell(end)
    return found and (found.rule, end[found.start :].partition("\n")[0])


def what_went_wrong(output: str) -> tuple[Kind, str]:
    """The line of a failed command's output that says most, else its last words, and the kind of
    the row that knows it.
    """
    end = _end(output)
    last = end.rpartition("\n")[2]
    if len(last) > _TELLING and (found := _any(last)):
        return found.rule.kind, last  # most programs say it last
    if found := _any(end):
        return found.rule.kind, end[found.start :].partition("\n")[0]
    # What goes to another stream can stand before all else.
    raised = _RAISED.search(output[:_FIRST]) if "Traceback" in output[:_FIRST] else None
    return "", raised[0] if raised else last


def _end(output: str) -> str:
    # The tags that some harnesses put around an output are no line of it.
    end = output[-_LAST:].rstrip().removesuffix("</output>").removesuffix("</output_tail>").rstrip()
    return _COLOURS.sub("", end) if "\x1b" in end else end
