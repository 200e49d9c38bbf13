"""Exit codes as harnesses state them, and what they mean."""

import re
import string
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
        r"(?: [`\"'][^\n]{0,200}?[`\"'])? (?:\w+ ){1,4}"
        r"(?:exit code|return code|status code|code):? ?{code}(?=[\s.,:;)]|$)",
        "Command failed with exit code 2\nmodule not found",
        "a common way to say it in one sentence before the output",
    ),
    StatedExit(
        "roo",
        r"Command executed in terminal[^\n]{0,400}?\n?Exit code: {code}(?=\n|$)",
        "Command executed in terminal within working directory '/w'. Command execution was not "
        "successful, inspect the cause and adjust as needed.\nExit code: 2\nOutput:\n",
        "Roo Code tells where it ran, and the code before the output",
    ),
    StatedExit(
        "written_object",
        r"[A-Z]\w{1,60}\((?:[a-z_]{1,30}=[^,\n]{0,80}, ){0,2}exit_code={code}\b",
        "CommandLineCodeResult(exit_code=2, output='', code_file='x.sh')",
        "AutoGen's result object, written out",
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
        r"(?:(?:\w+ ){0,3}(?:[Ee]xit|[Rr]eturn)[ _](?:[Cc]ode|[Ss]tatus):?|exited with code)"
        r" ?{code}"
        r"[.)\]>]*",
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


_head = re.compile(_one_of(AT_THE_HEAD))
_end = re.compile(_one_of(AT_THE_END) + r"\s*\Z")
_LONGEST = 300


class Stated(NamedTuple):
    """An exit code that a harness stated, by which row, and the output beside it."""

    id: str
    code: int
    output: str


# What the rows begin with and have in them. Most texts do not, which is found out much faster.
_FIRST = frozenset(string.ascii_uppercase + "ecpst<[")
_IN_THE_HEAD = ("xit", " code", "returncode>")
_IN_THE_END = ("xit", "eturn code", "eturn Code", "eturn_code")


def stated_at_the_head(text: str) -> Stated | None:
    """The exit code that a result begins with."""
    if text[0] not in _FIRST or not _has_one(text[:_LONGEST], _IN_THE_HEAD):
        return None
    found = _head.match(text)
    if found is None:
        return None
    at = found.lastindex or 1
    return Stated(AT_THE_HEAD[at - 1].id, int(found[at]), text[found.end() :])


def stated_at_the_end(text: str) -> Stated | None:
    """The exit code that a result closes with."""
    if not _has_one(text[-_LONGEST:], _IN_THE_END):
        return None
    found = _end.search(text, max(0, len(text) - _LONGEST))
    if found is None:
        return None
    at = found.lastindex or 1
    return Stated(AT_THE_END[at - 1].id, int(found[at]), text[: found.start()])


def _has_one(text: str, phrases: tuple[str, ...]) -> bool:
    for phrase in phrases:  # noqa: SIM110  # a generator for any() takes three times as long
        if phrase in text:
            return True
    return False
