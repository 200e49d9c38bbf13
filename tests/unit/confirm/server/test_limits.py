"""What one client may take from the others: large and slow heads, silence, and open streams."""

import asyncio
import os
import re
import resource
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from litestar.types import Scope
from tests.confirm_server import ConfirmServer, confirm_server, plain_client, spoken, until
from tests.tables import table

from journeyman.confirm.options import Probed, probe
from journeyman.confirm.server.http_protocol import HEAD_LIMIT, Timeouts
from journeyman.confirm.server.middleware import (
    MOST_IN_ALL,
    MOST_OF_ONE,
    MOST_STRANGERS_A_MINUTE,
    OpenRequests,
    RefusalLog,
)
from journeyman.confirm.server.problems import Refused

QUICK = Timeouts(head_s=0.5, idle_s=1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    home = tmp_path_factory.mktemp("confirm")
    with confirm_server(home, timeouts=QUICK) as running:
        yield running


def opened(server: ConfirmServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.serving.options.port), timeout=20)


def test_a_slow_head_is_cut_though_something_always_comes(server: ConfirmServer) -> None:
    with opened(server) as line:
        line.sendall(b"GET /health HTTP/1.1\r\n")
        began, answer = time.monotonic(), b""
        line.settimeout(0.05)
        while not answer:
            assert time.monotonic() - began < 10, "it goes on for ever"
            try:
                line.sendall(b"X-Slow: 1\r\n")
                answer = line.recv(1_000)
            except TimeoutError:
                continue
            except ConnectionError:
                break
    assert answer.startswith(b"HTTP/1.1 400") or not answer
    assert server.get("/health").status_code == 200


def test_many_that_send_their_heads_slowly_keep_nobody_out(server: ConfirmServer) -> None:
    with ExitStack() as lines:
        slow = [lines.enter_context(opened(server)) for _ in range(300)]
        for line in slow:
            line.sendall(b"POST /confirm HTTP/1.1\r\nHost: ")
        assert server.get("/health").status_code == 200
        for line in slow:
            with suppress(ConnectionResetError):
                while line.recv(4_096):
                    pass  # what it was told; then the connection ends


