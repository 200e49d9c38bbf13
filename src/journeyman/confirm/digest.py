"""The digests of canonical JSON (RFC 8785) that bind a decision."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import rfc8785

from journeyman.confirm.schemas import Card
from journeyman.records.confirmation import Confirmation
from journeyman.records.errors import WrongInput

_CONFIRMATION_TYPE = "journeyman.confirmation.v1"
_BOUND_FIELDS = ("action", "description", "requester", "session_key", "context", "nonce")
_REQUEST_TYPE = "journeyman.request.v1"
"""The type is hashed too, so that a digest of one type cannot pass for another."""

_encode_sorted = msgspec.json.Encoder(order="deterministic").encode


def canonical(value: object) -> bytes:
    """Return the canonical JSON of a value. Raise WrongInput if JSON cannot express it exactly."""
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except (ValueError, RecursionError) as error:
        is_deep = isinstance(error, RecursionError)
        raise WrongInput(
            "The parameters cannot be written as exact JSON: "
            f"{'they are nested too deeply' if is_deep else str(error)[:200]}. Use whole numbers"
            " up to 2**53 (send larger ones as text), and no NaN, infinities or lone surrogates."
        ) from error


def same_json(left: object, right: object) -> bool:
    """Return whether two values have the same digest: 1 equals 1.0, but neither true nor "1"."""
    try:
        return canonical(left) == canonical(right)
    except WrongInput:
        return False


def digest_of(card: Confirmation | Card, details: Mapping[str, Any]) -> str:
    """Return the digest of a card with these details. It covers every byte that a person is shown,
    the requester, what the service bound to the card, and a nonce.
    """
    bound = {name: getattr(card, name) for name in _BOUND_FIELDS}
    return _sha256({"type": _CONFIRMATION_TYPE, "details": dict(details), **bound})


def fingerprint_of(card: Confirmation) -> str:
    """Return a value that is equal for identical requests, which share one card. It is compared
    only within this program and need not be canonical: 1 and 1.0 are different requests.
    """
    request = (card.action, card.description, card.details, card.requester, card.session_key)
    encoded = _encode_sorted([_REQUEST_TYPE, *request, card.context])
    return "sha256:" + hashlib.sha256(encoded).hexdigest()


def digest_of_json(value: object, kind: str) -> str:
    """Return the digest of any other JSON value of the type `kind`."""
    return _sha256({"type": kind, "value": value})


def _sha256(value: Mapping[str, object]) -> str:
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()
