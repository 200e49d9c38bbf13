"""Redaction: secrets and details of people are replaced by placeholders, `<family:N>`, before
anything is learned, shown in a report or sent. One way through text and through JSON, for all.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from journeyman.redaction.assignments import SCHEME
from journeyman.redaction.key_names import (
    NAMING,
    PLACEHOLDER,
    VALUE_NAMES,
    Place,
    place_of,
    place_of_value,
)
from journeyman.redaction.people import as_a_word, is_card
from journeyman.redaction.scanner import find_secrets
from journeyman.redaction.values import FAMILIES, Found, is_secret, looks_random, refers

_PASSES = 20
_PASSES_OF_LONG_TEXTS = 4
_LONG = 50_000
_DEEPEST = 100
_MOST_REMEMBERED = 100
_NOT_REMEMBERED = frozenset(("email", "phone", "card", "iban", "ssn", "encoded"))
_MOST_NAMES = 50
"""How many user names are looked for where they stand bare: no document is about more people."""


class Redactor:
    """Redacts the texts of one document; placeholders are stable within it: the same e-mail address
    is <email:1> wherever it stands, however it is encoded.

    Names and secrets that one text gives away are replaced in the following ones where they stand
    bare. Redacting changes nothing in what is redacted, so a second round over all texts with the
    same Redactor finds them in the earlier ones too. Without `people`, only secrets are replaced.
    """

    number_places: ClassVar[frozenset[Place]] = frozenset(("code", "password", "phone", "card"))
    """Where a number can be a secret."""

    def __init__(self, *, people: bool = True) -> None:
        self._people = people
        self._names: set[str] = set()
        self._remembered: dict[str, str] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._last: defaultdict[str, int] = defaultdict(int)

    def text(self, text: str) -> str:
        """The text without secrets; JSON stays valid JSON. One replacement can make another
        possible, so it is done until nothing changes.
        """
        if "<" in text:
            self._keep_free(text)
        text = self._by_structure(text)
        for _ in range(_PASSES if len(text) < _LONG else _PASSES_OF_LONG_TEXTS):
            done = self._once(text)
            if done == text:
                break
            text = done
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with all its strings redacted, names of fields included."""
        return self._value(value, None, 0)

    def put(self, family: str, value: str) -> str:
        """What stands in the place of a value."""
        number = self._numbers.get((family, value))
        if number is None:
            self._last[family] += 1
            number = self._numbers[family, value] = self._last[family]
        return f"<{family}:{number}>"

    def hide(self, family: str, value: str, place: Place | None = None) -> str:  # noqa: ARG002
        """The same, and from now on the value goes wherever it stands, if it is no common word.
        `place` is known where a name gave it away.
        """
        shown = self.put(family, value)
        if family == "user":
            if len(self._names) < _MOST_NAMES and sum(map(str.isalpha, value)) >= 3:
                self._names.add(value)
        elif family not in _NOT_REMEMBERED and len(value) >= 8 and looks_random(value):
            self.remember(value, shown)
        return shown

    def remember(self, value: str, shown: str) -> None:
        """From now on the value is replaced wherever it stands, not only in a telling place."""
        if len(self._remembered) < _MOST_REMEMBERED:
            self._remembered[value] = shown

    def _by_structure(self, text: str) -> str:
        """JSON in which one field names the place of another, or a name stands before more than one
        value: what its text alone does not show.
        """
        if text[:1] not in ("{", "[") or not _may_be_structured(text):
            return text
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if not _has_structured_places(value):
            return text
        shown = self.value(value)
        return text if shown == value else _like(text, shown)

    def _once(self, text: str) -> str:
        found = find_secrets(text, people=self._people)
        done = self._replaced(text, found) if found else text
        for value, shown in self._remembered.items():
            if value in done:
                done = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", shown, done)
        for name in sorted(self._names, key=lambda name: (-len(name), name)) if self._names else ():
            if name in done:
                done = as_a_word(name).sub(self.put("user", name), done)
        if done is not text and _is_json(text) and not _is_json(done):
            return _like(text, self.value(json.loads(text)))
        return done

    def _replaced(self, text: str, found: Sequence[Found]) -> str:
        pieces: list[str] = []
        done = 0
        for one in found:
            shown = self.hide(one.family, one.value)
            pieces += (text[done : one.start], f'"{shown}"' if one.wants_quotes else shown)
            done = one.end
        return "".join(pieces) + text[done:]

    def _keep_free(self, text: str) -> None:
        """Numbers that a text brings with it belong to other values: new ones go on behind them."""
        for family, number in PLACEHOLDER.findall(text):
            self._last[family] = max(self._last[family], int(number))

    def _value(self, value: Any, place: Place | None, level: int) -> Any:
        if level > _DEEPEST:
            return self.put("nested", "")
        if isinstance(value, str):
            return self._string(value, place)
        if isinstance(value, list | tuple):
            return [self._value(item, place, level + 1) for item in value]
        if isinstance(value, Mapping):
            return self._object(value, place, level)
        if value is None or isinstance(value, bool):
            return value
        return self._number(value, place)

    def _object(self, value: Mapping[str, Any], place: Place | None, level: int) -> dict[str, Any]:
        filled = place_of_value(value)
        inherited = self.inherited(place)
        shown: dict[str, Any] = {}
        for name, item in value.items():
            here = place_of(name) or (filled if name in VALUE_NAMES else None) or inherited
            shown[self.text(name)] = self._value(item, here, level + 1)
        return shown

    def inherited(self, place: Place | None) -> Place | None:
        """What a name says about the fields of the object behind it."""
        return "loose" if place is not None else None

    def _number(self, value: float, place: Place | None) -> Any:
        digits = str(value)
        can_be_secret = digits.isdigit() and place in self.number_places  # as in a text
        if place is not None and can_be_secret and self.is_hidden(digits, place):
            return self.hide(FAMILIES[place], digits, place)
        if self._people and isinstance(value, int) and is_card(digits):
            return self.hide("card", digits)
        return value

    def _string(self, value: str, place: Place | None) -> str:
        scheme = SCHEME.match(value) if place in ("header", "loose", "secret") else None
        start = scheme.end() if scheme else 0
        secret = value[start:]
        if start and place is not None and not refers(secret):
            place = "secret"
        if place is None or not self.is_hidden(secret, place):
            return self.text(value)
        by_form = self.text(secret)
        if by_form == secret or not PLACEHOLDER.fullmatch(by_form.strip()):
            by_form = self.hide(FAMILIES[place], secret, place)
        return value[:start] + by_form

    def is_hidden(self, value: str, place: Place) -> bool:
        """Whether a value goes by the name that it stands behind."""
        return is_secret(value, place)


