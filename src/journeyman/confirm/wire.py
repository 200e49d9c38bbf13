"""How the confirmation service is spoken to: what a request is, and how an answer is read. Pure
functions that `client` and `async_client` share; which requests there are is in `calls`, and
nothing here opens a connection.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct

from journeyman.confirm.digest import canonical
from journeyman.confirm.shown_text import visible
from journeyman.records.errors import (
    BadSetting,
    ConfirmationChanged,
    ConfirmationRefused,
    ServiceUnavailable,
    WrongInput,
)

Result = TypeVar("Result")

_SERVE = "Start it with `journeyman confirm serve`, or set confirm.url to where it is."
_LARGEST = 64 * 1024 * 1024
_NO_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)


class Call(Struct, Generic[Result], frozen=True, kw_only=True):
    """One request: what it is for, in words, and how its answer is read."""

    doing: str
    method: Literal["GET", "POST", "DELETE"]
    path: str
    read: Callable[[bytes], Result]
    query: dict[str, str] = {}
    body: dict[str, Any] | None = None
    wait_s: float = 0.0
    """How long the service may take before it answers."""

    @property
    def content(self) -> bytes | None:
        return None if self.body is None else msgspec.json.encode(self.body)


class _Error(Struct):
    code: str
    message: str


class _Refused(Struct):
    error: _Error


class _About(Struct):
    error: dict[str, Any]


def plain(details: Mapping[str, Any]) -> dict[str, Any]:
    """The details as JSON has them. Raises WrongInput for what has no exact JSON."""
    if not isinstance(details, Mapping):
        raise WrongInput("The details of a confirmation must be an object with names and values.")
    canonical(details)
    read: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(details), type=dict[str, Any])
    return read


def opened_with(url: str, token: str, patience_s: float) -> dict[str, Any]:
    """What either sort of connection is opened with. Raises BadSetting."""
    if not url.startswith(("http://", "https://")):
        raise BadSetting(
            f"The address of the confirmation service is {visible(url)!r}. Set confirm.url to one "
            "that begins with http:// or https://."
        )
    if not (token.isascii() and token.isprintable()):
        raise BadSetting(
            "The token for the confirmation service has characters in it that no token has. Make "
            "one with `journeyman confirm token add NAME`."
        )
    is_encrypted = url.startswith("https://")
    return {
        "base_url": url,
        "headers": {"Authorization": f"Bearer {token}"} if token else {},
        "timeout": patience_s,
        # A proxy would read the token, except inside TLS.
        "trust_env": is_encrypted,
        # To read the machine's certificates takes longer than a request without TLS.
        "verify": is_encrypted,
    }


def sent_with(call: Call[Any], patience_s: float) -> dict[str, Any]:
    """What either sort of connection sends for a request."""
    return {
        "method": call.method,
        "url": call.path,
        "params": call.query,
        "content": call.content,
        "headers": {} if call.body is None else {"Content-Type": "application/json"},
        "timeout": patience_s + call.wait_s,
    }


class Body:
    """The body of an answer as it arrives: up to a size and a time, so that a service that never
    ends holds nobody up for ever.
    """

    def __init__(self, call: Call[Any], url: str, patience_s: float) -> None:
        self._call = call
        self._url = url
        self._ends = time.monotonic() + call.wait_s + patience_s
        self._content = bytearray()

    def add(self, piece: bytes) -> None:
        """Take a piece. Raises ServiceUnavailable."""
        self._content += piece
        if len(self._content) > _LARGEST or time.monotonic() > self._ends:
            raise _stranger(self._call, self._url, "an answer without an end")

    def __bytes__(self) -> bytes:
        return bytes(self._content)


def read_answer(call: Call[Result], url: str, status: int, content: bytes) -> Result:
    """What the service said. Raises ConfirmationRefused when it said no, and ServiceUnavailable
    when this is not the service's way to speak.
    """
    if 200 <= status < 300:
        try:
            return call.read(content)
        except _NO_JSON as error:
            raise _stranger(call, url, f"an answer that cannot be read: {error}") from error
    try:
        said = msgspec.json.decode(content, type=_Refused).error
        about = msgspec.json.decode(content, type=_About).error
    except _NO_JSON as error:
        raise _stranger(call, url, f"HTTP {status} without a reason") from error
    if status >= 500 or status < 400:
        raise _stranger(call, url, f"HTTP {status}: {visible(said.message)}")
    kind = ConfirmationChanged if said.code in _CHANGED else ConfirmationRefused
    raise kind(_explained(said, about), code=said.code, about=about)


_CHANGED = ("changed", "digest_differs")


def _explained(said: _Error, about: Mapping[str, Any]) -> str:
    """The service's message, with what it cannot know of who asks."""
    if said.code == "unauthenticated":
        return (
            "The confirmation service does not know this token or key, or none was given. An agent "
            "needs one from `journeyman confirm token add NAME` as confirm.token, a person one "
            "from `journeyman confirm approver add NAME`."
        )
    if said.code == "over_limit" and "reset_at" in about:
        return visible(f"{said.message} From {about['reset_at']} on there is room.")
    return visible(said.message)


def unreachable(call: Call[Any], url: str, problem: Exception) -> ServiceUnavailable:
    """The error for a connection that did not come about or broke."""
    found = str(problem) or type(problem).__name__
    return ServiceUnavailable(
        f"While {call.doing}, the confirmation service at {visible(url)} did not answer: "
        f"{visible(found)}. {_SERVE}"
    )


def _stranger(call: Call[Any], url: str, found: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"While {call.doing}, what answers at {visible(url)} did not speak like the confirmation "
        f"service: {found}. Look whether it is the service. {_SERVE}"
    )
