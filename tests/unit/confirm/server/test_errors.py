"""Errors have one shape, and an unexpected fault reveals no internals of the service."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from litestar import Request
from tests.confirm_server import ConfirmServer, confirm_server
from tests.tables import table

from journeyman.confirm.policy import Policy
from journeyman.confirm.schemas import Verified
from journeyman.confirm.server.errors import (
    STATUS_CODES,
    ApiError,
    handle_exception,
    raise_if_refused,
)
from journeyman.confirm.service import Service
from journeyman.records.confirmation import Refusal, RefusalCode
from journeyman.records.errors import StoreUnavailable, WrongInput

SECRET = "the-inside-of-the-service"


class Failing(Service):
    """Fails on demand."""

    async def add_to_whitelist(self, *_: object) -> Any:
        raise ValueError(SECRET)

    async def verify_audit(self) -> Verified:
        raise StoreUnavailable("The database is locked. Try again.")

    async def whitelist(self) -> list[Policy]:  # type: ignore[override]
        raise WrongInput("That cannot be asked.")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    with confirm_server(tmp_path_factory.mktemp("confirm"), kind=Failing) as running:
        yield running


def test_unexpected_error_is_logged_but_not_shown(
    server: ConfirmServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = server.post("/whitelist", server.approver(), {"action": "x"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (500, "internal")
    assert SECRET not in answer.text
    assert "Traceback" not in answer.text
    assert "POST /whitelist failed" in caplog.text
    assert SECRET in caplog.text
    assert server.get("/health").status_code == 200


def test_unavailable_store_is_reported(
    server: ConfirmServer, caplog: pytest.LogCaptureFixture
) -> None:
    answer = server.get("/audit/verify", server.approver())
    assert answer.status_code == 503
    assert answer.json() == {
        "error": {"code": "unavailable", "message": "The database is locked. Try again."}
    }
    assert "The database is locked" in caplog.text


def test_invalid_input_is_reported(server: ConfirmServer) -> None:
    answer = server.get("/whitelist", server.approver())
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "That cannot be asked."


def test_every_refusal_code_has_a_status() -> None:
    codes = set(RefusalCode.__args__)  # type: ignore[attr-defined]
    assert codes <= STATUS_CODES.keys()
    for code in codes:
        about = {"settled_at": 0.0, "who": "ann"}
        with pytest.raises(ApiError) as refused:
            raise_if_refused(Refusal(code=code, message="No.", about=about))
        answer = handle_exception(Request({"type": "http"}), refused.value)
        assert answer.status_code == STATUS_CODES[code]
        settled_at = datetime.fromtimestamp(0, UTC)
        told = {"code": code, "message": "No.", "settled_at": settled_at, "who": "ann"}
        assert answer.content == {"error": told}


@table("page", [False, True], ids=["agents", "page"])
@table(
    ("way", "status", "code"),
    [
        ("GET /nothing", 404, "unknown"),
        ("GET /confirm", 405, "wrong_method"),
        ("DELETE /confirm", 405, "wrong_method"),
        ("PATCH /confirm", 405, "wrong_method"),
        ("POST /audit/export", 405, "wrong_method"),
        ("GET /confirm/", 405, "wrong_method"),
        ("GET /%2e%2e/etc/passwd", 404, "unknown"),
    ],
)
def test_unknown_routes_and_methods(
    server: ConfirmServer, way: str, status: int, code: str, *, page: bool
) -> None:
    method, path = way.split(" ")
    headers = {"Content-Type": "application/json"}
    answer = server.send(method, path, server.agent(), headers=headers, page=page)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    if code == "wrong_method" and method != "PATCH":
        assert answer.headers["allow"]
