"""How a text is shown to somebody who decides on it: every character that could hide something, or
turn around what is read, stands as a visible escape. What is bound and stored stays as it came.
"""

import re
import unicodedata
from functools import lru_cache

_HIDING = ("Cc", "Cf", "Zl", "Zp", "Co", "Cs", "Cn")
_UNSEEN = (
    (0x00A0, 0x00A0), (0x1680, 0x1680), (0x2000, 0x200A), (0x202F, 0x202F), (0x205F, 0x205F),
    (0x3000, 0x3000),  # spaces that are not the space
    (0x115F, 0x1160), (0x2800, 0x2800), (0x3164, 0x3164), (0xFFA0, 0xFFA0), (0x1D159, 0x1D159),
    # letters and signs that look like nothing; from here on marks that change nothing one sees,
    # which can carry a message
    (0x034F, 0x034F), (0x16FE4, 0x16FE4), (0x17B4, 0x17B5), (0x180B, 0x180D), (0x180F, 0x180F),
    (0xFE00, 0xFE0F), (0xE0100, 0xE01EF),
)  # fmt: skip
"""What hides without being of a category that hides."""

_NOT_COUNTED = "\n\t"
_LOOKS_ESCAPED = re.compile(r"\\(?=u\{)")


def visible(text: str) -> str:
    r"""The text with what hides as escapes: `\u{202e}`. Where the text itself has such an escape in
    it, its backslash is shown as `\u{5c}`, so whatever looks like an escape is one and the text can
    be had back. Letters that are read from the right stay.
    """
    if text.isascii() and text.isprintable() and "\\u{" not in text:
        return text
    shown = (
        "".join(_escape(one) if is_hidden(one) else one for one in part)
        for part in _LOOKS_ESCAPED.split(text)
    )
    return _escape("\\").join(shown)


def hidden_characters(text: str) -> int:
    """How many characters of a text hide something, newlines and tabs aside: worth a warning."""
    return sum(letter not in _NOT_COUNTED and is_hidden(letter) for letter in text)


@lru_cache(maxsize=4096)
def is_hidden(letter: str) -> bool:
    """Whether a character is shown as an escape."""
    code = ord(letter)
    return unicodedata.category(letter) in _HIDING or any(
        first <= code <= last for first, last in _UNSEEN
    )


def _escape(letter: str) -> str:
    return rf"\u{{{ord(letter):x}}}"
