"""Limits on what one client can use: large and slow headers, idle connections, open streams."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from tests.confirm_server import ConfirmServer, confirm_server, spoken
from tests.tables import table
from tests.waiting import LONGEST_S, until

from journeyman.confirm.server.daemon import MAX_HEAD_BYTES
from journeyman.confirm.server.middleware import MAX_REFUSALS_PER_MINUTE, RefusalLog
from journeyman.confirm.server.request_context import MAX_STREAMS_PER_CREDENTIAL


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    home = tmp_path_factory.mktemp("confirm")
    with confirm_server(home) as running:
        yield running


def opened(server: ConfirmServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.serving.options.port), timeout=LONGEST_S)


@table("over", [-1_000, 100_000, 1_000_000])
def test_header_size_limit(server: ConfirmServer, over: int) -> None:
    host = f"127.0.0.1:{server.serving.options.port}"
    head = f"GET /health HTTP/1.1\r\nHost: {host}\r\nX-Pad: {'x' * (MAX_HEAD_BYTES + over)}\r\n\r\n"
    try:
        answer = spoken(server.serving.options.port, head.encode())
    except ConnectionError:  # closed while it was still being sent
        assert over > 0
        return
    assert answer.status in ((200,) if over < 0 else (0, 400))


def test_endless_header_is_cut_off(server: ConfirmServer) -> None:
    answer = spoken(server.serving.options.port, b"GET / HTTP/1.1\r\n", endless=b"X: " + b"x" * 997)
    assert answer.status in (0, 400)


class Streams:
    """Opens streams simultaneously with real clients, and returns the response of each."""

    def __init__(self, server: ConfirmServer, token: str, path: str) -> None:
        host = f"127.0.0.1:{server.serving.options.port}"
        self._head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
        self._server = server

    def open(self, count: int) -> list[tuple[int, socket.socket]]:
        lines = [opened(self._server) for _ in range(count)]
        for line in lines:
            line.sendall(self._head.encode())
        return [(int(line.recv(12, socket.MSG_WAITALL)[9:]), line) for line in lines]


def test_stream_limit_per_credential_survives_vanishing_clients(
    server: ConfirmServer,
) -> None:
    card = server.submit(details={"streams": 1})
    streams = Streams(server, server.agent(), f"/confirm/{card['id']}/events")
    for _ in range(3):
        answers = streams.open(MAX_STREAMS_PER_CREDENTIAL)
        until(lambda: server.serving.streams.total() == MAX_STREAMS_PER_CREDENTIAL)
        answers += streams.open(20)
        assert [status for status, _ in answers] == [200] * 64 + [429] * 20
        other = Streams(server, server.approver(), "/inbox/events").open(1)
        assert other[0][0] == 200
        for _, line in answers + other:
            # Vanishes without closing, like a machine that is switched off.
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.close()
        until(lambda: server.serving.streams.total() == 0)


def test_audit_of_unauthenticated_requests_is_rate_limited(
    caplog: pytest.LogCaptureFixture,
) -> None:
    written: list[tuple[str, dict[str, Any], str]] = []
    time_s = 30.0

    async def write(*refusal: Any) -> None:
        written.append(refusal)

    refusals = RefusalLog(write, clock=lambda: time_s)

    async def knock(count: int) -> None:
        for number in range(count):
            await refusals.record({"number": number})

    asyncio.run(knock(MAX_REFUSALS_PER_MINUTE + 30))
    assert len(written) == MAX_REFUSALS_PER_MINUTE
    time_s = 61.0
    asyncio.run(knock(3))
    assert len(written) == MAX_REFUSALS_PER_MINUTE + 3
    assert written[-1] == ("stranger", {"number": 2}, "")
