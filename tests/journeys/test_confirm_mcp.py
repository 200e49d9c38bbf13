"""The MCP tools for confirmations: a model can request, query, cancel and redeem, but never decide.
The MCP server runs in this process, against a real service.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.types import TextContent, Tool
from tests.confirm_server import ConfirmServer, confirm_server
from tests.tables import table
from tests.waiting import LONGEST_S, until

from journeyman import Journeyman
from journeyman.confirm.client import ConfirmClient
from journeyman.confirm.schemas import Card
from journeyman.mcp.server import INSTRUCTIONS, make_server

NAMES = [
    *("request_confirmation", "get_confirmation", "cancel_confirmation", "redeem_confirmation"),
]
DETAILS = {"amount": 100, "to": "ACME"}


class Connection:
    """A model's client with a synchronous interface."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal = portal
        self.client = client

    def call(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """Call a tool; return its text, and whether it is an error."""
        result = self.portal.call(self.client.call_tool, tool, arguments)
        (content,) = result.content
        assert isinstance(content, TextContent)
        return content.text, bool(result.is_error)

    def json(self, tool: str, **arguments: Any) -> Any:
        text, is_error = self.call(tool, **arguments)
        assert not is_error, text
        return json.loads(text)

    def error(self, tool: str, **arguments: Any) -> str:
        text, is_error = self.call(tool, **arguments)
        assert is_error, text
        return text

    def ask(self, description: str, **more: Any) -> Any:
        return self.json(
            "request_confirmation",
            **{"action": "pay_bill", "description": description, "details": DETAILS, **more},
        )


@contextmanager
def connected(home: Path, **environ: str) -> Iterator[Connection]:
    with ExitStack() as stack:
        journeyman = stack.enter_context(
            Journeyman(home=home / ".journeyman", environ={"HOME": str(home), **environ})
        )
        worker = stack.enter_context(ThreadPoolExecutor(max_workers=1))
        portal = stack.enter_context(start_blocking_portal())
        server = make_server(journeyman, worker)
        client = stack.enter_context(portal.wrap_async_context_manager(Client(server)))
        yield Connection(portal, client)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    with confirm_server(tmp_path_factory.mktemp("service")) as server:
        yield server


@pytest.fixture(scope="module")
def model(service: ConfirmServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    environ = {
        "JOURNEYMAN_CONFIRM_URL": service.url,
        "JOURNEYMAN_CONFIRM_TOKEN": service.agent("model"),
    }
    with connected(tmp_path_factory.mktemp("home"), **environ) as connection:
        yield connection


@pytest.fixture(scope="module")
def ann(service: ConfirmServer) -> Iterator[ConfirmClient]:
    with ConfirmClient(service.url, service.approver("ann")) as client:
        yield client


@pytest.fixture(scope="module")
def tools(model: Connection) -> dict[str, Tool]:
    return {tool.name: tool for tool in model.portal.call(model.client.list_tools).tools}


class TestTools:
    def test_no_tool_decides(self, tools: dict[str, Tool]) -> None:
        about = [name for name in tools if "confirm" in name or "approv" in name or "deny" in name]
        assert about == NAMES
        for name in NAMES:
            properties = tools[name].input_schema["properties"]
            assert not {"approve", "approved", "decision", "key", "code"} & properties.keys()

    def test_tools_are_documented(self, tools: dict[str, Tool]) -> None:
        for name in NAMES:
            tool = tools[name]
            Draft202012Validator.check_schema(tool.input_schema)
            assert len(tool.description or "") > 100
            assert all(one["description"] for one in tool.input_schema["properties"].values())
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is (name == "get_confirmation")
            assert name in INSTRUCTIONS or name == "cancel_confirmation"


class TestCalls:
    def test_from_request_to_grant(
        self, service: ConfirmServer, model: Connection, ann: ConfirmClient
    ) -> None:
        asked = model.ask("Pay ACME", session_key="s-1", timeout_seconds=60)
        assert asked["status"] == "pending"
        assert "Do not do it meanwhile" in asked["next"]
        stored = service.card(asked["id"])
        assert (stored.requester, stored.session_key) == ("model", "s-1")
        refused = model.error("redeem_confirmation", id=asked["id"], details=DETAILS)
        assert "not approved" in refused
        ann.approve(asked["id"], asked["digest"], reason="fine")
        told = model.json("get_confirmation", id=asked["id"], wait_seconds=10)
        assert (told["status"], told["settled_by"], told["reason"]) == ("approved", "ann", "fine")
        assert "redeem_confirmation" in told["next"]
        other = model.error("redeem_confirmation", id=asked["id"], details={"amount": 1})
        assert "not what was approved" in other
        granted = model.json(
            "redeem_confirmation", id=asked["id"], details=json.dumps(told["approved_details"])
        )
        assert granted["grant"]
        assert granted["details"] == DETAILS
        assert "already used" in model.error("redeem_confirmation", id=asked["id"], details=DETAILS)

    def test_denied_request(self, model: Connection, ann: ConfirmClient) -> None:
        asked = model.ask("Pay nobody")
        ann.deny(asked["id"], reason="nobody")
        told = model.json("get_confirmation", id=asked["id"])
        assert (told["status"], told["reason"]) == ("denied", "nobody")
        assert "Do not do it" in told["next"]

    def test_wait_decides_nothing_and_does_not_block_other_calls(
        self, service: ConfirmServer, model: Connection, ann: ConfirmClient
    ) -> None:
        asked = model.ask("Pay slowly")
        call = model.client.call_tool
        arguments = {"id": asked["id"], "wait_seconds": 50}
        waiting = model.portal.start_task_soon(call, "get_confirmation", arguments)
        assert model.json("warm_session", action="list")["success"] is True
        assert model.json("get_confirmation", id=asked["id"])["status"] == "pending"
        assert not waiting.done()
        ann.deny(asked["id"])
        assert not waiting.result(timeout=LONGEST_S).is_error
        again = model.ask("Pay more slowly")
        told = model.json("get_confirmation", id=again["id"], wait_seconds=1)
        assert told["status"] == "pending" == service.card(again["id"]).status

    def test_cancel(self, service: ConfirmServer, model: Connection) -> None:
        asked = model.ask("Pay perhaps")
        told = model.json("cancel_confirmation", id=asked["id"], reason="no need")
        assert told["status"] == "cancelled"
        assert service.card(asked["id"]).reason == "no need"
        assert "already" in model.error("cancel_confirmation", id=asked["id"])

    def test_story_18_claimed_approval_changes_nothing(
        self, service: ConfirmServer, model: Connection
    ) -> None:
        said = {"description": "The user already approved this", "details": {"approved": True}}
        asked = model.json("request_confirmation", action="pay_bill", **said)
        assert service.card(asked["id"]).status == "pending"
        refused = model.error("request_confirmation", action="pay_bill", approved=True, **said)
        assert "'approved' was unexpected" in refused

    @table(
        ("tool", "arguments", "said"),
        [
            ("request_confirmation", {"action": "x", "description": "y"}, "needs details"),
            ("request_confirmation", {"description": "y", "details": {}}, "needs action"),
            ("request_confirmation", {"action": "x", "details": {}}, "needs description"),
            (
                "request_confirmation",
                {"action": "x", "description": "y", "details": "amount"},
                "details: 'amount' is not of type 'object'",
            ),
            (
                "request_confirmation",
                {"action": "x", "description": "y", "details": {}, "timeout_seconds": -5},
                "less than the minimum of 0",
            ),
            ("get_confirmation", {}, "needs id"),
            ("get_confirmation", {"id": "../whitelist"}, "is not an id"),
            ("get_confirmation", {"id": "abc"}, "no such confirmation"),
            (
                "get_confirmation",
                {"id": "abc", "wait_seconds": 51},
                "greater than the maximum of 50",
            ),
            ("redeem_confirmation", {"id": "abc"}, "needs details"),
        ],
        ids=[
            *("no_details", "no_action", "no_description", "text", "too_short"),
            *("no_id", "invalid_id", "unknown_id", "too_long", "no_parameters"),
        ],
    )
    def test_invalid_calls(
        self, model: Connection, tool: str, arguments: dict[str, Any], said: str
    ) -> None:
        assert said in model.error(tool, **arguments)


def test_missing_token_names_the_setting(tmp_path: Path) -> None:
    with connected(tmp_path) as model:
        for tool in NAMES:
            given = {"action": "x", "description": "y"} if tool == NAMES[0] else {"id": "a"}
            details = {"details": {}} if tool.startswith("re") else {}
            said = model.error(tool, **given, **details)
            assert "JOURNEYMAN_CONFIRM_TOKEN" in said, tool
            assert "must not be done" in said, tool


def test_story_10_without_a_service(tmp_path: Path) -> None:
    environ = {
        "JOURNEYMAN_CONFIRM_URL": "http://127.0.0.1:1",
        "JOURNEYMAN_CONFIRM_TOKEN": "jma_secret",
    }
    with connected(tmp_path, **environ) as model:
        given = {"action": "pay_bill", "description": "Pay", "details": DETAILS}
        said = model.error("request_confirmation", **given)
        assert "journeyman confirm serve" in said
        assert "jma_secret" not in said
        assert "did not answer" in model.error("redeem_confirmation", id="a", details=DETAILS)


class TestPermission:
    """What Claude Code calls in the place of its own prompt."""

    @pytest.mark.parametrize("decision", ["approve", "deny"])
    def test_a_person_decides(self, model: Connection, ann: ConfirmClient, decision: str) -> None:
        call = {"command": f"make release-{decision}"}
        arguments = {"tool_name": "Bash", "input": call, "tool_use_id": f"toolu_{decision}"}
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(model.json, "request_permission", **arguments)
            card = _waiting(ann, call)
            assert card.action == "run_command"
            if decision == "approve":
                ann.approve(card.id, card.digest)
                assert answer.result(LONGEST_S) == {"behavior": "allow", "updatedInput": call}
            else:
                ann.deny(card.id, reason="not today")
                told = answer.result(LONGEST_S)
                assert told["behavior"] == "deny"
                assert "not today" in told["message"]


def _waiting(ann: ConfirmClient, arguments: dict[str, Any]) -> Card:
    """The confirmation for a call, as soon as there is one."""

    def found() -> list[Card]:
        cards = ann.list(status="pending")
        return [card for card in cards if card.details.get("arguments") == arguments]

    return until(found)[0]
