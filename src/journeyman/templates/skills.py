"""What a call shows how to do. Mostly that is its tool. An agent that has only a shell does
everything with one tool, and there it is the program: `bash pytest` is another skill than
`bash sed`.
"""

import re
from functools import lru_cache

from journeyman.outcomes.commands import command_of
from journeyman.records import Pattern

_SHELLS = frozenset(
    ("bash", "sh", "shell", "terminal", "console", "powershell", "command", "cmd", "exec")
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_LONGEST = 2_000

_BETWEEN = re.compile(r"&&|\|\||[;|\n&]")
_BEFORE = re.compile(r"\A(?:\w+=\S*\s+|(?:sudo|time|exec|command|nohup|then|do)\s+)*")
_PASSING = frozenset(
    ("cd", "export", "set", "source", ".", "pushd", "popd", "true", ":", "echo", "")
)
"""What only prepares for the command that matters."""

_WITH_VERB = frozenset(
    (
        *("git", "gh", "docker", "kubectl", "npm", "pnpm", "yarn", "cargo", "go", "pip", "uv"),
        *("make", "mise", "poetry", "brew", "apt", "apt-get", "systemctl", "aws", "gcloud", "az"),
    )
)
"""Programs that do many things: what they are told to do is part of the skill."""


def skills_of(pattern: Pattern) -> tuple[str, ...]:
    """What a pattern shows how to do, each once, in order."""
    return tuple(dict.fromkeys(skill_of(step.tool, step.arguments) for step in pattern.steps))


@lru_cache(maxsize=2_048)
def skill_of(tool: str, arguments: str) -> str:
    """The skill of one call."""
    if _SHELLS.isdisjoint(word.lower() for word in _WORDS.findall(tool)):
        return tool
    program = _program(command_of(arguments)[:_LONGEST])
    return f"{tool} {program}" if program else tool


def _program(command: str) -> str:
    first = ""
    for part in _BETWEEN.split(command):
        words = _BEFORE.sub("", part.strip(), count=1).split()
        name = words[0].rpartition("/")[2] if words else ""
        if name in ("python", "python3") and words[1:2] == ["-m"]:
            return " ".join(("python -m", *words[2:3]))
        if name not in _PASSING:
            verb = next((word for word in words[1:] if not word.startswith("-")), "")
            return f"{name} {verb}" if name in _WITH_VERB and verb else name
        first = first or name
    return first
