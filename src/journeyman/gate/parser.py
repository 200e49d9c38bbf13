"""The simple commands of a shell command line, read with a real parser of the shell's grammar.
Nothing is expanded or followed: what only the running shell knows is a mark in its word.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import takewhile
from typing import NamedTuple

from tree_sitter import Language, Node, Parser
from tree_sitter_bash import language

from journeyman.gate.decision import known, pairs

UNKNOWN, OUTPUT = "\x00", "\x01"
"""Stand in a word for the value of a variable, and for what a command prints."""

LONGEST_COMMAND = 20_000
_MOST_DOCUMENTS = 200
"""How many here-documents a command may have; the parser takes long over many."""

_DEEPEST = 8
"""How often a command may hold another command or script."""

_VERSION = re.compile(r"^(python|pypy|pip|perl|ruby|node|lua|php)[-\d.]+w?\Z", re.ASCII)
_CODE = re.compile(r"-[A-Za-z]*[ce]|-r|-p|--eval|--print")
_SCRIPT = re.compile(r"-[A-Za-z]*c")
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_LEAVES = frozenset({"word", "raw_string", "number", "comment", "variable_name", "string_content"})
_LISTS = frozenset({"list", "pipeline", "negated_command"})


@dataclass(frozen=True)
class Command:
    """One program with its words, the variables set for it, its redirections, the text it is fed,
    and the programs whose output it gets by a pipe or a substitution.
    """

    words: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    redirects: tuple[tuple[str, str], ...] = ()
    document: str | None = None
    upstream: frozenset[str] = frozenset()
    via: str = ""

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
        """Whether one of the options is there: alone, in a bundle of letters or with a value."""
        letters = [one[1] for one in options if len(one) == 2]
        for text in takewhile(lambda one: one != "--", self.arguments):
            name = text.partition("=")[0]
            is_bundle = name[:1] == "-" and name[:2] != "--"
            if name in options or (is_bundle and any(one in name[1:6] for one in letters)):
                return True
        return False

    def values(self, *options: str) -> list[str]:
        """The values of options, written `-o value`, `-ovalue`, `--out value` or `--out=value`."""
        found = []
        for at, text in enumerate(self.arguments):
            name, equals, value = text.partition("=")
            is_bundle = text[:1] == "-" != text[1:2]
            if equals and name in options:
                found.append(value)
            elif text[:2] in options and text[:2] != "--" and text not in options:
                found.append(text[2:])
            elif text in options or (is_bundle and f"-{text[-1]}" in options):
                found += self.arguments[at + 1 : at + 2]
        return found

    def operands(self, *with_value: str) -> list[str]:
        """The words that are no options, nor the values of the options named."""
        found: list[str] = []
        words = iter(self.arguments)
        for text in words:
            if text == "--":
                return [*found, *words]
            if text in with_value:
                next(words, None)
            elif not text.startswith("-") or text == "-":
                found.append(text)
        return found

    @cached_property
    def said(self) -> tuple[tuple[str, bool], ...]:
        """The operands, each with whether it may be the value of the option before it: nobody can
        know all options of all programs.
        """
        found = []
        for before, text in zip(self.words, self.arguments, strict=False):
            if not text.startswith(("-", "+")):
                is_option = (
                    before.startswith("-") and "=" not in before and before not in known("flags")
                )
                found.append((text, is_option))
        return tuple(found)

    def begins(self, *wanted: frozenset[str]) -> bool:
        """Whether what the program is told can be read as the words wanted, leaving out words that
        may be values of options; `*` is any word.
        """
        reached = {0}
        for text, may_be_value in self.said if wanted else ():
            further = {at + 1 for at in reached if not wanted[at].isdisjoint((text, "*"))}
            if len(wanted) in further:
                return True
            reached = further | reached if may_be_value else further
            if not reached:
                return False
        return not wanted


class Script(NamedTuple):
    """What a text holds: its commands in order, the code that it gives to interpreters, and the ids
    of the rules on what cannot be read.
    """

    commands: list[Command]
    code: list[str]
    notes: list[str]


def read_script(text: str) -> Script:
    """All commands that a text could run."""
    script = Script([], [], [])
    _read(text, script, 0)
    return script


@cache
def _grammar() -> Language:
    return Language(language())


def _read(text: str, script: Script, depth: int) -> None:
    if depth > _DEEPEST or len(text) > LONGEST_COMMAND or text.count("<<") > _MOST_DOCUMENTS:
        script.notes.append("too_large")
        return
    # The grammar takes a line that begins with a backslash for more of the line before.
    text = text.replace(UNKNOWN, "$_").replace(OUTPUT, "$_").replace("\n\\", "\n \\")
    # A parser keeps state while it works, so that each reading has its own.
    root = Parser(_grammar()).parse(text.encode(errors="replace")).root_node
    if root.has_error:
        script.notes.append("unparseable")
    redirects: dict[int, list[Node]] = {}
    waiting = [(root, frozenset[str]())]
    while waiting:
        node, upstream = waiting.pop()
        inside = [(one, upstream) for one in node.named_children if one.type not in _LEAVES]
        match node.type:
            case "command":
                _add(_command(node, redirects.get(node.id, []), upstream), script, depth)
            case "declaration_command" | "unset_command":
                script.commands.append(_command(node, [], upstream))
            case "pipeline":
                for at, (stage, _) in enumerate(inside):
                    inside[at] = (stage, upstream)
                    upstream |= _programs(stage)
            case "redirected_statement":
                found = [one for one, _ in inside if one.type in _REDIRECTS]
                body = inside[0][0]
                last = body
                while last.type in _LISTS and last.named_children:
                    last = last.named_children[-1]
                if last.type == "command":
                    redirects[last.id] = found
                else:
                    script.commands.append(Command(redirects=_redirects(found)))
                # What follows a here-document on its first line stands inside it.
                fed = upstream | _programs(body)
                inside = [(one, fed if one in found else upstream) for one, _ in inside]
        waiting.extend(reversed(inside))


def _programs(node: Node) -> frozenset[str]:
    """The names of all programs below a node."""
    found, waiting = set(), [node]
    while waiting:
        one = waiting.pop()
        if one.type == "command_name":
            found.add(_text(one).rpartition("/")[2])
        waiting.extend(each for each in one.named_children if each.type not in _LEAVES)
    return frozenset(found)


def _command(node: Node, redirects: list[Node], upstream: frozenset[str]) -> Command:
    settings, plain = [], list[Node]()
    own = [one for one in node.children if one.type in _REDIRECTS]
    for child in node.children:
        if child.type == "variable_assignment":
            name, *_, value = child.children
            settings.append((_text(name), "" if value.type == "=" else _word(value)))
        elif child.type not in _REDIRECTS:
            plain.append(child)
        if child.type not in _LEAVES and child.type != "command_name":
            upstream |= _programs(child)
    document = None
    for one in (*own, *redirects):
        if one.type == "herestring_redirect":
            document = _word(one.children[-1])
        elif one.type == "heredoc_redirect":
            bodies = (_text(each) for each in one.children if each.type == "heredoc_body")
            document = next(bodies, "")
    return Command(
        words=tuple(_words(plain)),
        settings=tuple(settings),
        redirects=_redirects([*own, *redirects]),
        document=document,
        upstream=upstream,
    )


def _redirects(nodes: list[Node]) -> tuple[tuple[str, str], ...]:
    """Operators with their files; a here-document holds those that follow on its line."""
    inside = [one for node in nodes if node.type == "heredoc_redirect" for one in node.children]
    found = []
    for file in (*nodes, *inside):
        if file.type == "file_redirect":
            parts = [one for one in file.children if one.type != "file_descriptor"]
            found.append((_text(parts[0]), _word(parts[1]) if len(parts) > 1 else ""))
    return tuple(found)


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _word(node: Node) -> str:
    """A word as the program gets it."""
    text = _text(node)
    match node.type:
        case "word" | "string_content":
            return re.sub(r"\\(\n|.)", lambda found: found[1].strip("\n"), text)
        case "raw_string":
            return text[1:-1]
        case "string":
            return " ".join(_words(node.children[1:-1]))
        case "concatenation" | "command_name":
            return "".join(map(_word, node.children))
        case "simple_expansion" | "expansion" | "arithmetic_expansion" | "ansi_c_string":
            return {"HOME": "~", "PWD": "."}.get(text.strip("${}"), UNKNOWN)
        case "command_substitution" | "process_substitution":
            return OUTPUT
    return text


def _words(nodes: Iterable[Node]) -> list[str]:
    """Nodes as words; what touches is one word."""
    words, end = list[str](), -1
    for node in nodes:
        if node.start_byte == end:
            words[-1] += _word(node)
        else:
            words.append(_word(node))
        end = node.end_byte
    return words


def _add(command: Command, script: Script, depth: int) -> None:
    """Lists a command, and whatever it runs in turn."""
    if depth > _DEEPEST:
        script.notes.append("too_large")
        return
    script.commands.append(command)
    if command.words and not command.program:
        script.notes.append("command.hidden")
    arguments = command.arguments
    inner = [_wrapped(command)]
    for at, text in enumerate(arguments if command.program == "find" else ()):
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            inner.append(tuple(takewhile(lambda one: one not in (";", "+"), arguments[at + 1 :])))
    for words in filter(None, inner):
        via = command.via or command.program
        run = replace(command, words=words, settings=(), redirects=(), via=via)
        _add(run, script, depth + 1)
    if command.program == "trap" and len(command.words) > 2:
        _read(command.words[1], script, depth + 1)
    elif command.program in known("shells") | known("interpreters") | {"eval", "source", "."}:
        _interpreted(command, script, depth)


def _wrapped(command: Command) -> tuple[str, ...]:
    """The words of the command that a wrapper runs."""
    arguments, at = command.arguments, 0
    if word := pairs("runners").get(command.program):
        at = arguments.index(word) + 1 if word in arguments else len(arguments)
    elif command.program not in known("wrappers") or arguments[:1] in (("-v",), ("-V",)):
        return ()
    to_skip = command.program in known("wrappers_with_word")
    while at < len(arguments):
        text = arguments[at]
        if text.startswith("-"):
            at += 2 if f"{command.program}{text}" in known("wrappers_with_value") else 1
        elif to_skip or ("=" in text and text.partition("=")[0].isidentifier()):
            at, to_skip = at + 1, to_skip and "=" in text
        else:
            break
    return arguments[at:]


def _interpreted(command: Command, script: Script, depth: int) -> None:
    """Reads the script or the code that a command is given, where it can be seen."""
    program, arguments = command.program, command.arguments
    given: str | None = None
    is_unseen = arguments[:1] == (OUTPUT,)
    if program == "eval":
        given, is_unseen = " ".join(arguments), False
    elif program not in ("source", "."):
        option = _CODE if program in known("interpreters") else _SCRIPT
        at = next((n for n, text in enumerate(arguments) if option.fullmatch(text)), None)
        operands = [] if program in known("shells") and command.has("-s") else command.operands()
        is_unseen = operands[:1] == [OUTPUT]
        if at is not None:
            given, is_unseen = "".join(arguments[at + 1 : at + 2]), False
        elif operands[:1] in ([], ["-"], ["/dev/stdin"]) and not command.has("-m"):
            given = command.document
            is_unseen = given is None and bool(command.upstream)
    if is_unseen or (given and given.lstrip()[:1] in (UNKNOWN, OUTPUT)):
        if not known("fetchers").isdisjoint(command.upstream):
            script.notes.append("run.download")
        elif not command.upstream or not command.upstream <= known("shell_setups"):
            script.notes.append("command.hidden")
    elif given and program in known("interpreters"):
        script.code.append(given)
    elif given:
        _read(given, script, depth + 1)
