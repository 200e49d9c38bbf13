"""Permissions: every route against every class of credential."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.confirm_core import Clock
from tests.confirm_server import ConfirmServer, bearer, confirm_server
from tests.tables import table

CLASSES = ("stranger", "agent", "approver", "session")

# Each route, and its status for each class in the order above. The stranger has an unknown
# credential.
TABLE: dict[str, tuple[int, int, int, int]] = {
    "POST /confirm": (401, 202, 403, 403),
    "GET /confirm/{id}": (401, 200, 200, 200),
    "GET /confirm/{other}": (401, 404, 200, 200),
    "POST /confirm/{id}/cancel": (401, 200, 200, 200),
    "POST /confirm/{other}/cancel": (401, 404, 200, 200),
    "POST /confirm/{id}/redeem": (401, 409, 403, 403),
    "POST /confirm/{other}/redeem": (401, 404, 403, 403),
    "POST /confirm/{id}/approve": (401, 403, 200, 200),
    "POST /confirm/{id}/deny": (401, 403, 200, 200),
    "GET /confirmations": (401, 200, 200, 200),
    "GET /inbox/events": (401, 403, 200, 200),
    "GET /whitelist": (401, 403, 200, 200),
    "POST /whitelist": (401, 403, 201, 201),
    "DELETE /whitelist/{entry}": (401, 403, 200, 200),
    "GET /audit": (401, 403, 200, 200),
    "GET /audit/export": (401, 403, 200, 200),
    "GET /audit/verify": (401, 403, 200, 200),
    "GET /policy": (401, 403, 200, 200),
    "GET /health": (200, 200, 200, 200),
    "GET /openapi.json": (200, 200, 200, 200),
    "GET /me": (401, 403, 403, 200),
    "POST /logout": (401, 403, 403, 200),
}


def body_of(route: str, card: dict[str, str]) -> dict[str, object]:
    if route == "POST /confirm":
        return {"action": "send_mail", "description": "Tell Bob."}
    if route == "POST /whitelist":
        return {"action": "send_mail", "session_key": "only-here"}
    return {"digest": card["digest"]} if route.endswith(("approve", "redeem")) else {}


@contextmanager
def client_of(server: ConfirmServer, who: str) -> Iterator[httpx2.Client]:
    """A client at the page's port with the credential of a class."""
    if who == "session":
        with closing(server.browser()) as client:
            yield client
        return
    with closing(server.visitor()) as client:
        secrets: dict[str, Callable[[], str]] = {
            "stranger": lambda: "jma_nobody",
            "agent": server.agent,
            "approver": server.approver,
        }
        client.headers.update(bearer(secrets[who]()))
        yield client


@table("who", CLASSES)
@table("route", TABLE)
def test_every_route_for_every_class_of_credential(
    server: ConfirmServer, route: str, who: str
) -> None:
    card = server.submit(details={"case": f"{route} {who}"})
    other = server.submit(server.agent("tester"), details={"case": f"{route} {who}"})
    entry = {"id": ""}
    if "{entry}" in route:
        added = {"action": "send_mail", "session_key": "only-here"}
        entry = server.post("/whitelist", server.approver(), added).json()
    method, path = route.split(" ")
    path = path.format(id=card["id"], other=other["id"], entry=entry["id"])
    with client_of(server, who) as client:
        more = {} if method == "GET" else {"json": body_of(route, card)}
        with client.stream(method, path, **more) as answer:
            assert answer.status_code == TABLE[route][CLASSES.index(who)]
            if answer.status_code >= 400:
                answer.read()
                error = answer.json()["error"]
                assert error["message"]
                assert (
                    error["code"]
                    in {
                        401: ("unauthenticated",),
                        403: ("not_allowed",),
                        404: ("unknown",),
                        409: ("not_approved",),
                    }[answer.status_code]
                )
    if TABLE[route][CLASSES.index(who)] in (401, 403):
        assert server.card(card["id"]).status == "pending"


DECISIONS = ("approve", "deny")


