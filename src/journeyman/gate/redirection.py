"""Words and redirections of a statement, from syntax nodes to values: where output goes, and what
comes in from a here-document, a here-string or a file.
"""

from tree_sitter import Node

from journeyman.gate.command import Redirect, Stream, is_known
from journeyman.gate.expansion import Expansion
from journeyman.gate.places import Places
from journeyman.gate.syntax import descendants, parse, text_of
from journeyman.gate.words import PLACEHOLDER, UNKNOWN, Word, release, split

REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})


def words_of(nodes: list[Node], expansion: Expansion, places: Places) -> list[Word]:
    """The words that some nodes become."""
    pieces = expansion.pieces(nodes)
    return [at_home(word, places) for piece in pieces for word in split(piece)]


def at_home(word: Word, places: Places) -> Word:
    """A leading `~` is a home folder. Where quotes kept it from being one, nothing is lost."""
    if not word.text.startswith("~"):
        return word
    user, slash, rest = word.text[1:].partition("/")
    home = {"": str(places.home), "root": "/root", "+": str(places.workspace)}
    return word._replace(text=home.get(user, f"/home/{user}") + slash + rest)


def redirects_of(
    nodes: list[Node], expansion: Expansion, places: Places
) -> tuple[tuple[Redirect, ...], Stream | None]:
    """Where the output goes, and what comes in; None where nothing does."""
    found: list[Redirect] = []
    fed: Stream | None = None
    for node in nodes:
        if node.type == "herestring_redirect":
            fed = Stream(_known("".join(expansion.pieces(node.named_children))))
        elif node.type == "heredoc_redirect":
            fed = Stream(_known(_heredoc(node, expansion)))
            for child in node.named_children:
                if child.type == "file_redirect":
                    found += redirect_of(child, expansion, places)
        else:
            each = redirect_of(node, expansion, places)
            found += each
            if any(one.operator == "<" for one in each):
                fed = Stream()
    return tuple(found), fed


def redirect_of(node: Node, expansion: Expansion, places: Places) -> tuple[Redirect, ...]:
    """One `> file`, which may name several."""
    operator = next((one.type for one in node.children if not one.is_named), "")
    if any(one.type == "ERROR" and text_of(one) == ">" for one in node.children):
        operator = "<>"
    targets = [one for one in node.named_children if one.type not in ("file_descriptor", "ERROR")]
    return tuple(Redirect(operator, word) for word in words_of(targets, expansion, places))


def _heredoc(node: Node, expansion: Expansion) -> str:
    start = next((one for one in node.named_children if one.type == "heredoc_start"), None)
    body = next((one for one in node.named_children if one.type == "heredoc_body"), None)
    if body is None:
        return ""
    if start is not None and any(one in text_of(start) for one in "'\"\\"):
        return text_of(body).replace(PLACEHOLDER, UNKNOWN)
    if text_of(body).lstrip().startswith(("$", "`")):
        # The grammar overlooks a substitution that opens the document.
        again = parse(f"cat <<_end_\n:{text_of(body)}\n_end_\n")
        for found in descendants(again, "heredoc_body"):
            return release(expansion.quoted(found))[1:]
    return release(expansion.quoted(body))


def _known(text: str) -> str | None:
    text = release(text)
    return text if is_known(text) else None
