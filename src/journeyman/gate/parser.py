"""Splits a shell command line into simple commands, using a real parser of the shell's grammar.
Nothing is expanded or executed: a marker stands for text that only the running shell knows.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile

from tree_sitter import Node

from journeyman.gate.command import OUTPUT, UNKNOWN, Folder, ShellCommand
from journeyman.gate.decision import pairs, vocabulary
from journeyman.text.shell import LEAVES, REDIRECTS, is_parseable, join_adjacent, parse, source

_DEEPEST = 8
"""Limit on how deeply commands and scripts may be nested."""

_CODE = re.compile(r"-[A-Za-z]*[ce]|-r|-p|--eval|--print")
_SCRIPT = re.compile(r"-[A-Za-z]*c")
_LISTS = frozenset({"list", "pipeline", "negated_command"})
_SUBSHELLS = frozenset({"subshell", "command_substitution", "process_substitution"})
_MOST_FOLDERS = 20
_IN_SHELL = ("", "command", "builtin", "time")
"""The wrappers under which `cd` has an effect on what follows."""


@dataclass
class ParsedScript:
    """A parsed text: its commands in order, the code that it passes to interpreters, and the ids of
    the rules about what could not be read. `folders` are those that it has been in so far.
    """

    commands: list[ShellCommand] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    folders: tuple[Folder, ...] = ((),)

    def add(self, command: ShellCommand) -> ShellCommand:
        """Add a command that runs where the script is now."""
        self.commands.append(replace(command, folders=self.folders))
        return self.commands[-1]

    def enter(self, command: ShellCommand) -> None:
        """Note that the following commands run in another folder. `cd` may fail, so they may run in
        the earlier ones too.
        """
        operands, here = command.operands(), self.folders[-1]
        to = operands[0] if operands else "~" if command.program == "cd" else UNKNOWN
        if command.program == "popd":
            folder = here[:-1] if here and not operands else (UNKNOWN,)
        elif to == "-" or to.startswith("+"):
            folder = (UNKNOWN,)
        else:
            folder = (*here, to)
        if len(self.folders) < _MOST_FOLDERS:
            self.folders = (*self.folders, folder)
        else:
            self.notes.append("too_large")


def read_script(text: str) -> ParsedScript:
    """Return all commands that a text could run."""
    script = ParsedScript()
    _read(text, script, 0)
    return script


def _read(text: str, script: ParsedScript, depth: int) -> None:
    if depth > _DEEPEST or not is_parseable(text):
        script.notes.append("too_large")
        return
    root = parse(text.replace(UNKNOWN, "$_").replace(OUTPUT, "$_"))
    if root.has_error:
        script.notes.append("unparseable")
    redirects: dict[int, list[Node]] = {}
    waiting: list[tuple[Node | None, frozenset[str], tuple[Folder, ...]]]
    waiting = [(root, frozenset(), ())]
    while waiting:
        node, upstream, folders = waiting.pop()
        if node is None:  # the end of a subshell
            script.folders = folders
            continue
        if node.type in _SUBSHELLS or (node.parent is not None and node.parent.type == "pipeline"):
            waiting.append((None, upstream, script.folders))
        inside = [(child, upstream) for child in node.named_children if child.type not in LEAVES]
        match node.type:
            case "command":
                _add(_command(node, redirects.get(node.id, []), upstream), script, depth)
            case "variable_assignment" if node.children[-1].type != "=":
                value = (source(node.children[0]), _word(node.children[-1]))
                script.add(ShellCommand(settings=(value,)))
            case "for_statement":
                values = [child for child in node.named_children[1:] if child.type != "do_group"]
                script.add(ShellCommand(words=("for", *_words(values))))
            case "declaration_command" | "unset_command":
                script.add(_command(node, [], upstream))
            case "pipeline":
                for at, (stage, _) in enumerate(inside):
                    inside[at] = (stage, upstream)
                    upstream |= _programs(stage)
            case "redirected_statement":
                targets = [child for child, _ in inside if child.type in REDIRECTS]
                body = inside[0][0]
                last = body
                while last.type in _LISTS and last.named_children:
                    last = last.named_children[-1]
                if last.type == "command":
                    redirects[last.id] = targets
                else:
                    script.add(ShellCommand(redirects=_redirects(targets)))
                # The grammar puts what follows a here-document on its first line inside it.
                piped = upstream | _programs(body)
                inside = [(child, piped if child in targets else upstream) for child, _ in inside]
        waiting.extend((child, reaching, ()) for child, reaching in reversed(inside))


def _programs(node: Node) -> frozenset[str]:
    """The names of all programs below a node."""
    names, waiting = set(), [node]
    while waiting:
        inner = waiting.pop()
        if inner.type == "command_name":
            names.add(source(inner).rpartition("/")[2])
        waiting.extend(child for child in inner.named_children if child.type not in LEAVES)
    return frozenset(names)


def _command(node: Node, redirects: list[Node], upstream: frozenset[str]) -> ShellCommand:
    settings, plain = [], list[Node]()
    own = [child for child in node.children if child.type in REDIRECTS]
    for child in node.children:
        if child.type == "variable_assignment":
            name, *_, value = child.children
            settings.append((source(name), "" if value.type == "=" else _word(value)))
        elif child.type not in REDIRECTS:
            plain.append(child)
        if child.type not in LEAVES and child.type != "command_name":
            upstream |= _programs(child)
    document = None
    for redirect in (*own, *redirects):
        if redirect.type == "herestring_redirect":
            document = _word(redirect.children[-1])
        elif redirect.type == "heredoc_redirect":
            bodies = (source(child) for child in redirect.children if child.type == "heredoc_body")
            document = next(bodies, "")
    return ShellCommand(
        words=tuple(_words(plain)),
        settings=tuple(settings),
        redirects=_redirects([*own, *redirects]),
        document=document,
        upstream=upstream,
    )


def _redirects(nodes: list[Node]) -> tuple[tuple[str, str], ...]:
    """Operators with their files; a here-document contains those that follow on its line."""
    inside = [child for node in nodes if node.type == "heredoc_redirect" for child in node.children]
    redirects = []
    for file in (*nodes, *inside):
        if file.type == "file_redirect":
            parts = [part for part in file.children if part.type != "file_descriptor"]
            redirects.append((source(parts[0]), _word(parts[1]) if len(parts) > 1 else ""))
    return tuple(redirects)


def _word(node: Node) -> str:
    """A word as the program receives it."""
    text = source(node)
    match node.type:
        case "word" | "string_content":
            return re.sub(r"\\(\n|.)", lambda match: match[1].strip("\n"), text)
        case "raw_string":
            return text[1:-1]
        case "string":
            return " ".join(_words(node.children[1:-1]))
        case "concatenation" | "command_name":
            return "".join(map(_word, node.children))
        case "simple_expansion" | "expansion" | "arithmetic_expansion" | "ansi_c_string":
            return {"HOME": "~", "PWD": "."}.get(text.strip("${}"), UNKNOWN)
        case "command_substitution":
            return OUTPUT
        case "process_substitution":
            return f"/dev/fd/{OUTPUT}"
    return text


def _words(nodes: Iterable[Node]) -> list[str]:
    return join_adjacent(nodes, _word)


def _add(command: ShellCommand, script: ParsedScript, depth: int) -> None:
    """Add a command, and whatever it runs in turn."""
    if depth > _DEEPEST:
        script.notes.append("too_large")
        return
    before = script.folders
    command = script.add(command)
    if command.words and not command.program:
        script.notes.append("command.hidden")
    if command.program in ("cd", "pushd", "popd") and command.via in _IN_SHELL:
        script.enter(command)
        return
    arguments = command.arguments
    inner = [_wrapped(command)]
    for at, text in enumerate(arguments if command.program == "find" else ()):
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            inner.append(tuple(takewhile(lambda word: word not in (";", "+"), arguments[at + 1 :])))
    adds = (UNKNOWN,) if command.program in ("xargs", "parallel") else ()  # what they read
    for words in filter(None, inner):
        via = command.via or command.program
        settings = (*command.settings, *_variables(arguments[: len(arguments) - len(words)]))
        inner_command = replace(
            command, words=(*words, *adds), settings=settings, redirects=(), via=via
        )
        if command.program == "env":
            here = script.folders[-1]
            moved = ((*here, to) for to in command.values("-C", "--chdir")[:1])
            script.folders = (*script.folders, *moved)
        _add(inner_command, script, depth + 1)
        if command.program == "env" or via not in _IN_SHELL:
            script.folders = before
    if command.program in ("awk", "gawk", "mawk"):
        script.code += command.operands("-F", "-v", "-f")[:1]
    elif command.program == "alias":
        for text in arguments:
            _read(text.partition("=")[2], script, depth + 1)
    elif command.program == "trap" and len(command.words) > 2:
        _read(command.words[1], script, depth + 1)
        script.folders = before
    elif command.program in vocabulary("shells") | vocabulary("interpreters") | {
        "eval",
        "source",
        ".",
    }:
        _add_interpreted(command, script, depth)
        if command.program in vocabulary("shells"):
            script.folders = before


def _variables(words: tuple[str, ...]) -> list[tuple[str, str]]:
    """The variables that a wrapper sets for the command that it runs."""
    parts = (text.partition("=") for text in words)
    return [(name, value) for name, equals, value in parts if equals and name.isidentifier()]


def _wrapped(command: ShellCommand) -> tuple[str, ...]:
    """The words of the command that a wrapper runs."""
    arguments, at = command.arguments, 0
    if word := pairs("runners").get(command.program):
        at = arguments.index(word) + 1 if word in arguments else len(arguments)
    elif command.program not in vocabulary("wrappers") or arguments[:1] in (("-v",), ("-V",)):
        return ()
    to_skip = command.program in vocabulary("wrappers_with_word")
    while at < len(arguments):
        text = arguments[at]
        if text.startswith("-"):
            at += 2 if f"{command.program}{text}" in vocabulary("wrappers_with_value") else 1
        elif to_skip or ("=" in text and text.partition("=")[0].isidentifier()):
            at, to_skip = at + 1, to_skip and "=" in text
        else:
            break
    return arguments[at:]


def _add_interpreted(command: ShellCommand, script: ParsedScript, depth: int) -> None:
    """Add the script or the code that a command passes to an interpreter, where it is visible."""
    program, arguments = command.program, command.arguments
    code: str | None = None
    is_unseen = OUTPUT in "".join(arguments[:1])
    if program == "eval":
        code, is_unseen = " ".join(arguments), False
    elif program not in ("source", "."):
        option = _CODE if program in vocabulary("interpreters") else _SCRIPT
        at = next((n for n, text in enumerate(arguments) if option.fullmatch(text)), None)
        operands = (
            [] if program in vocabulary("shells") and command.has("-s") else command.operands()
        )
        is_unseen = OUTPUT in "".join(operands[:1])
        if at is not None:
            code, is_unseen = "".join(arguments[at + 1 : at + 2]), False
        elif operands[:1] in ([], ["-"], ["/dev/stdin"]) and not command.has("-m"):
            code = command.document
            is_unseen = code is None and bool(command.upstream)
    if is_unseen or (code and code.lstrip()[:1] in (UNKNOWN, OUTPUT)):
        if not vocabulary("fetchers").isdisjoint(command.upstream):
            script.notes.append("run.download")
        elif not command.upstream or not command.upstream <= vocabulary("shell_setups"):
            script.notes.append("command.hidden")
    elif code and program in vocabulary("interpreters"):
        script.code.append(code)
    elif code:
        _read(code, script, depth + 1)
