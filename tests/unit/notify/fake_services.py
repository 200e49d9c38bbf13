"""Real HTTP servers on 127.0.0.1 that stand in for external services: one that accepts or refuses
posted JSON. Also a sample confirmation.
"""

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from msgspec import structs

from journeyman.records.confirmation import Confirmation, ConfirmationId

TOKEN = "123456:AAbot-token_canary"
CARD = Confirmation(
    id=ConfirmationId("0123456789abcdef0123456789abcdef"),
    short_id="01234567",
    action="deploy_production",
    tier="ask",
    rule="every other action",
    description="Roll out the new version.",
    details={"version": "1.2.3"},
    requester="ci",
    nonce="n",
    submitted_digest="sha256:aa",
    digest="sha256:aa",
    created_at=1_800_000_000.0,
    expires_at=1_800_000_300.0,
)


def card(**changes: Any) -> Confirmation:
    """Return a pending confirmation with these fields changed."""
    return structs.replace(CARD, **changes)


@contextmanager
def root_log() -> Iterator[list[str]]:
    """Collect what reaches the root logger, at any level."""
    lines: list[str] = []
    handler = logging.Handler(logging.NOTSET)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    try:
        yield lines
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


class _LocalServer:
    """An HTTP server that runs inside a `with` block."""

    def __init__(self) -> None:
        owner = self

        class Connection(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)))
                answer = owner.answer(self.path, body)
                if answer is None:
                    owner.closing.wait()
                    return
                status, sent = answer
                content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Connection)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def answer(self, path: str, body: Any) -> tuple[int, Any] | None:
        """Return the status and JSON to answer with; None means no answer."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class PostBox(_LocalServer):
    """Accepts posted JSON. The first path segment is the behaviour: `/ok`, a status or `/hangs`."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[tuple[str, Any]] = []

    def url(self, path: str, scheme: str = "json") -> str:
        return f"{scheme}://127.0.0.1:{self.port}/{path}"

    def answer(self, path: str, body: Any) -> tuple[int, Any] | None:
        self.received.append((path, body))
        how = path.strip("/").split("/")[0]
        if how == "hangs":
            return None
        # Slack's webhooks answer exactly this.
        return (int(how) if how.isdigit() else 200), b"ok"

    def bodies(self, path: str) -> list[Any]:
        return [body for where, body in self.received if where.startswith(f"/{path}")]
