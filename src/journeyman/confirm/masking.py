"""What leaves the house of a request, in notices and in the audit: the parameters without their
secrets. The secrets are found by `redaction`; names and addresses of people stay, because whom a
message goes to is what is decided. What is bound and stored stays as it came.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from journeyman.redaction.encoded import find_base64, may_hold_base64
from journeyman.redaction.found import Found
from journeyman.redaction.key_names import VALUE_NAMES, Place, place_of, place_of_value
from journeyman.redaction.logins import find_logins
from journeyman.redaction.pem import without_private_keys
from journeyman.redaction.placeholders import Placeholders
from journeyman.redaction.places import find_places
from journeyman.redaction.tokens import without_tokens
from journeyman.redaction.values import is_secret, looks_random, refers

_DEEPEST = 100
_MOST_KNOWN = 64
"""Each known secret is looked for in every text; an agent must not make that long."""
_LONGEST_AUDITED = 8_192
_SHORTEST_KNOWN = 6
_TOO_DEEP = "[hidden: nested too deeply]"


def masked(details: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with `[hidden: N characters]` for each secret. One that a parameter gives
    away is hidden where it stands in the others too.
    """
    hiding = _Hiding()
    shown = _object(details, None, hiding, 0)
    if hiding.knows_too_many:
        return {"[hidden]": f"{len(details)} parameters with more secrets than can be told apart"}
    return _object(details, None, hiding, 0) if hiding.knows_some else shown


def audited(details: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters for the audit: without secrets, and only their size where they are long. The
    digest beside them covers them all, and the card has them.
    """
    size = len(msgspec.json.encode(details))
    return masked(details) if size <= _LONGEST_AUDITED else {"[left out]": f"{size:,} bytes"}


def masked_text(text: str, beside: Mapping[str, Any] | None = None) -> str:
    """The same for a text; secrets that the parameters beside it give away are hidden too."""
    hiding = _Hiding()
    _object(beside or {}, None, hiding, 0)
    return _text(text, hiding)


def masked_beside(
    details: Mapping[str, Any], texts: Iterable[str]
) -> tuple[dict[str, Any], list[str]]:
    """The parameters and the texts that stand beside them, as the two above have them, with the
    secrets looked for once.
    """
    hiding = _Hiding()
    shown = _object(details, None, hiding, 0)
    if hiding.knows_some:
        shown = _object(details, None, hiding, 0)
    return shown, [_text(text, hiding) for text in texts]


class _Hiding(Placeholders):
    """Says how long a secret is instead of numbering it."""

    knows_some = False
    knows_too_many = False
    _known = 0

    def put(self, family: str, value: str) -> str:  # noqa: ARG002  what it is tells too much
        return f"[hidden: {len(value)} character{'s' * (len(value) != 1)}]"

    def hide(self, value: str, *, surely: bool) -> str:
        """Hides it wherever it stands, if it is surely a secret and no word like others."""
        shown = self.put("", value)
        if len(value) >= _SHORTEST_KNOWN and (surely or looks_random(value)):
            self.knows_some = True
            self.knows_too_many = self._known >= _MOST_KNOWN
            if not self.knows_too_many:
                self._known += 1
                self.remember(value, shown)
        return shown


def _object(
    details: Mapping[str, Any], place: Place | None, hiding: _Hiding, level: int
) -> dict[str, Any]:
    filled = place_of_value(details)
    shown: dict[str, Any] = {}
    for name, item in details.items():
        here = place_of(name) or (filled if name in VALUE_NAMES else None) or place
        shown[_text(name, hiding)] = _value(item, here, hiding, level + 1)
    return shown


def _value(value: Any, place: Place | None, hiding: _Hiding, level: int) -> Any:
    if level > _DEEPEST:
        return _TOO_DEEP
    if isinstance(value, str):
        if not _is_hidden(value, place):
            return _text(value, hiding)
        return hiding.hide(value, surely=place != "loose")
    if isinstance(value, Mapping):
        return _object(value, place, hiding, level)
    if isinstance(value, list | tuple):
        return [_value(item, place, hiding, level + 1) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        # `max_tokens` is a number behind a word that others use for secrets.
        return (
            value
            if place == "loose" or not _is_hidden(str(value), place)
            else hiding.hide(str(value), surely=True)
        )
    return value


def _is_hidden(value: str, place: Place | None) -> bool:
    """Whether a value goes by the name it stands behind. Rather too much than too little: the page
    shows everything to those who may see it.
    """
    if place is None or place == "phone" or not value:
        return False
    if place == "loose":
        return not refers(value)
    return place not in ("code", "card") or is_secret(value, place)


def _text(text: str, hiding: _Hiding) -> str:
    """A text without the secrets that are known by their form or by the words before them."""
    if len(text) < _SHORTEST_KNOWN:
        return text
    text = without_private_keys(text, hiding)
    text = without_tokens(text, hiding)
    text = _put(text, [*find_logins(text), *find_places(text)], hiding)
    text = hiding.without_remembered(text)
    if not may_hold_base64(text):
        return text
    telling = (run for run in find_base64(text) if _text(run.text, _Hiding()) != run.text)
    return _put(text, [Found(run.start, run.end, "") for run in telling], hiding)


def _put(text: str, found: Iterable[Found], hiding: _Hiding) -> str:
    """The text with what was found hidden; of findings that overlap the first one counts."""
    pieces: list[str] = []
    done = 0
    for one in sorted(found):
        if done <= one.start < one.end:
            secret = text[one.start : one.end]
            pieces += (text[done : one.start], hiding.hide(secret, surely=False))
            done = one.end
    return "".join(pieces) + text[done:] if pieces else text
