"""What can be read off a command: which program decides its exit code, whether that program only
shows something or answers a question with its code, and whether it hides a failure.
"""

import re
from typing import NamedTuple

import msgspec

_ARGUMENTS = ("command", "cmd", "script", "code", "input")
"""Where tools that run commands are told what to run."""


def command_of(arguments: str) -> str:
    """The command a tool was told to run, or nothing when the arguments do not say."""
    try:
        given = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(given, dict):
        return ""
    for name in _ARGUMENTS:
        value = given.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            # ["bash", "-lc", "rg TODO"]: what the shell is told; else the words themselves.
            return value[-1] if len(value) > 2 and value[1].startswith("-") else " ".join(value)
    return ""


class Answering(NamedTuple):
    """A program whose exit code answers a question. `silent`: it says no without a word; what it
    prints otherwise is then somebody's complaint.
    """

    id: str
    pattern: str
    codes: tuple[int, ...]
    silent: bool
    example: str
    reason: str


ANSWERING: tuple[Answering, ...] = (
    Answering(
        "grep",
        r"(?:e|f|z)?grep|rg|ag|ack|git (?:--no-pager )?grep|pgrep",
        (1,),
        silent=True,
        example="grep -rn needle src",
        reason="1 says that nothing matched, 2 that something is wrong",
    ),
    Answering(
        "diff",
        r"diff|cmp|colordiff|git (?:--no-pager )?diff",
        (1,),
        silent=False,
        example="diff old.txt new.txt",
        reason="1 says that there are differences, 2 that something is wrong",
    ),
    Answering(
        "test",
        r"test|\[\[?|false",
        (1,),
        silent=True,
        example="test -f setup.cfg",
        reason="1 says that the condition does not hold",
    ),
    Answering(
        "which",
        r"which|command -v|type|hash",
        (1,),
        silent=True,
        example="which node",
        reason="1 says that there is no such program",
    ),
    Answering(
        "is",
        r"systemctl is-\w+|git (?:config|merge-base|check-ignore|rev-parse -q|ls-files --error)\b",
        (1, 3),
        silent=True,
        example="git config user.email",
        reason="programs that are asked whether something is so",
    ),
)

_ANSWERS = tuple((row, re.compile(rf"(?:\S+/)?(?:{row.pattern})(?=\s|$)")) for row in ANSWERING)

_ANSWER_CODES = frozenset(code for row in ANSWERING for code in row.codes)
_ANSWERING = re.compile("|".join(row.pattern for row in ANSWERING))

# Parts of a command line: quoted text, what separates commands, and the rest.
_PARTS = re.compile(
    r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|(?P<end>&&|\|\||[;|\n](?!\|)|&(?![>\d]))|[^'"\\;|\n&]+|.""",
    re.DOTALL,
)
_PREFIX = re.compile(r"(?:\w+=\S*\s+|sudo\s+|time\s+|!\s+|xargs\s+(?:-\S+\s+)*)*")
_LONGEST_COMMAND = 20_000


def deciding_command(command: str) -> str:
    """The simple command whose exit code a shell returns: the last one."""
    command = command.strip()
    if len(command) > _LONGEST_COMMAND:
        return ""
    start = 0
    for part in _PARTS.finditer(command):
        if part.lastgroup and command[part.end() :].strip():
            start = part.end()
    last = command[start:].strip().rstrip(";& ")
    return last[_PREFIX.match(last).end() :]  # type: ignore[union-attr]  # it matches anything


def answers_no(arguments: str, exit_code: int, output: str) -> Answering | None:
    """The row that says that this exit code was an answer and no failure, if one does."""
    if exit_code not in _ANSWER_CODES or not _ANSWERING.search(arguments):
        return None
    deciding = deciding_command(command_of(arguments))
    for row, program in _ANSWERS:
        if exit_code in row.codes and program.match(deciding):
            return None if row.silent and output.strip() else row
    return None


_SHOWING = re.compile(
    r"(?:\S+/)?(?:cat|bat|head|tail|sed|awk|grep|egrep|rg|ls|find|wc|sort|uniq|cut|tree|echo|printf"
    r"|jq|yq|less|more|nl|strings|gh|python3? -m json\.tool"
    r"|git (?:--no-pager )?(?:show|diff|log|grep|blame|status|branch|ls-files|cat-file))(?=\s|$)"
)


def only_shows(arguments: str) -> bool:
    """Whether a command ends in showing something, which may hold any words: a file, history, or
    what came through a pipe, whose exit code is then that of the last program.
    """
    return _SHOWING.match(deciding_command(command_of(arguments))) is not None


_ECHO = re.compile(
    r"\|\|[ \t]{0,20}\(?[ \t]{0,20}(?:echo|printf)[ \t]{1,20}(?:-\w{1,9}[ \t]{1,20}){0,3}"
    r"(?P<words>'[^']*'|\"[^\"]*\"|[^\s;&|)]+)"
)
_BAD_WORDS = re.compile(r"fail|error|broken|crash|not ok\b", re.IGNORECASE)


def masked_failure(arguments: str, output: str) -> str:
    """The line with which a command hid that it failed, as `make || echo FAILED` does: the words
    stand in the command, are printed only after a failure, and are in the output.
    """
    lines = None
    for found in _ECHO.finditer(command_of(arguments)):
        words = found["words"].strip("'\"").replace("\\n", "").strip()
        if words and _BAD_WORDS.search(words):
            lines = lines or {line.strip() for line in output.splitlines()}
            if words in lines:
                return words
    return ""
