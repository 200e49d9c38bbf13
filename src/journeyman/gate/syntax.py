"""A command line as a syntax tree, by a real parser of the shell's grammar."""

import re
from functools import cache

from tree_sitter import Language, Node, Parser
from tree_sitter_bash import language

DEEPEST_TREE = 600
"""How deep a tree may be to be walked; long lists are deep trees though nothing is nested."""


_LEADING_BACKSLASH = re.compile(r"\n(?=\\[^\n])")
_BARE_BACKQUOTE = re.compile(r"(?<!\\)(?:\\\\)*`")


@cache
def _grammar() -> Language:
    return Language(language())


def parse(text: str) -> Node:
    # The grammar takes a line that begins with a backslash for more of the line before: `\rm` on
    # the second line would be an argument. With a space in front it is a command.
    text = _LEADING_BACKSLASH.sub("\n ", text)
    # A parser keeps state while it works, so that each reading has its own.
    return Parser(_grammar()).parse(text.encode(errors="replace")).root_node


def text_of(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def is_walkable(root: Node) -> bool:
    """Whether the tree is shallow enough, found out without recursion."""
    cursor = root.walk()
    depth = 0
    while True:
        if cursor.goto_first_child():
            depth += 1
            if depth > DEEPEST_TREE:
                return False
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return True
            depth -= 1


def is_misread(root: Node) -> bool:
    """Whether the tree takes two backquoted commands for one: a backquote inside backquotes must
    be escaped, so that one that is not ends them.
    """
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children)
        if node.type == "``":
            return True
        if node.type == "heredoc_body" and len(_BARE_BACKQUOTE.findall(text_of(node))) > 2:
            return True
        if node.type == "command_substitution" and text_of(node).lstrip().startswith("`"):
            inside = text_of(node).strip()[1:-1]
            if _BARE_BACKQUOTE.search(inside):
                return True
    return False


def descendants(node: Node, *types: str) -> list[Node]:
    """The nodes of some types below a node, the outermost only, in order."""
    found: list[Node] = []
    waiting = list(reversed(node.children))
    while waiting:
        one = waiting.pop()
        if one.type in types:
            found.append(one)
        else:
            waiting.extend(reversed(one.children))
    return found
