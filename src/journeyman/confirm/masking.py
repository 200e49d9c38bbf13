"""What leaves the house of a request, in notices and in the audit: the parameters without their
secrets. The secrets are found by `redaction`; names and addresses of people stay, because whom a
message goes to is what is decided. What is bound and stored stays as it came.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from journeyman.redaction.key_names import Place
from journeyman.redaction.redactor import Redactor
from journeyman.redaction.values import is_secret, looks_random, refers

_MOST_KNOWN = 64
"""Each known secret is looked for in every text; an agent must not make that long."""
_LONGEST_AUDITED = 8_192
_SHORTEST_KNOWN = 6
_MARK = re.compile(r"<(hidden|nested):(\d{1,9})>")


def masked(details: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with `[hidden: N characters]` for each secret. One that a parameter gives
    away is hidden where it stands in the others too.
    """
    mask = _Mask()
    shown = mask.details(details)
    if mask.knows_too_many:
        return {"[hidden]": f"{len(details)} parameters with more secrets than can be told apart"}
    masked_details: dict[str, Any] = _with_marks(shown)
    return masked_details


def audited(details: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters for the audit: without secrets, and only their size where they are long. The
    digest beside them covers them all, and the card has them.
    """
    size = len(msgspec.json.encode(details))
    return masked(details) if size <= _LONGEST_AUDITED else {"[left out]": f"{size:,} bytes"}


def masked_text(text: str, beside: Mapping[str, Any] | None = None) -> str:
    """The same for a text; secrets that the parameters beside it give away are hidden too."""
    mask = _Mask()
    mask.value(beside or {})
    return _marks_in(mask.text(text))


def masked_beside(
    details: Mapping[str, Any], texts: Iterable[str]
) -> tuple[dict[str, Any], list[str]]:
    """The parameters and the texts that stand beside them, as the two above have them, with the
    secrets looked for once.
    """
    mask = _Mask()
    shown = _with_marks(mask.details(details))
    return shown, [_marks_in(mask.text(text)) for text in texts]


def _with_marks(value: Any) -> Any:
    if isinstance(value, str):
        return _marks_in(value)
    if isinstance(value, list):
        return [_with_marks(one) for one in value]
    if isinstance(value, dict):
        return {_marks_in(name): _with_marks(one) for name, one in value.items()}
    return value


def _marks_in(text: str) -> str:
    """The text with marks for a person in the place of those that redaction knows again."""
    return _MARK.sub(lambda found: _mark(found[1], int(found[2])), text) if "<" in text else text


def _mark(kind: str, length: int) -> str:
    if kind == "nested":
        return "[hidden: nested too deeply]"
    return f"[hidden: {length} character{'s' * (length != 1)}]"


class _Mask(Redactor):
    """Says how long a secret is instead of numbering it."""

    number_places: ClassVar[frozenset[Place]] = frozenset(
        ("password", "secret", "code", "header", "cookie", "card")
    )

    def __init__(self) -> None:
        super().__init__(people=False)
        self.knows_too_many = False
        self._known: set[str] = set()

    def details(self, details: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters masked; a second time if that may hide what stands before its name."""
        shown: dict[str, Any] = self.value(details)
        return self.value(details) if self._known else shown

    def put(self, family: str, value: str) -> str:
        return f"<{'nested' if family == 'nested' else 'hidden'}:{len(value)}>"

    def inherited(self, place: Place | None) -> Place | None:
        return place

    def hide(self, family: str, value: str, place: Place | None = None) -> str:
        """Hides it wherever it stands, if it is surely a secret and no word like others."""
        shown = self.put(family, value)
        is_sure = place is not None and place != "loose"
        if len(value) >= _SHORTEST_KNOWN and (is_sure or looks_random(value)):
            self.knows_too_many |= len(self._known) >= _MOST_KNOWN and value not in self._known
            if not self.knows_too_many:
                self._known.add(value)
                self.remember(value, shown)
        return shown

    def is_hidden(self, value: str, place: Place) -> bool:
        """Whether a value goes by the name it stands behind. Rather too much than too little: the
        page shows everything to those who may see it.
        """
        if place == "phone" or not value:
            return False
        if place == "loose":
            return not refers(value)
        return place not in ("code", "card") or is_secret(value, place)
