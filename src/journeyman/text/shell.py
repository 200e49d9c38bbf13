"""Shell command lines, read with a real parser of the shell's grammar. Nothing is expanded or run.

The judge, the playbooks and the gate all read commands through this module.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache

from tree_sitter import Language, Node, Parser
from tree_sitter_bash import language

LONGEST_COMMAND = 20_000
"""Longer texts, in characters, are not parsed."""

_MOST_DOCUMENTS = 200
"""The parser slows down with many here-documents; texts with more are not parsed."""

REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
LEAVES = frozenset({"word", "raw_string", "number", "comment", "variable_name", "string_content"})
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_SEPARATORS = frozenset(
    {"&&", "||", ";", ";;", "&", "\n", "(", ")", "{", "}", "then", "do", "done", "else", "fi"}
)
_ASSIGNMENTS = frozenset({"variable_assignment", "variable_assignments"})
_OPERATORS = {
    **dict.fromkeys(("|", "|&"), "|"),
    **dict.fromkeys((";", ";;", "\n", "then", "do", "else", "elif"), ";"),
    **dict.fromkeys((")", "}", "fi", "esac"), ")"),
    "done": "b)",
    "&&": "&",
    "||": "/",
    "&": "b",
}
_NOT_RUN = LEAVES | {"file_redirect", "herestring_redirect", "heredoc_body", "string"}

_UNSAFE = re.compile("[\x00\U00010000-\U0010ffff]")
_PLACEHOLDER = re.compile(r"<([a-z_]+:\d+)>")
_HIDDEN_PLACEHOLDER = re.compile("\ue000([a-z_]+:[0-9]+)\ue001")
"""Redaction leaves placeholders such as `<user:1>`, which the grammar would take for redirections.
They are parsed as parts of words."""


@cache
def _grammar() -> Language:
    return Language(language())


def is_parseable(text: str) -> bool:
    """Return whether a text is small enough to be parsed in reasonable time."""
    return len(text) <= LONGEST_COMMAND and text.count("<<") <= _MOST_DOCUMENTS


def parse(text: str) -> Node:
    """Return the syntax tree of a text that `is_parseable`."""
    # The grammar takes a line that begins with a backslash for a continuation of the line before.
    text = text.replace("\n\\", "\n \\")
    # Its scanner ends at NUL, and reads out of bounds beyond the Basic Multilingual Plane.
    text = _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)
    # A parser keeps state while it works, so each text gets its own.
    return Parser(_grammar()).parse(text.encode(errors="replace")).root_node


def source(node: Node) -> str:
    """Return the text of a node as it was written."""
    return (node.text or b"").decode(errors="replace")


def join_adjacent(nodes: Iterable[Node], render: Callable[[Node], str]) -> list[str]:
    """Return nodes as words; nodes without a gap between them are one word."""
    words: list[str] = []
    end = -1
    for node in nodes:
        if node.start_byte == end:
            words[-1] += render(node)
        else:
            words.append(render(node))
        end = node.end_byte
    return words


def commands(text: str) -> list[tuple[str, str]]:
    """Return the simple commands of a text in order, each with the operators between it and the
    next, one character each: `|`, `&` (and), `/` (or), `;` (also a line break), `)` (the end of a
    group) and `b` (in the background, or in a loop). The last command is the one whose exit code
    the shell returns. Empty if the text is too long.
    """
    found: list[list[str]] = []
    waiting = [parse(text.strip())] if is_parseable(text) else []
    while waiting:
        node = waiting.pop()
        if node.type in _COMMANDS or node.type in _ASSIGNMENTS:
            if found and not found[-1][1]:
                found[-1][1] = ";"
            found.append([source(node), ""])
        elif operator := _OPERATORS.get(node.type):
            if found:
                found[-1][1] += operator
        elif node.type not in _NOT_RUN:
            # The tree nests lists and pipelines in ways that differ from how the shell runs them.
            waiting.extend(reversed(node.children))
    return [(command, operators) for command, operators in found]


def pipelines(text: str) -> list[list[str]]:
    """Return the words of each pipeline as they were written, in order; a pipe and a redirection
    are separate words. The bodies of here-documents are left out. Empty if the text is too long.
    """
    if not is_parseable(text):
        return []
    hidden = _PLACEHOLDER.sub("\ue000\\1\ue001", text)
    lines: list[list[str]] = [[]]
    # The tree nests lists and pipelines in ways that differ from how the shell runs them, so the
    # tokens are taken in the order in which they stand.
    inner: list[Node] = []
    waiting = [parse(hidden)]
    while waiting or inner:
        if not waiting:
            lines.append([])
            waiting.append(inner.pop(0))
        node = waiting.pop()
        if node.type in ("|", "|&"):
            lines[-1].append("|")
        elif node.type in _SEPARATORS:
            lines.append([])
        elif node.type in _COMMANDS:
            words, holders = _command_words(node)
            if lines[-1] and lines[-1][-1] != "|":
                lines.append([])
            lines[-1] += words
            inner += holders
        elif node.type == "heredoc_redirect":
            lines[-1] += ["<<…"] if lines[-1] else []
            waiting.extend(part for part in reversed(node.children) if part.type not in REDIRECTS)
        elif node.type in REDIRECTS:  # that of a whole block belongs to no command
            lines[-1] += [source(node)] if lines[-1] else []
        elif node.type not in LEAVES:
            waiting.extend(reversed(node.children))
    return [[_HIDDEN_PLACEHOLDER.sub(r"<\1>", word) for word in words] for words in lines if words]


def _command_words(node: Node) -> tuple[list[str], list[Node]]:
    """Return the words of a command, and the substitutions in it, which hold other commands; those
    inside quotes make up a value and do not count.
    """
    inner: list[Node] = []
    waiting = list(node.children)
    while waiting:
        part = waiting.pop(0)
        if part.type in _SUBSTITUTIONS:
            inner.append(part)
        elif part.type not in LEAVES and part.type != "string":
            waiting.extend(part.children)
    return join_adjacent(node.children, source), inner
