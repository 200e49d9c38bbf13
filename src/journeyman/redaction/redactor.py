"""Replaces secrets and personal data with placeholders, `<family:N>`, before anything is learned,
reported or sent. All text and JSON passes through this one redactor.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from journeyman.redaction.assignments import AUTH_SCHEME
from journeyman.redaction.normalizer import parse_json
from journeyman.redaction.personal_data import bare_name_pattern, is_card
from journeyman.redaction.scanner import find_secrets
from journeyman.redaction.secret_values import (
    KIND_FAMILIES,
    PLACEHOLDER,
    VALUE_FIELDS,
    FieldKind,
    field_kind,
    is_reference,
    is_secret,
    looks_random,
    value_field_kind,
)

_MAX_PASSES = 20
_MAX_PASSES_LONG = 4
_LONG_TEXT = 50_000
_MAX_DEPTH = 100
_MAX_REMEMBERED = 1_000
_SHORTEST_CUT = 3
"""The shortest beginning of a known secret that is replaced where a text was cut within it."""

_NOT_REMEMBERED = frozenset(("email", "card", "iban", "ssn", "encoded"))
_MAX_NAMES = 50
"""How many user names are searched for on their own; no document is about more people."""

_STRUCTURE_HINT = re.compile(rf'"(?:{"|".join(sorted(VALUE_FIELDS))})":|": ?[\[{{]')

_Record = TypeVar("_Record")
_CONTEXT_END = 2_048
"""How much of each end of a text is searched for what reveals a secret in evidence."""


class Redactor:
    """Redacts the texts of one document. Placeholders are stable within it: the same e-mail address
    is <email:1> everywhere, however it is encoded.

    Names and secrets revealed by one text are replaced in later ones too; a second pass over all
    texts with the same Redactor replaces them in earlier ones. Without `people`, only secrets are
    replaced.
    """

    number_places: ClassVar[frozenset[FieldKind]] = frozenset(("code", "password", "card"))
    """The kinds of fields in which a number can be a secret."""

    def __init__(self, *, people: bool = True) -> None:
        self._people = people
        self._names: set[str] = set()
        self._remembered: dict[str, str] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._last: defaultdict[str, int] = defaultdict(int)

    def text(self, text: str) -> str:
        """Return the text without secrets; JSON stays valid JSON."""
        # Placeholders already in the text belong to other values, so new numbers come after.
        for family, number in PLACEHOLDER.findall(text) if "<" in text else ():
            self._last[family] = max(self._last[family], int(number))
        text = self._redact_structure(text)
        # One replacement can make another possible, so repeat until nothing changes.
        for _ in range(_MAX_PASSES if len(text) < _LONG_TEXT else _MAX_PASSES_LONG):
            redacted = self._redact_once(text)
            if redacted == text:
                break
            text = redacted
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value with all its strings redacted, including field names."""
        return self._redact_value(value, None, 0)

    def put(self, family: str, value: str) -> str:
        """Return the placeholder of a value."""
        number = self._numbers.get((family, value))
        if number is None:
            self._last[family] += 1
            number = self._numbers[family, value] = self._last[family]
        return f"<{family}:{number}>"

    def hide(self, family: str, value: str, kind: FieldKind | None = None) -> str:  # noqa: ARG002
        """Return the placeholder of a value, and replace the value everywhere from now on unless it
        is a common word.
        """
        placeholder = self.put(family, value)
        if family == "user":
            if len(self._names) < _MAX_NAMES and sum(map(str.isalpha, value)) >= 3:
                self._names.add(value)
        elif family not in _NOT_REMEMBERED and len(value) >= 8 and looks_random(value):
            self.remember(value, placeholder)
        return placeholder

    def cut_text(self, text: str) -> str:
        """Return the text without secrets, even if it was cut within one that is known."""
        text = self.text(text)
        kept = text.removesuffix("…")
        if kept == text:
            return text
        for value, placeholder in self._remembered.items():
            for length in range(min(len(value), len(kept)), _SHORTEST_CUT - 1, -1):
                if kept.endswith(value[:length]):
                    return f"{kept[:-length]}{placeholder}…"
        return text

    def remember(self, value: str, placeholder: str) -> None:
        """Replace the value everywhere from now on, not only where its context reveals it. Of very
        many values, only the last are remembered.
        """
        self._remembered[value] = placeholder
        if len(self._remembered) > _MAX_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]

    def _redact_structure(self, text: str) -> str:
        """Redact JSON in which one field names another, or one name covers several values."""
        if text[:1] not in ("{", "[") or not _STRUCTURE_HINT.search(text):
            return text
        try:
            value = json.loads(text)
            if not _has_structured_secrets(value):
                return text
        except (ValueError, RecursionError):
            return text
        redacted = self.value(value)
        return text if redacted == value else _json_like(text, redacted)

    def _redact_once(self, text: str) -> str:
        pieces: list[str] = []
        end = 0
        for span in find_secrets(text, people=self._people):
            placeholder = self.hide(span.family, span.value)
            if "\n" in (broken := text[span.start : span.end]) and span.value in self._remembered:
                # A title has the same text on one line.
                self.remember(" ".join(broken.split()), placeholder)
            pieces += (text[end : span.start], placeholder)
            end = span.end
        redacted = "".join((*pieces, text[end:])) if pieces else text
        for value, placeholder in self._remembered.items():
            if value in redacted:
                redacted = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", placeholder, redacted)
        for name in sorted(self._names, key=lambda name: (-len(name), name)) if self._names else ():
            if name in redacted:
                redacted = bare_name_pattern(name).sub(self.put("user", name), redacted)
        if (
            redacted is not text
            and (parsed := parse_json(text)) is not None
            and parse_json(redacted) is None
        ):
            return _json_like(text, self.value(parsed))
        return redacted

    def _redact_value(self, value: Any, kind: FieldKind | None, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            return self.put("nested", "")
        if isinstance(value, str):
            return self._redact_string(value, kind)
        if isinstance(value, list | tuple):
            return [self._redact_value(item, kind, depth + 1) for item in value]
        if isinstance(value, Mapping):
            value_kind, inherited = value_field_kind(value), self.inherited(kind)
            redacted: dict[str, Any] = {}
            for name, item in value.items():
                item_kind = (
                    field_kind(name) or (value_kind if name in VALUE_FIELDS else None) or inherited
                )
                redacted[self.text(name)] = self._redact_value(item, item_kind, depth + 1)
            return redacted
        if value is None or isinstance(value, bool):
            return value
        return self._redact_number(value, kind)

    def inherited(self, kind: FieldKind | None) -> FieldKind | None:
        """Return what the name of an object says about the fields inside it."""
        return "loose" if kind is not None else None

    def _redact_number(self, value: float, kind: FieldKind | None) -> Any:
        digits = str(value)
        can_be_secret = digits.isdigit() and kind in self.number_places  # as in text
        if kind is not None and can_be_secret and self.is_hidden(digits, kind):
            return self.hide(KIND_FAMILIES[kind], digits, kind)
        if self._people and isinstance(value, int) and is_card(digits):
            return self.hide("card", digits)
        return value

    def _redact_string(self, value: str, kind: FieldKind | None) -> str:
        scheme = AUTH_SCHEME.match(value) if kind in ("header", "loose", "secret") else None
        start = scheme.end() if scheme else 0
        secret = value[start:]
        if start and kind is not None and not is_reference(secret):
            kind = "secret"
        if kind is None or not self.is_hidden(secret, kind):
            return self.text(value)
        redacted = self.text(secret)
        if redacted == secret or not PLACEHOLDER.fullmatch(redacted.strip()):
            redacted = self.hide(KIND_FAMILIES[kind], secret, kind)
        return value[:start] + redacted

    def is_hidden(self, value: str, kind: FieldKind) -> bool:
        """Whether a value is redacted because of the name of its field."""
        return is_secret(value, kind)


def _has_structured_secrets(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_structured_secrets, value))
    if not isinstance(value, dict):
        return False
    nested = [(name, item) for name, item in value.items() if isinstance(item, dict | list)]
    return value_field_kind(value) is not None or any(
        field_kind(name) or _has_structured_secrets(item) for name, item in nested
    )


