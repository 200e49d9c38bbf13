"""What the parts of a word stand for: quotes, escapes, variables, substitutions. Works on syntax
nodes and gives text in the form of `words`; running a substitution is handed in.
"""

import fnmatch
import re
from collections.abc import Callable

from tree_sitter import Node

from journeyman.gate.state import INHERITED, State
from journeyman.gate.syntax import descendants, parse, text_of
from journeyman.gate.words import (
    OUTPUT,
    PLACEHOLDER,
    UNKNOWN,
    protect,
    protect_value,
    release,
    unprotect_value,
)

DEEPEST = 20
"""How deep expansions may be nested in each other."""

_ANSI = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b"} | {
    "f": "\f",
    "v": "\v",
}
_IN_QUOTES = re.compile(r"\\([\"\\$`]|\n)")
_OUTSIDE = re.compile(r"\\(.)", re.DOTALL)
_GAP = re.compile(r"\\\n|\\.|\s+|[^\s\\]+", re.DOTALL)
_SUBSCRIPT = re.compile(r"\[[^\]]*(?:\$\(|`)")
_SUBSTITUTIONS = ("command_substitution", "process_substitution", "expansion")
_LEADING_NAMES = ("variable_name", "special_variable_name", "subscript")

Run = Callable[[Node], str]


def decode_ansi(text: str) -> str:
    """The inside of `$'…'`."""

    def one(found: re.Match[str]) -> str:
        for digits, radix in zip(found.group(1, 2, 3, 4), (16, 16, 16, 8), strict=True):
            if digits:
                code = int(digits, radix)
                usable = 0 < code < 0x110000 and not 0xD800 <= code < 0xE000
                return chr(code) if usable else "\ufffd"
        if found[5]:
            return "\ufffd"
        return _LETTERS.get(found[6], found[6])

    return _ANSI.sub(one, text)


