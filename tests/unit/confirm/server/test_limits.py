"""Limits on what one client can use."""

from collections.abc import Iterator

import pytest
from tests.confirm_server import ConfirmServer, confirm_server, spoken
from tests.tables import table

from journeyman.confirm.server.daemon import MAX_HEAD_BYTES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    home = tmp_path_factory.mktemp("confirm")
    with confirm_server(home) as running:
        yield running


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
