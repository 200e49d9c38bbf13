"""The client against a real service and against impostors: only a redeemed approval counts as
approved.
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.confirm_server import ConfirmServer, confirm_server
from tests.tables import table
from tests.waiting import LONGEST_S, until

from journeyman.confirm.client import Answer, ConfirmClient
from journeyman.confirm.schemas import Card
from journeyman.records.confirmation import Constraint
from journeyman.records.errors import (
    BadSetting,
    ConfirmationChanged,
    ConfirmationRefused,
    ServiceUnavailable,
    WrongInput,
)

DETAILS = {"amount": 100, "to": "ACME"}
EDITABLE = """
requester_limit = 100000
[[rules]]
action = "pay_*"
tier = "ask"
edits = ["amount"]
rate_limit = 100000
[[rules]]
action = "knock"
tier = "ask"
rate_limit = 1
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    with confirm_server(tmp_path_factory.mktemp("service"), policy=EDITABLE) as server:
        yield server


@pytest.fixture(scope="module")
def agent(server: ConfirmServer) -> Iterator[ConfirmClient]:
    with ConfirmClient(server.url, server.agent("builder")) as client:
        yield client


@pytest.fixture(scope="module")
def ann(server: ConfirmServer) -> Iterator[ConfirmClient]:
    with ConfirmClient(server.url, server.approver("ann")) as client:
        yield client


def ask(url: str, token: str, *args: Any, patience_s: float = LONGEST_S, **more: Any) -> Answer:
    with ConfirmClient(url, token, patience_s=patience_s) as client:
        return client.ask(*args, **more)


def pending(ann: ConfirmClient, description: str) -> Card:
    """Wait for a pending confirmation with this description, and return it."""

    def found() -> list[Card]:
        return [one for one in ann.list(status="pending") if one.description == description]

    return until(found)[0]


