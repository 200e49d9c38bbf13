"""Event streams: one confirmation until it is settled, and all of them for approvers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from tests.confirm_server import ConfirmServer, bearer, plain_client
from tests.waiting import until


class EventReader:
    """An open stream, read line by line."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()

    def event(self) -> dict[str, Any] | None:
        """The card of the next event, skipping heartbeats; None at the end of the stream."""
        kind = ""
        for line in self._lines:
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                assert kind == "confirmation"
                found: dict[str, Any] = json.loads(line.removeprefix("data: "))
                return found
        return None

    def event_of(self, id_: str) -> dict[str, Any]:
        """The next event about a card, skipping those about others."""
        while (card := self.event()) is not None:
            if card["id"] == id_:
                return card
        raise AssertionError("the stream ended")

    def heartbeat(self) -> bool:
        return any(line.startswith(":") for line in self._lines)


@contextmanager
def listening(server: ConfirmServer, path: str, secret: str) -> Iterator[EventReader]:
    with (
        plain_client(base_url=server.url) as client,
        client.stream("GET", path, headers=bearer(secret)) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        yield EventReader(answer)


def test_stream_runs_from_the_current_state_until_settled(
    server: ConfirmServer,
) -> None:
    card = server.submit(action="hire", details={"follow": 1})
    path, body = f"/confirm/{card['id']}", {"digest": card["digest"]}
    with listening(server, f"{path}/events", server.agent()) as heard:
        first = heard.event()
        assert first is not None
        assert (first["id"], first["status"]) == (card["id"], "pending")
        server.post(f"{path}/approve", server.approver("ann"), body)
        second = heard.event()
        assert second is not None
        assert (second["status"], second["approvals"]) == ("pending", 1)
        server.post(f"{path}/approve", server.approver("bob"), body)
        third = heard.event()
        assert third is not None
        assert third["status"] == "approved"
        assert heard.event() is None


def test_settled_confirmation_is_sent_once(server: ConfirmServer) -> None:
    card = server.submit(action="read_file", details={"follow": 2})
    with listening(server, f"/confirm/{card['id']}/events", server.agent()) as heard:
        told = heard.event()
        assert told is not None
        assert told["status"] == "auto_approved"
        assert heard.event() is None


def test_inbox_starts_with_pending_confirmations_and_follows_changes(
    server: ConfirmServer,
) -> None:
    waiting = server.submit(details={"inbox": 1})
    settled = server.submit(action="read_file", details={"inbox": 0})
    with listening(server, "/inbox/events", server.approver()) as heard:
        assert heard.event_of(waiting["id"])["status"] == "pending"
        later = server.submit(server.agent("tester"), details={"inbox": 2})
        assert heard.event_of(later["id"])["requester"] == "tester"
        server.post(f"/confirm/{waiting['id']}/deny", server.approver(), {})
        assert heard.event_of(waiting["id"])["status"] == "denied"
    assert settled["status"] == "auto_approved"


def test_quiet_stream_sends_heartbeats(server: ConfirmServer) -> None:
    card = server.submit(details={"quiet": 1})
    with listening(server, f"/confirm/{card['id']}/events", server.agent()) as heard:
        heard.event()
        assert heard.heartbeat()


def test_disconnected_client_frees_its_slot(server: ConfirmServer) -> None:
    card = server.submit(details={"gone": 1})
    until(lambda: server.serving.streams.total() == 0)
    with listening(server, f"/confirm/{card['id']}/events", server.agent()):
        until(lambda: server.serving.streams.total() == 1)
    until(lambda: server.serving.streams.total() == 0)
    assert server.card(card["id"]).status == "pending"


def test_revoked_credential_ends_the_stream(server: ConfirmServer) -> None:
    with listening(server, "/inbox/events", server.approver("dora")) as heard:
        server.revoke("dora")
        while heard.event() is not None:
            pass  # events from before the revocation; then the stream ends
    assert server.get("/confirmations", server.approver("dora")).status_code == 401
