"""The whitelist, the audit log, the policy and the statistics over HTTP."""

from datetime import datetime

from tests.confirm_server import ConfirmServer
from tests.tables import table


def test_whitelist_entry_records_who_added_it(server: ConfirmServer) -> None:
    ann = server.approver("ann")
    body = {
        "action": "send_mail",
        "session_key": "nightly",
        "constraints": {"to": {"one_of": ["bob", "eve"]}},
        "expires_in_seconds": 3600,
        "reason": "Every night.",
    }
    for slip in ({"added_by": "bob"}, {"constraint": {}}, {"constraints": {"to": {"equal": 1}}}):
        # Ignoring an unknown field would make the entry broader than intended.
        assert server.post("/whitelist", ann, body | slip).status_code == 400
    added = server.post("/whitelist", ann, body)
    assert added.status_code == 201
    entry = added.json()
    assert entry["added_by"] == "ann"
    lasts = datetime.fromisoformat(entry["expires_at"]) - datetime.fromisoformat(entry["added_at"])
    assert abs(lasts.total_seconds() - 3600) < 60
    assert entry in server.get("/whitelist", ann).json()["whitelist"]
    asked = {"session_key": "nightly", "details": {"to": "bob"}}
    assert server.submit(**asked)["status"] == "auto_approved"
    gone = server.delete(f"/whitelist/{entry['id']}", ann)
    assert (gone.status_code, gone.json()["revoked_by"]) == (200, "ann")
    assert server.submit(**asked)["status"] == "pending"
    again = server.delete(f"/whitelist/{entry['id']}", ann)
    assert (again.status_code, again.json()["error"]["code"]) == (404, "unknown")


def test_keys_of_earlier_programs(server: ConfirmServer) -> None:
    ann = server.approver("ann")
    card = server.submit(details={"keys": "earlier"}, timeout_seconds="600")  # as text
    assert (card["resolved_by"], card["resolved_at"], card["timeout_seconds"]) == ("", None, 600)
    assert card["warnings"] == []
    denied = server.post(f"/confirm/{card['id']}/deny", ann).json()
    assert denied["resolved_by"] == denied["settled_by"] != ""
    assert denied["resolved_at"] == denied["settled_at"] is not None
    page = server.get(f"/audit?confirmation={card['id']}", ann).json()
    assert (page["entries"], page["count"]) == (page["audit"], len(page["audit"]))
    assert [one["timestamp"] for one in page["entries"]] == [one["at"] for one in page["audit"]]


@table(
    ("query", "status"),
    [
        ("limit=1", 200),
        ("limit=500", 200),
        ("limit=0", 400),
        ("limit=501", 400),
        ("limit=-1", 400),
        ("limit=many", 400),
        ("before=1", 200),
        ("before=0", 400),
        ("before=9999999999999999999999", 400),
        ("confirmation=%00", 400),
        ("confirmation=abc", 200),
    ],
)
def test_audit_query_parameters(server: ConfirmServer, query: str, status: int) -> None:
    answer = server.get(f"/audit?{query}", server.approver())
    assert answer.status_code == status
    if status == 400:
        assert answer.json()["error"]["field"] == query.partition("=")[0]


def test_audit_is_listed_newest_first(server: ConfirmServer) -> None:
    card, key = server.submit(details={"audit": 1}), server.approver()
    server.get(f"/confirm/{card['id']}", key)
    own = server.get(f"/audit?confirmation={card['id']}", key).json()["audit"]
    assert [entry["kind"] for entry in own] == ["viewed", "submitted"]
    assert own[0]["at"].endswith("Z")
    newest = server.get("/audit?limit=3", key).json()["audit"]
    older = server.get(f"/audit?limit=3&before={newest[-1]['seq']}", key).json()["audit"]
    seqs = [entry["seq"] for entry in newest + older]
    assert seqs == sorted(seqs, reverse=True)
    assert len(set(seqs)) == 6


def test_policy(server: ConfirmServer) -> None:
    found = server.get("/policy", server.approver()).json()
    assert "delete_data" in found["never_bypass"]
    assert {rule["action"]: rule["tier"] for rule in found["rules"]}["read_file"] == "routine"
    assert found["digest"].startswith("sha256:")


@table(
    ("query", "status"),
    [
        ("limit=0", 400),
        ("limit=501", 400),
        ("limit=500", 200),
        ("status=pending", 200),
        ("status=maybe", 400),
        ("before=%27", 400),
    ],
)
def test_confirmation_query_parameters(server: ConfirmServer, query: str, status: int) -> None:
    assert server.get(f"/confirmations?{query}", server.approver()).status_code == status


def test_agent_lists_only_its_own_confirmations(server: ConfirmServer) -> None:
    own = server.submit(server.agent("tester"), details={"list": 1})
    server.submit(details={"list": 2})
    found = server.get("/confirmations", server.agent("tester")).json()["confirmations"]
    assert [card["id"] for card in found] == [own["id"]]
    first = server.get("/confirmations?limit=1", server.approver()).json()["confirmations"]
    rest = server.get(f"/confirmations?before={first[0]['id']}", server.approver()).json()
    assert first[0]["id"] not in [card["id"] for card in rest["confirmations"]]


def test_health_needs_no_credential_and_writes_nothing(server: ConfirmServer) -> None:
    entries = len(server.audit())
    for page in (False, True):
        answer = server.get("/health", page=page)
        assert answer.json()["status"] == "ok"
        assert answer.json()["pending_count"] == answer.json()["pending"] >= 0
        datetime.fromisoformat(answer.json()["timestamp"])
    assert len(server.audit()) == entries
