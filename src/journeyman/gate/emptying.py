"""Files that a command empties without deleting them: what was in them is lost all the same. Only
whole patterns of files count; changing many files at once is everyday work.
"""

import re

from journeyman.gate.command import Command
from journeyman.gate.words import UNKNOWN, Word, names

_NOTHING = "/dev/null"
_ANY_LISTED = f"./{UNKNOWN}"
_SAYS_NOTHING_NEW = names(": true false echo printf yes")
_ALL_LINES = r"(?:[01]\s*,\s*\$|\$!|1!|/\.?\*?/|/\^/|/\$/|/\^\.\*\$?/)?"
_SED_DELETES_ALL = re.compile(
    rf"(?:^|[;{{\n])\s*{_ALL_LINES}\s*[dD]\s*(?:$|[;}}\n])|s(.)\^?\.\*\$?\1\1|(?:^|[;{{\n])\s*z\b"
)
_SED_PRINTS = re.compile(r"p|=|w|i|a|c")
_AWK_PRINTS = re.compile(r"print|[1-9]")
_PERL_EMPTY = re.compile(r"\s*(?:\$_\s*=\s*(?:''|\"\"|undef)\s*;?|;|undef\s*\$_;?)?\s*")


def emptied(command: Command) -> list[Word]:
    """The patterns of files that a command writes over with nothing, or with the same for all."""
    program = command.program
    if program == "truncate":
        found = command.operands("-s", "-r", "--size", "--reference", "-o")
    elif program == "tee" and not command.has("-a", "--append"):
        found = command.operands() if _is_fed_nothing(command) else []
    elif program in ("sed", "gsed") and command.has("-i", "--in-place"):
        found = command.operands("-e", "-f", "-l") if _sed_empties(command) else []
    elif program in ("perl", "ruby") and any(re.match(r"-\w*i", one) for one in command.arguments):
        codes = command.values("-e", "-E")
        found = command.operands("-e") if all(map(_PERL_EMPTY.fullmatch, codes)) else []
    elif program in ("awk", "gawk") and "inplace" in command.arguments:
        found = command.operands("-i", "-F", "-v", "-f")
        found = found[1:] if found and not _AWK_PRINTS.search(found[0].text) else []
    elif program in ("cp", "install", "dd", "cat"):
        found = _from_nothing(command)
    else:
        found = []
    if not command.words or program in _SAYS_NOTHING_NEW or _reads_nothing(command):
        found += [one.target for one in command.redirects if one.operator in (">", ">|", "&>")]
    return [word for word in found if word.pattern or word.text == _ANY_LISTED]


def _is_fed_nothing(command: Command) -> bool:
    """Whether what comes in is nothing, or some constant text."""
    if any(one.operator == "<" and one.target.text == _NOTHING for one in command.redirects):
        return True
    stdin = command.stdin
    return stdin is not None and (stdin.text is not None or bool(stdin.made_by & _SAYS_NOTHING_NEW))


def _reads_nothing(command: Command) -> bool:
    return command.program == "cat" and (
        command.arguments == (_NOTHING,) or (not command.arguments and _is_fed_nothing(command))
    )


def _from_nothing(command: Command) -> list[Word]:
    texts = [text.removeprefix("if=") for text in command.arguments]
    if _NOTHING not in texts or command.program == "cat":
        return []
    return [word._replace(text=word.text.removeprefix("of=")) for word in command.words[1:]]


def _sed_empties(command: Command) -> bool:
    codes = command.values("-e", "--expression")
    if not codes:
        codes = [word.text for word in command.operands("-f", "-l")[:1]]
    if any(_SED_DELETES_ALL.search(code) for code in codes):
        return True
    return command.has("-n", "--quiet", "--silent") and not any(map(_SED_PRINTS.search, codes))
