"""A model server on loopback that follows a script, for tests of real agents: it speaks Anthropic's
Messages and OpenAI's Chat Completions and Responses, streamed or whole.

    script = {"count the files": [calls(("Bash", {"command": "ls | wc -l"})), says("Three.")]}
    with ScriptedServer(script) as server:
        subprocess.run(["claude", "-p", "count the files"], env={"ANTHROPIC_BASE_URL": server.url})
"""

import gzip
import json
import re
import threading
import uuid
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from journeyman.models.model import Reply
from journeyman.testing.scripted_model import says
from journeyman.testing.wire_formats import ENDPOINTS, Endpoint, Exchange, WireFormat

_DONE = says("Done.")


class ServedRequest(Struct, frozen=True, kw_only=True):
    """A request for an answer, as the server received it, and the reply that it got."""

    path: str
    headers: dict[str, str]
    body: Any
    reply: Reply


class ScriptedServer:
    """Answers each request by the script: a list of replies for each regular expression on a user's
    text. The last user's text that one matches selects the list, and the number of answers after it
    the reply, so that a resumed, retried or shortened conversation goes on where it was. When the
    list ends, or nothing matches, the reply is "Done.". `requests` lists the requests for answers.
    """

    def __init__(self, script: Mapping[str, Sequence[Reply]]) -> None:
        self.script = dict(script)
        self.requests: list[ServedRequest] = []
        self._lock = threading.Lock()
        # Unique among servers, because a resumed conversation may meet several.
        self._run = uuid.uuid4().hex[:8]
        self._server = _Server(self)

    @property
    def url(self) -> str:
        """The address without the version, as Anthropic's clients want it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def base_url(self) -> str:
        """The address with the version, as OpenAI's clients want it."""
        return f"{self.url}/v1"

    def find_endpoint(self, path: str) -> Endpoint | None:
        """Return the endpoint at a path; another server may have more."""
        return ENDPOINTS.get(path)

    def answer(
        self, target: Endpoint, path: str, headers: dict[str, str], body: Mapping[str, Any]
    ) -> tuple[Reply, Exchange]:
        """Return the reply to a request, and record both."""
        reply = self._reply(target.wire_format, body)
        with self._lock:
            number = len(self.requests)
            self.requests.append(ServedRequest(path=path, headers=headers, body=body, reply=reply))
        model = str(target.model or body.get("model") or "scripted")
        return reply, Exchange(id=f"{self._run}{number:04}", model=model)

    def _reply(self, wire_format: WireFormat, body: Mapping[str, Any]) -> Reply:
        answers = 0
        for role, text in reversed([*wire_format.turns(body)]):
            if role == "assistant":
                answers += 1
            elif role == "user":
                for pattern, replies in self.script.items():
                    if re.search(pattern, text):
                        return replies[answers] if answers < len(replies) else _DONE
        return _DONE

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closing waits for answers in progress

    def __init__(self, owner: ScriptedServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Connection)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5  # some clients connect ahead and never send a request
    server: _Server

    def do_HEAD(self) -> None:
        self._send(200, b"")

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/v1/models":
            self._send_json(404, {"error": {"message": f"There is no {self.path}."}})
            return
        model = {"id": "scripted", "object": "model", "context_length": 131_072}
        self._send_json(200, {"object": "list", "data": [model], "models": []})

    def do_POST(self) -> None:
        received = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            received = gzip.decompress(received)
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._send_json(200, {"input_tokens": len(received) // 4})
            return
        target = self.server.owner.find_endpoint(path)
        if target is None:
            self._send_json(404, {"error": {"message": f"There is no {self.path}."}})
            return
        body = json.loads(received)
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply, exchange = self.server.owner.answer(target, path, headers, body)
        streams = body.get("stream") if target.streams is None else target.streams
        if streams:
            events = [event.encoded() for event in target.wire_format.events(reply, exchange)]
            self._send(200, b"".join(events), "text/event-stream")
        else:
            self._send_json(200, target.wire_format.whole(reply, exchange))

    def _send_json(self, status: int, body: Any) -> None:
        self._send(status, json.dumps(body).encode())

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Print nothing: the requests are recorded."""
