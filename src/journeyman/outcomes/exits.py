"""Exit codes as harnesses state them, and what they mean."""

import re
from typing import NamedTuple

from journeyman.records import Kind, Status


class StatedExit(NamedTuple):
    """A place where a harness states the exit code of a command; `{code}` stands for the code."""

    id: str
    pattern: str
    example: str
    reason: str


AT_THE_HEAD: tuple[StatedExit, ...] = (
    StatedExit(
        "claude_code",
        r"Exit code {code}(?=\n|$)",
        "Exit code 2\nls: cannot access 'x': No such file or directory",
        "Claude Code puts it on the first line of a failed command",
    ),
    StatedExit(
        "mini_swe_agent",
        r"<returncode>{code}</returncode>",
        "<returncode>2</returncode>\n<output>\nmake: *** No targets.  Stop.\n</output>",
        "mini-swe-agent puts it in a tag before the output",
    ),
    StatedExit(
        "codex",
        r"(?:(?:Chunk ID|Wall time|Original token count|Total output lines): [^\n]{0,80}\n){0,4}"
        r"(?:Exit code: |Process exited with code ){code}\.?(?=\n|$)",
        "Exit code: 2\nWall time: 0.2 seconds\nOutput:\nmake: *** No rule to make target 'x'.",
        "Codex heads an output with it, among other lines",
    ),
    StatedExit(
        "autogen",
        r"exitcode: {code} \(execution \w+\)",
        "exitcode: 2 (execution failed)\nCode output: Traceback (most recent call last): …",
        "AutoGen tells so what a code block did",
    ),
    StatedExit(
        "sentence",
        r"(?:The )?(?:[Cc]ommand|[Pp]rocess|[Ss]cript|[Tt]ool|[Ee]xecution|[Pp]rogram)"
        r"(?: `[^`\n]{0,200}`)? (?:\w+ ){1,4}"
        r"(?:exit code|exit status|return code|status code|code):? ?{code}(?=[\s.,:;)]|$)",
        "Command failed with exit code 2\nmodule not found",
        "a common way to say it in one sentence before the output",
    ),
    StatedExit(
        "hermes_stub",
        r"\[[\w.-]{1,60}\] ran `[^\n]{0,200}?` -> exit {code}\b",
        "[terminal] ran `npm test` -> exit 2, 47 lines output",
        "what Hermes leaves of an old result: the code is all that is known",
    ),
)

AT_THE_END: tuple[StatedExit, ...] = (
    StatedExit(
        "openhands",
        r"(?:^|\n)\[The command completed with exit code {code}\.?[^\]]{0,200}\]",
        "make: *** [all] Error 2\n[The command completed with exit code 2.]",
        "OpenHands closes an output with it",
    ),
    StatedExit(
        "copilot",
        r"(?:^|\n)<[\w :]{0,60}(?:completed|exited) with exit code {code}>",
        "3 problems\n<exited with exit code 2>",
        "Copilot's command line closes an output with it",
    ),
    StatedExit(
        "last_sentence",
        r"(?:^|\n)[\[(<]?(?:(?:The )?(?:[Cc]ommand|[Pp]rocess|[Ss]cript|[Pp]rogram) )?"
        r"(?:\w+ ){0,3}(?:[Ee]xit|[Rr]eturn)[ _]?(?:[Cc]ode|[Ss]tatus):? ?{code}[.)\]>]*",
        "3 problems\nCommand exited with exit code 2",
        "many programs close an output with a sentence about it",
    ),
    StatedExit(
        "gemini",
        r"\nExit Code: {code}(?:\n(?:Signal|Background PIDs|Process Group PGID): [^\n]{0,80}){1,3}",
        "Command: npm test\nOutput: boom\nError: (none)\nExit Code: 2\nSignal: (none)",
        "Gemini's command line lists it after the output",
    ),
)


class ExitMeaning(NamedTuple):
    """An exit code that means the same whatever the program."""

    code: int
    status: Status
    kind: Kind
    reason: str


MEANINGS: tuple[ExitMeaning, ...] = (
    ExitMeaning(124, "failed", "timeout", "what `timeout` returns, and what harnesses use for it"),
    ExitMeaning(126, "failed", "permission", "a shell found the program and may not run it"),
    ExitMeaning(127, "failed", "not_found", "a shell did not find the program"),
    ExitMeaning(130, "interrupted", "cancelled", "ended by Ctrl-C"),
    ExitMeaning(137, "failed", "limit", "killed, mostly for its memory"),
)
MEANING = {row.code: row for row in MEANINGS}

_CODE = r"(-?\d{1,10})"


def _one_of(rows: tuple[StatedExit, ...]) -> str:
    return "(?:" + "|".join(row.pattern.replace("{code}", _CODE) for row in rows) + ")"


_head = re.compile(r"\s*" + _one_of(AT_THE_HEAD))
_end = re.compile(_one_of(AT_THE_END) + r"\s*\Z")
_LONGEST = 300


class Stated(NamedTuple):
    """An exit code that a harness stated, by which row, and the output beside it."""

    id: str
    code: int
    output: str


def stated_at_the_head(text: str) -> Stated | None:
    """The exit code that a result begins with."""
    head = text[:_LONGEST]
    # Every row has one of these in it, and most texts have neither: much cheaper than the rows.
    if "ode" not in head and "exit" not in head:
        return None
    found = _head.match(text)
    if found is None:
        return None
    at = found.lastindex or 1
    return Stated(AT_THE_HEAD[at - 1].id, int(found[at]), text[found.end() :])


def stated_at_the_end(text: str) -> Stated | None:
    """The exit code that a result closes with."""
    end = text[-_LONGEST:]
    if "ode" not in end and "tatus" not in end:
        return None
    start = max(0, len(text) - _LONGEST)
    found = _end.search(text, start)
    if found is None:
        return None
    at = found.lastindex or 1
    return Stated(AT_THE_END[at - 1].id, int(found[at]), text[: found.start()])
