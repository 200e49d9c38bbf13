"""What can be read off a call before its result: whether the tool, by its name, runs commands or
shows content; which program decides a command's exit code, whether that program only shows
something or answers a question with its code, and whether it hides a failure.
"""

import re
from functools import lru_cache

import msgspec

from journeyman.outcomes.rules import RULES, Rule

RUNS = frozenset(
    (
        *("bash", "sh", "shell", "terminal", "console", "powershell", "command", "cmd", "exec"),
        *("execute", "executor", "python", "ipython", "jupyter", "interpreter", "sandbox"),
    )
)
"""Words in the names of tools that run commands or code."""

ASKS_A_DATABASE = frozenset(("sql", "query", "database", "db"))
"""Such a tool executes too, but has no exit code and says what is wrong in a message."""

SHOWS = frozenset(
    (
        *("read", "view", "cat", "open", "show", "grep", "glob", "ls", "list", "search", "find"),
        *("lookup", "retrieve", "fetch", "browse", "visit", "page", "web", "doc", "docs", "log"),
        *("logs", "task", "agent", "snapshot"),
    )
)
"""Words in the names of tools whose results are somebody's text: files, pages, reports."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


@lru_cache(maxsize=4096)
def runs_commands(tool: str) -> bool:
    """Whether a tool of this name runs commands or code."""
    words = _words(tool)
    if {"run", "code"} <= words or {"code", "interpreter"} <= words:
        return True
    return not words.isdisjoint(RUNS) and words.isdisjoint(ASKS_A_DATABASE)


@lru_cache(maxsize=4096)
def shows_content(tool: str) -> bool:
    """Whether the results of a tool of this name are content that somebody else wrote."""
    return not _words(tool).isdisjoint(SHOWS)


def _words(tool: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(tool)}


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


_ANSWERS = tuple(
    (row, re.compile(rf"(?:\S+/)?(?:{row.patterns[0]})(?=\s|$)")) for row in RULES["answering"]
)

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


def answers_no(arguments: str, exit_code: int, output: str) -> Rule | None:
    """The row that says that this exit code was an answer and no failure, if one does."""
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
