"""Characters that people cannot see but models read, and the kinds of hidden text they form. Emoji,
a byte order mark and scripts that need joiners are not suspicious. The command line imports this
table, so this module loads nothing heavy.
"""

import re
from typing import NamedTuple

# Each constant is the inside of a regular expression character class.
ZERO_WIDTH_CHARACTERS = "\u00ad\u061c\u180e\u200b-\u200f\u2060-\u2065\ufeff"
"""Zero-width characters that join, separate or mark letters."""

DIRECTION_CONTROLS = "\u202a-\u202e\u2066-\u206f"
"""Characters that change the display order of text or the shape of letters."""

BLANK_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0"
"""Letters and marks without a visible shape."""

VARIATION_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Variation selectors: they select the shape of the preceding character. Common in emoji."""

FORMAT_CHARACTERS = (
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""Other format characters: tags, and marks for annotations, numbers and music."""

INVISIBLE_CHARACTERS = (
    f"{ZERO_WIDTH_CHARACTERS}{DIRECTION_CONTROLS}{BLANK_LETTERS}{VARIATION_SELECTORS}"
    f"{FORMAT_CHARACTERS}"
)
"""All invisible characters."""


class HiddenTextKind(NamedTuple):
    """A kind of hidden text and the pattern that detects it."""

    id: str
    pattern: re.Pattern[str]
    example: str
    reason: str


_ZERO_WIDTH = "\u180e\u200b-\u200d\u2060-\u2065\ufeff"
_BLANK = f"\u206a-\u206f{BLANK_LETTERS}"
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")

HIDDEN_TEXT_KINDS: tuple[HiddenTextKind, ...] = (
    HiddenTextKind(
        "invisible.tags",
        re.compile("[\U000e0000-\U000e007f]"),
        "hello\U000e0068\U000e0069",
        "tag characters, an alphabet that is never displayed",
    ),
    HiddenTextKind(
        "invisible.override",
        re.compile("[\u202d\u202e]"),
        "file\u202egpj.exe",
        "an override that displays text in a different order than it is read",
    ),
    HiddenTextKind(
        "invisible.direction",
        re.compile("[\u202a-\u202c\u2066-\u2069]"),
        "if admin\u2066 then",
        "direction marks outside right-to-left text, which reorder what is displayed",
    ),
    HiddenTextKind(
        "invisible.zero_width",
        re.compile(
            f"[A-Za-z0-9][{_ZERO_WIDTH}]+[A-Za-z0-9]{{1,30}}[{_ZERO_WIDTH}]+[A-Za-z0-9]|[{_ZERO_WIDTH}]{{4,}}"
        ),
        "ig\u200bno\u200bre",
        "zero-width characters that split words to evade filters, or encode bits",
    ),
    HiddenTextKind(
        "invisible.filler",
        re.compile(f"[A-Za-z][{_BLANK}]+[A-Za-z]"),
        "for\u3164get",
        "blank letters or marks of other scripts that split words to evade filters",
    ),
    HiddenTextKind(
        "invisible.selectors",
        re.compile(f"[{VARIATION_SELECTORS}]{{3,}}"),
        "ok\ufe01\ufe02\ufe03\U000e0101",
        "bytes encoded as variation selectors",
    ),
)


def find_hidden_text(text: str) -> tuple[HiddenTextKind, int] | None:
    """Return the first kind of hidden text that matches, and its position, or None."""
    if text.isascii():
        return None
    without_flags = _FLAG.sub(lambda flag: "x" * len(flag[0]), text)
    for kind in HIDDEN_TEXT_KINDS:
        match = kind.pattern.search(without_flags)
        if match and not (kind.id == "invisible.direction" and _RIGHT_TO_LEFT.search(text)):
            return kind, match.start()
    return None
