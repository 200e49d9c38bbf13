"""Redaction: secrets and details of people are replaced by placeholders, `<family:N>`, before
anything is learned, shown in a report or sent. One way through text and through JSON, for all.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from journeyman.records import JudgedSession
from journeyman.redaction.assignments import SCHEME
from journeyman.redaction.normaliser import opened
from journeyman.redaction.people import as_a_word, is_card
from journeyman.redaction.scanner import find_secrets
from journeyman.redaction.values import (
    FAMILIES,
    PLACEHOLDER,
    VALUE_NAMES,
    Place,
    is_secret,
    looks_random,
    place_of,
    place_of_value,
    refers,
)

_PASSES = 20
_PASSES_OF_LONG_TEXTS = 4
_LONG = 50_000
_DEEPEST = 100
_MOST_REMEMBERED = 100
_NOT_REMEMBERED = frozenset(("email", "phone", "card", "iban", "ssn", "encoded"))
_MOST_NAMES = 50
"""How many user names are looked for where they stand bare: no document is about more people."""

_STRUCTURED = re.compile(rf'"(?:{"|".join(sorted(VALUE_NAMES))})":|": ?[\[{{]')
_INDENT = re.compile(r"\s*[\[{]\r?\n([ \t]+)")

_Record = TypeVar("_Record")
_Struct = TypeVar("_Struct", bound=Struct)
_READ_OF_RESULT = 2_048


class Redactor:
    """Redacts the texts of one document; placeholders are stable within it: the same e-mail address
    is <email:1> wherever it stands, however it is encoded.

    Names and secrets that one text gives away are replaced in the following ones too; a second
    round over all texts with the same Redactor finds them in the earlier ones. Without `people`,
    only secrets are replaced.
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
        """The text without secrets; JSON stays valid JSON."""
        # Numbers that a text brings with it belong to other values: new ones go on behind them.
        for family, number in PLACEHOLDER.findall(text) if "<" in text else ():
            self._last[family] = max(self._last[family], int(number))
        text = self._by_structure(text)
        # One replacement can make another possible, so it is done until nothing changes.
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
        """The same; from now on the value goes wherever it stands, if it is no common word."""
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
        """JSON in which one field names the place of another, or a name that of several values."""
        if text[:1] not in ("{", "[") or not _STRUCTURED.search(text):
            return text
        try:
            value = json.loads(text)
            if not _has_structured_places(value):
                return text
        except (ValueError, RecursionError):
            return text
        shown = self.value(value)
        return text if shown == value else _like(text, shown)

    def _once(self, text: str) -> str:
        pieces: list[str] = []
        at = 0
        for one in find_secrets(text, people=self._people):
            shown = self.hide(one.family, one.value)
            pieces += (text[at : one.start], f'"{shown}"' if one.wants_quotes else shown)
            at = one.end
        done = "".join((*pieces, text[at:])) if pieces else text
        for value, shown in self._remembered.items():
            if value in done:
                done = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", shown, done)
        for name in sorted(self._names, key=lambda name: (-len(name), name)) if self._names else ():
            if name in done:
                done = as_a_word(name).sub(self.put("user", name), done)
        if done is not text and (whole := opened(text)) is not None and opened(done) is None:
            return _like(text, self.value(whole))
        return done

    def _value(self, value: Any, place: Place | None, level: int) -> Any:
        if level > _DEEPEST:
            return self.put("nested", "")
        if isinstance(value, str):
            return self._string(value, place)
        if isinstance(value, list | tuple):
            return [self._value(item, place, level + 1) for item in value]
        if isinstance(value, Mapping):
            filled, inherited = place_of_value(value), self.inherited(place)
            shown: dict[str, Any] = {}
            for name, item in value.items():
                here = place_of(name) or (filled if name in VALUE_NAMES else None) or inherited
                shown[self.text(name)] = self._value(item, here, level + 1)
            return shown
        if value is None or isinstance(value, bool):
            return value
        return self._number(value, place)

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


def _has_structured_places(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_structured_places, value))
    if not isinstance(value, dict):
        return False
    nested = [(name, item) for name, item in value.items() if isinstance(item, dict | list)]
    return place_of_value(value) is not None or any(
        place_of(name) or _has_structured_places(item) for name, item in nested
    )


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


def redacted_record(record: _Record) -> _Record:
    """A record, or several, with every text redacted; values of a closed set stay."""
    redactor = Redactor()
    shown: _Record = record
    for _ in range(2):  # a name that a later text gives away may stand bare in an earlier one
        shown = _walked(shown, cache(redactor.text))
    return shown


def redacted_sessions(sessions: Sequence[JudgedSession]) -> list[JudgedSession]:
    """Judged sessions for a report; each distinct text is redacted once."""
    redactor = Redactor()
    shown = list(sessions)
    for _ in range(2):
        clean = cache(redactor.text)

        def made(record: _Struct, *names: str, clean: Any = clean, **others: object) -> _Struct:
            fields = {name: clean(getattr(record, name)) for name in names}
            return msgspec.structs.replace(record, **fields, **others)

        shown = [
            made(
                session,
                *("id", "source", "model", "project"),
                tags=tuple(map(clean, session.tags)),
                calls=tuple(
                    made(call, "tool", "model", verdict=made(call.verdict, "evidence"))
                    for call in session.calls
                ),
            )
            for session in sessions
        ]
    return shown


def redacted_evidence(evidence: str, result: str) -> str:
    """The evidence of a verdict. It is on one line: what tells a secret in it may be on another
    line of the result that it was taken from.
    """
    redactor = Redactor()
    redactor.text(result[:_READ_OF_RESULT])
    redactor.text(result[_READ_OF_RESULT:][-_READ_OF_RESULT:])
    return redactor.text(evidence)


def _walked(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in _open_fields(type(value))}
        shown = {name: _walked(one, clean) for name, one in fields.items()}
        return msgspec.structs.replace(value, **shown) if shown != fields else value
    if isinstance(value, dict):
        # Which of its values are secret, the names beside them tell.
        return json.loads(clean(json.dumps(value, ensure_ascii=False)))
    if isinstance(value, list | tuple):
        return type(value)([_walked(one, clean) for one in value])
    return value


@cache
def _open_fields(record: type[Struct]) -> tuple[str, ...]:
    """The fields of a record but those with values of a closed set."""
    hints = get_type_hints(record)
    return tuple(name for name in record.__struct_fields__ if not _is_closed(hints[name]))


def _is_closed(hint: Any) -> bool:
    parts = [part for part in get_args(hint) if part is not type(None)]
    return get_origin(hint) is Literal or (len(parts) == 1 and get_origin(parts[0]) is Literal)
