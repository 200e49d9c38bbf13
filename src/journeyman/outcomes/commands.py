"""What a call reveals before its result is read: whether its tool runs commands or shows content,
and for a command, which program sets the exit code and what that code means.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple

import msgspec

from journeyman.outcomes.rules import RULES, Rule
from journeyman.text.shell import commands

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


# What may stand before a program: assignments, and programs that run another.
_PREFIX = (
    r"(?:\w+=\"?\$\(\s*|\w+=\S*\s+|!\s+|(?:sudo|time|env|nice|nohup|npx|bunx|xargs)\s+(?:-\S+\s+)*"
    r"|timeout\s+(?:-\S+\s+)*\S+\s+|bundle exec\s+|(?:\S+/)?python[\d.]*\s+(?:-\w+\s+)*?-m\s+"
    r"|(?:uv|poetry|pipenv|pdm|hatch|conda|coverage) run\s+(?:\S+\s+){0,4}?"
    r"|(?:npm|pnpm|yarn|bun|mise) (?:exec|dlx|x)\s+(?:\S+\s+){0,2}?(?:--\s+)?"
    r"|docker(?: compose|-compose)? (?:exec|run)\s+(?:\S+\s+){1,8}?)*"
)


def _program(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"{_PREFIX}(?:[^\s=]+/)?(?:{'|'.join(patterns)})(?=[\s)]|$)")


_ANSWERS = tuple((row, _program(row.patterns)) for row in RULES["answering"])
_RUNNERS = tuple(
    (row, _program((*row.patterns, *map(re.escape, row.phrases)))) for row in RULES["runner"]
)
_SHOWING = _program(
    (
        "cat|bat|head|tail|sed|awk|grep|egrep|rg|ls|find|wc|sort|uniq|cut|tree|echo|printf|jq|yq",
        r"less|more|nl|strings|gh|json\.tool",
        "git (?:--no-pager )?(?:show|diff|log|grep|blame|status|branch|ls-files|cat-file)",
    )
)


def answers_no(arguments: str, exit_code: int, output: str) -> Rule | None:
    """Return the rule by which this exit code is an answer, such as `grep` finding nothing, rather
    than a failure; None if there is none. Of `test -f a && cat a`, the first part answered.
    """
    said = output.strip()
    rows = [one for one in _ANSWERS if exit_code in one[0].codes and not (said and one[0].silent)]
    if not any(re.search(row.patterns[0], arguments) for row, _ in rows):
        return None
    for index, (command, operators) in enumerate(reversed(commands(command_of(arguments)))):
        if index and operators[-1:] not in ("&", "|"):
            break
        for row, program in rows:
            if program.match(command):
                return row
        if not _SHOWING.match(command):
            break
    return None


def only_shows(arguments: str) -> bool:
    """Return whether a command ends by printing content, which may contain any words: a file, the
    history, or the output of a pipe, whose exit code is that of its last program.
    """
    parts = commands(command_of(arguments))
    return bool(parts) and _SHOWING.match(parts[-1][0]) is not None


class HiddenRun(NamedTuple):
    """A test, lint or build whose exit code the command hides: whether no output means success,
    after how many lines `head` cuts the output, or 0, and whether the command prints the code last.
    """

    silent: bool
    most_lines: int
    prints_code: bool


_STOPS_AT_FAILURE = re.compile(r"\bset -\w*e|\bexit \"?\$")
_HEAD = re.compile(r"head(?:\s+-n?\s*(\d{1,6}))?(?=\s|$)")
_KEEPS = re.compile(r"(?:head|tail|tee|cat)(?=\s|$)")


def hidden_run(arguments: str) -> HiddenRun | None:
    """Return the first test, lint or build of a command whose exit code another part of the command
    replaces, as in `make test | tail`, `make || true` and `make; echo done`. None if there is none.
    """
    has_operator = "|" in arguments or ";" in arguments
    if not has_operator and ("\\n" not in arguments or "<<" in arguments):
        return None
    text = command_of(arguments)
    pipe = "" if "pipefail" in text else r"|(?:^|\))\|"
    hides = "/|b" + pipe + ("" if _STOPS_AT_FAILURE.search(text) else "|;[^c]*c")
    parts = commands(text)
    for index, (command, operators) in enumerate(parts):
        later = parts[index + 1 :]
        # The operators after the command, with `c` for each command between them.
        if not re.search(hides, operators + "".join(f"c{one}" for _, one in later)):
            continue
        for row, program in _RUNNERS:
            if program.match(command):
                piped = takewhile(lambda pair: pair[0][1][-1:] == "|", pairwise(parts[index:]))
                filters = [one for _, (one, _) in piped]
                cuts = [int(cut[1] or 10) for one in filters if (cut := _HEAD.match(one))]
                prints = parts[-1][0].startswith(("echo", "printf")) and (
                    "PIPESTATUS" in text.upper() or (operators[:1] == ";" and "$?" in later[0][0])
                )
                silent = row.silent and all(_KEEPS.match(one) for one in filters)
                return HiddenRun(silent, min(cuts, default=0), prints)
    return None


_ECHO = re.compile(r"(?:echo|printf)\s+(?:-\w+\s+)*['\"]?(.*?)(?:\\n)?['\"]?$")
_BAD_WORDS = re.compile(r"fail|error|broken|crash|not ok\b", re.IGNORECASE)


def masked_failure(arguments: str, output: str) -> str:
    """Return the message with which a command hid its failure, as `make || echo FAILED` does: the
    command prints it only after a failure, and the output contains it. Empty if there is none.
    """
    for (_, operators), (command, _) in pairwise(commands(command_of(arguments))):
        echo = _ECHO.match(command) if operators[-1:] == "/" else None
        words = echo[1].strip() if echo and _BAD_WORDS.search(echo[1]) else ""
        if words and words in (line.strip() for line in output.splitlines()):
            return words
    return ""
