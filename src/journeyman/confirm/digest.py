"""What a decision is bound to: a digest over its canonical JSON (RFC 8785), and those of files."""

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

_CONFIRMATION = "journeyman.confirmation.v1"
_BOUND = ("action", "description", "requester", "session_key", "context", "nonce")
_REQUEST = "journeyman.request.v1"
"""What a digest stands for is hashed too, so that none can be taken for another sort."""

_encode_sorted = msgspec.json.Encoder(order="deterministic").encode

LARGEST_FILE = 64 * 1024 * 1024
MOST_FILES = 16


def canonical(value: object) -> bytes:
    """The one way to write a JSON value. Raises WrongInput for what JSON cannot say exactly."""
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except (ValueError, RecursionError) as error:
        is_deep = isinstance(error, RecursionError)
        raise WrongInput(
            "The parameters cannot be written as exact JSON: "
            f"{'they are nested too deeply' if is_deep else str(error)[:200]}. Whole numbers go"
            " up to 2**53 (send larger ones as text); NaN, infinities and broken characters are"
            " not taken."
        ) from error


def same_json(one: object, other: object) -> bool:
    """Whether two values are the same to a digest: 1 is 1.0, but neither is true nor "1"."""
    try:
        return canonical(one) == canonical(other)
    except WrongInput:
        return False


def digest_of(card: Confirmation | Card, details: Mapping[str, Any]) -> str:
    """The digest of a card with these details: of every byte that a person is shown, who asked,
    what the service bound to it, and a number used once.
    """
    bound = {name: getattr(card, name) for name in _BOUND}
    return _hashed({"type": _CONFIRMATION, "details": dict(details), **bound})


def fingerprint_of(card: Confirmation) -> str:
    """The same for two identical requests, which share one card. Only this program makes and
    compares it, so that it need not be canonical for others; 1 and 1.0 are two requests.
    """
    asked = (card.action, card.description, card.details, card.requester, card.session_key)
    encoded = _encode_sorted([_REQUEST, *asked, card.context])
    return "sha256:" + hashlib.sha256(encoded).hexdigest()


def digest_of_json(value: object, kind: str) -> str:
    """The digest of any other JSON value; `kind` says what it stands for."""
    return _hashed({"type": kind, "value": value})


def _hashed(value: Mapping[str, object]) -> str:
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def file_digests(
    details: Mapping[str, Any], file_params: Iterable[str], *, largest: int = LARGEST_FILE
) -> dict[str, str]:
    """The digests of the files that parameters name, by their paths. A parameter that is not there
    names none. Raises WrongInput for a path that is not a whole path to a readable file.
    """
    found: dict[str, str] = {}
    left = largest
    for name in file_params:
        value = details.get(name)
        paths = value if isinstance(value, list) else [] if value is None else [value]
        for path in paths:
            try:
                if path not in found:
                    content = _content(path, left if len(found) < MOST_FILES else 0)
                    found[path] = "sha256:" + hashlib.sha256(content).hexdigest()
                    left -= len(content)
            except (OSError, ValueError, TypeError) as error:
                raise WrongInput(
                    f"The parameter {name!r} cannot be bound to the content of {path!r}, as the "
                    f"policy asks: {error}. Give it the whole path of a file, or a list of at most "
                    f"{MOST_FILES}, of {LARGEST_FILE // 1_048_576} MB together."
                ) from error
    return found


def _content(path: object, most: int) -> bytes:
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise TypeError("that is not a whole path")
    # A pipe or a device must not make the service wait.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError("it is too large, or there are too many")
    return content
