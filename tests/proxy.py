"""The proxy for tests: in this process, before servers that do exactly what a test says, and agents
that talk to models over plain HTTP.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
from msgspec import Struct

from journeyman import Journeyman
from journeyman.hosts.proxy.application import ProxyOptions
from journeyman.hosts.proxy.server import ProxyServer

KEY = "sk-live-0123456789abcdef-canary"
"""The credential that agents send; it must never be found anywhere."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "Bash",
            "description": "Run a command.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string"}},
                "required": ["command"],
            },
        },
    }
]
ANTHROPIC_TOOLS = [
    {
        "name": tool["function"]["name"],
        "description": tool["function"]["description"],
        "input_schema": tool["function"]["parameters"],
    }
    for tool in TOOLS
]
RESPONSES_TOOLS = [{"type": "function", **tool["function"]} for tool in TOOLS]


@contextmanager
def proxied(journeyman: Journeyman, upstream: str, **options: Any) -> Iterator[ProxyServer]:
    """Run a proxy on a free port for the duration of the block."""
    made = ProxyOptions(upstream=upstream, port=0, **options)
    with ProxyServer(journeyman, made).in_thread() as server:
        yield server


class ReceivedRequest(Struct, frozen=True, kw_only=True):
    """A request as the server received it, byte for byte; header names in lower case."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        return dict(self.headers)


class RawServer:
    """A server on loopback that answers with what `respond` writes."""

    def __init__(self, respond: Callable[["RawConnection"], None]) -> None:
        self.respond = respond
        self.requests: list[ReceivedRequest] = []
        self.hung_up = threading.Event()
        """Set when a client went before its answer was complete."""
        self._server = _Server(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "RawServer":
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: RawServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), RawConnection)


class RawConnection(BaseHTTPRequestHandler):
    """One connection to a RawServer."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def _answer(self) -> None:
        headers = [(name.lower(), value) for name, value in self.headers.items()]
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(iter(self._chunk, b""))
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.owner.requests.append(
            ReceivedRequest(method=self.command, target=self.path, headers=headers, body=body)
        )
        try:
            self.server.owner.respond(self)
        except OSError:
            self.close_connection = True
            self.server.owner.hung_up.set()

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = _answer  # noqa: N815

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline(), 16)
        chunk = self.rfile.read(size)
        self.rfile.readline()
        return chunk

    def head(self, status: int = 200, **headers: str) -> None:
        """Send the head of an answer; underscores in names become hyphens."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def whole(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.head(status, content_length=str(len(body)), **headers)
        self.wfile.write(body)

    def stream(self) -> None:
        """Begin a stream of events."""
        self.head(content_type="text/event-stream", transfer_encoding="chunked")

    def piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_words: object) -> None:
        """Print nothing."""


def event(**data: Any) -> bytes:
    return b"data: %s\n\n" % json.dumps(data).encode()


def chat_chunk(text: str, finish: str | None = None) -> bytes:
    """One chunk of a chat's stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return event(id="chatcmpl-1", model="m", choices=[choice])


def http_client(url: str) -> httpx2.Client:
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx2.Client(base_url=url, headers=headers, timeout=30, trust_env=False)


def chat_loop(client: httpx2.Client, task: str, *, limit: int = 10) -> list[dict[str, Any]]:
    """A plain agent on OpenAI's chat API; return its whole conversation."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": task},
    ]
    return continued_chat(client, messages, limit=limit)


def continued_chat(
    client: httpx2.Client, messages: list[dict[str, Any]], *, limit: int = 10
) -> list[dict[str, Any]]:
    """Let the agent work on until it says something without a call."""
    for _ in range(limit):
        body = {"model": "m", "messages": messages, "tools": TOOLS}
        answer = client.post("/v1/chat/completions", json=body)
        message = answer.raise_for_status().json()["choices"][0]["message"]
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            break
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": "index ok"} for call in calls
        ]
    return messages


def anthropic_loop(client: httpx2.Client, task: str, *, limit: int = 10) -> list[dict[str, Any]]:
    """A plain agent on Anthropic's API, without streams; return its whole conversation."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    for _ in range(limit):
        fields = {"model": "m", "max_tokens": 100, "system": "You are an agent."}
        body = {**fields, "messages": messages, "tools": ANTHROPIC_TOOLS}
        answer = client.post("/v1/messages?beta=true", json=body, headers=headers)
        content = answer.raise_for_status().json()["content"]
        messages.append({"role": "assistant", "content": content})
        uses = [block["id"] for block in content if block["type"] == "tool_use"]
        if not uses:
            break
        results = [{"type": "tool_result", "tool_use_id": id_, "content": "ok"} for id_ in uses]
        messages.append({"role": "user", "content": results})
    return messages