def test_cookie_alone_grants_no_access(server: ConfirmServer) -> None:
    """Browsers send it to every port of this machine, so any local server can obtain it."""
    card = server.submit(details={"cookie": "only"})
    with closing(server.browser()) as client:
        token = client.headers.pop("X-CSRF-Token")
        path, body = f"/confirm/{card['id']}/approve", {"digest": card["digest"]}
        assert client.post(path, json=body).status_code == 401
        for wrong in ("", "x", token[:-1], token + "0", token.upper()):
            answer = client.post(path, json=body, headers={"X-CSRF-Token": wrong})
            assert answer.status_code == 401
        for read in ("/me", "/confirmations", f"/confirm/{card['id']}", "/audit", "/inbox/events"):
            assert client.get(read).status_code == 401
        assert server.card(card["id"]).status == "pending"
        answer = client.post(path, json=body, headers={"X-CSRF-Token": token})
        assert answer.json()["votes"][0]["channel"] == "page"


def test_cookie_grants_no_access_on_the_agents_port(server: ConfirmServer) -> None:
    with closing(server.browser()) as client:
        cookie = f"journeyman_session={client.cookies['journeyman_session']}"
    assert server.get("/confirmations", headers={"Cookie": cookie}).status_code == 401


def test_secrets_are_not_interchangeable(server: ConfirmServer) -> None:
    with closing(server.browser()) as client:
        secret = client.cookies["journeyman_session"]
        assert client.get("/confirmations").status_code == 200
    assert server.get("/confirmations", secret, page=True).status_code == 401
    link = server.login_link("ann").partition("#")[2]
    assert server.get("/confirmations", link).status_code == 401
    for other in (server.agent(), server.approver()):
        headers = {"Cookie": f"journeyman_session={other}"}
        assert server.get("/confirmations", page=True, headers=headers).status_code == 401


@table("header", ["", "Bearer", "Basic {key}", "{key}", "bearer {key}"])
def test_authorization_header_formats(server: ConfirmServer, header: str) -> None:
    given = {"Authorization": header.format(key=server.approver())}
    expected = 200 if header == "bearer {key}" else 401
    answer = server.get("/confirmations", headers=given)
    assert answer.status_code == expected
    if expected == 401:
        assert answer.headers["www-authenticate"] == "Bearer"


def test_login_and_logout(server: ConfirmServer) -> None:
    with closing(server.browser("cleo")) as client:
        cookie = client.cookies.jar
        (one,) = [each for each in cookie if each.name == "journeyman_session"]
        assert one.path == "/"
        assert one.has_nonstandard_attr("HttpOnly")
        assert one.get_nonstandard_attr("SameSite") == "strict"
        assert client.get("/me").json() == {"name": "cleo"}
        kept = {"Cookie": f"journeyman_session={one.value}"}
        assert client.post("/logout", json={}).status_code == 200
        assert "journeyman_session" not in client.cookies
        assert server.get("/me", page=True, headers=kept).status_code == 401


@table(
    "given",
    [{"name": "ann", "key": "jmk_wrong"}, {"name": "bob"}, {"name": "nobody", "key": "x"}],
    ids=["wrong_key", "someone_elses_key", "nobody"],
)
def test_wrong_login_is_refused(server: ConfirmServer, given: dict[str, str]) -> None:
    server.approver("bob")
    body = {"key": server.approver("ann"), **given}
    answer = server.post("/login", body=body, page=True, headers={"Origin": server.page_url})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_guessed_credentials_are_in_the_audit_and_cannot_fill_it(tmp_path: Path) -> None:
    clock = Clock()
    with confirm_server(tmp_path, clock=clock) as server:
        server.get("/confirmations", "jmk_guess")
        page: dict[str, Any] = {"page": True, "headers": {"Origin": server.page_url}}
        for number in range(5):
            body = {"name": "ann", "key": f"jmk_guess_{number}"}
            server.post("/login", body=body, **page)
        clock.forward(60)
        server.post("/links/open", body={"link": "jml_guess"}, **page)
        refused = server.audit("refused")
    assert {entry.actor for entry in refused} == {"stranger"}
    assert [entry.about["at"] for entry in refused] == ["GET /confirmations", "POST /links/open"]


def test_page_routes_are_absent_on_the_agents_port(server: ConfirmServer) -> None:
    assert server.post("/login", body={"name": "ann", "key": "x"}).status_code == 404
    for path in ("/", "/me", "/static/app.js", "/open"):
        assert server.get(path).status_code == 404
