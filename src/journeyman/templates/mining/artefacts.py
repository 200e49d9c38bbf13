"""What programs around an agent leave in its sessions and nobody may learn from: results that were
cleared to save room, arguments that were cut, prompts and summaries that no person wrote. The
readers mark what they recognise in their own logs; these tables are for what comes through.
"""

import re
from typing import NamedTuple


class Artefact(NamedTuple):
    """A row: where it stands is the table's business, what it looks like is the pattern's."""

    id: str
    pattern: str
    example: str
    reason: str


RESULTS = (
    Artefact(
        "cleared",
        r"\[(?:Old )?tool (?:output|result)s? (?:content )?(?:was |has been )?"
        r"(?:cleared|pruned|removed)",
        "[Old tool output cleared to save context space]",
        "Hermes, Claude Code and others clear old results before they compress",
    ),
    Artefact(
        "stub",
        r"\[\w[\w.-]*\] (?:ran|read|wrote|edited|searched|content search|file search|fetched|"
        r"patched|called|listed|executed)\b[^\n]*\)?$",
        "[terminal] ran `npm test` -> exit 0, 47 lines output",
        "Hermes replaces an old result by one line that tells of it",
    ),
    Artefact(
        "screenshot",
        r"\[screenshots? (?:was |has been )?removed",
        "[screenshot removed to save context]",
        "a picture that is gone shows nothing",
    ),
    Artefact(
        "spilled",
        r"<persisted-output>",
        "<persisted-output>\nThis tool result was too large (90,000 characters).",
        "what is left is a notice and a path that has gone",
    ),
    Artefact(
        "unchanged",
        r'\{"status": ?"unchanged"|File unchanged since last read',
        '{"status": "unchanged", "message": "File unchanged since last read"}',
        "the result says to look at an earlier one",
    ),
    Artefact(
        "repeated",
        r"\[hermes note: this is the \w+ consecutive identical call",
        "[hermes note: this is the 3rd consecutive identical call of read_file",
        "the agent went in circles",
    ),
    Artefact(
        "no-result",
        r"\[No result\b|\(no result recorded\)",
        "[No result was recorded for this call]",
        "put there so that every call has an answer",
    ),
)

ARGUMENTS = (
    Artefact(
        "cut",
        r'\.\.\. ?\[truncated\]"?|…\[truncated\]',
        '{"content": "def main():...[truncated]"}',
        "compression cuts long arguments; a cut one must not be imitated",
    ),
    Artefact(
        "cleared",
        r"\[(?:content|arguments?|input)s? (?:cleared|removed|omitted|pruned)\b",
        '{"content": "[content cleared]"}',
        "the same, done by other programs",
    ),
)

REQUESTS = (
    Artefact(
        "review",
        r"Review the conversation above and (?:update the skill library|consider saving)",
        "Review the conversation above and consider saving to memory if appropriate.",
        "older builds of Hermes left the prompt of a background review in the session",
    ),
    Artefact(
        "scheduled",
        r"\[(?:IMPORTANT|SYSTEM): You are running as a scheduled (?:cron )?job",
        "[IMPORTANT: You are running as a scheduled cron job. DELIVERY: …]",
        "the prompt of a schedule, not of a person",
    ),
    Artefact(
        "notice",
        r"\[(?:IMPORTANT|SYSTEM|System note|hermes note)\b",
        "[IMPORTANT: Background process proc_1 has finished]",
        "a notice of the program around the agent",
    ),
    Artefact(
        "summary",
        r"\[CONTEXT (?:COMPACTION|SUMMARY)|\[PRIOR CONTEXT|"
        r"Continue from the compressed conversation context|"
        r"This session is being continued from a previous conversation|"
        r"Here is a summary of (?:the|our) (?:conversation|session) so far",
        "[CONTEXT SUMMARY]: the user asked for a parser",
        "what a compression left behind",
    ),
    Artefact(
        "interrupted",
        r"\[Request interrupted by user",
        "[Request interrupted by user for tool use]",
        "Claude Code's mark of an interruption",
    ),
    Artefact(
        "tagged",
        r"<(?:system-reminder|command-name|command-message|local-command|task-notification|"
        r"environment_context|user_instructions|turn_aborted|bash-(?:input|stdout|stderr)|"
        r"teammate-message|user-prompt-submit-hook)\b",
        "<environment_context>\n  <cwd>/repo</cwd>",
        "what harnesses put into the user's place stands in tags of theirs",
    ),
    Artefact(
        "plan",
        r"Implement the following plan:",
        "Implement the following plan:\n\n# Plan: a parser",
        "Claude Code writes it when a plan is accepted; the plan is the assistant's text",
    ),
    Artefact(
        "hook",
        r"(?:Stop|SubagentStop|PreToolUse|PostToolUse) hook (?:feedback|error)|"
        r"Another Claude session|Caveat: The messages below|"
        r"Your task is to create a detailed summary|"
        r"Please continue the conversation from where we left",
        "Stop hook feedback: run the linter",
        "what hooks, other sessions and the program itself say in the user's place",
    ),
    Artefact(
        "skill",
        r"\[(?:IMPORTANT: )?(?:The user has invoked|Loaded skill|SKILL)\b|<skill\b|"
        r"Base directory for this skill:",
        "Base directory for this skill: skills/pdf",
        "a slash command puts a whole skill into the user's place",
    ),
)


def _one_of(rows: tuple[Artefact, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{row.pattern})" for row in rows), re.IGNORECASE)


_RESULT, _ARGUMENT, _REQUEST = _one_of(RESULTS), _one_of(ARGUMENTS), _one_of(REQUESTS)

_REMINDER = re.compile(r"\s*<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
"""Claude Code puts reminders to the model into results."""

_LONGEST_REMINDER = 1_500

_HEAD = 300
"""Where a stub begins: a file that only mentions one does so later."""


def without_reminders(result: str) -> str:
    """A result without what the program around the agent has added for the agent. Of a reminder
    that was cut, the paragraphs before its end go.
    """
    if "system-reminder>" not in result:
        return result
    kept = _REMINDER.sub("", result)
    end = kept.rfind("</system-reminder>")
    if end < 0:
        return kept
    start = kept.rfind("\n\n", max(0, end - _LONGEST_REMINDER), end)
    start = max(start, 0) if start >= 0 else max(0, end - _LONGEST_REMINDER)
    return kept[:start] + kept[end + len("</system-reminder>") :]


def is_stub(result: str) -> bool:
    """Whether a result is no longer what the tool gave back."""
    return _RESULT.match(result[:_HEAD].lstrip()) is not None


def are_cut(arguments: str) -> bool:
    """Whether the arguments are no longer what the agent asked for."""
    return _ARGUMENT.search(arguments) is not None


def is_prompted(text: str) -> bool:
    """Whether a user's message was written by a program."""
    return _REQUEST.match(text[:_HEAD].lstrip()) is not None
