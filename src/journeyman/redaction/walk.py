"""How a text is gone through: as JSON where it is JSON, down to its strings, and as plain text for
one kind of secret after the other. What the secrets look like is for the other modules.
"""

from collections.abc import Iterable

from journeyman.redaction.encoded import (
    Inside,
    Json,
    close_json,
    find_base64,
    find_json,
    find_strings,
    may_hold_base64,
    open_json,
)
from journeyman.redaction.found import Found
from journeyman.redaction.homes import without_homes
from journeyman.redaction.key_names import VALUE_NAMES, Place, place_of, place_of_value
from journeyman.redaction.logins import find_logins
from journeyman.redaction.pem import without_private_keys
from journeyman.redaction.people import is_card, without_people
from journeyman.redaction.phones import without_phones
from journeyman.redaction.placeholders import PLACEHOLDER, Placeholders
from journeyman.redaction.places import SCHEME, find_places
from journeyman.redaction.tokens import without_tokens
from journeyman.redaction.values import FAMILIES, is_secret, looks_random, refers

_DEEPEST = 100
_DEEPEST_TEXT = 4
_DEEPEST_STRINGS = 1
_PASSES = 20
_PASSES_OF_LONG_TEXTS = 4
_LONG = 50_000
_SHORTEST = 6
_APART = "\n\0\n"
"""Between strings that are looked at together: no rule reaches across it."""


def redacted(text: str, placeholders: Placeholders, depth: int = 0) -> str:
    """The text without secrets. One replacement can make another possible, so it is done until
    nothing changes.
    """
    if "<" in text:
        placeholders.keep_free(text)
    for _ in range(_PASSES if len(text) < _LONG else _PASSES_OF_LONG_TEXTS):
        done = _once(text, placeholders, depth)
        if done == text:
            break
        text = done
    return text


def _once(text: str, placeholders: Placeholders, depth: int) -> str:
    opened = open_json(text) if depth < _DEEPEST_TEXT else None
    if opened is None:
        return _plain(text, placeholders, depth)
    if not opened.repeats and _is_clean(opened.value, placeholders, depth):
        return text
    walked = _Walk(placeholders, depth).value(opened.value)
    if walked == opened.value and not opened.repeats:
        return text
    return close_json(walked, text)


def _is_clean(value: Json, placeholders: Placeholders, depth: int) -> bool:
    """Whether nothing in a JSON value is to be redacted, looked at all at once: most are clean, and
    one look at all strings costs less than a look at each.
    """
    strings = _simple_strings(value)
    if strings is None:
        return False
    joined = _APART.join(strings)
    return _plain(joined, placeholders.to_try(), depth) == joined


def _simple_strings(value: Json) -> list[str] | None:
    """All strings of a JSON value; None where more than their text counts: where one is JSON again,
    where a name marks a place for a secret, where a number may be a card's.
    """
    strings: list[str] = []
    rest: list[Json] = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, str):
            if one[:1] in _OPENS and open_json(one) is not None:
                return None
            strings.append(one)
        elif isinstance(one, dict):
            if any(map(place_of, one)) or place_of_value(one):
                return None
            strings += one
            rest += one.values()
        elif isinstance(one, list):
            rest += one
        elif isinstance(one, int) and is_card(str(one)):
            return None
    return strings


_OPENS = frozenset('{["\t\n\r ')


def _plain(text: str, placeholders: Placeholders, depth: int) -> str:
    if '"' in text and depth < _DEEPEST_TEXT:
        text = _without_json(text, placeholders, depth)
    text = without_private_keys(text, placeholders)
    text = without_tokens(text, placeholders)
    text = _put(text, [*find_logins(text), *find_places(text)], placeholders)
    text = without_people(text, placeholders)
    text = without_phones(text, placeholders)
    text = without_homes(text, placeholders)
    text = placeholders.without_remembered(text)
    return _without_base64(text, placeholders, depth)


def _without_json(text: str, placeholders: Placeholders, depth: int) -> str:
    """The text with what is JSON in it walked, and other strings that have escapes in them."""
    found = list(find_json(text))
    if depth < _DEEPEST_STRINGS and "\\" in text:
        found = _with_strings(text, found)
    values = [one.value for one in found]
    if not found or (len(found) > 4 and _is_clean(values, placeholders, depth + 1)):
        return text
    pieces: list[str] = []
    done = 0
    for inside in found:
        if not _is_clean(inside.value, placeholders, depth + 1):
            walked = _Walk(placeholders, depth + 1).value(inside.value)
            written = close_json(walked, text[inside.start : inside.end])
            pieces += (text[done : inside.start], written)
            done = inside.end
    return "".join(pieces) + text[done:] if pieces else text


