"""The server as a process of its own: signals while agents wait, a hard end and a new beginning."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.confirm_server import bearer

PROGRAM = """
import json, sys
from functools import partial
from pathlib import Path
from journeyman.confirm import credentials
from journeyman.confirm.policy_file import read_policy
from journeyman.confirm.server.apps import Ports
from journeyman.confirm.server.serving import Serving
from journeyman.confirm.service import Service
from journeyman.store.store import Store

home, agents, page = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
store = Store(f"sqlite:///{home / 'journeyman.db'}")
made = {}
if not store.confirmations.credentials():
    with store.confirmations.writing(0.0) as ledger:
        made["token"] = credentials.add_agent(ledger, "builder", "test")[1]
        made["key"] = credentials.add_approver(ledger, "ann", "test")[1]
service = Service(store.confirmations, home, partial(read_policy, None, rate_limit=100))
serving = Serving(service, ports=Ports(agents=agents, page=page))

def told(one):
    print(json.dumps({**made, "agents": one.ports.agents, "page": one.ports.page}), flush=True)

serving.run(told)
store.close()
print("ended", flush=True)
"""


class Daemon:
    """A server in another process."""

    def __init__(self, process: subprocess.Popen[str], said: dict[str, Any]) -> None:
        self.process = process
        self.ports = (said["agents"], said["page"])
        self.secrets = {name: said[name] for name in ("token", "key") if name in said}
        self.url = f"http://127.0.0.1:{said['agents']}"

    def end(self, how: signal.Signals) -> str:
        """Send a signal; what the process said last, when it has ended by itself."""
        self.process.send_signal(how)
        said, _ = self.process.communicate(timeout=20)
        return said


@contextmanager
def daemon(home: Path, ports: tuple[int, int] = (0, 0)) -> Iterator[Daemon]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(home), *map(str, ports)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert process.stdout is not None
    with process:
        try:
            yield Daemon(process, json.loads(process.stdout.readline()))
        finally:
            process.kill()


class Waiters:
    """A long poll and a stream of one card, each in a thread."""

    def __init__(self, url: str, token: str) -> None:
        self.found: dict[str, str] = {}
        self.listening = threading.Event()
        self._url, self._headers = url, bearer(token)
        self._threads = [threading.Thread(target=work) for work in (self._poll, self._follow)]
        for one in self._threads:
            one.start()
        assert self.listening.wait(20)

    def _poll(self) -> None:
        url = f"{self._url}?wait=60"
        with suppress(httpx2.TransportError):  # it may come when the service has ended already
            answer = httpx2.get(url, headers=self._headers, timeout=30, trust_env=False)
            self.found["poll"] = answer.json()["status"]

    def _follow(self) -> None:
        url, lines = f"{self._url}/events", []
        with httpx2.stream(
            "GET", url, headers=self._headers, timeout=30, trust_env=False
        ) as answer:
            for line in answer.iter_lines():
                lines.append(line)
                self.listening.set()
        self.found["stream"] = lines[0]

    def join(self) -> None:
        for one in self._threads:
            one.join(timeout=20)
            assert not one.is_alive()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=["asked", "ctrl_c"])
def test_a_signal_ends_it_well_while_agents_wait(tmp_path: Path, how: signal.Signals) -> None:
    with daemon(tmp_path) as running:
        token = running.secrets["token"]
        asked = {"action": "send_mail", "description": "Tell Bob."}
        answer = httpx2.post(
            f"{running.url}/confirm", json=asked, headers=bearer(token), trust_env=False
        )
        waiters = Waiters(f"{running.url}/confirm/{answer.json()['id']}", token)
        assert running.end(how) == "ended\n"
        assert running.process.returncode == 0
        waiters.join()
    assert waiters.found["stream"] == "event: confirmation"
    assert waiters.found.get("poll", "pending") == "pending"


def test_story_12_a_hard_end_loses_nothing_and_waiters_attach_again(tmp_path: Path) -> None:
    asked = {"action": "send_mail", "description": "Tell Bob.", "details": {"to": "bob"}}
    with daemon(tmp_path) as first:
        token, key = first.secrets["token"], first.secrets["key"]
        card = httpx2.post(
            f"{first.url}/confirm", json=asked, headers=bearer(token), trust_env=False
        ).json()
    # The block ends with kill -9.
    with daemon(tmp_path, first.ports) as second:
        url = f"{second.url}/confirm/{card['id']}"
        assert card["urls"]["self"] == url
        waiters = Waiters(url, token)
        found = httpx2.get(url, headers=bearer(key), trust_env=False).json()
        assert (found["digest"], found["expires_at"]) == (card["digest"], card["expires_at"])
        httpx2.post(
            f"{url}/approve", json={"digest": found["digest"]}, headers=bearer(key), trust_env=False
        )
        waiters.join()
        assert waiters.found == {"poll": "approved", "stream": "event: confirmation"}
        granted = httpx2.post(
            f"{url}/redeem",
            json={"digest": found["digest"], "details": {"to": "bob"}},
            headers=bearer(token),
            trust_env=False,
        )
        assert granted.json()["details"] == {"to": "bob"}
        checked = httpx2.get(f"{second.url}/audit/verify", headers=bearer(key), trust_env=False)
        assert checked.json()["ok"]


def test_a_second_one_says_that_the_port_is_taken(tmp_path: Path) -> None:
    with daemon(tmp_path) as first:
        again = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path), *map(str, first.ports)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert again.returncode == 1
        assert f"The agents port {first.ports[0]} on 127.0.0.1 could not be opened" in again.stderr
        assert httpx2.get(f"{first.url}/health", trust_env=False).status_code == 200
