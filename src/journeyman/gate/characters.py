"""Characters that make a command look like another one: invisible ones, those that turn the
direction of writing, and letters of other alphabets that look Latin.
"""

import re
import unicodedata

_ALLOWED = frozenset("\n\t")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_HIDING = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
_JOINER = "\u200d"

# Cyrillic and Greek letters that look like Latin ones.
_LOOK_ALIKES = "аеорсухіјѕԁһвкмтнАВЕКМНОРСТХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρυα"
_MIXED = re.compile(f"[A-Za-z][{_LOOK_ALIKES}]|[{_LOOK_ALIKES}][A-Za-z]")


def hides(text: str) -> bool:
    """Whether a text holds characters that a reader cannot see."""
    if text.isascii():
        return _CONTROL.search(text) is not None
    before = ""
    for one in text:
        if (
            one not in _ALLOWED
            and _is_hidden(one)
            and not (one == _JOINER and not before.isascii())
        ):
            return True
        before = one
    return False


def _is_hidden(one: str) -> bool:
    kind = unicodedata.category(one)
    return kind in _HIDING or (kind == "Zs" and one != " ")


def misleads(program: str, words: tuple[str, ...]) -> bool:
    """Whether a program's name or a word of its arguments looks like another."""
    if not program.isascii():
        return True
    return any(
        not text.isascii() and not re.search(r"\s", text) and _MIXED.search(text) is not None
        for text in words
    )
