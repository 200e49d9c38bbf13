"""The event stream of all confirmations, for approvers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from tests.confirm_server import ConfirmServer, bearer, plain_client


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
    with listening(server, "/inbox/events", server.approver()) as heard:
        assert heard.heartbeat()


def test_revoked_credential_ends_the_stream(server: ConfirmServer) -> None:
    with listening(server, "/inbox/events", server.approver("dora")) as heard:
        server.revoke("dora")
        while heard.event() is not None:
            pass  # events from before the revocation; then the stream ends
    assert server.get("/confirmations", server.approver("dora")).status_code == 401