def _json_like(text: str, value: Any) -> str:
    """Return the value as JSON, on one line unless the text that it replaces has several."""
    indent = 2 if text[1:2] in ("\n", "\r") else None
    return json.dumps(value, ensure_ascii=text.isascii(), indent=indent)


def redacted_record(record: _Record) -> _Record:
    """Return a record, or several, with every text redacted; values of a closed set stay."""
    redactor = Redactor()
    redacted: _Record = record
    for _ in range(2):  # a later text may reveal a name that an earlier one contains
        redacted = _redact_strings(redacted, cache(redactor.text))
    return redacted


def redacted_evidence(evidence: str, *context: str) -> str:
    """Return the evidence of a verdict, redacted. It is a single line; what reveals a secret in it
    may be in the context: on another line of the result, or in the arguments of the call.
    """
    redactor = Redactor()
    for text in context:
        redactor.text(text[:_CONTEXT_END])
        redactor.text(text[_CONTEXT_END:][-_CONTEXT_END:])
    return redactor.cut_text(evidence)


def _redact_strings(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in _free_text_fields(type(value))}
        redacted = {name: _redact_strings(item, clean) for name, item in fields.items()}
        return msgspec.structs.replace(value, **redacted) if redacted != fields else value
    if isinstance(value, dict):
        # As JSON, because the names of its fields reveal which values are secret.
        return json.loads(clean(json.dumps(value, ensure_ascii=False)))
    if isinstance(value, list | tuple):
        return type(value)([_redact_strings(item, clean) for item in value])
    return value


@cache
def _free_text_fields(record: type[Struct]) -> tuple[str, ...]:
    """Return the fields of a record, except those with values of a closed set."""
    hints = get_type_hints(record)
    return tuple(name for name in record.__struct_fields__ if not _is_literal_type(hints[name]))


def _is_literal_type(hint: Any) -> bool:
    parts = [part for part in get_args(hint) if part is not type(None)]
    return get_origin(hint) is Literal or (len(parts) == 1 and get_origin(parts[0]) is Literal)
