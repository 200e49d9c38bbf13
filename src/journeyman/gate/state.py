"""What is known of the shell at one point of a script: variables, functions, the current folder,
the files it has just written. Whatever may or may not have happened is unknown afterwards.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

from tree_sitter import Node

from journeyman.gate.command import Stream
from journeyman.gate.words import PARENT, UNKNOWN, Word, as_value, names, protect

LONGEST_VALUE = 20_000
"""A variable that grows beyond this is not followed further."""

INHERITED = names(
    "PATH USER LOGNAME SHELL LANG TERM HOSTNAME HOSTTYPE OSTYPE MACHTYPE BASH BASHPID "
    "BASH_VERSION BASHOPTS SHELLOPTS EUID UID PPID GROUPS RANDOM SECONDS LINENO OLDPWD "
    "OPTIND TMPDIR PS4 _"
)
"""Variables that a shell has a value for though the script gives none."""


@dataclass
class State:
    """The shell at one point. Values are in the form in which words are put together."""

    cwd: Path | None
    home: Path
    variables: dict[str, list[str]] = field(default_factory=dict)
    positional: list[str] | None = None
    functions: dict[str, Node] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    written: dict[Path, str | None] = field(default_factory=dict)
    stdin: Stream | None = None
    splits_as_usual: bool = True

    def copy(self) -> "State":
        """For what runs apart and cannot change this shell."""
        return replace(
            self,
            variables=dict(self.variables),
            functions=dict(self.functions),
            aliases=dict(self.aliases),
        )

    def assign(self, name: str, values: list[str]) -> None:
        if name == "IFS":
            self.splits_as_usual = False
        if sum(map(len, values)) > LONGEST_VALUE:
            values = [UNKNOWN]
        self.variables[name] = values

    def forget(self, name: str) -> None:
        self.variables[name] = [UNKNOWN]

    def is_assigned(self, name: str) -> bool:
        return name in self.variables

    def lookup(self, name: str) -> list[str]:
        """The values of a variable, several for an array or for all that a function is given."""
        if name in self.variables:
            return self.variables[name]
        if name in ("@", "*"):
            return [UNKNOWN] if self.positional is None else self.positional
        if name.isdecimal() and name != "0" and self.positional is not None:
            return self.positional[int(name) - 1 : int(name)]
        match name:
            case "HOME":
                return [protect(str(self.home))]
            case "PWD":
                return [UNKNOWN if self.cwd is None else protect(str(self.cwd))]
            case "IFS":
                return [" \t\n"]
            case "PPID":
                return [protect(PARENT)]
            case "!":
                return [protect("%!")]
            case "?" | "#":
                return ["0"]
        return [UNKNOWN]

    def call_with(self, words: tuple[Word, ...]) -> list[str] | None:
        """Sets what `$1` and the rest stand for; returns what they stood for."""
        before = self.positional
        self.positional = [as_value(word) for word in words]
        return before

    def perhaps(self, before: "State", workspace: Path) -> None:
        """Makes unknown what has changed since `before`, for it may not have happened."""
        for name in self.variables.keys() | before.variables.keys():
            if self.variables.get(name) != before.variables.get(name):
                self.forget(name)
        if self.cwd != before.cwd:
            both = (self.cwd, before.cwd)
            if not all(one is not None and one.is_relative_to(workspace) for one in both):
                self.cwd = None
