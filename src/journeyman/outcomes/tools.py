"""What the name of a tool says: whether it runs commands, whose output can be anything and whose
exit code matters, or shows content, in which words of failure are no failure.
"""

import re
from functools import lru_cache

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
