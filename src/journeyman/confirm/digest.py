"""What a decision is bound to: one digest over everything that was asked for, over its canonical
JSON (RFC 8785), and the digests of the files that it names. When they are taken and compared is
for the operations.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import rfc8785

from journeyman.records.errors import WrongInput

_CONFIRMATION = "journeyman.confirmation.v1"
_REQUEST = "journeyman.request.v1"
"""What a digest stands for is hashed too, so that none can be taken for another sort."""

_LARGEST = 2**53 - 1
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode

LARGEST_FILE = 64 * 1024 * 1024
MOST_FILES = 16
_PIECE = 1024 * 1024


def canonical(value: object) -> bytes:
    """The one way to write a JSON value. Raises WrongInput for what JSON cannot say exactly: NaN,
    whole numbers beyond 2**53, halves of characters, too deep nesting.
    """
    try:
        if _is_plain(value):
            return _encode_sorted(value)
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except (ValueError, RecursionError) as error:
        raise WrongInput(
            f"The parameters cannot be written as exact JSON: {_problem(error)}. Whole numbers go"
            " up to 2**53 (send larger ones as text); NaN, infinities and broken characters are"
            " not taken."
        ) from error


def _is_plain(value: object) -> bool:
    """Whether sorting the names and leaving out spaces is all there is to it. Numbers with a point,
    and names that UTF-16 sorts in another way, are left to the library for the standard, which
    takes seven times as long.
    """
    if isinstance(value, str | bool) or value is None:
        return True
    if isinstance(value, int):
        return -_LARGEST <= value <= _LARGEST
    if isinstance(value, dict):
        return all(
            isinstance(name, str) and name.isascii() and _is_plain(part)
            for name, part in value.items()
        )
    return isinstance(value, list) and all(map(_is_plain, value))


def _problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "they are nested too deeply"
    if isinstance(error, UnicodeEncodeError):
        return "a name has half a character in it"
    return str(error)[:200]


def same_json(one: object, other: object) -> bool:
    """Whether two values are the same to a digest: 1 is 1.0, but neither is true nor "1". What
    has no digest is the same as nothing.
    """
    try:
        return canonical(one) == canonical(other)
    except WrongInput:
        return False


def digest_of(
    *,
    action: str,
    description: str,
    details: Mapping[str, Any],
    requester: str,
    session_key: str,
    context: Mapping[str, Any],
    nonce: str,
) -> str:
    """The digest of one confirmation: of every byte that a person is shown, who asked, what the
    service bound to it, and a number used once.
    """
    return _hashed(
        {
            "type": _CONFIRMATION,
            "action": action,
            "description": description,
            "details": dict(details),
            "requester": requester,
            "session_key": session_key,
            "context": dict(context),
            "nonce": nonce,
        }
    )


def fingerprint_of(
    *,
    action: str,
    description: str,
    details: Mapping[str, Any],
    requester: str,
    session_key: str,
    context: Mapping[str, Any],
) -> str:
    """The same for two identical requests, which share one card. Only this program makes and
    compares it, so that it need not be canonical for others; 1 and 1.0 are two requests.
    """
    bound = [_REQUEST, action, description, details, requester, session_key, context]
    return "sha256:" + hashlib.sha256(_encode_sorted(bound)).hexdigest()


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
        if value is None:
            continue
        paths = value if isinstance(value, list) else [value]
        for path in paths:
            if not isinstance(path, str) or not path:
                raise WrongInput(
                    f"The parameter {name!r} must be the path of a file or a list of paths, because"
                    " the policy binds the approval to the file's content."
                )
            if path in found:
                continue
            if len(found) == MOST_FILES:
                raise WrongInput(
                    f"More than {MOST_FILES} files are to be bound to one approval. Ask for less "
                    "at once, or for an archive of them."
                )
            found[path], size = _file_digest(name, path, left, largest)
            left -= size
    return found


def _file_digest(name: str, path: str, left: int, largest: int) -> tuple[str, int]:
    if not Path(path).is_absolute():
        raise _unusable(name, path, "it is not a whole path; write it from the root on")
    try:
        # A pipe or a device must not make the service wait.
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no path"
        raise _unusable(name, path, f"it cannot be read ({reason})") from error
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise _unusable(name, path, "it is not a regular file")
        return _content_digest(name, path, opened, left, largest)
    except OSError as error:
        raise _unusable(name, path, f"it cannot be read ({error.strerror})") from error
    finally:
        os.close(opened)


def _content_digest(name: str, path: str, opened: int, left: int, largest: int) -> tuple[str, int]:
    seen, hashed = 0, hashlib.sha256()
    while piece := os.read(opened, _PIECE):
        seen += len(piece)
        if seen > left:
            most = f"{largest // (1024 * 1024)} MB"
            raise _unusable(name, path, f"it is larger than {most}, or all of them together are")
        hashed.update(piece)
    return "sha256:" + hashed.hexdigest(), seen


def _unusable(name: str, path: str, reason: str) -> WrongInput:
    return WrongInput(f"The file {path!r} of the parameter {name!r} cannot be bound: {reason}.")
