"""Characters that a person does not see but a model reads: zero-width ones in words, those that
turn the direction of text, tags, runs of selectors. Emoji, a mark at the start of a file and the
scripts that need joiners stay unsuspected.
"""

import re
import unicodedata
from typing import NamedTuple


class Invisible(NamedTuple):
    """A kind of hidden text, with the characters that make it one."""

    id: str
    pattern: re.Pattern[str]
    example: str
    reason: str


_ZERO = "\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff\u180e"
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
        re.compile(f"[A-Za-z0-9][{_ZERO}]+[A-Za-z0-9]|[{_ZERO}]{{4,}}"),
        "ig\u200bnore",
        "cuts words so that no filter knows them, or writes in bits",
    ),
    Invisible(
        "invisible.selectors",
        re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}"),
        "ok\ufe01\ufe02\ufe03\U000e0101",
        "bytes written as variants of one character",
    ),
)

_HIDDEN = re.compile(f"[{_ZERO}\u00ad\u202a-\u202e\u2066-\u2069\ufe00-\ufe0f\U000e0000-\U000e01ef]")
_LOOK_ALIKES = str.maketrans(
    "асеіјорԛѕԝхуԁһӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧаοіѵ", "aceijopqswxydhlABEZHIKMNOPTYXaoiv"
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


def as_read(text: str) -> str:
    """The text as a model may read it: nothing hidden, one form and case for each letter, single
    spaces.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _HIDDEN.sub("", text))
    return " ".join(text.casefold().split())


def with_latin_letters(text: str) -> str:
    """The text with letters of other alphabets that look like Latin ones replaced by those."""
    return text.translate(_LOOK_ALIKES)
