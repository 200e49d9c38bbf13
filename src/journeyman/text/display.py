"""Makes text from outside safe to show: in a terminal, a report or a message (`readable`), to a
person who decides on it (`visible`), and in a chat, where text can be live (`escape_live_text`).
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from journeyman.text.invisible import (
    BLANK_LETTERS,
    DIRECTION_CONTROLS,
    FORMAT_CHARACTERS,
    ZERO_WIDTH_CHARACTERS,
)

# Colours, cursor movements, bells, reordered and hidden text. Joiners stay after a non-ASCII
# character, where they form emoji and connect the letters of some scripts.
_UNREADABLE = re.compile(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{DIRECTION_CONTROLS}"
    f"{BLANK_LETTERS}{FORMAT_CHARACTERS}]|(?<![^\x00-\x7f])[{ZERO_WIDTH_CHARACTERS}]"
)
_CONTROL_PICTURES = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "\u2421"}

_HIDDEN_CATEGORIES = ("Cc", "Cf", "Zl", "Zp", "Co", "Cs", "Cn")
_HIDDEN_RANGES = (
    (0x00A0, 0x00A0), (0x1680, 0x1680), (0x2000, 0x200A), (0x202F, 0x202F), (0x205F, 0x205F),
    (0x3000, 0x3000),  # spaces other than U+0020
    (0x115F, 0x1160), (0x2800, 0x2800), (0x3164, 0x3164), (0xFFA0, 0xFFA0), (0x1D159, 0x1D159),
    # Letters and symbols without a visible shape above; below, marks that change nothing visible
    # but can carry a message.
    (0x034F, 0x034F), (0x16FE4, 0x16FE4), (0x17B4, 0x17B5), (0x180B, 0x180D), (0x180F, 0x180F),
    (0xFE00, 0xFE0F), (0xE0100, 0xE01EF),
)  # fmt: skip
"""Hidden characters outside the hidden categories."""

_EXPECTED = "\n\t"
_LOOKS_ESCAPED = re.compile(r"\\(?=u\{)")

_LIVE: Final = re.compile(
    r"@(?=(?:everyone|here|channel|all|room|group|team|online)\b)"  # mentions a whole room
    r"|(?<![\w.+-])@(?=\w)"  # mentions one person; mail addresses are left alone
    r"|<(?=[@!#&:/a-z])"  # <!channel>, <@123>, <a:b:1>, <https://…|Approve>
    r"|(?<=[a-z0-9+.-]):(?=//)"  # https://…
    r"|(?<=\bwww)\.",
    re.IGNORECASE,
)

# The first two words mention a room even inside a word. The others are left alone there, because
# they occur in mail addresses and links.
_ROOM_MENTION: Final = re.compile(
    r"@(?=[*_]{0,3}(?:everyone|here))"
    r"|(?<![\w.+/-])@(?=[*_]{0,3}(?:channel|all|room|group|team|online|topic|stream)\b)"
    r"|<(?=!(?:everyone|here|channel|subteam)|@&|users/all|at\b[^>]{0,40}\ball\b)"
    r"|\[(?=CQ:at,)|\(met\)(?=all\b)",
    re.IGNORECASE,
)


def readable(text: str) -> str:
    """Return a text with a symbol for each character that could control a terminal, reorder or hide
    text. Tabs and newlines stay; other line ends become newlines.
    """
    if text.isascii() and text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNREADABLE.sub(
        lambda match: _CONTROL_PICTURES.get(match[0], "\N{REPLACEMENT CHARACTER}"), lines
    )


def readable_line(text: str) -> str:
    """Return a readable text on one line."""
    return " ".join(readable(text).split())


def printable(text: str) -> str:
    """Return a text without anything that a font cannot draw, for charts and pages."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else " " if letter.isspace() else "\ufffd"
        for letter in text
    )


def replace_surrogates(text: str) -> str:
    """Return a text with lone surrogates, which no encoding accepts, replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def visible(text: str) -> str:
    r"""Return the text with hidden characters as escapes: `\u{202e}`. The backslash of an escape in
    the text itself becomes `\u{5c}`, so the original can be recovered. Letters of right-to-left
    scripts stay.
    """
    if text.isascii() and text.isprintable() and "\\u{" not in text:
        return text
    parts = (
        "".join(_escape(letter) if is_hidden(letter) else letter for letter in part)
        for part in _LOOKS_ESCAPED.split(text)
    )
    return _escape("\\").join(parts)


def hidden_characters(text: str) -> int:
    """Return the number of hidden characters, newlines and tabs aside: worth a warning."""
    return sum(letter not in _EXPECTED and is_hidden(letter) for letter in text)


@lru_cache(maxsize=4096)
def is_hidden(letter: str) -> bool:
    """Return whether a character is shown as an escape."""
    code = ord(letter)
    return unicodedata.category(letter) in _HIDDEN_CATEGORIES or any(
        first <= code <= last for first, last in _HIDDEN_RANGES
    )


def _escape(letter: str) -> str:
    return rf"\u{{{ord(letter):x}}}"


def escape_live_text(text: str) -> str:
    """Return one line of untrusted text with hidden characters visible and every mention and link
    replaced by an escape, so that it cannot mention anyone or add a link.
    """
    return _LIVE.sub(lambda sign: f"\\u{{{ord(sign[0]):x}}}", visible(text))


def break_room_mentions(text: str) -> str:
    """Return the text with a blank inside every mention of a whole room. Links keep working."""
    return _ROOM_MENTION.sub(lambda sign: f"{sign[0]} ", text)
