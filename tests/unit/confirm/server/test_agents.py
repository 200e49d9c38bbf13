"""What agents ask for and get."""

import threading
from datetime import datetime

import pytest
from tests.confirm_server import ConfirmServer, until

ASKED = {"action": "send_mail", "description": "Tell Bob."}


def test_a_submission_is_answered_with_the_whole_card(server: ConfirmServer) -> None:
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


def test_what_no_person_is_needed_for_is_answered_at_once(server: ConfirmServer) -> None:
    answer = server.post("/confirm", server.agent(), {**ASKED, "action": "read_file"})
    assert (answer.status_code, answer.json()["status"]) == (200, "auto_approved")


def test_what_is_forbidden_is_refused(server: ConfirmServer) -> None:
    answer = server.post("/confirm", server.agent(), {**ASKED, "action": "launch_missiles"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden_action")


def test_over_the_limit_says_when_to_come_again(server: ConfirmServer) -> None:
    rare = {**ASKED, "action": "rare"}
    assert server.post("/confirm", server.agent(), rare).status_code == 202
    answer = server.post("/confirm", server.agent(), {**rare, "details": {"n": 2}})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (429, "over_limit")
    assert (error["limit"], error["remaining"]) == (1, 0)
    datetime.fromisoformat(error["reset_at"])
    assert 1 <= int(answer.headers["retry-after"]) <= 3600


def test_story_18_a_yes_in_the_request_is_no_yes(server: ConfirmServer) -> None:
    claims = {"approved": True, "status": "approved", "tier": "routine", "decided_by": "ann"}
    answer = server.post("/confirm", server.agent(), {**ASKED, **claims, "details": claims})
    card = answer.json()
    assert (answer.status_code, card["status"], card["tier"]) == (202, "pending", "ask")
    assert card["votes"] == []
    assert server.card(card["id"]).status == "pending"


def test_story_13_looking_decides_nothing(server: ConfirmServer) -> None:
    card = server.submit(details={"story": 13})
    path = f"/confirm/{card['id']}"
    for secret in (server.agent(), server.approver()):
        for _ in range(10):
            assert server.get(path, secret).json()["status"] == "pending"
        for way in ("approve", "deny", "cancel", "redeem"):
            assert server.get(f"{path}/{way}", secret).status_code == 405
            assert server.send("HEAD", f"{path}/{way}", secret).status_code == 405
    assert server.card(card["id"]).status == "pending"
    kinds = {entry.kind for entry in server.audit(confirmation=card["id"])}
    assert kinds == {"submitted", "viewed"}


def test_the_same_key_asks_once(server: ConfirmServer) -> None:
    headers = {"Idempotency-Key": "one"}
    first = server.post("/confirm", server.agent(), ASKED, headers=headers).json()
    again = server.post("/confirm", server.agent(), {**ASKED, "idempotency_key": "one"}).json()
    assert (again["id"], again["replayed"]) == (first["id"], True)
    other = server.post("/confirm", server.agent(), {**ASKED, "details": {"n": 1}}, headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "key_reused")


@pytest.mark.parametrize(("header", "body"), [("one", "two"), ("x" * 201, "")])
def test_two_different_keys_are_none(server: ConfirmServer, header: str, body: str) -> None:
    asked = {**ASKED, "idempotency_key": body}
    answer = server.post("/confirm", server.agent(), asked, headers={"Idempotency-Key": header})
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "idempotency_key"


def test_an_identical_request_shares_the_card(server: ConfirmServer) -> None:
    first = server.submit(details={"shared": 1})
    again = server.submit(details={"shared": 1})
    assert (again["id"], again["shared"], again["submissions"]) == (first["id"], True, 2)


def test_a_whole_round(server: ConfirmServer) -> None:
    agent, card = server.agent(), server.submit(details={"round": 1})
    path, digest = f"/confirm/{card['id']}", {"digest": card["digest"]}
    early = server.post(f"{path}/redeem", agent, digest)
    assert (early.status_code, early.json()["error"]["code"]) == (409, "not_approved")
    assert server.post(f"{path}/approve", server.approver(), digest).json()["status"] == "approved"
    changed = server.post(f"{path}/redeem", agent, {**digest, "details": {"round": 2}})
    assert (changed.status_code, changed.json()["error"]["code"]) == (409, "changed")
    granted = server.post(f"{path}/redeem", agent, {**digest, "details": {"round": 1}})
    assert granted.status_code == 200
    assert granted.json()["details"] == {"round": 1}
    assert granted.json()["redeemed_at"].endswith("Z")
    twice = server.post(f"{path}/redeem", agent, digest)
    assert (twice.status_code, twice.json()["error"]["code"]) == (409, "already_redeemed")


def test_who_decided_first_is_told_to_who_comes_second(server: ConfirmServer) -> None:
    card = server.submit(details={"second": 1})
    path = f"/confirm/{card['id']}"
    assert server.post(f"{path}/deny", server.approver("ann"), {"reason": "No."}).is_success
    late = server.post(f"{path}/approve", server.approver("bob"), {"digest": card["digest"]})
    error = late.json()["error"]
    assert (late.status_code, error["code"]) == (409, "already_settled")
    assert (error["settled_by"], error["status"]) == ("ann", "denied")
    assert error["settled_at"].endswith("Z")


def test_another_digest_is_not_what_is_stored(server: ConfirmServer) -> None:
    card = server.submit(details={"digest": 1})
    body = {"digest": "sha256:" + "0" * 64}
    answer = server.post(f"/confirm/{card['id']}/approve", server.approver(), body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (412, "digest_differs")


def test_edits_where_they_are_allowed(server: ConfirmServer) -> None:
    card = server.submit(action="send_letter", details={"to": "bob", "text": "hi"})
    assert card["editable"] == ["to"]
    path, approver = f"/confirm/{card['id']}/approve", server.approver()
    body = {"digest": card["digest"], "details": {"to": "bob", "text": "bye"}}
    wrong = server.post(path, approver, body)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (403, "edit_not_allowed")
    body["details"] = {"to": "eve", "text": "hi"}
    edited = server.post(path, approver, body).json()
    assert edited["approved_details"] == {"to": "eve", "text": "hi"}
    assert edited["digest"] != edited["submitted_digest"] == card["digest"]


def test_a_card_that_needs_two_stays_pending_after_one(server: ConfirmServer) -> None:
    card = server.submit(action="hire")
    path, body = f"/confirm/{card['id']}/approve", {"digest": card["digest"]}
    one = server.post(path, server.approver("ann"), body).json()
    assert (one["status"], one["approvals"], one["quorum"]) == ("pending", 1, 2)
    again = server.post(path, server.approver("ann"), body)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_voted")
    assert server.post(path, server.approver("bob"), body).json()["status"] == "approved"


def test_a_body_may_be_left_out_where_nothing_is_needed(server: ConfirmServer) -> None:
    for way, secret in (("cancel", server.agent()), ("deny", server.approver())):
        card = server.submit(details={"left out": way})
        headers = {"Content-Type": "application/json"}
        answer = server.send("POST", f"/confirm/{card['id']}/{way}", secret, headers=headers)
        assert answer.status_code == 200


def test_a_long_poll_ends_with_the_decision(server: ConfirmServer) -> None:
    card = server.submit(details={"poll": 1})
    found = []

    def wait() -> None:
        found.append(server.get(f"/confirm/{card['id']}?wait=60", server.agent()).json())

    waiters = [threading.Thread(target=wait) for _ in range(5)]
    for one in waiters:
        one.start()
    until(lambda: len(server.serving.waiting) == 5)
    server.post(f"/confirm/{card['id']}/deny", server.approver(), {"reason": "No."})
    for one in waiters:
        one.join()
    assert [each["status"] for each in found] == ["denied"] * 5
    assert len(server.serving.waiting) == 0


def test_a_long_poll_that_ends_first_decides_nothing(server: ConfirmServer) -> None:
    card = server.submit(details={"poll": 2})
    answer = server.get(f"/confirm/{card['id']}?wait=0.05", server.agent())
    assert (answer.status_code, answer.json()["status"]) == (200, "pending")
    assert server.card(card["id"]).status == "pending"


@pytest.mark.parametrize("wait", ["-1", "60.1", "nan", "inf", "1e999", "soon", ""])
def test_how_long_may_be_waited(server: ConfirmServer, wait: str) -> None:
    card = server.submit(details={"wait": wait})
    answer = server.get(f"/confirm/{card['id']}?wait={wait}", server.agent())
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "wait"


@pytest.mark.parametrize("id_", ["nothing", "%00", "..", "a" * 400, "%F0%9F%92%A9", "' OR 1=1"])
def test_an_id_that_is_none(server: ConfirmServer, id_: str) -> None:
    for secret in (server.agent(), server.approver()):
        answer = server.get(f"/confirm/{id_}", secret)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown")
