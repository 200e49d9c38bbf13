"""The audit log as a file: read in a thread some entries at a time and sent as it is read, so that
a long log needs no memory and holds nobody up.
"""

import asyncio
from collections.abc import Iterator
from itertools import islice

from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from journeyman.confirm.exporting import Format, exported
from journeyman.confirm.service import Service

_PART = 500
_KINDS: dict[Format, bytes] = {"jsonl": b"application/jsonl", "csv": b"text/csv; charset=utf-8"}


class Export(ASGIResponse):
    """The answer that carries the log."""

    __slots__ = ("_format", "_service")

    def __init__(self, service: Service, format_: Format) -> None:
        # Without the parent's constructor: it builds what this class does not use.
        self._service = service
        self._format = format_

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        name = f'attachment; filename="journeyman-audit.{self._format}"'
        headers = [
            (b"content-type", _KINDS[self._format]),
            (b"content-disposition", name.encode()),
            (b"cache-control", b"no-store"),
        ]
        written = exported(self._service.export_audit(), self._format)
        part = await asyncio.to_thread(_part, written)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while part:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            part = await asyncio.to_thread(_part, written)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _part(lines: Iterator[str]) -> bytes:
    return "".join(islice(lines, _PART)).encode()
