"""One simple command of a shell, as the rules see it."""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from journeyman.gate.decision import vocabulary

UNKNOWN, OUTPUT = "\x00", "\x01"
"""Markers in a word for the value of a variable and for the output of a command."""

_VERSION = re.compile(r"^(python|pypy|pip|perl|ruby|node|lua|php)[-\d.]+w?\Z", re.ASCII)

Folder = tuple[str, ...]
"""A folder as what `cd` was given, one after the other."""


@dataclass(frozen=True)
class ShellCommand:
    """One program with its words, the variables set for it (`settings`), its redirections, the text
    on its standard input (`document`), the programs whose output reaches it by a pipe or a
    substitution (`upstream`), and the wrapper that runs it (`via`). It may run in any of the
    `folders`, of which the last is the likeliest; each is what `cd` was given, one after the other.
    """

    words: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    redirects: tuple[tuple[str, str], ...] = ()
    document: str | None = None
    upstream: frozenset[str] = frozenset()
    via: str = ""
    folders: tuple[Folder, ...] = ((),)

    @cached_property
    def program(self) -> str:
        """The name of the program, without folder and version; empty if it is not a literal."""
        name = self.words[0].rpartition("/")[2] if self.words else ""
        is_hidden = UNKNOWN in name or OUTPUT in name or "{" in name
        return "" if is_hidden else _VERSION.sub(r"\1", name)

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[1:]

    def has(self, *options: str) -> bool:
        """Whether one of the options is set: alone, in a bundle of letters or with a value."""
        letters = [option[1] for option in options if len(option) == 2]
        for text in takewhile(lambda word: word != "--", self.arguments):
            name = text.partition("=")[0]
            is_bundle = name[:1] == "-" and name[:2] != "--"
            if name in options or (is_bundle and any(letter in name[1:6] for letter in letters)):
                return True
        return False

    def values(self, *options: str) -> list[str]:
        """The values of options, written `-o value`, `-ovalue`, `--out value` or `--out=value`."""
        values = []
        for at, text in enumerate(self.arguments):
            name, equals, value = text.partition("=")
            is_bundle = text[:1] == "-" != text[1:2]
            if equals and name in options:
                values.append(value)
            elif text[:2] in options and text[:2] != "--" and text not in options:
                values.append(text[2:])
            elif text in options or (is_bundle and f"-{text[-1]}" in options):
                values += self.arguments[at + 1 : at + 2]
        return values

    def operands(self, *with_value: str) -> list[str]:
        """The words that are neither options nor values of the named options."""
        operands: list[str] = []
        words = iter(self.arguments)
        for text in words:
            if text == "--":
                return [*operands, *words]
            if text in with_value:
                next(words, None)
            elif not text.startswith("-") or text == "-":
                operands.append(text)
        return operands

    @cached_property
    def subcommands(self) -> tuple[tuple[str, bool], ...]:
        """The operands, each with whether it may be the value of the option before it, which cannot
        be known for every option of every program.
        """
        operands = []
        for before, text in zip(self.words, self.arguments, strict=False):
            if not text.startswith(("-", "+")):
                is_option = (
                    before.startswith("-")
                    and "=" not in before
                    and before not in vocabulary("flags")
                )
                operands.append((text, is_option))
        return tuple(operands)

    def begins(self, *expected: frozenset[str]) -> bool:
        """Whether the operands can be read as starting with the expected words, skipping operands
        that may be values of options; `*` matches any word.
        """
        reached = {0}
        for text, may_be_value in self.subcommands if expected else ():
            further = {at + 1 for at in reached if not expected[at].isdisjoint((text, "*"))}
            if len(expected) in further:
                return True
            reached = further | reached if may_be_value else further
            if not reached:
                return False
        return not expected