def test_a_connection_on_which_nothing_is_said_ends(server: ConfirmServer) -> None:
    with opened(server) as line:
        assert line.recv(1_000) == b""
    with opened(server) as line:
        host = f"127.0.0.1:{server.serving.options.port}"
        line.sendall(f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert b'"status":"ok"' in line.recv(10_000)
        assert line.recv(1_000) == b""


def test_a_second_head_on_a_connection_is_limited_too(server: ConfirmServer) -> None:
    host = f"127.0.0.1:{server.serving.options.port}"
    with opened(server) as line:
        line.sendall(f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\nGET /hea".encode())
        said = b""
        while piece := line.recv(10_000):
            said += piece
    assert said.endswith(b"}") or b"HTTP/1.1 400" in said


@table("over", [-200, 0, 100_000, 1_000_000])
def test_heads_up_to_a_size_are_taken(server: ConfirmServer, over: int) -> None:
    host = f"127.0.0.1:{server.serving.options.port}"
    head = f"GET /health HTTP/1.1\r\nHost: {host}\r\nX-Pad: {'x' * (HEAD_LIMIT + over)}\r\n\r\n"
    try:
        answer = spoken(server.serving.options.port, head.encode())
    except ConnectionError:  # closed while it was still being sent
        assert over > 0
        return
    assert answer.status in ((200,) if over < 0 else (0, 400))


def test_a_head_without_end_is_cut(server: ConfirmServer) -> None:
    answer = spoken(server.serving.options.port, b"GET / HTTP/1.1\r\n", endless=b"X: " + b"x" * 997)
    assert answer.status in (0, 400)


class Streams:
    """Streams that are opened all at once, by real clients, and how each was answered."""

    def __init__(self, server: ConfirmServer, token: str, path: str) -> None:
        host = f"127.0.0.1:{server.serving.options.port}"
        self._head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
        self._server = server

    def open(self, count: int) -> list[tuple[int, socket.socket]]:
        lines = [opened(self._server) for _ in range(count)]
        for line in lines:
            line.sendall(self._head.encode())
        return [(int(line.recv(12, socket.MSG_WAITALL)[9:]), line) for line in lines]


def test_no_credential_has_more_streams_than_its_share_also_when_clients_vanish(
    server: ConfirmServer,
) -> None:
    card = server.submit(details={"streams": 1})
    streams = Streams(server, server.agent(), f"/confirm/{card['id']}/events")
    for _ in range(3):
        answers = streams.open(MOST_OF_ONE + 20)
        assert sorted(status for status, _ in answers) == [200] * MOST_OF_ONE + [429] * 20
        other = Streams(server, server.approver(), "/inbox/events").open(1)
        assert other[0][0] == 200
        for _, line in answers + other:
            # Gone without a word, as when a machine is switched off.
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.close()
        until(lambda: len(server.serving.open_requests) == 0)


def test_clients_that_leave_before_they_are_answered_leave_no_place_taken(
    server: ConfirmServer,
) -> None:
    card = server.submit(details={"streams": 2})
    head = (
        f"GET /confirm/{card['id']}/events HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{server.serving.options.port}\r\n"
        f"Authorization: Bearer {server.approver()}\r\n\r\n"
    )
    for _ in range(2 * MOST_OF_ONE):
        with opened(server) as line:
            line.sendall(head.encode())
    with plain_client(base_url=server.url) as client:
        headers = {"Authorization": f"Bearer {server.approver()}"}

        def opens() -> bool:
            with client.stream("GET", f"/confirm/{card['id']}/events", headers=headers) as answer:
                return answer.status_code == 200

        # Some of them may only now be taken up, so the first attempts may be refused.
        until(opens)
    until(lambda: len(server.serving.open_requests) == 0)


def test_all_credentials_together_have_a_limit_too() -> None:
    requests, places = OpenRequests(), ExitStack()
    scope: Any = {"state": {"stream_places": places}}

    def take(number: int, scope: Scope = scope) -> None:
        requests.take_place(scope, f"agent{number // 8}")

    for number in range(MOST_IN_ALL):
        take(number)
    with pytest.raises(Refused, match=str(MOST_IN_ALL)):
        take(0)
    places.close()
    assert len(requests) == 0
    take(0)


def test_health_says_that_nothing_can_be_written(tmp_path: Path) -> None:
    """A disk that is full, as the system tells a program that may write no further."""
    arguments = ("--home", str(tmp_path), "confirm", "serve", "--port", "0", "--page-port", "0")
    process = subprocess.Popen(
        [sys.executable, "-m", "journeyman", *arguments],
        env={**os.environ, "HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = iter(process.stdout)
        url = next(line for line in said if "agents" in line).split()[-1]
        key = next(re.findall(r"jmk_\S+", line)[0] for line in said if "jmk_" in line)
        with plain_client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as client:
            assert healthy(client)
            unlimited = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4_096, unlimited[1]))
            added = {"action": "send_mail"}
            until(lambda: not healthy(client))
            assert client.post("/whitelist", json=added).status_code == 503
            error = client.get("/health").json()["error"]
            assert error["code"] == "unavailable"
            assert error["message"]
            host, port = url.removeprefix("http://").split(":")
            assert probe(host, int(port)) == Probed(answer="service", problem=error["message"])
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
            until(lambda: healthy(client))
            assert client.post("/whitelist", json=added).status_code == 201
    finally:
        process.terminate()
        process.communicate(timeout=30)


def healthy(client: httpx2.Client) -> bool:
    answer = client.get("/health")
    assert answer.status_code in (200, 503), answer.text
    return answer.status_code == 200


def test_strangers_are_written_down_up_to_a_limit_by_the_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    written: list[tuple[str, dict[str, Any], str]] = []
    time_s = 30.0

    async def write(*refusal: Any) -> None:
        written.append(refusal)

    refusals = RefusalLog(write, now=lambda: time_s)

    async def knock(count: int) -> None:
        for number in range(count):
            await refusals.stranger({"number": number})

    asyncio.run(knock(MOST_STRANGERS_A_MINUTE + 30))
    assert len(written) == MOST_STRANGERS_A_MINUTE
    time_s = 61.0
    asyncio.run(knock(3))
    assert len(written) == MOST_STRANGERS_A_MINUTE + 3
    assert written[-1] == ("stranger", {"number": 2}, "")
    assert "30 refusals of strangers were not written" in caplog.text
