"""A real HTTP server on 127.0.0.1 that follows a script: a model for tests, well-behaved or not.

    with ModelServer(says("Hello."), fails(500), calls(("read_file", {"path": "a"}))) as server:
        model = RemoteModel(name="m", base_url=server.base_url, api_key="")

Each chat request gets the next answer of the script; after the last one, requests are rejected with
an error that clients do not retry. An answer may also be a function of the request that returns
one. `server.requests` holds the requests received. Other paths answer with the entry in
`server.pages`, or with 404.
"""

import json
import select
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

CHAT = "/v1/chat/completions"
USAGE: dict[str, Any] = {
    "prompt_tokens": 120,
    "completion_tokens": 7,
    "total_tokens": 127,
    "prompt_tokens_details": {"cached_tokens": 100},
}
"""The token counts that the server reports, unless an answer has its own."""


class Received(Struct, frozen=True, kw_only=True):
    """A request as received; header names in lower case, `body` decoded from JSON."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any = None


class Answer(Struct, frozen=True, kw_only=True):
    """The response: the pieces of a body, sent one after the other. `is_cut` closes the connection
    in the middle of the body; `waits` sends nothing at all, not even a status, until the client
    disconnects or the server is closed; `lingers` sends the body and then waits the same way, or
    keeps sending `drip`.
    """

    status: int = 200
    headers: dict[str, str] = {}
    pieces: tuple[bytes, ...] = ()
    is_cut: bool = False
    waits: bool = False
    lingers: bool = False
    drip: bytes = b""


Made = Answer | Callable[[Received], Answer]


def says(text: str, *, usage: Mapping[str, Any] | None = USAGE, **said: Any) -> Answer:
    """A reply of plain text, streamed word by word. `said` is added to the first delta."""
    words = text.split(" ")
    pieces = [word + " " for word in words[:-1]] + words[-1:]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", **said}]
    return streamed(
        *[event(delta) for delta in deltas + [{"content": piece} for piece in pieces]],
        event({}, finish_reason="stop"),
        *counted(usage),
    )


def calls(
    *asked: tuple[str, Mapping[str, Any] | str],
    text: str = "",
    usage: Mapping[str, Any] | None = USAGE,
    ids: Sequence[str] = (),
) -> Answer:
    """A reply with tool calls: names with their arguments, which may be malformed if passed as
    text. The arguments are streamed in two halves.
    """
    events = [event({"role": "assistant", "content": text or None})]
    for index, (name, arguments) in enumerate(asked):
        whole = arguments if isinstance(arguments, str) else json.dumps(arguments)
        half = len(whole) // 2
        call_id = ids[index] if index < len(ids) else f"call_{name}_{index}"
        function = {"name": name, "arguments": whole[:half]}
        events += [
            event({"tool_calls": [{"index": index, "id": call_id, "function": function}]}),
            event({"tool_calls": [{"index": index, "function": {"arguments": whole[half:]}}]}),
        ]
    return streamed(*events, event({}, finish_reason="tool_calls"), *counted(usage))


def event(
    delta: Mapping[str, Any], *, finish_reason: str | None = None, **more: Any
) -> dict[str, Any]:
    """One event of a stream."""
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "model": "scripted", "choices": [choice], **more}


def counted(usage: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The final event of a stream with the usage; none if there is no usage."""
    return [] if usage is None else [{"model": "scripted", "choices": [], "usage": dict(usage)}]


def streamed(*events: object, done: bool = True, is_cut: bool = False, **more: Any) -> Answer:
    """A stream of these events; text is sent unchanged, anything else as JSON."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in events]
    lines += ["[DONE]"] if done else []
    return Answer(
        headers={"Content-Type": "text/event-stream"},
        pieces=tuple(f"data: {line}\n\n".encode() for line in lines),
        is_cut=is_cut,
        **more,
    )


def whole(message: Mapping[str, Any], *, finish_reason: str = "stop", **more: Any) -> Answer:
    """A reply that is not streamed."""
    choice = {"index": 0, "message": dict(message), "finish_reason": finish_reason}
    return sends({"model": "scripted", "choices": [choice], "usage": USAGE, **more})


def sends(
    body: object, *, status: int = 200, kind: str = "application/json", **headers: str
) -> Answer:
    """This exact body: text, or JSON. Underscores in header names become hyphens."""
    text = body if isinstance(body, str) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers={"Content-Type": kind, **named}, pieces=(text.encode(),))


def fails(status: int, message: str = "something is wrong", **headers: str) -> Answer:
    """An error in the format of OpenAI."""
    return sends({"error": {"message": message}}, status=status, **headers)


def waits() -> Answer:
    """No answer at all for as long as the client waits."""
    return Answer(waits=True)


class ModelServer:
    """The server. `always` is the answer after the script has ended, instead of an error."""

    def __init__(self, *script: Made, always: Made | None = None) -> None:
        self._script = list(script)
        self._always = always
        self._lock = threading.Lock()
        self.requests: list[Received] = []
        self.pages: dict[str, object] = {}
        self.hung_up = threading.Event()
        """Set when a client disconnects before its answer was complete."""
        self.closing = threading.Event()
        self._server = _Server(self)

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def chats(self) -> list[Any]:
        """The bodies of the chat requests, in order."""
        return [one.body for one in self.requests if one.path == CHAT]

    def then(self, *script: Made) -> None:
        """Add answers to the script."""
        with self._lock:
            self._script += script

    def answer(self, request: Received) -> Answer:
        """The answer to a request."""
        with self._lock:
            self.requests.append(request)
            if request.path != CHAT:
                return self._page(request.path)
            made = self._script.pop(0) if self._script else self._always
        if made is None:
            return fails(400, "the script is over")
        return made if isinstance(made, Answer) else made(request)

    def _page(self, path: str) -> Answer:
        page = self.pages.get(path)
        if page is None:
            return fails(404, f"no page {path}")
        return page if isinstance(page, Answer) else sends(page)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
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


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closing waits for answers in progress

    def __init__(self, owner: ModelServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Connection)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._reply()

    def do_POST(self) -> None:
        self._reply()

    def _reply(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        received = Received(
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=json.loads(sent) if sent else None,
        )
        answer = self.server.owner.answer(received)
        self.close_connection = True
        try:
            if answer.waits or self._send(answer):
                self._wait(answer.drip)
        except OSError:
            self.server.owner.hung_up.set()

    def _send(self, answer: Answer) -> bool:
        """Send an answer; return whether the client is kept waiting afterwards."""
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in answer.pieces:
            self._send_piece(piece)
        if not answer.is_cut and not answer.lingers:
            self.wfile.write(b"0\r\n\r\n")
        return answer.lingers

    def _send_piece(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def _wait(self, drip: bytes) -> None:
        while not self.server.owner.closing.is_set():
            if drip:
                self._send_piece(drip)
            readable, _, _ = select.select([self.connection], [], [], 0.02)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                self.server.owner.hung_up.set()
                return

    def log_message(self, *_words: object) -> None:
        """Print nothing: the requests are recorded."""
