"""Commands in prose, as notes and skills hold them: what stands in backquotes, in fenced blocks or
after a prompt. Judging them is handed on; plain sentences are no commands.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

_FENCE = re.compile(
    r"^[ \t>]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)\n(?P<inside>.*?)"
    r"(?:^[ \t>]*(?P=mark)[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_PROMPT = re.compile(r"^[ \t>]*\$ (.+)$", re.MULTILINE)
_SHELL_FENCES = frozenset({"", "sh", "bash", "shell", "zsh", "console", "shell-session", "text"})
_PYTHON_FENCES = frozenset({"python", "py", "python3"})
_RUNNERS = r"(?:(?:ba|z|da|k|a)?sh|fish|python[\d.]*|perl|ruby|node|php)"
_PIPED = re.compile(
    rf"\b(?:curl|wget)\b[^\n|]{{1,400}}(?:\|[^\n|]{{1,80}}){{0,3}}"
    rf"\|\s*(?:(?:sudo|env|exec|nohup)\s+(?:-\S+\s+)*)*(?:\S*/)?{_RUNNERS}\b|"
    rf"\b(?:{_RUNNERS}|source|eval|\.)\s+[^\n]{{0,40}}[<$]\(\s*(?:curl|wget)\b"
)


class Piece(NamedTuple):
    """A piece of prose that may be run. `loose` where it may also be a mere name."""

    text: str
    kind: Literal["command", "python"] = "command"
    loose: bool = False


def pieces(text: str) -> Iterator[Piece]:
    """What may be run, blocks as a whole and line by line, then the rest."""
    rest = text
    for fence in _FENCE.finditer(text):
        yield from _fenced(fence["info"].strip().lower(), fence["inside"])
        rest = rest.replace(fence[0], "\n", 1)
    for line in _PROMPT.finditer(rest):
        yield Piece(line[1])
    for span in _SPAN.finditer(rest):
        inside = " ".join(span[2].split()).removeprefix("$ ")
        yield Piece(inside, loose=" " not in inside)


def _fenced(info: str, inside: str) -> Iterator[Piece]:
    language = re.split(r"[\s{:,]", info.lstrip("{."), maxsplit=1)[0].rstrip("}")
    lines = [re.sub(r"^\s*(?:>\s)?\s*(?:\$ )?", "", line) for line in inside.splitlines()]
    is_shell = language in _SHELL_FENCES
    if language in _PYTHON_FENCES:
        yield Piece(inside, "python")
    elif is_shell and len(lines) > 1:
        yield Piece("\n".join(lines))
    for line in lines:
        if line.strip():
            yield Piece(line, loose=not is_shell)


def runs_a_download(text: str) -> bool:
    """Whether something fetched goes straight into an interpreter, anywhere in the text."""
    return _PIPED.search(text) is not None
