"""Digests that bind a decision: of its canonical JSON (RFC 8785), and of files it names."""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
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

MAX_BYTES = 64 * 1024 * 1024


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


def file_digests(details: Mapping[str, Any], file_params: Iterable[str]) -> dict[str, str]:
    """Return the digests of the files that parameters name, by path. A missing parameter names
    none. Raise WrongInput for anything but the absolute path of a readable file.
    """
    digests: dict[str, str] = {}
    for name in file_params:
        value = details.get(name)
        for path in value if isinstance(value, list) else [] if value is None else [value]:
            try:
                digests[path] = _file_digest(path)
            except (OSError, ValueError, TypeError) as error:
                raise WrongInput(
                    f"The parameter {name!r} cannot be bound to the content of {path!r}, as the "
                    f"policy requires: {error}. Pass the absolute path of a file, or a list."
                ) from error
    return digests


def _file_digest(path: object) -> str:
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise TypeError("it is not an absolute path")
    # A pipe or a device must not block the service.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise ValueError(f"it is not a regular file of up to {MAX_BYTES // 1_048_576} MB")
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
