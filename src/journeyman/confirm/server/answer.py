"""One answer over HTTP, sent as it is: bytes that are already encoded, behind as few layers as the
protocol allows, because a thousand waiting agents are told in one moment.
"""

from typing import Any

import msgspec
from litestar import Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

JSON = b"application/json"
Header = tuple[bytes, bytes]

_encode = msgspec.json.Encoder().encode
_NO_STORE: Header = (b"cache-control", b"no-store")


class Answer(ASGIResponse):
    """A whole answer. What it says is decided when it is made; sending it decides nothing."""

    __slots__ = ("content", "sent_headers", "status")

    def __init__(
        self,
        content: bytes,
        *,
        status: int = 200,
        kind: bytes = JSON,
        headers: tuple[Header, ...] = (_NO_STORE,),
    ) -> None:
        # Without the parent's constructor: it builds what this class does not use.
        self.content = content
        self.status = status
        self.sent_headers = [
            (b"content-type", kind),
            (b"content-length", b"%d" % len(content)),
            *headers,
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await send(
            {"type": "http.response.start", "status": self.status, "headers": self.sent_headers}
        )
        await send({"type": "http.response.body", "body": self.content, "more_body": False})


def answered(value: object, *, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    """A value as JSON."""
    return Answer(_encode(value), status=status, headers=(_NO_STORE, *headers))


class Ready(Response[None]):
    """An answer in the form that Litestar wants from what explains its errors."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(None)
        self.answer = answer

    def to_asgi_response(self, *_: Any, **__: Any) -> Answer:
        """The answer as it is."""
        return self.answer
