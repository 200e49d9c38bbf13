"""Routes for agents over HTTP."""

import threading
from datetime import datetime

from tests.confirm_server import ConfirmServer
from tests.tables import table

ASKED = {"action": "send_mail", "description": "Tell Bob."}


def test_submission_returns_the_full_confirmation(server: ConfirmServer) -> None:
    asked = {**ASKED, "details": {"to": "bob"}, "session_key": "s1", "timeout_seconds": 30}
    answer = server.post("/confirm", server.agent(), asked)
    card = answer.json()
    assert answer.status_code == 202
    assert (card["status"], card["tier"], card["details"]) == ("pending", "ask", {"to": "bob"})
    assert card["short_id"] == card["id"][: len(card["short_id"])]
    assert card["digest"] == card["submitted_digest"]
    assert card["digest"].startswith("sha256:")
    created, expires = (datetime.fromisoformat(card[at]) for at in ("created_at", "expires_at"))
    assert card["created_at"].endswith("Z")
    assert (expires - created).total_seconds() == 30
    assert 0 < card["expires_in_s"] <= 30
    assert card["limit"]["remaining"] == card["limit"]["limit"] - 1
    own = f"{server.url}/confirm/{card['id']}"
    assert card["urls"] == {
        "self": own,
        "wait": f"{own}?wait=25",
        "events": f"{own}/events",
        "cancel": f"{own}/cancel",
        "redeem": f"{own}/redeem",
        "page": f"{server.page_url}/#/card/{card['id']}",
    }
    assert card["page_url"] == card["urls"]["page"]
    by_short_id = server.get(f"/confirm/{card['short_id']}", server.agent())
    assert by_short_id.json()["id"] == card["id"]


@table(("header", "body"), [("one", "two"), ("x" * 201, "")])
def test_conflicting_or_oversized_idempotency_keys_are_refused(
    server: ConfirmServer, header: str, body: str
) -> None:
    asked = {**ASKED, "idempotency_key": body}
    answer = server.post("/confirm", server.agent(), asked, headers={"Idempotency-Key": header})
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "idempotency_key"


def test_optional_body_may_be_omitted(server: ConfirmServer) -> None:
    for way, secret in (("cancel", server.agent()), ("deny", server.approver())):
        card = server.submit(details={"left out": way})
        headers = {"Content-Type": "application/json"}
        answer = server.send("POST", f"/confirm/{card['id']}/{way}", secret, headers=headers)
        assert answer.status_code == 200


def test_long_poll_ends_with_the_decision(server: ConfirmServer) -> None:
    card = server.submit(details={"poll": 1})
    found = []

    def wait() -> None:
        found.append(server.get(f"/confirm/{card['id']}?wait=60", server.agent()).json())

    waiters = [threading.Thread(target=wait) for _ in range(5)]
    for one in waiters:
        one.start()
    server.post(f"/confirm/{card['id']}/deny", server.approver(), {"reason": "No."})
    for one in waiters:
        one.join()
    assert [each["status"] for each in found] == ["denied"] * 5


@table("wait", ["-1", "60.1", "nan", "inf", "1e999", "soon", ""])
def test_invalid_wait_is_refused(server: ConfirmServer, wait: str) -> None:
    card = server.submit(details={"wait": wait})
    answer = server.get(f"/confirm/{card['id']}?wait={wait}", server.agent())
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "wait"


@table("id_", ["nothing", "%00", "..", "a" * 400, "%F0%9F%92%A9", "' OR 1=1"])
def test_invalid_id_is_unknown(server: ConfirmServer, id_: str) -> None:
    for secret in (server.agent(), server.approver()):
        answer = server.get(f"/confirm/{id_}", secret)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown")
