"""A real confirmation service with two approvers and an agent, for tests of its page in a browser.
Requests are submitted as an agent submits them: over HTTP, with a token.
"""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from journeyman.confirm import credentials
from journeyman.confirm.policy import Policy, Rule
from journeyman.confirm.server.daemon import ConfirmationServer
from journeyman.confirm.service import Service
from journeyman.confirm.service_options import ServiceOptions
from journeyman.store.store import Store

POLICY = Policy(
    rules=(
        Rule(action="both_*", tier="ask", quorum=2, edits=("amount",)),
        Rule(action="edit_*", tier="ask", edits=("amount", "note", "where")),
        Rule(action="coded_*", tier="critical"),
        Rule(action="routine_*", tier="routine", reason="Nothing is lost by it."),
    ),
    rate_limit=100_000,
    requester_limit=100_000,
)


class ConfirmationPage:
    """The running service, with the secrets of its approvers and its agent."""

    def __init__(self, serving: ConfirmationServer, service: Service, keys: dict[str, str]) -> None:
        self.serving = serving
        self.service = service
        self.keys = keys
        self.ahead_s = 0.0
        self._numbers = itertools.count(1)
        self._clients = {name: self._client(name) for name in keys if "'" not in name}

    @property
    def url(self) -> str:
        return self.serving.options.shown_page_url

    def clock(self) -> float:
        """Return the service's time, which a test may move forward."""
        return time.time() + self.ahead_s

    def ask(self, action: str = "send_mail", by: str = "bot", **given: Any) -> dict[str, Any]:
        """Submit a new request, and return its confirmation."""
        number = next(self._numbers)
        body = {
            "action": action,
            "description": "The agent's words.",
            "details": {"number": number},
            "session_key": f"session {number}",  # equal requests share a confirmation
            **given,
        }
        answer = self._clients[by].post("/confirm", json=body)
        assert answer.status_code in (200, 202), answer.text
        card: dict[str, Any] = answer.json()
        return card

    def card(self, id_: str) -> dict[str, Any]:
        """Return a confirmation as its requester sees it."""
        card: dict[str, Any] = self._clients["bot"].get(f"/confirm/{id_}").json()
        return card

    def as_person(self, name: str, method: str, path: str, body: object = None) -> Any:
        """Send a request to the API as an approver, and return the response."""
        return self._clients[name].request(method, path, json=body).json()

    def clear(self) -> None:
        """Deny everything that is pending, so that a test starts with an empty inbox."""
        path = "/confirmations?status=pending&limit=500"
        while cards := self.as_person("bo", "GET", path)["confirmations"]:
            for card in cards:
                self.as_person("bo", "POST", f"/confirm/{card['id']}/deny", {})

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _client(self, name: str) -> httpx2.Client:
        key = {"Authorization": f"Bearer {self.keys[name]}"}
        return httpx2.Client(base_url=self.serving.options.agents_url, headers=key, trust_env=False)


@contextmanager
def running_page(folder: Path) -> Iterator[ConfirmationPage]:
    """Run the service on free ports for the duration of the block."""
    with Store(f"sqlite:///{folder / 'journeyman.db'}") as store:
        keys = {}
        with store.confirmations.writing(now=1.0) as ledger:
            for name in ("anna", "bo"):
                keys[name] = credentials.add_approver(ledger, name, by="test")[1]
            for name in ("bot", "claude-code"):
                keys[name] = credentials.add_agent(ledger, name, by="test")[1]
        pages: list[ConfirmationPage] = []
        service = Service(
            store.confirmations,
            folder,
            lambda: POLICY,
            clock=lambda: pages[0].clock() if pages else time.time(),
        )
        options = ServiceOptions(
            files=folder, policy=str(folder / "none.toml"), port=0, page_port=0
        )
        with ConfirmationServer(service, options).in_thread() as serving:
            pages.append(ConfirmationPage(serving, service, keys))
            try:
                yield pages[0]
            finally:
                pages[0].close()