@contextmanager
def asking_in_background(asked: Callable[[], Answer]) -> Iterator[Callable[[], Answer]]:
    """Run a request in a thread while the block decides; call the value to get its answer."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(asked)
        yield lambda: answer.result(timeout=LONGEST_S)


class TestAsk:
    def test_redeemed_approval_is_approved(self, server: ConfirmServer, ann: ConfirmClient) -> None:
        words = f"Pay ACME by {ask.__name__}"
        token = server.agent("builder")
        with asking_in_background(
            lambda: ask(server.url, token, "pay_bill", words, DETAILS)
        ) as answer:
            card = pending(ann, words)
            ann.approve(card.id, card.digest, reason="as agreed")
            said = answer()
        assert said
        assert said.why == ""
        assert said.card is not None
        assert said.grant is not None
        assert (said.card.settled_by, said.card.reason) == ("ann", "as agreed")
        assert (said.grant.id, said.grant.details) == (card.id, DETAILS)
        assert said.grant.digest == card.digest
        assert server.card(card.id).status == "redeemed"

    @table("how", ["denied", "cancelled"])
    def test_denied_or_cancelled_request_is_not_approved(
        self, server: ConfirmServer, ann: ConfirmClient, how: str
    ) -> None:
        words = f"{how} by {ask.__name__}"
        token = server.agent("builder")
        with asking_in_background(
            lambda: ask(server.url, token, "pay_bill", words, DETAILS)
        ) as answer:
            card = pending(ann, words)
            (ann.deny if how == "denied" else ann.cancel)(card.id, reason="no\u202ey")
            said = answer()
        assert not said
        assert said.grant is None
        assert how in said.why.lower()
        assert "no\\u{202e}y" in said.why

    def test_expired_request_is_not_approved(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        ahead = [0.0]
        with (
            confirm_server(
                tmp_path_factory.mktemp("late"), clock=lambda: time.time() + ahead[0]
            ) as server,
            ConfirmClient(server.url, server.approver("ann")) as ann,
        ):
            token = server.agent()
            with asking_in_background(
                lambda: ask(server.url, token, "sail", "out", timeout_s=30)
            ) as answer:
                card = pending(ann, "out")
                ahead[0] = 31.0
                said = answer()
            assert (said.approved, server.card(card.id).status) == (False, "expired")
            assert "in time" in said.why

    def test_edited_approval_is_not_approved_by_default(
        self, server: ConfirmServer, ann: ConfirmClient
    ) -> None:
        words = f"changed by {ask.__name__}"
        token = server.agent("builder")
        with asking_in_background(
            lambda: ask(server.url, token, "pay_bill", words, DETAILS)
        ) as answer:
            card = pending(ann, words)
            ann.approve(card.id, card.digest, details=DETAILS | {"amount": 80})
            said = answer()
        assert (said.approved, said.grant) == (False, None)
        assert '"amount":80' in said.why
        assert server.card(card.id).status == "approved", "it can still be redeemed as edited"

    def test_whitelisted_request_needs_no_decision(
        self, server: ConfirmServer, ann: ConfirmClient
    ) -> None:
        entry = ann.add_to_whitelist("feed_cat", constraints={"cans": Constraint(at_most=2)})
        token = server.agent("builder")
        assert ask(server.url, token, "feed_cat", "It is hungry", {"cans": 1})
        ann.revoke(entry.id)

    @table(
        ("token", "details", "said"),
        [
            ("jma_of-nobody", {}, "requires a token or key"),
            ("", {}, "requires a token or key"),
            ("builder", {"amount": float("nan")}, "exact JSON"),
            ("builder", {"amount": 2**60}, "exact JSON"),
            ("builder", {"when": object()}, "exact JSON"),
            ("builder", {1: "one"}, "exact JSON"),
            ("builder", ["amount"], "names and values"),
            ("builder", {"big": "x" * 1_100_000}, ""),
        ],
        ids=[
            *("unknown_token", "no_token", "not_a_number", "too_large", "not_json", "key_not_text"),
            *("not_an_object", "too_long"),
        ],
    )
    def test_invalid_requests_are_not_approved(
        self, server: ConfirmServer, token: str, details: Any, said: str
    ) -> None:
        given = server.agent("builder") if token == "builder" else token
        answer = ask(server.url, given, "pay_bill", "Pay", details)
        assert (answer.approved, answer.card) == (False, None)
        assert said in answer.why

    def test_proxy_settings_are_ignored(
        self, server: ConfirmServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{closed_port()}")
        with ConfirmClient(server.url, server.agent("builder")) as client:
            assert client.list() is not None


class TestRequests:
    def test_request_wait_and_redeem(self, agent: ConfirmClient, ann: ConfirmClient) -> None:
        asked = agent.request(
            "pay_bill", "Step by step", DETAILS, session_key="s-1", timeout_s=60, requester="me"
        )
        assert (asked.status, asked.session_key, asked.claimed) == ("pending", "s-1", "me")
        assert 0 < asked.expires_in_s <= 60
        assert agent.get(asked.short_id).id == asked.id
        assert asked.id in {card.id for card in agent.list(status="pending")}
        threading.Timer(0.05, ann.approve, (asked.id, asked.digest)).start()
        card = agent.wait(asked.id)
        assert (card.status, card.is_approved) == ("approved", True)
        grant = agent.redeem(card, DETAILS)
        assert grant.grant
        assert grant.grant not in repr(grant)
        with pytest.raises(ConfirmationRefused) as caught:
            agent.redeem(card, DETAILS)
        assert caught.value.code == "already_redeemed"

    def test_story_3_changed_details_cannot_be_redeemed(
        self, server: ConfirmServer, agent: ConfirmClient, ann: ConfirmClient
    ) -> None:
        asked = agent.request("pay_bill", "Bait and switch", DETAILS)
        card = ann.approve(asked.id, asked.digest)
        with pytest.raises(ConfirmationChanged, match="not what was approved") as caught:
            agent.redeem(card, DETAILS | {"amount": 101})
        assert caught.value.code == "changed"
        (noted,) = server.audit("refused", asked.id)
        assert noted.about["code"] == "changed"
        assert agent.redeem(card, DETAILS).id == asked.id

    def test_client_timeout_leaves_the_request_pending(
        self, server: ConfirmServer, agent: ConfirmClient
    ) -> None:
        asked = agent.request("pay_bill", "Patience", DETAILS)
        assert agent.wait(asked, 0.1).status == "pending"
        assert agent.wait(asked.id, 0.1).status == "pending"
        assert server.card(asked.id).status == "pending"
        assert agent.cancel(asked.id).status == "cancelled"

    def test_refusal_states_the_reason_and_the_approver(
        self, agent: ConfirmClient, ann: ConfirmClient
    ) -> None:
        asked = agent.request("pay_bill", "Settled", DETAILS)
        with pytest.raises(ConfirmationChanged) as changed:
            ann.approve(asked.id, "sha256:" + "0" * 64)
        assert changed.value.code == "digest_differs"
        ann.deny(asked.id)
        with pytest.raises(ConfirmationRefused) as caught:
            ann.approve(asked.id, asked.digest)
        assert caught.value.code == "already_settled"
        assert caught.value.about["settled_by"] == "ann"

    @table("id_", ["", "..", "../whitelist", "a b", "\u202e", "x" * 101])
    def test_invalid_id_is_not_sent(self, agent: ConfirmClient, id_: str) -> None:
        with pytest.raises(WrongInput, match="is not an id"):
            agent.get(id_)

    def test_rate_limit(self, agent: ConfirmClient) -> None:
        agent.request("knock", "once")
        with pytest.raises(ConfirmationRefused) as caught:
            agent.request("knock", "twice")
        assert caught.value.code == "over_limit"
        assert "The limit of 1 request for knock per hour" in str(caught.value)

    def test_whitelist_and_audit_log(self, server: ConfirmServer, ann: ConfirmClient) -> None:
        entry = ann.add_to_whitelist(
            "water_plants",
            session_key="s",
            requester="builder",
            constraints={"litres": Constraint(at_least=1, at_most=2)},
            other_parameters=True,
            expires_in_s=60,
            reason="dry",
        )
        assert (entry.added_by, entry.reason, entry.other_parameters) == ("ann", "dry", True)
        assert entry.expires_at is not None
        assert entry.id in {one.id for one in ann.whitelist()}
        assert ann.revoke(entry.id).revoked_at is not None
        kinds = [event.kind for event in ann.audit(2)]
        assert kinds == ["whitelist_revoked", "whitelist_added"]
        (event,) = ann.audit(1, before=ann.audit(1)[0].seq)
        assert event.kind == "whitelist_added"

    @table("url", ["", "127.0.0.1:6000", "ftp://there"])
    def test_invalid_url(self, url: str) -> None:
        with pytest.raises(BadSetting, match=r"confirm\.url"):
            ConfirmClient(url, "token")

    def test_invalid_token_is_not_shown(self) -> None:
        with pytest.raises(BadSetting) as caught:
            ConfirmClient("http://127.0.0.1:1", "jma_secret\n")
        assert "secret" not in str(caught.value)


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


CARD: dict[str, Any] = {
    "id": "ab12",
    "short_id": "ab12",
    "status": "pending",
    "tier": "ask",
    "rule": "no rule matches this action",
    "action": "pay_bill",
    "description": "Pay",
    "details": DETAILS,
    "edited": None,
    "approved_details": DETAILS,
    "context": {},
    "requester": "builder",
    "session_key": "",
    "nonce": "n",
    "submitted_digest": "sha256:0",
    "digest": "sha256:0",
    "created_at": "2026-11-16T08:00:00Z",
    "expires_at": "2026-11-16T08:05:00Z",
    "expires_in_s": 0.2,
}
APPROVED = CARD | {"status": "approved"}
GRANT = {"grant": "g", "id": "ab12", "digest": "sha256:0", "details": DETAILS}

Responder = Callable[[str, str], tuple[int, bytes] | None]
"""An impostor's response to a method and a path; None closes the connection."""


