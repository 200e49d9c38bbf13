"""A real confirmation service for tests: a store in a temporary home, the real server on free ports
of 127.0.0.1, agent tokens and approver keys.

    with confirm_server(tmp_path, policy='...TOML...') as server:
        token, key = server.agent("builder"), server.approver("ann")
        card = server.submit(token, action="send_mail", details={"to": "bob"})
        server.post(f"/confirm/{card['id']}/approve", key, {"digest": card["digest"]})

`server.url` is the address for agents and `server.page_url` the address of the page. `get`, `post`
and `delete` send requests to the agents' port with a token or key, or to the page's port with
`page=True`. `server.browser("ann")` is a client on the page's port that has logged in. Everything
has stopped when the block ends.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.client import BadStatusLine, HTTPResponse
from pathlib import Path
from typing import Any, Literal

import httpx2
from msgspec import Struct
from tests import databases
from tests.confirm_core import LOOK_S
from tests.waiting import LONGEST_S

from journeyman.confirm import credentials
from journeyman.confirm.policy import read_policy
from journeyman.confirm.server.daemon import ConfirmationServer
from journeyman.confirm.server.request_context import HEARTBEAT_S
from journeyman.confirm.service import Service
from journeyman.confirm.service_options import ServiceOptions
from journeyman.records.confirmation import Confirmation, Credential
from journeyman.store.store import Store


class ConfirmServer:
    """A running server, with shortcuts for tests."""

    def __init__(
        self, serving: ConfirmationServer, service: Service, store: Store, home: Path
    ) -> None:
        self.serving = serving
        self.service = service
        self.store = store
        self.home = home
        self._client = plain_client()
        self._known: dict[str, str] = {}
        self._making = threading.Lock()

    @property
    def url(self) -> str:
        return self.serving.options.agents_url

    @property
    def page_url(self) -> str:
        return self.serving.options.shown_page_url

    # Credentials, created as on the command line. The same name returns the same secret.

    def agent(self, name: str = "builder", *, owner: str = "") -> str:
        """An agent's token."""
        return self._secret(name, partial(credentials.add_agent, owner=owner))

    def approver(self, name: str = "ann", *, telegram_id: int | None = None) -> str:
        """An approver's key."""
        return self._secret(name, partial(credentials.add_approver, telegram_id=telegram_id))

    def revoke(self, name: str, kind: Literal["agent", "approver"] = "approver") -> None:
        """Revoke a credential as another process would: it takes effect within a second."""
        with self.store.confirmations.writing(time.time()) as ledger:
            credentials.revoke(ledger, kind, name, "test")

    def login_link(self, name: str) -> str:
        """A one-time link that logs an approver in."""
        with self.store.confirmations.writing(time.time()) as ledger:
            return f"{self.page_url}/open#{credentials.add_link(ledger, name, by='test')}"

    def _secret(self, name: str, add: Callable[..., tuple[Credential, str]]) -> str:
        with self._making:
            if name not in self._known:
                with self.store.confirmations.writing(time.time()) as ledger:
                    self._known[name] = add(ledger, name, by="test")[1]
            return self._known[name]

    # Requests

    def get(self, path: str, secret: str = "", **more: Any) -> httpx2.Response:
        return self.send("GET", path, secret, **more)

    def post(self, path: str, secret: str = "", body: Any = None, **more: Any) -> httpx2.Response:
        return self.send("POST", path, secret, json={} if body is None else body, **more)

    def delete(self, path: str, secret: str = "", **more: Any) -> httpx2.Response:
        return self.send("DELETE", path, secret, **more)

    def send(
        self, method: str, path: str, secret: str = "", *, page: bool = False, **more: Any
    ) -> httpx2.Response:
        headers = {**bearer(secret), **(more.pop("headers", None) or {})}
        at = self.page_url if page else self.url
        self._client.cookies.clear()  # requests share no session; use `browser` for that
        return self._client.request(method, f"{at}{path}", headers=headers, **more)

    def submit(self, secret: str = "", **asked: Any) -> dict[str, Any]:
        """Submit a request, as "builder" unless a token is passed, and return the response."""
        body = {"action": "send_mail", "description": "Tell Bob.", **asked}
        answer = self.post("/confirm", secret or self.agent(), body)
        assert answer.status_code in (200, 202), answer.text
        found: dict[str, Any] = answer.json()
        return found

    def browser(self, name: str = "ann") -> httpx2.Client:
        """A client on the page's port with an approver's session, like the page itself. The caller
        closes it.
        """
        client = self.visitor()
        answer = client.post("/login", json={"name": name, "key": self.approver(name)})
        assert answer.status_code == 200, answer.text
        client.headers["X-CSRF-Token"] = answer.json()["csrf"]
        return client

    def visitor(self) -> httpx2.Client:
        """A client on the page's port that has not logged in."""
        headers = {"Origin": self.page_url, "Sec-Fetch-Site": "same-origin"}
        return plain_client(base_url=self.page_url, headers=headers)

    def card(self, id_: str) -> Confirmation:
        """A card as it is stored."""
        found = self.store.confirmations.find(id_)
        assert found is not None
        return found

    def audit(self, kind: str = "", confirmation: str = "") -> list[Any]:
        """The audit entries, oldest first, of one kind or all."""
        found = self.store.confirmations.audit(limit=10_000, confirmation=confirmation)
        return [entry for entry in reversed(found) if kind in ("", entry.kind)]

    def close(self) -> None:
        self._client.close()


