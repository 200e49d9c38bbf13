"""Request validation: story 6, cross-site requests and host names that resolve to this machine."""

import itertools
import json
from collections.abc import Iterator

from tests.confirm_server import ConfirmServer, bearer, spoken
from tests.tables import table

from journeyman.confirm.server.daemon import MAX_BODY_BYTES
from journeyman.confirm.server.middleware import CSP

JSON = "application/json"
ASKED = json.dumps({"action": "send_mail", "description": "Tell Bob."})


def heads(**given: str) -> str:
    return "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())


def ask(server: ConfirmServer, head: str, *, page: bool = False, body: str = ASKED) -> int:
    """The status of a submission with exactly these headers."""
    options = server.serving.options
    text = f"POST /confirm HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}"
    return spoken(options.page_port if page else options.port, text.encode()).status


HOSTS = {
    "ours": ("127.0.0.1:{port}", True),
    "localhost": ("localhost:{port}", True),
    "capitals": ("LOCALHOST:{port}", True),
    "ipv6": ("[::1]:{port}", True),
    "none": (None, False),
    "empty": ("", False),
    "rebound": ("evil.example:{port}", False),
    "rebound_bare": ("evil.example", False),
    "same_prefix": ("127.0.0.1.evil.example:{port}", False),
    "another_loopback": ("127.0.0.2:{port}", False),
    "without_port": ("127.0.0.1", False),
    "other_port": ("127.0.0.1:1", False),
    "port_and_more": ("127.0.0.1:{port}0", False),
    "with_user": ("a@127.0.0.1:{port}", False),
    "dotted": ("localhost.:{port}", False),
}
ORIGINS = {
    "none": (None, True),
    "foreign": ("http://evil.example", False),
    "null": ("null", False),
    "empty": ("", False),
    "same_host_other_port": ("http://127.0.0.1:3000", False),
    "same_prefix": ("http://127.0.0.1:{port}.evil.example", False),
    "other_scheme": ("https://127.0.0.1:{port}", False),
}
KINDS = {
    "json": (JSON, True),
    "json_utf8": (f"{JSON}; charset=utf-8", True),
    "text": ("text/plain", False),
    "form": ("application/x-www-form-urlencoded", False),
    "multipart": ("multipart/form-data; boundary=x", False),
    "text_with_json_parameter": (f"text/plain; {JSON}", False),
    "json_like": ("application/json-seq", False),
    "none": (None, False),
}


@table("page", [False, True], ids=["agents", "page"])
def test_story_6_host_origin_and_content_type_must_all_be_right(
    server: ConfirmServer, page: bool
) -> None:
    """Every combination, over a plain socket. The page's own origin is valid at its port only."""
    port = server.serving.options.page_port if page else server.serving.options.port
    origins = {**ORIGINS, "own": ("http://127.0.0.1:{port}", page)}
    wrong = []
    cases = itertools.product(HOSTS.items(), origins.items(), KINDS.items())
    for (host, (name, host_ok)), (origin, (from_, origin_ok)), (kind, (type_, kind_ok)) in cases:
        given = {"Host": name, "Origin": from_, "Content-Type": type_}
        filled = {key: value.format(port=port) for key, value in given.items() if value is not None}
        status = ask(server, heads(**filled, **bearer(server.agent())), page=page)
        if host_ok and origin_ok and kind_ok:
            expected = {202}
        elif name is None:
            expected = {400, 403}
        else:
            expected = {403} if not (host_ok and origin_ok) else {415}
        if status not in expected:
            wrong.append((host, origin, kind, status))
    assert wrong == []


@table(
    ("site", "status"),
    [("cross-site", 403), ("same-site", 403), ("same-origin", 202), ("none", 202)],
)
def test_sec_fetch_site_header(server: ConfirmServer, site: str, status: int) -> None:
    headers = {"Sec-Fetch-Site": site}
    body = {"action": "send_mail", "description": "Tell Bob."}
    assert server.post("/confirm", server.agent(), body, headers=headers).status_code == status
    other = server.post("/confirm", server.agent(), body, headers=headers, page=True)
    assert other.status_code == status


def test_page_without_a_bearer_token_needs_its_own_origin(server: ConfirmServer) -> None:
    body = {"name": "ann", "key": server.approver()}
    assert server.post("/login", body=body, page=True).status_code == 403
    headers = {"Origin": server.page_url}
    assert server.post("/login", body=body, page=True, headers=headers).status_code == 200


FROM_LINK = {
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Dest": "document",
}


def test_link_in_a_mail_opens_only_the_page(server: ConfirmServer) -> None:
    for path in ("/", "/open"):
        assert server.get(path, page=True, headers=FROM_LINK).status_code == 200
        framed = {**FROM_LINK, "Sec-Fetch-Dest": "iframe"}
        assert server.get(path, page=True, headers=framed).status_code == 403
    for path in ("/confirmations", "/me", "/static/app.js"):
        assert server.get(path, page=True, headers=FROM_LINK).status_code == 403


@table("page", [False, True], ids=["agents", "page"])
@table(
    ("method", "path", "status"),
    [
        ("GET", "/health", 200),
        ("GET", "/confirmations", 401),
        ("GET", "/nothing", 404),
        ("POST", "/audit", 405),
        ("PUT", "/confirm", 405),
        ("OPTIONS", "/confirm", 405),
        ("TRACE", "/confirm", 405),
    ],
)
def test_security_headers_on_every_response(
    server: ConfirmServer, method: str, path: str, status: int, page: bool
) -> None:
    headers = {"Content-Type": JSON, **bearer("x" if method != "GET" else "")}
    answer = server.send(method, path, headers=headers, page=page)
    assert answer.status_code == status
    headers_sent = answer.headers
    assert headers_sent["x-content-type-options"] == "nosniff"
    assert headers_sent["cache-control"] == "no-store"
    assert not {"server", "access-control-allow-origin"} & set(headers_sent)
    if not page:  # the agents port serves no page and refuses browsers
        return
    assert headers_sent["content-security-policy"] == CSP
    assert headers_sent["x-frame-options"] == "DENY"
    assert headers_sent["referrer-policy"] == "no-referrer"
    assert headers_sent["cross-origin-opener-policy"] == "same-origin"
    assert headers_sent["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in headers_sent["permissions-policy"]


def test_bodies_up_to_the_limit_are_accepted(server: ConfirmServer) -> None:
    pad = {"note": "x" * (MAX_BODY_BYTES - 200)}
    body = {"action": "send_mail", "description": "Tell Bob.", "details": pad}
    assert len(json.dumps(body)) < MAX_BODY_BYTES
    assert server.post("/confirm", server.agent(), body).status_code == 202


@table(
    ("size", "chunked"),
    [
        (MAX_BODY_BYTES + 1, False),
        (2_000_000, False),
        (20_000_000, False),
        (MAX_BODY_BYTES + 1, True),
        (2_000_000, True),
    ],
)
def test_larger_bodies_are_refused(server: ConfirmServer, size: int, chunked: bool) -> None:
    def pieces() -> Iterator[bytes]:
        for begin in range(0, size, 65_536):
            yield b" " * min(65_536, size - begin)

    content = pieces() if chunked else b" " * size
    answer = server.send(
        "POST", "/confirm", server.agent(), content=content, headers={"Content-Type": JSON}
    )
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"
