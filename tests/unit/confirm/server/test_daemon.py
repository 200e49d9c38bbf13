"""Starting and stopping: both ports or none, and a stop within seconds while clients wait."""

import socket
import threading
from pathlib import Path

import httpx2
import pytest
from tests.confirm_server import bearer, confirm_server
from tests.tables import table
from tests.waiting import LONGEST_S, until

from journeyman.records.errors import BadSetting, ServiceUnavailable


@table("name", ["agents", "page"])
def test_occupied_port_is_reported_with_advice(tmp_path: Path, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = {"page_port" if name == "page" else "port": port}
        with pytest.raises(ServiceUnavailable) as refused, confirm_server(tmp_path, **ports):
            pass
    assert f"The {name} port {port} on 127.0.0.1" in str(refused.value)
    assert "another program uses it" in str(refused.value)
    assert ("CONFIRMATION_PORT" if name == "agents" else "page_port") in str(refused.value)


def test_unavailable_host_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(ServiceUnavailable, match=r"192\.0\.2\.1"),
        confirm_server(tmp_path, host="192.0.2.1"),
    ):
        pass


def test_public_host_logs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with confirm_server(tmp_path, host="0.0.0.0") as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert server.get("/health").status_code == 200
    assert "other machines can reach the confirmations" in caplog.text


def test_waiting_clients_are_answered_when_the_server_stops(tmp_path: Path) -> None:
    found: list[str] = []
    heard: list[str] = []
    with confirm_server(tmp_path) as server:
        server.submit()
        key = bearer(server.approver())

        def follow() -> None:
            with httpx2.stream(
                "GET",
                f"{server.url}/inbox/events",
                headers=key,
                timeout=LONGEST_S,
                trust_env=False,
            ) as answer:
                for line in answer.iter_lines():
                    heard.append(line)  # noqa: PERF402  # read while it grows
            found.append("ended")

        waiters = [threading.Thread(target=work) for work in (follow, follow)]
        for one in waiters:
            one.start()
        until(lambda: heard.count("event: confirmation") == 2)
    for one in waiters:
        one.join(timeout=LONGEST_S)
    assert sorted(found) == ["ended", "ended"]


def test_anonymous_agents_are_accepted_only_if_enabled(tmp_path: Path) -> None:
    asked = {"action": "send_mail", "description": "Tell Bob."}
    with confirm_server(tmp_path, anonymous=True) as server:
        taken = server.post("/confirm", body=asked)
        assert (taken.status_code, taken.json()["requester"]) == (202, "anonymous")
        path = f"/confirm/{taken.json()['id']}"
        assert server.get(path).json()["status"] == "pending"
        for way in ("approve", "deny"):
            body = {"digest": taken.json()["digest"]}
            assert server.post(f"{path}/{way}", body=body).status_code == 403
        assert server.get(path, "jma_wrong").status_code == 401
        assert server.post("/confirm", body=asked, page=True).status_code == 403
        assert server.get("/confirmations", page=True).status_code == 401
        assert server.post(f"{path}/cancel").json()["status"] == "cancelled"


def test_anonymous_agents_need_a_loopback_host(tmp_path: Path) -> None:
    with (
        pytest.raises(BadSetting, match="create tokens"),
        confirm_server(tmp_path, host="0.0.0.0", anonymous=True),
    ):
        pass


def test_page_behind_a_reverse_proxy(tmp_path: Path) -> None:
    with confirm_server(
        tmp_path, page_hosts=("confirm.example",), page_url="https://confirm.example/"
    ) as server:
        at = f"http://127.0.0.1:{server.serving.options.page_port}"
        headers = {"Host": "confirm.example", "Origin": "https://confirm.example"}
        body = {"name": "ann", "key": server.approver()}
        opened = httpx2.post(f"{at}/login", json=body, headers=headers, trust_env=False)
        assert opened.status_code == 200
        assert "Secure" in opened.headers["set-cookie"]
        assert server.submit()["page_url"].startswith("https://confirm.example/#/card/")
        headers["Origin"] = "https://evil.example"
        assert httpx2.post(f"{at}/login", json=body, headers=headers).status_code == 403
