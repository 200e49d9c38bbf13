"""Characters that a person does not see but a model reads: the one table of them, and the kinds of
hidden text they make. Emoji, a mark at the start of a file and the scripts that need joiners stay
unsuspected. Surfaces use the table too, so that nothing heavy is loaded here.
"""

import re
from typing import NamedTuple

# Each of these stands between the brackets of a regular expression.
JOINERS = "\u00ad\u061c\u180e\u200b-\u200f\u2060-\u2065\ufeff"
"""Without width: they join, part or mark letters."""

DIRECTIONS = "\u202a-\u202e\u2066-\u206f"
"""They turn the order in which text is shown, or how letters are shaped."""

FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0"
"""Letters and marks that have no shape of their own."""

SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""They choose between the shapes of the character before them: in every other emoji."""

SIGNS = (
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""Other characters that shape text instead of standing in it: tags, marks of notes and numbers."""

UNSEEN = f"{JOINERS}{DIRECTIONS}{FILLERS}{SELECTORS}{SIGNS}"
"""All of them."""


class Invisible(NamedTuple):
    """A kind of hidden text, with the characters that make it one."""

    id: str
    pattern: re.Pattern[str]
    example: str
    reason: str


_ZERO = "\u180e\u200b-\u200d\u2060-\u2065\ufeff"
_ODD = f"\u206a-\u206f{FILLERS}"
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")

KINDS: tuple[Invisible, ...] = (
    Invisible(
        "invisible.tags",
        re.compile("[\U000e0000-\U000e007f]"),
        "hello\U000e0068\U000e0069",
        "a whole alphabet that is never shown",
    ),
    Invisible(
        "invisible.override",
        re.compile("[\u202d\u202e]"),
        "file\u202egpj.exe",
        "shows text in another order than it is read",
    ),
    Invisible(
        "invisible.direction",
        re.compile("[\u202a-\u202c\u2066-\u2069]"),
        "if admin\u2066 then",
        "the same; but text from right to left needs them",
    ),
    Invisible(
        "invisible.zero_width",
        re.compile(
            f"[A-Za-z0-9][{_ZERO}]+[A-Za-z0-9]{{1,30}}[{_ZERO}]+[A-Za-z0-9]|[{_ZERO}]{{4,}}"
        ),
        "ig\u200bno\u200bre",
        "cuts a word to pieces so that no filter knows it, or writes in bits",
    ),
    Invisible(
        "invisible.filler",
        re.compile(f"[A-Za-z][{_ODD}]+[A-Za-z]"),
        "for\u3164get",
        "the same with letters and marks of other scripts that have no shape",
    ),
    Invisible(
        "invisible.selectors",
        re.compile(f"[{SELECTORS}]{{3,}}"),
        "ok\ufe01\ufe02\ufe03\U000e0101",
        "bytes written as variants of one character",
    ),
)


def find_invisible(text: str) -> tuple[Invisible, int] | None:
    """The first kind of hidden text that fits, and where."""
    if text.isascii():
        return None
    shown = _FLAG.sub(lambda found: "x" * len(found[0]), text)
    for kind in KINDS:
        found = kind.pattern.search(shown)
        if found and not (kind.id == "invisible.direction" and _RIGHT_TO_LEFT.search(text)):
            return kind, found.start()
    return None
