"""Masks secrets in parameters and texts that are shown or sent to people. Each secret becomes
`[hidden: N characters]`; names and addresses of people stay, because a decision may depend on them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from journeyman.redaction.redactor import Redactor
from journeyman.redaction.secret_values import FieldKind, is_reference, is_secret, looks_random

_MAX_SECRETS = 64
"""Every text is searched for each known secret; an agent must not be able to make that slow."""
_MIN_SECRET_LENGTH = 6
_MARK = re.compile(r"<(hidden|nested):(\d{1,9})>")


def mask_parameters_and_texts(
    details: Mapping[str, Any], texts: Iterable[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters with every secret masked wherever it occurs, and the texts with their
    own secrets and those found in the parameters masked.
    """
    mask = _Mask()
    shown: dict[str, Any] = mask.value(details)
    if mask.secrets:  # a secret may also occur before the name that reveals it
        shown = mask.value(details)
    if mask.has_too_many_secrets:
        shown = {"[hidden]": f"{len(details)} parameters with too many secrets to mask one by one"}
    return _with_readable_marks(shown), [_with_readable_marks(mask.text(text)) for text in texts]


def mask_parameters(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with their secrets masked."""
    return mask_parameters_and_texts(details, ())[0]


def mask_text(text: str, details: Mapping[str, Any] | None = None) -> str:
    """Return a text with its secrets masked, including those that the parameters reveal."""
    return mask_parameters_and_texts(details or {}, (text,))[1][0]


def _with_readable_marks(value: Any) -> Any:
    """Replace the marks that the redactor recognises by marks written for people."""
    return json.loads(_MARK.sub(_readable_mark, json.dumps(value)))


def _readable_mark(mark: re.Match[str]) -> str:
    if mark[1] == "nested":
        return "[hidden: nested too deeply]"
    return f"[hidden: {mark[2]} character{'s' * (mark[2] != '1')}]"


class _Mask(Redactor):
    """A redactor whose marks give the length of a secret instead of a number."""

    number_places: ClassVar[frozenset[FieldKind]] = frozenset(
        ("password", "secret", "code", "header", "cookie", "card")
    )

    def __init__(self) -> None:
        super().__init__(people=False)
        self.has_too_many_secrets = False
        self.secrets: set[str] = set()

    def put(self, family: str, value: str) -> str:
        return f"<{'nested' if family == 'nested' else 'hidden'}:{len(value)}>"

    def inherited(self, place: FieldKind | None) -> FieldKind | None:
        return place

    def hide(self, family: str, value: str, place: FieldKind | None = None) -> str:
        """Hide the value; everywhere else too, if it is certainly a secret and not a plain word."""
        shown = self.put(family, value)
        is_certain = place is not None and place != "loose"
        if len(value) >= _MIN_SECRET_LENGTH and (is_certain or looks_random(value)):
            is_new = value not in self.secrets
            self.has_too_many_secrets |= len(self.secrets) >= _MAX_SECRETS and is_new
            if not self.has_too_many_secrets:
                self.secrets.add(value)
                self.remember(value, shown)
        return shown

    def is_hidden(self, value: str, place: FieldKind) -> bool:
        """Return whether a value is hidden because of the name it belongs to. When in doubt it is:
        the page shows everything to those who are allowed to see it.
        """
        if not value:
            return False
        if place == "loose":
            return not is_reference(value)
        return place not in ("code", "card") or is_secret(value, place)
