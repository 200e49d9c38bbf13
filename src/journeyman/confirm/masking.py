"""What leaves the house of a request, in notices and in the audit: the parameters without their
secrets. The secrets are found by `redaction`; names and addresses of people stay, because whom a
message goes to is what is decided. What is bound and stored stays as it came.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from journeyman.redaction.redactor import Redactor
from journeyman.redaction.values import Place, is_secret, looks_random, refers

_MOST_KNOWN = 64
"""Each known secret is looked for in every text; an agent must not make that long."""
_LONGEST_AUDITED = 8_192
_SHORTEST_KNOWN = 6
_MARK = re.compile(r"<(hidden|nested):(\d{1,9})>")


def masked_beside(
    details: Mapping[str, Any], texts: Iterable[str]
) -> tuple[dict[str, Any], list[str]]:
    """The parameters with `[hidden: N characters]` for each secret, wherever it stands in them; and
    the texts beside them, also without the secrets that the parameters give away.
    """
    mask = _Mask()
    shown: dict[str, Any] = mask.value(details)
    if mask.known:  # which may stand before its name, too
        shown = mask.value(details)
    if mask.knows_too_many:
        shown = {"[hidden]": f"{len(details)} parameters with more secrets than can be told apart"}
    return _with_marks(shown), [_with_marks(mask.text(text)) for text in texts]


def masked(details: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters without their secrets."""
    return masked_beside(details, ())[0]


def masked_text(text: str, beside: Mapping[str, Any] | None = None) -> str:
    """A text without secrets, and without those that the parameters beside it give away."""
    return masked_beside(beside or {}, (text,))[1][0]


def audited(details: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters for the audit: without secrets, and only their size where they are long. The
    digest beside them covers them all, and the card has them.
    """
    size = len(msgspec.json.encode(details))
    return masked(details) if size <= _LONGEST_AUDITED else {"[left out]": f"{size:,} bytes"}


def _with_marks(value: Any) -> Any:
    """A value with marks for a person in the place of those that redaction knows again."""
    if isinstance(value, str):
        return _MARK.sub(_mark, value) if "<" in value else value
    if isinstance(value, list):
        return [_with_marks(one) for one in value]
    if isinstance(value, dict):
        return {_with_marks(name): _with_marks(one) for name, one in value.items()}
    return value


def _mark(found: re.Match[str]) -> str:
    if found[1] == "nested":
        return "[hidden: nested too deeply]"
    return f"[hidden: {found[2]} character{'s' * (found[2] != '1')}]"


class _Mask(Redactor):
    """Says how long a secret is instead of numbering it."""

    number_places: ClassVar[frozenset[Place]] = frozenset(
        ("password", "secret", "code", "header", "cookie", "card")
    )

    def __init__(self) -> None:
        super().__init__(people=False)
        self.knows_too_many = False
        self.known: set[str] = set()

    def put(self, family: str, value: str) -> str:
        return f"<{'nested' if family == 'nested' else 'hidden'}:{len(value)}>"

    def inherited(self, place: Place | None) -> Place | None:
        return place

    def hide(self, family: str, value: str, place: Place | None = None) -> str:
        """Hides it wherever it stands, if it is surely a secret and no word like others."""
        shown = self.put(family, value)
        is_sure = place is not None and place != "loose"
        if len(value) >= _SHORTEST_KNOWN and (is_sure or looks_random(value)):
            self.knows_too_many |= len(self.known) >= _MOST_KNOWN and value not in self.known
            if not self.knows_too_many:
                self.known.add(value)
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
