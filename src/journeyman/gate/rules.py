"""Finds the rules in `rules.toml` that a command line or a piece of code matches."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

from journeyman.gate import conditions
from journeyman.gate.command import OUTPUT, UNKNOWN, ShellCommand
from journeyman.gate.decision import GateRule, pairs, rule, rules_file, vocabulary
from journeyman.gate.parser import read_script
from journeyman.gate.paths import Places
from journeyman.text.invisible import INVISIBLE_CHARACTERS

NETWORK = "network.need"
"""The rule that is only about the network."""

OUTSIDE = "write.outside"

LONGEST_CODE = 200_000

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# After non-ASCII letters, joiners form emoji and connect the letters of some scripts.
_HIDDEN = re.compile(
    f"(?<![^\x00-\x7f])[{INVISIBLE_CHARACTERS}]|[\u202a-\u202e\u2066-\u2069\u2028\u2029\xa0]"
)

_LITERAL = re.compile(r"'((?:[^'\\\n]|\\.){1,400})'|\"((?:[^\"\\\n]|\\.){1,400})\"|`([^`]{1,400})`")
_LIST = re.compile(r"[\[(]\s*((?:(?:'[^'\n]*'|\"[^\"\n]*\")\s*,?\s*){2,30})")
_STARTS = re.compile(r"system|popen|subprocess|exec|spawn|child_process|check_|qx", re.I)
_CHANGES = re.compile(r"\bwrite|['\"][wax]b?\+?['\"]|\bunlink|\bremove|\brename|\bcopy|>>?|\bchmod")
_READS = re.compile(r"\bopen\b|\bread|\bcopy")
_RMTREE = re.compile(r"(?:rmtree|rmSync|rm_rf?|remove_(?:entry|tree))\(?\s*(?:['\"]([^'\"]+))?")
_ALTERS = re.compile(
    r"\bwrite|['\"][wax]b?\+?['\"]|['\"]\s*>|\bunlink|\bremove\w*\(|\brename|\brmdir|\brmtree|"
    r"\brm(?:Sync|_r)|\btruncate|\bcopy\w*\(|\bmove\(|\bchmod|\bsymlink|\bdelete[_(]"
)
_HOME = re.compile(
    r"Path\.home\(|expanduser|homedir\(|\bENV\b.{0,3}HOME|environ.{0,8}HOME|env\.HOME"
)
_OBSCURE = re.compile(
    r"\b(?:exec|eval|system|popen|spawn)\w*\(.{0,200}?(?:b64|base64|fromhex|atob|rot|chr\()"
)
_OUTSIDE_PATH = re.compile(
    r"(?:~|\.\.|/(?:home|Users|root|etc|usr|var|srv|opt|bin|lib\w*|mnt|media|boot|proc|sys|dev|data|"
    r"work\w*|Volumes|Library|Applications|private))(?:/[\w.@+* -]*)*"
)


class _CommandForm(Struct, frozen=True):
    """One line of a rule's `commands`, without the programs."""

    rule: GateRule
    words: tuple[frozenset[str], ...]
    options: tuple[tuple[str, ...], ...]
    argument: re.Pattern[str] | None
    when: conditions.Condition | None

    def matches(self, command: ShellCommand, places: Places) -> bool:
        is_match = (
            all(command.has(*names) for names in self.options)
            and command.begins(*self.words)
            and not command.has(*self.rule.unless)
        )
        if is_match and self.argument is not None:
            variables = (f"{name}={value}" for name, value in command.settings)
            texts = (*command.arguments, *(path for _, path in command.redirects), *variables)
            is_match = any(map(self.argument.fullmatch, texts))
        return is_match and (self.when is None or self.when(command, places))


@cache
def _forms_by_program() -> dict[str, list[_CommandForm]]:
    """The forms by program, in file order. Those that apply to every command are listed under each
    program and under the empty name.
    """
    by_program: dict[str, list[_CommandForm]] = {"": []}
    for row in rules_file().rule:
        if row.when == "noted":
            continue
        argument = re.compile(row.argument, re.I) if row.argument else None
        condition = getattr(conditions, row.when, None)
        for line in row.commands.strip().split("\n"):
            programs, *rest = (token.split("|") for token in line.split() or [""])
            words = tuple(frozenset(choices) for choices in rest if choices[0][0] != "-")
            options = tuple(tuple(choices) for choices in rest if choices[0][0] == "-")
            for program in by_program if programs == [""] else programs:
                forms = by_program.setdefault(program, [*by_program.get("", [])])
                forms.append(_CommandForm(row, words, options, argument, condition))
    return by_program


