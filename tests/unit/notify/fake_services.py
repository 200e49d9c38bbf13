"""Real HTTP servers on 127.0.0.1 that stand in for external services: one that accepts or refuses
posted JSON, and one that acts as Telegram's Bot API. Also a sample confirmation.
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
from tests.waiting import LONGEST_S

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


class BotServer(_LocalServer):
    """Acts as the Bot API: records calls, delivers button presses, and fails on request."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, Any]] = []
        self.failing: dict[str, list[tuple[int, Any]]] = {}
        self._updates: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._number = 0

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, body: Any) -> tuple[int, Any] | None:
        start, _, method = path[1:].partition("/")
        if start != f"bot{TOKEN}":
            return 404, {"ok": False, "error_code": 404}
        with self._changed:
            self._number += 1
            number = self._number
            self.calls.append((method, body))
            self._changed.notify_all()
            if failures := self.failing.get(method):
                return failures.pop(0)
            if method == "getUpdates":
                return 200, {"ok": True, "result": self._wait(body)}
        posted = {"message_id": number, "chat": {"id": body.get("chat_id")}, **body}
        return 200, {"ok": True, "result": posted if "send" in method else True}

    def _wait(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        self._updates = [
            update for update in self._updates if update["update_id"] >= request["offset"]
        ]
        self._changed.wait_for(lambda: self._updates or self.closing.is_set(), request["timeout"])
        return self._updates

    def __exit__(self, *how: Any) -> None:
        self.closing.set()
        with self._changed:
            self._changed.notify_all()
        super().__exit__(*how)

    def hand_out(self, update: dict[str, Any]) -> None:
        with self._changed:
            self._number += 1
            self._updates.append({"update_id": self._number, **update})
            self._changed.notify_all()

    def press(
        self, data: str, *, user: int, chat: int = 0, message_id: int = 7, text: str = "t"
    ) -> str:
        """Press a button, in the private chat unless it is another, and return the answer."""
        query = f"q{self._number}-{user}"
        message = {"message_id": message_id, "chat": {"id": chat or user}, "text": text}
        press = {"id": query, "from": {"id": user}, "message": message, "data": data}
        self.hand_out({"callback_query": press})
        return str(self.wait_for("answerCallbackQuery", callback_query_id=query)["text"])

    def wait_for(self, method: str, **holding: Any) -> dict[str, Any]:
        """Wait for a call of the method with these arguments and return its body."""

        def found() -> dict[str, Any] | None:
            for name, body in self.calls:
                if name == method and holding.items() <= body.items():
                    return dict(body)
            return None

        with self._changed:
            assert self._changed.wait_for(lambda: found() is not None, LONGEST_S), f"no {method}"
            made = found()
        assert made is not None
        return made

    def named(self, method: str) -> list[Any]:
        with self._changed:
            return [body for name, body in self.calls if name == method]
