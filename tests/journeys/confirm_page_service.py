"""A real confirmation service with two people and an agent, for looking at its page in a browser.
Requests are put to it as an agent puts them: over HTTP, with a token.
"""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pyotp

from journeyman.confirm import credentials
from journeyman.confirm.options import Options
from journeyman.confirm.policy import Policy, Rule
from journeyman.confirm.server.serving import Serving
from journeyman.confirm.service import Service
from journeyman.store.store import Store

POLICY = Policy(
    rules=(
        Rule(action="both_*", tier="ask", quorum=2, edits=("amount",)),
        Rule(action="edit_*", tier="ask", edits=("amount", "note", "where")),
        Rule(action="coded_*", tier="critical", second_factor=True),
        Rule(action="routine_*", tier="routine", reason="Nothing is lost by it."),
    ),
    rate_limit=100_000,
    requester_limit=100_000,
)


class ConfirmationPage:
    """The running service, and what its people and its agent know."""

    def __init__(self, serving: Serving, service: Service, keys: dict[str, str]) -> None:
        self.serving = serving
        self.service = service
        self.keys = keys
        self.ahead_s = 0.0
        self._numbers = itertools.count(1)
        self._clients = {name: self._client(name) for name in ("anna", "bo", "bot")}

    @property
    def url(self) -> str:
        return self.serving.options.shown_page_url

    def clock(self) -> float:
        """The service's time, which a test may put ahead."""
        return time.time() + self.ahead_s

    def ask(self, action: str = "send_mail", **given: Any) -> dict[str, Any]:
        """Put a request to the service; the card that it became. Each is another one."""
        number = next(self._numbers)
        body = {
            "action": action,
            "description": "The agent's words.",
            "details": {"number": number},
            "session_key": f"session {number}",  # or equal requests would share a card
            **given,
        }
        answer = self._clients["bot"].post("/confirm", json=body)
        assert answer.status_code in (200, 202), answer.text
        card: dict[str, Any] = answer.json()
        return card

    def card(self, id_: str) -> dict[str, Any]:
        """The card as the agent that asked sees it."""
        card: dict[str, Any] = self._clients["bot"].get(f"/confirm/{id_}").json()
        return card

    def as_person(self, name: str, method: str, path: str, body: object = None) -> Any:
        """What the service answers to a person who uses its API."""
        return self._clients[name].request(method, path, json=body).json()

    def clear(self) -> None:
        """Deny whatever waits, so that a test begins with an empty inbox."""
        path = "/confirmations?status=pending&limit=500"
        for card in self.as_person("bo", "GET", path)["confirmations"]:
            self.as_person("bo", "POST", f"/confirm/{card['id']}/deny", {})

    def code_of(self, name: str) -> str:
        """What the person's device for one-time codes shows."""
        return pyotp.TOTP(self.keys[f"{name}'s device"]).at(int(self.clock()))

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _client(self, name: str) -> httpx2.Client:
        key = {"Authorization": f"Bearer {self.keys[name]}"}
        return httpx2.Client(base_url=self.serving.options.agents_url, headers=key, trust_env=False)


@contextmanager
def running_page(folder: Path) -> Iterator[ConfirmationPage]:
    """The service on free ports, for as long as the block lasts."""
    with Store(f"sqlite:///{folder / 'journeyman.db'}") as store:
        keys = {}
        with store.confirmations.writing(now=1.0) as ledger:
            for name in ("anna", "bo"):
                keys[name] = credentials.add_approver(ledger, name, by="test")[1]
                keys[f"{name}'s device"] = credentials.set_totp(ledger, name, "test")[0]
            keys["bot"] = credentials.add_agent(ledger, "bot", by="test")[1]
        pages: list[ConfirmationPage] = []
        service = Service(
            store.confirmations,
            folder,
            lambda: POLICY,
            clock=lambda: pages[0].clock() if pages else time.time(),
        )
        options = Options(files=folder, policy=folder / "none.toml", port=0, page_port=0)
        with Serving(service, options).in_thread() as serving:
            pages.append(ConfirmationPage(serving, service, keys))
            try:
                yield pages[0]
            finally:
                pages[0].close()