class Expansion:
    """Expands the nodes of one script with what the state knows."""

    def __init__(self, state: State, run: Run) -> None:
        self._state = state
        self._run = run
        self._depth = 0

    def text(self, node: Node) -> str:
        """A node outside quotes."""
        match node.type:
            case "word" | "number" | "extglob_pattern" | "regex" | "test_operator":
                return _unescape(text_of(node))
            case "raw_string":
                return protect(text_of(node)[1:-1]).replace(protect(PLACEHOLDER), UNKNOWN)
            case "ansi_c_string":
                return protect(decode_ansi(text_of(node)[2:-1]))
            case "string":
                return self.quoted(node)
            case "translated_string":
                return self.text(node.children[-1])
            case "concatenation" | "command_name":
                return "".join(self.pieces(node.children))
            case "simple_expansion" | "expansion":
                return self._outside(self._variable(node))
            case "command_substitution":
                return unprotect_value(self._run(node))
            case "process_substitution":
                self._run(node)
                return "/dev/fd/63"
            case "array":
                return " ".join(self.pieces(node.named_children))
            case "$":
                # A dollar that the tree has torn from its variable.
                return UNKNOWN
            case "arithmetic_expansion":
                self.look_inside(node)
                return UNKNOWN
        self.look_inside(node)
        return text_of(node) if not node.is_named or node.type == "brace_expression" else UNKNOWN

    def pieces(self, nodes: list[Node]) -> list[str]:
        """Nodes as the words they make up. Nodes that touch are one word, whatever the tree makes
        of them, and so are those with only a continued line or an escaped blank between them.
        """
        words: list[str] = []
        end = -1
        for at, node in enumerate(nodes):
            gap = " " if end < 0 else _between(node, end)
            end = node.end_byte
            for piece in _GAP.findall(gap):
                if piece.isspace():
                    words.append("")
                elif piece != "\\\n":
                    words[-1] += _unescape(piece)
            touching = at + 1 < len(nodes) and nodes[at + 1].start_byte == end
            follows = nodes[at + 1] if touching else None
            words[-1] += self._before(node, follows)
        return words

    def _before(self, node: Node, follows: Node | None) -> str:
        """A node, read with the one that touches it: the tree tears some apart that are one."""
        if follows is not None:
            if node.type == "simple_expansion" and text_of(follows).startswith("{"):
                # Braces come first: `$X{a,b}` is `$Xa $Xb`.
                return UNKNOWN
            if node.type == "$" and follows.type == "string":
                return ""
        return self.text(node)

    def quoted(self, node: Node) -> str:
        """The inside of double quotes or of a here-document. What stands between the children is
        text of its own.
        """
        source = node.text or b""
        at = node.start_byte
        found = []

        def literal(piece: bytes) -> str:
            plain = piece.decode(errors="replace")
            return protect(_IN_QUOTES.sub(_keep, plain)) if plain else ""

        for child in node.children:
            if child.type in ('"', "$", "string_content", "heredoc_content"):
                continue
            if child.type == "string":
                return self.quoted(child)
            before = source[at - node.start_byte : child.start_byte - node.start_byte]
            found.append(literal(before.strip(b'"') if at == node.start_byte else before))
            whole = child.text or b""
            found.append(literal(whole[: len(whole) - len(whole.lstrip())]))
            found.append(self._part(child))
            at = child.end_byte
        rest = source[at - node.start_byte :]
        if node.type in ("string", "translated_string"):
            rest = rest.removesuffix(b'"')
            rest = rest.removeprefix(b'"') if at == node.start_byte else rest
        found.append(literal(rest))
        return "".join(found) or protect("")

    def _part(self, node: Node) -> str:
        match node.type:
            case "simple_expansion" | "expansion":
                values = [protect_value(value) for value in self._variable(node)]
                return " ".join(values) if self._is_all(node) else protect_value(" ".join(values))
            case "command_substitution":
                return protect_value(self._run(node))
        return protect_value(self.text(node))

    @staticmethod
    def _is_all(node: Node) -> bool:
        """Whether `"$@"` or `"${A[@]}"`: as many words as there are values."""
        return "@" in text_of(node)

    def _outside(self, values: list[str]) -> str:
        joined = " ".join(unprotect_value(value) for value in values)
        return joined if self._state.splits_as_usual or not joined else UNKNOWN

    def look_inside(self, node: Node) -> None:
        """Runs the substitutions in a node whose value does not matter."""
        for child in descendants(node, *_SUBSTITUTIONS):
            self.text(child)

    def _variable(self, node: Node) -> list[str]:
        if self._depth > DEEPEST:
            return [UNKNOWN]
        self._depth += 1
        try:
            if node.type == "simple_expansion":
                return self._state.lookup(text_of(node.children[-1]))
            return self._parameter(node)
        finally:
            self._depth -= 1

    def _parameter(self, node: Node) -> list[str]:
        """`${…}` in all its forms; those that compute something give an unknown."""
        parts = node.children[1:-1]
        if not parts or parts[0].type not in _LEADING_NAMES:
            self.look_inside(node)
            return [UNKNOWN]
        name, values = self._named(parts[0])
        if len(parts) == 1:
            return values
        operator, rest = parts[1].type, parts[2:]
        if operator == "@":
            # `${X@P}` expands the value as a prompt, substitutions included.
            for value in values:
                self.expand_again(release(value))
            return [UNKNOWN]
        words = [self.text(part) for part in rest]
        given = "".join(words)
        known = self._state.is_assigned(name)
        match operator:
            case ":-" | "-" | ":=" | "=":
                if known or name in INHERITED:
                    return values
                if operator.endswith("="):
                    self._state.assign(name, [given])
                return [given]
            case "%" | "%%" | "#" | "##":
                # The tree leaves out a blank that the pattern begins with.
                whole = (node.text or b"")[parts[1].end_byte - node.start_byte : -1].decode()
                pattern = release(given) if "$" in whole or "`" in whole else _unescape(whole)
                return [_strip(value, operator, release(pattern)) for value in values]
        return [UNKNOWN]

    def expand_again(self, text: str) -> None:
        """Runs the substitutions in a text that the shell expands a second time."""
        for found in descendants(parse(f"cat <<_end_\n:{text}\n_end_\n"), "heredoc_body"):
            self.look_inside(found)

    def expand_subscripts(self, text: str) -> None:
        """A value is expanded again when it is counted with: `X='a[$(…)]'; echo $((X))`."""
        if _SUBSCRIPT.search(text):
            self.expand_again(text)

    def _named(self, node: Node) -> tuple[str, list[str]]:
        if node.type != "subscript":
            return text_of(node), self._state.lookup(text_of(node))
        self.look_inside(node)
        name = text_of(node.children[0])
        values = self._state.lookup(name)
        index = text_of(node.children[2]) if len(node.children) > 2 else ""
        if index in ("@", "*"):
            return name, values
        return name, values[int(index) : int(index) + 1] if index.isdecimal() else [UNKNOWN]


def _between(node: Node, end: int) -> str:
    """What stands between a node and the end of the one before it."""
    parent = node.parent
    if parent is None or parent.text is None:
        return " "
    start = parent.start_byte
    return parent.text[end - start : node.start_byte - start].decode(errors="replace")


def _unescape(text: str) -> str:
    return _OUTSIDE.sub(lambda found: "" if found[1] == "\n" else protect(found[1]), text)


def _keep(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _strip(value: str, operator: str, pattern: str) -> str:
    """`${value%pattern}` and its kin; of a value that is not known, the folder it is in."""
    plain = release(value)
    if any(one in plain for one in (UNKNOWN, OUTPUT, "*", "?", "[")) or len(plain) > 400:
        if operator == "##" and pattern == "*/":
            return f"./{UNKNOWN}"
        if operator.startswith("#") or plain[:1] in ("", UNKNOWN, OUTPUT):
            return UNKNOWN
        folder = plain.rpartition("/")[0]
        return f"{folder or '.'}/{UNKNOWN}"
    ends = operator.startswith("%")
    lengths = range(len(plain) + 1)
    for size in reversed(lengths) if len(operator) == 2 else lengths:
        piece = plain[len(plain) - size :] if ends else plain[:size]
        if fnmatch.fnmatchcase(piece, pattern):
            return protect(plain[: len(plain) - size] if ends else plain[size:])
    return protect(plain)