_FILLED = tuple(f'"{name}":' for name in sorted(VALUE_NAMES))
_NAMING = tuple(f'"{name}":' for name in NAMING)
_NESTED = ('": {', '": [', '":{', '":[')
_INDENT = re.compile(r"\s*[\[{]\r?\n([ \t]+)")


def _may_be_structured(text: str) -> bool:
    """Whether it is worth reading a text as JSON, by the names that have to be there."""
    if any(one in text for one in _FILLED) and any(one in text for one in _NAMING):
        return True
    return any(one in text for one in _NESTED)


def _has_structured_places(value: Any) -> bool:
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, list):
            rest += one
        elif isinstance(one, dict):
            if place_of_value(one):
                return True
            nested = [name for name, item in one.items() if isinstance(item, dict | list)]
            if any(map(place_of, nested)):
                return True
            rest += one.values()
    return False


def _like(text: str, value: Any) -> str:
    """JSON for a value, spaced like the text that it takes the place of."""
    indent = _INDENT.match(text[:256])
    spaced = '": ' in text or ", " in text
    return json.dumps(
        value,
        ensure_ascii=text.isascii(),
        indent=indent[1] if indent else None,
        separators=(",", ": ") if indent else (", ", ": ") if spaced else (",", ":"),
    )


def _is_json(text: str) -> bool:
    first, last = text[:64].lstrip()[:1], text[-64:].rstrip()[-1:]
    if first not in ("{", "[", '"') or last not in ("}", "]", '"'):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
