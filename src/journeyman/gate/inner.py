"""What a command carries inside: another command, a script for a shell, or code for an interpreter.
A value of these is what `wrappers` and `interpreters` find and `reader` goes on with.
"""

from typing import Literal, NamedTuple

from journeyman.gate.command import Command
from journeyman.gate.words import Word

Language = Literal["python", "perl", "ruby", "node", "php", "lua", "awk", "sed", "vim", "other"]
FileLanguage = Language | Literal["shell"]


class Nested(NamedTuple):
    """Another command."""

    command: Command


class Script(NamedTuple):
    """Text that a shell will run, with what `$1` and the rest stand for where that is known."""

    text: str
    positional: tuple[Word, ...] | None = None


class Code(NamedTuple):
    """Text that an interpreter will run."""

    language: Language
    text: str


class File(NamedTuple):
    """A file that a shell or an interpreter will run, with the words that it is given."""

    path: str
    language: FileLanguage
    given: tuple[Word, ...] = ()


class Unseen(NamedTuple):
    """Something that runs and that nobody can look at beforehand."""


Inner = Nested | Script | Code | File | Unseen
