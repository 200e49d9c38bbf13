"""The time to the first token through the proxy, against the same requests sent directly.

    python benchmarks/proxy_latency.py [--sessions 20] [--wait-ms 300]

A stand-in server streams tokens: the first one at once, and in a second run after a time that is
realistic for a model. An agent with a long prompt works in sessions of three requests, each sent to
the server directly and through `journeyman proxy`, which adds openings and records the sessions.
All three run in processes of their own, and keep their connections. Medians are printed; the ratio
of the proxy to the direct way, with the realistic time, is printed last.
"""

import argparse
import asyncio
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from journeyman import Journeyman

_TOKENS = 20
_TURNS = 3
_PROMPT = "You are a careful agent. " * 1_500
_PAUSE_S = 0.1
"""Between two requests of an agent; it runs its tools then, and the proxy records."""

_REQUESTS = (
    "Look whether the index of the notes is up to date",
    "Is the notes index stale again? Repair it",
    "Rebuild the index of the notes, please",
    "How many notes are in the index now?",
)
_TASK = "Check whether the index of the notes is complete"
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "Bash",
            "description": f"Run a command. {'More about it. ' * 100}",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }
]


async def _serve(wait_s: float) -> None:
    """Stream tokens to everyone who asks; print the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = head.lower().split(b"\r\ncontent-length:")
                await reader.readexactly(int(fields[1].split(b"\r\n")[0]))
                await asyncio.sleep(wait_s)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                    b"transfer-encoding: chunked\r\n\r\n"
                )
                for number in range(_TOKENS):
                    finish = None if number < _TOKENS - 1 else "stop"
                    choice = {"delta": {"content": "word "}, "finish_reason": finish}
                    event = json.dumps({"id": "c", "model": "m", "choices": [choice]})
                    data = f"data: {event}\n\n".encode()
                    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                    await writer.drain()
                    await asyncio.sleep(0.002)
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _write_experience(home: Path, project: Path) -> None:
    """Record and learn a few sessions, so that there are openings."""
    commands = ["./build-index notes.txt", "./check-index notes.txt", "make count"]
    with Journeyman(home=home) as journeyman:
        for request in _REQUESTS:
            messages: list[dict[str, Any]] = [{"role": "user", "content": request}]
            for number, line in enumerate(commands):
                function = {"name": "Bash", "arguments": json.dumps({"command": line})}
                call = {"id": f"c{number}", "type": "function", "function": function}
                messages += [
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": f"c{number}", "content": "2 entries"},
                ]
            messages.append({"role": "assistant", "content": "The index is complete."})
            journeyman.record(messages, source="bench", cwd=project)
        journeyman.learn()


def _first_token_ms(connection: http.client.HTTPConnection, messages: Any) -> float:
    body = json.dumps({"model": "m", "messages": messages, "tools": _TOOLS, "stream": True})
    began = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    response = connection.getresponse()
    response.read1(64)
    first = time.perf_counter() - began
    response.read()
    return first * 1_000


def _measure(addresses: dict[str, str], sessions: int) -> dict[tuple[str, str], list[float]]:
    """Return the times by way and by place in the session."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    ways = {
        name: http.client.HTTPConnection(urlsplit(url).netloc) for name, url in addresses.items()
    }
    for session in range(sessions + 1):
        messages: list[dict[str, str]] = [
            {"role": "system", "content": _PROMPT},
            {"role": "user", "content": f"{_TASK}, number {session}"},
        ]
        for turn in range(_TURNS):
            # Each way is first as often as the other.
            for name in sorted(ways, reverse=bool((session + turn) % 2)):
                took_ms = _first_token_ms(ways[name], messages)
                if session:  # everything is loaded once
                    times[name, "later" if turn else "first"].append(took_ms)
                time.sleep(_PAUSE_S)
            messages += [
                {"role": "assistant", "content": "word " * _TOKENS},
                {"role": "user", "content": f"go on {turn}"},
            ]
    for connection in ways.values():
        connection.close()
    return times


def _run(wait_ms: float, sessions: int, home: Path, project: Path) -> float:
    """Measure with one time of the server, print the medians, and return the ratio."""
    program = [sys.executable, __file__, "--serve", str(wait_ms)]
    server = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    upstream = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    command = [sys.executable, "-m", "journeyman", "--home", str(home), "proxy", "--json"]
    options = ["--upstream", upstream, "--port", "0", "--project", str(project)]
    proxy = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert proxy.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1].strip() != "}":
        lines.append(proxy.stdout.readline())
    time.sleep(3)  # it loads what openings need
    try:
        url = json.loads("".join(lines))["url"]
        times = _measure({"direct": upstream, "proxy": url}, sessions)
    finally:
        for process in (proxy, server):
            process.send_signal(signal.SIGINT)
        _, log = proxy.communicate()
        server.communicate()
    warm = log.count("is warm")
    print(f"\nfirst token of the server after {wait_ms:g} ms; {sessions} sessions, {warm - 1} warm")
    ratio = 0.0
    for place in ("first", "later"):
        direct, proxied = (statistics.median(times[way, place]) for way in ("direct", "proxy"))
        ratio = proxied / direct
        print(
            f"  {place:5} requests   direct {direct:7.2f} ms   proxy {proxied:7.2f} ms"
            f"   added {proxied - direct:6.2f} ms   ratio {ratio:.3f}"
        )
    every = [times[way, "first"] + times[way, "later"] for way in ("direct", "proxy")]
    return statistics.median(every[1]) / statistics.median(every[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--wait-ms", type=float, default=300.0)
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        signal.signal(signal.SIGINT, lambda *_: os._exit(0))
        asyncio.run(_serve(arguments.serve / 1_000))
        return
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder) / "home", Path(folder) / "work"
        project.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        _write_experience(home, project)
        at_once = _run(0.0, arguments.sessions, home, project)
        realistic = _run(arguments.wait_ms, arguments.sessions, home, project)
    print(f"\nat once: {at_once:.2f} times direct; the added time above is what counts there")
    print(f"proxy to direct, first token after {arguments.wait_ms:g} ms: {realistic:.3f}")


if __name__ == "__main__":
    main()
