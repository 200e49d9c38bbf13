"""The API conforms to its OpenAPI document: generated requests, valid and invalid, to every route
of both ports, with every class of credential.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from tests.confirm_server import ConfirmServer, bearer, confirm_server

CHECKS = [not_a_server_error]
STREAM = "/inbox/events"
"""It has no end; tested elsewhere."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    with confirm_server(tmp_path_factory.mktemp("confirm")) as running:
        yield running


def document(server: ConfirmServer, *, page: bool) -> dict[str, Any]:
    found: dict[str, Any] = server.get("/openapi.json", page=page).json()
    return found


def test_every_route_is_documented(server: ConfirmServer) -> None:
    agents, page = (document(server, page=each) for each in (False, True))
    assert set(page["paths"]) - set(agents["paths"]) == {"/login", "/logout", "/me", "/links/open"}
    assert set(page["components"]["securitySchemes"]) == {"bearer", "session"}


def test_no_request_breaks_the_service(server: ConfirmServer) -> None:
    try_every_route(server, "approver", page=True, examples=1)


@pytest.mark.soak
@pytest.mark.parametrize("page", [False, True], ids=["agents", "page"])
@pytest.mark.parametrize("who", ["agent", "approver", "nobody"])
def test_many_requests_do_not_break_the_service(
    server: ConfirmServer, who: str, page: bool
) -> None:
    try_every_route(server, who, page=page, examples=25)


def try_every_route(server: ConfirmServer, who: str, *, page: bool, examples: int) -> None:
    """Send generated requests to every route of a port, `examples` to each."""
    secrets: dict[str, Callable[[], str]] = {
        "agent": server.agent,
        "approver": server.approver,
        "nobody": str,
    }
    headers = {**bearer(secrets[who]()), **({"Origin": server.page_url} if page else {})}
    at = server.page_url if page else server.url
    schema = schemathesis.openapi.from_dict(document(server, page=page))
    known = server.submit(details={"schema": f"{who} {page}"})["id"]
    with requests.Session() as session:
        session.trust_env = False
        way = {"base_url": at, "session": session, "headers": headers, "timeout": 20}
        for found in schema.get_all_operations():
            operation = found.ok()
            if operation.path == STREAM:
                continue
            call_route(operation, known, way, examples)
    assert server.get("/health").status_code == 200
    assert server.get("/audit/verify", server.approver()).json()["ok"]


def call_route(operation: Any, known: str, way: dict[str, Any], examples: int) -> None:
    """Send generated requests to one route, half of them for an existing confirmation."""
    good = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    bad = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(good, bad), about_known=st.booleans())
    def call(case: Any, about_known: bool) -> None:
        if about_known and "confirmation_id" in (case.path_parameters or {}):
            case.path_parameters["confirmation_id"] = known
        if isinstance(case.query, dict) and "wait" in case.query:
            case.query["wait"] = 0
        answer = case.call(**way)
        case.validate_response(answer, checks=CHECKS)

    call()
