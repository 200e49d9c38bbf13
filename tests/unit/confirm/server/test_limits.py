"""Limits on what one client can use, and a full disk."""

import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.confirm_server import ConfirmServer, confirm_server, plain_client, spoken
from tests.tables import table
from tests.waiting import LONGEST_S, until

from journeyman.confirm.server.daemon import MAX_HEAD_BYTES
from journeyman.confirm.service_options import ProbeResult, probe


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


def test_health_reports_a_full_disk(tmp_path: Path) -> None:
    """Simulates a full disk with a limit on file size, below which SQLite's log still has room: on
    a full disk it overwrites what it has.
    """
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
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (250_000, unlimited[1]))
            until(lambda: not healthy(client))
            error = client.get("/health").json()["error"]
            assert error["code"] == "unavailable"
            assert error["message"]
            host, port = url.removeprefix("http://").split(":")
            assert probe(host, int(port)) == ProbeResult(answer="service", problem=error["message"])
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
            until(lambda: healthy(client))
            assert client.post("/whitelist", json={"action": "send_mail"}).status_code == 201
    finally:
        process.terminate()
        process.communicate(timeout=LONGEST_S)


def healthy(client: httpx2.Client) -> bool:
    answer = client.get("/health")
    assert answer.status_code in (200, 503), answer.text
    return answer.status_code == 200