def find_rules(text: str, places: Places) -> Iterator[GateRule]:
    """Yield the rules that a command line matches, those about the whole line first."""
    forms = _forms_by_program()
    if hides(text):
        yield rule("invisible")
    script = read_script(text)
    for note in script.notes:
        yield rule(note)
    if _runs_fetched_file(script.commands):
        yield rule("run.download")
    yield from _hidden_targets(script.commands, places)
    is_readable = "too_large" not in script.notes
    for command in script.commands:
        if not _asks_for_help(command):
            seen = places.within(command.folders) if is_readable else [places]
            for form in forms.get(command.program, forms[""]):
                if any(form.matches(command, one) for one in seen):
                    yield form.rule
    for code in script.code:
        yield from find_in_code(code, places)


def find_in_code(text: str, places: Places) -> Iterator[GateRule]:
    """Yield the rules that commands and paths in the literals of a piece of code match."""
    if len(text) > LONGEST_CODE:
        yield rule("too_large")
        return
    for removal in _RMTREE.finditer(text):
        if removal[1]:
            yield from find_rules(shlex.join(("rm", "-r", removal[1])), places)
        else:
            yield rule("delete.unclear")
    if _OBSCURE.search(text):
        yield rule("command.hidden")
    literals = [match[1] or match[2] or match[3] for match in _LITERAL.finditer(text)]
    if _STARTS.search(text):
        lists = [
            " ".join(re.findall(r"['\"]([^'\"\n]*)['\"]", items)) for items in _LIST.findall(text)
        ]
        programs = (
            _forms_by_program().keys()
            | pairs("shows").keys()
            | pairs("writes").keys()
            | {">", ">>"}
        )
        for line in dict.fromkeys((*literals, *lists)):
            words = line.replace("/", " ").split()
            if len(words) > 1 and not programs.isdisjoint(words):
                for match in find_rules(line, places):
                    if match.id not in ("unparseable", "invisible"):
                        yield match
    changes, reads = _CHANGES.search(text), _READS.search(text)
    for literal in dict.fromkeys(literals if changes or reads else ()):
        if " " not in literal:
            path = places.resolve(literal)
            if changes and places.is_steering(path):
                yield rule("write.steering")
            elif reads and places.is_secret(path):
                yield rule("secret.read")
    if _ALTERS.search(text):
        paths = map(places.resolve, filter(_OUTSIDE_PATH.fullmatch, literals))
        if _HOME.search(text) or any(_is_outside(path, places) for path in paths):
            yield rule(OUTSIDE)


def _is_outside(path: Path, places: Places) -> bool:
    return not (places.is_inside(path) or places.is_free(path))


def hides(text: str) -> bool:
    """Whether a text contains invisible characters."""
    return _CONTROL.search(text) is not None or (
        not text.isascii() and _HIDDEN.search(text) is not None
    )


def _hidden_targets(commands: list[ShellCommand], places: Places) -> Iterator[GateRule]:
    """Yield rules for lines that name a file which is protected, and read or write one that only
    the running shell knows: the two can be the same.
    """
    shown = [text for command in commands for text in conditions.exposed_paths(command)]
    written = [text for command in commands for text in conditions.written_paths(command)]
    hides_shown, hides_written = any(map(_is_unseen, shown)), any(map(_is_unseen, written))
    if not (hides_shown or hides_written):
        return
    for command in commands:
        for text in (*command.arguments, *(value for _, value in command.settings)):
            path = places.resolve(text)
            if hides_shown and (places.is_secret(path) or places.can_be_secret(text)):
                yield rule("secret.unclear")
            if hides_written and (places.is_steering(path) or places.is_secret(path)):
                yield rule("write.steering")
            elif hides_written and _OUTSIDE_PATH.fullmatch(text) and _is_outside(path, places):
                yield rule(OUTSIDE)


def _is_unseen(text: str) -> bool:
    return text[:1] in (UNKNOWN, OUTPUT) or text == "{}"


def _runs_fetched_file(commands: list[ShellCommand]) -> bool:
    """Whether a fetched file is run later on the same line."""
    fetched: set[str] = set()
    for command in commands:
        runs_operand = command.program in (
            vocabulary("shells") | vocabulary("interpreters") | {"source", "."}
        )
        run = [*command.words[:1], *(command.operands()[:1] if runs_operand else ())]
        if not fetched.isdisjoint(path.removeprefix("./") for path in run):
            return True
        if command.program in vocabulary("fetchers"):
            paths = conditions.written_paths(command)
            paths += [text.rpartition("/")[2] for text in command.operands() if "://" in text]
            fetched.update(path.removeprefix("./") for path in paths if path)
    return False


def _asks_for_help(command: ShellCommand) -> bool:
    """Whether the command only prints help, as programs do when the last word requests it."""
    return (
        1 < len(command.words) <= 4
        and command.words[-1] in ("--help", "--version")
        and "/" not in command.words[0]
        and not (command.redirects or command.settings)
    )
