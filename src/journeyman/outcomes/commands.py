"""What a call reveals before its result is read: whether its tool runs commands or shows content,
and for a command, which program sets the exit code and what that code means.
"""

import re
from functools import lru_cache

import msgspec

from journeyman.outcomes.rules import RULES, Rule
from journeyman.text.shell import deciding_command

RUNS = frozenset(
    (
        *("bash", "sh", "shell", "terminal", "console", "powershell", "command", "cmd", "exec"),
        *("execute", "executor", "python", "ipython", "jupyter", "interpreter", "sandbox"),
    )
)
"""Words in the names of tools that run commands or code."""

QUERIES_DATABASE = frozenset(("sql", "query", "database", "db"))
"""Words in the names of tools that run queries: they report errors in a message, not an exit code.
"""

SHOWS = frozenset(
    (
        *("read", "view", "cat", "open", "show", "grep", "glob", "ls", "list", "search", "find"),
        *("lookup", "retrieve", "fetch", "browse", "visit", "page", "web", "doc", "docs", "log"),
        *("logs", "task", "agent", "snapshot"),
    )
)
"""Words in the names of tools that return text written by others: files, pages, reports."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


@lru_cache(maxsize=4096)
def runs_commands(tool: str) -> bool:
    """Return whether a tool with this name runs commands or code."""
    words = _words(tool)
    if {"run", "code"} <= words or {"code", "interpreter"} <= words:
        return True
    return not words.isdisjoint(RUNS) and words.isdisjoint(QUERIES_DATABASE)


@lru_cache(maxsize=4096)
def shows_content(tool: str) -> bool:
    """Return whether a tool with this name returns content that others wrote."""
    return not _words(tool).isdisjoint(SHOWS)


def _words(tool: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(tool)}


_ARGUMENTS = ("command", "cmd", "script", "code", "input")
"""The arguments in which tools receive the command to run."""


def command_of(arguments: str) -> str:
    """Return the command that a call runs, or an empty text if the arguments name none."""
    try:
        values = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(values, dict):
        return ""
    for name in _ARGUMENTS:
        value = values.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            # ["bash", "-lc", "rg TODO"] holds a script; other lists are the words of a command.
            return value[-1] if len(value) > 2 and value[1].startswith("-") else " ".join(value)
    return ""


_ANSWERS = tuple(
    (row, re.compile(rf"(?:\S+/)?(?:{row.patterns[0]})(?=\s|$)")) for row in RULES["answering"]
)

_PREFIX = re.compile(r"(?:\w+=\S*\s+|sudo\s+|time\s+|!\s+|xargs\s+(?:-\S+\s+)*)*")


def deciding_program(arguments: str) -> str:
    """Return the command whose exit code a call reports, without wrappers such as `sudo`."""
    command = deciding_command(command_of(arguments))
    return command[_PREFIX.match(command).end() :]  # type: ignore[union-attr]  # it matches anything


def answers_no(arguments: str, exit_code: int, output: str) -> Rule | None:
    """Return the rule by which this exit code is an answer, such as `grep` finding nothing, rather
    than a failure; None if there is none.
    """
    deciding = deciding_program(arguments)
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
    """Return whether a command ends by printing content, which may contain any words: a file, the
    history, or the output of a pipe, whose exit code is that of its last program.
    """
    return _SHOWING.match(deciding_program(arguments)) is not None


_ECHO = re.compile(
    r"\|\|[ \t]{0,20}\(?[ \t]{0,20}(?:echo|printf)[ \t]{1,20}(?:-\w{1,9}[ \t]{1,20}){0,3}"
    r"(?P<words>'[^']*'|\"[^\"]*\"|[^\s;&|)]+)"
)
_BAD_WORDS = re.compile(r"fail|error|broken|crash|not ok\b", re.IGNORECASE)


def masked_failure(arguments: str, output: str) -> str:
    """Return the message with which a command hid its failure, as `make || echo FAILED` does: the
    command prints it only after a failure, and the output contains it. Empty if there is none.
    """
    lines = None
    for match in _ECHO.finditer(command_of(arguments)):
        words = match["words"].strip("'\"").replace("\\n", "").strip()
        if words and _BAD_WORDS.search(words):
            lines = lines or {line.strip() for line in output.splitlines()}
            if words in lines:
                return words
    return ""
