"""Phone numbers: written internationally, in the North American way, or behind a word that says so.
Whether such a number can exist is for the `phonenumbers` library, which is loaded late.
"""

import re

from journeyman.redaction.placeholders import Placeholders

_INTERNATIONAL = re.compile(
    r"(?:\+(?<![\w+.=]\+)|00(?<![\d.]00)(?=[1-9]\d ))\d[\d ().\u00a0-]{5,18}\d(?![\w.]?\d|\w)"
)
_NATIONAL = re.compile(r"[(\d](?:(?<=\()\d{3}\) ?|(?<=\d)\d\d[.-])\d{3}[.-]\d{4}(?![\w-]|\.\d)")
_BEFORE_NATIONAL = re.compile(r"(?:\A|[^\w.+/:=-])(?:1[ .-])?\Z")
_AFTER_WORD = re.compile(
    r"(?:phone|tel|telephone|telefon|mobile|mobil|handy|cell|fax|whatsapp|call)"
    r"((?: ?(?:number|no\.?|nr\.?|me at|us at|at|is|\.?:|\.|#)){0,3}) {1,3}"
    r"(\+?\(?\d[\d ()./-]{5,18}\d)(?![\w.]?\d)(?P<after> [a-z])?"
)
_WORDS = ("phone", "tel", "telefon", "mobil", "handy", "cell", "fax", "whatsapp", "call")
_TIME_OR_NUMBER = re.compile(r"\d{4}-\d\d-\d\d.*|[\d.]+")
_CODES_IN_A_ROW = re.compile(r"00\d\d(?: \d{4})+")
_DIGITS = re.compile(r"\d[\d ().-]{6}")


def without_phones(text: str, placeholders: Placeholders) -> str:
    """The text with phone numbers replaced."""
    if not _DIGITS.search(text):
        return text
    if "+" in text or "00" in text:
        text = _replaced(text, text, _INTERNATIONAL, placeholders)
    text = _replaced(text, text, _NATIONAL, placeholders)
    lower = text.lower()
    if len(lower) == len(text) and any(word in lower for word in _WORDS):
        text = _replaced(text, lower, _AFTER_WORD, placeholders)
    return text


def _replaced(
    text: str, searched: str, pattern: re.Pattern[str], placeholders: Placeholders
) -> str:
    pieces: list[str] = []
    done = 0
    for found in pattern.finditer(searched):
        start, end = found.span(2 if pattern is _AFTER_WORD else 0)
        if _is_phone(found, text[start:end], text):
            digits = re.sub(r"\D", "", text[start:end])
            pieces += (text[done:start], placeholders.put("phone", digits))
            done = end
    return "".join(pieces) + text[done:] if pieces else text


def _is_phone(found: re.Match[str], number: str, text: str) -> bool:
    digits = sum(map(str.isdigit, number))
    start = found.start()
    if found.re is _AFTER_WORD:
        if not 7 <= digits <= 15 or _TIME_OR_NUMBER.fullmatch(number):
            return False
        return bool(found[1]) or number[0] in "+(0" or not (number.count(" ") and found["after"])
    if found.re is _NATIONAL:
        before = _BEFORE_NATIONAL.search(text, max(0, start - 3), start)
        return before is not None and _library_agrees(number, must_exist=True)
    is_plain = number[1:].isdigit()
    if _CODES_IN_A_ROW.fullmatch(number):
        return False
    if not 8 <= digits <= 15 or (is_plain and _is_added_line(text, start)):
        return False
    return _library_agrees(number, must_exist=is_plain)


def _is_added_line(text: str, start: int) -> bool:
    """Whether the plus sign is that of a change to a file: its lines all begin with a sign."""
    if start == 0 or text[start - 1] != "\n":
        return False
    line_before = text.rfind("\n", 0, start - 1) + 1
    return text[line_before] in "+-@ \\"


def _library_agrees(number: str, *, must_exist: bool) -> bool:
    """What the library says; a number with spaces in it need only be possible."""
    import phonenumbers  # noqa: PLC0415 - it is large and seldom needed

    if number.startswith("00"):
        number = "+" + number[2:]
    try:
        parsed = phonenumbers.parse(number, "US")
    except phonenumbers.NumberParseException:
        return False
    if must_exist:
        return phonenumbers.is_valid_number(parsed)
    return phonenumbers.is_possible_number(parsed)
