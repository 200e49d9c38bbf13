"""The rules of the gate: the rows of `rules.toml`, and which of them a command line or a piece of
code meets.
"""

import re
import shlex
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from journeyman.gate import conditions
from journeyman.gate.decision import Rule, known, pairs, rule, rules_file
from journeyman.gate.parser import Command, read_script
from journeyman.gate.paths import Places
from journeyman.text.invisible import UNSEEN

NETWORK = "network.need"
"""The row that is about nothing but the network."""

LONGEST_CODE = 200_000

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# Behind letters beyond ASCII, joiners make emoji and join the letters of some scripts.
_HIDDEN = re.compile(f"(?<![^\x00-\x7f])[{UNSEEN}]|[\u202a-\u202e\u2066-\u2069\u2028\u2029\xa0]")

_LITERAL = re.compile(r"'((?:[^'\\\n]|\\.){1,400})'|\"((?:[^\"\\\n]|\\.){1,400})\"|`([^`]{1,400})`")
_LIST = re.compile(r"[\[(]\s*((?:(?:'[^'\n]*'|\"[^\"\n]*\")\s*,?\s*){2,30})")
_STARTS = re.compile(r"system|popen|subprocess|exec|spawn|child_process|check_|qx", re.I)
_CHANGES = re.compile(r"\bwrite|['\"][wax]b?\+?['\"]|\bunlink|\bremove|\brename|\bcopy|>>?|\bchmod")
_READS = re.compile(r"\bopen\b|\bread|\bcopy")
_RMTREE = re.compile(r"(?:rmtree|rmSync|rm_rf?|remove_entry)\(?\s*['\"]([^'\"]+)")


class _Form(Struct, frozen=True):
    """One of a row's commands, without its programs."""

    rule: Rule
    words: tuple[frozenset[str], ...]
    options: tuple[tuple[str, ...], ...]
    argument: re.Pattern[str] | None
    when: conditions.Condition | None

    def fits(self, command: Command, places: Places) -> bool:
        is_meant = (
            all(command.has(*one) for one in self.options)
            and command.begins(*self.words)
            and not command.has(*self.rule.unless)
        )
        if is_meant and self.argument is not None:
            variables = (f"{name}={value}" for name, value in command.settings)
            given = (*command.arguments, *(path for _, path in command.redirects), *variables)
            is_meant = any(map(self.argument.fullmatch, given))
        return is_meant and (self.when is None or self.when(command, places))


@cache
def _forms() -> dict[str, list[_Form]]:
    """The rows by program, in their order; those on every command are also under the empty name."""
    found: dict[str, list[_Form]] = {"": []}
    for row in rules_file().rule:
        if row.when == "noted":
            continue
        argument = re.compile(row.argument, re.I) if row.argument else None
        condition = getattr(conditions, row.when, None)
        for line in row.commands.strip().split("\n"):
            programs, *rest = (token.split("|") for token in line.split() or [""])
            words = tuple(frozenset(one) for one in rest if one[0][0] != "-")
            options = tuple(tuple(one) for one in rest if one[0][0] == "-")
            for program in found if programs == [""] else programs:
                forms = found.setdefault(program, [*found.get("", [])])
                forms.append(_Form(row, words, options, argument, condition))
    return found


def find_rules(text: str, places: Places) -> Iterator[Rule]:
    """The rows that a command line meets, those on the line as a whole first."""
    forms = _forms()
    if hides(text):
        yield rule("invisible")
    script = read_script(text)
    for note in script.notes:
        yield rule(note)
    if _runs_download(script.commands):
        yield rule("run.download")
    for command in script.commands:
        if not _asks_for_help(command):
            for form in forms.get(command.program, forms[""]):
                if form.fits(command, places):
                    yield form.rule
    for code in script.code:
        yield from find_in_code(code, places)


def find_in_code(text: str, places: Places) -> Iterator[Rule]:
    """The rows that commands and paths in the literals of some code meet."""
    if len(text) > LONGEST_CODE:
        yield rule("too_large")
        return
    for found in _RMTREE.finditer(text):
        yield from find_rules(shlex.join(("rm", "-r", found[1])), places)
    literals = [found[1] or found[2] or found[3] for found in _LITERAL.finditer(text)]
    if _STARTS.search(text):
        lists = [" ".join(re.findall(r"['\"]([^'\"\n]*)['\"]", one)) for one in _LIST.findall(text)]
        programs = _forms().keys() | pairs("shows").keys() | pairs("writes").keys() | {">", ">>"}
        for one in dict.fromkeys((*literals, *lists)):
            words = one.replace("/", " ").split()
            if len(words) > 1 and not programs.isdisjoint(words):
                found_rows = find_rules(one, places)
                yield from (row for row in found_rows if row.id not in ("unparseable", "invisible"))
    changes, reads = _CHANGES.search(text), _READS.search(text)
    for one in dict.fromkeys(literals if changes or reads else ()):
        if " " not in one:
            path = places.resolve(one)
            if changes and places.is_steering(path):
                yield rule("write.steering")
            elif reads and places.is_secret(path):
                yield rule("secret.read")


def hides(text: str) -> bool:
    """Whether a text holds characters that a reader cannot see."""
    return _CONTROL.search(text) is not None or (
        not text.isascii() and _HIDDEN.search(text) is not None
    )


def _runs_download(commands: list[Command]) -> bool:
    """Whether a file that was fetched is run later on the line."""
    fetched: set[str] = set()
    for command in commands:
        is_given = command.program in known("shells") | known("interpreters") | {"source", "."}
        run = [*command.words[:1], *(command.operands()[:1] if is_given else ())]
        if not fetched.isdisjoint(one.removeprefix("./") for one in run):
            return True
        if command.program in known("fetchers"):
            paths = conditions.written(command)
            paths += [one.rpartition("/")[2] for one in command.operands() if "://" in one]
            fetched.update(one.removeprefix("./") for one in paths if one)
    return False


def _asks_for_help(command: Command) -> bool:
    """`git push --help` shows a page; so do all programs whose last word is this one."""
    return (
        1 < len(command.words) <= 4
        and command.words[-1] in ("--help", "--version")
        and "/" not in command.words[0]
        and not (command.redirects or command.settings)
    )
