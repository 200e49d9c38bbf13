"""A simple command as the gate sees it: its words, where it writes, what it is fed, where it runs
and what environment it is given. Reading options off the words is here; meaning is for the rules.
"""

import re
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from journeyman.gate.words import OUTPUT, UNKNOWN, Word, names

_VERSIONED = re.compile(
    r"(python|pypy|pip|perl|ruby|node|nodejs|lua|php|bash|tclsh|gcc|clang)[-\d.]+w?", re.ASCII
)

_TOOLCHAIN = re.compile(r"\+[\w.-]+")
"""`cargo +nightly`: how some programs are told which version of them is meant."""

NO_VALUE = names(
    "-v -vv -vvv --verbose -q --quiet --silent --debug --no-pager --no-color --color -y --yes "
    "--force --dry-run --all -a -A --help --version --json --no-input --non-interactive --paginate "
    "--frozen --locked --offline --no-cache --strict --no-progress --ci -g --global --insecure "
    "--no-cli-pager --no-paginate --no-verify-ssl --recursive -it --rm --detach"
)
"""Options that hardly any program gives a value to."""

MOST_READINGS = 8


class Stream(NamedTuple):
    """What a command is fed: the text where it is known, the programs it comes from, and, if it
    is a list of files of the workspace, a pattern that describes them.
    """

    text: str | None = None
    made_by: frozenset[str] = frozenset()
    names: str = ""


class Redirect(NamedTuple):
    operator: str
    target: Word


class _Fields(NamedTuple):
    words: tuple[Word, ...]
    cwd: Path | None
    settings: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    stdin: Stream | None = None
    via: tuple[str, ...] = ()


class Command(_Fields):
    """One program with its words; `cwd` is None when it cannot be known. What the rules ask of it
    again and again is computed once.
    """

    @cached_property
    def program(self) -> str:
        """The name the program goes by, without its folder and version; empty if not known."""
        if not self.words or not self.words[0].known or self.words[0].pattern:
            return ""
        name = self.words[0].text.rpartition("/")[2]
        found = _VERSIONED.fullmatch(name)
        return found[1] if found else name

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words[1:])

    def has(self, *options: str) -> bool:
        """Whether one of the options is there: alone, in a bundle of letters, with a value, or
        shortened as GNU programs allow.
        """
        for text in self.arguments:
            if text == "--":
                return False
            if any(_is(text, option) for option in options):
                return True
        return False

    def value(self, *options: str) -> str | None:
        """The value of the first of the options that is there."""
        return next(iter(self.values(*options)), None)

    def values(self, *options: str) -> list[str]:
        """All values of options, written `-o value`, `-ovalue`, `--out value` or `--out=value`."""
        found = []
        arguments = self.arguments
        for at, text in enumerate(arguments):
            name, equals, value = text.partition("=")
            if equals and name in options:
                found.append(value)
            elif text in options or any(_bundled(text, one) for one in options):
                found.extend(arguments[at + 1 : at + 2])
            else:
                found += [text[2:] for one in options if _attached(text, one)]
        return found

    def operands(self, *with_value: str) -> list[Word]:
        """The words that are no options, nor the values of the options named."""
        found: list[Word] = []
        words = iter(self.words[1:])
        for word in words:
            if word.text == "--":
                return [*found, *words]
            if word.text in with_value:
                next(words, None)
            elif not word.text.startswith("-") or word.text == "-":
                found.append(word)
        return found

    def subcommand(self, *with_value: str) -> tuple[str, ...]:
        """The operands as text: what programs with commands of their own are told to do."""
        return tuple(word.text for word in self.operands(*with_value))

    def said(self, *with_value: str) -> list[tuple[str, bool]]:
        """The operands, each with whether it may be the value of the option before it: nobody can
        know all options of all programs.
        """
        found: list[tuple[str, bool]] = []
        words = iter(self.arguments)
        after_option = False
        for text in words:
            if text == "--":
                return [*found, *((each, False) for each in words)]
            if text in with_value:
                next(words, None)
                after_option = False
            elif _TOOLCHAIN.fullmatch(text):
                continue
            elif text.startswith("-") and text != "-":
                after_option = "=" not in text and text not in NO_VALUE
            else:
                found.append((text, after_option))
                after_option = False
        return found

    def readings(self, *with_value: str) -> list[tuple[str, ...]]:
        """What the program may be told to do: the operands from the first on and, as long as an
        operand may be the value of an option, from the next on as well.
        """
        operands = self.said(*with_value)
        texts = tuple(text for text, _ in operands)
        found = [texts]
        for at, (_, may_be_value) in enumerate(operands[:MOST_READINGS]):
            if not may_be_value:
                break
            found.append(texts[at + 1 :])
        return found

    def inner(self, words: tuple[Word, ...]) -> "Command":
        """The command that this one runs, in the same place and with the same input."""
        return self._replace(words=words, redirects=(), settings=(), via=(*self.via, self.program))


def _is(text: str, option: str) -> bool:
    if option.startswith("--"):
        name = text.partition("=")[0]
        return name == option or (len(name) > 4 and option.startswith(name))
    if len(option) > 2:
        return text == option or text.startswith(f"{option}=")
    return (
        text.startswith("-") and not text.startswith("--") and option[1:] in text.partition("=")[0]
    )


def _bundled(text: str, option: str) -> bool:
    """`-qc value`: letters of which the last takes the value."""
    return (
        len(option) == 2
        and 2 < len(text) <= 5
        and text[0] == "-"
        and text[1:].isalpha()
        and text.endswith(option[1])
        and not text.startswith(option)
    )


def _attached(text: str, option: str) -> bool:
    """`-ofile`; a single letter only, and not the option alone."""
    return len(option) == 2 and len(text) > 2 and text.startswith(option) and option != "--"


def is_known(text: str) -> bool:
    return not (UNKNOWN in text or OUTPUT in text)
