"""The words of harnesses where they put them: at the beginning of a result, near its end, or in a
message of one line. The rows for the beginning are in `refusals` and `failures`.

What a person or a policy decided comes before what went wrong. A pattern names no inner groups that
capture, and begins with a letter where it can.
"""

import re

from journeyman.outcomes.failures import FAILED, INVALID, MESSAGES, NONE_FOUND
from journeyman.outcomes.refusals import INTERRUPTED, OPEN, REFUSED
from journeyman.outcomes.rule import Found, Rule, anywhere, at_the_start

AT_THE_HEAD = (*REFUSED, *INTERRUPTED, *INVALID, *OPEN, *FAILED)

AT_THE_END: tuple[Rule, ...] = (
    Rule(
        "words.exhortation",
        "failed",
        "",
        (
            r"Fix the errors and try again\.",
            r"Please fix (?:your mistakes|the error and try again)\.",
            r"Please check your input and try again\.",
            r"Now let's retry: take care not to repeat",
        ),
        "city is not known\n Please fix your mistakes.",
        "Pydantic AI, LangGraph, smolagents and VS Code close an error so",
    ),
    Rule(
        "words.rejected_at_the_end",
        "refused",
        "declined",
        (r"\[Last action has been rejected by the user\]",),
        "OBSERVATION:\n[Last action has been rejected by the user]",
        "OpenHands adds it to what was there before",
    ),
    Rule(
        "words.interrupted_at_the_end",
        "interrupted",
        "cancelled",
        (
            r"\[Request interrupted by user",
            r"\[Command interrupted\]",
            r"<error>Command was aborted before completion</error>",
            r"<\w{0,20}metadata>\nUser aborted the command",
        ),
        "building…\n[Request interrupted by user for tool use]",
        "Claude Code, Hermes and opencode add it to what was printed so far",
    ),
    Rule(
        "words.error_at_the_end",
        "failed",
        "",
        (
            r"\[Error occurred in processing last action\]",
            r"\[Your command [^\n]{1,200} is NOT executed\.",
            r"END error message",
        ),
        "no such element\n[Error occurred in processing last action]",
        "OpenHands adds it to an error",
    ),
    Rule(
        "words.timed_out_at_the_end",
        "failed",
        "timeout",
        (
            r"\[(?:The command|Command) timed out after",
            r"<\w{0,20}metadata>\n[^\n]{0,40}(?:after exceeding timeout|timed out after)",
        ),
        "building…\n[Command timed out after 30s]",
        "OpenHands, opencode and Hermes, when they ended a command",
    ),
    Rule(
        "words.open_at_the_end",
        "unknown",
        "background",
        (
            r"\[The command has no new output after",
            r"<command with shellId[^>\n]{0,80} is still running",
        ),
        "building…\n[The command has no new output after 30 seconds. You may wait longer …]",
        "OpenHands and Copilot, while a command goes on",
    ),
)
"""Words near the end of a result. They begin with a character that is rare in texts, which makes
looking for them quick."""

GENERAL = frozenset(
    (
        *("words.marked", "words.error", "words.error_doing", "words.failed_to"),
        "words.exception",
        *(rule.id for rule in AT_THE_END),
    )
)
"""Rows whose words any text can begin or end with, so that content of many lines proves nothing."""

_LONGEST_END = 300
_LONGEST_MESSAGE = 300
# The two ways in which the words of a row can begin with a number.
_numbered = re.compile(r"\d{1,4} validation error|[45]\d\d ").match
_PREFIXES = ("Error: ", "ERROR: ", "error: ")
_find = at_the_start(AT_THE_HEAD)
_none_found = at_the_start((NONE_FOUND,))
_PHRASES = tuple((phrase, rule) for rule in MESSAGES for phrase in rule.patterns)
_find_late = anywhere(AT_THE_END)
# Every row near the end has one of these in it, and hardly any text does.
_IN_THE_END = (
    *("try again.", "mistakes.", "to repeat", "rejected by the user]", "nterrupted", "aborted"),
    *("[Error occurred", "NOT executed.", "END error", "timed out", "exceeding timeout"),
    *("no new output", "still running"),
)
# What is special can stand behind a general "Error: "; the last resort is that word itself.
_special = at_the_start((*REFUSED, *INTERRUPTED, *INVALID, *FAILED[:1]))


def at_the_head(text: str) -> Found | None:
    """The row whose words a result begins with."""
    if text[:1].isdecimal() and not _numbered(text):
        return None  # lines with numbers: what a file holds
    if text.startswith(_PREFIXES):
        return _special(text[7:].lstrip()) or _find(text)
    return _find(text)


def in_a_message(text: str) -> Found | None:
    """The row whose words a result has that is one short line or two."""
    if len(text) > _LONGEST_MESSAGE or text.count("\n") > 1:
        return None
    low = text.lower()
    for phrase, rule in _PHRASES:
        if phrase in low:
            return Found(rule, 0)
    return _none_found(text)


def near_the_end(text: str) -> Found | None:
    """The row whose words stand near the end of a result."""
    end = text[-_LONGEST_END:]
    for word in _IN_THE_END:
        if word in end:
            return _find_late(end)
    return None