def plain_client(**options: Any) -> httpx2.Client:
    """A client for addresses without TLS, which skips reading the machine's certificates: that
    takes longer than most requests.
    """
    return httpx2.Client(**{"timeout": LONGEST_S, "trust_env": False, "verify": False, **options})


def bearer(secret: str) -> dict[str, str]:
    """The header that carries a token or key."""
    return {"Authorization": f"Bearer {secret}"} if secret else {}


class Spoken(Struct, frozen=True):
    """The response on a plain socket; status 0 if there was none."""

    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""


def spoken(port: int, text: bytes, *, endless: bytes = b"") -> Spoken:
    """Send exactly this text, without a library that would correct it; repeat `endless` until the
    other side closes the connection.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=LONGEST_S) as line:
        line.sendall(text)
        with suppress(ConnectionError):
            while endless:
                line.sendall(endless)
        answer = HTTPResponse(line)
        try:
            answer.begin()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Spoken(answer.status, headers, answer.read())
        except (ConnectionError, BadStatusLine):
            return Spoken()
        finally:
            answer.close()


@contextmanager
def confirm_server(
    home: Path,
    *,
    policy: str = "",
    rate_limit: int = 100_000,
    database: str = "",
    anonymous: bool = False,
    heartbeat_s: float = HEARTBEAT_S,
    clock: Callable[[], float] = time.time,
    on_new: Callable[[Confirmation], None] | None = None,
    kind: type[Service] = Service,
    **options: Any,
) -> Iterator[ConfirmServer]:
    """Run a service in a thread of this process for the duration of the block. `policy` is the text
    of its policy file; without it there are no rate limits, so that tests do not affect each other.
    """
    home.mkdir(parents=True, exist_ok=True)
    file = home / "policy.toml"
    file.write_text(policy or f"requester_limit = {rate_limit}\n")
    store = Store(database or databases.database(home))
    try:
        service = kind(
            store.confirmations,
            home,
            partial(read_policy, file, rate_limit=rate_limit),
            clock=clock,
            look_s=LOOK_S,
        )
        service.on_new = on_new or service.on_new
        chosen = ServiceOptions(
            **{"files": home, "policy": str(file), "port": 0, "page_port": 0, **options}
        )
        serving = ConfirmationServer(service, chosen, anonymous=anonymous, heartbeat_s=heartbeat_s)
        with serving.in_thread():
            server = ConfirmServer(serving, service, store, home)
            try:
                yield server
            finally:
                server.close()
    finally:
        store.close()