@contextmanager
def impostor(respond: Responder) -> Iterator[str]:
    """Run another HTTP server in the service's place, and yield its URL."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            said = respond(self.command, self.path)
            if said is None:
                self.close_connection = True
                return
            status, body = said
            self.send_response(status)
            self.send_header("Connection", "close")
            self.send_header("Location", "/confirm/elsewhere")
            if body != SLOW:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            while body == SLOW and not over.wait(0.02):
                self.wfile.write(b" ")
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # the client disconnected
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


SLOW = b"slow"


def always(status: int, body: object) -> Responder:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda _method, _path: (status, content)


def responding(first: dict[str, Any], later: object, grant: object) -> Responder:
    """Answer the request with `first`, queries with `later`, and redemption with `grant`."""

    def respond(method: str, path: str) -> tuple[int, bytes]:
        said = first if path == "/confirm" else later if method == "GET" else grant
        return 200, said if isinstance(said, bytes) else json.dumps(said).encode()

    return respond


class TestStory10:
    """A faulty service never approves an action."""

    def test_port_closed(self) -> None:
        url = f"http://127.0.0.1:{closed_port()}"
        answer = ask(url, "secret-token", "pay_bill", "Pay", DETAILS)
        assert (answer.approved, answer.card) == (False, None)
        assert "journeyman confirm serve" in answer.why
        assert "secret-token" not in answer.why

    @table(
        "respond",
        [
            pytest.param(always(200, b"{"), id="bad_json"),
            pytest.param(always(200, b""), id="empty"),
            pytest.param(always(200, b"\xff\xfe"), id="not_text"),
            pytest.param(always(200, b"[" * 100_000), id="too_deep"),
            pytest.param(always(200, b"<html>Approved!</html>"), id="html_page"),
            pytest.param(always(200, {"approved": True}), id="story_18_another_shape"),
            pytest.param(always(200, APPROVED | {"nonce": 1}), id="wrong_type"),
            pytest.param(always(200, APPROVED | {"status": "yes"}), id="unknown_status"),
            pytest.param(always(500, APPROVED), id="server_error"),
            pytest.param(always(302, APPROVED), id="redirect"),
            pytest.param(always(404, {"error": "no"}), id="unknown_error_format"),
            pytest.param(always(503, {"error": {"code": "x", "message": "y"}}), id="unavailable"),
            pytest.param(always(403, {"error": {"code": "x", "message": "y"}}), id="refused"),
            pytest.param(always(200, SLOW), id="never_ends"),
            pytest.param(lambda _method, _path: None, id="closes_connection"),
            pytest.param(responding(APPROVED, APPROVED, GRANT), id="grant_for_another_digest"),
            pytest.param(responding(APPROVED, APPROVED, {}), id="no_grant"),
            pytest.param(responding(APPROVED, APPROVED, b"granted"), id="grant_is_not_json"),
            pytest.param(responding(APPROVED | {"action": "rest"}, {}, GRANT), id="another_action"),
            pytest.param(responding(CARD, b"{", GRANT), id="bad_json_while_waiting"),
            pytest.param(responding(CARD, SLOW, GRANT), id="slow_while_waiting"),
            pytest.param(responding(CARD, CARD | {"status": "expired"}, GRANT), id="expired"),
        ],
    )
    def test_impostor_cannot_approve(self, respond: Responder) -> None:
        with impostor(respond) as url:
            answer = ask(url, "token", "pay_bill", "Pay", DETAILS, patience_s=0.3)
        assert (answer.approved, answer.grant) == (False, None)
        assert answer.why

    def test_service_lost_until_the_request_expires(self) -> None:
        asked = threading.Event()

        def respond(_method: str, path: str) -> tuple[int, bytes] | None:
            if path == "/confirm":
                return 202, json.dumps(CARD).encode()
            asked.set()
            return None

        with impostor(respond) as url:
            answer = ask(url, "token", "pay_bill", "Pay", DETAILS)
        assert asked.is_set()
        assert (answer.approved, answer.card and answer.card.status) == (False, "pending")
        assert "did not answer" in answer.why

    def test_unresponsive_service(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            answer = ask(url, "token", "pay_bill", "Pay", DETAILS, patience_s=0.2)
        assert not answer.approved
        assert "did not answer" in answer.why

    def test_waiting_for_an_id_fails_at_once_without_a_service(self) -> None:
        with (
            ConfirmClient(f"http://127.0.0.1:{closed_port()}", "token") as client,
            pytest.raises(ServiceUnavailable, match="confirm serve"),
        ):
            client.wait("ab12")


def test_story_12_waiting_survives_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("restarted")
    with ThreadPoolExecutor(1) as pool:
        with (
            confirm_server(home) as server,
            ConfirmClient(server.url, server.approver("ann")) as ann,
        ):
            options, key = server.serving.options, server.approver("ann")
            answer = pool.submit(ask, server.url, server.agent(), "pay_bill", "Later", DETAILS)
            card = pending(ann, "Later")
        assert not answer.done()
        with (
            confirm_server(home, port=options.port, page_port=options.page_port) as server,
            ConfirmClient(server.url, key) as ann,
        ):
            assert ann.get(card.id).expires_at == card.expires_at, "the deadline has moved"
            ann.approve(card.id, card.digest)
            said = answer.result(timeout=LONGEST_S)
    assert said.approved
    assert said.grant is not None
    assert said.grant.id == card.id