def _with_strings(text: str, found: list[Inside]) -> list[Inside]:
    """What was found, and the strings between."""
    between: list[Inside] = []
    rest = iter([*found, Inside(len(text), len(text), None)])
    following = next(rest)
    for string in find_strings(text):
        while following.end <= string.start and following.start < len(text):
            following = next(rest)
        if string.end <= following.start:
            between.append(string)
    return sorted([*found, *between], key=lambda one: one.start)


def _without_base64(text: str, placeholders: Placeholders, depth: int) -> str:
    if depth >= _DEEPEST_TEXT or not may_hold_base64(text):
        return text
    telling = [
        Found(run.start, run.end, "encoded")
        for run in find_base64(text)
        if redacted(run.text, placeholders.to_try(), depth + 1) != run.text
    ]
    return _put(text, telling, placeholders)


def _put(text: str, found: Iterable[Found], placeholders: Placeholders) -> str:
    """The text with what was found replaced; of findings that overlap the first one counts. What
    cuts through a placeholder is none: the name in it may look like that of a secret's place.
    """
    pieces: list[str] = []
    done = 0
    for one in sorted(found):
        if one.start < done or one.start >= one.end or _cuts_placeholder(text, one):
            continue
        placeholder = _stand_in(one.family, text[one.start : one.end], placeholders)
        if one.wants_quotes:
            placeholder = f'"{placeholder}"'
        pieces += (text[done : one.start], placeholder)
        done = one.end
    return "".join(pieces) + text[done:] if pieces else text


def _cuts_placeholder(text: str, one: Found) -> bool:
    begins = text.rfind("<", 0, one.start + 1)
    around = PLACEHOLDER.match(text, begins) if begins >= 0 else None
    return around is not None and around.end() > one.start


def _stand_in(family: str, value: str, placeholders: Placeholders) -> str:
    placeholder = placeholders.put(family, value)
    if len(value) >= 8 and looks_random(value):
        placeholders.remember(value, placeholder)
    return placeholder


class _Walk:
    """The way through a JSON value. `place` is what the name before a value says about it."""

    def __init__(self, placeholders: Placeholders, depth: int) -> None:
        self._placeholders = placeholders
        self._depth = depth

    def value(self, value: Json, place: Place | None = None, level: int = 0) -> Json:
        if level > _DEEPEST:
            return self._placeholders.put("nested", "")
        if isinstance(value, str):
            return self._string(value, place)
        if isinstance(value, list):
            return [self.value(item, place, level + 1) for item in value]
        if isinstance(value, dict):
            return self._object(value, place, level)
        if value is None or isinstance(value, bool):
            return value
        return self._number(value, place)

    def _object(self, value: dict[str, Json], place: Place | None, level: int) -> dict[str, Json]:
        filled = place_of_value(value)
        inherited: Place | None = "loose" if place is not None else None
        walked: dict[str, Json] = {}
        for name, item in value.items():
            here = place_of(name) or (filled if name in VALUE_NAMES else None) or inherited
            walked[self._string(name, None)] = self.value(item, here, level + 1)
        return walked

    def _number(self, value: int | float, place: Place | None) -> Json:
        digits = str(value)
        if place in ("code", "password", "phone", "card") and is_secret(digits, place):
            return self._placeholders.put(FAMILIES[place], digits)
        if isinstance(value, int) and is_card(digits):
            return self._placeholders.put("card", digits)
        return value

    def _string(self, value: str, place: Place | None) -> str:
        if place is None:
            if len(value) < _SHORTEST and not self._placeholders.names:
                return value
            return _once(value, self._placeholders, self._depth + 1)
        scheme = SCHEME.match(value) if place in ("header", "loose", "secret") else None
        start = scheme.end() if scheme else 0
        secret = value[start:]
        if start and not refers(secret):
            place = "secret"
        if not is_secret(secret, place):
            return _once(value, self._placeholders, self._depth + 1)
        by_form = _plain(secret, self._placeholders, self._depth + 1)
        if not PLACEHOLDER.fullmatch(by_form.strip()):
            by_form = _stand_in(FAMILIES[place], secret, self._placeholders)
        return value[:start] + by_form
